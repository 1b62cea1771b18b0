//! What moved between baseline and candidate: personas and failure modes.

use std::collections::{BTreeMap, BTreeSet};

use super::super::evidence::{Case, Cell, Evidence, Seen, see};
use super::super::rules::Scope;
use super::super::verdict::{ModeMove, Observed, PersonaMove};
use super::tally;
use crate::stats::Count;
use crate::target::RiskLevel;

fn observed(count: Option<&Count>) -> Observed {
    count.map_or_else(Observed::default, |count| Observed { k: count.successes(), n: count.total() })
}

/// By how much the rate rose, for the order; a side without conversations counts as zero.
fn rise(candidate: Observed, baseline: Observed) -> f64 {
    candidate.share().unwrap_or(0.0) - baseline.share().unwrap_or(0.0)
}

/// Personas relevant on both sides whose rate changed, the largest rise first.
pub(super) fn personas(
    candidate: &Evidence,
    baseline: &Evidence,
    scope: &Scope,
    group: &[usize],
) -> Vec<PersonaMove> {
    let now = candidate.harm_per_persona(scope, group, Case::Observed);
    let before = baseline.harm_per_persona(scope, group, Case::Observed);
    let levels: BTreeMap<&str, Option<RiskLevel>> =
        candidate.talks.iter().map(|talk| (talk.who.persona.as_str(), talk.who.risk_level)).collect();
    let mut moves: Vec<PersonaMove> = now
        .iter()
        .filter_map(|(name, count)| {
            let (now, before) = (observed(Some(count)), observed(before.get(name)));
            let changed = now.k * before.n != before.k * now.n;
            (before.n > 0 && changed).then(|| PersonaMove {
                persona: (*name).to_owned(),
                risk_level: levels.get(name).copied().flatten(),
                candidate: now,
                baseline: before,
            })
        })
        .collect();
    moves.sort_by(|a, b| {
        rise(b.candidate, b.baseline)
            .total_cmp(&rise(a.candidate, a.baseline))
            .then_with(|| a.persona.cmp(&b.persona))
    });
    moves
}

/// Failure modes whose number of conversations changed, the largest rise first.
pub(super) fn modes(
    candidate: &Evidence,
    baseline: &Evidence,
    scope: &Scope,
    group: &[usize],
) -> Vec<ModeMove> {
    let (now, now_of) = mode_counts(candidate, scope, group);
    let (before, before_of) = mode_counts(baseline, scope, group);
    let names: BTreeSet<&String> = now.keys().chain(before.keys()).collect();
    let mut moves: Vec<ModeMove> = names
        .into_iter()
        .map(|mode| ModeMove {
            mode: mode.clone(),
            candidate: Observed { k: now.get(mode).copied().unwrap_or(0), n: now_of },
            baseline: Observed { k: before.get(mode).copied().unwrap_or(0), n: before_of },
        })
        .filter(|moved| moved.candidate.k * moved.baseline.n != moved.baseline.k * moved.candidate.n)
        .collect();
    moves.sort_by(|a, b| {
        rise(b.candidate, b.baseline)
            .total_cmp(&rise(a.candidate, a.baseline))
            .then_with(|| a.mode.cmp(&b.mode))
    });
    moves
}

/// Conversations per failure mode, and relevant conversations.
fn mode_counts(evidence: &Evidence, scope: &Scope, group: &[usize]) -> (BTreeMap<String, u64>, u64) {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for talk in evidence.in_scope(scope).filter(|talk| see(talk, group, &scope.labels) == Seen::Harm) {
        let mut modes: BTreeSet<&str> = BTreeSet::new();
        for &dimension in group.iter().filter(|d| talk.cell(**d) == Cell::Harm) {
            let named = talk.modes_of(dimension);
            modes.extend(named.iter().map(String::as_str));
            if named.is_empty() {
                modes.insert("not named");
            }
        }
        for mode in modes {
            *counts.entry(mode.to_owned()).or_default() += 1;
        }
    }
    let relevant = tally(evidence, scope, group, Case::Observed, |seen| match seen {
        Seen::Harm | Seen::Relevant { .. } => Some(true),
        Seen::NotRelevant | Seen::Missing { .. } => None,
    });
    (counts, relevant.n)
}
