//! AWS Bedrock Converse with an API key as bearer token.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::endpoint::{Adapted, Endpoint, SCHEMA_NAME, alternating, author_word};
use super::errors;
use super::wire::{Answer, Fault, Param, RawReply, WireCall, count, text_at};
use super::{ChatRequest, Outcome, Usage, text};
use crate::config::model::Effort;

/// Builds the request.
pub(crate) fn build(endpoint: &Endpoint, request: &ChatRequest, adapted: &Adapted) -> WireCall {
    let path = format!("/model/{}/converse", text::percent_encode(&endpoint.model));
    let mut draft = endpoint.call(&path, adapted);
    if let Some(system) = &request.system {
        let mut blocks = vec![json!({"text": &**system})];
        if draft.caches() && request.cache_group.is_some() && endpoint.capabilities.cache_points {
            blocks.push(json!({"cachePoint": {"type": "default"}}));
            draft.note(Param::PromptCache, "cachePoint");
        }
        draft.put("system", blocks);
    }
    let messages = alternating(request)
        .into_iter()
        .map(|(author, text)| json!({"role": author_word(author), "content": [{"text": text}]}));
    draft.put("messages", messages.collect::<Vec<Value>>());
    draft.param(Param::MaxOutput, "inferenceConfig.maxTokens", endpoint.output_cap(request));
    draft.sampling("inferenceConfig.temperature", "inferenceConfig.topP", None);
    let effort = endpoint.effort.map(Effort::word);
    draft.param(Param::Effort, "outputConfig.effort", effort);
    if let Some(schema) = endpoint.schema(request) {
        let json_schema = json!({"name": SCHEMA_NAME, "schema": schema.to_string()});
        draft.put(
            "outputConfig.textFormat",
            json!({"type": "json_schema", "structure": {"jsonSchema": json_schema}}),
        );
    }
    draft.finish()
}

/// Reads the response.
pub(crate) fn parse(reply: &RawReply, now: SystemTime) -> Result<Answer, Fault> {
    let body =
        match errors::whole(reply, now, |_| Err(Fault::protocol("a stream of events instead of one reply")))?
        {
            Ok(body) => body,
            Err(answer) => return Ok(answer),
        };
    let blocks = body
        .pointer("/output/message/content")
        .and_then(Value::as_array)
        .ok_or_else(|| Fault::protocol("the reply has no output message"))?;
    let (mut text, mut thinking) = (String::new(), String::new());
    for block in blocks {
        if block.get("toolUse").is_some() {
            return Err(Fault::tool());
        }
        text.push_str(text_at(block, "/text").unwrap_or(""));
        thinking.push_str(text_at(block, "/reasoningContent/reasoningText/text").unwrap_or(""));
    }
    let reason = text_at(&body, "/stopReason").unwrap_or("").to_owned();
    let outcome = match reason.as_str() {
        "max_tokens" => Some(Outcome::Truncated),
        "model_context_window_exceeded" => Some(Outcome::ContextOverflow),
        // The text is the guardrail's own message, not the model's.
        "guardrail_intervened" | "content_filtered" | "content_filter" => Some(Outcome::ReplyFiltered),
        "refusal" => Some(Outcome::Refusal),
        "tool_use" => return Err(Fault::tool()),
        other if other.starts_with("malformed_") => {
            return Err(Fault::protocol(format!("the reply ended with {other}")));
        }
        _ => None,
    };
    let mut answer = Answer::finished(text, Some(thinking), Some(reason));
    answer.outcome = outcome.unwrap_or(answer.outcome);
    answer.usage = body.get("usage").and_then(usage);
    Ok(answer)
}

/// Input counts leave cached tokens out; reasoning is part of the output count.
fn usage(usage: &Value) -> Option<Usage> {
    let input = count(usage, "/inputTokens")?;
    let output = count(usage, "/outputTokens").unwrap_or(0);
    let cache_read = count(usage, "/cacheReadInputTokens").unwrap_or(0);
    let cache_write = count(usage, "/cacheWriteInputTokens").unwrap_or(0);
    if input == 0 && output == 0 && cache_read == 0 && cache_write == 0 {
        return None;
    }
    Some(Usage { input, cache_read, cache_write, output, reasoning: 0 })
}
