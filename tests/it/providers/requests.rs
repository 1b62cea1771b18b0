//! What goes over each wire: address, headers and body.

use serde_json::{Value, json};
use vera_gate::config::model::{Api, Effort, ModelSettings};
use vera_gate::model::meter::Budget;
use vera_gate::model::{ChatRequest, Message, Role};

use super::server::{Seen, Server, reply};
use super::{KEY, connected, context, request, settings};

/// A body that every wire can read.
fn anything() -> Vec<u8> {
    let body = json!({
        "choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}],
        "status": "completed", "output": {"message": {"content": [{"text": "ok"}]}},
        "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn", "stopReason": "end_turn",
        "candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}],
        "message": {"content": "ok"}, "done": true,
    });
    reply(200, body.to_string())
}

async fn sent(settings: impl Fn(String) -> ModelSettings, role: Role, request: &ChatRequest) -> Seen {
    let server = Server::sequence(vec![anything()]).await;
    let (context, _) = context(Budget::default());
    let settings = ModelSettings { max_retries: Some(0), ..settings(server.url("base")) };
    let model = connected(role, &settings, &context);
    // Only the request matters; the Responses wire cannot read the common body.
    drop(model.reply(request).await);
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert!(!seen[0].path.contains(KEY), "no key in an address");
    seen[0].clone()
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"answer": {"type": "string", "enum": ["Yes", "No"]}, "reasoning": {"type": "string"}},
        "required": ["answer", "reasoning"], "additionalProperties": false})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_chat() {
    let seen = sent(
        |base| ModelSettings {
            organization: Some("org-1".to_owned()),
            project: Some("proj-1".to_owned()),
            seed: Some(7),
            effort: Some(Effort::Low),
            headers: [("x-team".to_owned(), "care".to_owned())].into(),
            extra_body: json!({"service_tier": "flex", "response_format": {"json_schema": {"name": "mine"}}})
                .as_object()
                .unwrap()
                .clone(),
            ..settings("openai", "gpt-6-luna", base)
        },
        Role::Judge,
        &request(1),
    )
    .await;
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/base/chat/completions"));
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(
        (seen.header("openai-organization"), seen.header("openai-project")),
        (Some("org-1"), Some("proj-1"))
    );
    assert_eq!(seen.header("x-team"), Some("care"));
    assert_eq!(
        seen.body,
        json!({
            "model": "gpt-6-luna",
            "messages": [{"role": "system", "content": "You are a judge."}, {"role": "user", "content": "Is it so?"}],
            "max_completion_tokens": 4096, "seed": 7, "reasoning_effort": "low", "store": false,
            "prompt_cache_key": "group-1", "service_tier": "flex",
            "response_format": {"type": "json_schema", "json_schema": {"name": "mine", "strict": true, "schema": schema()}},
        })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_responses() {
    let request = ChatRequest {
        messages: vec![Message::user("a"), Message::assistant("b"), Message::user("c")],
        ..request(1)
    };
    let seen = sent(
        |base| ModelSettings {
            api: Some(Api::Responses),
            effort: Some(Effort::High),
            ..settings("openai", "gpt-6-luna", base)
        },
        Role::Judge,
        &request,
    )
    .await;
    assert_eq!(seen.path, "/base/responses");
    assert_eq!(
        seen.body,
        json!({
            "model": "gpt-6-luna", "instructions": "You are a judge.",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
                {"role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
                {"role": "user", "content": [{"type": "input_text", "text": "c"}]},
            ],
            "max_output_tokens": 4096, "reasoning": {"effort": "high"}, "store": false, "prompt_cache_key": "group-1",
            "text": {"format": {"type": "json_schema", "name": "answer", "strict": true, "schema": schema()}},
        })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn anthropic() {
    let seen = sent(
        |base| ModelSettings {
            effort: Some(Effort::Medium),
            ..settings("anthropic", "claude-haiku-5-5", base + "/v1")
        },
        Role::Judge,
        &request(1),
    )
    .await;
    assert_eq!(seen.path, "/base/v1/messages");
    assert_eq!((seen.header("x-api-key"), seen.header("authorization")), (Some(KEY), None));
    assert_eq!(seen.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(
        seen.body,
        json!({
            "model": "claude-haiku-5-5", "max_tokens": 4096,
            // The judge's prefix is shared by all questions of a transcript.
            "system": [{"type": "text", "text": "You are a judge.", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": "Is it so?"}],
            "output_config": {"effort": "medium", "format": {"type": "json_schema", "schema": schema()}},
        })
    );
}

/// The user model speaks first, so that its own text comes first; and a growing conversation is cached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strict_wires_get_alternating_turns() {
    let conversation = ChatRequest {
        role: Role::User,
        answer: None,
        cache_group: None,
        messages: vec![
            Message::assistant("I feel low."),
            Message::user("Tell me."),
            Message::user("Please."),
        ],
        ..request(1)
    };
    let seen = sent(|base| settings("anthropic", "claude-haiku-5-5", base), Role::User, &conversation).await;
    assert_eq!(
        seen.body["messages"],
        json!([
            {"role": "user", "content": "(The conversation starts.)"},
            {"role": "assistant", "content": "I feel low."},
            {"role": "user", "content": [{"type": "text", "text": "Tell me.\n\nPlease.", "cache_control": {"type": "ephemeral"}}]},
        ])
    );
    assert_eq!(seen.body["system"], "You are a judge.");
    let seen = sent(|base| settings("gemini", "gemini-3.8-flash", base), Role::User, &conversation).await;
    let roles: Vec<_> =
        seen.body["contents"].as_array().unwrap().iter().map(|c| c["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "model", "user"]);
    let seen = sent(|base| settings("openai", "gpt-6-luna", base), Role::User, &conversation).await;
    assert_eq!(seen.body["messages"].as_array().unwrap().len(), 4, "this wire takes them as they are");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gemini() {
    let seen = sent(
        |base| ModelSettings {
            effort: Some(Effort::Low),
            seed: Some(3),
            ..settings("gemini", "gemini-3.8-flash", base)
        },
        Role::Judge,
        &request(1),
    )
    .await;
    assert_eq!(seen.path, "/base/models/gemini-3.8-flash:generateContent");
    assert_eq!(seen.header("x-goog-api-key"), Some(KEY));
    assert_eq!(
        seen.body,
        json!({
            "systemInstruction": {"parts": [{"text": "You are a judge."}]},
            "contents": [{"role": "user", "parts": [{"text": "Is it so?"}]}],
            "generationConfig": {"maxOutputTokens": 4096, "seed": 3, "thinkingConfig": {"thinkingLevel": "LOW"},
                "responseMimeType": "application/json", "responseJsonSchema": schema()},
        })
    );
    let seen = sent(
        |base| ModelSettings { effort: Some(Effort::None), ..settings("gemini", "gemini-2.5-flash", base) },
        Role::Judge,
        &request(1),
    )
    .await;
    assert_eq!(seen.body["generationConfig"]["thinkingConfig"], json!({"thinkingBudget": 0}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ollama() {
    let seen = sent(
        |base| ModelSettings {
            temperature: Some(0.0),
            effort: Some(Effort::None),
            extra_body: json!({"keep_alive": "10m", "options": {"num_ctx": 8192}})
                .as_object()
                .unwrap()
                .clone(),
            ..settings("ollama", "llama3", base + "/v1")
        },
        Role::Judge,
        &request(1),
    )
    .await;
    assert_eq!(seen.path, "/base/api/chat");
    assert_eq!(
        seen.body,
        json!({
            "model": "llama3", "stream": false, "think": false, "format": schema(), "keep_alive": "10m",
            "messages": [{"role": "system", "content": "You are a judge."}, {"role": "user", "content": "Is it so?"}],
            "options": {"num_ctx": 8192, "num_predict": 4096, "temperature": 0.0},
        })
    );
}

/// Ollama drops the start of a prompt that is too long without a word: such a prompt is not sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ollama_is_not_given_a_prompt_that_cannot_fit() {
    let server = Server::sequence(vec![anything()]).await;
    let (context, _) = context(Budget::default());
    let model = connected(Role::Judge, &settings("ollama", "llama3", server.url("base")), &context);
    let long = ChatRequest { messages: vec![Message::user("word ".repeat(40_000))], ..request(1) };
    let exchange = model.reply(&long).await.unwrap();
    assert_eq!(exchange.outcome, vera_gate::model::Outcome::ContextOverflow);
    assert!(server.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bedrock() {
    let id = "us.anthropic.claude-haiku-4-5-v1:0";
    let seen = sent(
        |base| ModelSettings {
            temperature: Some(0.5),
            effort: Some(Effort::Low),
            ..settings("bedrock", id, base)
        },
        Role::Judge,
        &request(1),
    )
    .await;
    assert_eq!(seen.path, "/base/model/us.anthropic.claude-haiku-4-5-v1%3A0/converse");
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(
        seen.body,
        json!({
            "system": [{"text": "You are a judge."}, {"cachePoint": {"type": "default"}}],
            "messages": [{"role": "user", "content": [{"text": "Is it so?"}]}],
            "inferenceConfig": {"maxTokens": 4096, "temperature": 0.5},
            // This wire takes the schema as text.
            "outputConfig": {"effort": "low", "textFormat": {"type": "json_schema",
                "structure": {"jsonSchema": {"name": "answer", "schema": schema().to_string()}}}},
        })
    );
    // Not every model there can be held to a schema.
    let seen =
        sent(|base| settings("bedrock", "amazon.nova-micro-v1:0", base), Role::Judge, &request(1)).await;
    assert!(seen.body.get("outputConfig").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn azure_speaks_both_of_its_paths() {
    let seen =
        sent(|base| settings("azure", "my-deployment", base + "/openai/v1"), Role::Judge, &request(1)).await;
    assert_eq!(seen.path, "/base/openai/v1/chat/completions");
    assert_eq!((seen.header("api-key"), seen.header("authorization")), (Some(KEY), None));
    let seen = sent(
        |base| ModelSettings {
            api_version: Some("2024-10-21".to_owned()),
            ..settings("azure", "my dep", base)
        },
        Role::Judge,
        &request(1),
    )
    .await;
    assert_eq!(seen.path, "/base/openai/deployments/my%20dep/chat/completions?api-version=2024-10-21");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compatible_servers_differ_where_they_must() {
    let seen =
        sent(|base| settings("openrouter", "anthropic/claude-haiku-5-5", base), Role::Judge, &request(1))
            .await;
    assert_eq!(seen.body["provider"], json!({"require_parameters": true}));
    assert_eq!(seen.body["max_tokens"], 4096);
    let seen = sent(|base| settings("xai", "grok-4.7", base), Role::Judge, &request(1)).await;
    assert_eq!(seen.header("x-grok-conv-id"), Some("group-1"));
    let seen = sent(
        |base| ModelSettings { seed: Some(5), ..settings("mistral", "mistral-small-latest", base) },
        Role::Judge,
        &request(1),
    )
    .await;
    assert_eq!((&seen.body["random_seed"], seen.body.get("seed")), (&json!(5), None));
    // No schema where the server has none: the judge reads strict text then.
    let seen = sent(|base| settings("deepseek", "deepseek-chat", base), Role::Judge, &request(1)).await;
    assert!(seen.body.get("response_format").is_none());
    // The candidate is asked as a team's product asks it: without a cap of ours.
    let plain = ChatRequest { answer: None, cache_group: None, ..request(1) };
    let seen = sent(|base| settings("vllm", "m", base), Role::Candidate, &plain).await;
    let keys: Vec<&String> = seen.body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["messages", "model"]);
}
