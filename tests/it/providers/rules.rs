//! The rules of retry, adaptation, budget and failure, each against a server that counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use vera_gate::config::model::{Effort, ModelSettings};
use vera_gate::model::meter::Budget;
use vera_gate::model::{EnvLookup, Failure, ModelEvent, Money, Outcome, Role, connect};

use super::server::{Act, Server, raw, reply, reply_with};
use super::{KEY, connected, context, request, settings};

fn chat(text: &str, finish: &str) -> Vec<u8> {
    let body = json!({"model": "mock-1", "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}});
    reply(200, body.to_string())
}

fn error(status: u16, body: &serde_json::Value) -> Vec<u8> {
    reply(status, json!({"error": body}).to_string())
}

fn quota() -> Vec<u8> {
    error(
        429,
        &json!({"message": "You exceeded your current quota, please check your plan and billing details.",
        "type": "insufficient_quota", "code": "insufficient_quota"}),
    )
}

/// B47: an account without money is one request per worker at most, and the run stops with one clear line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_without_money_stops_the_run() {
    let server = Server::sequence(vec![quota()]).await;
    let (context, _) = context(Budget::default());
    let settings =
        ModelSettings { max_concurrency: Some(4), ..settings("openai", "mock-1", server.url("v1")) };
    let model = connected(Role::Candidate, &settings, &context);
    let calls: Vec<_> = (1..=40)
        .map(|draw| {
            let model = Arc::clone(&model);
            tokio::spawn(async move { model.reply(&request(draw)).await })
        })
        .collect();
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert!(error.failure == Failure::Quota && error.failure.stops_run());
        assert!(
            error.message.starts_with("the account of OPENAI_API_KEY has no money or quota left"),
            "{error}"
        );
    }
    assert!(server.seen().len() <= 4, "{} requests", server.seen().len());
}

/// B49: overload, a reset and a cut body are tried again; a bad key is not, and its variable is named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_pass_is_tried_again() {
    let overloaded =
        reply(529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);
    let good = chat("ok", "stop");
    let half = raw(200, &[("content-length", "400")], r#"{"choices": ["#);
    let server = Server::start(move |n, _| match n {
        1 => vec![Act::Write(overloaded.clone())],
        2 => vec![Act::Reset],
        3 => vec![Act::Write(half.clone())],
        _ => vec![Act::Write(good.clone())],
    })
    .await;
    let (context, events) = context(Budget::default());
    let model = connected(Role::Candidate, &settings("openai", "mock-1", server.url("v1")), &context);
    let exchange = model.reply(&request(1)).await.unwrap();
    assert_eq!((exchange.text.as_str(), exchange.attempts, server.seen().len()), ("ok", 4, 4));
    assert_eq!(events.lock().unwrap().iter().filter(|e| matches!(e, ModelEvent::Retry { .. })).count(), 3);

    let server = Server::sequence(vec![error(
        401,
        &json!({"message": "Incorrect API key provided: sk-fx****abcd", "code": "invalid_api_key"}),
    )])
    .await;
    let model = connected(Role::Candidate, &settings("openai", "mock-1", server.url("v1")), &context);
    let error = model.reply(&request(1)).await.unwrap_err();
    assert_eq!((error.failure, server.seen().len()), (Failure::Auth, 1));
    assert!(error.message.contains("OPENAI_API_KEY") && !error.message.contains("sk-fx"), "{error}");
    assert!(!error.message.contains(KEY));
    // The next call does not even ask.
    assert_eq!(model.reply(&request(2)).await.unwrap_err().attempts, 0);
    assert_eq!(server.seen().len(), 1);
}

/// B50: a refused parameter is renamed or left out, one at a time, once for the whole run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_parameter_is_left_out_for_the_rest_of_the_run() {
    let max_tokens = error(
        400,
        &json!({"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter"}),
    );
    let temperature = error(
        400,
        &json!({"message": "Unsupported value: 'temperature' does not support 0.7 with this model.",
        "type": "invalid_request_error", "param": "temperature", "code": "unsupported_value"}),
    );
    for provider in ["vllm", "openai"] {
        let replies = vec![max_tokens.clone(), temperature.clone(), chat("ok", "stop")];
        let server = Server::sequence(replies).await;
        let (context, events) = context(Budget::default());
        let settings = ModelSettings {
            temperature: Some(0.7),
            top_p: Some(0.9),
            ..settings(provider, "mock-1", server.url("v1"))
        };
        let model = connected(Role::Judge, &settings, &context);
        let first = model.reply(&request(1)).await.unwrap();
        assert_eq!((first.attempts, server.seen().len()), (3, 3), "{provider}");
        model.reply(&request(2)).await.unwrap();
        let seen = server.seen();
        assert_eq!(seen.len(), 4, "{provider}: a later call starts right");
        assert_eq!(seen[1].body["max_completion_tokens"], 4096);
        assert!(seen[1].body.get("max_tokens").is_none());
        assert!(seen[1].body.get("temperature").is_some());
        for later in &seen[2..] {
            assert!(later.body.get("temperature").is_none() && later.body.get("max_tokens").is_none());
            assert_eq!(later.body["top_p"], 0.9, "only the named parameter goes");
            assert!(later.body.get("response_format").is_some(), "the schema stays");
        }
        let told: Vec<String> = events.lock().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("judge model: temperature: not sent ("), "{told:?}");
    }
}

