//! Every word in which a provider says why a reply ended, wire by wire, and what it counts as.

use serde_json::{Value, json};
use vera_gate::model::meter::Budget;
use vera_gate::model::{Failure, Outcome, Role};

use super::server::{Act, Server, reply};
use super::{connected, context, request, table};

use Want::{Fails, Is};

#[derive(Clone, Copy, Debug)]
enum Want {
    Is(Outcome),
    Fails(Failure),
}

const TEXT: &str = "some text";

/// A whole reply of a wire that ends for this reason.
fn body(wire: &str, reason: &str) -> Value {
    match wire {
        "openai" => json!({"choices": [{"message": {"content": TEXT}, "finish_reason": reason}]}),
        // The status, and behind a colon the reason that it is incomplete.
        "responses" => {
            let (status, why) = reason.split_once(':').unwrap_or((reason, ""));
            let part = json!({"type": "output_text", "text": TEXT});
            let why = if why.is_empty() { Value::Null } else { json!({"reason": why}) };
            json!({"status": status, "incomplete_details": why, "output": [{"type": "message", "content": [part]}]})
        }
        "anthropic" => {
            json!({"type": "message", "content": [{"type": "text", "text": TEXT}], "stop_reason": reason})
        }
        // Behind a colon the reason that the prompt was blocked.
        "gemini" => match reason.strip_prefix("block:") {
            Some(block) => json!({"promptFeedback": {"blockReason": block}}),
            None => json!({"candidates": [{"content": {"parts": [{"text": TEXT}]}, "finishReason": reason}]}),
        },
        "ollama" => json!({"message": {"content": TEXT}, "done": true, "done_reason": reason}),
        "bedrock" => json!({"output": {"message": {"content": [{"text": TEXT}]}}, "stopReason": reason}),
        other => panic!("no wire {other}"),
    }
}

