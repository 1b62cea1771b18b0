//! The real binary, offline: what a person types and what comes out.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

mod checking;
mod judging;
mod models;
mod names;
#[cfg(unix)]
mod programs;
mod results;

/// A folder to work in, with no configuration and no environment of the caller's.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(&[], arguments)
    }

    /// Runs with these variables and no others.
    fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vera-gate"));
        command.current_dir(self.path()).args(arguments).env_clear().envs(variables.iter().copied());
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.output().unwrap()
    }

    /// A target of six questions and one person in `t`.
    fn small_target(&self) {
        self.write("t/rubric.tsv", include_str!("../cases/B02/rubric.tsv"));
        self.write("t/personas.tsv", "Name\tShort Current Suicide Risk Level\tBackground\nAna\tHigh\tx\n");
        self.write("t/persona_prompt_template.txt", "You are {Name}. {Background}");
        self.write("t/persona_prompt_reminder.txt", "");
        self.write("t/rubric_prompt_beginning.txt", "{conversation}");
        self.write("t/question_prompt.txt", "{question}{examples_section}{options}");
    }

    /// Runs and checks the exit code; gives standard output.
    fn exits(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}\n{err}");
        out
    }

    /// Runs, checks the exit code and gives standard error.
    fn complains(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}\n{err}");
        err
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

const FILES: [&str; 11] = [
    "run.json",
    "plan.json",
    "journal.jsonl",
    "ratings.jsonl",
    "matrix.json",
    "verdict.json",
    "report.md",
    "report.html",
    "junit.xml",
    "results.csv",
    "scores.json",
];

#[test]
fn the_built_in_run_passes_and_leaves_a_full_folder() {
    let place = Place::new();
    let out = place.exits(0, &["run", "--run", "r", "--sample", "12"]);
    assert!(out.starts_with("Scripted models took part in this run."), "{out}");
    assert!(out.contains("PASS") && out.contains("12 of 12 planned conversations judged"), "{out}");
    for file in FILES {
        assert!(place.path().join("r").join(file).is_file(), "{file}");
    }
    let held = std::fs::read_dir(place.path().join("r/conversations")).unwrap().count();
    assert_eq!(held, 24, "12 conversations in two forms");
    let run = json(&place.path().join("r/run.json"));
    assert_eq!((run["complete"].as_bool(), run["planned"].as_u64()), (Some(true), Some(12)));
}

#[test]
fn verdict_word_exit_code_and_every_form_agree() {
    for (candidate, code, word) in
        [("careful", 0, "pass"), ("harmful", 1, "fail"), ("misses-risk", 1, "fail")]
    {
        let place = Place::new();
        place.exits(code, &["run", "--run", "r", "--sample", "40", "--candidate", candidate]);
        let verdict = json(&place.path().join("r/verdict.json"));
        assert_eq!(verdict["verdict"], word, "{candidate}");
        assert_eq!(verdict["exit_code"].as_i64(), Some(i64::from(code)));
        let label = if code == 0 { "Pass" } else { "Fail" };
        for form in ["report.md", "report.html"] {
            let page = std::fs::read_to_string(place.path().join("r").join(form)).unwrap();
            assert!(page.contains(label), "{form} of {candidate}");
        }
        // The same folder gated again, without a call, says the same.
        let again = place.exits(code, &["gate", "r", "--format", "verdict"]);
        let again: serde_json::Value = serde_json::from_str(&again).unwrap();
        assert_eq!(again["verdict"], word);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let (one, two) = (Place::new(), Place::new());
    for place in [&one, &two] {
        place.exits(0, &["run", "--run", "r", "--sample", "8"]);
    }
    let names = |place: &Place| {
        let mut names: Vec<PathBuf> = Vec::new();
        let mut folders = vec![place.path().join("r")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { names.push(path) }
            }
        }
        names.sort();
        names.iter().map(|p| p.strip_prefix(place.path()).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&one), names(&two));
    for name in names(&one) {
        let read = |place: &Place| std::fs::read_to_string(place.path().join(&name)).unwrap();
        let (a, b) = (read(&one), read(&two));
        let timeless = |text: &str| {
            let date = |part: &str| {
                part.len() >= 20 && part.starts_with("20") && part.contains('T') && part.contains('Z')
            };
            text.split(['"', ' ', '<', '>', '\n', '|', ',', '(', ')', '`'])
                .filter(|p| !date(p))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(timeless(&a), timeless(&b), "{name:?}");
    }
}

#[test]
fn nothing_selected_is_a_usage_error_with_the_nearest_name() {
    // Case B24. The built-in target has a persona `Mateo` or the like: any name with one letter too many is near.
    let place = Place::new();
    let personas = include_str!("../../personas/si.tsv");
    let name = personas.lines().nth(1).unwrap().split('\t').next().unwrap();
    let err = place.complains(2, &["run", "--persona", &format!("{name}x")]);
    assert!(err.contains(&format!("did you mean `{name}`?")), "{err}");
    assert!(!place.path().join("vera-gate-runs").exists(), "nothing was started");
}

#[test]
fn a_missing_role_is_named_before_any_call() {
    // Case B10.
    let place = Place::new();
    place.write("vera-gate.yaml", "user: scripted/person\ncandidate: scripted/careful\n");
    let err = place.complains(2, &["run"]);
    assert!(err.contains("`judge` is missing") && err.contains("vera-gate.yaml:1:1"), "{err}");
}

#[test]
fn missing_keys_are_reported_together() {
    let place = Place::new();
    place.write(
        "vera-gate.yaml",
        "user: openai/gpt-6-luna\ncandidate: anthropic/claude-haiku-5-5\njudge: gemini/gemini-3.8-flash\n",
    );
    let err = place.complains(2, &["run"]);
    for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
        assert!(err.contains(key), "{key} not in {err}");
    }
    assert!(!place.path().join("vera-gate-runs").exists());
}

