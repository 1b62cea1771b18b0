//! What a server says about when to come back, in all the forms in which servers say it.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::wire::Headers;

/// A server's advice on one failed request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hint {
    /// Wait at least this long.
    pub(crate) after: Option<Duration>,
    /// `x-should-retry`, which overrules the status.
    pub(crate) should_retry: Option<bool>,
}

/// Reads headers first, then the body; a hint that cannot be read is no hint.
pub(crate) fn read(headers: &Headers, body: Option<&Value>, now: SystemTime) -> Hint {
    let should_retry = headers.get("x-should-retry").and_then(|text| match text.trim() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    });
    let after = direct(headers, "retry-after-ms", "retry-after", now)
        .or_else(|| direct(headers, "llm_provider-retry-after-ms", "llm_provider-retry-after", now))
        .or_else(|| body.and_then(retry_info))
        .or_else(|| body.and_then(retry_sentence))
        .or_else(|| resets(headers, now));
    Hint { after, should_retry }
}

fn direct(headers: &Headers, millis: &str, plain: &str, now: SystemTime) -> Option<Duration> {
    let millis = headers
        .get(millis)
        .and_then(|text| text.trim().parse::<f64>().ok())
        .and_then(|ms| seconds(ms / 1000.0));
    millis.or_else(|| headers.get(plain).and_then(|text| retry_after(text, now)))
}

/// `Retry-After` as seconds (fractions allowed) or as a date; a date in the past is no wait.
fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return seconds(number);
    }
    let date = chrono::DateTime::parse_from_rfc2822(text).ok()?;
    Some(until(date.into(), now))
}

fn seconds(number: f64) -> Option<Duration> {
    if number < 0.0 { None } else { Duration::try_from_secs_f64(number).ok() }
}

fn until(then: SystemTime, now: SystemTime) -> Duration {
    then.duration_since(now).unwrap_or_default()
}

/// Google's `RetryInfo.retryDelay`: `"3.723541104s"`.
fn retry_info(body: &Value) -> Option<Duration> {
    let root = body.get(0).unwrap_or(body);
    let details = root.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay").and_then(Value::as_str))?;
    seconds(delay.strip_suffix('s')?.parse().ok()?)
}

/// Azure's sentence "Please retry after 2 seconds".
fn retry_sentence(body: &Value) -> Option<Duration> {
    let message = body.pointer("/error/message")?.as_str()?.to_lowercase();
    let (_, rest) = message.split_once("retry after ")?;
    let mut words = rest.split_whitespace();
    let number: f64 = words.next()?.parse().ok()?;
    words.next()?.starts_with("second").then(|| seconds(number)).flatten()
}

/// The reset of whichever limit is used up: `x-ratelimit-reset-*` as a duration, `anthropic-ratelimit-*-reset` as
/// a time. The longest one counts, because all of them must be clear.
fn resets(headers: &Headers, now: SystemTime) -> Option<Duration> {
    let mut longest = None;
    for (name, text) in headers.iter() {
        let left = if let Some(limit) = name.strip_prefix("x-ratelimit-reset-") {
            used_up(headers, &format!("x-ratelimit-remaining-{limit}")).then(|| go_duration(text)).flatten()
        } else if let Some(limit) =
            name.strip_prefix("anthropic-ratelimit-").and_then(|name| name.strip_suffix("-reset"))
        {
            used_up(headers, &format!("anthropic-ratelimit-{limit}-remaining"))
                .then(|| chrono::DateTime::parse_from_rfc3339(text.trim()).ok())
                .flatten()
                .map(|date| until(date.into(), now))
        } else {
            None
        };
        longest = longest.max(left);
    }
    longest
}

fn used_up(headers: &Headers, name: &str) -> bool {
    headers.get(name).is_some_and(|text| text.trim() == "0")
}

/// A Go duration: `1s`, `6m0s`, `120ms`, `1h2m3.5s`; a bare number counts as seconds.
pub(crate) fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if let Ok(number) = rest.parse::<f64>() {
        return seconds(number);
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest.get(..digits)?.parse().ok()?;
        rest = rest.get(digits..)?;
        let (unit, size) =
            [("ms", 0.001), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9), ("h", 3600.0), ("m", 60.0), ("s", 1.0)]
                .into_iter()
                .find(|(unit, _)| rest.starts_with(unit))?;
        rest = rest.strip_prefix(unit)?;
        total += number * size;
    }
    if text.trim().is_empty() { None } else { seconds(total) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// 2026-11-30T04:59:50Z.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_014_790)
    }

    fn after(headers: &[(&str, &str)], body: &Value) -> Option<f64> {
        let headers = Headers::from_pairs(headers.iter().copied());
        read(&headers, Some(body), now()).after.map(|d| d.as_secs_f64())
    }

    #[test]
    fn every_form_of_a_hint_is_read() {
        let retry_info = json!({"error": {"details": [{"@type": "QuotaFailure"}, {"retryDelay": "3.5s"}]}});
        for (headers, body, wanted) in [
            // Milliseconds win over seconds.
            (vec![("retry-after", "2"), ("retry-after-ms", "1500")], json!({}), Some(1.5)),
            (vec![("retry-after", "1.5")], json!({}), Some(1.5)),
            (vec![("retry-after", "Mon, 30 Nov 2026 04:59:53 GMT")], json!({}), Some(3.0)),
            // A date in the past means now.
            (vec![("retry-after", "Mon, 30 Nov 2026 04:00:00 GMT")], json!({}), Some(0.0)),
            (vec![("retry-after", "-5")], json!({}), None),
            (vec![("retry-after", "soon")], json!({}), None),
            (vec![("retry-after", "NaN")], json!({}), None),
            (vec![("retry-after", "1e300")], json!({}), None),
            (vec![("retry-after", "86400")], json!({}), Some(86400.0)),
            (vec![("llm_provider-retry-after", "7")], json!({}), Some(7.0)),
            (vec![], retry_info.clone(), Some(3.5)),
            (vec![], json!([retry_info]), Some(3.5)),
            (vec![], json!({"error": {"message": "Please retry after 2 seconds."}}), Some(2.0)),
            (
                vec![("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m0s")],
                json!({}),
                Some(360.0),
            ),
            // A limit that is not used up says nothing about this failure.
            (
                vec![("x-ratelimit-remaining-tokens", "5"), ("x-ratelimit-reset-tokens", "6m0s")],
                json!({}),
                None,
            ),
            (
                vec![
                    ("anthropic-ratelimit-requests-remaining", "0"),
                    ("anthropic-ratelimit-requests-reset", "2026-11-30T05:00:00Z"),
                ],
                json!({}),
                Some(10.0),
            ),
            (vec![], json!({}), None),
        ] {
            assert_eq!(after(&headers, &body), wanted, "{headers:?}");
        }
    }

    #[test]
    fn go_durations_are_read() {
        for (text, wanted) in [
            ("1s", Some(1.0)),
            ("6m0s", Some(360.0)),
            ("120ms", Some(0.12)),
            ("1h2m3s", Some(3723.0)),
            ("1.5s", Some(1.5)),
            ("20", Some(20.0)),
            ("", None),
            ("m", None),
            ("5x", None),
            ("1.2.3s", None),
        ] {
            assert_eq!(go_duration(text).map(|d| d.as_secs_f64()), wanted, "{text}");
        }
    }

    #[test]
    fn should_retry_is_read() {
        let read = |text| read(&Headers::from_pairs([("x-should-retry", text)]), None, now()).should_retry;
        assert_eq!((read("true"), read("false"), read("maybe")), (Some(true), Some(false), None));
    }
}
