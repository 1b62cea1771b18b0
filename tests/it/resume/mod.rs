//! Runs that are killed, stopped or disturbed, and what is left of them: the real binary against a counting endpoint.
#![cfg(unix)]

mod budget;
mod changed;
mod faults;
mod killed;
mod machine;
mod signals;
mod stateful;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use vera_gate::fingerprint::sha256;

use crate::providers::server::{Act, Seen, Server, reply};

/// What an undisturbed run and a disturbed one must have in common, byte for byte.
const RESULTS: [&str; 6] =
    ["plan.json", "ratings.jsonl", "results.csv", "scores.json", "matrix.json", "confirmations.json"];

/// The whole sweep of these tests: small, so that it can be run often.
const SWEEP: &str = "sweep: { sample: 6, max_messages: 6, curtail: never }\n";

/// What the models at the endpoint say: a function of the request and nothing else, so that a run that was disturbed
/// can be held against one that was not. Each text holds the request's name, so that a journal shows which requests
/// it has the answers of.
fn answer(seen: &Seen) -> Value {
    let name = name_of(seen);
    let die = u32::from_str_radix(&name[..6], 16).unwrap();
    let options = seen.body.pointer("/response_format/json_schema/schema/properties/answer/enum");
    let content = match options.and_then(Value::as_array) {
        None if seen.body["model"] == "person" && die.is_multiple_of(17) => {
            format!("i have to go now {name} <END OF CONVERSATION>")
        }
        None => format!("{} says {name}", seen.body["model"].as_str().unwrap()),
        Some(options) => {
            // The first question has a third answer and leads on with Yes; elsewhere one in nine answers is drawn.
            let chosen = if options.len() > 2 {
                options.iter().position(|option| option == "Yes").unwrap_or(0)
            } else if die.is_multiple_of(9) {
                die as usize / 9 % options.len()
            } else {
                options.iter().position(|option| option == "No").unwrap_or(options.len() - 1)
            };
            json!({"answer": options[chosen], "reasoning": format!("because {name}")}).to_string()
        }
    };
    json!({
        "model": seen.body["model"],
        "choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    })
}

/// Names a request by its content: 16 hexadecimal digits that stand in no other text.
fn name_of(seen: &Seen) -> String {
    sha256(format!("{}\n{}", seen.path, seen.raw))[..16].to_owned()
}

/// An endpoint that answers after so many milliseconds.
async fn endpoint(milliseconds: u64) -> Server {
    Server::start(move |_, seen| {
        vec![Act::Wait(Duration::from_millis(milliseconds)), Act::Write(reply(200, answer(seen).to_string()))]
    })
    .await
}

/// A folder with a configuration whose three roles are at this endpoint.
struct Place(TempDir);

impl Place {
    fn new(server: &Server, more: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.configure(server, more);
        place
    }

    fn configure(&self, server: &Server, more: &str) {
        let role = |name: &str, model: &str| {
            let url = server.url("v1");
            format!("{name}: {{ model: openai/{model}, base_url: \"{url}\", max_retry_wait: 20s }}\n")
        };
        let roles = role("user", "person") + &role("candidate", "bot") + &role("judge", "rater");
        std::fs::write(self.path("vera-gate.yaml"), roles + more).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        program(self.0.path(), Path::new(env!("CARGO_BIN_EXE_vera-gate")), arguments)
    }

    fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs to an end with a verdict; which one does not matter here.
    fn completes(&self, arguments: &[&str]) {
        let output = self.run(arguments);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }
}

/// The program in this folder, without the caller's environment.
fn program(folder: &Path, program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).args(arguments).env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

fn said(output: &Output) -> String {
    format!(
        "{:?}\n{}{}",
        output.status.code(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Every result and every transcript of a run folder.
fn results(folder: &Path) -> BTreeMap<String, String> {
    let transcripts = std::fs::read_dir(folder.join("conversations"))
        .unwrap()
        .map(|entry| format!("conversations/{}", entry.unwrap().file_name().to_string_lossy()));
    let names = RESULTS.iter().map(|name| (*name).to_owned()).chain(transcripts);
    names.map(|name| (name.clone(), std::fs::read_to_string(folder.join(&name)).unwrap())).collect()
}

fn same_results(one: &Path, other: &Path) {
    let (one, other) = (results(one), results(other));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, text) in &one {
        assert_eq!(*text, other[name], "{name}");
    }
    assert!(one.len() >= RESULTS.len() + 12, "transcripts are there");
}

/// Waits until so many requests have come, or the process has ended; tells whether they came.
fn until(server: &Server, count: usize, child: &mut Child) -> bool {
    loop {
        if server.count() >= count {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sends a signal by its name.
fn signal(child: &Child, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status().unwrap();
    assert!(sent.success());
}
