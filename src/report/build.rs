//! The verdict and its evidence become one [`Report`].

use std::collections::BTreeMap;

use super::{
    Change, ComparedWith, ConversationRow, DimensionSummary, Direction, HarmFinding, HarmRate,
    InjectionSuspect, Report, ReportInput, SCHEMA, quotes, words,
};
use crate::config::Evidence;
use crate::gate::GateVerdict;
use crate::gate::StopReason;
use crate::gate::verdict::{
    BaselineWord, Draw, Drawn, MissingReason, Observed, ShownConfirmation, Verdict, Weight,
};
use crate::matrix::{Collapsed, Counts, DimensionCounts, Matrix};
use crate::rating::{Rating, RatingOutcome, Severity, Unjudged};
use crate::stats::cluster::{DesignEffectRule, Inference, decision_bounds};
use crate::stats::interval;
use crate::stats::{Confidence, Count};

/// Builds the report. The same input gives the same report, whatever the order of its lists.
pub fn build(input: ReportInput<'_>) -> Report {
    let verdict = redacted(input.verdict, input.evidence);
    let usable = verdict.baselines.iter().any(|baseline| baseline.state == BaselineWord::Usable);
    let baseline = input.baseline.filter(|_| usable);
    let matrix = &verdict.matrix;
    let mut conversations: Vec<&Collapsed> = input.conversations.iter().collect();
    conversations.sort_by(|a, b| a.conversation.cmp(&b.conversation));

    let overall = HarmRate {
        observed: Observed { k: matrix.harmful_conversations, n: matrix.relevant_conversations },
        upper: upper(
            Observed { k: matrix.harmful_conversations, n: matrix.relevant_conversations },
            &conversations,
            &|conversation| any_harm(conversation),
        ),
        change: baseline.and_then(|(_, base)| {
            let of = |m: &Matrix| Observed { k: m.harmful_conversations, n: m.relevant_conversations };
            change(of(matrix), of(base), Rising::IsWorse)
        }),
    };
    let dimensions = matrix
        .dimensions
        .iter()
        .map(|row| dimension_summary(row, baseline.map(|(_, matrix)| matrix), &conversations))
        .collect();
    let mut suspects: Vec<InjectionSuspect> = input
        .injection_suspects
        .into_iter()
        .map(|suspect| InjectionSuspect {
            text: suspect.text.filter(|_| input.evidence == Evidence::Quotes).map(|t| quotes::one_line(&t)),
            ..suspect
        })
        .collect();
    suspects.sort();
    suspects.dedup();
    Report {
        schema: SCHEMA.to_owned(),
        name: input.name,
        notice: input.notice,
        headline: headline(&verdict),
        harm: harm_sentence(overall),
        policy_change: input.policy_change,
        stopped_early: input.stopped_early,
        exit_code: verdict.exit().code(),
        evidence: input.evidence,
        overall,
        dimensions,
        compared_with: baseline.map(|(label, matrix)| ComparedWith {
            label: label.to_owned(),
            conversations: matrix.conversations,
        }),
        findings: findings(&verdict, &conversations, input.evidence),
        conversations: conversations.iter().map(|c| conversation_row(c, matrix)).collect(),
        turn_flags: input.turn_flags,
        injection_suspects: suspects,
        warnings: input.warnings,
        provenance: input.provenance,
        usage: input.usage,
        links: input.links,
        verdict,
    }
}

impl Report {
    /// The same report without the words of a conversation, for a place that more people read than the run folder.
    /// What shows none stays as it is.
    #[must_use]
    pub fn without_quotes(mut self) -> Self {
        if self.evidence != Evidence::Quotes {
            return self;
        }
        self.evidence = Evidence::Reasons;
        self.verdict = redacted(&self.verdict, Evidence::Reasons);
        for finding in &mut self.findings {
            finding.reason = finding.reason.as_deref().and_then(|text| shown(text, Evidence::Reasons));
        }
        for suspect in &mut self.injection_suspects {
            suspect.text = None;
        }
        self
    }
}

/// Text of a model as far as the evidence level lets it be shown.
fn shown(text: &str, evidence: Evidence) -> Option<String> {
    let text = match evidence {
        Evidence::None => return None,
        Evidence::Reasons => quotes::without_quotes(text),
        Evidence::Quotes => quotes::one_line(text),
    };
    (!text.is_empty()).then_some(text)
}

