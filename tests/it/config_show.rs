//! `vera-gate config show`: which value counts and where it comes from (acceptance case B89).

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

const FILE: &str = "user: scripted/user\n\
                    candidate: scripted/careful\n\
                    judge: { model: openai/mock-j, extra_body: { stop: \"a,b\" } }\n\
                    sweep: { max_messages: 20, runs: 5 }\n";

fn show(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> assert_cmd::assert::Assert {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vera-gate"));
    command.current_dir(folder).args(["config", "show"]).args(arguments).envs(variables.iter().copied());
    command.assert()
}

fn with_file() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("c.yml"), FILE).unwrap();
    folder
}

fn settings(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Value {
    let mut all = vec!["--config", "c.yml", "--format", "json"];
    all.extend(arguments);
    let output = show(folder, &all, variables).success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

fn setting<'a>(all: &'a Value, key: &str) -> (&'a Value, String) {
    let list = all["settings"].as_array().unwrap();
    let found = list.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("no {key} in {all:#}"));
    let origin = &found["origin"];
    (
        &found["value"],
        format!("{} {}", origin["kind"].as_str().unwrap(), origin["name"].as_str().unwrap_or("")),
    )
}

#[test]
fn a_flag_beats_the_environment_beats_the_file_beats_the_default() {
    let folder = with_file();
    let all = settings(
        folder.path(),
        &["--runs", "2"],
        &[("VERA_GATE_MAX_MESSAGES", "6"), ("VERA_GATE_RUNS", "7")],
    );
    assert_eq!(setting(&all, "sweep.max_messages"), (&6.into(), "env VERA_GATE_MAX_MESSAGES".to_owned()));
    assert_eq!(setting(&all, "sweep.runs"), (&2.into(), "flag --runs".to_owned()));
    assert_eq!(setting(&all, "judge.model"), (&"openai/mock-j".into(), "file c.yml".to_owned()));
    assert_eq!(setting(&all, "concurrency.calls"), (&64.into(), "default ".to_owned()));
    // A comma inside a value stays where it is.
    assert_eq!(setting(&all, "judge.extra_body").0["stop"], "a,b");
    assert_eq!(all["configuration"], "c.yml");
}

#[test]
fn what_is_not_given_changes_nothing() {
    let folder = with_file();
    let plain = settings(folder.path(), &[], &[]);
    assert_eq!(setting(&plain, "sweep.runs"), (&5.into(), "file c.yml".to_owned()));
    // A workflow hands on an input that was not given as an empty variable.
    let names = [
        "RUNS",
        "MAX_MESSAGES",
        "SEED",
        "TARGET",
        "CANDIDATE",
        "USER",
        "JUDGE",
        "THRESHOLDS",
        "BASELINE",
        "OUT",
    ];
    let names: Vec<String> = names.iter().map(|name| format!("VERA_GATE_{name}")).collect();
    let empty: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    assert_eq!(settings(folder.path(), &[], &empty), plain);
}

#[test]
fn the_place_of_each_value_is_shown_in_words() {
    let folder = with_file();
    let output =
        show(folder.path(), &["--config", "c.yml", "--origin", "--judge", "scripted/judge"], &[]).success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let line = |key: &str| -> Vec<&str> {
        let found = text.lines().find(|line| line.split_whitespace().next() == Some(key));
        found.unwrap_or_else(|| panic!("no {key} in\n{text}")).split_whitespace().collect()
    };
    assert_eq!(line("sweep.max_messages"), ["sweep.max_messages", "20", "file", "c.yml:4"]);
    assert_eq!(line("judge.model"), ["judge.model", "scripted/judge", "flag", "--judge"]);
    assert_eq!(line("user.model"), ["user.model", "scripted/user", "file", "c.yml:1"]);
    assert_eq!(line("sweep.seed"), ["sweep.seed", "1", "default"]);
    // Another provider takes none of the settings of the configured one.
    assert!(!text.contains("extra_body"), "{text}");
}

#[test]
fn without_a_file_the_built_in_configuration_counts_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let output = show(folder.path(), &["--origin"], &[]).success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(text.starts_with("configuration: builtin:default\n"), "{text}");
    assert!(text.contains("file builtin:default:"), "{text}");
}

#[test]
fn unknown_keys_and_values_out_of_range_are_refused() {
    let folder = with_file();
    std::fs::write(folder.path().join("bad.yml"), format!("{FILE}roles: {{}}\n")).unwrap();
    let output = show(folder.path(), &["--config", "bad.yml"], &[]).code(2);
    let err = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(err.contains("unknown key `roles`") && err.contains("bad.yml:5:1"), "{err}");
    show(folder.path(), &["--config", "c.yml", "--runs", "0"], &[]).code(2);
    show(folder.path(), &["--config", "c.yml"], &[("VERA_GATE_RUNS", "many")]).code(2);
}
