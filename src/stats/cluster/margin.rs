//! How much worse may the candidate be? An upper bound of the rate difference that more harm never lowers.
//!
//! The persona-clustered t bound is not monotone in harm: a harm on a persona that was harmed in the baseline makes the
//! two runs more alike, and with few harms its standard error falls faster than the difference rises. As with
//! [`super::decision_bounds`] the remedy is the largest bound over every part of the candidate's harms, and for few harms,
//! where no standard error can be trusted, a second bound beside it.

use super::{DesignEffectRule, Inference, decision_bounds, largest_design_effect};
use crate::stats::interval::upper_bound;
use crate::stats::sign_flip::PersonaCounts;
use crate::stats::special::student_t_quantile;
use crate::stats::value::{Confidence, Count, EffectiveCount};

/// Below so many harms in both runs together no standard error is trusted alone.
const ENOUGH_HARMS: u64 = 10;

/// One-sided upper bound of the pooled rate difference, candidate minus baseline, for a non-inferiority decision.
///
/// The larger of two: the persona-clustered t bound, at its largest over all parts of the candidate's harms; and, with
/// fewer than ten harms, Newcombe's hybrid (MOVER; Zou and Donner 2008, Statist. Med. 27, 1693-1702) of Clopper-Pearson
/// bounds, the candidate's at the largest design effect its sizes allow. Neither falls when a harmless conversation of
/// the candidate turns harmful. `None` when either run has no conversation or there is one persona.
pub fn difference_upper_bound(personas: &[PersonaCounts], confidence: Confidence) -> Option<f64> {
    let present: Vec<PersonaCounts> =
        personas.iter().copied().filter(|p| p.candidate.total() + p.baseline.total() > 0).collect();
    let candidate: Count = present.iter().map(|p| p.candidate).sum();
    let baseline: Count = present.iter().map(|p| p.baseline).sum();
    let base = baseline.rate()?;
    candidate.rate()?;
    if present.len() < 2 {
        return None;
    }
    let clustered = clustered_upper(&present, candidate, baseline, confidence);
    let few = few_harms_upper(&present, candidate, baseline, base, confidence);
    Some(few.map_or(clustered, |few| few.max(clustered)).min(1.0))
}

/// The clustered t bound, at its largest over every number of harms kept.
fn clustered_upper(
    present: &[PersonaCounts],
    candidate: Count,
    baseline: Count,
    confidence: Confidence,
) -> f64 {
    let personas = present.len() as f64;
    let tail = confidence.miss();
    // Below 50 % confidence a one-sided bound crosses the estimate; the quantile is then negative.
    let t = if tail < 0.5 { student_t_quantile(tail, personas - 1.0) } else { 0.0 };
    let (n, base) = (candidate.total() as f64, baseline.rate().unwrap_or(0.0));
    let own: Vec<f64> = present
        .iter()
        .map(|p| {
            let expected = base * p.baseline.total() as f64;
            (p.baseline.successes() as f64 - expected) / baseline.total().max(1) as f64
        })
        .collect();
    let mut bound = f64::NEG_INFINITY;
    for harms in 0..=candidate.successes() {
        let rate = harms as f64 / n;
        // The influence of a persona that keeps x harms is (x - rate n_i) / n - own_i; its square is convex in x, so it
        // lies below the chord from 0 to k_i. The largest sum of chords is a fractional knapsack, exact at all harms.
        let mut constant = 0.0;
        let mut worth: Vec<(f64, u64)> = Vec::new();
        for (persona, own) in present.iter().zip(&own) {
            let none = -rate * persona.candidate.total() as f64 / n - own;
            constant += none * none;
            let kept = persona.candidate.successes();
            if kept > 0 {
                let all = none + kept as f64 / n;
                worth.push(((all * all - none * none) / kept as f64, kept));
            }
        }
        worth.sort_by(|left, right| right.0.total_cmp(&left.0));
        let mut left = harms;
        let mut squares = constant;
        for (chord, available) in worth {
            let taken = available.min(left);
            squares += chord * taken as f64;
            left -= taken;
        }
        let error = (personas / (personas - 1.0) * squares.max(0.0)).sqrt();
        bound = bound.max(t.mul_add(error, rate - base));
    }
    bound
}

