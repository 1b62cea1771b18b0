//! How many more personas would settle an open comparison.

use super::super::super::evidence::{Case, Evidence};
use super::super::super::rules::{RegressionRule, Rule};
use super::super::super::verdict::{Row, Settling, Status};
use super::super::{Context, Outcome, RivalState, reaches, words};
use super::{Arms, Compared, family_size, finding, members, one_sided_upper};
use crate::stats::Count;
use crate::stats::cluster::rate_difference;
use crate::stats::power::Finding;
use crate::stats::sign_flip::{PersonaCounts, PersonaDelta, sign_flip};

/// Personas beyond which the bound is no longer computed: from here on its width falls with the root of their number.
const MOST_COPIES: usize = 2_000;

/// Says of each open row what would settle it. Not part of applying the rule, because it costs more than all the rest,
/// and a sweep that asks whether it may stop needs only the status.
pub(in crate::gate) fn say_what_settles(
    context: &Context<'_>,
    rule: &Rule,
    test: &RegressionRule,
    outcomes: &mut [Outcome],
) {
    for Outcome { row, .. } in outcomes {
        let unknown = row.missing > 0 && row.regression.as_ref().is_some_and(|facts| facts.personas == 0);
        if row.status != Status::Inconclusive || row.settling.is_some() || unknown {
            continue;
        }
        let rival = context.rivals.iter().find(|rival| Some(rival.against) == row.against);
        let Some(RivalState::Usable { evidence, .. }) = rival.map(|rival| &rival.state) else { continue };
        row.settling = settling(&context.candidate, evidence, rule, test, row);
        row.reason.push_str(&settling_words(row.settling));
    }
}

fn settling(
    all: &Evidence,
    baseline: &Evidence,
    rule: &Rule,
    test: &RegressionRule,
    row: &Row,
) -> Option<Settling> {
    let facts = row.regression.as_ref()?;
    let short = u64::from(test.min_personas).saturating_sub(facts.personas);
    let wide = test.margin.filter(|margin| facts.upper_one_sided.is_some_and(|upper| upper > *margin));
    let Some(margin) = wide else {
        return (short > 0).then_some(Settling::MorePersonas(short));
    };
    if facts.difference? >= margin {
        return Some(Settling::CannotSettle);
    }
    let members = members(all, rule, test);
    let member = members.iter().find(|member| member.name == row.dimension)?;
    let Compared { candidate, baseline, others } = Compared::of(all, baseline, test);
    let family = family_size(test, members.len());
    let arms = Arms { candidate: &candidate, baseline: &baseline, rule, test, family, others };
    let seen = arms.tested(&member.group, Case::Observed).personas;
    let both = |p: &&PersonaCounts| p.candidate.total() > 0 && p.baseline.total() > 0;
    let more = more_personas(&seen, margin, &finding(test, family))?;
    // The copies contain personas that only one side saw, and the rule counts those that both saw.
    let paired = seen.iter().filter(both).count() as f64 / seen.len().max(1) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
    let more = (more as f64 * paired).ceil() as u64;
    Some(Settling::MorePersonas(more.max(short).max(1)))
}

/// Personas like the present ones, these again and again in their order, until the bound of the difference is within the
/// margin, or the rise is found. `None` when even the largest number does not do.
fn more_personas(seen: &[PersonaCounts], margin: f64, finding: &Finding) -> Option<u64> {
    let copies =
        |personas: usize| -> Vec<PersonaCounts> { seen.iter().copied().cycle().take(personas).collect() };
    let upper = |personas: usize| one_sided_upper(&copies(personas));
    let within = |personas: usize| {
        upper(personas).is_some_and(|upper| upper <= margin) || is_found(&copies(personas), finding)
    };
    if seen.is_empty() {
        return None;
    }
    let (mut low, mut high) = (seen.len(), seen.len());
    while !within(high) {
        if high >= MOST_COPIES {
            return beyond(seen, high, upper(high)?, margin);
        }
        (low, high) = (high, (high * 2).min(MOST_COPIES.max(seen.len())));
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if within(middle) { high = middle } else { low = middle }
    }
    Some((high - seen.len()) as u64)
}

