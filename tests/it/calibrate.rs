//! `vera-gate calibrate`, as a person calls it.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/calibrate").join(name)
}

fn calibrate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vera-gate"));
    command.arg("calibrate").args(arguments).args(["--resamples", "100"]);
    command
}

fn json_of(arguments: &[&str]) -> Value {
    let output = calibrate(arguments).args(["--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The published ratings beside the repository, if they are there.
fn published() -> Option<String> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let data = std::env::var_os("VERA_GATE_DATA").map_or(beside, PathBuf::from);
    let file = data.join("human-validation/clinician_ratings_2025-12.csv");
    if file.is_file() {
        return Some(file.to_string_lossy().into_owned());
    }
    eprintln!("SKIPPED: {} is not there; set VERA_GATE_DATA", file.display());
    None
}

fn near(value: &Value, expected: f64, tolerance: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() < tolerance, "{value} instead of {expected}");
}

#[test]
fn ratings_and_judge_are_shown_in_words() {
    let ratings = fixture("ratings.csv");
    let results = fixture("results.csv");
    let output = calibrate(&["--ratings", &ratings.to_string_lossy(), "--judge", &results.to_string_lossy()])
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{err}");
    assert!(err.contains("`'#c3` is read as `c3`"), "{err}");
    for part in [
        "4 conversations, 3 raters, 12 ratings",
        "group `a` alone",
        // By hand in the unit tests: 2/3, alpha 0.511, AC1 0.579.
        "0.667 [",
        "0.511 [",
        "0.579 [",
        "Judge `j` against the majority of the humans: 4 conversations in common, 0 without the judge, 1 without humans",
        "0.500 (1 of 2) [0.01, 0.99]",
        "tell nothing about harm",
        "Agreement is no validation",
    ] {
        assert!(out.contains(part), "{part} is not in\n{out}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let ratings = fixture("ratings.csv");
    let bytes = |seed: &str| {
        calibrate(&["--ratings", &ratings.to_string_lossy(), "--seed", seed]).output().unwrap().stdout
    };
    assert_eq!(bytes("3"), bytes("3"));
    assert_ne!(bytes("3"), bytes("4"));
}

#[test]
fn broken_ratings_are_refused_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.csv");
    let text = std::fs::read_to_string(fixture("ratings.csv")).unwrap();
    std::fs::write(&file, text.replace("c4,None,Best Practice", "c4,None,Best Practise")).unwrap();
    let output = calibrate(&["--ratings", &file.to_string_lossy()]).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(err.contains("bad.csv:13:1") && err.contains("did you mean `Best Practice`?"), "{err}");
    assert!(output.stdout.is_empty());
}

#[test]
fn one_rater_alone_agrees_with_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.csv");
    std::fs::write(&file, "rater,conversation_id,guides\na,c1,Best Practice\n").unwrap();
    let file = file.to_string_lossy();
    assert_eq!(calibrate(&["--ratings", &file]).output().unwrap().status.code(), Some(2));
    let results = fixture("results.csv");
    let output = calibrate(&["--ratings", &file, "--judge", &results.to_string_lossy()]).output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("no agreement among humans to report"));
}

/// Published and recomputed numbers of the December 2025 ratings: statistics.md, section 1 and section 5.
#[test]
fn the_published_ratings_give_the_published_agreement() {
    let Some(file) = published() else { return };
    let found = json_of(&["--ratings", &file]);
    assert_eq!(found["schema"], "vera-gate/calibration/v1");
    assert_eq!((&found["conversations"], &found["blank"]), (&90.into(), &0.into()));
    let pooled = &found["humans"]["pooled"];
    assert_eq!(pooled["items"], 450);
    near(&pooled["alpha"]["value"], 0.765_204_787_703, 1e-12);
    near(&pooled["ac1"]["value"], 0.776_614_746_967, 1e-12);
    near(&pooled["percent"]["value"], 0.830_370_370_370, 1e-12);
    // Bootstrap intervals of another program with 2000 resamples; 100 resamples settle the second decimal roughly.
    near(&pooled["alpha"]["lower"], 0.711, 0.025);
    near(&pooled["alpha"]["upper"], 0.818, 0.025);
    let guides = &found["humans"]["dimensions"][2];
    assert_eq!(guides["dimension"], "guides");
    near(&guides["ratings"]["alpha"]["value"], 0.625_028_103_782, 1e-12);
    near(&guides["harm"]["percent"], 0.8, 1e-12);
    near(&guides["harm"]["alpha"], 0.601_459_613_696, 1e-12);
    // 90 conversations of three raters are 270 pairs, each dimension.
    let pairs = ["both", "one", "neither"].map(|key| guides["harm"][key].as_u64().unwrap());
    assert_eq!(pairs.iter().sum::<u64>(), 270);

    let groups = found["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "no conversation has two experts");
    assert_eq!(groups[0]["group"], "clinician");
    near(&groups[0]["pooled"]["alpha"]["value"], 0.6689, 5e-5);
    near(&groups[0]["pooled"]["ac1"]["value"], 0.6875, 5e-5);
    near(&groups[0]["dimensions"][2]["harm"]["percent"], 0.722_222_222_222, 1e-12);

    // Section 5, table of single raters: guides 0.869 and 0.881 of 107 and 109, 54 ambiguous; pooled 260, 966, 124.
    let guides = &found["yardstick"][2];
    assert_eq!((&guides["sensitivity"]["n"], &guides["specificity"]["n"]), (&107.into(), &109.into()));
    near(&(guides["sensitivity"]["k"].as_f64().unwrap() / 107.0).into(), 0.869, 5e-4);
    assert_eq!(guides["ambiguous"], 54);
    let pooled = &found["yardstick"][5];
    assert_eq!((&pooled["sensitivity"]["n"], &pooled["specificity"]["n"]), (&260.into(), &966.into()));

    // Where two clinicians agree the expert agrees in 336 of 343, where not sides with one in 106 of 107.
    let third = &found["adjudication"];
    assert_eq!((&third["followed"]["k"], &third["followed"]["n"]), (&336.into(), &343.into()));
    assert_eq!((&third["sided"]["k"], &third["sided"]["n"]), (&106.into(), &107.into()));

    let output = calibrate(&["--ratings", &file]).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(out.contains("The pooled 0.765 is flattered by the third rater"), "{out}");
    // The file has Windows line ends.
    assert!(err.contains("clinician_ratings_2025-12.csv:15:1"), "{err}");
    assert!(err.contains("`#402e12` is read as `402e12`") && err.contains("`#0413e7`"), "{err}");
}
