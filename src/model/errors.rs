//! Errors of providers and gateways: one tolerant reader for all their shapes, one classification.

use std::time::SystemTime;

use serde_json::Value;

use super::text::{one_line, without_tags};
use super::wire::{Answer, Fault, Headers, RawReply, Retry};
use super::{Failure, Outcome, hints};

/// Longest message taken over from a provider, in bytes.
const LONGEST: usize = 300;
/// Longest excerpt of a page that is no JSON, in bytes.
const EXCERPT: usize = 120;

/// A response with a status of success, or what an error status means.
pub(crate) enum Opened {
    /// A JSON body without an error in it.
    Body(Value),
    /// A successful status with a body that is a stream of events or lines.
    Stream(String),
    /// The error is an outcome of the call: a filtered or an overlong prompt.
    Answer(Answer),
}

/// Reads status and body.
pub(crate) fn open(reply: &RawReply, now: SystemTime) -> Result<Opened, Fault> {
    let body = reply.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&reply.body);
    if !(200..300).contains(&reply.status) {
        let text = String::from_utf8_lossy(body);
        let value = serde_json::from_str(&text).ok();
        return refused(reply.status, &reply.headers, value.as_ref(), &text, now).map(Opened::Answer);
    }
    let text = std::str::from_utf8(body).map_err(|error| {
        Fault::protocol(format!("the body is not UTF-8 from byte {} on", error.valid_up_to()))
    })?;
    let trimmed = text.trim_start();
    if trimmed.is_empty() {
        return Err(Fault::protocol(format!("status {} with an empty body", reply.status)));
    }
    if ["data:", "event:", "id:", ":"].iter().any(|mark| trimmed.starts_with(mark)) {
        return Ok(Opened::Stream(text.to_owned()));
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) => match embedded_error(&value) {
            Some(status) => refused(status, &reply.headers, Some(&value), text, now).map(Opened::Answer),
            None => Ok(Opened::Body(value)),
        },
        Err(_) if trimmed.starts_with('<') => Err(Fault::protocol(format!(
            "an HTML page instead of JSON, base_url is probably wrong: {}",
            one_line(&without_tags(text), EXCERPT)
        ))),
        Err(_) if trimmed.starts_with('{') && trimmed.trim_end().contains("}\n{") => {
            Ok(Opened::Stream(text.to_owned()))
        }
        Err(error) => Err(Fault::protocol(format!("the body is not JSON: {error}"))),
    }
}

/// Reads the body of a reply that was asked for as a whole. A server may stream it anyway: then `assemble` puts it
/// together. The inner error is a finished answer that has no such body.
pub(crate) fn whole(
    reply: &RawReply,
    now: SystemTime,
    assemble: impl FnOnce(&str) -> Result<Value, Fault>,
) -> Result<Result<Value, Answer>, Fault> {
    Ok(match open(reply, now)? {
        Opened::Body(body) => Ok(body),
        Opened::Stream(text) => Ok(assemble(&text)?),
        Opened::Answer(answer) => Err(answer),
    })
}

/// An error that stands inside a reply of success.
pub(crate) fn inside(error: &Value, now: SystemTime) -> Fault {
    let body = serde_json::json!({ "error": error }).to_string().into_bytes();
    match open(&RawReply { status: 200, headers: Headers::default(), body }, now) {
        Err(fault) => fault,
        Ok(_) => Fault::new(Failure::Server, "the upstream provider failed"),
    }
}