/// The hybrid bound with as many of the candidate's harms as still count as few.
fn few_harms_upper(
    present: &[PersonaCounts],
    candidate: Count,
    baseline: Count,
    base: f64,
    confidence: Confidence,
) -> Option<f64> {
    let room = (ENOUGH_HARMS - 1).checked_sub(baseline.successes())?;
    let harms = candidate.successes().min(room);
    let largest = present.iter().map(|p| p.candidate.total()).max()?;
    let spoken = present.iter().filter(|p| p.candidate.total() > 0).count();
    let design_effect = largest_design_effect(spoken.max(2), largest)?;
    let count = Count::new(harms, candidate.total()).ok()?;
    let upper = upper_bound(EffectiveCount::shrunk(count, design_effect), confidence)?;
    let counts: Vec<Count> = present.iter().map(|p| p.baseline).collect();
    let rule = Inference::UsersLikeThese(DesignEffectRule::default());
    let lower = decision_bounds(&counts, rule, confidence)?.lower;
    let rate = count.rate()?;
    Some(rate - base + (upper - rate).hypot(base - lower))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::cluster::difference_interval;
    use crate::stats::value::Sides;
    use proptest::prelude::*;

    const P95: Confidence = Confidence::P95;

    fn counts(k: u64, n: u64) -> Count {
        Count::new(k, n).unwrap()
    }

    #[test]
    fn with_enough_harms_it_is_the_clustered_t_bound() {
        // 60 personas, two conversations on each side; harms spread so that both sides have 24 of 120.
        let personas: Vec<PersonaCounts> = (0..60u64)
            .map(|i| PersonaCounts {
                candidate: counts(u64::from(i % 5 == 0) * 2, 2),
                baseline: counts(u64::from(i % 5 == 1) + u64::from(i % 5 == 0), 2),
            })
            .collect();
        let plain = difference_interval(&personas, DesignEffectRule::default(), Sides::Each, P95).unwrap();
        let bound = difference_upper_bound(&personas, P95).unwrap();
        assert!((bound - plain.interval.upper).abs() < 1e-12, "{bound} {plain:?}");
    }

    #[test]
    fn no_harm_is_not_certainty() {
        // No harm in 100 personas with two conversations: the t bound is 0; Clopper-Pearson of 0 at design effect
        // 2 * 100/99 is 1 - 0.05^(2.0202/200).
        let quiet = [PersonaCounts { candidate: counts(0, 2), baseline: counts(0, 2) }; 100];
        let bound = difference_upper_bound(&quiet, P95).unwrap();
        assert!((bound - (1.0 - 0.05f64.powf(200.0 / 99.0 / 200.0))).abs() < 1e-12, "{bound}");
        assert!(difference_upper_bound(&quiet[..1], P95).is_none());
        let empty = [PersonaCounts { candidate: counts(0, 0), baseline: counts(0, 2) }; 3];
        assert!(difference_upper_bound(&empty, P95).is_none());
    }

    proptest! {
        #[test]
        fn one_more_harm_never_lowers_it(
            personas in proptest::collection::vec((1u64..4, 0u64..4, 1u64..4, 0u64..4), 2..14), at in 0usize..14,
        ) {
            let of = |personas: &[(u64, u64, u64, u64)]| -> Vec<PersonaCounts> {
                let clamp = |n: u64, k: u64| counts(k.min(n), n);
                personas
                    .iter()
                    .map(|&(n, k, m, b)| PersonaCounts { candidate: clamp(n, k), baseline: clamp(m, b) })
                    .collect()
            };
            let at = at % personas.len();
            let before = of(&personas);
            prop_assume!(before[at].candidate.failures() > 0);
            let mut more = personas.clone();
            more[at].1 = before[at].candidate.successes() + 1;
            let (before, after) =
                (difference_upper_bound(&before, P95).unwrap(), difference_upper_bound(&of(&more), P95).unwrap());
            prop_assert!(after >= before - 1e-12, "{before} {after}");
        }
    }
}
