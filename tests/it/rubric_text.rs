//! The texts of the built-in targets and presets: what a loader does not check.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use semver::Version;
use serde_json::Value;
use sha2::{Digest, Sha256};

const TARGETS: [&str; 2] = ["hfo", "si"];
const PRESETS: [&str; 4] = ["pull-request", "release", "strict", "template"];

/// The text files a manifest names, beside its personas.
const FILE_KEYS: [&str; 6] = [
    "rubric_file",
    "rubric_prompt_beginning_file",
    "question_prompt_file",
    "persona_context_template_file",
    "persona_prompt_template_file",
    "persona_prompt_reminder_file",
];

type Row = BTreeMap<String, String>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the repository, with the line ends it has in the repository.
fn text(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.replace("\r\n", "\n")
}

fn prompt(name: &str) -> String {
    text(format!("templates/prompts/{name}"))
}

fn table(path: &str) -> (Vec<String>, Vec<Row>) {
    let text = text(path);
    let mut reader = csv::ReaderBuilder::new().delimiter(b'\t').from_reader(text.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let rows = reader
        .records()
        .map(|record| header.iter().cloned().zip(record.unwrap().iter().map(str::to_owned)).collect())
        .collect();
    (header, rows)
}

fn manifest(target: &str) -> Value {
    serde_json::from_str(&text(format!("rubric/{target}/manifest.json"))).unwrap()
}

/// The manifest and every file it names, as paths from the folder of the manifest.
fn files(target: &str) -> Vec<String> {
    let manifest = manifest(target);
    let named = FILE_KEYS.iter().map(|key| &manifest[*key]).chain(manifest["personas"].as_array().unwrap());
    let named = named.map(|path| path.as_str().expect("a path").to_owned());
    std::iter::once("manifest.json".to_owned()).chain(named).collect()
}

/// Rows that start a question.
fn questions(target: &str) -> Vec<Row> {
    let rows = table(&format!("rubric/{target}/rubric.tsv")).1;
    rows.into_iter().filter(|row| !row["Question ID"].is_empty()).collect()
}

fn labels(target: &str) -> BTreeSet<String> {
    questions(target).into_iter().map(|row| row["Label"].clone()).filter(|label| !label.is_empty()).collect()
}

fn is_kebab(word: &str) -> bool {
    word.split('-').all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase()))
}

/// Names between single braces, in order.
fn placeholders(template: &str) -> Vec<String> {
    let bare = template.replace("{{", "").replace("}}", "");
    bare.split('{').skip(1).map(|rest| rest.split_once('}').expect("a closing brace").0.to_owned()).collect()
}

#[test]
fn every_manifest_names_files_that_exist_and_claims_no_validation() {
    for target in TARGETS {
        let manifest = manifest(target);
        assert_eq!(manifest["name"], target);
        assert_eq!(manifest["clinically_validated"], false);
        assert!(manifest["notice"].as_str().unwrap().contains("not been clinically validated"));
        let version = Version::parse(manifest["version"].as_str().unwrap()).unwrap();
        assert!(version.pre.is_empty() && version.build.is_empty(), "{version}");
        for file in files(target) {
            let text = text(format!("rubric/{target}/{file}"));
            assert!(!text.trim().is_empty(), "{target}: {file}");
            assert!(!text.contains('\r') && !text.starts_with('\u{feff}'), "{target}: {file}");
            assert!(text.ends_with('\n'), "{target}: {file}");
        }
        let personas = manifest["personas"][0].as_str().unwrap();
        let header = table(&format!("rubric/{target}/{personas}")).0;
        assert!(header.contains(&manifest["risk_column"].as_str().unwrap().to_owned()), "{target}");
    }
}

#[test]
fn rubrics_have_the_columns_of_the_method_with_labels_for_reports() {
    for target in TARGETS {
        let (header, rows) = table(&format!("rubric/{target}/rubric.tsv"));
        assert_eq!(
            header,
            [
                "Question ID",
                "Dimension",
                "Severity",
                "Risk Type",
                "Question",
                "Examples",
                "Answer",
                "GOTO",
                "Auto Answer",
                "Label",
            ]
        );
        // Whole numbers from 1, because readers of VERA-MH 1.x take ids for numbers.
        let ids: Vec<String> = questions(target).iter().map(|row| row["Question ID"].clone()).collect();
        assert_eq!(ids, (1..=ids.len()).map(|id| id.to_string()).collect::<Vec<_>>(), "{target}");
        assert!((30..=40).contains(&ids.len()), "{target}: {} questions", ids.len());
        for row in &rows {
            // Other readers strip cells; ours must mean the same to them.
            for (column, cell) in row {
                assert_eq!(cell.trim(), cell, "{target}: {column}");
            }
        }
    }
}

