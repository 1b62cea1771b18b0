//! What a name on the command line means to `check`: decided by its form and its content, never by where it lies.

use std::path::Path;

use crate::baseline;
use crate::config::yaml::{self, Value};
use crate::config::{self, FILE_NAMES};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::gate::thresholds;
use crate::run::{RUN_FILE, RunFolder};
use crate::source::{FileSet, Source};
use crate::target::embedded;

/// Kind of input, with the text of a file that was read to find out.
#[derive(Debug)]
pub(super) enum Kind {
    /// A target, or a table of one.
    Target,
    /// A configuration file.
    Configuration,
    /// A thresholds file.
    Thresholds(Source),
    /// A baseline file.
    Baseline(Source),
    /// `git:REF:PATH`, which only a baseline is named by.
    GitBaseline,
    /// A VERA-MH results file.
    Results,
    /// A run folder.
    Run,
}

/// Keys that only a thresholds file has at its top.
const OF_THRESHOLDS: [&str; 5] = ["rules", "waivers", "inconclusive", "advisory_only", "missing"];
/// Keys that only a configuration has at its top.
const OF_CONFIGURATION: [&str; 13] = [
    "target",
    "persona_files",
    "user",
    "users",
    "candidate",
    "judge",
    "judging",
    "sweep",
    "concurrency",
    "budget",
    "gate",
    "report",
    "out",
];

/// Finds out what is meant.
pub(super) fn of(reference: &str, files: &FileSet) -> Result<Kind, Diagnostics> {
    if reference.starts_with("builtin:") {
        return builtin(reference);
    }
    if reference.starts_with("git:") {
        return Ok(Kind::GitBaseline);
    }
    let path = Path::new(reference);
    if path.is_dir() {
        return Ok(if RunFolder::at(path).path().join(RUN_FILE).is_file() {
            Kind::Run
        } else {
            Kind::Target
        });
    }
    if !path.exists() {
        return absent(reference);
    }
    if has_extension(path, &["tsv"]) {
        return Ok(Kind::Target);
    }
    let source = files.read(reference).map_err(|error| {
        Diagnostics::from(Diagnostic::error(Code::Unreadable, error.to_string()).help(EXPECTED))
    })?;
    let text = source.text().trim_start();
    if text.starts_with('{') || has_extension(path, &["json"]) {
        return json(source);
    }
    if has_extension(path, &["csv"]) || text.lines().next().is_some_and(|line| line.starts_with("filename,"))
    {
        return csv(&source);
    }
    if has_extension(path, &["yaml", "yml"]) {
        return yaml(source);
    }
    Err(unknown(&source, "this is no file that a run reads, as far as its name tells"))
}

const EXPECTED: &str = "give a target folder, rubric.tsv, personas.tsv, a configuration or thresholds file (.yaml), a \
    baseline (.json), a results.csv, a run folder, or the name of something built in";

fn has_extension(path: &Path, wanted: &[&str]) -> bool {
    path.extension().is_some_and(|end| wanted.iter().any(|one| end.eq_ignore_ascii_case(one)))
}

fn unknown(source: &Source, message: &str) -> Diagnostics {
    Diagnostic::error(Code::UnknownWord, message).at(source.at(1, 1)).help(EXPECTED).into()
}

/// A name under which nothing lies: a built-in target may be called by its name alone, and thresholds nearly so.
fn absent(reference: &str) -> Result<Kind, Diagnostics> {
    if embedded::TARGETS.iter().any(|(name, _)| *name == reference) {
        return Ok(Kind::Target);
    }
    let full = format!("builtin:{reference}");
    let help = match thresholds::builtin(&full) {
        Some(_) => format!("did you mean `{full}`?"),
        None => EXPECTED.to_owned(),
    };
    Err(Diagnostic::error(Code::Unreadable, format!("`{reference}` does not exist")).help(help).into())
}