#[test]
fn every_problem_of_every_file_comes_at_once() {
    let place = Place::new();
    place.write(
        "vera-gate.yaml",
        "user: scripted/person\ncandidate: scripted/carefull\njudge: scripted/rules\nsweep:\n  personas: [Nobodyatall]\ngate:\n  thresholds: t.yaml\n",
    );
    place.write("t.yaml", "schema: vera-gate/thresholds/v1\nname: t\nrules:\n  - id: a\n    kind: max_harm\n    tier: block\n    limit: .nan\n    bound: point\n");
    let err = place.complains(2, &["check"]);
    for part in ["did you mean `careful`?", "no persona `Nobodyatall`", "t.yaml:7:12", "3 errors"] {
        assert!(err.contains(part), "{part} not in\n{err}");
    }
}

#[test]
fn what_a_refused_configuration_names_is_looked_up_all_the_same() {
    let place = Place::new();
    place.write(
        "vera-gate.yaml",
        "user: scripted/person\n\
         candidate: {modle: openai/gpt-6-luna, temprature: 1}\n\
         judge: [scripted/rules, opnai/gpt-6-luna]\n\
         sweep: {runs: 0, risk: [High]}\n\
         gate: {thresholds: 'builtin:pull-reqest'}\n\
         prices: nowhere.yaml\n",
    );
    let err = place.complains(2, &["check"]);
    for (line, column, word) in [
        (2, 12, "`candidate.model` is missing"),
        (2, 13, "did you mean `model`?"),
        (2, 39, "did you mean `temperature`?"),
        (3, 25, "did you mean `openai`?"),
        (4, 15, "`sweep.runs` is 0"),
        (4, 18, "did you mean `risk_levels`?"),
        (5, 20, "did you mean `builtin:pull-request`?"),
        (6, 9, "`nowhere.yaml` does not exist"),
    ] {
        let place = format!("vera-gate.yaml:{line}:{column}\n");
        let told = err.split("\n\n").any(|problem| problem.contains(&place) && problem.contains(word));
        assert!(told, "{place}{word} not in\n{err}");
    }
    assert!(err.ends_with("8 errors\n"), "{err}");
    // A value of the command line is shown as such.
    let err = place.complains(2, &["check", "--judge", "opnai/gpt-6-luna"]);
    assert!(err.contains("--> command line:1:9\n"), "{err}");
}

#[test]
fn a_finished_run_is_gone_on_with_and_another_plan_is_refused() {
    // Case B43.
    let place = Place::new();
    place.exits(0, &["run", "--run", "r", "--sample", "6"]);
    let journal = std::fs::read(place.path().join("r/journal.jsonl")).unwrap();
    place.exits(0, &["run", "--run", "r", "--sample", "6"]);
    assert_eq!(std::fs::read(place.path().join("r/journal.jsonl")).unwrap(), journal, "no call was made");
    let err = place.complains(2, &["run", "--run", "r", "--sample", "7"]);
    assert!(err.contains("sweep.sample: 6 -> 7"), "{err}");
}