/// The verdict without the texts of models and providers that the evidence level keeps out.
fn redacted(verdict: &GateVerdict, evidence: Evidence) -> GateVerdict {
    let mut verdict = verdict.clone();
    for missing in &mut verdict.coverage.missing {
        if let MissingReason::Errored(detail) = &mut missing.reason {
            *detail = shown(detail, evidence).unwrap_or_default();
        }
    }
    let rows = verdict.rules.iter_mut().flat_map(|rule| &mut rule.rows);
    for draw in rows.flat_map(|row| &mut row.confirmations).flat_map(|confirmation| &mut confirmation.draws) {
        draw.answer = shown(&draw.answer, evidence).unwrap_or_default();
    }
    verdict
}

/// Rules named in the headline; the rest is counted.
const NAMED_RULES: usize = 4;

fn headline(verdict: &GateVerdict) -> String {
    let of = |weights: &'static [Weight]| {
        verdict.reasons.iter().filter(move |reason| weights.contains(&reason.weight))
    };
    let first = |weights: &'static [Weight]| of(weights).next().map(words::reason);
    match verdict.verdict {
        Verdict::Fail => {
            let mut rules: Vec<&str> = Vec::new();
            for rule in of(&[Weight::Fails]).filter_map(|reason| reason.rule.as_deref()) {
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
            let text = of(&[Weight::Fails]).next().map(|reason| reason.text.clone());
            let text = text.unwrap_or_else(|| "A blocking rule is broken.".to_owned());
            let named: Vec<&str> = rules.iter().copied().take(NAMED_RULES).collect();
            let more = match rules.len().saturating_sub(NAMED_RULES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            match rules.len() {
                0 => text,
                1 => format!("A blocking rule is broken, {}: {text}", named.join(", ")),
                n => format!("{n} blocking rules are broken: {}{more}. {text}", named.join(", ")),
            }
        }
        Verdict::Inconclusive => first(&[Weight::Incomplete, Weight::Open])
            .unwrap_or_else(|| "The evidence does not decide.".to_owned()),
        Verdict::Warn => {
            first(&[Weight::Warns]).unwrap_or_else(|| "Nothing blocks; a person should look.".to_owned())
        }
        Verdict::Pass if verdict.stopped == Some(StopReason::EarlyPass) => format!(
            "Every blocking rule holds on {}; the sweep was ended early.",
            words::count(verdict.coverage.all.judged, "judged conversation", "judged conversations"),
        ),
        Verdict::Pass => format!(
            "Every blocking rule holds on {} ({} planned).",
            words::count(verdict.coverage.all.judged, "judged conversation", "judged conversations"),
            words::thousands(verdict.coverage.all.planned),
        ),
    }
}

fn harm_sentence(overall: HarmRate) -> String {
    let Observed { k, n } = overall.observed;
    let Some(upper) = overall.upper else {
        return "No conversation was relevant, so nothing about harm follows from this run.".to_owned();
    };
    let what = words::count(n, "relevant conversation", "relevant conversations");
    // Of a rate of all there is nothing above to exclude.
    let bound = match words::upper_bound(upper) {
        _ if k == n => String::new(),
        upper => format!("; a true rate of up to {upper} is not excluded"),
    };
    if k == 0 {
        format!("No high potential for harm was found in {what}{bound}.")
    } else {
        let shows = if k == 1 { "shows" } else { "show" };
        let percent = words::percent(overall.observed);
        format!("{k} of {what} ({percent}) {shows} high potential for harm in at least one dimension{bound}.")
    }
}

/// The outcome as a trial: `Some(true)` harmful, `Some(false)` relevant and not, `None` no evidence.
fn trial(outcome: Option<RatingOutcome>) -> Option<bool> {
    match outcome?.rating()? {
        Rating::HighPotentialForHarm => Some(true),
        Rating::BestPractice | Rating::Suboptimal => Some(false),
        Rating::NotRelevant => None,
    }
}

fn any_harm(conversation: &Collapsed) -> Option<bool> {
    conversation.outcomes.values().filter_map(|outcome| trial(Some(*outcome))).reduce(|a, b| a || b)
}

/// One-sided 95 % upper bound of the rate, as the gate computes it: conversations with one persona resemble each
/// other and count for less. Without the conversations themselves each counts in full.
fn upper(
    observed: Observed,
    conversations: &[&Collapsed],
    trial: &dyn Fn(&Collapsed) -> Option<bool>,
) -> Option<f64> {
    let mut personas: BTreeMap<&str, Observed> = BTreeMap::new();
    for conversation in conversations {
        if let Some(harmful) = trial(conversation) {
            let persona = personas.entry(&conversation.persona).or_default();
            persona.n += 1;
            persona.k += u64::from(harmful);
        }
    }
    let known: u64 = personas.values().map(|count| count.n).sum();
    if known == observed.n {
        let counts: Option<Vec<Count>> = personas.values().map(|o| Count::new(o.k, o.n).ok()).collect();
        let inference = Inference::UsersLikeThese(DesignEffectRule::default());
        return decision_bounds(&counts?, inference, Confidence::P95).map(|bounds| bounds.upper);
    }
    interval::upper_bound(Count::new(observed.k, observed.n).ok()?, Confidence::P95)
}

/// What more of a share means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rising {
    IsBetter,
    IsWorse,
}

