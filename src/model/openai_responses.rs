//! OpenAI Responses.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::endpoint::{Adapted, Endpoint, SCHEMA_NAME, author_word};
use super::errors;
use super::openai_chat::gateway_cost;
use super::profiles::Quirk;
use super::sse;
use super::wire::{Answer, Fault, Headers, Param, RawReply, WireCall, count, text_at};
use super::{Author, ChatRequest, Failure, Outcome, Usage};
use crate::config::model::Effort;

/// Builds the request.
pub(crate) fn build(endpoint: &Endpoint, request: &ChatRequest, adapted: &Adapted) -> WireCall {
    let mut draft = endpoint.call("/responses", adapted);
    draft.put("model", endpoint.model.as_str());
    if let Some(system) = &request.system {
        draft.put("instructions", &**system);
    }
    let input = request.messages.iter().map(|message| {
        let kind = match message.author {
            Author::User => "input_text",
            Author::Assistant => "output_text",
        };
        json!({"role": author_word(message.author), "content": [{"type": kind, "text": &*message.text}]})
    });
    draft.put("input", input.collect::<Vec<Value>>());
    draft.param(Param::MaxOutput, "max_output_tokens", endpoint.output_cap(request));
    draft.sampling("temperature", "top_p", None);
    draft.param(Param::Effort, "reasoning.effort", endpoint.effort.map(Effort::word));
    if let Some(schema) = endpoint.schema(request) {
        draft.put(
            "text.format",
            json!({"type": "json_schema", "name": SCHEMA_NAME, "strict": true, "schema": schema}),
        );
    }
    draft.put("store", false);
    if let Some(group) = request.cache_group.as_deref().filter(|_| endpoint.prompt_cache)
        && (endpoint.has(Quirk::CacheKey) || endpoint.has(Quirk::ConversationHeader))
    {
        draft.param(Param::PromptCache, "prompt_cache_key", Some(group));
    }
    draft.finish()
}

/// Reads the response.
pub(crate) fn parse(reply: &RawReply, now: SystemTime) -> Result<Answer, Fault> {
    let body = match errors::whole(reply, now, |text| assemble(text, now))? {
        Ok(body) => body,
        Err(answer) => return Ok(answer),
    };
    let status = text_at(&body, "/status").unwrap_or("completed");
    if matches!(status, "failed" | "cancelled") {
        return failed(&body, status, now);
    }
    if matches!(status, "queued" | "in_progress") {
        return Err(Fault::protocol(format!("the reply is still `{status}`")));
    }
    let output = body
        .get("output")
        .and_then(Value::as_array)
        .ok_or_else(|| Fault::protocol("the reply has no output"))?;
    let (mut text, mut refusal, mut thinking) = (String::new(), String::new(), String::new());
    for item in output {
        match text_at(item, "/type") {
            Some("message") => {
                for part in item.get("content").and_then(Value::as_array).into_iter().flatten() {
                    text.push_str(text_at(part, "/text").unwrap_or(""));
                    refusal.push_str(text_at(part, "/refusal").unwrap_or(""));
                }
            }
            Some("reasoning") => {
                for part in item.get("summary").and_then(Value::as_array).into_iter().flatten() {
                    thinking.push_str(text_at(part, "/text").unwrap_or(""));
                }
            }
            Some("function_call" | "custom_tool_call") => return Err(Fault::tool()),
            _ => {}
        }
    }
    let reason = text_at(&body, "/incomplete_details/reason");
    let finish = reason.unwrap_or(status).to_owned();
    let mut answer = Answer::finished(text, Some(thinking), Some(finish));
    if !refusal.is_empty() {
        answer.outcome = Outcome::Refusal;
        answer.text = refusal;
    } else if status == "incomplete" {
        answer.outcome =
            if reason == Some("content_filter") { Outcome::ReplyFiltered } else { Outcome::Truncated };
    }
    answer.usage = body.get("usage").and_then(usage);
    answer.cost = gateway_cost(&body, &reply.headers);
    answer.model = text_at(&body, "/model").filter(|model| !model.is_empty()).map(str::to_owned);
    Ok(answer)
}

/// A failed response comes with a status of success and may carry no error object.
fn failed(body: &Value, status: &str, now: SystemTime) -> Result<Answer, Fault> {
    if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
        let body = json!({"error": error}).to_string().into_bytes();
        if let errors::Opened::Answer(answer) =
            errors::open(&RawReply { status: 200, headers: Headers::default(), body }, now)?
        {
            return Ok(answer);
        }
    }
    Err(Fault::new(Failure::Server, format!("the reply has the status `{status}`")))
}

/// Input counts include cached tokens, output counts include reasoning.
fn usage(usage: &Value) -> Option<Usage> {
    let input = count(usage, "/input_tokens")?;
    let output = count(usage, "/output_tokens").unwrap_or(0);
    if input == 0 && output == 0 {
        return None;
    }
    let cache_read = count(usage, "/input_tokens_details/cached_tokens").unwrap_or(0).min(input);
    let cache_write =
        count(usage, "/input_tokens_details/cache_write_tokens").unwrap_or(0).min(input - cache_read);
    let reasoning = count(usage, "/output_tokens_details/reasoning_tokens").unwrap_or(0).min(output);
    Some(Usage {
        input: input - cache_read - cache_write,
        cache_read,
        cache_write,
        output: output - reasoning,
        reasoning,
    })
}

/// The last event of a stream holds the whole reply.
fn assemble(text: &str, now: SystemTime) -> Result<Value, Fault> {
    for event in sse::events(text) {
        let mut data = event.json()?;
        match text_at(&data, "/type").unwrap_or(&event.name) {
            "response.completed" | "response.incomplete" | "response.failed" => {
                return Ok(data.get_mut("response").map(Value::take).unwrap_or_default());
            }
            "error" => return Err(errors::inside(data.get("error").unwrap_or(&data), now)),
            _ => {}
        }
    }
    Err(sse::cut())
}
