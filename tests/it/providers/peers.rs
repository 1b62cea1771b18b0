//! Servers that nobody of this project wrote. `.ci/peers.sh` starts them and names their addresses; where a name
//! is missing, the test says that it was skipped.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;
use vera_gate::config::model::{Api, ModelSettings};
use vera_gate::model::clock::Clock;
use vera_gate::model::meter::Budget;
use vera_gate::model::probe::probe;
use vera_gate::model::{ChatRequest, EnvLookup, Failure, Message, ModelContext, Outcome, Role};

use super::{KEY, connected, request, settings, table};

/// The address in a variable, or a visible word that the test did not run.
fn peer(name: &str) -> Option<String> {
    let address = std::env::var(name).ok().filter(|address| !address.is_empty());
    if address.is_none() {
        eprintln!("SKIPPED: {name} is not set (see .ci/peers.sh)");
    }
    address
}

fn context() -> ModelContext {
    let env =
        EnvLookup::new(|name| (name.ends_with("_KEY") || name.ends_with("BEDROCK")).then(|| KEY.to_owned()));
    ModelContext::with_clock(env, Budget::default(), Clock::real())
}

fn say(text: &str) -> ChatRequest {
    ChatRequest { messages: vec![Message::user(text)], answer: None, cache_group: None, ..request(1) }
}

/// One request over a plain connection; the body of the reply.
fn http(address: &str, method: &str, path: &str, body: &str) -> String {
    let host = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
}

/// `@copilotkit/aimock` speaks every wire.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aimock_is_understood_on_every_wire() {
    let Some(base) = peer("VERA_GATE_AIMOCK") else { return };
    let wires: Vec<(&str, ModelSettings)> = vec![
        ("chat", settings("openai", "gpt-6-luna", format!("{base}/v1"))),
        (
            "responses",
            ModelSettings {
                api: Some(Api::Responses),
                ..settings("openai", "gpt-6-luna", format!("{base}/v1"))
            },
        ),
        ("anthropic", settings("anthropic", "claude-haiku-5-5", base.clone())),
        ("gemini", settings("gemini", "gemini-3.8-flash", format!("{base}/v1beta"))),
        ("azure", settings("azure", "d1", base.clone())),
        (
            "azure classic",
            ModelSettings {
                api_version: Some("2024-10-21".to_owned()),
                ..settings("azure", "d1", base.clone())
            },
        ),
        ("ollama", settings("ollama", "llama3", base.clone())),
        ("bedrock", settings("bedrock", "m1", base.clone())),
        ("openrouter", settings("openrouter", "a/b", format!("{base}/api/v1"))),
    ];
    for (name, settings) in wires {
        let model = connected(Role::Candidate, &settings, &context());
        let exchange = model.reply(&say("ping")).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((exchange.outcome, exchange.text.as_str()), (Outcome::Reply, "pong"), "{name}");
        // The peer knows neither end for Ollama, and for a filtered response it gives a failure without a reason.
        if name != "ollama" {
            let cut = model.reply(&say("cut-me")).await.unwrap();
            assert_eq!((cut.outcome, cut.text.as_str()), (Outcome::Truncated, "partial ans"), "{name}");
        }
        if !matches!(name, "ollama" | "responses") {
            let filtered = model.reply(&say("filter-me")).await.unwrap();
            assert_eq!(filtered.outcome, Outcome::ReplyFiltered, "{name}");
        }
    }
    let once = ModelSettings { max_retries: Some(1), ..settings("anthropic", "claude-haiku-5-5", base) };
    let error = connected(Role::Candidate, &once, &context()).reply(&say("overload")).await.unwrap_err();
    assert_eq!((error.failure, error.attempts), (Failure::Overload, 2));
}

