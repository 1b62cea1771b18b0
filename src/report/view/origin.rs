//! Coverage, cost, provenance.

use serde::Serialize;

use super::Escaped;
use crate::gate::verdict::{CoverageCounts, GateVerdict, Observed};
use crate::report::{Report, RoleUsage, words};

/// How much was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoverageView<E> {
    /// All conversations, then each risk level.
    pub rows: Vec<CoverageRow>,
    /// Per dimension, in words.
    pub dimensions: Vec<E>,
    /// Whether a plan was given; without one nobody knows what is missing.
    pub plan_known: bool,
}

/// One line of the coverage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoverageRow {
    /// `All` or a risk level.
    pub level: &'static str,
    /// Planned.
    pub planned: u64,
    /// Held to their end.
    pub finished: u64,
    /// With a verdict of the judge.
    pub judged: u64,
    /// With at least one relevant dimension.
    pub relevant: u64,
}

/// What it cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostView<E> {
    /// One line per role and model.
    pub rows: Vec<CostRow<E>>,
    /// All of it in one sentence.
    pub total: E,
}

/// What one model in one role used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostRow<E> {
    /// The role.
    pub role: E,
    /// The model.
    pub model: E,
    /// Calls, repeated requests and replayed calls.
    pub calls: E,
    /// Prompt tokens without cache.
    pub input: E,
    /// Prompt tokens written to and read from a cache, and the share that was read.
    pub cache: E,
    /// Reply tokens and those of reasoning.
    pub output: E,
    /// Money, or that it is not known.
    pub cost: E,
}

/// A name and a value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact<E> {
    /// What it is.
    pub name: E,
    /// Its value.
    pub value: E,
}

pub(super) fn coverage<E: Escaped>(gate: &GateVerdict) -> CoverageView<E> {
    let coverage = &gate.coverage;
    let row = |level, counts: &CoverageCounts| CoverageRow {
        level,
        planned: counts.planned,
        finished: counts.finished,
        judged: counts.judged,
        relevant: counts.relevant,
    };
    let mut rows = vec![row("All", &coverage.all)];
    rows.extend(coverage.by_risk.iter().rev().map(|(level, counts)| row(level.word(), counts)));
    let dimensions = coverage.dimensions.iter().map(|dimension| {
        E::text(&format!(
            "{}: {} of {} rated, {} relevant.",
            dimension.dimension, dimension.rated, coverage.all.planned, dimension.relevant
        ))
    });
    CoverageView { rows, dimensions: dimensions.collect(), plan_known: coverage.plan_known }
}

pub(super) fn cost<E: Escaped>(report: &Report) -> CostView<E> {
    let rows = report.usage.iter().map(|usage| CostRow {
        role: E::text(&usage.role),
        model: E::text(&usage.model),
        calls: E::text(&calls(usage)),
        input: E::text(&words::thousands(usage.input)),
        cache: E::text(&cache(usage)),
        output: E::text(&output(usage)),
        cost: E::text(&money(usage.cost_micros, usage.unknown_cost)),
    });
    CostView { rows: rows.collect(), total: E::text(&total(&report.usage)) }
}

fn calls(usage: &RoleUsage) -> String {
    let mut parts = vec![words::thousands(usage.calls)];
    let repeated = usage.attempts.saturating_sub(usage.calls);
    if repeated > 0 {
        parts.push(format!(" + {} repeated", words::thousands(repeated)));
    }
    if usage.replayed > 0 {
        parts.push(format!(" + {} replayed", words::thousands(usage.replayed)));
    }
    if usage.unknown_usage > 0 {
        parts.push(format!(", tokens of {} not known", words::thousands(usage.unknown_usage)));
    }
    parts.concat()
}

fn cache(usage: &RoleUsage) -> String {
    let all = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    if usage.cache_read == 0 && usage.cache_write == 0 {
        return "none".to_owned();
    }
    format!(
        "{} read ({}), {} written",
        words::thousands(usage.cache_read),
        words::percent(Observed { k: usage.cache_read, n: all }),
        words::thousands(usage.cache_write)
    )
}

