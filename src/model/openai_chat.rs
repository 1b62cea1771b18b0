//! OpenAI Chat Completions, and the many servers that speak it.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::endpoint::{Adapted, Endpoint, SCHEMA_NAME, author_word};
use super::errors;
use super::profiles::Quirk;
use super::wire::{Answer, Fault, Headers, Param, RawReply, WireCall, count, holds_any, text_at};
use super::{ChatRequest, Failure, Money, Outcome, Usage, sse, text};
use crate::config::model::Effort;

/// Builds the request.
pub(crate) fn build(endpoint: &Endpoint, request: &ChatRequest, adapted: &Adapted) -> WireCall {
    let path = match &endpoint.api_version {
        Some(version) if endpoint.has(Quirk::Deployments) => format!(
            "/openai/deployments/{}/chat/completions?api-version={}",
            text::percent_encode(&endpoint.model),
            text::percent_encode(version)
        ),
        _ => "/chat/completions".to_owned(),
    };
    let mut draft = endpoint.call(&path, adapted);
    let system = request.system.iter().map(|text| json!({"role": "system", "content": &**text}));
    let messages =
        request.messages.iter().map(|m| json!({"role": author_word(m.author), "content": &*m.text}));
    draft.put("model", endpoint.model.as_str());
    draft.put("messages", system.chain(messages).collect::<Vec<Value>>());
    let max_field = adapted.max_field.unwrap_or(endpoint.profile.max_field.name());
    draft.param(Param::MaxOutput, max_field, endpoint.output_cap(request));
    let seed = if endpoint.has(Quirk::RandomSeed) { "random_seed" } else { "seed" };
    draft.sampling("temperature", "top_p", Some(seed));
    draft.param(Param::Effort, "reasoning_effort", endpoint.effort.map(Effort::word));
    if let Some(schema) = endpoint.schema(request) {
        let format = json!({"name": SCHEMA_NAME, "strict": true, "schema": schema});
        draft.put("response_format", json!({"type": "json_schema", "json_schema": format}));
        if endpoint.has(Quirk::RequireParameters) {
            draft.put("provider.require_parameters", true);
        }
    }
    if endpoint.has(Quirk::Store) {
        draft.put("store", false);
    }
    if let Some(group) = &request.cache_group
        && endpoint.prompt_cache
    {
        if endpoint.has(Quirk::CacheKey) {
            draft.param(Param::PromptCache, "prompt_cache_key", Some(group.as_str()));
        }
        if endpoint.has(Quirk::ConversationHeader) {
            draft.header("x-grok-conv-id", group.as_str());
        }
    }
    draft.finish()
}

/// Reads the response.
pub(crate) fn parse(reply: &RawReply, now: SystemTime) -> Result<Answer, Fault> {
    let body = match errors::whole(reply, now, |text| assemble(text, now))? {
        Ok(body) => body,
        Err(answer) => return Ok(answer),
    };
    let choice = body.pointer("/choices/0").ok_or_else(|| Fault::protocol("the reply has no choices"))?;
    let finish = text_at(choice, "/finish_reason").map(str::to_owned);
    if let Some(error) = choice.get("error").filter(|error| !error.is_null()) {
        return Err(errors::inside(error, now));
    }
    match finish.as_deref() {
        Some("error" | "abort") => {
            return Err(Fault::new(Failure::Server, "the upstream provider failed while it wrote"));
        }
        Some("insufficient_system_resource") => {
            return Err(Fault::new(Failure::Overload, "the provider ran out of resources while it wrote"));
        }
        _ => {}
    }
    let message = choice
        .get("message")
        .filter(|message| message.is_object())
        .ok_or_else(|| Fault::protocol("the choice has no message"))?;
    let content = message_text(message)?;
    let thinking =
        ["/reasoning_content", "/reasoning"].iter().find_map(|p| text_at(message, p)).map(str::to_owned);
    let refusal = ["/refusal", "/provider_specific_fields/refusal"].iter().find_map(|p| text_at(message, p));
    let mut answer = Answer::finished(content.text, thinking, finish.clone());
    let ends_in_tool = matches!(finish.as_deref(), Some("tool_calls" | "function_call"));
    if holds_any(message, "/tool_calls") || (ends_in_tool && answer.outcome == Outcome::Empty) {
        return Err(Fault::tool());
    }
    if let Some(refusal) =
        refusal.map(str::to_owned).or(content.refusal).filter(|refusal| !refusal.is_empty())
    {
        answer.outcome = Outcome::Refusal;
        answer.text = refusal;
    } else {
        match finish.as_deref() {
            Some("content_filter") => {
                answer.outcome = Outcome::ReplyFiltered;
                answer.finish = Some(filter_category(choice));
            }
            // Gateways add the reason to the word, or use Google's.
            Some(word) if word.starts_with("content_filter") || word.eq_ignore_ascii_case("safety") => {
                answer.outcome = Outcome::ReplyFiltered;
            }
            Some("length" | "max_tokens" | "model_length") => answer.outcome = Outcome::Truncated,
            _ => {}
        }
    }
    answer.usage = body.get("usage").and_then(usage);
    answer.cost = gateway_cost(&body, &reply.headers);
    answer.model = text_at(&body, "/model").filter(|model| !model.is_empty()).map(str::to_owned);
    Ok(answer)
}

