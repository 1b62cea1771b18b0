//! Anthropic Messages.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::endpoint::{Adapted, Endpoint, alternating, author_word};
use super::errors::{self, Opened};
use super::wire::{Answer, Fault, Param, RawReply, WireCall, count, text_at};
use super::{ChatRequest, Outcome, Usage};
use crate::config::model::Effort;

/// The version that all current models answer to.
const VERSION: &str = "2023-06-01";
/// The provider demands a cap; this one leaves room for thinking where nobody chose one.
const DEFAULT_CAP: u32 = 4096;

/// Builds the request.
pub(crate) fn build(endpoint: &Endpoint, request: &ChatRequest, adapted: &Adapted) -> WireCall {
    let mut draft = endpoint.call("/v1/messages", adapted);
    draft.header("anthropic-version", endpoint.api_version.as_deref().unwrap_or(VERSION));
    draft.put("model", endpoint.model.as_str());
    let cap = endpoint
        .output_cap(request)
        .unwrap_or_else(|| DEFAULT_CAP.saturating_mul(request.output_scale.max(1)));
    draft.put("max_tokens", cap);
    let breakpoint = json!({"type": "ephemeral"});
    if let Some(system) = &request.system {
        if draft.caches() && request.cache_group.is_some() {
            draft.put("system", json!([{"type": "text", "text": &**system, "cache_control": breakpoint}]));
            draft.note(Param::PromptCache, "cache_control");
        } else {
            draft.put("system", &**system);
        }
    }
    let turns = alternating(request);
    let last = turns.len().saturating_sub(1);
    let grows = turns.len() > 1 && request.answer.is_none();
    let caches = draft.caches() && grows;
    let messages = turns.iter().enumerate().map(|(index, (author, text))| {
        // A growing conversation reads in each turn what it wrote in the turn before.
        if caches && index == last {
            let block = json!({"type": "text", "text": text, "cache_control": breakpoint});
            json!({"role": author_word(*author), "content": [block]})
        } else {
            json!({"role": author_word(*author), "content": text})
        }
    });
    let messages = messages.collect::<Vec<Value>>();
    if caches {
        draft.note(Param::PromptCache, "cache_control");
    }
    draft.put("messages", messages);
    draft.sampling("temperature", "top_p", None);
    match endpoint.effort {
        Some(Effort::None) => draft.param(Param::Effort, "thinking", Some(json!({"type": "disabled"}))),
        effort => draft.param(Param::Effort, "output_config.effort", effort.map(Effort::word)),
    }
    if let Some(schema) = endpoint.schema(request) {
        draft.put("output_config.format", json!({"type": "json_schema", "schema": schema}));
    }
    draft.finish()
}

/// Reads the response.
pub(crate) fn parse(reply: &RawReply, now: SystemTime) -> Result<Answer, Fault> {
    let body = match errors::open(reply, now)? {
        Opened::Body(body) => body,
        Opened::Stream(_) => return Err(Fault::protocol("a stream of events instead of one reply")),
        Opened::Answer(answer) => return Ok(answer),
    };
    let blocks = body
        .get("content")
        .and_then(Value::as_array)
        .ok_or_else(|| Fault::protocol("the reply has no content"))?;
    let (mut text, mut thinking) = (String::new(), String::new());
    for block in blocks {
        match text_at(block, "/type") {
            Some("text") => text.push_str(text_at(block, "/text").unwrap_or("")),
            Some("thinking") => thinking.push_str(text_at(block, "/thinking").unwrap_or("")),
            Some("tool_use") => return Err(Fault::tool()),
            _ => {}
        }
    }
    let reason = text_at(&body, "/stop_reason").unwrap_or("");
    let mut answer =
        Answer::finished(text, Some(thinking), Some(reason.to_owned()).filter(|r| !r.is_empty()));
    match reason {
        "refusal" => {
            answer.outcome = Outcome::Refusal;
            if let Some(category) = text_at(&body, "/stop_details/category") {
                answer.finish = Some(format!("refusal: {category}"));
            }
        }
        "max_tokens" | "length" => answer.outcome = Outcome::Truncated,
        "model_context_window_exceeded" => answer.outcome = Outcome::ContextOverflow,
        // Some gateways use OpenAI's word here.
        "content_filter" => answer.outcome = Outcome::ReplyFiltered,
        "tool_use" => return Err(Fault::tool()),
        // Only server-side tools pause a turn, and only a beta compacts it; no request here asks for either.
        "pause_turn" | "compaction" => {
            return Err(Fault::protocol(format!(
                "the turn is paused ({reason}), which no request here asks for"
            )));
        }
        _ => {}
    }
    answer.usage = body.get("usage").and_then(usage);
    answer.model = text_at(&body, "/model").filter(|model| !model.is_empty()).map(str::to_owned);
    Ok(answer)
}

/// Input counts leave cached tokens out, output counts include thinking.
fn usage(usage: &Value) -> Option<Usage> {
    let input = count(usage, "/input_tokens")?;
    let output = count(usage, "/output_tokens").unwrap_or(0);
    let cache_read = count(usage, "/cache_read_input_tokens").unwrap_or(0);
    let cache_write = count(usage, "/cache_creation_input_tokens").unwrap_or(0);
    if input == 0 && output == 0 && cache_read == 0 && cache_write == 0 {
        return None;
    }
    let reasoning = count(usage, "/output_tokens_details/thinking_tokens").unwrap_or(0).min(output);
    Some(Usage { input, cache_read, cache_write, output: output - reasoning, reasoning })
}
