//! A server that streams although a whole reply was asked for: a stream that ends counts as the reply it makes up, one
//! that does not is a broken connection, and an error in the middle is that error.

use serde_json::{Value, json};
use vera_gate::model::meter::Budget;
use vera_gate::model::{Failure, Outcome, Role, Usage};

use super::server::{Server, reply_with};
use super::{connected, context, request, table};

/// Events under the names that their `type` gives them.
fn events(data: &[Value]) -> String {
    let event = |data: &Value| {
        let name = data["type"].as_str().map_or_else(String::new, |name| format!("event: {name}\n"));
        format!("{name}data: {data}\n\n")
    };
    data.iter().map(event).collect()
}

/// The events of a whole reply, `café ok` in two pieces, with 10 tokens in and 5 out, of which 2 were thought.
fn whole(wire: &str) -> Vec<Value> {
    match wire {
        "responses" => {
            let part = json!({"type": "output_text", "text": "café ok"});
            let response = json!({"status": "completed", "model": "m-1", "output": [{"type": "message", "content": [part]}],
                "usage": {"input_tokens": 10, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2}}});
            vec![
                json!({"type": "response.created", "response": {"status": "in_progress"}}),
                json!({"type": "response.output_text.delta", "delta": "café"}),
                json!({"type": "response.completed", "response": response}),
            ]
        }
        "anthropic" => vec![
            json!({"type": "message_start", "message": {"model": "m-1", "content": [], "usage": {"input_tokens": 10, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "a plan"}}),
            json!({"type": "ping"}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "café"}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": " ok"}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": 5, "output_tokens_details": {"thinking_tokens": 2}}}),
            json!({"type": "message_stop"}),
        ],
        "gemini" => {
            let chunk = |text: &str| json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}]});
            let mut last = chunk(" ok");
            last["candidates"][0]["finishReason"] = "STOP".into();
            last["modelVersion"] = "m-1".into();
            last["usageMetadata"] =
                json!({"promptTokenCount": 10, "candidatesTokenCount": 3, "thoughtsTokenCount": 2});
            vec![chunk("café"), last]
        }
        other => panic!("no wire {other}"),
    }
}

fn stream(text: &str) -> Vec<u8> {
    reply_with(200, &[("content-type", "text/event-stream")], text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_ends_is_a_reply_and_one_that_does_not_is_none() {
    for wire in ["responses", "anthropic", "gemini"] {
        let all = whole(wire);
        let text = events(&all);
        for (name, body) in [
            ("whole", text.clone()),
            ("carriage returns and comments", format!(": hello\n\n{text}").replace('\n', "\r\n")),
        ] {
            let server = Server::sequence(vec![stream(&body)]).await;
            let (context, _) = context(Budget::default());
            let settings = table::role_settings("", wire, server.url("x"));
            let came = connected(Role::Candidate, &settings, &context).reply(&request(1)).await;
            let came = came.unwrap_or_else(|error| panic!("{wire} {name}: {error}"));
            assert_eq!((came.outcome, came.text.as_str()), (Outcome::Reply, "café ok"), "{wire} {name}");
            let usage = Usage { input: 10, output: 3, reasoning: 2, ..Usage::default() };
            assert_eq!((came.usage, came.model.as_deref()), (Some(usage), Some("m-1")), "{wire} {name}");
            let thought = (wire == "anthropic").then_some("a plan");
            assert_eq!(came.thinking.as_deref(), thought, "{wire} {name}");
        }
        let before_end = events(&all[..all.len() - 1]);
        let last = events(&all[all.len() - 1..]);
        let last = &last[..last.len() - 9];
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "code": 503, "message": "Overloaded"}});
        for (name, body, wanted) in [
            ("without its end", before_end.clone(), Failure::Transport),
            ("cut inside an event", format!("{before_end}{last}"), Failure::Transport),
            ("with an error", format!("{before_end}{}", events(&[error])), Failure::Overload),
        ] {
            let server = Server::sequence(vec![stream(&body)]).await;
            let (context, _) = context(Budget::default());
            let settings = table::role_settings("", wire, server.url("x"));
            let error = connected(Role::Candidate, &settings, &context).reply(&request(1)).await;
            let error = error.err().unwrap_or_else(|| panic!("{wire} {name}: a reply"));
            assert_eq!((error.failure, error.attempts), (wanted, 2), "{wire} {name}: {error}");
        }
    }
}