#[test]
fn a_baseline_is_blessed_shown_and_compared_with() {
    let place = Place::new();
    place.exits(0, &["run", "--run", "good", "--sample", "40"]);
    place.exits(0, &["baseline", "bless", "good", "--to", "b.json"]);
    assert!(place.exits(0, &["baseline", "show", "b.json"]).contains("40"));
    place.exits(0, &["run", "--run", "same", "--sample", "40", "--baseline", "b.json"]);
    let verdict = json(&place.path().join("same/verdict.json"));
    assert_eq!(verdict["baselines"][0]["state"], "usable");
    let out = place.exits(
        1,
        &["run", "--run", "bad", "--sample", "40", "--candidate", "misses-risk", "--baseline", "b.json"],
    );
    assert!(out.contains("regression"), "{out}");
    // Another length of conversation is another measurement.
    place.run(&["run", "--run", "short", "--sample", "40", "--max-messages", "10", "--baseline", "b.json"]);
    let verdict = json(&place.path().join("short/verdict.json"));
    assert_eq!(verdict["baselines"][0]["state"], "unusable");
}

#[test]
fn an_incomplete_run_may_not_become_a_baseline() {
    let place = Place::new();
    place.run(&[
        "run",
        "--run",
        "r",
        "--sample",
        "30",
        "--candidate",
        "flaky",
        "--user",
        "flaky",
        "--judge",
        "flaky",
    ]);
    let err = place.complains(3, &["baseline", "bless", "r", "--to", "b.json"]);
    assert!(err.contains("may not become a baseline") && !place.path().join("b.json").exists(), "{err}");
}

#[test]
fn the_stages_one_by_one_come_to_the_verdict_of_the_whole() {
    let place = Place::new();
    place.exits(0, &["run", "--run", "whole", "--sample", "6"]);
    place.exits(0, &["simulate", "--run", "held", "--sample", "6"]);
    place.exits(0, &["judge", "held", "--run", "judged"]);
    let read =
        |folder: &str, file: &str| std::fs::read_to_string(place.path().join(folder).join(file)).unwrap();
    assert_eq!(read("whole", "ratings.jsonl"), read("judged", "ratings.jsonl"));
    assert_eq!(read("whole", "matrix.json"), read("judged", "matrix.json"));
    let markdown = place.exits(0, &["report", "whole", "--format", "markdown"]);
    assert_eq!(markdown, read("whole", "report.md"));
}

#[test]
fn plan_calls_nothing_and_knows_what_the_sweep_can_find() {
    let place = Place::new();
    let out = place.exits(0, &["plan", "--power", "--format", "json"]);
    let plan: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(plan["forecast"]["conversations"], 100);
    assert!(plan["power"]["regressions"][0]["smallest_rise"].as_f64().unwrap() > 0.03);
    assert!(!place.path().join("vera-gate-runs").exists());
}

#[test]
fn init_writes_what_check_accepts_and_replaces_nothing() {
    let place = Place::new();
    let out = place.exits(0, &["init", "--candidate", "xai/grok-4.7"]);
    for file in ["vera-gate.yaml", "vera-gate-thresholds.yaml", ".github/workflows/vera-gate.yml"] {
        assert!(out.contains(file) && place.path().join(file).is_file(), "{file}");
    }
    let workflow = std::fs::read_to_string(place.path().join(".github/workflows/vera-gate.yml")).unwrap();
    for key in ["OPENAI_API_KEY", "XAI_API_KEY", "ANTHROPIC_API_KEY"] {
        assert!(workflow.contains(&format!("{key}: ${{{{ secrets.{key} }}}}")), "{key} not in {workflow}");
    }
    place.exits(0, &["check"]);
    let err = place.complains(2, &["init"]);
    assert!(err.contains("nothing was written") && err.contains("--force"), "{err}");
    place.exits(0, &["init", "--force"]);
    place.exits(0, &["check"]);
    // The other cases stand beside it, and their workflows name files that are there.
    for (case, workflow) in [("nightly", "vera-gate-nightly"), ("release", "vera-gate-release")] {
        place.exits(0, &["init", "--for", case]);
        let text =
            std::fs::read_to_string(place.path().join(format!(".github/workflows/{workflow}.yml"))).unwrap();
        let config = format!("vera-gate.{case}.yaml");
        assert!(text.contains(&format!("config: {config}\n")) && !text.contains("thresholds:"), "{text}");
        place.exits(0, &["check", "--config", &config]);
    }
    let forks = Place::new();
    forks.exits(0, &["init", "--for", "forks"]);
    forks.exits(0, &["check"]);
    let config = std::fs::read_to_string(forks.path().join("vera-gate.yaml")).unwrap();
    let stage =
        std::fs::read_to_string(forks.path().join(".github/workflows/vera-gate-fork-two.yml")).unwrap();
    for text in [config, stage] {
        assert!(text.contains("prompts/system.md"), "what stage two reads is what is tested: {text}");
    }
    assert!(forks.path().join("prompts/system.md").is_file());
    // With a baseline a smaller sample could not pass: a comparison wants 30 personas that say something.
    let plan = place.exits(0, &["plan", "--power", "--format", "json"]);
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["power"]["regressions"][0]["too_few_personas"], false, "{plan}");
}

