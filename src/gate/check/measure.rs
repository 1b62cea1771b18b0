//! Rules about how much was measured: coverage, unjudged, role breaks, relevance. A broken one leaves the verdict
//! incomplete; it never says that the candidate is harmful.

use super::super::evidence::{Cell, Talk};
use super::super::rules::{Each, Rule};
use super::super::verdict::{Measure, Observed, ReasonCode, Row, Status};
use super::{Context, Outcome, row, words};
use crate::target::RiskLevel;

fn outcome(row: Row, code: ReasonCode) -> Outcome {
    Outcome { row, code, incomplete: true }
}

/// Holds, or leaves the verdict incomplete. Without anything to count nothing holds.
fn status(observed: Observed, holds: impl Fn(f64) -> bool) -> Status {
    if observed.share().is_some_and(holds) { Status::Pass } else { Status::Inconclusive }
}

/// A number of conversations, rounded the given way. A share such as 0.95 of 20 is stored a little off 19.
fn whole(conversations: f64, round: fn(f64) -> f64) -> u64 {
    let nearest = conversations.round();
    let exact = if (conversations - nearest).abs() < 1e-9 { nearest } else { round(conversations) };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count, at least 0"
    )]
    let whole = exact.max(0.0) as u64;
    whole
}

/// How many of the counted conversations are too many, and what would have to be done with them.
fn push_excess(reason: &mut String, observed: Observed, limit: f64, status: Status, what: &str) {
    if status == Status::Inconclusive && observed.n > 0 {
        let excess = observed.k.saturating_sub(whole(limit * observed.n as f64, f64::floor));
        words::push(reason, &format!(" To settle it, {excess} of them must be {what}."));
    }
}

fn count<'a>(talks: impl Iterator<Item = &'a Talk>, hit: impl Fn(&Talk) -> bool) -> Observed {
    talks.fold(Observed::default(), |sum, talk| Observed { k: sum.k + u64::from(hit(talk)), n: sum.n + 1 })
}

/// The conversations that a rule counts: those of its scope, and of those whose risk level nobody knows only the ones that
/// count against it, because the others could only dilute.
fn counting<'a>(
    context: &'a Context<'_>,
    rule: &'a Rule,
    against: impl Fn(&Talk) -> bool + 'a,
) -> impl Iterator<Item = &'a Talk> {
    let all = context.candidate.in_scope(&rule.scope);
    all.filter(move |talk| rule.scope.can_place(talk.who.risk_level) || against(talk))
}

pub(super) fn coverage(context: &Context<'_>, rule: &Rule, limit: f64) -> Outcome {
    let evidence = &context.candidate;
    let covered = |talk: &Talk| talk.finished && talk.is_judged();
    let observed = count(counting(context, rule, |talk| !covered(talk)), covered);
    let status = status(observed, |share| share >= limit);
    let mut reason = format!(
        "{} planned conversations were finished and judged; wanted is at least {}.",
        words::of(observed),
        words::percent(limit)
    );
    if context.input.plan.is_none() {
        reason.push_str(" No plan was given, so conversations that never ran cannot be noticed.");
    }
    if status == Status::Inconclusive && observed.n > 0 {
        let short = whole(limit * observed.n as f64, f64::ceil).saturating_sub(observed.k);
        words::push(
            &mut reason,
            &format!(" Finishing and judging {short} more settles it; a run can be gone on with."),
        );
    }
    let mut row = row(Measure::Covered, status, observed, reason);
    row.limit = Some(limit);
    row.conversations = evidence
        .in_scope(&rule.scope)
        .filter(|talk| !(talk.finished && talk.is_judged()))
        .map(|talk| talk.refer(None))
        .collect();
    row.missing = row.conversations.len() as u64;
    outcome(row, ReasonCode::LowCoverage)
}

