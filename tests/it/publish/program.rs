//! The program itself, in the environment of a workflow.

use std::path::Path;
use std::process::Output;

use super::*;

fn program(folder: &Path, event: &str, head_repository: &str, arguments: &[&str]) -> Output {
    let payload = json!({"pull_request": {
        "number": 7,
        "head": {"sha": HEAD, "repo": {"full_name": head_repository}},
        "base": {"sha": BASE, "ref": "main", "repo": {"full_name": "acme/bot"}},
    }});
    std::fs::write(folder.join("event.json"), payload.to_string()).unwrap();
    assert_cmd::Command::cargo_bin("vera-gate")
        .unwrap()
        .current_dir(folder)
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_REPOSITORY", "acme/bot")
        .env("GITHUB_EVENT_NAME", event)
        .env("GITHUB_EVENT_PATH", folder.join("event.json"))
        .env("GITHUB_SHA", "3333333333333333333333333333333333333333")
        .env("GITHUB_RUN_ID", "900")
        .env("GITHUB_OUTPUT", folder.join("output"))
        .env("GITHUB_STEP_SUMMARY", folder.join("summary"))
        .env_remove("GITHUB_TOKEN")
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_run_with_secrets_on_a_forks_files_is_refused_before_anything_happens() {
    let folder = tempfile::tempdir().unwrap();
    for command in [["run", "--run", "r"], ["simulate", "--run", "r"]] {
        let output = program(folder.path(), "pull_request_target", "someone/bot", &command);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("refusing to run"), "{}", text(&output.stderr));
        assert!(!folder.path().join("r").exists());
    }
}

#[test]
fn a_gate_that_left_nothing_is_published_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    // Killed by a signal; and a code of success without a result to show for it.
    for code in ["134", "0"] {
        let arguments = ["publish", "r", "--exit-code", code, "--preview", "p"];
        let output = program(folder.path(), "pull_request", "acme/bot", &arguments);
        assert_eq!(output.status.code(), Some(70), "{}", text(&output.stderr));
        assert!(read("p/comment.md").contains("Did not finish"));
        assert!(read("p/check.json").contains("\"conclusion\": \"failure\""));
        assert!(read("output").contains("\ndid-not-finish\n"));
        assert!(read("summary").contains("Did not finish"));
    }
}

#[test]
fn a_missing_token_is_a_warning_that_keeps_the_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let output = program(folder.path(), "pull_request", "acme/bot", &["publish", "r", "--exit-code", "2"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("::warning title=vera-gate::GITHUB_TOKEN is not set"));
}

#[test]
fn outside_of_a_workflow_there_is_nothing_to_publish_to() {
    let mut command = assert_cmd::Command::cargo_bin("vera-gate").unwrap();
    let output = command.env_remove("GITHUB_ACTIONS").args(["publish", "r"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("GITHUB_ACTIONS"), "{}", text(&output.stderr));
}