/// The status that an error inside a successful response stands for.
fn embedded_error(value: &Value) -> Option<u16> {
    let error = value.get("error").filter(|error| match error {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Number(_) | Value::Array(_) => true,
    })?;
    let number = error
        .get("code")
        .or_else(|| error.get("status"))
        .and_then(|code| code.as_u64().or_else(|| code.as_str().and_then(|text| text.parse().ok())));
    if let Some(status) = number.and_then(|n| u16::try_from(n).ok()).filter(|n| (400..600).contains(n)) {
        return Some(status);
    }
    let body = ErrorBody::read(Some(value), &Headers::default());
    Some(match () {
        () if body.says(&["rate_limit", "too_many_requests"]) => 429,
        () if body.says(&["overloaded", "unavailable"]) => 503,
        () if body.says(&["invalid_request", "invalid_prompt", "content_filter", "policy"]) => 400,
        () if body.says(&["authentication", "invalid_api_key"]) => 401,
        () if body.says(&["not_found"]) => 404,
        () => 500,
    })
}

/// The parts of an error body, whatever its shape.
#[derive(Debug, Default)]
struct ErrorBody {
    message: String,
    /// Codes, types and statuses in lower case, as far as the body and the headers name any.
    words: Vec<String>,
    param: Option<String>,
}

impl ErrorBody {
    fn read(value: Option<&Value>, headers: &Headers) -> Self {
        let mut body = Self::default();
        if let Some(kind) = headers.get("x-amzn-errortype") {
            body.word(kind.split(':').next().unwrap_or(kind));
        }
        let Some(root) = value else { return body };
        // Google answers some requests with a list of one error.
        let root = root.get(0).unwrap_or(root);
        let error = root.get("error").filter(|error| !error.is_null()).unwrap_or(root);
        for place in [error, root] {
            for key in ["code", "type", "status", "object", "__type"] {
                match place.get(key) {
                    Some(Value::String(text)) => body.word(text),
                    Some(Value::Number(number)) => body.word(&number.to_string()),
                    _ => {}
                }
            }
        }
        for pointer in ["/innererror/code", "/details/error_code", "/metadata/error_type"] {
            if let Some(text) = error.pointer(pointer).and_then(Value::as_str) {
                body.word(text);
            }
        }
        for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
            if let Some(reason) = detail.get("reason").and_then(Value::as_str) {
                body.word(reason);
            }
            for violation in detail.get("violations").and_then(Value::as_array).into_iter().flatten() {
                if let Some(id) = violation.get("quotaId").and_then(Value::as_str) {
                    body.word(id);
                }
                if violation.get("quotaValue").and_then(Value::as_str) == Some("0") {
                    body.word("quota_value_zero");
                }
            }
        }
        if error.pointer("/metadata/flagged_input").is_some() || error.pointer("/metadata/reasons").is_some()
        {
            body.word("moderation");
        }
        body.param = error.get("param").and_then(Value::as_str).map(str::to_owned);
        body.message = Self::find_message(root, error).unwrap_or_default();
        body
    }

    fn find_message(root: &Value, error: &Value) -> Option<String> {
        let named = ["message", "Message", "detail", "error_description"];
        let text = error
            .as_str()
            .or_else(|| named.iter().find_map(|key| error.get(key).and_then(Value::as_str)))
            .or_else(|| named.iter().find_map(|key| root.get(key).and_then(Value::as_str)));
        if let Some(text) = text {
            return Some(text.to_owned());
        }
        // FastAPI: a list of places and messages.
        let list = root.get("detail")?.as_array()?;
        let items = list.iter().filter_map(|item| {
            let message = item.get("msg")?.as_str()?;
            let place = item.get("loc").and_then(Value::as_array).map(|parts| {
                parts
                    .iter()
                    .map(|p| p.as_str().map_or_else(|| p.to_string(), str::to_owned))
                    .collect::<Vec<_>>()
            });
            Some(place.map_or_else(|| message.to_owned(), |place| format!("{}: {message}", place.join("."))))
        });
        Some(items.collect::<Vec<_>>().join("; "))
    }

    fn word(&mut self, text: &str) {
        self.words.push(text.to_lowercase());
    }

    /// Whether one of the codes, types and statuses contains one of these.
    fn says(&self, parts: &[&str]) -> bool {
        self.words.iter().any(|word| parts.iter().any(|part| word.contains(part)))
    }

    /// Whether the message contains one of these, in any case.
    fn tells(&self, parts: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        parts.iter().any(|part| message.contains(part))
    }

    fn is_filter(&self) -> bool {
        self.says(&["content_filter", "responsibleaipolicyviolation", "moderation", "content_policy"])
    }

    fn is_overflow(&self, status: u16) -> bool {
        self.says(&["context_length_exceeded", "exceed_context_size", "request_too_large"])
            || status == 413
            || (matches!(status, 400 | 422 | 500)
                && self.tells(&[
                    "maximum context length",
                    "prompt is too long",
                    "contextwindowexceeded",
                    "exceeds the maximum number of tokens",
                    "input is too long",
                    "exceeds the available context size",
                    "input token count",
                ]))
    }

    fn is_quota(&self, status: u16) -> bool {
        let money = self.says(&[
            "insufficient_quota",
            "credit_balance",
            "spend_limit",
            "usage_limit_exceeded",
            "billing",
            "perday",
            "quota_value_zero",
            "insufficient_credits",
        ]);
        money
            || status == 402
            || (matches!(status, 400 | 403 | 429)
                && self.tells(&[
                    "credit balance is too low",
                    "spend limit",
                    "insufficient credits",
                    "budget has been exceeded",
                ]))
    }

    fn is_auth(&self, status: u16) -> bool {
        matches!(status, 401 | 403 | 407)
            || self.says(&["api_key_invalid", "invalid_api_key", "authentication_error"])
            || (status == 400 && self.tells(&["no connected db", "api key not valid", "invalid api key"]))
    }
}

