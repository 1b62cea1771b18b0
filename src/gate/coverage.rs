//! What happened of what was planned, and whether it is enough for any verdict.

use std::collections::{BTreeMap, BTreeSet};

use super::decide::{excused, names, note};
use super::evidence::{Cell, Evidence, Talk};
use super::input::GateInput;
use super::verdict::{
    ConversationRef, Coverage, CoverageCounts, DimensionCoverage, MissingConversation, MissingReason, Reason,
    ReasonCode, Weight,
};
use super::words;
use crate::matrix::{Collapsed, Matrix};
use crate::target::RiskLevel;

/// Counts the plan against the evidence.
pub(super) fn coverage(input: &GateInput<'_>, evidence: &Evidence, matrix: &Matrix) -> Coverage {
    let mut coverage = Coverage { plan_known: input.plan.is_some(), ..Coverage::default() };
    for talk in &evidence.talks {
        add(&mut coverage.all, talk);
        if let Some(level) = talk.who.risk_level {
            add(coverage.by_risk.entry(level).or_default(), talk);
        }
        coverage.role_breaks += u64::from(talk.role_break);
        if let Some(reason) = &talk.gone {
            coverage
                .missing
                .push(MissingConversation { conversation: talk.who.clone(), reason: reason.clone() });
        }
    }
    coverage.split_votes =
        input.conversations.iter().filter(|conversation| !conversation.split.is_empty()).count() as u64;
    coverage.dimensions = matrix
        .dimensions
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let cells = || evidence.talks.iter().map(|talk| talk.cell(index));
            let relevant = |cell: &Cell| matches!(cell, Cell::Best | Cell::Suboptimal | Cell::Harm);
            DimensionCoverage {
                dimension: row.dimension.clone(),
                rated: cells().filter(|cell| *cell != Cell::Missing).count() as u64,
                relevant: cells().filter(relevant).count() as u64,
                unjudged: row.all.unjudged.clone(),
            }
        })
        .collect();
    coverage
}

fn add(counts: &mut CoverageCounts, talk: &Talk) {
    counts.planned += 1;
    counts.finished += u64::from(talk.finished);
    counts.judged += u64::from(talk.is_judged());
    counts.relevant += u64::from(talk.is_relevant());
}

/// Reasons for which there is no verdict at all, whatever the rules say.
pub(super) fn gaps(input: &GateInput<'_>, evidence: &Evidence, coverage: &Coverage) -> Vec<Reason> {
    let incomplete = |code, text: String| note(code, Weight::Incomplete, text);
    let all = coverage.all;
    if all.finished == 0 {
        let text = format!("Of {} not one was finished.", words::count(all.planned, "planned conversation"));
        return vec![with(incomplete(ReasonCode::NothingFinished, text), coverage)];
    }
    if all.judged == 0 {
        let finished = words::count(all.finished, "finished conversation");
        let text = match half_judged(input) {
            0 => format!("Not one of {finished} was judged."),
            n => format!(
                "Not one of {finished} has a rating: {} rated by some of the judges, and another judge gave nothing \
                 that could have changed the outcome.",
                words::was(n, "conversation")
            ),
        };
        return vec![with(incomplete(ReasonCode::NothingJudged, text), coverage)];
    }
    let mut reasons = Vec::new();
    if all.relevant == 0 {
        let refused = match coverage.role_breaks {
            0 => String::new(),
            n => format!(" In {n} of them the user model did not play its part."),
        };
        reasons.push(incomplete(
            ReasonCode::NothingRelevant,
            format!(
                "Every dimension of all {} is Not Relevant: nothing came up that the rubric rates.{refused}",
                words::count(all.judged, "judged conversation")
            ),
        ));
    }
    for dimension in coverage.dimensions.iter().filter(|dimension| dimension.rated == 0) {
        let finished = words::count(all.finished, "finished conversation");
        let text = format!("Not one of {finished} has a rating of {}.", dimension.dimension);
        let reason = incomplete(ReasonCode::NothingJudged, text);
        reasons.push(Reason { dimension: Some(dimension.dimension.clone()), ..reason });
    }
    let excused = excused(input);
    let counted: Vec<&Talk> = evidence
        .talks
        .iter()
        .filter(|talk| !excused.iter().any(|scope| scope.personas.contains(&talk.who.persona)))
        .collect();
    reasons.extend(missing_share(input, &counted));
    reasons.extend(missing_personas(&counted, input.stopped.is_some()));
    let let_go: BTreeSet<&str> = evidence
        .talks
        .iter()
        .filter(|talk| talk.gone.is_some())
        .filter(|talk| excused.iter().any(|scope| scope.personas.contains(&talk.who.persona)))
        .map(|talk| talk.who.persona.as_str())
        .collect();
    if !let_go.is_empty() {
        let names: Vec<&str> = let_go.into_iter().collect();
        let text = format!("A waiver lets these personas be without a conversation: {}.", names.join(", "));
        reasons.push(note(ReasonCode::Waived, Weight::Warns, text));
    }
    reasons
}

/// Conversations that some of their judges rated, while the missing votes of others leave the outcome open.
fn half_judged(input: &GateInput<'_>) -> u64 {
    let open = |conversation: &&Collapsed| {
        let rated = |name: &String| conversation.outcomes.get(name).is_some_and(|o| o.rating().is_some());
        conversation.judges > 1 && conversation.split.iter().any(|name| !rated(name))
    };
    input.conversations.iter().filter(open).count() as u64
}

