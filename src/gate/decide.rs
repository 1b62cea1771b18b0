//! From rows to one verdict: tiers, waivers, completeness.

use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::check::{Context, Outcome, Rival, RivalState};
use super::evidence::Evidence;
use super::input::{BaselineState, GateInput};
use super::rules::{Rule, Scope, Tier, Waiver};
use super::verdict::{
    Against, BaselineWord, Cases, ConversationRef, Reason, ReasonCode, Row, RuleResult, Settling,
    ShownBaseline, ShownWaiver, Status, Verdict, Weight,
};
use super::waive::{Left, Rest};
use super::words;
use crate::baseline::{Baseline, BaselineFault, Origin};

/// What a status means for the verdict.
fn weight(status: Status, tier: Tier, incomplete: bool) -> Weight {
    match (status, tier) {
        (Status::Pass | Status::NoBaseline, _) => Weight::Note,
        (Status::Fail, Tier::Block) => Weight::Fails,
        (Status::Inconclusive, Tier::Block) if incomplete => Weight::Incomplete,
        (Status::Inconclusive, Tier::Block) => Weight::Open,
        (Status::Warn | Status::Waived | Status::Fail | Status::Inconclusive, _) => Weight::Warns,
    }
}

/// The verdict of the worst weight.
fn verdict_of(weight: Weight) -> Verdict {
    match weight {
        Weight::Note => Verdict::Pass,
        Weight::Warns => Verdict::Warn,
        Weight::Open | Weight::Incomplete => Verdict::Inconclusive,
        Weight::Fails => Verdict::Fail,
    }
}

/// The verdict that reasons add up to. `incomplete` beats `open` in weight, and a broken rule beats both.
pub(super) fn verdict(reasons: &[Reason]) -> Verdict {
    reasons.iter().map(|reason| verdict_of(reason.weight)).max().unwrap_or(Verdict::Pass)
}

/// A rule of tier `warn` that does not hold is a warning.
fn tempered(status: Status, tier: Tier) -> Status {
    match (status, tier) {
        (Status::Fail, Tier::Warn) => Status::Warn,
        (status, _) => status,
    }
}

/// The rules with their rows, the reasons that come from them, and the reasons there would be without waivers.
pub(super) struct Applied {
    pub(super) rules: Vec<RuleResult>,
    pub(super) reasons: Vec<Reason>,
    pub(super) unwaived: Vec<Reason>,
    pub(super) waivers: Vec<ShownWaiver>,
    pub(super) gated: Gated,
    pub(super) cases: Cases,
}

/// What the blocking rules about harm came to: the most that any of them did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gated {
    /// All of them need a baseline, and there is none.
    NoBaseline,
    /// In the scope of none was a conversation that is relevant and rated.
    NoEvidence,
    /// All that could decide are broken, and waived.
    Waived,
    /// One came to a decision, if only that the evidence leaves it open.
    Something,
}

impl Gated {
    fn of(status: Status, relevant: bool) -> Self {
        match status {
            Status::NoBaseline => Self::NoBaseline,
            _ if !relevant => Self::NoEvidence,
            Status::Waived => Self::Waived,
            Status::Pass | Status::Warn | Status::Inconclusive | Status::Fail => Self::Something,
        }
    }

    /// Why there is no verdict, when nothing was gated.
    pub(super) fn gap(self) -> Option<Reason> {
        let why = match self {
            Self::NoBaseline => {
                "No blocking rule about harm came to a decision: all of them need a baseline."
            }
            Self::NoEvidence => {
                "Nothing was gated: no blocking rule about harm had a relevant, rated conversation in its scope."
            }
            Self::Waived => {
                "Nothing was gated: every blocking rule about harm is broken or open, and waived."
            }
            Self::Something => return None,
        };
        Some(note(ReasonCode::NothingDecided, Weight::Incomplete, why.to_owned()))
    }
}

