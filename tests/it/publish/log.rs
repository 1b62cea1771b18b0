//! B77: what the program prints in a workflow is read by the runner, and none of it is a command of somebody else's.

use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::escape::commands_of;

/// The candidate's text of the case, and a line for the old form with a name the runner knows.
fn lines() -> String {
    include_str!("../../cases/B77/lines.txt").to_owned()
        + "\u{FEFF}::error::bom\n\u{2003}::debug::em space\n##[group]x\n"
}

/// A provider that plays all roles and says only this; the judge finds a harm in everything.
struct Says(String);

impl Respond for Says {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let judges = body["model"] == "judge";
        let content =
            if judges { json!({"answer": "Yes", "reasoning": self.0}).to_string() } else { self.0.clone() };
        ResponseTemplate::new(200).set_body_json(json!({
            "id": "x", "object": "chat.completion", "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        }))
    }
}

/// Runs in a workflow; gives the exit code, standard output and standard error.
fn run(server: &MockServer, arguments: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let role = |model: &str| {
        format!("{{model: {model}, provider: vllm, base_url: '{}/v1', max_retries: 0}}", server.uri())
    };
    let config = format!(
        "user: {}\ncandidate: {}\njudge: {}\nsweep: {{runs: 1, sample: 4, max_messages: 4}}\nreport: {{evidence: quotes}}\n",
        role("person"),
        role("bot"),
        role("judge")
    );
    std::fs::write(folder.path().join("vera-gate.yaml"), config).unwrap();
    std::fs::write(folder.path().join("event.json"), "{}").unwrap();
    let mut command = assert_cmd::Command::cargo_bin("vera-gate").unwrap();
    command
        .current_dir(folder.path())
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_REPOSITORY", "acme/bot")
        .env("GITHUB_EVENT_NAME", "schedule")
        .env("GITHUB_EVENT_PATH", folder.path().join("event.json"))
        .env("GITHUB_SHA", "3333333333333333333333333333333333333333")
        .env("GITHUB_RUN_ID", "900")
        .args(["--run", "r", "-vv"].iter().chain(arguments).fold(vec!["run"], |mut all, word| {
            all.push(word);
            all
        }));
    let output = tokio::task::block_in_place(|| command.output().unwrap());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

async fn server(answer: impl Respond + 'static) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(answer).mount(&server).await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn b77_model_text_commands_nothing() {
    let server = server(Says(lines())).await;
    for format in ["text", "markdown", "json", "html", "junit", "verdict"] {
        let (code, out, err) = run(&server, &["--format", format]);
        assert_eq!(code, Some(1), "{out}\n{err}");
        let shown = format!("{out}\n{err}");
        assert_eq!(commands_of(&shown), Vec::<String>::new(), "{format}: {shown}");
        // The text is there, and so the test is one.
        let there = out.replace('\u{200B}', "").replace("&#58;", ":").contains("fake");
        assert!(there || ["text", "verdict", "junit"].contains(&format), "{format}: {out}");
        if format == "json" {
            serde_json::from_str::<Value>(&out).unwrap();
        }
    }
    // Colours of ours do not hide a command.
    let (_, out, err) = run(&server, &["--color", "always"]);
    assert_eq!(commands_of(&(out + "\n" + &err)), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn b77_a_providers_error_commands_nothing() {
    for status in [400, 401, 403, 500] {
        let answer = ResponseTemplate::new(status)
            .set_body_json(json!({"error": {"message": lines(), "type": lines()}}));
        let server = server(answer).await;
        let (code, out, err) = run(&server, &[]);
        assert!(matches!(code, Some(1 | 3 | 4)), "{status}: {out}\n{err}");
        assert_eq!(commands_of(&format!("{out}\n{err}")), Vec::<String>::new(), "{status}: {out}\n{err}");
        assert!(err.contains("fake") || out.contains("fake"), "{status}: {out}\n{err}");
    }
    // Whoever made an argument or a file name is no more to be obeyed.
    let server = server(ResponseTemplate::new(200)).await;
    for arguments in
        [["--thresholds", "\n::error::x"], ["--judge", "##[error]x"], ["--sample", "\n::add-mask::x"]]
    {
        let (code, out, err) = run(&server, &arguments);
        assert_ne!(code, Some(0), "{err}");
        assert_eq!(commands_of(&format!("{out}\n{err}")), Vec::<String>::new(), "{err}");
    }
}
