//! The tiny call of `check --live`.

use serde_json::json;
use vera_gate::config::model::ModelSettings;
use vera_gate::model::meter::Budget;
use vera_gate::model::probe::{Structured, probe};
use vera_gate::model::{Failure, Role, identify};

use super::server::{Server, reply};
use super::{connected, context, settings};

fn said(text: &str) -> Vec<u8> {
    let body = json!({"model": "gpt-6-luna-2026-09-01", "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20}});
    reply(200, body.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_says_whether_the_role_can_play() {
    let held = r#"{"answer": "Yes", "reasoning": "7 > 3"}"#;
    for (role, text, structured) in [
        (Role::Judge, held, Structured::Held),
        (Role::Judge, "Yes, it is.", Structured::NotHeld),
        (Role::Judge, r#"{"answer": "Maybe"}"#, Structured::NotHeld),
        (Role::User, "Hello.", Structured::NotAsked),
    ] {
        let server = Server::sequence(vec![said(text)]).await;
        let (context, _) = context(Budget::default());
        let model = connected(role, &settings("openai", "gpt-6-luna", server.url("v1")), &context);
        let probed = probe(role, &*model).await;
        assert!(probed.is_usable());
        assert_eq!(probed.structured, structured, "{text}");
        let shown = probed.to_string();
        assert!(
            shown.starts_with(&format!("{role}: openai/gpt-6-luna (answered by gpt-6-luna-2026-09-01), ")),
            "{shown}"
        );
        // 100 x 0.1 + 20 x 0.5 micro-dollars.
        assert!(shown.ends_with(", $0.00002"), "{shown}");
        assert_eq!(context.meter.requests(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probe_that_fails_says_why() {
    let server = Server::sequence(vec![reply(401, r#"{"error": {"message": "bad key"}}"#)]).await;
    let (context, _) = context(Budget::default());
    let model = connected(Role::Judge, &settings("openai", "gpt-6-luna", server.url("v1")), &context);
    let probed = probe(Role::Judge, &*model).await;
    assert!(!probed.is_usable());
    assert_eq!(probed.result.as_ref().unwrap_err().failure, Failure::Auth);
    assert!(probed.to_string().starts_with("judge: openai/gpt-6-luna: authentication: "), "{probed}");
}

#[tokio::test]
async fn the_script_is_a_provider_like_the_others() {
    let (context, _) = context(Budget { calls: Some(1), ..Budget::default() });
    let named = ModelSettings { model: "scripted/careful".to_owned(), ..ModelSettings::default() };
    let model = connected(Role::Candidate, &named, &context);
    assert_eq!(model.identity(), &identify(Role::Candidate, &named).unwrap());
    assert!(model.identity().is_scripted());
    assert!(probe(Role::Candidate, &*model).await.is_usable());
    assert_eq!(context.meter.rows().len(), 1);
    let error = probe(Role::Candidate, &*model).await.result.unwrap_err();
    assert_eq!(error.failure, Failure::Budget);
    let unknown = ModelSettings { model: "scripted/carefull".to_owned(), ..named };
    let problems = vera_gate::model::connect(Role::Candidate, &unknown, &context).unwrap_err().to_string();
    assert!(problems.contains("did you mean `careful`"), "{problems}");
}