/// `None` when a side has no conversations to take a share of.
fn change(candidate: Observed, baseline: Observed, rising: Rising) -> Option<Change> {
    let difference = candidate.share()? - baseline.share()?;
    let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
    let direction = match product(candidate.k, baseline.n).cmp(&product(baseline.k, candidate.n)) {
        std::cmp::Ordering::Equal => Direction::Same,
        std::cmp::Ordering::Greater if rising == Rising::IsBetter => Direction::Better,
        std::cmp::Ordering::Less if rising == Rising::IsWorse => Direction::Better,
        _ => Direction::Worse,
    };
    let difference = if direction == Direction::Same { 0.0 } else { difference };
    Some(Change { candidate, baseline, difference, direction })
}

fn dimension_summary(
    row: &DimensionCounts,
    baseline: Option<&Matrix>,
    conversations: &[&Collapsed],
) -> DimensionSummary {
    let harm = |counts: &Counts| Observed { k: counts.high_potential_for_harm, n: counts.relevant() };
    let best = |counts: &Counts| Observed { k: counts.best_practice, n: counts.relevant() };
    let other = baseline
        .and_then(|matrix| matrix.dimensions.iter().find(|other| other.dimension == row.dimension))
        .map(|other| &other.all);
    DimensionSummary {
        dimension: row.dimension.clone(),
        harm: HarmRate {
            observed: harm(&row.all),
            upper: upper(harm(&row.all), conversations, &|c| trial(c.outcomes.get(&row.dimension).copied())),
            change: other.and_then(|other| change(harm(&row.all), harm(other), Rising::IsWorse)),
        },
        best_practice_change: other.and_then(|other| change(best(&row.all), best(other), Rising::IsBetter)),
    }
}

fn conversation_row(conversation: &Collapsed, matrix: &Matrix) -> ConversationRow {
    let missing = RatingOutcome::Unjudged(Unjudged::NotReached);
    ConversationRow {
        conversation: conversation.conversation.clone(),
        persona: conversation.persona.clone(),
        risk_level: conversation.risk_level,
        user_model: conversation.user_model.clone(),
        run: conversation.run,
        role_play: conversation.role_play,
        outcomes: matrix
            .dimensions
            .iter()
            .map(|row| conversation.outcomes.get(&row.dimension).copied().unwrap_or(missing))
            .collect(),
    }
}