pub(super) fn apply(context: &Context<'_>, outcomes: Vec<(&Rule, Vec<Outcome>)>) -> Applied {
    let (input, evidence) = (context.input, &context.candidate);
    let thresholds = input.thresholds;
    let mut waivers: Vec<ShownWaiver> =
        thresholds.waivers.iter().map(|waiver| shown_waiver(waiver, input.today)).collect();
    let mut applied = Applied {
        rules: Vec::with_capacity(outcomes.len()),
        reasons: Vec::new(),
        unwaived: Vec::new(),
        waivers: Vec::new(),
        gated: Gated::NoBaseline,
        cases: Cases { best: Verdict::Pass, worst: Verdict::Pass, deciding: Vec::new() },
    };
    for (rule, outcomes) in outcomes {
        let mut rows = Vec::with_capacity(outcomes.len());
        let gates = rule.tier == Tier::Block && rule.kind.can_fail();
        let relevant = evidence.has_relevant(&rule.scope);
        let rest = Rest::of(context, rule);
        for Outcome { mut row, code, incomplete } in outcomes {
            row.status = tempered(row.status, rule.tier);
            let plain = reason(rule, &row, code, row.status, incomplete);
            applied.unwaived.extend(plain.clone());
            let left = rest.as_ref().map(|rest| rest.leaves(&row));
            let waiver = thresholds
                .waivers
                .iter()
                .zip(&mut waivers)
                .find(|(waiver, shown)| waiver.rule == rule.id && shown.holds)
                .filter(|_| matches!(left, Some(Left::Nothing | Left::Harmless)));
            let toothless = left == Some(Left::Nothing);
            match (plain, waiver) {
                (Some(plain), Some((waiver, shown))) => {
                    shown.covers.push(row.dimension.clone().unwrap_or_else(|| rule.id.clone()));
                    row.underneath = Some(row.status);
                    row.status = Status::Waived;
                    applied.reasons.push(Reason {
                        code: ReasonCode::Waived,
                        weight: Weight::Warns,
                        text: format!(
                            "Waived by {} until {} ({}). Underneath: {}",
                            waiver.owner, waiver.expires, waiver.reason, plain.text
                        ),
                        ..plain
                    });
                }
                (Some(plain), None) => applied.reasons.push(plain),
                (None, _) => {}
            }
            if gates {
                applied.gated = applied.gated.max(match row.status {
                    Status::Waived if !toothless => Gated::Something,
                    status => Gated::of(status, relevant),
                });
            }
            ends(&mut applied.cases, rule, &row, incomplete);
            rows.push(row);
        }
        let status = rows.iter().map(|row| row.status).max().unwrap_or(Status::Inconclusive);
        applied.rules.push(RuleResult {
            id: rule.id.clone(),
            kind: rule.kind.word().to_owned(),
            tier: rule.tier,
            location: rule.location.clone(),
            scope: rule.scope.words(),
            status,
            rows,
        });
    }
    for shown in waivers.iter().filter(|shown| !shown.holds) {
        applied.reasons.push(note(
            ReasonCode::WaiverExpired,
            Weight::Warns,
            format!(
                "The waiver of `{}` by {} ended on {}; the rule applies again.",
                shown.rule, shown.owner, shown.expires
            ),
        ));
    }
    applied.cases.deciding.sort();
    applied.cases.deciding.dedup();
    applied.waivers = waivers;
    applied
}

fn ends(cases: &mut Cases, rule: &Rule, row: &Row, incomplete: bool) {
    let end = |status: Option<Status>| {
        // What is waived is a warning, whatever the missing conversations would have been.
        let status = if row.status == Status::Waived { row.status } else { status.unwrap_or(row.status) };
        verdict_of(weight(tempered(status, rule.tier), rule.tier, incomplete))
    };
    let (best, worst) = (end(row.best_case), end(row.worst_case));
    cases.best = cases.best.max(best);
    cases.worst = cases.worst.max(worst);
    if matches!(row.settling, Some(Settling::FillMissing(_))) {
        // The conversations without a rating stand behind the others.
        let missing = usize::try_from(row.missing).unwrap_or(usize::MAX);
        cases.deciding.extend(row.conversations.iter().rev().take(missing).cloned());
    }
}

fn reason(rule: &Rule, row: &Row, code: ReasonCode, status: Status, incomplete: bool) -> Option<Reason> {
    if matches!(status, Status::Pass | Status::NoBaseline) {
        return None;
    }
    Some(Reason {
        code,
        weight: weight(status, rule.tier, incomplete),
        text: match &row.dimension {
            Some(dimension) => format!("{dimension}: {}", row.reason),
            None => row.reason.clone(),
        },
        rule: Some(rule.id.clone()),
        dimension: row.dimension.clone(),
        conversations: row.conversations.clone(),
    })
}

