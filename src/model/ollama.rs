//! Ollama's own chat API.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::endpoint::{Adapted, Endpoint, author_word};
use super::wire::{Answer, Fault, Headers, Param, RawReply, WireCall, count, holds_any, text_at};
use super::{ChatRequest, Failure, Outcome, Usage};
use super::{errors, sse};
use crate::config::model::Effort;

/// Context to ask for when nobody chose one. The server's own default is so small that it drops the start of a
/// transcript without a word.
const CONTEXT: u64 = 32_768;

/// Builds the request.
pub(crate) fn build(endpoint: &Endpoint, request: &ChatRequest, adapted: &Adapted) -> WireCall {
    let mut draft = endpoint.call("/api/chat", adapted);
    let system = request.system.iter().map(|text| json!({"role": "system", "content": &**text}));
    let messages =
        request.messages.iter().map(|m| json!({"role": author_word(m.author), "content": &*m.text}));
    draft.put("model", endpoint.model.as_str());
    draft.put("messages", system.chain(messages).collect::<Vec<Value>>());
    draft.put("stream", false);
    draft.put("options.num_ctx", CONTEXT);
    draft.param(Param::MaxOutput, "options.num_predict", endpoint.output_cap(request));
    draft.sampling("options.temperature", "options.top_p", Some("options.seed"));
    let think = endpoint.effort.map(|effort| match effort {
        Effort::None => Value::from(false),
        Effort::Minimal | Effort::Low => Value::from("low"),
        Effort::Medium => Value::from("medium"),
        Effort::High | Effort::Xhigh | Effort::Max => Value::from("high"),
    });
    draft.param(Param::Effort, "think", think);
    if let Some(schema) = endpoint.schema(request) {
        draft.put("format", schema);
    }
    draft.finish()
}

/// The context window that a request asks for.
pub(crate) fn context(endpoint: &Endpoint) -> u64 {
    let chosen =
        endpoint.extra_body.get("options").and_then(|options| options.get("num_ctx")).and_then(Value::as_u64);
    chosen.unwrap_or(CONTEXT)
}

/// A prompt that cannot fit: the server would drop its start without a word. Four bytes a token is a low estimate
/// for the text of conversations in Latin script and an upper bound of nothing, so only clear cases are caught here;
/// [`parse`] catches a full window afterwards.
pub(crate) fn overflows(endpoint: &Endpoint, request: &ChatRequest) -> Option<Answer> {
    let bytes: usize = request.system.iter().map(|text| text.len()).sum::<usize>()
        + request.messages.iter().map(|message| message.text.len()).sum::<usize>();
    let tokens = u64::try_from(bytes / 4).unwrap_or(u64::MAX);
    let window = context(endpoint);
    (tokens > window).then(|| {
        let finish =
            format!("about {tokens} tokens of prompt for num_ctx {window}; raise extra_body.options.num_ctx");
        Answer::bare(Outcome::ContextOverflow, finish)
    })
}

/// Reads the response.
pub(crate) fn parse(reply: &RawReply, window: u64, now: SystemTime) -> Result<Answer, Fault> {
    let body = match errors::whole(reply, now, |text| assemble(text, now))? {
        Ok(body) => body,
        Err(answer) => return Ok(answer),
    };
    let message = body
        .get("message")
        .filter(|message| message.is_object())
        .ok_or_else(|| Fault::protocol("the reply has no message"))?;
    if body.get("done").and_then(Value::as_bool) == Some(false) {
        return Err(Fault::new(Failure::Transport, "the reply is not marked as done"));
    }
    let reason = text_at(&body, "/done_reason").map(str::to_owned);
    if let Some(word @ ("load" | "unload")) = reason.as_deref() {
        return Err(Fault::protocol(format!("the server only did a model's `{word}` and wrote nothing")));
    }
    if holds_any(message, "/tool_calls") {
        return Err(Fault::tool());
    }
    let thinking = text_at(message, "/thinking").map(str::to_owned);
    let mut answer =
        Answer::finished(text_at(message, "/content").unwrap_or("").to_owned(), thinking, reason.clone());
    if reason.as_deref() == Some("length") {
        answer.outcome = Outcome::Truncated;
    }
    answer.usage = usage(&body);
    if let Some(usage) = answer.usage
        && usage.input >= window
    {
        answer.outcome = Outcome::ContextOverflow;
        answer.finish = Some(format!("the prompt fills num_ctx {window}, so its start may be lost"));
    }
    answer.model = text_at(&body, "/model").filter(|model| !model.is_empty()).map(str::to_owned);
    Ok(answer)
}

/// A prompt count is missing when the prefix was cached: then the usage is unknown.
fn usage(body: &Value) -> Option<Usage> {
    let input = count(body, "/prompt_eval_count").filter(|&n| n > 0)?;
    let output = count(body, "/eval_count").unwrap_or(0);
    Some(Usage { input, output, ..Usage::default() })
}

/// Puts the lines of a server that streams anyway together.
fn assemble(text: &str, now: SystemTime) -> Result<Value, Fault> {
    let (mut content, mut thinking) = (String::new(), String::new());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut chunk: Value = serde_json::from_str(line).map_err(|error| {
            Fault::new(Failure::Transport, format!("the stream was cut inside a line: {error}"))
        })?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            let reply = RawReply { status: 200, headers: Headers::default(), body: line.as_bytes().to_vec() };
            errors::open(&reply, now)?;
        }
        content.push_str(text_at(&chunk, "/message/content").unwrap_or(""));
        thinking.push_str(text_at(&chunk, "/message/thinking").unwrap_or(""));
        if chunk.get("done").and_then(Value::as_bool) == Some(true) {
            if let Some(fields) = chunk.as_object_mut() {
                fields.insert("message".to_owned(), json!({"content": content, "thinking": thinking}));
            }
            return Ok(chunk);
        }
    }
    Err(sse::cut())
}
