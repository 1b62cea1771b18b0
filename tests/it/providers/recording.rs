//! Recorded exchanges: replayed byte for byte, never shared between draws, without secrets.

use std::sync::Arc;

use serde_json::json;
use vera_gate::config::model::ModelSettings;
use vera_gate::model::cassette::{Cassette, CassetteMode};
use vera_gate::model::meter::Budget;
use vera_gate::model::{ChatRequest, EnvLookup, Exchange, Failure, Message, ModelContext, Origin, Role};

use super::server::{Act, Server, reply};
use super::{KEY, connected, context, request, settings};

/// Each call gets another text, so that a mix-up shows; the text holds the key.
async fn server() -> Server {
    Server::start(|n, _| {
        let text = format!("reply {n} \u{1f600} {KEY}");
        let body = json!({"model": "m", "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20}});
        vec![Act::Write(reply(200, body.to_string()))]
    })
    .await
}

fn with(path: &std::path::Path, mode: CassetteMode) -> ModelContext {
    let (mut context, _) = context(Budget::default());
    context.cassette = Some(Arc::new(Cassette::open(path, mode).unwrap()));
    context
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_is_replayed_byte_for_byte_without_network_and_key() {
    let server = server().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    let settings =
        ModelSettings { max_output_tokens: Some(100), ..settings("openai", "gpt-6-luna", server.url("v1")) };

    let live = with(&path, CassetteMode::Record);
    let model = connected(Role::Judge, &settings, &live);
    let mut recorded = Vec::new();
    for draw in 1..=2 {
        recorded.push(model.reply(&request(draw)).await.unwrap());
    }
    assert_ne!(recorded[0].text, recorded[1].text, "two draws of one request are two replies");
    let file = std::fs::read_to_string(&path).unwrap();
    assert!(!file.contains(KEY) && file.contains("reply 1 \u{1f600} [redacted]"), "{file}");

    let mut dark = with(&path, CassetteMode::Replay);
    dark.env = EnvLookup::fixed([]);
    let model = connected(Role::Judge, &settings, &dark);
    for draw in [2, 1] {
        let exchange = model.reply(&request(draw)).await.unwrap();
        let original = &recorded[usize::try_from(draw).unwrap() - 1];
        assert_eq!(exchange, Exchange { origin: Origin::Replayed, ..original.clone() });
    }
    assert_eq!(server.seen().len(), 2, "nothing was called");
    assert_eq!((dark.meter.requests(), dark.meter.rows()[0].replayed, dark.meter.rows()[0].calls), (0, 2, 0));
}

/// Everything that shapes a reply is part of the key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_request_is_not_answered_from_the_recording() {
    let server = server().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    let base = settings("openai", "gpt-6-luna", server.url("v1"));
    let live = with(&path, CassetteMode::Record);
    connected(Role::Judge, &base, &live).reply(&request(1)).await.unwrap();

    let dark = with(&path, CassetteMode::Replay);
    let others: [ChatRequest; 6] = [
        request(2),
        ChatRequest { system: Some("Another.".into()), ..request(1) },
        ChatRequest { messages: vec![Message::user("Is it so? ")], ..request(1) },
        ChatRequest { answer: None, ..request(1) },
        ChatRequest { output_scale: 2, ..request(1) },
        ChatRequest {
            id: vera_gate::model::CallId { conversation: "c2".to_owned(), ..request(1).id },
            ..request(1)
        },
    ];
    let model = connected(Role::Judge, &base, &dark);
    for other in others {
        let error = model.reply(&other).await.unwrap_err();
        assert!(
            error.failure == Failure::NotFound && error.message.contains("not in the recording"),
            "{error}"
        );
    }
    for changed in [
        ModelSettings { temperature: Some(0.5), ..base.clone() },
        ModelSettings { model: "gpt-5.5".to_owned(), ..base.clone() },
        ModelSettings { max_output_tokens: Some(5), ..base.clone() },
    ] {
        assert!(connected(Role::Judge, &changed, &dark).reply(&request(1)).await.is_err(), "{changed:?}");
    }
    // How calls are paced and where their key comes from does not shape a reply.
    let paced =
        ModelSettings { max_retries: Some(0), key_env: Some("ANOTHER_KEY".to_owned()), ..base.clone() };
    connected(Role::Judge, &paced, &dark).reply(&request(1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_run_goes_on_from_its_recording() {
    let server = server().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    let base = settings("openai", "gpt-6-luna", server.url("v1"));
    let first =
        connected(Role::Judge, &base, &with(&path, CassetteMode::Record)).reply(&request(1)).await.unwrap();
    // The run was killed while it wrote a line.
    let mut file = std::fs::read_to_string(&path).unwrap();
    file.push_str("{\"schema\": \"vera-gate/cassette/v1\", \"key\"");
    std::fs::write(&path, file).unwrap();

    let again = with(&path, CassetteMode::Continue);
    let model = connected(Role::Judge, &base, &again);
    assert_eq!(model.reply(&request(1)).await.unwrap().text, first.text);
    let second = model.reply(&request(2)).await.unwrap();
    assert_eq!((second.origin, server.seen().len()), (Origin::Live, 2));
    drop((model, again));
    let dark = with(&path, CassetteMode::Continue);
    assert_eq!(dark.cassette.as_ref().unwrap().len(), 2);
}

#[test]
fn a_damaged_or_newer_recording_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    assert!(
        Cassette::open(&path, CassetteMode::Replay).is_err(),
        "a missing recording holds nothing to replay"
    );
    for (text, part) in [
        ("garbage\n{}\n", "line 1"),
        (
            "{\"schema\":\"vera-gate/cassette/v2\",\"key\":\"k\",\"role\":\"judge\",\"conversation\":\"c\",\"step\":\"s\",\"draw\":1,\"reply\":{\"opened\":null}}\n",
            "vera-gate/cassette/v2",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = Cassette::open(&path, CassetteMode::Replay).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}
