//! What waivers leave of a rule: it is applied once more to all that they are not about.
//!
//! So a waiver takes a row exactly when the row holds without its part. That the part alone is broken is not enough: the
//! others may be broken too, or not known.

use super::check::{self, Context, Outcome, Rival, RivalState};
use super::evidence::{Cell, Evidence};
use super::rules::{Rule, RuleKind, Scope};
use super::verdict::{Against, Row, Status};
use crate::target::RiskLevel;

/// What a rule says of the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// There is no rest: the waivers are about all of it.
    Nothing,
    /// The rest stops nothing.
    Harmless,
    /// The rest is broken or open by itself, so the waivers are not what decides.
    Decisive,
}

/// A rule, applied without what its waivers are about.
pub(super) struct Rest {
    evidence: Evidence,
    scope: Scope,
    about_harm: bool,
    outcomes: Vec<Outcome>,
}

impl Rest {
    /// `None` where no waiver of the rule holds.
    pub(super) fn of(context: &Context<'_>, rule: &Rule) -> Option<Self> {
        let input = context.input;
        // A share of conversations knows no dimensions: a waiver of some is about nothing there.
        let by_dimension = !matches!(
            rule.kind,
            RuleKind::Coverage { .. } | RuleKind::MaxRoleBreak { .. } | RuleKind::MinRelevant { .. }
        );
        let scopes: Vec<&Scope> = input
            .thresholds
            .waivers
            .iter()
            .filter(|waiver| waiver.rule == rule.id && waiver.holds(input.today))
            .map(|waiver| &waiver.scope)
            .filter(|scope| by_dimension || scope.dimensions.is_empty())
            .collect();
        if scopes.is_empty() {
            return None;
        }
        let candidate = without(&context.candidate, &scopes);
        let rivals = context.rivals.iter().map(|rival| Rival {
            against: rival.against,
            state: match &rival.state {
                RivalState::None => RivalState::None,
                RivalState::Usable { evidence, baseline } => {
                    RivalState::Usable { evidence: without(evidence, &scopes), baseline }
                }
                RivalState::Unusable(why) => RivalState::Unusable(why.clone()),
            },
        });
        let rest = Context { input, candidate, rivals: rivals.collect() };
        let outcomes = check::rule(&rest, rule);
        let about_harm = rule.kind.is_about_harm();
        Some(Self { evidence: rest.candidate, scope: rule.scope.clone(), about_harm, outcomes })
    }

    /// What the rest says of a row.
    pub(super) fn leaves(&self, row: &Row) -> Left {
        if !self.has_something(row) {
            return Left::Nothing;
        }
        let same = |other: &&Row| key(other) == key(row);
        match self.outcomes.iter().map(|outcome| &outcome.row).find(same).map(|row| row.status) {
            Some(Status::Fail | Status::Inconclusive) => Left::Decisive,
            Some(Status::Pass | Status::NoBaseline | Status::Waived | Status::Warn) | None => Left::Harmless,
        }
    }

    /// Whether anything is left that says something about the candidate, or could.
    fn has_something(&self, row: &Row) -> bool {
        let mut talks = self.evidence.in_scope(&self.scope);
        if !self.about_harm {
            return talks.next().is_some();
        }
        let mut dimensions = self.evidence.dimensions_of(&self.scope);
        dimensions.retain(|d| row.dimension.as_deref().is_none_or(|name| self.evidence.name(*d) == name));
        talks.any(|talk| dimensions.iter().any(|d| talk.cell(*d) != Cell::NotRelevant))
    }
}

fn key(row: &Row) -> (Option<&str>, Option<RiskLevel>, Option<Against>) {
    (row.dimension.as_deref(), row.risk_level, row.against)
}

/// The evidence without what the scopes are about. Conversations of whom nobody knows the risk level stay.
fn without(evidence: &Evidence, scopes: &[&Scope]) -> Evidence {
    let mut rest = evidence.clone();
    let about = |scope: &Scope, persona: &str, level: Option<RiskLevel>| {
        scope.can_place(level) && scope.has_conversation(persona, level)
    };
    rest.talks.retain(|talk| {
        let whole = |scope: &&&Scope| scope.dimensions.is_empty();
        !scopes.iter().filter(whole).any(|scope| about(scope, &talk.who.persona, talk.who.risk_level))
    });
    for talk in &mut rest.talks {
        let part = |scope: &&&Scope| about(scope, &talk.who.persona, talk.who.risk_level);
        let parts: Vec<usize> = scopes
            .iter()
            .filter(part)
            .flat_map(|scope| {
                rest.dimensions
                    .iter()
                    .enumerate()
                    .filter(|(_, name)| scope.has_dimension(name))
                    .map(|(d, _)| d)
            })
            .collect();
        talk.leave_out(&parts);
    }
    rest
}