struct Content {
    text: String,
    refusal: Option<String>,
}

/// The text of a message: a string, parts, or nothing.
fn message_text(message: &Value) -> Result<Content, Fault> {
    let mut content = Content { text: String::new(), refusal: None };
    match message.get("content") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => content.text.push_str(text),
        Some(Value::Array(parts)) => {
            for part in parts {
                if let Some(text) = part.as_str().or_else(|| text_at(part, "/text")) {
                    content.text.push_str(text);
                } else if let Some(text) = text_at(part, "/refusal") {
                    content.refusal.get_or_insert_default().push_str(text);
                }
            }
        }
        Some(_) => return Err(Fault::protocol("the message's content is neither text nor parts")),
    }
    Ok(content)
}

fn filter_category(choice: &Value) -> String {
    let results = choice.get("content_filter_results").and_then(Value::as_object);
    let fired: Vec<&str> = results
        .into_iter()
        .flatten()
        .filter(|(_, result)| result.get("filtered").and_then(Value::as_bool) == Some(true))
        .map(|(name, _)| name.as_str())
        .collect();
    if fired.is_empty() {
        "content_filter".to_owned()
    } else {
        format!("content_filter: {}", fired.join(", "))
    }
}

/// Prompt counts include cached tokens, completion counts include reasoning; where a server leaves the reasoning
/// out, the total shows it.
pub(crate) fn usage(usage: &Value) -> Option<Usage> {
    let prompt = count(usage, "/prompt_tokens")?;
    let completion = count(usage, "/completion_tokens").unwrap_or(0);
    if prompt == 0 && completion == 0 {
        return None;
    }
    let cache_read = count(usage, "/prompt_tokens_details/cached_tokens")
        .or_else(|| count(usage, "/prompt_cache_hit_tokens"))
        .unwrap_or(0)
        .min(prompt);
    let cache_write =
        count(usage, "/prompt_tokens_details/cache_write_tokens").unwrap_or(0).min(prompt - cache_read);
    let total = count(usage, "/total_tokens").unwrap_or(0);
    let outside = total.saturating_sub(prompt.saturating_add(completion));
    let reasoning = count(usage, "/completion_tokens_details/reasoning_tokens").unwrap_or(0);
    let (output, reasoning) = if outside > 0 {
        (completion, outside)
    } else {
        let reasoning = reasoning.min(completion);
        (completion - reasoning, reasoning)
    };
    Some(Usage { input: prompt - cache_read - cache_write, cache_read, cache_write, output, reasoning })
}

/// What OpenRouter and LiteLLM say that the call cost.
pub(crate) fn gateway_cost(body: &Value, headers: &Headers) -> Option<Money> {
    let said = match body.pointer("/usage/cost") {
        Some(Value::Number(number)) => Money::parse_dollars(&number.to_string()),
        _ => None,
    };
    said.or_else(|| headers.get("x-litellm-response-cost").and_then(Money::parse_dollars))
        // LiteLLM says 0 for a model it has no price for.
        .filter(|cost| *cost > Money::ZERO)
}

/// Puts the chunks of a stream together in the shape of a whole reply.
fn assemble(text: &str, now: SystemTime) -> Result<Value, Fault> {
    let (mut content, mut refusal, mut reasoning) = (String::new(), String::new(), String::new());
    let (mut finish, mut usage, mut model, mut done) = (None, Value::Null, Value::Null, false);
    let mut tools = Value::Null;
    for event in sse::events(text) {
        if event.data.trim() == "[DONE]" {
            done = true;
            break;
        }
        let chunk = event.json()?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(errors::inside(error, now));
        }
        for (pointer, place) in [
            ("/choices/0/delta/content", &mut content),
            ("/choices/0/delta/refusal", &mut refusal),
            ("/choices/0/delta/reasoning_content", &mut reasoning),
        ] {
            place.push_str(text_at(&chunk, pointer).unwrap_or(""));
        }
        if holds_any(&chunk, "/choices/0/delta/tool_calls") {
            tools = json!([{}]);
        }
        if let Some(reason) = text_at(&chunk, "/choices/0/finish_reason") {
            finish = Some(reason.to_owned());
        }
        for (name, place) in [("usage", &mut usage), ("model", &mut model)] {
            if let Some(value) = chunk.get(name).filter(|value| !value.is_null()) {
                *place = value.clone();
            }
        }
    }
    if finish.is_none() && !done {
        return Err(sse::cut());
    }
    let message =
        json!({"content": content, "refusal": refusal, "reasoning_content": reasoning, "tool_calls": tools});
    Ok(json!({"choices": [{"message": message, "finish_reason": finish}], "usage": usage, "model": model}))
}
