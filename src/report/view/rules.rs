//! Reasons, rules, waivers and comparisons.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Escaped, Listed, against, observed};
use crate::gate::rules::{Population, Test, Tier};
use crate::gate::verdict::{
    ConversationRef, GateVerdict, Measure, Reason, Regression, Row, RuleResult, Settling, ShownWaiver,
    Status, Weight,
};
use crate::report::words;

/// Conversations named beside a rule or a reason; the rest is counted.
const NAMED: usize = 3;

/// One reason for the verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReasonView<E> {
    /// A picture beside the words.
    pub icon: &'static str,
    /// What it does to the verdict, in words.
    pub weight: &'static str,
    /// The stable code.
    pub code: &'static str,
    /// One or two sentences.
    pub text: E,
    /// The conversations it is about.
    pub conversations: Listed<E>,
}

/// One application of a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleRow<E> {
    /// The rule's name.
    pub rule: E,
    /// Its kind.
    pub kind: E,
    /// `blocks` or `warns`.
    pub tier: &'static str,
    /// Where it stands.
    pub place: E,
    /// A picture beside the status.
    pub icon: &'static str,
    /// The status in words.
    pub status: E,
    /// What it was applied to.
    pub about: E,
    /// What was counted.
    pub observed: E,
    /// What the counts say about the true share.
    pub bounds: E,
    /// The limit.
    pub limit: E,
    /// One or two sentences.
    pub reason: E,
    /// What would settle it, if it is open; else blank.
    pub settling: E,
    /// The conversations it is about.
    pub conversations: Listed<E>,
}

/// A waiver.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaiverView<E> {
    /// The rule.
    pub rule: E,
    /// For what part of it.
    pub scope: E,
    /// Why.
    pub reason: E,
    /// Who answers for it.
    pub owner: E,
    /// Until when, and whether it still holds.
    pub expires: E,
    /// What it covers now.
    pub covers: E,
}

/// A comparison with a baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegressionView<E> {
    /// The rule.
    pub rule: E,
    /// The dimension, or what is taken together.
    pub about: E,
    /// Which baseline.
    pub against: &'static str,
    /// A picture beside the status.
    pub icon: &'static str,
    /// The status in words.
    pub status: &'static str,
    /// Harmful of relevant, candidate.
    pub candidate: E,
    /// The same, baseline.
    pub baseline: E,
    /// The difference with its 95 % interval.
    pub difference: E,
    /// Test and p.
    pub p: E,
    /// Personas that tell something, and the smallest rise this comparison finds.
    pub evidence: E,
    /// One or two sentences.
    pub reason: E,
    /// Personas whose rate changed.
    pub personas: Listed<E>,
    /// Failure modes whose count changed.
    pub modes: Listed<E>,
    /// The move of Not Relevant beside it, if it was looked at.
    pub not_relevant: Option<E>,
}

pub(super) fn reason<E: Escaped>(reason: &Reason) -> ReasonView<E> {
    let (icon, weight) = match reason.weight {
        Weight::Fails => ("\u{274C}", "fails"),
        Weight::Incomplete => ("\u{2753}", "too little measured"),
        Weight::Open => ("\u{2753}", "open"),
        Weight::Warns => ("\u{26A0}\u{FE0F}", "warns"),
        Weight::Note => ("\u{2139}\u{FE0F}", "note"),
    };
    ReasonView {
        icon,
        weight,
        code: reason.code.as_str(),
        text: E::text(&words::reason(reason)),
        conversations: named(&reason.conversations),
    }
}

fn named<E: Escaped>(conversations: &[ConversationRef]) -> Listed<E> {
    // A conversation with two findings is still one.
    let names: BTreeSet<String> = conversations.iter().map(reference).collect();
    Listed::first(names.iter().map(|name| E::text(name)), NAMED)
}

/// A conversation as a reader finds it.
pub(super) fn reference(conversation: &ConversationRef) -> String {
    match &conversation.id {
        Some(id) => id.0.clone(),
        None => planned(conversation),
    }
}

/// A conversation that was planned and not held.
pub(super) fn planned(conversation: &ConversationRef) -> String {
    let user = match conversation.user_model.as_str() {
        "" => String::new(),
        model => format!(", {model}"),
    };
    format!(
        "{} (risk: {}{user}, run {})",
        conversation.persona,
        words::risk(conversation.risk_level),
        conversation.run
    )
}

