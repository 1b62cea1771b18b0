//! Byte-exact replies of all wires, by case name.
#![expect(clippy::needless_pass_by_value, reason = "values written with `json!` in place")]

use chrono::Utc;
use serde_json::{Value, json};

use super::server::{Act, Seen, Server, raw, reply, reply_with};

/// A server that answers `http://127.0.0.1:PORT/CASE/...` with the case's bytes.
pub(crate) async fn server() -> Server {
    Server::start(|number, seen| acts(seen, number)).await
}

fn oa(message: Value, finish: &str) -> Value {
    let mut body = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-6-luna",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": null, "refusal": null}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 2006, "completion_tokens": 300, "total_tokens": 2306,
            "prompt_tokens_details": {"cached_tokens": 1920, "cache_write_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 128}}});
    for (name, value) in message.as_object().unwrap() {
        body["choices"][0]["message"][name] = value.clone();
    }
    body
}

fn said(text: &str) -> Value {
    oa(json!({"content": text}), "stop")
}

fn oerr(message: &str, kind: &str, code: Value, param: Value) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}

fn ant(content: Value, stop: &str) -> Value {
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-5-5", "content": content,
        "stop_reason": stop, "stop_sequence": null, "stop_details": null,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 1000,
            "output_tokens": 50, "output_tokens_details": {"thinking_tokens": 30}}})
}

fn aerr(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011C"})
}

fn gem(candidates: Value) -> Value {
    json!({"candidates": candidates, "modelVersion": "gemini-3.8-flash",
        "usageMetadata": {"promptTokenCount": 1200, "cachedContentTokenCount": 1000, "candidatesTokenCount": 20,
            "thoughtsTokenCount": 70, "totalTokenCount": 1290}})
}

fn gerr(code: u16, status: &str, message: &str, details: Value) -> Value {
    json!({"error": {"code": code, "message": message, "status": status, "details": details}})
}

fn rs(output: Value, status: &str) -> Value {
    json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "gpt-6-luna",
        "error": null, "incomplete_details": null, "output": output,
        "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0},
            "output_tokens": 40, "output_tokens_details": {"reasoning_tokens": 32}, "total_tokens": 140}})
}

fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

fn chunk(delta: Value, finish: Value) -> String {
    let body = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    format!("data: {body}")
}

const SSE: [(&str, &str); 1] = [("content-type", "text/event-stream")];

fn ok(body: &Value) -> Vec<u8> {
    reply(200, body.to_string())
}

fn err(status: u16, body: &Value) -> Vec<u8> {
    reply(status, body.to_string())
}

fn err_with(status: u16, headers: &[(&str, &str)], body: &Value) -> Vec<u8> {
    reply_with(status, headers, body.to_string())
}

fn slow() -> Value {
    oerr("slow", "rate_limit_error", Value::Null, Value::Null)
}

fn bedrock(text: &str, stop: &str) -> Value {
    json!({"output": {"message": {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "hm"}}}, {"text": text}]}},
        "stopReason": stop, "metrics": {"latencyMs": 1},
        "usage": {"inputTokens": 30, "outputTokens": 8, "totalTokens": 38, "cacheReadInputTokens": 5, "cacheWriteInputTokens": 7}})
}

/// The bytes of a plain case.
fn plain(case: &str) -> Option<Vec<u8>> {
    openai(case).or_else(|| gateways(case)).or_else(|| others(case)).or_else(|| http_level(case))
}

