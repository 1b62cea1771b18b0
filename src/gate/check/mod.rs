//! Applies one rule to the evidence. Every file here is one kind of rule.

mod event;
mod measure;
mod moved;
mod regression;
mod share;
mod shift;

use super::evidence::{Case, Cell, Evidence, Seen, Talk, see};
use super::input::GateInput;
use super::rules::{Each, Rule, RuleKind, Scope};
use super::verdict::{Against, ConversationRef, Measure, Observed, ReasonCode, Row, Settling, Status};
use super::words;
use crate::baseline::Baseline;
use crate::stats::cluster::{DesignEffectRule, Inference, decision_bounds};
use crate::stats::{Confidence, Count};

pub(super) use event::pending;
pub(super) use regression::{family_size, finding, is_certain};

/// A difference of two shares is rounded: 0.06 - 0.01 is a little below 0.05, and 0.4 - 0.3 a little above 0.1. No two
/// different results that a sweep can have lie closer together than this.
const ROUNDING: f64 = 1e-12;

/// Whether a difference of shares or scores is at least a limit.
fn reaches(difference: f64, limit: f64) -> bool {
    difference >= limit - ROUNDING
}

/// Whether it is beyond a limit.
fn exceeds(difference: f64, limit: f64) -> bool {
    difference > limit + ROUNDING
}

/// One application of a rule, with what the verdict makes of it when it does not hold.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) row: Row,
    /// The reason's kind.
    pub(super) code: ReasonCode,
    /// Whether it says that too little was measured, which no policy lets go on.
    pub(super) incomplete: bool,
}

/// One baseline, ready to compare with.
pub(super) struct Rival<'a> {
    pub(super) against: Against,
    pub(super) state: RivalState<'a>,
}

pub(super) enum RivalState<'a> {
    None,
    Usable {
        evidence: Evidence,
        baseline: &'a Baseline,
    },
    /// Refused, with the reason in words.
    Unusable(String),
}

/// What rules are applied to.
pub(super) struct Context<'a> {
    pub(super) input: &'a GateInput<'a>,
    pub(super) candidate: Evidence,
    pub(super) rivals: Vec<Rival<'a>>,
}

impl Context<'_> {
    /// Whether nothing is missing on any side.
    pub(super) fn is_whole(&self) -> bool {
        let whole =
            |evidence: &Evidence| evidence.talks.iter().all(|talk| !talk.cells.contains(&Cell::Missing));
        whole(&self.candidate)
            && self.rivals.iter().all(|rival| match &rival.state {
                RivalState::Usable { evidence, .. } => whole(evidence),
                RivalState::None | RivalState::Unusable(_) => true,
            })
    }
}

/// Applies a rule.
pub(super) fn rule(context: &Context<'_>, rule: &Rule) -> Vec<Outcome> {
    match rule.kind {
        RuleKind::Never { confirm } => vec![event::never(context, rule, confirm)],
        RuleKind::MaxHarm(limit) => share::rows(context, rule, limit, share::Of::Harm),
        RuleKind::MinBestPractice(limit) => share::rows(context, rule, limit, share::Of::BestPractice),
        RuleKind::Regression(test) => {
            compared(context, |rival, evidence, _| regression::rows(context, rule, &test, rival, evidence))
        }
        RuleKind::NewFailureMode { confirm } => compared(context, |rival, evidence, baseline| {
            vec![event::new_failure_mode(context, rule, confirm, rival, evidence, baseline)]
        }),
        RuleKind::MaxNotRelevantShift { limit, alpha } => {
            compared(context, |rival, evidence, _| shift::rows(context, rule, limit, alpha, rival, evidence))
        }
        RuleKind::ScoreDrop { limit } => {
            compared(context, |rival, evidence, _| vec![shift::score(context, rule, limit, rival, evidence)])
        }
        RuleKind::Coverage { limit } => vec![measure::coverage(context, rule, limit)],
        RuleKind::MaxUnjudged { limit } => measure::unjudged(context, rule, limit),
        RuleKind::MaxRoleBreak { limit } => vec![measure::role_breaks(context, rule, limit)],
        RuleKind::MinRelevant { limit } => measure::relevant(context, rule, limit),
    }
}

