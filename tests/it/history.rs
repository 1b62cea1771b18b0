//! `vera-gate history`, as a person calls it.

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

fn vera_gate(folder: &Path, arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_vera-gate")).current_dir(folder).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A results file of 20 conversations with so many harmful ones.
fn results(folder: &Path, name: &str, harmful: usize) {
    let mut lines = vec!["filename,Guides to Human Care,Confirms Risk".to_owned()];
    for index in 0..20 {
        let rating = if index < harmful { "High Potential for Harm" } else { "Best Practice" };
        lines.push(format!("{index:06x}_P{index}_{name}_run1.txt,{rating},Not Relevant"));
    }
    std::fs::write(folder.join(format!("{name}.csv")), lines.join("\n") + "\n").unwrap();
}

#[test]
fn results_files_are_listed_and_charted_without_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["a", "b", "c", "d", "e", "f"];
    for (name, harmful) in names.iter().zip([2, 2, 2, 2, 2, 12]) {
        results(folder.path(), name, harmful);
    }
    let files: Vec<String> = names.iter().map(|name| format!("{name}.csv")).collect();
    let mut arguments = vec!["history"];
    arguments.extend(files.iter().map(String::as_str));
    let output = vera_gate(folder.path(), &arguments);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for part in [
        "6 results",
        "without fingerprints nobody knows whether these compare",
        "10.0 % (2/20)",
        "60.0 % (12/20)",
        "none relevant",
        // 0.2 * 0.6 + 0.8 * 0.1.
        "20.0 %",
        "more harm",
        "nothing is warned of",
    ] {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
    assert!(!out.contains("Warnings"), "{out}");

    arguments.extend(["--format", "csv"]);
    let table = text(&vera_gate(folder.path(), &arguments).stdout);
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    // Six runs, two dimensions and harm in any of them.
    assert_eq!(rows.len(), 18);
    let last = rows.iter().rev().find(|row| &row[8] == "Guides to Human Care").unwrap();
    assert_eq!(
        (&last[0], &last[3], &last[9], &last[10], &last[16]),
        ("f.csv", "unknown", "12", "20", "worse")
    );
}

#[test]
fn run_folders_and_the_baseline_blessed_from_one_count_once_and_compare() {
    let folder = tempfile::tempdir().unwrap();
    let personas = ["--persona", "Olumide", "--persona", "Marlowe", "--persona", "Kwame"];
    let sweep = [&personas[..], &["--max-messages", "4", "--quiet"]].concat();
    for (run, seed) in [("one", "1"), ("two", "2")] {
        let mut arguments = vec!["run", "--run", run, "--seed", seed];
        arguments.extend(&sweep);
        let output = vera_gate(folder.path(), &arguments);
        assert!(folder.path().join(run).join("verdict.json").is_file(), "{}", text(&output.stderr));
    }
    let blessed = vera_gate(folder.path(), &["baseline", "bless", "one", "--to", "b.json", "--force"]);
    assert!(folder.path().join("b.json").is_file(), "{}", text(&blessed.stderr));
    let output = vera_gate(folder.path(), &["history", "two", "b.json", "one", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["schema"], "vera-gate/history/v1");
    let runs = found["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2, "the baseline is run one: {found:#}");
    assert!(found["notes"][0].as_str().unwrap().contains("count once"), "{found:#}");
    assert!(runs.iter().all(|run| run["conversations"] == 3 && !run["verdict"].is_null()), "{found:#}");
    let segments = found["segments"].as_array().unwrap();
    assert_eq!((segments.len(), &segments[0]["fingerprints"]), (1, &"known".into()), "{found:#}");

    // Another length of conversation does not compare.
    let mut arguments = vec!["run", "--run", "three", "--seed", "3"];
    arguments.extend(personas);
    arguments.extend(["--max-messages", "6", "--quiet"]);
    vera_gate(folder.path(), &arguments);
    let output = vera_gate(folder.path(), &["history", "one", "two", "three"]);
    let out = text(&output.stdout);
    assert!(out.contains("Segment 2") && out.contains("starts anew: messages: `4` became `6`"), "{out}");
    assert!(out.contains("no trend: it needs 5 accepted runs"), "{out}");
}

#[test]
fn a_run_without_anything_relevant_gets_no_limits() {
    let folder = tempfile::tempdir().unwrap();
    for (name, harmful) in [("a", 2), ("b", 2), ("c", 2), ("d", 2), ("e", 2), ("f", 0)] {
        results(folder.path(), name, harmful);
    }
    let last = folder.path().join("f.csv");
    let all = std::fs::read_to_string(&last).unwrap().replace("Best Practice", "Not Relevant");
    std::fs::write(&last, all).unwrap();
    let names = ["a.csv", "b.csv", "c.csv", "d.csv", "e.csv", "f.csv"];
    let output = vera_gate(folder.path(), &[&["history"][..], &names].concat());
    let out = text(&output.stdout);
    let line = out.lines().find(|line| line.ends_with("nothing relevant")).unwrap_or_else(|| panic!("{out}"));
    // Anchor 10 of 100; neither an average nor limits are claimed of a run that measured nothing.
    assert!(line.contains("10.0 %") && !line.contains(" to "), "{line}");
}

#[test]
fn what_is_no_result_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("b.json"), "{\"schema\": \"vera-gate/baseline/v9\"}").unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    std::fs::write(folder.path().join("bad.csv"), "filename,A\n").unwrap();
    for (result, part) in [
        ("missing.json", "does not exist"),
        ("b.json", "baseline/v9"),
        ("empty", "run.json"),
        ("bad.csv", "no row"),
    ] {
        let output = vera_gate(folder.path(), &["history", result]);
        assert_eq!(output.status.code(), Some(2), "{result}");
        assert!(text(&output.stderr).contains(part), "{result}: {}", text(&output.stderr));
    }
    assert_eq!(vera_gate(folder.path(), &["history"]).status.code(), Some(2));
}
