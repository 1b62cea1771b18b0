//! May a sweep stop before it is complete?
//!
//! A certain fail needs no more conversations: no way of finishing can mend it. An early pass is a bet that the rest is
//! like what was seen; it must be asked for, and it rests on a test that may be looked at after every conversation.

use serde::{Deserialize, Serialize};

use super::check::{self, Context, RivalState};
use super::evidence::{Case, Evidence, Seen};
use super::input::GateInput;
use super::rules::{Each, OnInconclusive, Population, Rule, RuleKind, ShareLimit, Standard, Tier};
use super::verdict::{MissingReason, Row, Status};
use crate::stats::cluster::DesignEffectRule;
use crate::stats::sequential::{Certainty, DesignEffectRange, Progress, curtail, e_values};
use crate::stats::{Alpha, Count};

/// Whether stopping on good evidence is allowed, beside stopping on certainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyPass {
    /// Only certainty stops.
    Forbidden,
    /// Conversations come in a shuffled order, and good evidence stops too.
    Allowed,
}

/// Why a sweep stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum StopReason {
    /// A blocking rule is broken however the rest turns out.
    CertainFail {
        /// The rule.
        rule: String,
        /// The dimension, if the rule is applied to each.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dimension: Option<String>,
    },
    /// A blocking rule can no longer pass, and the thresholds file lets nothing less go on.
    CannotPass {
        /// The rule.
        rule: String,
        /// The dimension, if the rule is applied to each.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dimension: Option<String>,
    },
    /// Every limit is shown to be kept, by a test that allows looking at any time.
    EarlyPass,
}

impl StopReason {
    /// One sentence. Names come from inputs: escape before showing.
    pub fn words(&self) -> String {
        let named = |rule: &str, dimension: &Option<String>| match dimension {
            Some(dimension) => format!("`{rule}` ({dimension})"),
            None => format!("`{rule}`"),
        };
        match self {
            Self::CertainFail { rule, dimension } => {
                format!("The rule {} is broken however the rest turns out.", named(rule, dimension))
            }
            Self::CannotPass { rule, dimension } => {
                format!("The rule {} can no longer pass however the rest turns out.", named(rule, dimension))
            }
            Self::EarlyPass => {
                "Every limit is shown to be kept, by a test that may be looked at after every conversation."
                    .to_owned()
            }
        }
    }
}

/// Whether the sweep may stop. What has not run yet stands in the plan as missing.
///
/// Findings whose second look is still pending stop nothing: take it first, see
/// [`pending_confirmations`](super::pending_confirmations).
pub fn can_stop(input: &GateInput<'_>, early_pass: EarlyPass) -> Option<StopReason> {
    let (context, _, _) = super::prepare(input);
    let blocking = || input.thresholds.rules.iter().filter(|rule| rule.tier == Tier::Block);
    for rule in blocking().filter(|rule| rule.kind.can_fail()) {
        if !check::pending(&context, rule).is_empty() || is_waived(input, rule) {
            continue;
        }
        for row in check::rule(&context, rule).into_iter().map(|outcome| outcome.row) {
            if certainly_fails(&context, rule, &row) {
                return Some(StopReason::CertainFail { rule: rule.id.clone(), dimension: row.dimension });
            }
        }
    }
    if input.thresholds.inconclusive == OnInconclusive::Block {
        for rule in blocking().filter(|rule| !is_waived(input, rule)) {
            if let Some(dimension) = cannot_pass(&context, rule).into_iter().next() {
                return Some(StopReason::CannotPass { rule: rule.id.clone(), dimension });
            }
        }
    }
    (early_pass == EarlyPass::Allowed && passes_early(context)).then_some(StopReason::EarlyPass)
}

/// A waiver may take a rule's teeth; then the rule decides nothing.
fn is_waived(input: &GateInput<'_>, rule: &Rule) -> bool {
    input.thresholds.waivers.iter().any(|waiver| waiver.rule == rule.id && waiver.holds(input.today))
}

fn certainly_fails(context: &Context<'_>, rule: &Rule, row: &Row) -> bool {
    // Without missing data the row has no cases, and its status is certain by itself.
    if row.best_case.unwrap_or(row.status) != Status::Fail {
        return false;
    }
    match rule.kind {
        // One event is enough whatever comes; and a share over the largest possible denominator can only grow.
        RuleKind::Never { .. }
        | RuleKind::NewFailureMode { .. }
        | RuleKind::MaxHarm(ShareLimit { against: Standard::Point, .. }) => true,
        RuleKind::MaxHarm(limit) => {
            certainty(context, rule, limit, row.dimension.as_deref()) == Certainty::Fails
        }
        RuleKind::Regression(test) => context.rivals.iter().any(|rival| match &rival.state {
            RivalState::Usable { evidence, .. } if Some(rival.against) == row.against => {
                check::is_certain(&context.candidate, evidence, rule, &test, row.dimension.as_deref())
            }
            RivalState::Usable { .. } | RivalState::None | RivalState::Unusable(_) => false,
        }),
        // Best practice waits for the end: what is Not Relevant later moves it either way.
        _ => false,
    }
}

