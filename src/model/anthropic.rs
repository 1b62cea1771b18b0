//! Anthropic Messages.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::endpoint::{Adapted, Endpoint, alternating, author_word};
use super::wire::{Answer, Fault, Param, RawReply, WireCall, count, text_at};
use super::{ChatRequest, Outcome, Usage};
use super::{errors, sse};
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
    let body = match errors::whole(reply, now, |text| assemble(text, now))? {
        Ok(body) => body,
        Err(answer) => return Ok(answer),
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

/// Puts the events of a stream together in the shape of a whole reply.
fn assemble(text: &str, now: SystemTime) -> Result<Value, Fault> {
    let (mut body, mut blocks) = (Value::Null, BTreeMap::new());
    for event in sse::events(text) {
        let data = event.json()?;
        let index = count(&data, "/index").unwrap_or(0);
        match text_at(&data, "/type").unwrap_or(&event.name) {
            "message_start" => body = data.get("message").cloned().unwrap_or_default(),
            "content_block_start" => {
                blocks.insert(index, data.get("content_block").cloned().unwrap_or_default());
            }
            "content_block_delta" => {
                for key in ["text", "thinking"] {
                    if let (Some(block), Some(more)) =
                        (blocks.get_mut(&index), text_at(&data, &format!("/delta/{key}")))
                    {
                        let so_far = text_at(block, &format!("/{key}")).unwrap_or("").to_owned();
                        merge(block, &json!({key: so_far + more}));
                    }
                }
            }
            // Counts that come later are those of the whole.
            "message_delta" => {
                merge(&mut body, data.get("delta").unwrap_or(&Value::Null));
                if let (Some(usage), Some(more)) = (body.get_mut("usage"), data.get("usage")) {
                    merge(usage, more);
                }
            }
            "message_stop" => {
                let content: Vec<Value> = blocks.into_values().collect();
                merge(&mut body, &json!({"content": content}));
                return Ok(body);
            }
            "error" => return Err(errors::inside(data.get("error").unwrap_or(&data), now)),
            _ => {}
        }
    }
    Err(sse::cut())
}

/// Sets the fields of one object in another.
fn merge(into: &mut Value, from: &Value) {
    if let (Some(into), Some(from)) = (into.as_object_mut(), from.as_object()) {
        into.extend(from.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
}