/// The rows that need a look, and those that hold or decide nothing for want of a baseline.
pub(super) fn rows<E: Escaped>(gate: &GateVerdict) -> (Vec<RuleRow<E>>, Vec<RuleRow<E>>) {
    let (mut broken, mut holding) = (Vec::new(), Vec::new());
    for (rule, row) in gate.rules.iter().flat_map(|rule| rule.rows.iter().map(move |row| (rule, row))) {
        let quiet = matches!(row.status, Status::Pass | Status::NoBaseline);
        let list = if quiet { &mut holding } else { &mut broken };
        list.push((row.status, rule_row(rule, row)));
    }
    // The worst first; a stable sort keeps the order of the file among equals.
    broken.sort_by_key(|(status, _)| std::cmp::Reverse(*status));
    let rows = |list: Vec<(Status, RuleRow<E>)>| list.into_iter().map(|(_, row)| row).collect();
    (rows(broken), rows(holding))
}

fn rule_row<E: Escaped>(rule: &RuleResult, row: &Row) -> RuleRow<E> {
    let status = match row.underneath {
        Some(underneath) => format!("{} (would be {})", row.status.word(), underneath.word()),
        None => row.status.word().to_owned(),
    };
    RuleRow {
        rule: E::text(&rule.id),
        kind: E::text(&rule.kind),
        tier: match rule.tier {
            Tier::Block => "blocks",
            Tier::Warn => "warns",
        },
        place: E::text(&format!("{}:{}", rule.location.file, rule.location.line)),
        icon: status_icon(row.status),
        status: E::text(&status),
        about: E::text(&about(rule, row)),
        observed: E::text(&observed_text(row)),
        bounds: E::text(&bounds_text(row)),
        limit: E::text(&limit_text(row)),
        reason: E::text(&row.reason),
        settling: E::text(&row.settling.map(|settling| settling_text(row, settling)).unwrap_or_default()),
        conversations: named(&row.conversations),
    }
}

fn status_icon(status: Status) -> &'static str {
    match status {
        Status::Pass => "\u{2705}",
        Status::NoBaseline => "\u{2796}",
        Status::Waived => "\u{1F4DD}",
        Status::Warn => "\u{26A0}\u{FE0F}",
        Status::Inconclusive => "\u{2753}",
        Status::Fail => "\u{274C}",
    }
}

/// What a row is about: dimension, risk level, scope, baseline.
pub(in crate::report) fn about(rule: &RuleResult, row: &Row) -> String {
    let mut parts = Vec::new();
    parts.extend(row.dimension.clone());
    parts.extend(row.risk_level.map(|level| format!("risk {level}")));
    if !rule.scope.is_empty() {
        parts.push(rule.scope.clone());
    }
    parts.extend(row.against.map(|which| format!("against the {}", against(which))));
    if parts.is_empty() { "everything".to_owned() } else { parts.join("; ") }
}

fn observed_text(row: &Row) -> String {
    let nothing = row.measure == Measure::Score || row.status == Status::NoBaseline;
    if nothing { "\u{2013}".to_owned() } else { words::of(row.observed) }
}

fn bounds_text(row: &Row) -> String {
    match row.bound {
        Some(bound) => format!(
            "{} to {} ({} each side)",
            words::lower_bound(bound.lower),
            words::upper_bound(bound.upper),
            words::share(bound.confidence)
        ),
        None => "\u{2013}".to_owned(),
    }
}

fn limit_text(row: &Row) -> String {
    let limit = match (row.limit, row.measure) {
        (None | Some(0.0), Measure::Events) => return "none".to_owned(),
        (None, _) => return "\u{2013}".to_owned(),
        (Some(limit), _) => limit,
    };
    match row.measure {
        Measure::Score => format!("at most {limit} points"),
        Measure::BestPractice | Measure::Covered | Measure::Relevant => {
            format!("at least {}", words::share(limit))
        }
        Measure::Harm | Measure::Events | Measure::NotRelevant | Measure::Unjudged | Measure::RoleBreaks => {
            format!("at most {}", words::share(limit))
        }
    }
}