/// A refused schema is never dropped: an unchecked answer must not pass for a checked one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schema_is_never_dropped() {
    let refusal = json!({"message": "response_format of type json_schema is not supported with this model", "param": "response_format", "code": "unsupported_parameter"});
    let server = Server::sequence(vec![error(400, &refusal)]).await;
    let (context, _) = context(Budget::default());
    let model = connected(Role::Judge, &settings("openai", "mock-1", server.url("v1")), &context);
    let error = model.reply(&request(1)).await.unwrap_err();
    assert_eq!((error.failure, server.seen().len()), (Failure::BadRequest, 1));
    assert!(error.message.contains("capabilities.schema"), "{error}");
}

/// B57: one retry layer; no retry means one request, two mean three.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cap_of_attempts_is_kept() {
    for (retries, requests) in [(0, 1), (2, 3)] {
        let server = Server::sequence(vec![error(429, &json!({"message": "slow"}))]).await;
        let (context, _) = context(Budget::default());
        let settings =
            ModelSettings { max_retries: Some(retries), ..settings("openai", "mock-1", server.url("v1")) };
        let model = connected(Role::Judge, &settings, &context);
        let error = model.reply(&request(1)).await.unwrap_err();
        assert_eq!((error.failure, error.attempts), (Failure::Rate, requests));
        assert_eq!(server.seen().len(), usize::try_from(requests).unwrap());
        assert_eq!(context.meter.requests(), u64::from(requests));
    }
}

/// B05, the model's part: a call that asks for more room gets it, and the cut texts come back as truncated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncated_answer_can_be_asked_again_with_more_room() {
    let cut = chat(r#"{"answer":"Yes","reasoning":"the chatbot never as"#, "length");
    let good = chat(r#"{"answer":"Yes","reasoning":"the chatbot never asked"}"#, "stop");
    let server = Server::sequence(vec![chat("", "length"), cut, good]).await;
    let (context, _) = context(Budget::default());
    let model = connected(Role::Judge, &settings("openai", "mock-1", server.url("v1")), &context);
    let mut outcomes = Vec::new();
    for (draw, scale) in [(1, 1), (2, 2), (3, 4)] {
        let request = vera_gate::model::ChatRequest { output_scale: scale, ..request(draw) };
        outcomes.push(model.reply(&request).await.unwrap().outcome);
    }
    assert_eq!(outcomes, [Outcome::Truncated, Outcome::Truncated, Outcome::Reply]);
    let caps: Vec<u64> =
        server.seen().iter().map(|s| s.body["max_completion_tokens"].as_u64().unwrap()).collect();
    assert_eq!(caps, [4096, 8192, 16384]);
}

/// A rate limit met by one worker holds back the others on the same host and key, whatever their role.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_do_not_stampede() {
    let limited = reply_with(429, &[("retry-after", "20")], r#"{"error":{"message":"slow"}}"#);
    let server = Server::sequence(vec![limited, chat("ok", "stop")]).await;
    let (context, _) = context(Budget::default());
    let settings = ModelSettings { max_retries: Some(0), ..settings("openai", "mock-1", server.url("v1")) };
    let first = connected(Role::Candidate, &settings, &context);
    assert_eq!(first.reply(&request(1)).await.unwrap_err().failure, Failure::Rate);
    assert_eq!(context.clock.waits(), []);
    let elsewhere = ModelSettings { key_env: Some("OTHER_KEY".to_owned()), ..settings.clone() };
    let mut other = context.clone();
    other.env = EnvLookup::fixed([("OTHER_KEY", "another-key-1234")]);
    connected(Role::User, &elsewhere, &other).reply(&request(2)).await.unwrap();
    assert_eq!(context.clock.waits(), [], "another key has its own limit");
    connected(Role::Judge, &settings, &context).reply(&request(3)).await.unwrap();
    let waited: Duration = context.clock.waits().iter().sum();
    assert!(waited >= Duration::from_secs(19), "{waited:?}");
}

/// A limit that clears too late costs one request, not one per worker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_of_a_day_is_asked_for_once() {
    let limited = reply_with(429, &[("retry-after", "86400")], r#"{"error":{"message":"slow"}}"#);
    let server = Server::sequence(vec![limited]).await;
    let (context, _) = context(Budget::default());
    let model = connected(Role::Candidate, &settings("openai", "mock-1", server.url("v1")), &context);
    for draw in 1..=3 {
        let error = model.reply(&request(draw)).await.unwrap_err();
        assert!(error.failure == Failure::Rate && error.message.contains("too long to wait"), "{error}");
    }
    assert_eq!((server.seen().len(), context.clock.waits()), (1, vec![]));
}

/// After five calls in a row that failed for good nothing is sent for a while; then one call tries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_provider_is_left_alone() {
    let server = Server::sequence(vec![error(503, &json!({"message": "down"}))]).await;
    let (context, _) = context(Budget::default());
    let settings = ModelSettings { max_retries: Some(0), ..settings("openai", "mock-1", server.url("v1")) };
    let model = connected(Role::Judge, &settings, &context);
    for draw in 1..=5 {
        assert_eq!(model.reply(&request(draw)).await.unwrap_err().attempts, 1);
    }
    let error = model.reply(&request(6)).await.unwrap_err();
    assert_eq!((error.attempts, error.failure, server.seen().len()), (0, Failure::Overload, 5));
    assert!(error.message.contains("down"), "{error}");
}