/// What an error status means: an outcome or a fault.
fn refused(
    status: u16,
    headers: &Headers,
    value: Option<&Value>,
    text: &str,
    now: SystemTime,
) -> Result<Answer, Fault> {
    if (300..400).contains(&status) {
        let place = headers.get("location").unwrap_or("no address");
        let host = place.split('/').nth(2).filter(|_| place.contains("://")).unwrap_or(place);
        return Err(Fault::new(
            Failure::NotFound,
            format!(
                "status {status}: the server redirects to {}, which is not followed; set base_url to the final address",
                one_line(host, EXCERPT)
            ),
        ));
    }
    let body = ErrorBody::read(value, headers);
    if body.is_filter() {
        return Ok(Answer::bare(
            Outcome::PromptFiltered,
            category(value).unwrap_or_else(|| "content_filter".to_owned()),
        ));
    }
    if body.is_overflow(status) {
        return Ok(Answer::bare(Outcome::ContextOverflow, one_line(&body.message, LONGEST)));
    }
    let mut message = one_line(&body.message, LONGEST);
    if message.is_empty() {
        message = one_line(&without_tags(text), EXCERPT);
    }
    if message.is_empty() {
        "no message".clone_into(&mut message);
    }
    let failure = match status {
        _ if body.is_quota(status) => Failure::Quota,
        _ if body.is_auth(status) => Failure::Auth,
        404 => Failure::NotFound,
        _ if body.says(&["model_not_found", "deploymentnotfound"]) => Failure::NotFound,
        429 => Failure::Rate,
        503 | 529 => Failure::Overload,
        _ if body.says(&["overloaded"]) => Failure::Overload,
        408 | 409 | 424 | 425 | 500..600 => Failure::Server,
        _ if body.says(&["throttling", "rate_limit"]) => Failure::Rate,
        _ => Failure::BadRequest,
    };
    let mut fault = Fault::new(failure, format!("status {status}: {message}"));
    fault.hint = hints::read(headers, value, now);
    if fault.hint.should_retry == Some(false) {
        fault.retry = Retry::Never;
    }
    if failure == Failure::BadRequest {
        // Another try of a refused form is only asked for by the server itself.
        if fault.hint.should_retry == Some(true) {
            fault.retry = Retry::Allowed;
        }
        let param = body.param.as_deref().map(|param| format!("{param}: ")).unwrap_or_default();
        let words = body.words.join(" ");
        fault.refused_form = Some(format!("{param}{} [{words}]", body.message));
    }
    Err(fault)
}