#[test]
fn a_sweep_ends_when_the_verdict_can_no_longer_change() {
    let place = Place::new();
    let roles = "user: scripted/person\ncandidate: scripted/harmful\njudge: scripted/rules\n";
    place.write("vera-gate.yaml", &format!("{roles}concurrency: {{ conversations: 4 }}\n"));
    place.exits(1, &["run", "--run", "r"]);
    let run = json(&place.path().join("r/run.json"));
    assert_eq!(run["stopped"]["kind"], "curtailed");
    assert!(run["held"].as_u64().unwrap() < run["planned"].as_u64().unwrap(), "{run}");
    let plan = json(&place.path().join("r/plan.json"));
    let failed = |c: &&serde_json::Value| c["status"].get("not-held").is_some();
    assert_eq!(plan["conversations"].as_array().unwrap().iter().filter(failed).count(), 0);
    let report = std::fs::read_to_string(place.path().join("r/report.md")).unwrap();
    assert!(report.contains("stopped early and saved"), "{report}");
    // The end of the sweep does not keep the findings from being asked about again.
    assert!(report.contains("asked again the judge says the same"), "{report}");
}

#[test]
fn the_last_accepted_run_is_compared_with_beside_the_pinned_baseline() {
    let place = Place::new();
    place.exits(0, &["run", "--run", "anchor", "--sample", "40"]);
    place.exits(0, &["run", "--run", "last", "--sample", "40"]);
    let roles = "user: scripted/person\ncandidate: scripted/misses-risk\njudge: scripted/rules\n";
    let gate = "sweep: { sample: 40, curtail: never }\ngate: { baseline: anchor, last_accepted: last }\n";
    place.write("vera-gate.yaml", &format!("{roles}{gate}"));
    place.exits(1, &["run", "--run", "r"]);
    let verdict = json(&place.path().join("r/verdict.json"));
    let against: Vec<&str> =
        verdict["baselines"].as_array().unwrap().iter().map(|b| b["against"].as_str().unwrap()).collect();
    assert_eq!(against, ["pinned", "last-accepted"]);
    let regression = verdict["rules"].as_array().unwrap().iter().find(|r| r["kind"] == "regression").unwrap();
    let failed = |wanted: &str| {
        let rows = regression["rows"].as_array().unwrap();
        rows.iter().any(|row| row["against"] == wanted && row["status"] == "fail")
    };
    assert!(failed("pinned") && failed("last-accepted"), "{regression}");
}

/// A variable with a slip in its name changes nothing: that another candidate was meant must not stay hidden.
#[test]
fn a_misspelt_variable_is_told() {
    let place = Place::new();
    let output = place.run_with(
        &[("VERA_GATE_CANDIDAT", "harmful"), ("VERA_GATE_SEED", ""), ("VERA_GATE_SHARDS", "")],
        &["plan", "--sample", "4"],
    );
    let err = text(&output.stderr);
    assert!(err.contains("`VERA_GATE_CANDIDAT` is not known and changes nothing"), "{err}");
    assert!(err.contains("did you mean `VERA_GATE_CANDIDATE`?"), "{err}");
    assert_eq!(err.matches("is not known").count(), 1, "{err}");
}

#[test]
fn a_sample_beyond_the_personas_is_told() {
    let place = Place::new();
    for command in ["plan", "check"] {
        let err = place.complains(0, &[command, "--sample", "101"]);
        assert!(err.contains("a sample of 101 personas is asked for, and there are 100"), "{err}");
        let err = place.complains(0, &[command, "--sample", "100"]);
        assert!(!err.contains("asked for"), "{err}");
    }
}