/// A reason that comes from no rule.
pub(super) fn note(code: ReasonCode, weight: Weight, text: String) -> Reason {
    Reason { code, weight, text, rule: None, dimension: None, conversations: Vec::new() }
}

fn shown_waiver(waiver: &Waiver, today: NaiveDate) -> ShownWaiver {
    ShownWaiver {
        rule: waiver.rule.clone(),
        scope: waiver.scope.words(),
        reason: waiver.reason.clone(),
        owner: waiver.owner.clone(),
        expires: waiver.expires.to_string(),
        holds: waiver.holds(today),
        covers: Vec::new(),
        location: waiver.location.clone(),
    }
}

/// Personas that a waiver lets be without a conversation.
pub(super) fn excused(input: &GateInput<'_>) -> Vec<Scope> {
    let waivers = input.thresholds.waivers.iter();
    waivers
        .filter(|waiver| waiver.rule == Waiver::MISSING && waiver.holds(input.today))
        .filter(|waiver| !waiver.scope.personas.is_empty())
        .map(|waiver| waiver.scope.clone())
        .collect()
}

/// Takes a baseline in, or says why not.
pub(super) fn rival<'a>(
    input: &GateInput<'a>,
    against: Against,
    state: BaselineState<'a>,
) -> (Rival<'a>, ShownBaseline, Vec<Reason>) {
    let mut shown = ShownBaseline {
        against,
        state: BaselineWord::None,
        source: String::new(),
        created: None,
        age_days: None,
        conversations: 0,
        remarks: Vec::new(),
    };
    let name = against.noun();
    let required = input.thresholds.baseline.required && against == Against::Pinned;
    let needed = input.thresholds.rules.iter().any(|rule| rule.kind.needs_baseline());
    match state {
        BaselineState::None => {
            let reason = (needed || required).then(|| no_baseline(None, against, required));
            (Rival { against, state: RivalState::None }, shown, reason.into_iter().collect())
        }
        BaselineState::Absent { source } => {
            source.clone_into(&mut shown.source);
            let reason = no_baseline(Some(source), against, required);
            (Rival { against, state: RivalState::None }, shown, vec![reason])
        }
        BaselineState::Unusable { source, fault } => {
            source.clone_into(&mut shown.source);
            refused(input, shown, name, fault)
        }
        BaselineState::Found { source, baseline } => {
            source.clone_into(&mut shown.source);
            shown.conversations = baseline.rated() as u64;
            shown.created = baseline.created.map(|day| day.to_string());
            shown.age_days = baseline.created.map(|day| (input.today - day).num_days());
            let differences = baseline.differences(input.provenance, input.dimensions);
            if !differences.is_empty() {
                return refused(input, shown, name, &BaselineFault::Incomparable(differences));
            }
            let most = input.thresholds.baseline.max_age_days;
            if let (Some(day), Some(age_days), Some(max_age_days)) = (baseline.created, shown.age_days, most)
            {
                if age_days > i64::from(max_age_days) {
                    return refused(input, shown, name, &BaselineFault::TooOld { age_days, max_age_days });
                }
                // A day ahead is another time zone.
                if age_days < -1 {
                    return refused(input, shown, name, &BaselineFault::DatedAhead(day));
                }
            }
            if !shares_a_persona(input, baseline) {
                return refused(input, shown, name, &BaselineFault::NoSharedPersona);
            }
            shown.state = BaselineWord::Usable;
            let mut reasons = Vec::new();
            if let (None, Some(most)) = (baseline.created, most) {
                let text = format!(
                    "The age of the {name} is not known, because a results file has no day; at most {most} days are allowed."
                );
                shown.remarks.push(text.clone());
                let weight = if required { Weight::Warns } else { Weight::Note };
                reasons.push(note(ReasonCode::BaselineTooOld, weight, text));
            }
            for forced in &baseline.forced {
                let text = match baseline.origin {
                    Origin::Run => {
                        format!(
                            "The {name} is a run that nobody blessed, and that would be refused: {forced}."
                        )
                    }
                    Origin::Blessed | Origin::Results => {
                        format!("The {name} was blessed by force: {forced}.")
                    }
                };
                shown.remarks.push(text.clone());
                reasons.push(note(ReasonCode::BaselineForced, Weight::Warns, text));
            }
            let fingerprints = [&baseline.provenance, input.provenance].map(|p| p.fingerprints.is_some());
            if fingerprints != [true, true] {
                let text = format!(
                    "Whether the {name} was made with the same rubric, personas and models is not known: {} carries fingerprints. Only the names of the dimensions were compared.",
                    if fingerprints == [false, false] {
                        "neither result"
                    } else {
                        "only one of the two results"
                    }
                );
                let text = match baseline.origin {
                    Origin::Results => {
                        format!(
                            "{text} Whether conversations are missing from the {name} is not known either."
                        )
                    }
                    Origin::Blessed | Origin::Run => text,
                };
                let weight = if fingerprints == [false, false] { Weight::Note } else { Weight::Warns };
                shown.remarks.push(text.clone());
                reasons.push(note(ReasonCode::ComparabilityUnknown, weight, text));
            }
            let evidence = Evidence::of_baseline(input.dimensions, input.labels, baseline);
            (Rival { against, state: RivalState::Usable { evidence, baseline } }, shown, reasons)
        }
    }
}