/// The dimensions, or the scope as a whole, that a rule can no longer let pass.
fn cannot_pass(context: &Context<'_>, rule: &Rule) -> Vec<Option<String>> {
    let RuleKind::MaxHarm(limit) = rule.kind else { return Vec::new() };
    let names: Vec<Option<String>> = match rule.each {
        Each::Together => vec![None],
        Each::Dimension => context
            .candidate
            .dimensions_of(&rule.scope)
            .into_iter()
            .map(|d| Some(context.candidate.name(d).to_owned()))
            .collect(),
    };
    names
        .into_iter()
        .filter(|name| certainty(context, rule, limit, name.as_deref()) == Certainty::CannotPass)
        .collect()
}

/// The dimensions that a row is about.
fn group_of(evidence: &Evidence, rule: &Rule, dimension: Option<&str>) -> Vec<usize> {
    let all = evidence.dimensions_of(&rule.scope).into_iter();
    all.filter(|d| dimension.is_none_or(|name| evidence.name(*d) == name)).collect()
}

/// Harmful of relevant so far, and conversations without a usable rating.
fn progress(evidence: &Evidence, rule: &Rule, dimension: Option<&str>) -> (Progress, u64, usize) {
    let group = group_of(evidence, rule, dimension);
    let seen = evidence.harm_per_persona(&rule.scope, &group, Case::Observed);
    let all = evidence.per_persona(&rule.scope, &group, Case::Worst, |seen| match seen {
        Seen::NotRelevant => None,
        Seen::Harm | Seen::Relevant { .. } | Seen::Missing { .. } => Some(true),
    });
    let judged: Count = seen.values().copied().sum();
    let possible: u64 = all.values().map(|count| count.total()).sum();
    let largest = all.values().map(|count| count.total()).max().unwrap_or(1);
    let remaining = possible.saturating_sub(judged.total());
    (Progress { judged, remaining }, largest, seen.len())
}

fn certainty(context: &Context<'_>, rule: &Rule, limit: ShareLimit, dimension: Option<&str>) -> Certainty {
    let Standard::Bound { confidence, population } = limit.against else { return Certainty::Open };
    let (progress, largest, personas) = progress(&context.candidate, rule, dimension);
    let range = match population {
        Population::FixedPersonas => DesignEffectRange::fixed(1.0).ok(),
        Population::UsersLikeThese => {
            Some(DesignEffectRange::any(DesignEffectRule::default(), personas, largest))
        }
    };
    range.map_or(Certainty::Open, |range| curtail(progress, limit.limit, confidence, range))
}

/// Every persona has been seen, every blocking rule holds on what was seen, and every bound on harm is kept by a test
/// that allows looking at any time. Without such a bound there is nothing that shows anything early.
///
/// The rules are applied to what the verdict of the stopped sweep will see.
fn passes_early(mut context: Context<'_>) -> bool {
    let talks = &context.candidate.talks;
    let unseen = talks
        .iter()
        .any(|talk| !talks.iter().any(|other| other.who.persona == talk.who.persona && other.is_judged()));
    if unseen {
        return false;
    }
    // The anytime test counts by the whole plan, the rules by what there is.
    let whole = context.candidate.clone();
    context.candidate.talks.retain(|talk| talk.gone != Some(MissingReason::NotRun));
    let mut shown = false;
    for rule in context.input.thresholds.rules.iter().filter(|rule| rule.tier == Tier::Block) {
        for row in check::rule(&context, rule).into_iter().map(|outcome| outcome.row) {
            if !matches!(row.status, Status::Pass | Status::NoBaseline) {
                return false;
            }
            let RuleKind::MaxHarm(ShareLimit { limit, against: Standard::Bound { confidence, population } }) =
                rule.kind
            else {
                continue;
            };
            let count = evidence_of(&whole, rule, population, &row);
            let passes = count.zip(Alpha::new(confidence.miss()).ok()).is_some_and(|(count, alpha)| {
                e_values(count, limit).is_ok_and(|values| values.passes(alpha))
            });
            if !passes {
                return false;
            }
            shown = true;
        }
    }
    shown
}

/// What the anytime test is given. In a shuffled order two conversations of each persona are near enough to independent
/// ones (in simulation at most 4.2 % wrong passes at 5 %), more are not. Then each persona counts once, as harmful when
/// any of its conversations is: the share of such personas is at least the share of harmful conversations, so whoever
/// shows that it is small has shown the other.
fn evidence_of(evidence: &Evidence, rule: &Rule, population: Population, row: &Row) -> Option<Count> {
    const INDEPENDENT: u64 = 2;
    let (_, most, _) = progress(evidence, rule, row.dimension.as_deref());
    if population == Population::FixedPersonas || most <= INDEPENDENT {
        return Count::new(row.observed.k, row.observed.n).ok();
    }
    let group = group_of(evidence, rule, row.dimension.as_deref());
    let seen = evidence.harm_per_persona(&rule.scope, &group, Case::Observed);
    let talked = seen.values().filter(|count| count.total() > 0);
    let (mut harmed, mut personas) = (0, 0);
    for count in talked {
        harmed += u64::from(count.successes() > 0);
        personas += 1;
    }
    Count::new(harmed, personas).ok()
}
