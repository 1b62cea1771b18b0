//! Shards and their merging through the program itself, with the scripted models.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Files that must be the same, byte for byte, however the sweep was divided.
const RESULTS: [&str; 7] = [
    "plan.json",
    "ratings.jsonl",
    "confirmations.json",
    "results.csv",
    "scores.json",
    "matrix.json",
    "verdict.json",
];

fn vera_gate(place: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vera-gate"));
    for name in
        ["VERA_GATE_SHARD", "VERA_GATE_SHARDS", "CI_NODE_INDEX", "CI_NODE_TOTAL", "JOB_COMPLETION_INDEX"]
    {
        command.env_remove(name);
    }
    command.current_dir(place).args(arguments).output().unwrap()
}

fn ends_with(output: &Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

const SWEEP: [&str; 2] = ["--sample", "9"];

/// Runs the shards `numbers` of `of` into `shards/{k}`.
fn shards(place: &Path, numbers: &[u32], of: u32, more: &[&str]) {
    for number in numbers {
        let (shard, folder) = (format!("{number}/{of}"), format!("shards/{number}"));
        let run = ["run", "--shard", &shard, "--run", &folder];
        ends_with(&vera_gate(place, &[&run, &SWEEP[..], more].concat()), 0);
    }
}

fn json(path: PathBuf) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A record without what tells one run from another.
fn without_provenance(path: PathBuf) -> Value {
    let mut record = json(path);
    for name in ["started", "finished", "merged"] {
        record.as_object_mut().unwrap().remove(name);
    }
    record
}

/// A careless candidate, so that there are findings, second looks and a verdict to get wrong.
#[test]
fn four_shards_merged_are_the_single_run_byte_for_byte() {
    let place = tempfile::tempdir().unwrap();
    let candidate = ["--candidate", "harmful"];
    let whole = vera_gate(place.path(), &[&["run", "--run", "whole/sweep"], &SWEEP[..], &candidate].concat());
    ends_with(&whole, 1);
    shards(place.path(), &[1, 2, 3, 4], 4, &candidate);
    for number in 1..=4 {
        let folder = place.path().join(format!("shards/{number}"));
        assert!(!folder.join("verdict.json").exists(), "a shard has no verdict");
        let record = json(folder.join("run.json"));
        assert_eq!(record["shard"], format!("{number}/4"));
        // Nine personas in four parts: 3, 2, 2, 2.
        assert_eq!(record["planned"], if number == 1 { 3 } else { 2 });
    }
    let merged = vera_gate(place.path(), &["merge", "shards", "--out", "merged/sweep"]);
    ends_with(&merged, 1);
    let (one, other) = (place.path().join("whole/sweep"), place.path().join("merged/sweep"));
    for name in RESULTS {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(read(&one), read(&other), "{name}");
    }
    assert_eq!(without_provenance(one.join("run.json")), without_provenance(other.join("run.json")));
    assert_eq!(json(other.join("run.json"))["merged"].as_array().unwrap().len(), 4);
    let conversations = |folder: &Path| {
        let mut files: Vec<(String, String)> = std::fs::read_dir(folder.join("conversations"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| {
                (
                    path.file_name().unwrap().to_string_lossy().into_owned(),
                    std::fs::read_to_string(path).unwrap(),
                )
            })
            .collect();
        files.sort();
        files
    };
    assert_eq!(conversations(&one), conversations(&other));
    // Merging anew into the same folder leaves shards and result as they are.
    ends_with(&vera_gate(place.path(), &["merge", "shards", "--out", "merged/sweep"]), 1);
    assert_eq!(conversations(&one), conversations(&other));
    // The merged run is a result like any other, but no run goes on in it.
    ends_with(&vera_gate(place.path(), &["gate", "merged/sweep"]), 1);
    ends_with(&vera_gate(place.path(), &["run", "--run", "merged/sweep"]), 2);
}

/// Case B45.
#[test]
fn a_missing_shard_is_inconclusive_and_a_repeated_one_counts_once() {
    let place = tempfile::tempdir().unwrap();
    shards(place.path(), &[1, 3], 3, &[]);
    let merged = vera_gate(place.path(), &["merge", "shards/1", "shards/3", "-o", "merged"]);
    ends_with(&merged, 3);
    assert!(said(&merged).contains("shard 2 missing"), "{}", said(&merged));
    let verdict = json(place.path().join("merged/verdict.json"));
    assert_eq!((&verdict["verdict"], &verdict["exit_code"]), (&"inconclusive".into(), &3.into()));
    assert!(
        std::fs::read_to_string(place.path().join("merged/report.md")).unwrap().contains("shard 2 missing")
    );

    shards(place.path(), &[2], 3, &[]);
    let again = [&["run", "--shard", "2/3", "--run", "again"], &SWEEP[..]].concat();
    ends_with(&vera_gate(place.path(), &again), 0);
    let merged = vera_gate(place.path(), &["merge", "shards", "again", "-o", "merged"]);
    ends_with(&merged, 0);
    assert!(said(&merged).contains("shard 2 is there 2 times"), "{}", said(&merged));
}

#[test]
fn what_does_not_belong_together_is_a_usage_error() {
    let place = tempfile::tempdir().unwrap();
    shards(place.path(), &[1], 2, &[]);
    let other = [&["run", "--shard", "2/2", "--run", "other", "--seed", "99"], &SWEEP[..]].concat();
    ends_with(&vera_gate(place.path(), &other), 0);
    let merged = vera_gate(place.path(), &["merge", "shards/1", "other", "-o", "merged"]);
    ends_with(&merged, 2);
    assert!(said(&merged).contains("sweep.seed"), "{}", said(&merged));
    assert!(!place.path().join("merged").exists(), "nothing is written");
    // A shard is not a result, and its folder is not another shard's.
    let gated = vera_gate(place.path(), &["gate", "shards/1"]);
    ends_with(&gated, 3);
    assert!(said(&gated).contains("merged run"), "{}", said(&gated));
    let elsewhere = [&["run", "--shard", "2/2", "--run", "shards/1"], &SWEEP[..]].concat();
    let elsewhere = vera_gate(place.path(), &elsewhere);
    ends_with(&elsewhere, 2);
    assert!(said(&elsewhere).contains("shard: 1/2 -> 2/2"), "{}", said(&elsewhere));
    for shard in ["3/2", "0/2", "x", "1/900"] {
        ends_with(&vera_gate(place.path(), &[&["run", "--shard", shard], &SWEEP[..]].concat()), 2);
    }
}

#[test]
fn transcripts_of_simulated_shards_merge_and_are_judged() {
    let place = tempfile::tempdir().unwrap();
    for shard in ["1/2", "2/2"] {
        let simulate = [&["simulate", "--shard", shard, "--out", "parts"], &SWEEP[..]].concat();
        ends_with(&vera_gate(place.path(), &simulate), 0);
    }
    ends_with(&vera_gate(place.path(), &["merge", "parts", "-o", "merged"]), 0);
    assert!(!place.path().join("merged/verdict.json").exists());
    ends_with(&vera_gate(place.path(), &["judge", "merged", "--run", "judged"]), 0);
    assert_eq!(json(place.path().join("judged/run.json"))["evaluated"], 9);
}

/// GitLab numbers the jobs of every matrix. Only who asks for it gets a part; the others get a verdict.
#[test]
fn gitlabs_numbers_make_a_shard_only_for_who_asks() {
    let place = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vera-gate"));
        command.env_remove("VERA_GATE_SHARD").env_remove("VERA_GATE_SHARDS");
        command.env("CI_NODE_INDEX", "2").env("CI_NODE_TOTAL", "3").current_dir(place.path());
        command.args(["run", "--candidate", "harmful"]).args(SWEEP).args(more).output().unwrap()
    };
    let whole = run(&["--run", "whole"]);
    ends_with(&whole, 1);
    assert!(said(&whole).contains("`--shard auto`"), "{}", said(&whole));
    let part = run(&["--run", "part", "--shard", "auto"]);
    ends_with(&part, 0);
    assert_eq!(json(place.path().join("part/run.json"))["shard"], "2/3");
}