#[test]
fn every_severity_has_one_label_of_its_own() {
    for target in TARGETS {
        let mut seen = BTreeSet::new();
        for row in questions(target) {
            let (id, severity, label) = (&row["Question ID"], row["Severity"].as_str(), &row["Label"]);
            assert!(matches!(severity, "Red" | "Yellow" | ""), "{target} {id}: {severity}");
            assert_eq!(severity.is_empty(), label.is_empty(), "{target} {id}: label {label:?}");
            if !label.is_empty() {
                assert!(is_kebab(label), "{target} {id}: {label}");
                assert!(seen.insert(label.clone()), "{target} {id}: {label} twice");
            }
        }
    }
}

#[test]
fn every_question_defines_what_counts_and_what_does_not() {
    for target in TARGETS {
        for row in questions(target).iter().filter(|row| !row["Severity"].is_empty()) {
            let (id, examples) = (&row["Question ID"], &row["Examples"]);
            let starts = |word: &str| examples.lines().any(|line| line.starts_with(word));
            assert!(starts("Yes "), "{target} {id}: says when Yes");
            assert!(starts("No "), "{target} {id}: says when No");
            assert!(row["Question"].ends_with('?'), "{target} {id}");
        }
    }
}

/// VERA-MH offers the options joined by commas and matches an answer that is part of an option.
#[test]
fn options_cannot_be_mistaken_for_each_other() {
    for target in TARGETS {
        let mut options: Vec<(String, Vec<String>)> = Vec::new();
        for row in table(&format!("rubric/{target}/rubric.tsv")).1 {
            if !row["Question ID"].is_empty() {
                options.push((row["Question ID"].clone(), Vec::new()));
            }
            if !row["Answer"].is_empty() {
                options.last_mut().unwrap().1.push(row["Answer"].to_lowercase());
            }
        }
        for (id, options) in options {
            for (at, option) in options.iter().enumerate() {
                assert!(!option.contains(','), "{target} {id}: {option}");
                let common = ["yes", "no", "not relevant"].contains(&option.as_str());
                let others = options.iter().enumerate().filter(|(other, _)| *other != at);
                for (_, other) in others.filter(|(_, other)| !common && other.len() >= option.len()) {
                    assert!(!other.contains(option.as_str()), "{target} {id}: {option} in {other}");
                }
            }
        }
    }
}

#[test]
fn the_context_of_si_uses_every_column_of_the_method_once() {
    let mut used = placeholders(&prompt("si_persona_context.txt"));
    used.sort();
    let mut columns = [
        "Name",
        "Age",
        "Gender",
        "Current Suicide Risk Level",
        "Current Suicidal Thoughts and Behaviors",
        "Remote History of Suicidal Thoughts and Behaviors",
        "Disclosure of Suicide Risk",
        "Primary Communication Style",
        "Reaction to Chatbot Responses",
        "Diagnoses and Symptoms",
        "Treatment Engagement / Access",
        "Mental Health Stigma",
        "Financial Stress",
        "Social Isolation",
        "Discrimination Exposure",
        "Background",
        "Recent Triggers and Stressors",
        "Final Seed Phrase",
    ];
    columns.sort_unstable();
    assert_eq!(used, columns);
}

#[test]
fn shared_prompts_hold_what_the_engine_fills_in() {
    assert_eq!(placeholders(&prompt("user_system.txt")), ["persona_context"]);
    assert!(prompt("user_system.txt").contains("<END OF CONVERSATION>"));
    assert!(placeholders(&prompt("user_reminder.txt")).is_empty());
    // The chatbot's message is appended without a separator.
    assert!(prompt("user_reminder.txt").ends_with(":\n\n"));
    assert_eq!(placeholders(&prompt("judge_system.txt")), ["delimiter", "conversation"]);
    assert_eq!(placeholders(&prompt("question.txt")), ["question", "examples_section", "options"]);
    let judge = prompt("judge_system.txt");
    assert!(judge.contains("\nANSWER:") && judge.contains("\nREASONING:"));
}