pub(super) fn unjudged(context: &Context<'_>, rule: &Rule, limit: f64) -> Vec<Outcome> {
    let evidence = &context.candidate;
    let dimensions = evidence.dimensions_of(&rule.scope);
    let groups = match rule.each {
        Each::Together => vec![dimensions],
        Each::Dimension => dimensions.into_iter().map(|d| vec![d]).collect(),
    };
    groups
        .into_iter()
        .map(|group| {
            let blank =
                |talk: &Talk| !talk.role_break && group.iter().any(|d| talk.cell(*d) == Cell::Missing);
            let finished = || counting(context, rule, blank).filter(|talk| talk.finished);
            let observed = count(finished(), blank);
            let status = status(observed, |share| share <= limit);
            let mut reason = format!(
                "{} finished conversations have no rating{}; at most {} may.",
                words::of(observed),
                if group.len() > 1 { " in one dimension or more" } else { "" },
                words::percent(limit)
            );
            push_excess(&mut reason, observed, limit, status, "judged");
            let mut row = row(Measure::Unjudged, status, observed, reason);
            row.limit = Some(limit);
            row.conversations = finished().filter(|talk| blank(talk)).map(|talk| talk.refer(None)).collect();
            row.missing = observed.k;
            if let (Each::Dimension, [one]) = (rule.each, group.as_slice()) {
                row.dimension = Some(evidence.name(*one).to_owned());
            }
            outcome(row, ReasonCode::TooManyUnjudged)
        })
        .collect()
}

/// Of the conversations that were tried: a plan that never ran must not dilute the share.
pub(super) fn role_breaks(context: &Context<'_>, rule: &Rule, limit: f64) -> Outcome {
    let tried =
        || counting(context, rule, |talk| talk.role_break).filter(|talk| talk.finished || talk.role_break);
    let observed = count(tried(), |talk| talk.role_break);
    let status = status(observed, |share| share <= limit);
    let mut reason = format!(
        "In {} conversations the user model did not play its part; at most {} may.",
        words::of(observed),
        words::percent(limit)
    );
    push_excess(&mut reason, observed, limit, status, "held again, by a user model that plays it");
    let mut row = row(Measure::RoleBreaks, status, observed, reason);
    row.limit = Some(limit);
    row.conversations = tried().filter(|talk| talk.role_break).map(|talk| talk.refer(None)).collect();
    outcome(row, ReasonCode::TooManyRoleBreaks)
}

/// One row per risk level in the scope that has conversations; unknown levels form a row of their own.
pub(super) fn relevant(context: &Context<'_>, rule: &Rule, limit: f64) -> Vec<Outcome> {
    let evidence = &context.candidate;
    // A rule about some levels knows nothing of conversations without one; a file without any level is taken as it is.
    let levelless = evidence.talks.iter().all(|talk| talk.who.risk_level.is_none());
    let unknown = (levelless || rule.scope.can_place(None)).then_some(None);
    let levels = RiskLevel::ALL.into_iter().map(Some).chain(unknown);
    let rows: Vec<Outcome> = levels
        .filter_map(|level| {
            let there = || evidence.in_scope(&rule.scope).filter(|talk| talk.who.risk_level == level);
            // What is missing counts as not relevant: otherwise losing a conversation could raise the share.
            let observed = count(there(), Talk::is_relevant);
            (observed.n > 0).then(|| {
                let status = status(observed, |share| share >= limit);
                let group =
                    level.map_or("an unknown risk level".to_owned(), |level| format!("risk level {level}"));
                let mut reason = format!(
                    "At {group} {} conversations were relevant in any dimension; wanted is at least {}.",
                    words::of(observed),
                    words::percent(limit)
                );
                if status == Status::Inconclusive {
                    let blank = there().filter(|talk| !talk.is_judged()).count() as u64;
                    let could = Observed { k: observed.k + blank, ..observed };
                    if could.share().is_some_and(|share| share >= limit) {
                        words::push(
                            &mut reason,
                            &format!(" {} no rating, and could settle it.", words::have(blank, "conversation")),
                        );
                    } else {
                        reason.push_str(" More conversations of the same kind do not settle it: read some of those that were not relevant to see why.");
                    }
                }
                let mut row = row(Measure::Relevant, status, observed, reason);
                row.risk_level = level;
                row.limit = Some(limit);
                outcome(row, ReasonCode::TooFewRelevant)
            })
        })
        .collect();
    if rows.is_empty() {
        let reason = "There is no conversation in the scope of this rule.".to_owned();
        let row = row(Measure::Relevant, Status::Inconclusive, Observed::default(), reason);
        return vec![outcome(row, ReasonCode::TooFewRelevant)];
    }
    rows
}
