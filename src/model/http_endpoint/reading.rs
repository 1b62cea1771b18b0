//! Reading the replies of a team's own chatbot: one body, server-sent events, or lines.

use std::time::SystemTime;

use serde_json::Value;

use super::pointer::{self, Found};
use crate::config::model::{HttpSettings, StreamEnd, StreamKind, StreamSettings};
use crate::model::errors::{self, Opened};
use crate::model::text::one_line;
use crate::model::wire::{Answer, Fault, RawReply};
use crate::model::{Failure, Outcome, Usage, sse};

/// Reads the reply of a turn.
pub(super) fn turn(settings: &HttpSettings, reply: &RawReply, now: SystemTime) -> Result<Answer, Fault> {
    let success = (200..300).contains(&reply.status);
    match &settings.stream {
        Some(stream) if success && stream.kind != StreamKind::None => streamed(settings, stream, reply),
        _ if success && settings.reply.is_empty() => {
            let text = utf8(reply)?;
            Ok(Answer::finished(text.to_owned(), None, None))
        }
        _ => match errors::open(reply, now)? {
            Opened::Body(body) => whole(settings, &body),
            Opened::Answer(answer) => Ok(answer),
            Opened::Stream(_) => {
                Err(Fault::protocol("the chatbot streams its reply; configure `http.stream`"))
            }
        },
    }
}

/// Reads the reply of `start`: session id and greeting.
pub(super) fn start(
    settings: &HttpSettings,
    reply: &RawReply,
    now: SystemTime,
) -> Result<(Option<String>, Option<String>), Fault> {
    if settings.session_id.is_none() && settings.greeting.is_empty() && (200..300).contains(&reply.status) {
        return Ok((None, None));
    }
    let body = match errors::open(reply, now)? {
        Opened::Body(body) => body,
        Opened::Answer(_) | Opened::Stream(_) => {
            return Err(Fault::protocol("the reply to `start` is not one JSON value"));
        }
    };
    let session = match &settings.session_id {
        None => None,
        Some(at) => {
            let found = pointer::find(&body, at).into_iter().find_map(|value| match value {
                Value::String(text) if !text.is_empty() => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            });
            let found = found.ok_or_else(|| {
                Fault::protocol(format!("the reply to `start` has no session id at `{at}`"))
            })?;
            Some(found)
        }
    };
    let greeting = match pointer::text(&body, &settings.greeting) {
        Found::Text(text) if !text.trim().is_empty() => Some(text),
        Found::NoText(kind) => {
            return Err(Fault::protocol(format!("the greeting is {kind} instead of text")));
        }
        Found::Text(_) | Found::Nothing => None,
    };
    Ok((session, greeting))
}

fn utf8(reply: &RawReply) -> Result<&str, Fault> {
    let body = reply.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&reply.body);
    std::str::from_utf8(body).map_err(|error| {
        Fault::protocol(format!("the body is not UTF-8 from byte {} on", error.valid_up_to()))
    })
}

fn whole(settings: &HttpSettings, body: &Value) -> Result<Answer, Fault> {
    let refused = settings.refusal.as_ref().is_some_and(|at| pointer::holds(body, at));
    let text = match pointer::text(body, &settings.reply) {
        Found::Text(text) => text,
        Found::Nothing if refused => String::new(),
        Found::Nothing => {
            let keys = body
                .as_object()
                .map(|fields| fields.keys().map(String::as_str).collect::<Vec<_>>().join(", "));
            let has =
                keys.map_or_else(|| "no object".to_owned(), |keys| format!("only {}", one_line(&keys, 120)));
            let places = settings.reply.join("`, `");
            return Err(Fault::protocol(format!("the reply has nothing at `{places}`, {has}")));
        }
        Found::NoText(kind) => return Err(Fault::protocol(format!("the reply's text is {kind}"))),
    };
    let mut answer = Answer::finished(text, None, None);
    if refused {
        answer.outcome = Outcome::Refusal;
    }
    details(settings, body, &mut answer);
    Ok(answer)
}