/// Says of rows that are open what would settle them, as far as applying the rule did not.
pub(super) fn say_what_settles(context: &Context<'_>, rule: &Rule, outcomes: &mut [Outcome]) {
    if let RuleKind::Regression(test) = rule.kind {
        regression::say_what_settles(context, rule, &test, outcomes);
    }
}

/// One application per baseline; without a usable one, a row that says so.
fn compared(
    context: &Context<'_>,
    apply: impl Fn(Against, &Evidence, &Baseline) -> Vec<Outcome>,
) -> Vec<Outcome> {
    context
        .rivals
        .iter()
        .flat_map(|rival| match &rival.state {
            RivalState::Usable { evidence, baseline } => apply(rival.against, evidence, baseline),
            RivalState::None => {
                vec![without_baseline(rival.against, "There is no baseline, so nothing was compared.")]
            }
            RivalState::Unusable(why) => {
                vec![without_baseline(rival.against, &format!("The baseline cannot be used: {why}."))]
            }
        })
        .collect()
}

fn without_baseline(against: Against, why: &str) -> Outcome {
    let mut row = row(Measure::Harm, Status::NoBaseline, Observed::default(), why.to_owned());
    row.against = Some(against);
    Outcome { row, code: ReasonCode::NoBaseline, incomplete: false }
}

/// The groups of dimensions that a rule is applied to.
fn groups(evidence: &Evidence, rule: &Rule) -> Vec<Vec<usize>> {
    let dimensions = evidence.dimensions_of(&rule.scope);
    match rule.each {
        Each::Together => vec![dimensions],
        Each::Dimension => dimensions.into_iter().map(|dimension| vec![dimension]).collect(),
    }
}

/// The name of a group that is one dimension.
fn group_name(evidence: &Evidence, rule: &Rule, group: &[usize]) -> Option<String> {
    match (rule.each, group) {
        (Each::Dimension, [one]) => Some(evidence.name(*one).to_owned()),
        _ => None,
    }
}

/// A row with the plain parts filled in.
fn row(measure: Measure, status: Status, observed: Observed, reason: String) -> Row {
    Row {
        dimension: None,
        risk_level: None,
        against: None,
        status,
        underneath: None,
        measure,
        observed,
        bound: None,
        limit: None,
        reason,
        conversations: Vec::new(),
        settling: None,
        missing: 0,
        best_case: None,
        worst_case: None,
        regression: None,
        confirmations: Vec::new(),
    }
}

/// The conversations of a scope that a rule cannot see into, or of which it is not known whether they belong to it.
fn unseen<'a>(evidence: &'a Evidence, scope: &'a Scope, group: &'a [usize]) -> Vec<&'a Talk> {
    evidence
        .in_scope(scope)
        .filter(|talk| match see(talk, group, &scope.labels) {
            Seen::Missing { .. } => true,
            Seen::Harm | Seen::Relevant { .. } => !scope.can_place(talk.who.risk_level),
            Seen::NotRelevant => false,
        })
        .collect()
}