fn openai(case: &str) -> Option<Vec<u8>> {
    let null = Value::Null;
    Some(match case {
        "oai-ok" => reply_with(
            200,
            &[
                ("x-request-id", "req_1"),
                ("x-ratelimit-remaining-requests", "499"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ],
            said("ok").to_string(),
        ),
        "oai-refusal" => ok(&oa(json!({"refusal": "I can't help with that."}), "stop")),
        "oai-content-filter" => ok(&oa(json!({"content": ""}), "content_filter")),
        "oai-length" => ok(&oa(json!({"content": "{\"verdict\":\"pa"}), "length")),
        "oai-reasoning-only" => ok(&with(
            oa(json!({"content": ""}), "length"),
            "usage",
            json!({"prompt_tokens": 9, "completion_tokens": 256, "total_tokens": 265, "completion_tokens_details": {"reasoning_tokens": 256}}),
        )),
        "oai-null-content" => ok(&oa(json!({}), "stop")),
        "oai-no-choices" => ok(
            &json!({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [], "usage": null}),
        ),
        "oai-unknown-finish" => ok(&oa(json!({"content": "hi"}), "eos_token")),
        "oai-content-parts" => ok(&oa(
            json!({"content": [{"type": "text", "text": "part1 "}, {"type": "text", "text": "part2"}]}),
            "stop",
        )),
        "oai-200-error" => ok(&oerr("Provider returned error", "server_error", json!(502), null)),
        "oai-429-rate" => err_with(
            429,
            &[
                ("retry-after", "2"),
                ("retry-after-ms", "1500"),
                ("x-ratelimit-reset-tokens", "6m0s"),
                ("x-should-retry", "true"),
            ],
            &oerr("Rate limit reached", "requests", json!("rate_limit_exceeded"), null),
        ),
        "oai-429-quota" => err(
            429,
            &oerr(
                "You exceeded your current quota",
                "insufficient_quota",
                json!("credit_balance_exhausted"),
                null,
            ),
        ),
        "oai-400-ctx" => err(
            400,
            &oerr(
                "This model's maximum context length is 128000 tokens.",
                "invalid_request_error",
                json!("context_length_exceeded"),
                json!("messages"),
            ),
        ),
        "oai-400-temp" => err(
            400,
            &oerr(
                "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
                "invalid_request_error",
                json!("unsupported_value"),
                json!("temperature"),
            ),
        ),
        "oai-400-maxtok" => err(
            400,
            &oerr(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                "invalid_request_error",
                json!("unsupported_parameter"),
                json!("max_tokens"),
            ),
        ),
        "oai-401" => err(
            401,
            &oerr(
                "Incorrect API key provided: sk-abc***xyz",
                "invalid_request_error",
                json!("invalid_api_key"),
                null,
            ),
        ),
        "oai-503" => err_with(
            503,
            &[("retry-after", "1")],
            &oerr(
                "The server is overloaded",
                "service_unavailable_error",
                json!("server_is_overloaded"),
                null,
            ),
        ),
        "rs-ok" => ok(&rs(
            json!([{"type": "reasoning", "id": "r1", "summary": []}, {"type": "message", "content": [{"type": "output_text", "text": "ok"}]}]),
            "completed",
        )),
        "rs-refusal" => ok(&rs(
            json!([{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]),
            "completed",
        )),
        "rs-incomplete" => ok(&with(
            rs(json!([{"type": "reasoning", "summary": []}]), "incomplete"),
            "incomplete_details",
            json!({"reason": "max_output_tokens"}),
        )),
        "rs-filter" => {
            ok(&with(rs(json!([]), "incomplete"), "incomplete_details", json!({"reason": "content_filter"})))
        }
        "rs-failed" => ok(&with(
            with(
                rs(json!([]), "failed"),
                "error",
                json!({"code": "rate_limit_exceeded", "message": "Rate limit"}),
            ),
            "usage",
            null,
        )),
        _ => return None,
    })
}

fn gateways(case: &str) -> Option<Vec<u8>> {
    let null = Value::Null;
    Some(match case {
        "azure-400-filter" => err(
            400,
            &json!({"error": {"message": "The response was filtered", "type": null, "param": "prompt", "code": "content_filter", "status": 400,
            "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"jailbreak": {"filtered": true, "detected": true}, "violence": {"filtered": false, "severity": "safe"}}}}}),
        ),
        "azure-429" => err_with(
            429,
            &[("retry-after", "2"), ("retry-after-ms", "1700")],
            &json!({"error": {"code": "429", "message": "Please retry after 2 seconds."}}),
        ),
        "azure-401" => {
            err(401, &json!({"statusCode": 401, "message": "Unauthorized. Access token is missing, invalid"}))
        }
        "gw-502-html" => reply_with(
            502,
            &[("content-type", "text/html")],
            "<html><head><title>502 Bad Gateway</title></head></html>",
        ),
        "gw-200-html" => reply_with(200, &[("content-type", "text/html")], "<html>Sign in</html>"),
        "gw-504-empty" => reply(504, ""),
        "litellm-429" => err_with(
            429,
            &[("retry-after", "3")],
            &oerr("litellm.RateLimitError: ...", "throttling_error", json!("429"), null),
        ),
        "fastapi-422" => err(
            422,
            &json!({"detail": [{"loc": ["body", "messages"], "msg": "field required", "type": "missing"}]}),
        ),
        "err-string" => err(500, &json!({"error": "model 'x' not found"})),
        // Beyond the canned replies: what gateways do to the errors behind them.
        "lit-renamed" => err_with(429, &[("llm_provider-retry-after", "7")], &slow()),
        "lit-nodb" => err(400, &oerr("No connected db.", "no_db_connection", json!("400"), null)),
        "lit-ctx" => err(400, &oerr("litellm.ContextWindowExceededError: too long", "", json!("400"), null)),
        "lit-refusal" => ok(&oa(json!({"provider_specific_fields": {"refusal": "No, thank you."}}), "stop")),
        "lit-cost" => reply_with(200, &[("x-litellm-response-cost", "1.794e-4")], said("ok").to_string()),
        "or-cost" => ok(&with(
            said("ok"),
            "usage",
            json!({"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.000_012_5}),
        )),
        "or-moderation" => err(
            403,
            &json!({"error": {"code": 403, "message": "flagged", "metadata": {"reasons": ["self-harm"], "flagged_input": "x"}}}),
        ),
        "or-finish-error" => ok(&oa(json!({"content": "half"}), "error")),
        "or-402" => err(402, &oerr("Insufficient credits", "", json!(402), null)),
        "xai-400" => err(400, &json!({"code": "invalid-argument", "error": "Model is unknown to us"})),
        "xai-reasoning" => ok(&with(
            said("ok"),
            "usage",
            json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}),
        )),
        "vllm-legacy" => err(
            400,
            &json!({"object": "error", "message": "This model's maximum context length is 4096 tokens", "type": "BadRequestError", "code": 400}),
        ),
        "llama-ctx" => err(
            400,
            &json!({"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error", "n_ctx": 4096}}),
        ),
        "llama-loading" => err(
            503,
            &json!({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}),
        ),
        "no-retry" => err_with(500, &[("x-should-retry", "false")], &slow()),
        "think-inline" => ok(&said("<think>a plan</think>Hello")),
        _ => return None,
    })
}

fn others(case: &str) -> Option<Vec<u8>> {
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let part = |text: &str| json!([{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}]);
    Some(match case {
        "ant-ok" => reply_with(200, &[("request-id", "req_1")], ant(json!([{"type": "thinking", "thinking": "", "signature": "s"}, {"type": "text", "text": "ok"}]), "end_turn").to_string()),
        "ant-refusal" => ok(&with(ant(json!([]), "refusal"), "stop_details", json!({"type": "refusal", "category": "cyber", "explanation": "x"}))),
        "ant-empty" => ok(&ant(json!([]), "end_turn")),
        "ant-maxtok" => ok(&ant(json!([{"type": "thinking", "thinking": "", "signature": "s"}]), "max_tokens")),
        "ant-ctx-stop" => ok(&ant(text("part"), "model_context_window_exceeded")),
        "ant-pause" => ok(&ant(text("part"), "pause_turn")),
        "ant-unknown-block" => ok(&ant(json!([{"type": "brand_new_block", "x": 1}, {"type": "text", "text": "ok"}]), "end_turn")),
        "ant-429" => err_with(429, &[("retry-after", "7"), ("anthropic-ratelimit-requests-remaining", "0"), ("anthropic-ratelimit-requests-reset", "2026-11-30T05:00:00Z")], &aerr("rate_limit_error", "This request would exceed your rate limit")),
        "ant-429-spend" => err(429, &json!({"type": "error", "error": {"type": "rate_limit_error", "message": "spend limit", "details": {"error_code": "enforced_spend_limit_reached"}}})),
        "ant-529" => err_with(529, &[("x-should-retry", "true")], &aerr("overloaded_error", "Overloaded")),
        "ant-400-temp" => err(400, &aerr("invalid_request_error", "temperature: Extra inputs are not permitted")),
        "ant-400-toolchoice" => err(400, &aerr("invalid_request_error", "tool_choice forces tool use is not supported for this model")),
        "ant-400-ctx" => err(400, &aerr("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum")),
        "ant-413" => err(413, &aerr("request_too_large", "Request exceeds the maximum size")),
        "ant-402" => err(402, &aerr("billing_error", "no money")),
        "gem-ok" => ok(&gem(part("ok"))),
        "gem-blocked" => ok(&json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 5}})),
        "gem-safety" => ok(&gem(json!([{"finishReason": "SAFETY", "index": 0, "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "blocked": true}]}]))),
        "gem-empty-parts" => ok(&gem(json!([{"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}]))),
        "gem-thought-part" => ok(&gem(json!([{"content": {"role": "model", "parts": [{"text": "secret plan", "thought": true}, {"text": "answer", "thoughtSignature": "x"}]}, "finishReason": "STOP"}]))),
        "gem-429-minute" => err(429, &gerr(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", json!([
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "quotaValue": "5"}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.723541104s"}]))),
        "gem-429-day" => err(429, &gerr(429, "RESOURCE_EXHAUSTED", "quota", json!([
            {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "20"}]}, {"retryDelay": "35640s"}]))),
        "gem-503" => err(503, &gerr(503, "UNAVAILABLE", "The model is overloaded. Please try again later.", json!([]))),
        "gem-400-key" => err(400, &gerr(400, "INVALID_ARGUMENT", "API key not valid.", json!([{"reason": "API_KEY_INVALID", "domain": "googleapis.com"}]))),
        "gem-continuation" => ok(&gem(json!([{"content": {"role": "model", "parts": [{"text": "half"}]}, "finishReason": "CONTINUATION"}]))),
        "oll-ok" => ok(&json!({"model": "m", "message": {"role": "assistant", "content": "ok", "thinking": "hmm"}, "done": true, "done_reason": "stop", "prompt_eval_count": 12, "eval_count": 3})),
        "oll-404" => err(404, &json!({"error": "model 'nope' not found"})),
        "oll-full" => ok(&json!({"model": "m", "message": {"content": "ok"}, "done": true, "done_reason": "stop", "prompt_eval_count": 32768, "eval_count": 3})),
        "oll-lines" => ok_lines(&[r#"{"model":"m","message":{"content":"a"},"done":false}"#, r#"{"model":"m","message":{"content":"b"},"done":true,"done_reason":"stop"}"#]),
        "oll-line-error" => ok_lines(&[r#"{"model":"m","message":{"content":"a"},"done":false}"#, r#"{"error":"ran out of memory"}"#]),
        "oll-line-cut" => ok_lines(&[r#"{"model":"m","message":{"content":"a"},"done":false}"#, r#"{"model":"m","message":{"content":"b"},"done":false}"#]),
        "br-ok" => ok(&bedrock("ok", "end_turn")),
        "br-guardrail" => ok(&bedrock("Sorry, blocked.", "guardrail_intervened")),
        "br-length" => ok(&bedrock("cut", "max_tokens")),
        "br-throttle" => err_with(429, &[("x-amzn-errortype", "ThrottlingException:http://x")], &json!({"message": "Too many requests"})),
        "br-long" => err_with(400, &[("x-amzn-errortype", "ValidationException")], &json!({"Message": "Input is too long for requested model."})),
        "br-denied" => err_with(403, &[("x-amzn-errortype", "AccessDeniedException")], &json!({"Message": "no access"})),
        "br-424" => err_with(424, &[("x-amzn-errortype", "ModelErrorException")], &json!({"message": "x"})),
        _ => return None,
    })
}

fn ok_lines(lines: &[&str]) -> Vec<u8> {
    reply_with(200, &[("content-type", "application/x-ndjson")], lines.join("\n") + "\n")
}

fn http_level(case: &str) -> Option<Vec<u8>> {
    let after = |value: &str| err_with(429, &[("retry-after", value)], &slow());
    let whole = said("ok").to_string();
    Some(match case {
        "ra-date" => {
            let then = Utc::now() + chrono::Duration::seconds(3);
            after(&then.format("%a, %d %b %Y %H:%M:%S GMT").to_string())
        }
        "ra-float" => after("1.5"),
        "ra-neg" => after("-5"),
        "ra-huge" => after("86400"),
        "ra-junk" => after("soon"),
        "malformed-json" => reply(200, r#"{"choices":[{"message":{"content":"ok""#),
        "bom-json" => reply(200, [b"\xef\xbb\xbf".as_slice(), whole.as_bytes()].concat()),
        "latin1-json" => {
            let text = said("caf@").to_string().into_bytes();
            reply(
                200,
                text.into_iter().map(|byte| if byte == b'@' { 0xe9 } else { byte }).collect::<Vec<u8>>(),
            )
        }
        "text-plain-json" => reply_with(200, &[("content-type", "text/plain; charset=utf-8")], whole),
        "gzip" => reply_with(200, &[("content-encoding", "gzip")], gzip(said("gz").to_string().as_bytes())),
        "no-content-length" => raw(200, &[], said("until close").to_string()),
        "redirect-308" => reply_with(308, &[("location", "/oai-ok/v1/chat/completions")], ""),
        "redirect-offsite" => reply_with(307, &[("location", "http://127.0.0.2:9/x")], ""),
        "empty-200" => reply(200, ""),
        "204" => raw(204, &[], ""),
        "short-body" => {
            let length = (whole.len() + 50).to_string();
            raw(200, &[("content-length", &length)], whole)
        }
        "chunked-cut" => {
            let start = &whole[..16];
            raw(200, &[("transfer-encoding", "chunked")], format!("10\r\n{start}\r\n"))
        }
        "huge-header" => {
            let pad = "a".repeat(70_000);
            reply_with(200, &[("x-pad", &pad)], whole)
        }
        "sse-cut" => raw(200, &SSE, chunk(json!({"content": "half "}), Value::Null) + "\n\n"),
        "sse-crlf" => {
            let (a, b) =
                (chunk(json!({"content": "a"}), Value::Null), chunk(json!({"content": "b"}), json!("stop")));
            raw(200, &SSE, format!(": keepalive\r\n\r\n{a}\r\n\r\n{b}\r\n\r\ndata: [DONE]\r\n\r\n"))
        }
        "sse-mid-error" => {
            let error = oerr("upstream died", "server_error", Value::Null, Value::Null);
            raw(200, &SSE, format!("{}\n\ndata: {error}\n\n", chunk(json!({"content": "a"}), Value::Null)))
        }
        _ => return None,
    })
}

/// A gzip file with one stored block: no compressor is needed to test a decompressor.
fn gzip(data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap();
    let mut crc = u32::MAX;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    file.extend(length.to_le_bytes());
    file.extend((!length).to_le_bytes());
    file.extend(data);
    file.extend((!crc).to_le_bytes());
    file.extend(u32::from(length).to_le_bytes());
    file
}

fn acts(seen: &Seen, number: usize) -> Vec<Act> {
    let whole = said("ok").to_string();
    let head = raw(200, &[("content-type", "application/json"), ("content-length", "500")], "");
    match seen.case() {
        "close-immediately" => vec![],
        "never-respond" => vec![Act::Hang],
        "reset" => vec![Act::Write([head.as_slice(), b"{\"ch"].concat()), Act::Reset],
        "slow-drip" => vec![Act::Drip(1, reply(200, whole))],
        "flaky" => {
            let case = ["oai-429-rate", "oai-503", "oai-ok"][(number - 1).min(2)];
            vec![Act::Write(plain(case).unwrap())]
        }
        "huge-body" => {
            let mut acts = vec![Act::Write(raw(200, &[], "{\"x\":\""))];
            acts.extend((0..64).map(|_| Act::Write(vec![b'a'; 1024 * 1024])));
            acts
        }
        "sse-split-utf8" => {
            let text = chunk(json!({"content": "caf\u{e9} \u{1f600}"}), json!("stop"));
            let stream = raw(200, &SSE, format!("{text}\n\ndata: [DONE]\n\n"));
            vec![Act::Drip(64, stream)]
        }
        case => {
            vec![Act::Write(plain(case).unwrap_or_else(|| {
                err(404, &oerr(&format!("no case {case}"), "", Value::Null, Value::Null))
            }))]
        }
    }
}