/// Usage and model, where the settings say where they stand.
fn details(settings: &HttpSettings, body: &Value, answer: &mut Answer) {
    let at = |pointer: &Option<String>| {
        pointer.as_ref().and_then(|pointer| pointer::find(body, pointer).into_iter().find_map(Value::as_u64))
    };
    let (input, output) = (at(&settings.usage_input), at(&settings.usage_output));
    if input.is_some() || output.is_some() {
        let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
        answer.usage = Some(Usage { input, output, ..Usage::default() });
    }
    if let Some(at) = &settings.model {
        let named = pointer::find(body, at).into_iter().find_map(Value::as_str).map(str::to_owned);
        answer.model = named.or(answer.model.take());
    }
}

fn streamed(settings: &HttpSettings, stream: &StreamSettings, reply: &RawReply) -> Result<Answer, Fault> {
    let text = utf8(reply)?;
    let mut pieces = String::new();
    let mut answer = Answer::finished(String::new(), None, None);
    let mut refused = false;
    let mut ended = stream.end == StreamEnd::Close;
    for (name, data) in frames(stream.kind, text) {
        if ends_by_name(stream, &name)
            || matches!(&stream.end, StreamEnd::Data(mark) if data.trim() == mark.trim())
        {
            ended = true;
            break;
        }
        let value = match serde_json::from_str::<Value>(&data) {
            Ok(value) => value,
            // An empty pointer takes the data itself, which need not be JSON then.
            Err(_) if stream.delta.is_empty() => Value::String(data.clone()),
            Err(error) => {
                return Err(Fault::new(
                    Failure::Transport,
                    format!("the stream was cut inside a part: {error}"),
                ));
            }
        };
        if stream.error.as_ref().is_some_and(|at| pointer::holds(&value, at)) || name == "error" {
            return Err(Fault::new(
                Failure::Server,
                format!("error in the stream: {}", one_line(&data, 200)),
            ));
        }
        if stream.event.as_ref().is_none_or(|wanted| *wanted == name) {
            match pointer::text(&value, std::slice::from_ref(&stream.delta)) {
                Found::Text(piece) => pieces.push_str(&piece),
                Found::Nothing => {}
                Found::NoText(kind) => {
                    return Err(Fault::protocol(format!("a part of the stream is {kind}")));
                }
            }
        }
        refused |= settings.refusal.as_ref().is_some_and(|at| pointer::holds(&value, at));
        details(settings, &value, &mut answer);
        if matches!(&stream.end, StreamEnd::Pointer(at) if pointer::holds(&value, at)) {
            ended = true;
            break;
        }
    }
    if !ended {
        return Err(Fault::new(Failure::Transport, "the stream ended without its end mark"));
    }
    let read = Answer::finished(pieces, None, None);
    let outcome = if refused { Outcome::Refusal } else { read.outcome };
    Ok(Answer { outcome, text: read.text, thinking: read.thinking, ..answer })
}

fn ends_by_name(stream: &StreamSettings, name: &str) -> bool {
    stream.kind == StreamKind::Sse && matches!(&stream.end, StreamEnd::Event(end) if end == name)
}

fn frames(kind: StreamKind, text: &str) -> Vec<(String, String)> {
    match kind {
        StreamKind::Sse => sse::events(text).into_iter().map(|event| (event.name, event.data)).collect(),
        StreamKind::Ndjson | StreamKind::None => text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| (String::new(), line.trim().to_owned()))
            .collect(),
    }
}

/// The mark is in the last frame; reading only a tail keeps long streams cheap.
const TAIL: usize = 16 * 1024;

/// Whether a stream that may stay open has reached its end mark.
pub(super) fn is_complete(stream: &StreamSettings, body: &[u8]) -> bool {
    if stream.end == StreamEnd::Close || !body.ends_with(b"\n") {
        return false;
    }
    let tail = body.get(body.len().saturating_sub(TAIL)..).unwrap_or(body);
    let tail = String::from_utf8_lossy(tail);
    if stream.kind == StreamKind::Sse && !(tail.ends_with("\n\n") || tail.ends_with("\r\n\r\n")) {
        return false;
    }
    let Some((name, data)) = frames(stream.kind, &tail).pop() else { return false };
    match &stream.end {
        StreamEnd::Data(mark) => data.trim() == mark.trim(),
        StreamEnd::Event(_) => ends_by_name(stream, &name),
        StreamEnd::Pointer(at) => {
            serde_json::from_str(&data).is_ok_and(|value: Value| pointer::holds(&value, at))
        }
        StreamEnd::Close => false,
    }
}
