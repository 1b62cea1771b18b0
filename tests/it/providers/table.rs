//! Every canned reply and what must become of it, per wire.

use std::time::Duration;

use vera_gate::config::model::{Api, ModelSettings};
use vera_gate::model::meter::Budget;
use vera_gate::model::{Exchange, Failure, ModelError, Money, Outcome, Role, Usage};

use super::{KEY, canned, connected, context, request, settings};

/// What a case must give.
pub(super) enum Want {
    /// An exchange with this outcome, text and finish.
    Comes(Outcome, &'static str, Option<&'static str>),
    /// An error of this kind whose message contains this.
    Fails(Failure, &'static str),
}

use Failure::{Auth, BadRequest, NotFound, Overload, Protocol, Quota, Rate, Server, Timeout, Transport};
use Outcome::{ContextOverflow, Empty, PromptFiltered, Refusal, Reply, ReplyFiltered, Truncated};
use Want::{Comes, Fails};

/// Case, provider, what must come, requests, and the bounds in milliseconds of the first wait.
pub(super) type Row = (&'static str, &'static str, Want, usize, Option<(u64, u64)>);

/// With one retry.
pub(super) fn rows() -> Vec<Row> {
    vec![
        ("oai-ok", "openai", Comes(Reply, "ok", Some("stop")), 1, None),
        ("oai-refusal", "openai", Comes(Refusal, "I can't help with that.", None), 1, None),
        ("oai-content-filter", "openai", Comes(ReplyFiltered, "", Some("content_filter")), 1, None),
        ("oai-length", "openai", Comes(Truncated, "{\"verdict\":\"pa", None), 1, None),
        ("oai-reasoning-only", "openai", Comes(Truncated, "", None), 1, None),
        ("oai-null-content", "openai", Comes(Empty, "", None), 1, None),
        ("oai-no-choices", "openai", Fails(Protocol, "no choices"), 2, None),
        ("oai-unknown-finish", "openai", Comes(Reply, "hi", Some("eos_token")), 1, None),
        ("oai-content-parts", "openai", Comes(Reply, "part1 part2", None), 1, None),
        ("oai-200-error", "openrouter", Fails(Server, "Provider returned error"), 2, None),
        ("oai-429-rate", "openai", Fails(Rate, "Rate limit reached"), 2, Some((1500, 1650))),
        ("oai-429-quota", "openai", Fails(Quota, "OPENAI_API_KEY"), 1, None),
        ("oai-400-ctx", "openai", Comes(ContextOverflow, "", None), 1, None),
        ("oai-400-temp", "openai", Fails(BadRequest, "temperature"), 2, None),
        ("oai-400-maxtok", "vllm", Fails(BadRequest, "max_tokens"), 3, None),
        ("oai-401", "openai", Fails(Auth, "OPENAI_API_KEY"), 1, None),
        ("oai-503", "openai", Fails(Overload, "overloaded"), 2, Some((1000, 1100))),
        ("azure-400-filter", "azure", Comes(PromptFiltered, "", Some("content_filter: jailbreak")), 1, None),
        ("azure-429", "azure", Fails(Rate, ""), 2, Some((1700, 1870))),
        ("azure-401", "azure", Fails(Auth, "Access token is missing"), 1, None),
        ("gw-502-html", "openai", Fails(Server, "502 Bad Gateway"), 2, None),
        ("gw-200-html", "openai", Fails(Protocol, "base_url is probably wrong"), 2, None),
        ("gw-504-empty", "openai", Fails(Server, "504"), 2, None),
        ("litellm-429", "litellm", Fails(Rate, ""), 2, Some((3000, 3300))),
        ("fastapi-422", "vllm", Fails(BadRequest, "body.messages: field required"), 1, None),
        ("err-string", "openai", Fails(Server, "model 'x' not found"), 2, None),
        ("rs-ok", "responses", Comes(Reply, "ok", Some("completed")), 1, None),
        ("rs-refusal", "responses", Comes(Refusal, "No.", None), 1, None),
        ("rs-incomplete", "responses", Comes(Truncated, "", Some("max_output_tokens")), 1, None),
        ("rs-filter", "responses", Comes(ReplyFiltered, "", Some("content_filter")), 1, None),
        ("rs-failed", "responses", Fails(Rate, "Rate limit"), 2, None),
        ("ant-ok", "anthropic", Comes(Reply, "ok", Some("end_turn")), 1, None),
        ("ant-refusal", "anthropic", Comes(Refusal, "", Some("refusal: cyber")), 1, None),
        ("ant-empty", "anthropic", Comes(Empty, "", None), 1, None),
        ("ant-maxtok", "anthropic", Comes(Truncated, "", None), 1, None),
        ("ant-ctx-stop", "anthropic", Comes(ContextOverflow, "part", None), 1, None),
        ("ant-pause", "anthropic", Fails(Protocol, "paused"), 2, None),
        ("ant-unknown-block", "anthropic", Comes(Reply, "ok", None), 1, None),
        ("ant-429", "anthropic", Fails(Rate, "rate limit"), 2, Some((7000, 7700))),
        ("ant-429-spend", "anthropic", Fails(Quota, "ANTHROPIC_API_KEY"), 1, None),
        ("ant-529", "anthropic", Fails(Overload, "Overloaded"), 2, Some((250, 2000))),
        ("ant-400-temp", "anthropic", Fails(BadRequest, "temperature"), 2, None),
        ("ant-400-toolchoice", "anthropic", Fails(BadRequest, "tool_choice"), 1, None),
        ("ant-400-ctx", "anthropic", Comes(ContextOverflow, "", None), 1, None),
        ("ant-413", "anthropic", Comes(ContextOverflow, "", None), 1, None),
        ("ant-402", "anthropic", Fails(Quota, ""), 1, None),
        ("gem-ok", "gemini", Comes(Reply, "ok", Some("STOP")), 1, None),
        ("gem-blocked", "gemini", Comes(PromptFiltered, "", Some("PROHIBITED_CONTENT")), 1, None),
        ("gem-safety", "gemini", Comes(ReplyFiltered, "", Some("SAFETY: HARM_CATEGORY_HARASSMENT")), 1, None),
        ("gem-empty-parts", "gemini", Comes(Truncated, "", None), 1, None),
        ("gem-thought-part", "gemini", Comes(Reply, "answer", None), 1, None),
        ("gem-429-minute", "gemini", Fails(Rate, ""), 2, Some((3723, 4096))),
        ("gem-429-day", "gemini", Fails(Quota, "GEMINI_API_KEY"), 1, None),
        ("gem-503", "gemini", Fails(Overload, "overloaded"), 2, None),
        ("gem-400-key", "gemini", Fails(Auth, "GEMINI_API_KEY"), 1, None),
        ("gem-continuation", "gemini", Fails(Protocol, "CONTINUATION"), 2, None),
        ("oll-ok", "ollama", Comes(Reply, "ok", Some("stop")), 1, None),
        ("oll-404", "ollama", Fails(NotFound, "model 'nope' not found"), 1, None),
        ("oll-full", "ollama", Comes(ContextOverflow, "ok", None), 1, None),
        ("oll-lines", "ollama", Comes(Reply, "ab", None), 1, None),
        ("oll-line-error", "ollama", Fails(Server, "ran out of memory"), 2, None),
        ("oll-line-cut", "ollama", Fails(Transport, "ended before"), 2, None),
        ("br-ok", "bedrock", Comes(Reply, "ok", Some("end_turn")), 1, None),
        ("br-guardrail", "bedrock", Comes(ReplyFiltered, "Sorry, blocked.", None), 1, None),
        ("br-length", "bedrock", Comes(Truncated, "cut", None), 1, None),
        ("br-throttle", "bedrock", Fails(Rate, "Too many requests"), 2, None),
        ("br-long", "bedrock", Comes(ContextOverflow, "", None), 1, None),
        ("br-denied", "bedrock", Fails(Auth, "AWS_BEARER_TOKEN_BEDROCK"), 1, None),
        ("br-424", "bedrock", Fails(Server, ""), 2, None),
        ("ra-date", "openai", Fails(Rate, ""), 2, Some((1500, 3300))),
        ("ra-float", "openai", Fails(Rate, ""), 2, Some((1500, 1650))),
        ("ra-neg", "openai", Fails(Rate, ""), 2, Some((250, 1000))),
        ("ra-huge", "openai", Fails(Rate, "86400"), 1, None),
        ("ra-junk", "openai", Fails(Rate, ""), 2, Some((250, 1000))),
        ("malformed-json", "openai", Fails(Protocol, "not JSON"), 2, None),
        ("bom-json", "openai", Comes(Reply, "ok", None), 1, None),
        ("latin1-json", "openai", Fails(Protocol, "not UTF-8"), 2, None),
        ("text-plain-json", "openai", Comes(Reply, "ok", None), 1, None),
        ("gzip", "openai", Comes(Reply, "gz", None), 1, None),
        ("no-content-length", "openai", Comes(Reply, "until close", None), 1, None),
        ("redirect-308", "openai", Fails(NotFound, "redirects"), 1, None),
        ("redirect-offsite", "openai", Fails(NotFound, "127.0.0.2"), 1, None),
        ("empty-200", "openai", Fails(Protocol, "empty body"), 2, None),
        ("204", "openai", Fails(Protocol, "empty body"), 2, None),
        ("short-body", "openai", Fails(Transport, ""), 2, None),
        ("reset", "openai", Fails(Transport, ""), 2, None),
        ("close-immediately", "openai", Fails(Transport, ""), 2, None),
        ("never-respond", "openai", Fails(Timeout, "within"), 2, None),
        ("slow-drip", "openai", Fails(Timeout, "within"), 2, None),
        ("chunked-cut", "openai", Fails(Transport, ""), 2, None),
        ("flaky", "openai", Fails(Overload, ""), 2, Some((1500, 1650))),
        ("huge-header", "openai", Comes(Reply, "ok", None), 1, None),
        ("huge-body", "openai", Fails(Protocol, "larger than 8 MiB"), 2, None),
        ("sse-cut", "openai", Fails(Transport, "ended before"), 2, None),
        ("sse-crlf", "openai", Comes(Reply, "ab", Some("stop")), 1, None),
        ("sse-mid-error", "openai", Fails(Server, "upstream died"), 2, None),
        ("sse-split-utf8", "openai", Comes(Reply, "caf\u{e9} \u{1f600}", None), 1, None),
        // What gateways and compatible servers make of it.
        ("lit-renamed", "litellm", Fails(Rate, ""), 2, Some((7000, 7700))),
        ("lit-nodb", "litellm", Fails(Auth, "LITELLM_API_KEY"), 1, None),
        ("lit-ctx", "litellm", Comes(ContextOverflow, "", None), 1, None),
        ("lit-refusal", "litellm", Comes(Refusal, "No, thank you.", None), 1, None),
        ("or-moderation", "openrouter", Comes(PromptFiltered, "", None), 1, None),
        ("or-finish-error", "openrouter", Fails(Server, "upstream"), 2, None),
        ("or-402", "openrouter", Fails(Quota, "OPENROUTER_API_KEY"), 1, None),
        ("xai-400", "xai", Fails(BadRequest, "Model is unknown"), 1, None),
        ("vllm-legacy", "vllm", Comes(ContextOverflow, "", None), 1, None),
        ("llama-ctx", "llama-cpp", Comes(ContextOverflow, "", None), 1, None),
        ("llama-loading", "llama-cpp", Fails(Overload, "Loading model"), 2, None),
        ("no-retry", "openai", Fails(Server, ""), 1, None),
        ("think-inline", "vllm", Comes(Reply, "Hello", None), 1, None),
    ]
}

pub(super) fn role_settings(case: &str, provider: &str, base: String) -> ModelSettings {
    let (provider, api) =
        if provider == "responses" { ("openai", Some(Api::Responses)) } else { (provider, None) };
    let temperature = case.ends_with("400-temp").then_some(0.2);
    let timeout = matches!(case, "never-respond" | "slow-drip").then(|| Duration::from_millis(400));
    ModelSettings {
        api,
        temperature,
        timeout,
        max_retries: Some(1),
        ..settings(provider, "some-model", base)
    }
}

pub(super) fn is_as_wanted(want: &Want, came: &Result<Exchange, ModelError>, requests: usize) -> bool {
    match (want, came) {
        (Comes(outcome, text, finish), Ok(exchange)) => {
            exchange.outcome == *outcome
                && exchange.text == *text
                && finish.is_none_or(|finish| exchange.finish.as_deref() == Some(finish))
                && usize::try_from(exchange.attempts).unwrap() == requests
        }
        (Fails(failure, part), Err(error)) => {
            error.failure == *failure
                && error.message.contains(part)
                && usize::try_from(error.attempts).unwrap() == requests
        }
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_canned_reply_gives_its_outcome() {
    let server = canned::server().await;
    let mut wrong = Vec::new();
    for (case, provider, want, requests, wait) in rows() {
        let (context, events) = context(Budget::default());
        let settings = role_settings(case, provider, server.url(case));
        let model = connected(Role::Judge, &settings, &context);
        let came = model.reply(&request(1)).await;
        let shown = format!("{came:?}");
        let good = is_as_wanted(&want, &came, requests);
        let made = server.of(case).len();
        let first = context.clock.waits().first().map(|wait| u64::try_from(wait.as_millis()).unwrap());
        let waited = match (wait, first) {
            (None, _) => true,
            (Some((least, most)), Some(first)) => (least..=most).contains(&first),
            (Some(_), None) => false,
        };
        if !good || made != requests || !waited {
            wrong.push(format!("{case}: {made} requests, first wait {first:?} ms, {shown}"));
        }
        let told = format!("{:?}", events.lock().unwrap());
        assert!(!shown.contains(KEY) && !told.contains(KEY), "{case} shows the key: {shown} {told}");
        assert!(!shown.contains("sk-abc"), "{case} shows a masked key: {shown}");
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Case, provider, model, the five buckets of usage, and dollars.
type PriceRow = (&'static str, &'static str, &'static str, [u64; 5], Option<&'static str>);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn usage_is_normalised_and_priced_per_wire() {
    let server = canned::server().await;
    // What each provider counts, split by hand into disjoint buckets, and the money at the shipped prices.
    let rows: [PriceRow; 9] = [
        // 2006 - 1920 - 64 = 22; 300 - 128 = 172.
        ("oai-ok", "openai", "gpt-6-luna", [22, 1920, 64, 172, 128], Some("1.794e-4")),
        // 100 - 64 = 36; 40 - 32 = 8: 36 x 0.1 + 64 x 0.01 + 40 x 0.5 micro-dollars.
        ("rs-ok", "responses", "gpt-6-luna", [36, 64, 0, 8, 32], Some("0.00002424")),
        // Exclusive counts: 10 x 0.1 + 1000 x 0.01 + 20 x 0.125 + 50 x 0.5.
        ("ant-ok", "anthropic", "claude-haiku-5-5", [10, 1000, 20, 20, 30], Some("0.0000385")),
        // 1200 - 1000 = 200, thoughts beside the candidates: 200 x 0.75 + 1000 x 0.075 + 90 x 3.75.
        ("gem-ok", "gemini", "gemini-3.8-flash", [200, 1000, 0, 20, 70], Some("0.0005625")),
        ("oll-ok", "ollama", "m", [12, 0, 0, 3, 0], None),
        ("br-ok", "bedrock", "m", [30, 5, 7, 8, 0], None),
        // 40 - 10 - 5 = 25 reasoning tokens outside the completion.
        ("xai-reasoning", "xai", "grok-4.3", [10, 0, 0, 5, 25], Some("0.0000875")),
        ("or-cost", "openrouter", "any/model", [10, 0, 0, 2, 0], Some("0.0000125")),
        ("lit-cost", "litellm", "any", [22, 1920, 64, 172, 128], Some("1.794e-4")),
    ];
    for (case, provider, model, [input, cache_read, cache_write, output, reasoning], cost) in rows {
        let (context, _) = context(Budget::default());
        let settings =
            ModelSettings { model: model.to_owned(), ..role_settings(case, provider, server.url(case)) };
        let exchange = connected(Role::Judge, &settings, &context).reply(&request(1)).await.unwrap();
        let usage = Usage { input, cache_read, cache_write, output, reasoning };
        assert_eq!(exchange.usage, Some(usage), "{case}");
        assert_eq!(exchange.cost, cost.map(|text| Money::parse_dollars(text).unwrap()), "{case}");
        let rows = context.meter.rows();
        assert_eq!((rows.len(), rows[0].usage, rows[0].stage.as_str()), (1, usage, "question"), "{case}");
    }
    // No usage at all is unknown.
    let (context, _) = context(Budget::default());
    let settings = role_settings("sse-crlf", "openai", server.url("sse-crlf"));
    let exchange = connected(Role::Judge, &settings, &context).reply(&request(1)).await.unwrap();
    assert_eq!((exchange.usage, exchange.cost), (None, None));
    assert_eq!((context.meter.rows()[0].unknown_usage, context.meter.rows()[0].unknown_cost), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_model_thinks_is_kept_apart() {
    let server = canned::server().await;
    for (case, provider, thinking) in [
        ("gem-thought-part", "gemini", "secret plan"),
        ("oll-ok", "ollama", "hmm"),
        ("br-ok", "bedrock", "hm"),
        ("think-inline", "vllm", "a plan"),
    ] {
        let (context, _) = context(Budget::default());
        let model = connected(Role::Judge, &role_settings(case, provider, server.url(case)), &context);
        let exchange = model.reply(&request(1)).await.unwrap();
        assert_eq!(exchange.thinking.as_deref(), Some(thinking), "{case}");
        assert!(!exchange.text.contains(thinking), "{case}");
    }
}