fn builtin(reference: &str) -> Result<Kind, Diagnostics> {
    if let Some(source) = thresholds::builtin(reference) {
        return Ok(Kind::Thresholds(source));
    }
    let targets: Vec<String> = embedded::TARGETS.iter().map(|(name, _)| format!("builtin:{name}")).collect();
    if targets.iter().any(|name| name == reference) {
        return Ok(Kind::Target);
    }
    let names = targets.iter().map(String::as_str).chain(thresholds::BUILTIN.iter().map(|(name, _)| *name));
    Err(Diagnostic::error(Code::UnknownWord, format!("nothing built in is called `{reference}`"))
        .help(did_you_mean(reference, names))
        .into())
}

fn json(source: Source) -> Result<Kind, Diagnostics> {
    let value: serde_json::Value = serde_json::from_str(source.text()).map_err(|error| {
        Diagnostics::from(
            Diagnostic::error(Code::Syntax, format!("this is no JSON: {error}"))
                .at(source.at(error.line().max(1), error.column().max(1)))
                .help("a file that a merge or an editor cut off is best taken from git again"),
        )
    })?;
    let schema = value.get("schema").and_then(serde_json::Value::as_str).unwrap_or_default();
    let ours = |word: &str| schema.starts_with(&format!("vera-gate/{word}/"));
    if ours("baseline")
        || (schema.is_empty() && value.get("conversations").is_some() && value.get("dimensions").is_some())
    {
        return Ok(Kind::Baseline(source));
    }
    if schema.starts_with("vera-gate/") {
        let message = format!("this is a file of a run (`{schema}`), which nobody writes by hand");
        return Err(Diagnostic::error(Code::UnknownWord, message)
            .at(source.at(1, 1))
            .help("give its run folder; `vera-gate gate FOLDER` and `vera-gate report FOLDER` read one")
            .into());
    }
    // What is left is a manifest, whose reader says what a manifest must hold.
    if value.get("rubric").is_some() || source.name().ends_with("manifest.json") {
        return Ok(Kind::Target);
    }
    Err(unknown(
        &source,
        &format!("this JSON is no baseline (`schema: {}`) and no manifest of a target", baseline::SCHEMA),
    ))
}

fn csv(source: &Source) -> Result<Kind, Diagnostics> {
    let header = source.line(1).to_owned();
    let has = |name: &str| header.split(',').any(|column| column.trim().trim_matches('"') == name);
    if has("clinician_id") || has("rater_id") {
        return Err(Diagnostic::error(Code::UnknownWord, "this is a file of human ratings")
            .at(source.at(1, 1))
            .help("`vera-gate calibrate --ratings FILE` reads and checks it")
            .into());
    }
    Ok(Kind::Results)
}

fn yaml(source: Source) -> Result<Kind, Diagnostics> {
    let mut problems = Diagnostics::new();
    let Some(node) = yaml::parse(&source, &mut problems) else { return Err(problems) };
    let Value::Map(entries) = &node.value else {
        return Err(unknown(&source, "this is no mapping, and every YAML file of vera-gate is one"));
    };
    let schema =
        entries.iter().find(|(key, _)| key.text == "schema").and_then(|(_, node)| match &node.value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        });
    let of_kind = |own: &str| {
        let family = own.rsplit_once('/').map_or(own, |(family, _)| family);
        schema.is_some_and(|given| given.starts_with(family))
    };
    let count = |keys: &[&str]| entries.iter().filter(|(key, _)| keys.contains(&key.text.as_str())).count();
    let (policy, configuration) = (count(&OF_THRESHOLDS), count(&OF_CONFIGURATION));
    if of_kind(thresholds::SCHEMA) || (!of_kind(config::SCHEMA) && policy > configuration) {
        return Ok(Kind::Thresholds(source));
    }
    let named = FILE_NAMES
        .iter()
        .any(|name| Path::new(source.name()).ends_with(Path::new(name).file_name().unwrap_or_default()));
    if of_kind(config::SCHEMA) || configuration > 0 || named {
        return Ok(Kind::Configuration);
    }
    let message =
        "this YAML is neither a configuration (`user`, `candidate`, `judge`) nor a thresholds file (`rules`)";
    Err(Diagnostic::error(Code::UnknownWord, message)
        .at(source.at(1, 1))
        .help(format!("begin it with `schema: {}` or `schema: {}`", config::SCHEMA, thresholds::SCHEMA))
        .into())
}
