//! A report becomes a publication. Nothing is decided here: word and exit code are those of the report.

use std::collections::BTreeMap;

use super::annotations::RuleEffect;
use super::{Annotation, Publication, Word};
use crate::gate::rules::Tier;
use crate::gate::verdict::{Row, RuleResult, Status, Verdict};
use crate::report::{Report, RoleUsage, Templates, markdown};

impl From<Verdict> for Word {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Warn => Self::Warn,
            Verdict::Inconclusive => Self::Inconclusive,
            Verdict::Fail => Self::Fail,
        }
    }
}

impl Publication {
    /// What is to be shown of a report.
    pub fn of_report(report: &Report, templates: &Templates) -> Self {
        let word = Word::from(report.verdict.verdict);
        let rendered = markdown::render(report, templates);
        let mut publication = Self::short(word, &report.headline);
        publication.exit = report.exit();
        publication.heading = Some(rendered.heading);
        publication.short_heading = Some(rendered.short_heading);
        publication.sections = rendered.sections;
        publication.full_report = rendered.full_report;
        publication.annotations = annotations(report);
        publication.outputs.extend(outputs(report));
        publication
    }
}

/// Remarks on the lines of the rules that do not simply hold, each line once with all that is said of it.
fn annotations(report: &Report) -> Vec<Annotation> {
    let mut lines: BTreeMap<(String, u32), Annotation> = BTreeMap::new();
    for (rule, row) in
        report.verdict.rules.iter().flat_map(|rule| rule.rows.iter().map(move |row| (rule, row)))
    {
        let Some(effect) = effect(rule, row) else { continue };
        // A built-in thresholds file is no file of the repository.
        if rule.location.file.starts_with("builtin:") {
            continue;
        }
        let line = u32::try_from(rule.location.line).unwrap_or(u32::MAX);
        let level = effect.level();
        let annotation = lines.entry((rule.location.file.clone(), line)).or_insert_with(|| Annotation {
            path: rule.location.file.clone(),
            line,
            level,
            title: format!("{}: {}", rule.id, rule.status.word()),
            message: String::new(),
        });
        annotation.level = annotation.level.min(level);
        let said = match &row.dimension {
            Some(dimension) => format!("{dimension}: {}", row.reason),
            None => row.reason.clone(),
        };
        if !annotation.message.is_empty() {
            annotation.message.push('\n');
        }
        annotation.message.push_str(&said);
    }
    lines.into_values().collect()
}

/// What the row does to the verdict: the level of its remark follows from it and from nothing else.
fn effect(rule: &RuleResult, row: &Row) -> Option<RuleEffect> {
    match (row.status, rule.tier) {
        (Status::Pass, _) => None,
        (Status::Fail, _) | (Status::Inconclusive, Tier::Block) => Some(RuleEffect::Blocks),
        (Status::Warn, _) | (Status::Inconclusive, Tier::Warn) => Some(RuleEffect::Advises),
        (Status::NoBaseline | Status::Waived, _) => Some(RuleEffect::Informs),
    }
}

/// Values for later steps.
fn outputs(report: &Report) -> [(String, String); 4] {
    let harm = report.overall.observed;
    let all = report.verdict.coverage.all;
    let score = report.verdict.score.map_or_else(|| "none".to_owned(), |score| format!("{score:.2}"));
    [
        ("harm-rate", format!("{}/{}", harm.k, harm.n)),
        ("score", score),
        ("coverage", format!("{}/{}", all.judged, all.planned)),
        ("cost", cost(&report.usage)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}

/// Dollars with all digits, or `unknown` when any price is.
fn cost(usage: &[RoleUsage]) -> String {
    if usage.iter().any(|role| role.unknown_cost > 0) {
        return "unknown".to_owned();
    }
    let micros = usage.iter().map(|role| role.cost_micros).fold(0, u64::saturating_add);
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_price_is_not_nothing() {
        let known = RoleUsage { cost_micros: 1_234_567, ..RoleUsage::default() };
        let unknown = RoleUsage { unknown_cost: 1, ..RoleUsage::default() };
        assert_eq!(cost(&[]), "0.000000");
        assert_eq!(cost(&[known.clone(), known.clone()]), "2.469134");
        assert_eq!(cost(&[known, unknown]), "unknown");
    }
}
