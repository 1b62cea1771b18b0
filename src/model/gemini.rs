//! Google Gemini generateContent.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::endpoint::{Adapted, Endpoint, alternating};
use super::wire::{Answer, Fault, Param, RawReply, WireCall, count, text_at};
use super::{Author, ChatRequest, Outcome, Usage, text};
use super::{errors, sse};
use crate::config::model::Effort;

/// Builds the request.
pub(crate) fn build(endpoint: &Endpoint, request: &ChatRequest, adapted: &Adapted) -> WireCall {
    let model = endpoint.model.strip_prefix("models/").unwrap_or(&endpoint.model);
    let mut draft =
        endpoint.call(&format!("/models/{}:generateContent", text::percent_encode(model)), adapted);
    if let Some(system) = &request.system {
        draft.put("systemInstruction", json!({"parts": [{"text": &**system}]}));
    }
    let contents = alternating(request).into_iter().map(|(author, text)| {
        let role = match author {
            Author::User => "user",
            Author::Assistant => "model",
        };
        json!({"role": role, "parts": [{"text": text}]})
    });
    draft.put("contents", contents.collect::<Vec<Value>>());
    draft.param(Param::MaxOutput, "generationConfig.maxOutputTokens", endpoint.output_cap(request));
    draft.sampling("generationConfig.temperature", "generationConfig.topP", Some("generationConfig.seed"));
    if let Some(effort) = endpoint.effort {
        // The 2.5 family counts tokens, the later ones take words.
        if model.contains("2.5") {
            draft.param(
                Param::Effort,
                "generationConfig.thinkingConfig.thinkingBudget",
                Some(budget(effort)),
            );
        } else {
            let level = match effort {
                Effort::None => "MINIMAL".to_owned(),
                Effort::Max => "XHIGH".to_owned(),
                other => other.word().to_uppercase(),
            };
            draft.param(Param::Effort, "generationConfig.thinkingConfig.thinkingLevel", Some(level));
        }
    }
    if let Some(schema) = endpoint.schema(request) {
        draft.put("generationConfig.responseMimeType", "application/json");
        draft.put("generationConfig.responseJsonSchema", schema);
    }
    draft.finish()
}

/// Thinking tokens for an effort word: off, or a share of the 24,576 that the smaller 2.5 models allow.
fn budget(effort: Effort) -> i64 {
    match effort {
        Effort::None => 0,
        Effort::Minimal => 512,
        Effort::Low => 1024,
        Effort::Medium => 8192,
        Effort::High | Effort::Xhigh | Effort::Max => 24_576,
    }
}

/// Reads the response.
pub(crate) fn parse(reply: &RawReply, now: SystemTime) -> Result<Answer, Fault> {
    let body = match errors::whole(reply, now, |text| assemble(text, now))? {
        Ok(body) => body,
        Err(answer) => return Ok(answer),
    };
    let mut answer = read(&body)?;
    answer.usage = body.get("usageMetadata").and_then(usage);
    answer.model = text_at(&body, "/modelVersion").filter(|model| !model.is_empty()).map(str::to_owned);
    Ok(answer)
}

fn read(body: &Value) -> Result<Answer, Fault> {
    let Some(candidate) = body.pointer("/candidates/0") else {
        return match text_at(body, "/promptFeedback/blockReason") {
            Some(reason) => Ok(Answer::bare(Outcome::PromptFiltered, reason)),
            None => Err(Fault::protocol("the reply has no candidates")),
        };
    };
    let (mut text, mut thinking) = (String::new(), String::new());
    for part in candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
        if part.get("functionCall").is_some() {
            return Err(Fault::tool());
        }
        let place = if part.get("thought").and_then(Value::as_bool) == Some(true) {
            &mut thinking
        } else {
            &mut text
        };
        place.push_str(text_at(part, "/text").unwrap_or(""));
    }
    let reason = text_at(candidate, "/finishReason").unwrap_or("");
    let mut answer =
        Answer::finished(text, Some(thinking), Some(reason.to_owned()).filter(|r| !r.is_empty()));
    match reason {
        "MAX_TOKENS" => answer.outcome = Outcome::Truncated,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "OTHER"
        | "LANGUAGE"
        | "ESCALATION"
        | "PUP_LIMITED_DISABLED" => {
            answer.outcome = Outcome::ReplyFiltered;
            answer.finish = Some(blocked(candidate, reason));
        }
        "MALFORMED_FUNCTION_CALL"
        | "MALFORMED_RESPONSE"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE"
        | "CONTINUATION" => {
            return Err(Fault::protocol(format!("the reply ended with {reason}")));
        }
        image if image.starts_with("IMAGE_") => answer.outcome = Outcome::ReplyFiltered,
        _ => {}
    }
    Ok(answer)
}

fn blocked(candidate: &Value, reason: &str) -> String {
    let fired: Vec<&str> = candidate
        .get("safetyRatings")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|rating| rating.get("blocked").and_then(Value::as_bool) == Some(true))
        .filter_map(|rating| text_at(rating, "/category"))
        .collect();
    if fired.is_empty() { reason.to_owned() } else { format!("{reason}: {}", fired.join(", ")) }
}

/// Prompt counts include cached tokens, candidate counts leave thoughts out; zero counts are not sent at all.
fn usage(usage: &Value) -> Option<Usage> {
    let at = |pointer| count(usage, pointer).unwrap_or(0);
    let prompt = at("/promptTokenCount").saturating_add(at("/toolUsePromptTokenCount"));
    let (output, reasoning) = (at("/candidatesTokenCount"), at("/thoughtsTokenCount"));
    if prompt == 0 && output == 0 && reasoning == 0 {
        return None;
    }
    let cache_read = at("/cachedContentTokenCount").min(prompt);
    Some(Usage { input: prompt - cache_read, cache_read, cache_write: 0, output, reasoning })
}

/// Puts the chunks of a stream together in the shape of a whole reply.
fn assemble(text: &str, now: SystemTime) -> Result<Value, Fault> {
    let (mut parts, mut whole) = (Vec::new(), Value::Null);
    for event in sse::events(text) {
        let chunk = event.json()?;
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(errors::inside(error, now));
        }
        let more = chunk.pointer("/candidates/0/content/parts").and_then(Value::as_array);
        parts.extend(more.into_iter().flatten().cloned());
        // The last chunk has the reason and the counts.
        whole = chunk;
    }
    let ended =
        whole.pointer("/candidates/0/finishReason").is_some() || whole.get("promptFeedback").is_some();
    if !ended {
        return Err(sse::cut());
    }
    if let Some(candidate) = whole.pointer_mut("/candidates/0").and_then(Value::as_object_mut) {
        candidate.insert("content".to_owned(), json!({"parts": parts}));
    }
    Ok(whole)
}
