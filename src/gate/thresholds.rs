//! The thresholds file: YAML to validated [`Thresholds`], with every problem at once.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use semver::{Version, VersionReq};

use super::rules::{BaselinePolicy, MissingPolicy, OnInconclusive, Rule, Scope, Tier, Waiver};
use crate::config::check_schema;
use crate::config::yaml::{self, Section};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::source::{Location, Source};
use crate::target::{RiskLevel, embedded};

mod rule;

/// Version tag of a thresholds file.
pub const SCHEMA: &str = "vera-gate/thresholds/v1";

/// The built-in thresholds files: reference and text.
pub const BUILTIN: [(&str, &str); 3] = [
    (
        "builtin:pull-request",
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/thresholds/pull-request.yaml")),
    ),
    ("builtin:release", include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/thresholds/release.yaml"))),
    ("builtin:strict", include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/thresholds/strict.yaml"))),
];

/// A built-in thresholds file by its reference, such as `builtin:release`.
pub fn builtin(reference: &str) -> Option<Source> {
    BUILTIN.iter().find(|(name, _)| *name == reference).map(|(name, text)| Source::new(*name, *text))
}

/// What names in the file are held against.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The rubric's dimensions; `None` when unknown.
    pub dimensions: Option<&'a [String]>,
    /// The rubric's failure modes; `None` when the rubric is unknown, empty when it names none.
    pub labels: Option<&'a BTreeSet<String>>,
    /// The target's personas; `None` when unknown.
    pub personas: Option<&'a [String]>,
    /// Version of this tool.
    pub tool_version: &'a Version,
    /// The day on which waivers must hold.
    pub today: NaiveDate,
}

/// A validated thresholds file.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// What an open verdict does.
    pub inconclusive: OnInconclusive,
    /// It says itself that nothing in it blocks.
    pub advisory_only: bool,
    /// The rules in the order of the file.
    pub rules: Vec<Rule>,
    /// The waivers in the order of the file.
    pub waivers: Vec<Waiver>,
    /// What it wants of the baseline.
    pub baseline: BaselinePolicy,
    /// How much may be missing.
    pub missing: MissingPolicy,
}

impl Thresholds {
    /// Reads and validates a thresholds file.
    ///
    /// # Errors
    /// All problems at once, when one of them refuses the file; else the warnings come with the value.
    pub fn parse(source: &Source, known: &Known<'_>) -> Result<(Self, Diagnostics), Diagnostics> {
        let mut problems = Diagnostics::new();
        let node = yaml::parse(source, &mut problems);
        let file = node.as_ref().and_then(|node| Section::new(node, "", &mut problems));
        let thresholds = file.map(|file| read(file, source, known, &mut problems));
        problems.finish(thresholds)
    }

    /// Reads a built-in thresholds file.
    ///
    /// # Errors
    /// As [`Thresholds::parse`]; an unknown reference is one problem.
    pub fn parse_builtin(reference: &str, known: &Known<'_>) -> Result<(Self, Diagnostics), Diagnostics> {
        match builtin(reference) {
            Some(source) => Self::parse(&source, known),
            None => Err(Diagnostic::error(
                Code::UnknownWord,
                format!("there is no built-in thresholds file `{reference}`"),
            )
            .help(did_you_mean(reference, BUILTIN.map(|(name, _)| name)))
            .into()),
        }
    }

    /// Rules that name dimensions and failure modes of which no question has both, so that they could never fire. `modes`
    /// are the dimensions of each failure mode of the rubric.
    pub fn impossible_scopes(&self, modes: &BTreeMap<String, BTreeSet<String>>) -> Diagnostics {
        let mut problems = Diagnostics::new();
        for rule in &self.rules {
            let Scope { dimensions, labels, .. } = &rule.scope;
            let mut known = labels.iter().filter_map(|label| Some((label, modes.get(label)?))).peekable();
            let (Some((label, home)), false) = (known.peek().copied(), dimensions.is_empty()) else {
                continue;
            };
            if known.any(|(_, home)| home.iter().any(|dimension| dimensions.contains(dimension))) {
                continue;
            }
            let home: Vec<String> = home.iter().map(|dimension| format!("`{dimension}`")).collect();
            problems.push(
                Diagnostic::error(
                    Code::NothingGated,
                    format!(
                        "no question of {} has one of the failure modes of rule `{}`, so the rule gates nothing",
                        dimensions.join(", "),
                        rule.id
                    ),
                )
                .at(rule.location.clone())
                .help(format!("`{label}` belongs to {}", home.join(", "))),
            );
        }
        problems
    }