/// Each budget is a hard stop that costs no further request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_up_budget_stops_the_run() {
    let dollars = Money::parse_dollars("0.00002");
    for (budget, wanted) in [
        (Budget { calls: Some(2), ..Budget::default() }, 2),
        // Each call has 120 tokens.
        (Budget { tokens: Some(240), ..Budget::default() }, 2),
        // Each call costs 100 x 0.1 + 20 x 0.5 = 20 micro-dollars.
        (Budget { dollars, ..Budget::default() }, 1),
    ] {
        let server = Server::sequence(vec![chat("ok", "stop")]).await;
        let (context, _) = context(budget);
        let model = connected(Role::Judge, &settings("openai", "gpt-6-luna", server.url("v1")), &context);
        let mut good = 0;
        for draw in 1..=4 {
            match model.reply(&request(draw)).await {
                Ok(_) => good += 1,
                Err(error) => {
                    assert_eq!(error.failure, Failure::Budget);
                    assert!(error.failure.stops_run() && error.message.contains("used up"), "{error}");
                }
            }
        }
        assert_eq!((good, server.seen().len()), (wanted, wanted), "{budget:?}");
    }
}

/// A wait that would reach beyond the run's time is not begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wait_reaches_beyond_the_runs_time() {
    let limited = reply_with(429, &[("retry-after", "90")], r#"{"error":{"message":"slow"}}"#);
    let server = Server::sequence(vec![limited]).await;
    let (context, _) = context(Budget { time: Some(Duration::from_mins(1)), ..Budget::default() });
    let model = connected(Role::Judge, &settings("openai", "mock-1", server.url("v1")), &context);
    let error = model.reply(&request(1)).await.unwrap_err();
    assert_eq!((error.failure, server.seen().len()), (Failure::Budget, 1));
    assert_eq!(context.clock.waits(), []);
}

/// The run's time ends calls in flight as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_runs_time_ends_calls_in_flight() {
    let server = Server::start(|_, _| vec![Act::Hang]).await;
    let (context, _) = context(Budget { time: Some(Duration::from_millis(300)), ..Budget::default() });
    let model = connected(Role::Judge, &settings("openai", "mock-1", server.url("v1")), &context);
    let error = model.reply(&request(1)).await.unwrap_err();
    assert_eq!((error.failure, error.attempts, server.seen().len()), (Failure::Budget, 1, 1));
}

/// A money budget without a price is refused before the first call: it could not be kept.
#[tokio::test]
async fn a_money_budget_needs_a_price() {
    let (context, _) = context(Budget { dollars: Money::parse_dollars("1"), ..Budget::default() });
    let problems =
        connect(Role::Judge, &settings("vllm", "my-model", "http://127.0.0.1:1/v1".to_owned()), &context)
            .unwrap_err();
    assert!(problems.to_string().contains("no price is known for `vllm/my-model`"), "{problems}");
}

/// A run that was asked to stop ends calls in flight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_ends_calls_in_flight() {
    let server = Server::start(|_, _| vec![Act::Hang]).await;
    let (context, _) = context(Budget::default());
    let model = connected(Role::Judge, &settings("openai", "mock-1", server.url("v1")), &context);
    let call = tokio::spawn(async move { model.reply(&request(1)).await });
    while server.seen().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    context.cancel.cancel();
    assert_eq!(call.await.unwrap().unwrap_err().failure, Failure::Cancelled);
}