/// The words of the providers' own documents and libraries; `x-new` is one that nobody knows yet.
const ENDINGS: &[(&str, &str, Want)] = &[
    ("openai", "stop", Is(Outcome::Reply)),
    ("openai", "length", Is(Outcome::Truncated)),
    ("openai", "max_tokens", Is(Outcome::Truncated)),
    ("openai", "model_length", Is(Outcome::Truncated)),
    ("openai", "content_filter", Is(Outcome::ReplyFiltered)),
    ("openai", "content_filter: PROHIBITED_CONTENT", Is(Outcome::ReplyFiltered)),
    ("openai", "SAFETY", Is(Outcome::ReplyFiltered)),
    ("openai", "error", Fails(Failure::Server)),
    ("openai", "abort", Fails(Failure::Server)),
    ("openai", "insufficient_system_resource", Fails(Failure::Overload)),
    ("openai", "eos_token", Is(Outcome::Reply)),
    ("openai", "x-new", Is(Outcome::Reply)),
    // A gateway that makes its structured output by a tool of its own gives text and no call.
    ("openai", "tool_calls", Is(Outcome::Reply)),
    ("responses", "completed", Is(Outcome::Reply)),
    ("responses", "incomplete:max_output_tokens", Is(Outcome::Truncated)),
    ("responses", "incomplete:content_filter", Is(Outcome::ReplyFiltered)),
    ("responses", "incomplete:max_messages", Is(Outcome::Truncated)),
    ("responses", "incomplete:steered", Is(Outcome::Truncated)),
    ("responses", "incomplete:x-new", Is(Outcome::Truncated)),
    ("responses", "failed", Fails(Failure::Server)),
    ("responses", "cancelled", Fails(Failure::Server)),
    ("responses", "queued", Fails(Failure::Protocol)),
    ("responses", "in_progress", Fails(Failure::Protocol)),
    ("anthropic", "end_turn", Is(Outcome::Reply)),
    ("anthropic", "stop_sequence", Is(Outcome::Reply)),
    ("anthropic", "max_tokens", Is(Outcome::Truncated)),
    ("anthropic", "length", Is(Outcome::Truncated)),
    ("anthropic", "refusal", Is(Outcome::Refusal)),
    ("anthropic", "model_context_window_exceeded", Is(Outcome::ContextOverflow)),
    ("anthropic", "content_filter", Is(Outcome::ReplyFiltered)),
    ("anthropic", "tool_use", Fails(Failure::Protocol)),
    ("anthropic", "pause_turn", Fails(Failure::Protocol)),
    ("anthropic", "compaction", Fails(Failure::Protocol)),
    ("anthropic", "x-new", Is(Outcome::Reply)),
    ("gemini", "STOP", Is(Outcome::Reply)),
    ("gemini", "MAX_TOKENS", Is(Outcome::Truncated)),
    ("gemini", "SAFETY", Is(Outcome::ReplyFiltered)),
    ("gemini", "RECITATION", Is(Outcome::ReplyFiltered)),
    ("gemini", "LANGUAGE", Is(Outcome::ReplyFiltered)),
    ("gemini", "OTHER", Is(Outcome::ReplyFiltered)),
    ("gemini", "BLOCKLIST", Is(Outcome::ReplyFiltered)),
    ("gemini", "PROHIBITED_CONTENT", Is(Outcome::ReplyFiltered)),
    ("gemini", "SPII", Is(Outcome::ReplyFiltered)),
    ("gemini", "IMAGE_SAFETY", Is(Outcome::ReplyFiltered)),
    ("gemini", "IMAGE_RECITATION", Is(Outcome::ReplyFiltered)),
    ("gemini", "ESCALATION", Is(Outcome::ReplyFiltered)),
    ("gemini", "PUP_LIMITED_DISABLED", Is(Outcome::ReplyFiltered)),
    ("gemini", "MODEL_ARMOR", Is(Outcome::ReplyFiltered)),
    ("gemini", "MALFORMED_FUNCTION_CALL", Fails(Failure::Protocol)),
    ("gemini", "UNEXPECTED_TOOL_CALL", Fails(Failure::Protocol)),
    ("gemini", "TOO_MANY_TOOL_CALLS", Fails(Failure::Protocol)),
    ("gemini", "MISSING_THOUGHT_SIGNATURE", Fails(Failure::Protocol)),
    ("gemini", "MALFORMED_RESPONSE", Fails(Failure::Protocol)),
    ("gemini", "CONTINUATION", Fails(Failure::Protocol)),
    ("gemini", "X_NEW", Is(Outcome::Reply)),
    ("gemini", "block:SAFETY", Is(Outcome::PromptFiltered)),
    ("gemini", "block:OTHER", Is(Outcome::PromptFiltered)),
    ("gemini", "block:BLOCKLIST", Is(Outcome::PromptFiltered)),
    ("gemini", "block:PROHIBITED_CONTENT", Is(Outcome::PromptFiltered)),
    ("gemini", "block:IMAGE_SAFETY", Is(Outcome::PromptFiltered)),
    ("gemini", "block:MODEL_ARMOR", Is(Outcome::PromptFiltered)),
    ("gemini", "block:JAILBREAK", Is(Outcome::PromptFiltered)),
    ("ollama", "stop", Is(Outcome::Reply)),
    ("ollama", "length", Is(Outcome::Truncated)),
    ("ollama", "load", Fails(Failure::Protocol)),
    ("ollama", "unload", Fails(Failure::Protocol)),
    ("ollama", "x-new", Is(Outcome::Reply)),
    ("bedrock", "end_turn", Is(Outcome::Reply)),
    ("bedrock", "stop_sequence", Is(Outcome::Reply)),
    ("bedrock", "max_tokens", Is(Outcome::Truncated)),
    ("bedrock", "guardrail_intervened", Is(Outcome::ReplyFiltered)),
    ("bedrock", "content_filtered", Is(Outcome::ReplyFiltered)),
    ("bedrock", "model_context_window_exceeded", Is(Outcome::ContextOverflow)),
    ("bedrock", "tool_use", Fails(Failure::Protocol)),
    ("bedrock", "malformed_model_output", Fails(Failure::Protocol)),
    ("bedrock", "malformed_tool_use", Fails(Failure::Protocol)),
    ("bedrock", "x-new", Is(Outcome::Reply)),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_ending_counts_as_what_it_is() {
    // The reason travels in the address, as hexadecimal digits that no path changes.
    let server = Server::start(|_, seen| {
        let digits = seen.case();
        let (wire, reason) = ENDINGS
            .iter()
            .map(|(wire, reason, _)| (*wire, *reason))
            .find(|(wire, reason)| hex(wire, reason) == digits)
            .unwrap();
        vec![Act::Write(reply(200, body(wire, reason).to_string()))]
    })
    .await;
    let mut wrong = Vec::new();
    for (wire, reason, want) in ENDINGS {
        let (context, _) = context(Budget::default());
        let settings = table::role_settings("", wire, server.url(&hex(wire, reason)));
        let came = connected(Role::Candidate, &settings, &context).reply(&request(1)).await;
        let good = match (want, &came) {
            (Is(outcome), Ok(exchange)) => {
                let blocked = *outcome == Outcome::PromptFiltered;
                exchange.outcome == *outcome && exchange.text == if blocked { "" } else { TEXT }
            }
            (Fails(failure), Err(error)) => error.failure == *failure && error.attempts == 2,
            _ => false,
        };
        if !good {
            wrong.push(format!("{wire} {reason}: wanted {want:?}, came {came:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn hex(wire: &str, reason: &str) -> String {
    let digits: Vec<String> = format!("{wire}:{reason}").bytes().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// A team may tell its model of tools in `extra_body`; the text before a call of one is not the model's answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_tool_is_no_answer() {
    let call = json!([{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
    let stream = format!(
        "data: {}\n\ndata: {}\n\ndata: [DONE]\n\n",
        json!({"choices": [{"delta": {"content": TEXT}}]}),
        json!({"choices": [{"delta": {"tool_calls": call}, "finish_reason": "tool_calls"}]})
    );
    for (wire, body) in [
        (
            "openai",
            json!({"choices": [{"message": {"content": TEXT, "tool_calls": call}, "finish_reason": "tool_calls"}]})
                .to_string(),
        ),
        ("openai", stream),
        ("openai", json!({"choices": [{"message": {"content": null}, "finish_reason": "function_call"}]}).to_string()),
        ("responses", json!({"status": "completed", "output": [{"type": "function_call", "name": "f"}]}).to_string()),
        (
            "anthropic",
            json!({"content": [{"type": "text", "text": TEXT}, {"type": "tool_use", "name": "f"}], "stop_reason": "tool_use"})
                .to_string(),
        ),
        (
            "gemini",
            json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}, "finishReason": "STOP"}]})
                .to_string(),
        ),
        ("ollama", json!({"message": {"content": "", "tool_calls": call}, "done": true, "done_reason": "stop"}).to_string()),
        (
            "bedrock",
            json!({"output": {"message": {"content": [{"toolUse": {"name": "f"}}]}}, "stopReason": "tool_use"}).to_string(),
        ),
    ] {
        let server = Server::sequence(vec![reply(200, &body)]).await;
        let (context, _) = context(Budget::default());
        let settings = table::role_settings("", wire, server.url("x"));
        let error = connected(Role::Candidate, &settings, &context).reply(&request(1)).await.unwrap_err();
        assert_eq!((error.failure, error.attempts), (Failure::Protocol, 2), "{wire}");
        assert!(error.message.contains("calls a tool"), "{wire}: {error}");
    }
}