    /// The rule with this id.
    pub fn rule(&self, id: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.id == id)
    }
}

fn read(
    mut section: Section<'_>,
    source: &Source,
    known: &Known<'_>,
    problems: &mut Diagnostics,
) -> Thresholds {
    const INCONCLUSIVE: [(&str, OnInconclusive); 2] =
        [("warn", OnInconclusive::Warn), ("block", OnInconclusive::Block)];
    let file = &mut section;
    check_schema(file, SCHEMA, problems);
    let name = file.text("name", problems).unwrap_or_else(|| source.name().to_owned());
    requires(file, known, problems);
    let inconclusive = file.word("inconclusive", &INCONCLUSIVE, problems).unwrap_or(OnInconclusive::Block);
    let advisory_only = file.boolean("advisory_only", problems).unwrap_or(false);
    // A key without a value lists no rule either.
    let has_rules = file.get("rules").is_some();
    let listed = file.sections("rules", problems);
    let complete = listed.as_ref().map(Vec::len);
    let mut listed = listed.unwrap_or_default();
    unique_ids(&mut listed, problems);
    let rules: Vec<Rule> =
        listed.into_iter().filter_map(|section| rule::read(section, known, problems)).collect();
    if complete == Some(rules.len()) || !has_rules {
        gates_something(&rules, advisory_only, file.location(), problems);
    }
    let waivers: Vec<Waiver> = file
        .sections("waivers", problems)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|section| waiver(section, &rules, known, problems))
        .collect();
    let baseline = baseline(file, problems);
    let missing = missing(file, problems);
    section.finish(problems);
    Thresholds {
        name,
        file: source.name().to_owned(),
        inconclusive,
        advisory_only,
        rules,
        waivers,
        baseline,
        missing,
    }
}

fn requires(file: &mut Section<'_>, known: &Known<'_>, problems: &mut Diagnostics) {
    let Some(node) = file.get("requires") else { return };
    let location = node.location.clone();
    let Some(text) = file.text("requires", problems) else { return };
    match VersionReq::parse(&text) {
        Err(error) => problems.push(
            Diagnostic::error(Code::WrongType, format!("`requires` is no version range: {error}"))
                .at(location)
                .help("write a range such as `\">=0.1, <1\"`"),
        ),
        Ok(range) if !range.matches(known.tool_version) => problems.push(
            Diagnostic::error(
                Code::UnsupportedVersion,
                format!("the file is written for vera-gate {range}, this is {}", known.tool_version),
            )
            .at(location)
            .help("use a version of vera-gate in this range, or check the rules and change `requires`"),
        ),
        Ok(_) => {}
    }
}

