//! The committed JSON Schemas say what the parsers do: every shipped file validates, and on a table of good and broken
//! documents schema and parser agree. What the program writes is checked in [`written`].

mod samples;
mod shown;
mod written;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use jsonschema::Validator;
use semver::Version;
use serde_json::Value;
use vera_gate::config::{Config, yaml};
use vera_gate::diagnostic::Diagnostics;
use vera_gate::gate::{Known, Thresholds};
use vera_gate::source::Source;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// A committed schema by its short name.
fn schema(name: &str) -> Value {
    let path = root().join("docs/schema").join(format!("{name}.schema.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

fn validator(schema: &Value) -> Validator {
    jsonschema::meta::validate(schema).unwrap_or_else(|error| panic!("no valid schema: {error}"));
    jsonschema::options().should_validate_formats(true).build(schema).unwrap()
}

/// A YAML text as JSON, read as the parsers read it.
fn json_of(text: &str) -> Value {
    let mut problems = Diagnostics::new();
    let node = yaml::parse(&Source::new("case.yaml", text), &mut problems);
    node.and_then(|node| node.to_json()).unwrap_or_else(|| panic!("not readable:\n{text}\n{problems}"))
}

fn faults(validator: &Validator, document: &Value) -> String {
    let list = validator.iter_errors(document).map(|e| format!("{}: {e}", e.instance_path()));
    list.collect::<Vec<_>>().join("\n")
}

fn parse_config(text: &str) -> Result<(), String> {
    Config::parse(&Source::new("case.yaml", text)).map(drop).map_err(|problems| problems.to_string())
}

fn parse_thresholds(text: &str) -> Result<(), String> {
    let known = Known {
        dimensions: None,
        labels: None,
        personas: None,
        tool_version: &Version::new(0, 1, 0),
        today: NaiveDate::from_ymd_opt(2026, 10, 1).unwrap(),
    };
    Thresholds::parse(&Source::new("case.yaml", text), &known)
        .map(drop)
        .map_err(|problems| problems.to_string())
}

/// Every YAML file below a folder, with its text.
fn yaml_files(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_shipped_yaml_file_validates() {
    let config = validator(&schema("config"));
    let thresholds = validator(&schema("thresholds"));
    let (mut configs, mut policies) = (0, 0);
    for folder in ["templates", "thresholds", "examples", "docs"] {
        for (path, text) in yaml_files(folder) {
            let (kind, validator) = if text.contains("vera-gate/config/v1") {
                (&mut configs, &config)
            } else if text.contains("vera-gate/thresholds/v1") {
                (&mut policies, &thresholds)
            } else {
                // Workflows and the like.
                continue;
            };
            *kind += 1;
            let faults = faults(validator, &json_of(&text));
            assert!(faults.is_empty(), "{}:\n{faults}", path.display());
        }
    }
    assert!(configs >= 1 && policies >= 4, "{configs} configurations, {policies} thresholds files");
}

/// Whether a document is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Good,
    Bad,
}

use Is::{Bad, Good};

fn agree(name: &str, cases: &[(Is, &str)], head: &str, parse: fn(&str) -> Result<(), String>) {
    let validator = validator(&schema(name));
    for (is, case) in cases {
        let text = format!("{head}{case}\n");
        let parsed = parse(&text);
        let faults = faults(&validator, &json_of(&text));
        let expected = *is == Good;
        assert_eq!(parsed.is_ok(), expected, "the parser, on\n{text}\n{parsed:?}");
        assert_eq!(faults.is_empty(), expected, "the schema, on\n{text}\n{faults}");
    }
}

const ROLES: &str = "user: scripted/user\ncandidate: scripted/careful\njudge: scripted/judge\n";

#[test]
fn the_schema_of_the_configuration_agrees_with_its_parser() {
    let cases = [
        (Good, ""),
        (Good, "schema: vera-gate/config/v1"),
        (Bad, "schema: vera-gate/config/v2"),
        (Bad, "schema: 1"),
        (Bad, "rubric: x"),
        (Good, "target: ./mine\npersona_files: [a.tsv, b.tsv]"),
        (Good, "persona_files: a.tsv"),
        (Bad, "persona_files: [[a]]"),
        (Bad, "target: [a]"),
        (Good, "sweep:"),
        (Good, "sweep: { runs: 2, max_messages: 20, first_speaker: chatbot, curtail: early-pass, seed: 0 }"),
        (
            Good,
            "sweep: { first_message: hello, start_prompt: Say hello., personas: Alix, risk_levels: [High] }",
        ),
        (Bad, "sweep: { runs: 0 }"),
        (Bad, "sweep: { runs: 2.5 }"),
        (Bad, "sweep: { runs: '2' }"),
        (Bad, "sweep: { rans: 2 }"),
        (Bad, "sweep: { max_messages: 1 }"),
        (Bad, "sweep: { first_speaker: bot }"),
        (Bad, "sweep: { first_message: '  ' }"),
        (Bad, "sweep: { personas: [] }"),
        (Bad, "sweep: { seed: -1 }"),
        (Bad, "sweep: [1]"),
        (Good, "judging: { reasks: 0, ahead: all, confirm: { model: a/b } }"),
        (Bad, "judging: { ahead: everything }"),
        (Bad, "judging: { confirm: {} }"),
        (Bad, "judging: { confirm: { model: a, instances: 2 } }"),
        (Good, "concurrency: { calls: 1 }\nbudget: { dollars: 2.5, tokens: 1000, calls: 10, time: 2h }"),
        (Bad, "concurrency: { calls: 0 }"),
        (Bad, "budget: { dollars: 0 }"),
        (Bad, "budget: { time: 5 parsecs }"),
        (Bad, "budget: { time: -1 }"),
        (Good, "budget: { time: 90 }"),
        (Good, "budget: { time: 1.5 min }"),
        (Bad, "budget: { time: true }"),
        (Good, "gate: { thresholds: t.yaml, baseline: 'git:main:b.json', last_accepted: run }"),
        (Bad, "gate: { treshold: x }"),
        (Good, "report: { evidence: none, name: bot }"),
        (Bad, "report: { evidence: all }"),
        (Good, "out: runs\nprices:"),
        (Bad, "out: true"),
    ];
    agree("config", &cases, ROLES, parse_config);
}

#[test]
fn the_schema_of_a_role_agrees_with_its_parser() {
    let cases = [
        (Good, "candidate: openai/gpt-6-luna"),
        (Good, "candidate: [openai/gpt-6-luna]"),
        (Bad, "candidate: [a/b, c/d]"),
        (Bad, "candidate: []"),
        (Bad, "candidate:"),
        (Bad, "candidate: 5"),
        (Bad, "candidate: {}"),
        (Bad, "candidate: { model: }"),
        (Bad, "candidate: { provider: openai }"),
        (Good, "candidate: { model: 4 }"),
        (Good, "candidate: { model: a, name: ours, system_prompt: Be kind. }"),
        (Bad, "candidate: { model: a, system_prompt: x, system_prompt_file: y }"),
        (Good, "candidate: { model: a, system_prompt: x, system_prompt_file: }"),
        (Bad, "candidate: { model: a, instances: 2 }"),
        (Good, "candidate: { model: a, api: responses, effort: high, temperature: 0, top_p: 1, seed: 3 }"),
        (Bad, "candidate: { model: a, api: completions }"),
        (Bad, "candidate: { model: a, effort: hard }"),
        (Bad, "candidate: { model: a, temperature: 3 }"),
        (Bad, "candidate: { model: a, temperature: warm }"),
        (
            Good,
            "candidate: { model: a, headers: { a: b, n: 1, t: true }, env: KEY, extra_body: { a: [null] } }",
        ),
        (Bad, "candidate: { model: a, headers: { a: } }"),
        (Bad, "candidate: { model: a, extra_body: [1] }"),
        (Good, "candidate: { model: a, capabilities: { sampling: false, effort: [] } }"),
        (Good, "candidate: { model: a, capabilities: { effort: low } }"),
        (Bad, "candidate: { model: a, capabilities: { effort: [most] } }"),
        (Bad, "candidate: { model: a, capabilities: { vision: true } }"),
        (Good, "candidate: { model: a, timeout: 30s, max_retries: 0, max_concurrency: 1, pinned: true }"),
        (Bad, "candidate: { model: a, max_concurrency: 0 }"),
        (Bad, "candidate: { model: a, pinned: 'yes' }"),
        (Bad, "candidate: { model: a, tempreature: 1 }"),
        (Good, "candidate: { provider: http, http: { turn: { url: 'https://bot.example' } } }"),
        (Bad, "candidate: { provider: http, http: {} }"),
        (Bad, "candidate: { provider: http, http: { turn: } }"),
        (Bad, "candidate: { provider: http, http: { turn: {} } }"),
        (Bad, "candidate: { provider: http, http: { turn: { url: u, verb: GET } } }"),
        (
            Good,
            "candidate: { provider: http, http: { turn: { url: u }, reply: [/a], stream: { delta: /d, end_data: x } } }",
        ),
        (Bad, "candidate: { provider: http, http: { turn: { url: u }, stream: { kind: sse } } }"),
        (
            Bad,
            "candidate: { provider: http, http: { turn: { url: u }, stream: { delta: /d, end_data: x, end_event: y } } }",
        ),
        (Good, "candidate: { provider: command, command: { argv: ./bot, lifetime: shared } }"),
        (Good, "candidate: { provider: command, command: { argv: [./bot, --ci] } }"),
        (Bad, "candidate: { provider: command, command: { argv: [] } }"),
        (Bad, "candidate: { provider: command, command: { directory: x } }"),
    ];
    agree("config", &cases, "user: scripted/user\njudge: scripted/judge\n", parse_config);
    let cases = [
        (Good, "judge: { model: a, instances: 3 }\nuser: [a/b, { model: c, timeout: 2m }]"),
        (Bad, "judge: { model: a, instances: 0 }\nuser: a"),
        (Bad, "judge: { model: a, name: x }\nuser: a"),
        (Bad, "judge: a\nuser: []"),
        (Bad, "judge: a\nuser: [[a]]"),
        (Bad, "judge: a"),
    ];
    agree("config", &cases, "candidate: scripted/careful\n", parse_config);
}

const RULE: &str = "rules:\n  - { id: never, kind: never, tier: block }\n";

#[test]
fn the_schema_of_thresholds_agrees_with_their_parser() {
    let cases = [
        (Good, ""),
        (Good, "schema: vera-gate/thresholds/v1\nname: ours\nrequires: '>=0.1, <1'\ninconclusive: warn"),
        (Bad, "schema: vera-gate/thresholds/v2"),
        (Bad, "inconclusive: fail"),
        (Bad, "advisory_only: 'no'"),
        (Bad, "rule: []"),
        (Good, "waivers: []"),
        (
            Good,
            "waivers:\n- { rule: never, reason: r, owner: o, expires: 2027-01-01, scope: { personas: [A] } }",
        ),
        (
            Good,
            "waivers:\n- { rule: missing, scope: { personas: [P] }, reason: r, owner: o, expires: 2027-01-01 }",
        ),
        (Bad, "waivers:\n- { rule: missing, reason: r, owner: o, expires: 2027-01-01 }"),
        (
            Bad,
            "waivers:\n- { rule: missing, scope: { risk_levels: [High] }, reason: r, owner: o, expires: 2027-01-01 }",
        ),
        (Bad, "waivers:\n- { rule: never, reason: r, owner: o }"),
        (Bad, "waivers:\n- { rule: never, reason: ' ', owner: o, expires: 2027-01-01 }"),
        (Bad, "waivers:\n- { rule: never, reason: r, owner: o, expires: 1st of May }"),
        (Bad, "waivers:\n- { rule: never, reason: r, owner: o, expires: 2027-02-30 }"),
        (
            Bad,
            "waivers:\n- { rule: never, reason: r, owner: o, expires: 2027-01-01, scope: { labels: [x] } }",
        ),
        (Bad, "waivers: none"),
        (Good, "baseline: { required: true, max_age_days: 90 }\nmissing: { max_share: 0.1 }"),
        (Bad, "baseline: { max_age_days: 0 }"),
        (Bad, "missing: { max_share: 5 }"),
        (Bad, "missing: { share: 0.1 }"),
    ];
    agree("thresholds", &cases, RULE, parse_thresholds);
}

#[test]
fn the_schema_of_a_rule_agrees_with_its_parser() {
    let cases = [
        (Good, "{ id: a, kind: never, tier: block, confirm: { draws: 3, agree: 2 } }"),
        (
            Good,
            "{ id: a, kind: never, tier: warn, scope: { labels: [x], risk_levels: [Immediate], personas: A } }",
        ),
        (Bad, "{ id: a, kind: never, tier: warn, scope: { risk_levels: [Imminent] } }"),
        (Bad, "{ id: a, kind: never, tier: warn, scope: { persona: [A] } }"),
        (Bad, "{ id: a, kind: never, tier: block, confirm: { draws: 3 } }"),
        (Bad, "{ id: a, kind: never, tier: block, confirm: { draws: 16, agree: 2 } }"),
        (Bad, "{ id: a, kind: never, tier: block, limit: 0.1 }"),
        (Bad, "{ id: a, kind: never, tier: block, each: dimension }"),
        (Good, "{ id: a, kind: never, tier: block, each: }"),
        (Bad, "{ id: A, kind: never, tier: block }"),
        (Bad, "{ id: missing, kind: never, tier: block }"),
        (Bad, "{ kind: never, tier: block }"),
        (Bad, "{ id: a, tier: block }"),
        (Bad, "{ id: a, kind: never }"),
        (Bad, "{ id: a, kind: never, tier: stop }"),
        (Bad, "{ id: a, kind: nver, tier: block }"),
        (Good, "{ id: a, kind: max_harm, tier: block, limit: 0.1, each: dimension, scope: { labels: [x] } }"),
        (
            Good,
            "{ id: a, kind: max_harm, tier: block, limit: 0.1, bound: upper, confidence: 0.9, inference: population }",
        ),
        (Bad, "{ id: a, kind: max_harm, tier: block, limit: 0, bound: upper }"),
        (Bad, "{ id: a, kind: min_best_practice, tier: block, limit: 1, bound: upper }"),
        (Bad, "{ id: a, kind: max_harm, tier: block }"),
        (Bad, "{ id: a, kind: max_harm, tier: block, limit: }"),
        (Bad, "{ id: a, kind: max_harm, tier: block, limit: 5 }"),
        (Bad, "{ id: a, kind: max_harm, tier: block, limit: 5 % }"),
        (Bad, "{ id: a, kind: max_harm, tier: block, limit: 0.1, confidence: 0.9 }"),
        (Bad, "{ id: a, kind: max_harm, tier: block, limit: 0.1, bound: point, inference: population }"),
        (Bad, "{ id: a, kind: max_harm, tier: block, limit: 0.1, bound: upper, confidence: 95 }"),
        (Bad, "{ id: a, kind: max_harm, tier: block, limit: 0.1, each: risk_level }"),
        (Good, "{ id: a, kind: min_best_practice, tier: warn, limit: 0.5 }"),
        (Bad, "{ id: a, kind: min_best_practice, tier: warn, limit: 0.5, scope: { labels: [x] } }"),
        (Good, "{ id: a, kind: min_best_practice, tier: warn, limit: 0.5, scope: { labels: [] } }"),
        (Good, "{ id: a, kind: regression, tier: block }"),
        (
            Good,
            "{ id: a, kind: regression, tier: block, test: mcnemar, alpha: 0.1, correction: none, floor: 0, exact: true, margin: 0.1, min_personas: 5, overall: true }",
        ),
        (Bad, "{ id: a, kind: regression, tier: block, test: t-test }"),
        (Bad, "{ id: a, kind: regression, tier: block, alpha: 0 }"),
        (Bad, "{ id: a, kind: regression, tier: block, limit: 0.1 }"),
        (Good, "{ id: a, kind: new_failure_mode, tier: block, scope: { labels: x } }"),
        (
            Good,
            "{ id: a, kind: max_not_relevant_shift, tier: warn, limit: 0.1, alpha: 0.05, each: dimension }",
        ),
        (Good, "{ id: a, kind: score_drop, tier: warn, limit: 50 }"),
        (Bad, "{ id: a, kind: score_drop, tier: block, limit: 50 }"),
        (Bad, "{ id: a, kind: score_drop, tier: warn, limit: 101 }"),
        (Good, "{ id: a, kind: coverage, tier: block, limit: 0.9 }"),
        (Bad, "{ id: a, kind: coverage, tier: block, limit: 0.9, each: dimension }"),
        (Good, "{ id: a, kind: max_unjudged, tier: block, limit: 0.9, each: dimension }"),
        (Good, "{ id: a, kind: max_role_break, tier: block, limit: 0.9 }"),
        (Good, "{ id: a, kind: min_relevant, tier: block, limit: 0.9, scope: { risk_levels: High } }"),
        (Bad, "{ id: a, kind: min_relevant, tier: block, limit: 0.9, scope: { labels: x } }"),
        (Bad, "never"),
    ];
    agree("thresholds", &cases, &format!("{RULE}  - "), parse_thresholds);
}

/// The keys of the objects in a schema, as `sweep.runs`.
fn keys(schema: &Value, path: &str, into: &mut BTreeSet<String>) {
    for (key, value) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        keys(value, &path, into);
        into.insert(path);
    }
}

#[test]
fn every_key_has_a_description() {
    fn described(schema: &Value, path: &str) {
        for (key, value) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let path = format!("{path}/{key}");
            // Conditions on a key that is described elsewhere hold no type of their own.
            let condition = value.get("const").is_some() || value.get("not").is_some();
            assert!(condition || value["description"].is_string(), "{path} has no description");
            described(value, &path);
        }
    }
    for name in ["config", "thresholds"] {
        let schema = schema(name);
        described(&schema, name);
        for definition in ["model", "rule", "waiver"] {
            described(&schema["$defs"][definition], definition);
        }
        let mut found = BTreeSet::new();
        keys(&schema, "", &mut found);
        assert!(found.len() > 8, "{name}: {found:?}");
    }
}