fn output(usage: &RoleUsage) -> String {
    let text = words::thousands(usage.output);
    if usage.reasoning == 0 {
        return text;
    }
    format!("{text} + {} reasoning", words::thousands(usage.reasoning))
}

/// Money. What is not known is never shown as nothing.
pub(in crate::report) fn money(micros: u64, unknown_calls: u64) -> String {
    if unknown_calls == 0 {
        words::dollars(micros)
    } else if micros == 0 {
        "not known".to_owned()
    } else {
        let unknown = words::count(unknown_calls, "call", "calls");
        format!("at least {} (the price of {unknown} is not known)", words::dollars(micros))
    }
}

/// Calls, tokens and money of all roles in one sentence.
pub(in crate::report) fn total(usage: &[RoleUsage]) -> String {
    let sum = |f: fn(&RoleUsage) -> u64| usage.iter().map(f).fold(0, u64::saturating_add);
    let calls = sum(|u| u.calls);
    let tokens = sum(|u| {
        [u.input, u.cache_read, u.cache_write, u.output, u.reasoning].into_iter().fold(0, u64::saturating_add)
    });
    let cost = money(sum(|u| u.cost_micros), sum(|u| u.unknown_cost));
    format!(
        "{}, {}, cost {cost}.",
        words::count(calls, "call", "calls"),
        words::count(tokens, "token", "tokens")
    )
}

/// Where the result comes from.
pub(super) fn provenance<E: Escaped>(report: &Report) -> Vec<Fact<E>> {
    let from = &report.provenance;
    let mut facts: Vec<Fact<E>> = Vec::new();
    // Names that people copy are code, where nothing is put between their characters.
    let code = |name: &str, value: &str| Fact { name: E::text(name), value: E::code(value) };
    let text = |name: &str, value: &str| Fact { name: E::text(name), value: E::text(value) };
    for (name, value) in [("Run", &from.run_id), ("Started", &from.started), ("Finished", &from.finished)] {
        if !value.is_empty() {
            facts.push(code(name, value));
        }
    }
    let tool = if from.tool_version.is_empty() { &report.verdict.tool_version } else { &from.tool_version };
    facts.push(text("Tool", &format!("vera-gate {tool}")));
    let target = &from.target;
    let version = target.version.as_deref().unwrap_or_default();
    let target = format!("{} {version}", target.name);
    for (name, value) in [("Candidate", from.candidate.as_str()), ("Target", target.trim())] {
        if !value.is_empty() {
            facts.push(text(name, value));
        }
    }
    facts.extend(from.models.iter().map(|model| {
        text(&format!("Model: {}", model.role), &model_sentence(&model.requested, &model.returned))
    }));
    let policy = &report.verdict.policy;
    let advisory = if policy.advisory_only { "; no rule in it blocks" } else { "" };
    facts.push(text("Thresholds", &format!("{} ({}){advisory}", policy.name, policy.file)));
    if !from.config.is_empty() {
        facts.push(text("Configuration", &from.config));
    }
    facts.extend(from.seed.map(|seed| code("Seed", &seed.to_string())));
    facts.extend(from.fingerprints.iter().map(|(name, hash)| code(&format!("SHA-256 of {name}"), hash)));
    facts
}

fn model_sentence(requested: &str, returned: &[String]) -> String {
    match returned {
        [] => format!("{requested}; the provider does not say which model answered"),
        [one] if one == requested => requested.to_owned(),
        [one] => format!("{requested}; answered by {one}"),
        several => format!("{requested}; the model changed during the run: {}", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_never_nothing() {
        assert_eq!(money(0, 0), "$0.00");
        assert_eq!(money(2_500_000, 0), "$2.50");
        // Calls of a script are known to cost nothing; the others are not, and may cost anything.
        assert_eq!(money(0, 12), "not known");
        assert_eq!(money(2_500_000, 1), "at least $2.50 (the price of 1 call is not known)");
    }
}