/// Whether the two results have anybody in common; a result without anybody has other faults.
fn shares_a_persona(input: &GateInput<'_>, baseline: &Baseline) -> bool {
    let planned = input.plan.unwrap_or_default().iter().map(|cell| cell.persona.as_str());
    let held = input.conversations.iter().map(|conversation| conversation.persona.as_str());
    let ours: BTreeSet<&str> = planned.chain(held).collect();
    ours.is_empty() || baseline.conversations.iter().any(|theirs| ours.contains(theirs.persona.as_str()))
}

/// That nothing was compared. A first run has no baseline; a name under which nothing is found may as well be a slip of
/// the pen, so it is more than a note.
fn no_baseline(source: Option<&str>, against: Against, required: bool) -> Reason {
    let noun = against.noun();
    let weight = match (required, against, source) {
        (true, ..) => Weight::Incomplete,
        (false, _, Some(_)) => Weight::Warns,
        (false, _, None) => Weight::Note,
    };
    let fact = match source {
        Some(source) => format!("The {noun} `{source}` does not exist"),
        None => format!("There is no {noun}"),
    };
    let text = if required {
        format!("{fact}, and the thresholds file requires one.")
    } else {
        format!("{fact}, so nothing was compared with it; the absolute rules apply.")
    };
    let help = match against {
        Against::Pinned => " Make one with `vera-gate baseline bless`.",
        Against::LastAccepted => "",
    };
    note(ReasonCode::NoBaseline, weight, text + help)
}

fn refused<'a>(
    input: &GateInput<'_>,
    mut shown: ShownBaseline,
    name: &str,
    fault: &BaselineFault,
) -> (Rival<'a>, ShownBaseline, Vec<Reason>) {
    shown.state = BaselineWord::Unusable;
    let why = fault.to_string();
    shown.remarks.push(why.clone());
    let (code, incomplete) = match fault {
        BaselineFault::Unreadable(_) => (ReasonCode::BaselineUnreadable, true),
        BaselineFault::Incomparable(_) | BaselineFault::NoSharedPersona => {
            (ReasonCode::BaselineIncomparable, true)
        }
        // An old baseline still says what was right; the policy decides unless it requires a fresh one.
        BaselineFault::TooOld { .. } | BaselineFault::DatedAhead(_) => {
            (ReasonCode::BaselineTooOld, input.thresholds.baseline.required)
        }
    };
    let weight = if incomplete { Weight::Incomplete } else { Weight::Open };
    let reason = note(code, weight, format!("The {name} cannot be used: {why}."));
    (Rival { against: shown.against, state: RivalState::Unusable(why) }, shown, vec![reason])
}

/// Names of conversations for a sentence.
pub(super) fn names(conversations: &[ConversationRef]) -> String {
    let names: Vec<String> =
        conversations.iter().map(|who| format!("{} run {}", who.persona, who.run)).collect();
    words::some_of(&names, 8)
}