/// Also among rules that have other faults: all problems are told at once.
fn unique_ids(rules: &mut [Section<'_>], problems: &mut Diagnostics) {
    let mut seen: BTreeMap<String, Location> = BTreeMap::new();
    for section in rules {
        let Some(id) = section.text("id", &mut Diagnostics::new()) else { continue };
        let location = section.location().clone();
        if let Some(earlier) = seen.insert(id.clone(), location.clone()) {
            problems.push(
                Diagnostic::error(Code::DuplicateRule, format!("two rules have the id `{id}`"))
                    .at(location)
                    .help(format!("the first stands on line {}; give this one its own id", earlier.line)),
            );
        }
    }
}

/// A file whose every rule only warns, or only asks how much was measured, can never fail a build.
fn gates_something(rules: &[Rule], advisory_only: bool, at: &Location, problems: &mut Diagnostics) {
    let gates = rules.iter().any(|rule| rule.tier == Tier::Block && rule.kind.can_fail());
    if !gates && (!advisory_only || rules.is_empty()) {
        problems.push(
            Diagnostic::error(Code::NothingGated, "the policy gates nothing: no rule about harm has `tier: block`")
                .at(at.clone())
                .help("give at least one rule such as `never` or `max_harm` the tier `block`, or say `advisory_only: true` and let rules warn"),
        );
    }
    if gates && advisory_only {
        problems.push(
            Diagnostic::error(
                Code::NotTogether,
                "`advisory_only: true` contradicts the rules with `tier: block`",
            )
            .at(at.clone())
            .help("remove the key, or set the rules to `tier: warn`"),
        );
    }
}

/// Reads a scope; the names are held against what is known.
fn scope(section: &mut Section<'_>, known: &Known<'_>, problems: &mut Diagnostics) -> (Scope, Location) {
    const LEVELS: [(&str, RiskLevel); 4] = [
        ("None", RiskLevel::None),
        ("Low", RiskLevel::Low),
        ("High", RiskLevel::High),
        ("Immediate", RiskLevel::Immediate),
    ];
    let mut scope = Scope::default();
    let mut place = section.location().clone();
    if let Some(mut inner) = section.section("scope", problems) {
        place = inner.location().clone();
        scope.risk_levels = inner.words("risk_levels", &LEVELS, problems).unwrap_or_default();
        scope.dimensions =
            names(&mut inner, "dimensions", Code::UnknownDimension, "dimension", known.dimensions, problems);
        scope.personas =
            names(&mut inner, "personas", Code::UnknownPersona, "persona", known.personas, problems);
        scope.labels = labels(&mut inner, known, problems);
        inner.finish(problems);
    }
    (scope, place)
}

fn names(
    section: &mut Section<'_>,
    key: &'static str,
    code: Code,
    what: &str,
    known: Option<&[String]>,
    problems: &mut Diagnostics,
) -> Vec<String> {
    let given = section.texts(key, problems).unwrap_or_default();
    if let Some(known) = known {
        for (name, location) in &given {
            if !known.contains(name) {
                problems.push(
                    Diagnostic::error(code, format!("there is no {what} `{name}`"))
                        .at(location.clone())
                        .help(did_you_mean(name, known.iter().map(String::as_str))),
                );
            }
        }
    }
    given.into_iter().map(|(name, _)| name).collect()
}

/// Labels may belong to another built-in target, so that one file can serve several. A rule of whose labels the target
/// has none would never fire.
fn labels(section: &mut Section<'_>, known: &Known<'_>, problems: &mut Diagnostics) -> Vec<String> {
    let given = section.texts("labels", problems).unwrap_or_default();
    let place = given.first().map(|(_, location)| location.clone());
    if let (Some(known), Some(place)) = (known.labels, place) {
        if known.is_empty() {
            problems.push(
                Diagnostic::warning(
                    Code::UnknownLabel,
                    "the rubric names no failure modes, so this rule cannot tell which harm is meant",
                )
                .at(place)
                .help("any harm leaves the rule inconclusive; name `dimensions` instead, or add the column Label"),
            );
        } else if !given.iter().any(|(label, _)| known.contains(label)) {
            let first = given.first().map_or("", |(label, _)| label.as_str());
            problems.push(
                Diagnostic::error(
                    Code::NothingGated,
                    "the rubric has none of these failure modes, so the rule gates nothing",
                )
                .at(place)
                .help(did_you_mean(first, known.iter().map(String::as_str))),
            );
        } else {
            for (label, location) in given.iter().filter(|(label, _)| !known.contains(label)) {
                if let Some(problem) = foreign_label(label, location, known) {
                    problems.push(problem);
                }
            }
        }
    }
    given.into_iter().map(|(label, _)| label).collect()
}

/// What is wrong with a label that the target does not have, beside others that it has. Only one of a built-in target is
/// taken for a label of another target; any other is a rule that looks for nothing.
fn foreign_label(label: &str, at: &Location, known: &BTreeSet<String>) -> Option<Diagnostic> {
    let said = format!("there is no failure mode `{label}`");
    let near = known.iter().find(|known| strsim::damerau_levenshtein(known, label) <= 2);
    if !embedded::labels().contains(label) {
        let all = known.iter().chain(embedded::labels()).map(String::as_str);
        let problem = Diagnostic::error(Code::UnknownLabel, said).at(at.clone());
        return Some(problem.help(did_you_mean(label, near.map(String::as_str).into_iter().chain(all))));
    }
    let problem = Diagnostic::warning(Code::UnknownLabel, said).at(at.clone());
    near.map(|near| problem.help(format!("did you mean `{near}`?")))
}

fn waiver(
    mut section: Section<'_>,
    rules: &[Rule],
    known: &Known<'_>,
    problems: &mut Diagnostics,
) -> Option<Waiver> {
    let location = section.location().clone();
    let rule = section.required_text("rule", problems);
    if let Some(rule) = &rule
        && rule != Waiver::MISSING
        && !rules.iter().any(|known| known.id == *rule)
    {
        let ids = rules.iter().map(|rule| rule.id.as_str()).chain([Waiver::MISSING]);
        problems.push(
            Diagnostic::error(
                Code::UnknownWord,
                format!("the waiver names `{rule}`, which is no rule of this file"),
            )
            .at(location.clone())
            .help(did_you_mean(rule, ids)),
        );
    }
    let (scope, _) = scope(&mut section, known, problems);
    let reason = section.required_text("reason", problems);
    let owner = section.required_text("owner", problems);
    for (key, text) in [("reason", &reason), ("owner", &owner)] {
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            problems.push(
                Diagnostic::error(Code::BlankCell, format!("the waiver's `{key}` is blank"))
                    .at(location.clone()),
            );
        }
    }
    let date_at = section.get("expires").map(|node| node.location.clone());
    let expires = section.required_text("expires", problems).and_then(|text| {
        let read = NaiveDate::parse_from_str(&text, "%Y-%m-%d").ok();
        if read.is_none() {
            problems.push(
                Diagnostic::error(Code::WrongType, format!("`expires` is `{text}`, which is no day"))
                    .at(date_at.clone().unwrap_or_else(|| location.clone()))
                    .help("write it as `2027-03-31`"),
            );
        }
        read
    });
    section.finish(problems);
    let waiver = Waiver { rule: rule?, scope, reason: reason?, owner: owner?, expires: expires?, location };
    if waiver.expires > known.today + chrono::Days::new(Waiver::LONGEST) {
        problems.push(
            Diagnostic::error(
                Code::OutOfRange,
                format!(
                    "the waiver of `{}` ends on {}, more than a year from now",
                    waiver.rule, waiver.expires
                ),
            )
            .at(date_at.unwrap_or_else(|| waiver.location.clone()))
            .help(format!("a waiver holds for {} days at most; its owner can renew it", Waiver::LONGEST)),
        );
    }
    if !waiver.holds(known.today) {
        problems.push(
            Diagnostic::warning(
                Code::ExpiredWaiver,
                format!("the waiver of `{}` ended on {}", waiver.rule, waiver.expires),
            )
            .at(waiver.location.clone())
            .help("the rule applies again; remove the waiver, or have it renewed by its owner"),
        );
    }
    let Scope { dimensions, risk_levels, personas, .. } = &waiver.scope;
    if waiver.rule == Waiver::MISSING
        && (personas.is_empty() || !dimensions.is_empty() || !risk_levels.is_empty())
    {
        problems.push(
            Diagnostic::error(
                Code::NotTogether,
                "a waiver of `missing` is for personas who may be without a conversation, and for nothing else",
            )
            .at(waiver.location.clone())
            .help("write `scope: {personas: [...]}`; how many other conversations may be missing stands under `missing`"),
        );
    }
    if !waiver.scope.labels.is_empty() {
        problems.push(
            Diagnostic::error(Code::NotTogether, "a waiver cannot be limited to failure modes")
                .at(waiver.location.clone())
                .help("limit it to dimensions, risk levels or personas"),
        );
    }
    Some(waiver)
}

fn baseline(file: &mut Section<'_>, problems: &mut Diagnostics) -> BaselinePolicy {
    let mut policy = BaselinePolicy::default();
    if let Some(mut section) = file.section("baseline", problems) {
        policy.required = section.boolean("required", problems).unwrap_or(false);
        policy.max_age_days = section.small("max_age_days", 1..=3650, problems);
        section.finish(problems);
    }
    policy
}

fn missing(file: &mut Section<'_>, problems: &mut Diagnostics) -> MissingPolicy {
    let mut policy = MissingPolicy::default();
    if let Some(mut section) = file.section("missing", problems) {
        policy.max_share = section.number("max_share", 0.0..=1.0, problems).unwrap_or(policy.max_share);
        policy.max_share_high_risk =
            section.number("max_share_high_risk", 0.0..=1.0, problems).unwrap_or(policy.max_share_high_risk);
        section.finish(problems);
    }
    policy
}

#[cfg(test)]
mod tests;