fn settling_text(row: &Row, settling: Settling) -> String {
    let with = match row.bound.map(|bound| bound.inference) {
        Some(Population::UsersLikeThese) => " with further personas",
        Some(Population::FixedPersonas) | None => "",
    };
    let more = |n: u64| words::count(n, "more relevant conversation", "more relevant conversations");
    match settling {
        Settling::MoreToPass(n) if row.observed.n == 0 => {
            let needed = words::count(n, "relevant conversation", "relevant conversations");
            format!("About {needed}, if nothing is wrong with them, would let it hold.")
        }
        Settling::MoreToPass(n) => format!("If the rate stays, about {}{with} would let it hold.", more(n)),
        Settling::MoreToFail(n) => {
            format!("If the rate stays, about {}{with} would show it broken.", more(n))
        }
        Settling::CannotSettle => {
            "The rate is so close to the limit that more conversations do not settle it.".to_owned()
        }
        Settling::FillMissing(n) => {
            format!("{} would settle it.", words::count(n, "missing conversation", "missing conversations"))
        }
        Settling::MorePersonas(n) => format!(
            "{} with relevant conversations on both sides would be needed.",
            words::count(n, "more persona", "more personas")
        ),
    }
}

pub(super) fn waiver<E: Escaped>(waiver: &ShownWaiver) -> WaiverView<E> {
    let until = if waiver.holds { "until" } else { "expired on" };
    WaiverView {
        rule: E::text(&waiver.rule),
        scope: E::text(if waiver.scope.is_empty() { "all of it" } else { &waiver.scope }),
        reason: E::text(&waiver.reason),
        owner: E::text(&waiver.owner),
        expires: E::text(&format!("{until} {}", waiver.expires)),
        covers: E::text(&if waiver.covers.is_empty() {
            "nothing now".to_owned()
        } else {
            waiver.covers.join(", ")
        }),
    }
}

pub(super) fn regressions<E: Escaped>(gate: &GateVerdict) -> Vec<RegressionView<E>> {
    let rows = gate.rules.iter().flat_map(|rule| rule.rows.iter().map(move |row| (rule, row)));
    let mut found: Vec<(Status, RegressionView<E>)> = rows
        .filter_map(|(rule, row)| row.regression.as_deref().map(|r| (row.status, regression(rule, row, r))))
        .collect();
    found.sort_by_key(|(status, _)| std::cmp::Reverse(*status));
    found.into_iter().map(|(_, view)| view).collect()
}

fn regression<E: Escaped>(rule: &RuleResult, row: &Row, regression: &Regression) -> RegressionView<E> {
    let difference = match (regression.difference, regression.lower, regression.upper) {
        (Some(d), Some(lower), Some(upper)) => {
            format!("{} (95 %: {} to {})", words::points(d), words::points(lower), words::points(upper))
        }
        (Some(d), ..) => words::points(d),
        (None, ..) => "not known".to_owned(),
    };
    let adjusted = match regression.p_adjusted {
        Some(p) => format!("{} for all dimensions together", words::p_value(p)),
        None => "too few personas changed for any decision".to_owned(),
    };
    let detectable = match regression.smallest_detectable {
        Some(d) => format!("; smallest rise found in four of five cases: about {}", words::points(d)),
        None if regression.test == Test::SignFlip.word() => {
            "; no rise is large enough to be found in four of five cases".to_owned()
        }
        None => String::new(),
    };
    RegressionView {
        rule: E::text(&rule.id),
        about: E::text(row.dimension.as_deref().unwrap_or("any dimension")),
        against: row.against.map_or("baseline", against),
        icon: status_icon(row.status),
        status: row.status.word(),
        candidate: observed(regression.candidate),
        baseline: observed(regression.baseline),
        difference: E::text(&difference),
        p: E::text(&format!("{}: p {}; {adjusted}", regression.test, words::p_value(regression.p))),
        evidence: E::text(&format!(
            "{} on both sides, {} changed{detectable}",
            words::count(regression.personas, "persona", "personas"),
            regression.informative
        )),
        reason: E::text(&row.reason),
        personas: Listed::first(
            regression.personas_moved.iter().map(|moved| {
                E::text(&format!(
                    "{} (risk: {}): {} \u{2192} {} harmful",
                    moved.persona,
                    words::risk(moved.risk_level),
                    words::of(moved.baseline),
                    words::of(moved.candidate)
                ))
            }),
            NAMED,
        ),
        modes: Listed::first(
            regression.modes_moved.iter().map(|moved| {
                let (before, after) = (words::of(moved.baseline), words::of(moved.candidate));
                E::text(&format!("{}: {before} \u{2192} {after}", moved.mode))
            }),
            NAMED,
        ),
        not_relevant: regression.not_relevant.map(|shift| {
            E::text(&format!(
                "Not relevant: {} \u{2192} {} of rated conversations ({}, p {}).",
                words::of(shift.baseline),
                words::of(shift.candidate),
                words::points(shift.change),
                words::p_value(shift.p)
            ))
        }),
    }
}