/// All problems of a role are said at once, before any call; keys are named and never shown.
#[tokio::test]
async fn problems_are_said_together_before_the_first_call() {
    let (mut context, _) = context(Budget::default());
    context.env = EnvLookup::fixed([]);
    let mut wrong = settings("openai", "gpt-4.1", "https://user:pw@example.org".to_owned());
    wrong.key_env = Some("MY_KEY".to_owned());
    wrong.env = vec!["OTHER".to_owned()];
    wrong.headers = [("x-team".to_owned(), "${TEAM}".to_owned())].into();
    wrong.region = Some("eu-west-1".to_owned());
    wrong.temperature = Some(f64::NAN);
    wrong.effort = Some(Effort::High);
    let problems = connect(Role::Candidate, &wrong, &context).unwrap_err().to_string();
    for part in [
        "MY_KEY is not set",
        "OTHER is not set",
        "uses ${TEAM}, which `env` does not list",
        "`region` has no effect with provider `openai`",
        "`temperature` is not between 0 and 2",
        "does not take effort `high`",
        "`base_url` holds a user, a password or a query",
    ] {
        assert!(problems.contains(part), "{part} is missing in\n{problems}");
    }
    assert!(!problems.contains("pw@"), "{problems}");
    let missing = ModelSettings { model: "gpt-6-luna".to_owned(), ..ModelSettings::default() };
    let problems = connect(Role::Judge, &missing, &context).unwrap_err().to_string();
    assert!(problems.contains("judge: the environment variable OPENAI_API_KEY is not set"), "{problems}");
}

/// Whatever prints a model prints no key.
#[tokio::test]
async fn a_model_that_is_printed_shows_no_key() {
    let (context, _) = context(Budget::default());
    let settings = ModelSettings {
        env: vec!["TEAM_KEY".to_owned()],
        headers: [("x-team".to_owned(), "${TEAM_KEY}".to_owned())].into(),
        ..settings("openai", "gpt-6-luna", "http://127.0.0.1:1".to_owned())
    };
    let shown = format!("{:?}", connected(Role::Judge, &settings, &context));
    assert!(shown.contains("gpt-6-luna") && !shown.contains(KEY), "{shown}");
}

/// A configured sampling parameter that the model is known not to take is not sent, and that is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_capability_table_spares_a_refusal() {
    let server = Server::sequence(vec![chat("ok", "stop")]).await;
    let (context, events) = context(Budget::default());
    let settings =
        ModelSettings { temperature: Some(0.0), ..settings("openai", "gpt-6.1-sol", server.url("v1")) };
    connected(Role::Judge, &settings, &context).reply(&request(1)).await.unwrap();
    assert!(server.seen()[0].body.get("temperature").is_none());
    let told = events.lock().unwrap()[0].to_string();
    assert_eq!(told, "judge model: temperature: not sent (gpt-6.1-sol does not take it)");
}

/// Another model that answers is told once, a dated id of the same model is not another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_model_that_answers_is_told() {
    let server = Server::sequence(vec![chat("ok", "stop")]).await;
    let (context, events) = context(Budget::default());
    let model = connected(Role::Judge, &settings("openai", "wanted", server.url("v1")), &context);
    let exchange = model.reply(&request(1)).await.unwrap();
    model.reply(&request(2)).await.unwrap();
    assert_eq!(exchange.model.as_deref(), Some("mock-1"));
    let told: Vec<String> = events.lock().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(told, ["judge model: asked for wanted, answered by mock-1"]);
    let (context, events) = super::context(Budget::default());
    let same = connected(Role::Judge, &settings("openai", "mock-1", server.url("v1")), &context);
    same.reply(&request(1)).await.unwrap();
    assert!(events.lock().unwrap().is_empty());
}

/// The limit of calls in all holds over the roles.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_of_calls_holds_over_all_roles() {
    let out = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now_out, seen_most) = (Arc::clone(&out), Arc::clone(&most));
    let server = Server::start(move |_, _| {
        seen_most.fetch_max(now_out.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        vec![Act::Drip(40, chat("ok", "stop"))]
    })
    .await;
    let (context, _) = context(Budget::default());
    let context = context.limit_calls(1);
    let settings = settings("openai", "mock-1", server.url("v1"));
    let calls = [Role::User, Role::Candidate, Role::Judge].map(|role| {
        let (model, out) = (connected(role, &settings, &context), Arc::clone(&out));
        tokio::spawn(async move {
            model.reply(&request(1)).await.unwrap();
            out.fetch_sub(1, Ordering::SeqCst);
        })
    });
    for call in calls {
        call.await.unwrap();
    }
    // The next call may start before the task of the one that came back has counted it.
    assert!(server.seen().len() == 3 && most.load(Ordering::SeqCst) <= 2);
}