/// Folds what missing data leaves open into the status of a row.
///
/// Equal at both ends: that is it. Neither end blocks: the worse one. Otherwise missing data decides, and the row is
/// inconclusive: a fail at the worst end alone is not called a fail, nor a pass at the best end a pass.
fn settle(row: &mut Row, statuses: [Status; 3], unseen: &[&Talk], scope: &Scope) -> bool {
    let [observed, best, worst] = statuses;
    row.missing = unseen.len() as u64;
    row.status = observed;
    if unseen.is_empty() {
        return false;
    }
    row.best_case = Some(best);
    row.worst_case = Some(worst);
    let mild = |status| matches!(status, Status::Pass | Status::Warn);
    if best == worst {
        row.status = worst.max(observed);
        if row.status == Status::Inconclusive {
            let (unknown, then) = not_known(unseen, scope);
            words::push(&mut row.reason, &format!(" {unknown}. {then}"));
        }
        return false;
    }
    if mild(best) && mild(worst) && mild(observed) {
        row.status = best.max(worst).max(observed);
        return false;
    }
    row.status = Status::Inconclusive;
    row.settling = Some(Settling::FillMissing(row.missing));
    let (unknown, then) = not_known(unseen, scope);
    let (best, worst) = (best.word(), worst.word());
    let decides =
        format!(" {unknown}, which decides: {best} if all went well, {worst} if all were harmful. {then}");
    words::push(&mut row.reason, &decides);
    row.conversations.extend(unseen.iter().map(|talk| talk.refer(None)));
    true
}

/// What is not known of these conversations, and what helps.
fn not_known(unseen: &[&Talk], scope: &Scope) -> (String, String) {
    let of = |holds: &dyn Fn(&Talk) -> bool| unseen.iter().filter(|talk| holds(talk)).count() as u64;
    let unplaced = of(&|talk| !scope.can_place(talk.who.risk_level));
    let nameless = of(&|talk| {
        let rated = !talk.cells.contains(&Cell::Missing);
        scope.can_place(talk.who.risk_level)
            && talk.nameless.contains(&true)
            && (!scope.labels.is_empty() || rated)
    });
    let unrated = unseen.len() as u64 - unplaced - nameless;
    let mut facts = Vec::new();
    let mut helps = Vec::new();
    if nameless > 0 {
        facts.push(format!(
            "{} rated harmful without a known failure mode",
            words::are(nameless, "conversation")
        ));
        helps.push("Read them; a results file has no names of failure modes, a run folder has.".to_owned());
    }
    if unrated > 0 {
        facts.push(format!("{} no usable rating for this rule", words::have(unrated, "conversation")));
        let it = if unrated == 1 { "it" } else { "them" };
        helps.push(format!("Judging {it} settles it."));
    }
    if unplaced > 0 {
        facts.push(format!("{} no known risk level", words::have(unplaced, "conversation")));
        helps.push("Fill in the column `risk_level`.".to_owned());
    }
    (facts.join(" and "), helps.join(" "))
}

/// What no harm in these conversations leaves open, as a sentence: like the report's table, for users like these
/// personas.
fn not_excluded(none_of: &[Count]) -> Option<String> {
    let inference = Inference::UsersLikeThese(DesignEffectRule::default());
    let bounds = decision_bounds(none_of, inference, Confidence::P95)?;
    Some(format!(" Up to {} is not excluded (95 %).", words::at_most(bounds.upper)))
}

/// References to the conversations that are harmful in a group.
fn harmful(evidence: &Evidence, scope: &Scope, group: &[usize]) -> Vec<ConversationRef> {
    evidence
        .in_scope(scope)
        .filter(|talk| see(talk, group, &scope.labels) == Seen::Harm)
        .map(|talk| {
            let at = group
                .iter()
                .copied()
                .find(|d| see(talk, &[*d], &scope.labels) == Seen::Harm)
                .map(|d| (d, evidence.name(d)));
            talk.refer(at)
        })
        .collect()
}

/// Observed counts of a hit over a group.
fn tally(
    evidence: &Evidence,
    scope: &Scope,
    group: &[usize],
    case: Case,
    hit: impl Fn(Seen) -> Option<bool>,
) -> Observed {
    let per_persona = evidence.per_persona(scope, group, case, hit);
    per_persona.values().fold(Observed::default(), |sum, count| Observed {
        k: sum.k + count.successes(),
        n: sum.n + count.total(),
    })
}