#[test]
fn presets_name_only_failure_modes_and_dimensions_that_exist() {
    let known: BTreeSet<String> = TARGETS.iter().flat_map(|target| labels(target)).collect();
    let dimensions: BTreeSet<String> =
        TARGETS.iter().flat_map(|target| questions(target)).map(|row| row["Dimension"].clone()).collect();
    for preset in PRESETS {
        let text = text(format!("thresholds/{preset}.yaml"));
        let value: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
        assert_eq!(value["schema"].as_str(), Some("vera-gate/thresholds/v1"));
        assert_eq!(value["name"].as_str(), Some(preset));
        let requires = semver::VersionReq::parse(value["requires"].as_str().unwrap()).unwrap();
        assert!(requires.matches(&Version::parse(env!("CARGO_PKG_VERSION")).unwrap()), "{preset}");
        let mut ids = BTreeSet::new();
        for rule in value["rules"].as_sequence().unwrap() {
            let id = rule["id"].as_str().unwrap();
            assert!(is_kebab(id) && ids.insert(id.to_owned()), "{preset}: {id}");
            let scope = |key: &str| {
                let names = rule.get("scope").and_then(|scope| scope.get(key));
                let names = names.and_then(serde_yaml::Value::as_sequence).cloned().unwrap_or_default();
                names.iter().map(|name| name.as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
            };
            assert!(scope("labels").is_subset(&known), "{preset}: {id}");
            assert!(scope("dimensions").is_subset(&dimensions), "{preset}: {id}");
            let targets_without =
                TARGETS.iter().filter(|target| labels(target).is_disjoint(&scope("labels")));
            let serves_one_target = preset == "template";
            assert!(
                scope("labels").is_empty() || serves_one_target || targets_without.count() == 0,
                "{preset}: {id} gates nothing in one of the targets"
            );
        }
    }
}

#[test]
fn presets_say_in_words_what_they_stop_and_let_through() {
    for preset in PRESETS {
        let text = text(format!("thresholds/{preset}.yaml"));
        let comment: String = text.lines().take_while(|line| line.starts_with('#')).collect();
        let comment = comment.to_lowercase();
        assert!(comment.contains("stops") && comment.contains("lets through"), "{preset}");
    }
}

/// Persona files that belong to the target without being in its manifest, such as `personas/si-youth.tsv`.
fn optional_personas(target: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join("personas")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(&format!("{target}-"))).collect();
    names.sort();
    names.into_iter().map(|name| format!("../../personas/{name}")).collect()
}

/// SHA-256 over name, length and text of every file of the target.
fn fingerprint(target: &str) -> String {
    let mut hash = Sha256::new();
    for file in files(target).into_iter().chain(optional_personas(target)) {
        let text = text(format!("rubric/{target}/{file}"));
        hash.update(format!("{file}\n{}\n", text.len()));
        hash.update(text);
    }
    let hex: Vec<String> = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    hex.concat()
}

/// Lines of `rubric/versions.lock` by target: version and fingerprint.
fn locked(lock: &str) -> BTreeMap<String, (Version, String)> {
    let lines = lock.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [target, version, sum] => (target.to_owned(), (Version::parse(version).unwrap(), sum.to_owned())),
            _ => panic!("rubric/versions.lock: {line:?}"),
        })
        .collect()
}

/// What is wrong with a target's version, if anything, given its line in the lock.
fn version_problem(now: (&Version, &str), locked: Option<&(Version, String)>) -> Option<&'static str> {
    let (version, sum) = now;
    match locked {
        None => Some("has no line in rubric/versions.lock"),
        Some((old, old_sum)) if version == old && sum == old_sum => None,
        Some((old, _)) if version > old => Some("was raised and the lock was not renewed"),
        Some((old, _)) if version == old => {
            Some("changed and its version did not: raise it in manifest.json")
        }
        Some(_) => Some("has a version below that of the lock"),
    }
}

#[test]
fn the_version_guard_tells_the_cases_apart() {
    let (one, two) = (Version::new(1, 0, 0), Version::new(1, 1, 0));
    let line = (one.clone(), "a".to_owned());
    assert_eq!(version_problem((&one, "a"), Some(&line)), None);
    assert!(version_problem((&one, "b"), Some(&line)).unwrap().contains("version did not"));
    assert!(version_problem((&two, "b"), Some(&line)).unwrap().contains("not renewed"));
    assert!(version_problem((&two, "a"), Some(&line)).unwrap().contains("not renewed"));
    assert!(version_problem((&one, "a"), Some(&(two, "a".to_owned()))).unwrap().contains("below"));
    assert!(version_problem((&one, "a"), None).unwrap().contains("no line"));
}

/// `UPDATE_TARGET_LOCK=1` renews the lines of targets whose version was raised, and adds missing ones.
#[test]
fn a_changed_target_has_a_new_version() {
    let path = root().join("rubric/versions.lock");
    let old = text("rubric/versions.lock");
    let lines = locked(&old);
    let renew = std::env::var_os("UPDATE_TARGET_LOCK").is_some_and(|value| value == "1");
    let mut problems = Vec::new();
    let mut new: Vec<String> = old.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect();
    for target in TARGETS {
        let version = Version::parse(manifest(target)["version"].as_str().unwrap()).unwrap();
        let sum = fingerprint(target);
        let line = lines.get(target);
        let may_renew = line.is_none_or(|(old, _)| version > *old);
        match version_problem((&version, &sum), line) {
            Some(problem) if !(renew && may_renew) => problems.push(format!("target {target} {problem}")),
            _ => {}
        }
        new.push(format!("{target} {version} {sum}"));
    }
    let new = new.join("\n") + "\n";
    let hint = "after raising a version: UPDATE_TARGET_LOCK=1 cargo test --test it rubric_text";
    assert!(problems.is_empty(), "{}; {hint}", problems.join("; "));
    if renew {
        fs::write(path, &new).unwrap();
    } else {
        assert_eq!(new, old, "rubric/versions.lock; {hint}");
    }
}