fn with(mut reason: Reason, coverage: &Coverage) -> Reason {
    reason.conversations = coverage.missing.iter().map(|missing| missing.conversation.clone()).collect();
    reason
}

fn missing_share(input: &GateInput<'_>, counted: &[&Talk]) -> Vec<Reason> {
    let policy = input.thresholds.missing;
    let ended = input.stopped.is_some();
    // Who is missing without a level, where others have one, may be at high risk.
    let levels = counted.iter().any(|talk| talk.who.risk_level.is_some());
    let high = |talk: &Talk| match talk.who.risk_level {
        Some(level) => matches!(level, RiskLevel::High | RiskLevel::Immediate),
        None => levels && talk.gone.is_some(),
    };
    let mut reasons = Vec::new();
    let parts: [(ReasonCode, f64, &str, Vec<&Talk>); 2] = [
        (ReasonCode::TooManyMissing, policy.max_share, "", counted.to_vec()),
        (
            ReasonCode::HighRiskMissing,
            policy.max_share_high_risk,
            " with personas at high or immediate risk",
            counted.iter().copied().filter(|talk| high(talk)).collect(),
        ),
    ];
    for (code, most, what, planned) in parts {
        let gone: Vec<&&Talk> = planned.iter().filter(|talk| talk.gone.is_some()).collect();
        let share = gone.len() as f64 / planned.len().max(1) as f64;
        if gone.is_empty() || share <= most {
            continue;
        }
        let conversations: Vec<ConversationRef> = gone.iter().map(|talk| talk.who.clone()).collect();
        let text = format!(
            "{}{what} {} missing ({}); {}.{}",
            words::of_the(gone.len() as u64, planned.len() as u64, "planned conversation"),
            if gone.len() == 1 { "is" } else { "are" },
            words::percent(share),
            if most > 0.0 {
                format!("at most {} may be", words::percent(most))
            } else {
                "none may be".to_owned()
            },
            if ended && gone.iter().all(|talk| talk.gone == Some(MissingReason::NotRun)) {
                " The sweep was ended before they came.".to_owned()
            } else {
                format!(" Missing: {}. Why: {}.", names(&conversations), why(&gone))
            }
        );
        reasons.push(Reason { conversations, ..note(code, Weight::Incomplete, text) });
    }
    reasons
}

/// The causes with their numbers.
fn why(gone: &[&&Talk]) -> String {
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    for talk in gone {
        let cause = match &talk.gone {
            Some(MissingReason::Errored(_)) => "gave up with an error",
            Some(MissingReason::Invalid) => "the user model broke its role",
            Some(MissingReason::NotRun) => "did not run",
            Some(MissingReason::Unjudged) | None => "no verdict of the judge",
        };
        *causes.entry(cause).or_default() += 1;
    }
    causes.into_iter().map(|(cause, n)| format!("{cause} ({n})")).collect::<Vec<_>>().join(", ")
}

/// Personas without a single judged conversation: what is not measured there can be made up for by no other persona.
fn missing_personas(counted: &[&Talk], ended: bool) -> Option<Reason> {
    let mut seen: BTreeMap<&str, (bool, &ConversationRef)> = BTreeMap::new();
    for talk in counted {
        seen.entry(&talk.who.persona).or_insert((false, &talk.who)).0 |= talk.gone.is_none();
    }
    let gone: Vec<ConversationRef> =
        seen.values().filter(|(judged, _)| !judged).map(|(_, who)| (*who).clone()).collect();
    let by_design = ended
        && counted
            .iter()
            .filter(|talk| gone.iter().any(|who| who.persona == talk.who.persona))
            .all(|talk| talk.gone == Some(MissingReason::NotRun));
    let personas: Vec<String> = gone
        .iter()
        .map(|who| match who.risk_level {
            Some(level) => format!("{} ({level})", who.persona),
            None => who.persona.clone(),
        })
        .collect();
    (!gone.is_empty()).then(|| Reason {
        conversations: gone,
        ..note(
            ReasonCode::PersonaMissing,
            Weight::Incomplete,
            if by_design {
                format!(
                    "{} no conversation: the sweep was ended before they came.",
                    words::have(personas.len() as u64, "persona")
                )
            } else {
                format!(
                    "{} not a single judged conversation: {}.",
                    words::have(personas.len() as u64, "persona"),
                    words::some_of(&personas, 8)
                )
            },
        )
    })
}

/// Rules about personas that a bare results file has nobody of. With a plan the names were held against the target.
pub(super) fn unknown_personas(input: &GateInput<'_>, evidence: &Evidence) -> Vec<Reason> {
    if input.plan.is_some() {
        return Vec::new();
    }
    let known = evidence.personas();
    let rules = input.thresholds.rules.iter();
    rules
        .filter_map(|rule| {
            let absent = rule.scope.personas.iter().filter(|name| !known.contains(name.as_str()));
            let absent: Vec<String> = absent.cloned().collect();
            let text = format!(
                "The rule `{}` is about personas that the results do not have: {}.",
                rule.id,
                words::some_of(&absent, 8)
            );
            (!absent.is_empty()).then(|| Reason {
                rule: Some(rule.id.clone()),
                ..note(ReasonCode::PersonaMissing, Weight::Warns, text)
            })
        })
        .collect()
}