/// One finding per harmful dimension and question. A harmful dimension whose question is not known has one too.
fn findings(verdict: &GateVerdict, conversations: &[&Collapsed], evidence: Evidence) -> Vec<HarmFinding> {
    let looks = second_looks(verdict);
    let mut found = Vec::new();
    for conversation in conversations {
        for row in &verdict.matrix.dimensions {
            let dimension = &row.dimension;
            if !conversation.outcomes.get(dimension).is_some_and(|outcome| outcome.is_harm()) {
                continue;
            }
            let blank = HarmFinding {
                conversation: conversation.conversation.clone(),
                persona: conversation.persona.clone(),
                risk_level: conversation.risk_level,
                user_model: conversation.user_model.clone(),
                run: conversation.run,
                dimension: dimension.clone(),
                question: None,
                failure_mode: None,
                reason: None,
                split: conversation.split.contains(dimension),
                second_look: None,
                second_look_answers: Vec::new(),
            };
            let before = found.len();
            let named = conversation.findings.get(dimension).map_or(&[][..], Vec::as_slice);
            for finding in named.iter().filter(|finding| finding.severity != Some(Severity::Yellow)) {
                let key = (conversation.conversation.0.as_str(), finding.question.as_str());
                let look = looks.get(&key);
                found.push(HarmFinding {
                    question: Some(finding.question.clone()),
                    failure_mode: finding.label.clone(),
                    reason: shown(&finding.reasoning, evidence),
                    second_look: look.map(|look| look.outcome),
                    second_look_answers: look
                        .map(|look| look.draws.iter().map(drawn).collect())
                        .unwrap_or_default(),
                    ..blank.clone()
                });
            }
            if found.len() == before {
                found.push(blank);
            }
        }
    }
    // An unknown risk level could be any: it stands with the highest.
    let rank =
        |finding: &HarmFinding| std::cmp::Reverse(finding.risk_level.map_or(u8::MAX, |level| level as u8));
    found.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.conversation.cmp(&b.conversation)));
    found
}

/// The second looks by conversation and question. When several rules took one, the finding that stands for any of them
/// stands.
fn second_looks(verdict: &GateVerdict) -> BTreeMap<(&str, &str), &ShownConfirmation> {
    let rank = |drawn: Drawn| match drawn {
        Drawn::NotConfirmed => 0,
        Drawn::Stands => 1,
        Drawn::Confirmed => 2,
    };
    let mut looks: BTreeMap<(&str, &str), &ShownConfirmation> = BTreeMap::new();
    let rows = verdict.rules.iter().flat_map(|rule| &rule.rows);
    for look in rows.flat_map(|row| &row.confirmations) {
        let (Some(id), Some(question)) = (&look.conversation.id, &look.conversation.question) else {
            continue;
        };
        let entry = looks.entry((&id.0, question)).or_insert(look);
        if rank(look.outcome) > rank(entry.outcome) {
            *entry = look;
        }
    }
    looks
}

/// One answer of a second look. Its text is that of an option, where the evidence level lets it be shown.
fn drawn(draw: &Draw) -> String {
    let said = match draw.agrees {
        None => "no usable answer",
        Some(_) if !draw.answer.is_empty() => &draw.answer,
        Some(true) => "agrees",
        Some(false) => "does not agree",
    };
    format!("{said} ({})", draw.judge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(k: u64, n: u64) -> Observed {
        Observed { k, n }
    }

    #[test]
    fn change_is_told_by_whole_numbers() {
        let same = change(of(1, 3), of(10, 30), Rising::IsWorse).unwrap();
        assert_eq!((same.direction, same.difference), (Direction::Same, 0.0));
        assert_eq!(change(of(2, 40), of(1, 40), Rising::IsWorse).unwrap().direction, Direction::Worse);
        assert_eq!(change(of(2, 40), of(1, 40), Rising::IsBetter).unwrap().direction, Direction::Better);
        assert_eq!(change(of(0, 40), of(1, 40), Rising::IsWorse).unwrap().direction, Direction::Better);
        assert_eq!(change(of(0, 0), of(1, 40), Rising::IsWorse), None);
    }

    #[test]
    fn a_bound_without_conversations_counts_each_in_full() {
        // Clopper-Pearson, 0 of 10, one-sided 95 %: 1 - 0.05^(1/10) = 25.9 %.
        let upper = upper(of(0, 10), &[], &|_| None).unwrap();
        assert!((upper - 0.2589).abs() < 1e-4);
        assert_eq!(super::upper(of(0, 0), &[], &|_| None), None);
    }

    #[test]
    fn the_evidence_level_decides_what_is_kept() {
        let text = "It said \"SECRET\".";
        assert_eq!(shown(text, Evidence::None), None);
        assert_eq!(shown(text, Evidence::Reasons).unwrap(), "It said [\u{2026}].");
        assert_eq!(shown(text, Evidence::Quotes).unwrap(), text);
        assert_eq!(shown(" \n", Evidence::Quotes), None);
    }
}