/// The categories that a filter names: Azure's filter results that fired.
fn category(value: Option<&Value>) -> Option<String> {
    let error = value?.get("error")?;
    let results = error.pointer("/innererror/content_filter_result")?.as_object()?;
    let fired = results
        .iter()
        .filter(|(_, result)| result.get("filtered").and_then(Value::as_bool) == Some(true))
        .map(|(name, _)| name.as_str())
        .collect::<Vec<_>>();
    (!fired.is_empty()).then(|| format!("content_filter: {}", fired.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failure(status: u16, body: &Value) -> Failure {
        let reply = RawReply { status, headers: Headers::default(), body: body.to_string().into_bytes() };
        match open(&reply, SystemTime::UNIX_EPOCH) {
            Err(fault) => fault.failure,
            Ok(_) => panic!("{status} {body} is no fault"),
        }
    }

    #[test]
    fn every_error_shape_gives_its_message() {
        for (body, wanted) in [
            (json!({"error": {"message": "m1", "code": null}}), "m1"),
            (json!({"error": "m2"}), "m2"),
            (json!({"code": "invalid-argument", "error": "m3"}), "m3"),
            (json!({"detail": "m4"}), "m4"),
            (json!({"detail": [{"loc": ["body", "messages", 0], "msg": "m5"}]}), "body.messages.0: m5"),
            (json!({"Message": "m6"}), "m6"),
            (json!({"object": "error", "message": "m7", "code": 40303}), "m7"),
            (json!([{"error": {"message": "m8"}}]), "m8"),
            (json!({"error": {"message": ["not", "text"]}}), ""),
            (json!(7), ""),
        ] {
            assert_eq!(ErrorBody::read(Some(&body), &Headers::default()).message, wanted, "{body}");
        }
    }

    #[test]
    fn money_is_told_from_rate() {
        for code in [
            "insufficient_quota",
            "credit_balance_exhausted",
            "organization_spend_limit_exceeded",
            "project_spend_limit_exceeded",
            "organization_usage_limit_exceeded",
        ] {
            assert_eq!(
                failure(429, &json!({"error": {"message": "x", "code": code}})),
                Failure::Quota,
                "{code}"
            );
        }
        assert_eq!(failure(402, &json!({"error": {"message": "x"}})), Failure::Quota);
        assert_eq!(failure(429, &json!({"error": {"message": "x", "code": "slow_down"}})), Failure::Rate);
        // Google words a limit per minute like a used-up quota; only the id tells.
        let per_minute = json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota",
            "details": [{"violations": [{"quotaId": "GenerateRequestsPerMinute", "quotaValue": "5"}]}]}});
        assert_eq!(failure(429, &per_minute), Failure::Rate);
    }

    #[test]
    fn statuses_that_can_be_tried_again() {
        let body = json!({"error": {"message": "x"}});
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
            let fault = failure(status, &body);
            assert_eq!(Fault::new(fault, "").retry, Retry::Allowed, "{status}");
        }
        for status in [400, 401, 403, 404, 405, 422, 301] {
            let fault = failure(status, &body);
            assert_eq!(Fault::new(fault, "").retry, Retry::Never, "{status}");
        }
    }

    #[test]
    fn a_gateway_that_hides_a_bad_key_is_understood() {
        assert_eq!(failure(400, &json!({"error": {"message": "No connected db."}})), Failure::Auth);
    }

    #[test]
    fn an_error_inside_success_is_an_error() {
        assert_eq!(failure(200, &json!({"error": {"message": "x", "code": 502}})), Failure::Server);
        assert_eq!(
            failure(200, &json!({"error": {"message": "x", "code": "rate_limit_exceeded"}})),
            Failure::Rate
        );
        assert_eq!(failure(200, &json!({"error": "x"})), Failure::Server);
    }
}