/// `llmock` injects faults and then grades how the client took them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn llmock_is_content_with_the_client() {
    let Some(base) = peer("VERA_GATE_LLMOCK") else { return };
    http(&base, "POST", "/_llmock/reset", "{}");
    let wires = [
        ("openai", "gpt-6-luna", "/v1"),
        ("anthropic", "claude-haiku-5-5", "/anthropic"),
        ("gemini", "gemini-3.8-flash", "/gemini/v1beta"),
        ("xai", "grok-4.7", "/xai/v1"),
    ];
    let behave = |behavior: serde_json::Value| {
        http(&base, "POST", "/_llmock/scenario", &json!({"behaviors": [behavior]}).to_string());
    };
    for (provider, model, path) in wires {
        let settings = settings(provider, model, format!("{base}{path}"));
        for (name, status, retry_after, wanted) in [
            ("good", 0, None, Ok(1)),
            ("rate", 429, Some(1.2), Ok(2)),
            ("down", 503, None, Ok(2)),
            ("broken", 500, None, Ok(2)),
            ("refused", 400, None, Err(Failure::BadRequest)),
            ("key", 401, None, Err(Failure::Auth)),
        ] {
            // A new model each time: one that has met a bad key asks no more.
            let model = connected(Role::Candidate, &settings, &context());
            if status > 0 {
                behave(json!({"type": "fail", "status": status, "times": 1, "retry_after": retry_after}));
            }
            let text = format!("{provider} {name}");
            let came = model.reply(&say(&text)).await;
            let came = came.map(|exchange| exchange.attempts).map_err(|error| error.failure);
            assert_eq!(came, wanted, "{text}");
        }
    }
    let verdict = http(&base, "GET", "/_llmock/verdict?format=text", "");
    eprintln!("{verdict}");
    assert!(verdict.contains("PASS") && !verdict.contains("FAIL"), "{verdict}");
}

/// A real model behind a real server: it must answer and keep to the schema; what it says means nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_answers_and_keeps_to_a_schema() {
    let Some(base) = peer("VERA_GATE_LLAMA") else { return };
    let settings = ModelSettings {
        max_output_tokens: Some(200),
        temperature: Some(0.0),
        ..settings("llama-cpp", "local", format!("{base}/v1"))
    };
    let probed = probe(Role::Judge, &*connected(Role::Judge, &settings, &context())).await;
    eprintln!("{probed}");
    let exchange = probed.result.unwrap();
    assert!(matches!(exchange.outcome, Outcome::Reply | Outcome::Truncated), "{exchange:?}");
    assert!(exchange.usage.is_some_and(|usage| usage.input > 0));
    assert_eq!(exchange.cost, None, "nobody has said what it costs");
    let long = ModelSettings { max_output_tokens: Some(8), ..settings };
    let text = "word ".repeat(60_000);
    let exchange = connected(Role::Candidate, &long, &context()).reply(&say(&text)).await.unwrap();
    assert_eq!(exchange.outcome, Outcome::ContextOverflow);
}

/// The same raw replies from another program, which is not ours either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_raw_replies_of_another_program_give_the_same_outcomes() {
    let Some(base) = peer("VERA_GATE_CANNED") else { return };
    let known: Vec<String> = serde_json::from_str(&http(&base, "GET", "/__cases", "")).unwrap();
    http(&base, "POST", "/__reset", "{}");
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (case, provider, want, requests, _) in table::rows() {
        if !known.iter().any(|name| name == case) {
            continue;
        }
        tried += 1;
        let mut context = context();
        context.clock = Clock::skipping();
        let settings = table::role_settings(case, provider, format!("{base}/{case}"));
        let came = connected(Role::Judge, &settings, &context).reply(&request(1)).await;
        if !table::is_as_wanted(&want, &came, requests) {
            wrong.push(format!("{case}: {came:?}"));
        }
    }
    eprintln!("{tried} of its {} cases", known.len());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert_eq!(tried, known.len());
}

/// A gateway that translates between the wires, in front of the other peers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_is_understood() {
    let Some(base) = peer("VERA_GATE_LITELLM") else { return };
    let at = |model: &str| ModelSettings {
        max_retries: Some(1),
        ..settings("litellm", model, format!("{base}/v1"))
    };
    let mut context = context();
    context.env = EnvLookup::fixed([("LITELLM_API_KEY", "sk-local")]);
    let exchange = connected(Role::Candidate, &at("mock-ok"), &context).reply(&say("hello")).await.unwrap();
    assert_eq!((exchange.outcome, exchange.text.as_str()), (Outcome::Reply, "pong from the gateway"));
    for (model, wanted) in [("mock-429", Failure::Rate), ("mock-500", Failure::Server)] {
        let error = connected(Role::Candidate, &at(model), &context).reply(&say("hello")).await.unwrap_err();
        assert_eq!((error.failure, error.attempts), (wanted, 2), "{error}");
    }
    let overflow = connected(Role::Candidate, &at("mock-ctx"), &context).reply(&say("hello")).await.unwrap();
    assert_eq!(overflow.outcome, Outcome::ContextOverflow);
    context.env = EnvLookup::fixed([("LITELLM_API_KEY", "sk-wrong-key-1234")]);
    let error = connected(Role::Candidate, &at("mock-ok"), &context).reply(&say("hello")).await.unwrap_err();
    assert_eq!(error.failure, Failure::Auth);
    assert!(!error.message.contains("sk-wrong"), "{error}");
}