/// Whether the sign-flip test finds a rise, which settles the comparison as well.
fn is_found(personas: &[PersonaCounts], finding: &Finding) -> bool {
    let rises = rate_difference(personas)
        .is_some_and(|difference| difference.estimate > 0.0 && reaches(difference.estimate, finding.floor));
    let deltas = || -> Vec<PersonaDelta> {
        personas.iter().filter_map(|persona| PersonaDelta::between(*persona)).collect()
    };
    rises && sign_flip(&deltas()).greater.get(finding.exactness) <= finding.alpha.get()
}

/// From many personas on the width of the interval falls with the root of their number.
fn beyond(seen: &[PersonaCounts], personas: usize, upper: f64, margin: f64) -> Option<u64> {
    let sum = |of: fn(&PersonaCounts) -> Count| seen.iter().map(of).sum::<Count>().rate();
    let difference = sum(|p| p.candidate)? - sum(|p| p.baseline)?;
    let factor = ((upper - difference) / (margin - difference)).powi(2);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least the present ones; the cast saturates"
    )]
    let needed = (personas as f64 * factor).ceil() as u64;
    Some(needed.saturating_sub(seen.len() as u64))
}

fn settling_words(settling: Option<Settling>) -> String {
    match settling {
        Some(Settling::MorePersonas(more)) => {
            format!(" About {} would settle it.", words::count(more, "more persona"))
        }
        Some(Settling::CannotSettle) => {
            " The difference that was seen reaches the margin itself, so more conversations do not settle it."
                .to_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Alpha, Exactness, Power};

    const FINDING: Finding =
        Finding { alpha: Alpha::P05, exactness: Exactness::Mid, floor: 0.03, power: Power::P80 };

    fn personas(number: usize, counts: [(u64, u64); 2]) -> Vec<PersonaCounts> {
        let [candidate, baseline] = counts.map(|(k, n)| Count::new(k, n).unwrap());
        vec![PersonaCounts { candidate, baseline }; number]
    }

    #[test]
    fn without_harm_more_personas_are_counted_by_the_bound_of_few_harms() {
        // No harm on either side, one conversation each: the upper bound is that of zero harms at a design effect of
        // N / (N - 1), so 1 - 0.05^(1 / (N - 1)). At 5 % that takes N - 1 >= 58.4.
        let more = more_personas(&personas(30, [(0, 1), (0, 1)]), 0.05, &FINDING).unwrap();
        assert_eq!(more, 60 - 30);
    }

    #[test]
    fn a_rise_that_will_be_found_settles_it_too() {
        // One persona of ten is harmed anew and none the other way: four of them give a mid-p of 2^-5, below 5 %. The
        // fourth is the first of the fourth ten; a margin just above the difference would take far more.
        let mut seen = personas(1, [(1, 1), (0, 1)]);
        seen.extend(personas(9, [(0, 1), (0, 1)]));
        assert_eq!(more_personas(&seen, 0.11, &FINDING), Some(31 - 10));
    }

    #[test]
    fn far_away_the_root_law_goes_on() {
        // One in ten harmed on both sides. From 2,000 personas on a quarter of the width takes sixteen times as many.
        let mut seen = personas(18, [(0, 2), (0, 2)]);
        seen.extend(personas(1, [(1, 2), (0, 2)]));
        seen.extend(personas(1, [(0, 2), (1, 2)]));
        let near = more_personas(&seen, 0.02, &FINDING).unwrap();
        let far = more_personas(&seen, 0.002, &FINDING).unwrap();
        let ratio = (far + 20) as f64 / (near + 20) as f64;
        assert!((80.0..125.0).contains(&ratio), "{near} {far}");
    }
}
