//! A team's own chatbot behind HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use vera_gate::config::model::{
    HttpCall, HttpSettings, ModelSettings, StreamEnd, StreamKind, StreamSettings,
};
use vera_gate::model::cassette::{Cassette, CassetteMode};
use vera_gate::model::meter::Budget;
use vera_gate::model::{
    CallId, ChatRequest, EnvLookup, Failure, Message, ModelContext, ModelEvent, Outcome, Role,
};

use super::server::{Act, Server, raw, reply, reply_with};
use super::{Events, connected};

fn call(method: &str, url: String, body: Option<&str>) -> HttpCall {
    HttpCall { method: method.to_owned(), url, headers: BTreeMap::new(), body: body.map(str::to_owned) }
}

fn stateless(url: String) -> HttpSettings {
    HttpSettings {
        start: None,
        session_id: None,
        greeting: Vec::new(),
        turn: call("POST", url, Some(r#"{"messages": {{json messages}}}"#)),
        reply: vec!["/messages/-1/text".to_owned()],
        stream: None,
        end: None,
        usage_input: Some("/usage/in".to_owned()),
        usage_output: Some("/usage/out".to_owned()),
        refusal: Some("/blocked".to_owned()),
        model: Some("/build".to_owned()),
        idempotency_header: None,
        cookies: false,
    }
}

fn stateful(server: &Server) -> HttpSettings {
    let mut turn = call(
        "POST",
        server.url("turn/{{url session_id}}"),
        Some(r#"{"text": {{json user_text}}, "n": {{turn}}, "conversation": {{json conversation_id}}}"#),
    );
    turn.headers.insert("authorization".to_owned(), "Bearer ${BOT_TOKEN}".to_owned());
    HttpSettings {
        start: Some(call("POST", server.url("start"), Some(r#"{"channel": "ci"}"#))),
        session_id: Some("/id".to_owned()),
        greeting: vec!["/hello".to_owned()],
        turn,
        end: Some(call("DELETE", server.url("end/{{url session_id}}"), None)),
        ..stateless(String::new())
    }
}

fn settings(http: HttpSettings) -> ModelSettings {
    ModelSettings {
        provider: Some("http".to_owned()),
        model: "my-bot".to_owned(),
        env: vec!["BOT_TOKEN".to_owned()],
        http: Some(http),
        ..ModelSettings::default()
    }
}

fn context() -> (ModelContext, Events) {
    let (mut context, events) = super::context(Budget::default());
    context.env = EnvLookup::fixed([("BOT_TOKEN", "bot-token-9876")]);
    (context, events)
}

fn turn(number: usize) -> ChatRequest {
    let mut messages = Vec::new();
    for index in 1..number {
        messages.push(Message::user(format!("u{index}")));
        messages.push(Message::assistant(format!("a{index}")));
    }
    messages.push(Message::user(format!("say \"{number}\"\n\u{1f600}")));
    ChatRequest {
        id: CallId { conversation: "p1/r1".to_owned(), step: format!("turn-{number}"), draw: 1 },
        role: Role::Candidate,
        system: None,
        messages,
        answer: None,
        cache_group: None,
        output_scale: 1,
        question: None,
        wanted: vera_gate::model::Wanted::Always,
    }
}

fn said(text: &str) -> Vec<u8> {
    let body = json!({"messages": [{"text": "old"}, {"text": text}], "usage": {"in": 5, "out": 2}, "build": "b42", "error": null});
    reply(200, body.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_opened_talked_through_and_ended() {
    let server = Server::start(|_, seen| {
        let bytes = match seen.case() {
            "start" => reply(200, r#"{"id": "s/1", "hello": "Hi, I am Bot."}"#),
            "turn" => said(&format!("reply {}", seen.body["n"])),
            _ => reply(200, ""),
        };
        vec![Act::Write(bytes)]
    })
    .await;
    let (context, _) = context();
    let model = connected(Role::Candidate, &settings(stateful(&server)), &context);
    assert_eq!(model.open("p1/r1").await.unwrap().as_deref(), Some("Hi, I am Bot."));
    for number in [1, 2] {
        let exchange = model.reply(&turn(number)).await.unwrap();
        assert_eq!(exchange.text, format!("reply {number}"));
        assert_eq!(exchange.usage.map(|u| (u.input, u.output)), Some((5, 2)));
        assert_eq!(exchange.model.as_deref(), Some("b42"));
    }
    model.close("p1/r1").await.unwrap();
    let seen = server.seen();
    let paths: Vec<String> = seen.iter().map(|s| format!("{} {}", s.method, s.path)).collect();
    assert_eq!(paths, ["POST /start", "POST /turn/s%2F1", "POST /turn/s%2F1", "DELETE /end/s%2F1"]);
    assert_eq!(seen[1].body["text"], "say \"1\"\n\u{1f600}");
    assert_eq!(seen[1].header("authorization"), Some("Bearer bot-token-9876"));
    // Opened again, the chatbot sees another conversation.
    model.open("p1/r1").await.unwrap();
    model.reply(&turn(1)).await.unwrap();
    let last = server.of("turn").pop().unwrap();
    assert_ne!(last.body["conversation"], seen[1].body["conversation"]);
}

/// What may have reached a chatbot that keeps the conversation is not sent twice; what surely did not is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_not_posted_twice() {
    let broken = [
        (reply(500, r#"{"error": "oops"}"#), Failure::Restart, 1),
        (raw(200, &[("content-length", "99")], "{"), Failure::Restart, 1),
        (reply(200, "not json"), Failure::Restart, 1),
        // The chatbot says that it did not take the message.
        (reply_with(429, &[("retry-after", "1")], "{}"), Failure::Rate, 4),
        (reply(503, "{}"), Failure::Overload, 4),
    ];
    for (bytes, failure, turns) in broken {
        let copy = bytes.clone();
        let server = Server::start(move |_, seen| {
            let bytes = if seen.case() == "start" { reply(200, r#"{"id": 7}"#) } else { bytes.clone() };
            vec![Act::Write(bytes)]
        })
        .await;
        let (context, _) = context();
        let model = connected(Role::Candidate, &settings(stateful(&server)), &context);
        let error = model.reply(&turn(1)).await.unwrap_err();
        assert_eq!((error.failure, server.of("turn").len()), (failure, turns), "{error}");
        // With a key under which the chatbot takes a message once, everything is tried again, with the same key.
        let bytes = copy;
        let server = Server::start(move |n, seen| {
            let bytes = match (seen.case(), n) {
                ("start", _) => reply(200, r#"{"id": 7}"#),
                (_, 1) => bytes.clone(),
                _ => said("ok"),
            };
            vec![Act::Write(bytes)]
        })
        .await;
        let (context, _) = super::context(Budget::default());
        let mut context = context;
        context.env = EnvLookup::fixed([("BOT_TOKEN", "bot-token-9876")]);
        let http =
            HttpSettings { idempotency_header: Some("Idempotency-Key".to_owned()), ..stateful(&server) };
        let model = connected(Role::Candidate, &settings(http), &context);
        assert_eq!(model.reply(&turn(1)).await.unwrap().text, "ok");
        let keys: Vec<_> =
            server.of("turn").iter().map(|s| s.header("idempotency-key").unwrap().to_owned()).collect();
        assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
    }
}

/// An empty reply may be asked for again, but not by sending the person's message a second time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_draw_is_no_second_message() {
    let server = Server::start(|_, seen| {
        vec![Act::Write(if seen.case() == "start" { reply(200, r#"{"id": 7}"#) } else { said("") })]
    })
    .await;
    let (context, _) = context();
    let keeps = connected(Role::Candidate, &settings(stateful(&server)), &context);
    let again = |draw| {
        let mut request = turn(1);
        request.id.draw = draw;
        request
    };
    for draw in 1..=2 {
        assert_eq!(keeps.reply(&again(draw)).await.unwrap().outcome, Outcome::Empty);
    }
    assert_eq!(server.of("turn").len(), 1);
    assert_eq!(context.meter.rows()[0].calls, 1);
    let forgets = connected(Role::Candidate, &settings(stateless(server.url("chat"))), &context);
    for draw in 1..=2 {
        forgets.reply(&again(draw)).await.unwrap();
    }
    assert_eq!(server.of("chat").len(), 2);
}

/// A run that goes on from a recording or a journal must not talk on in the middle of a conversation that the
/// chatbot of this run never had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stateful_chatbot_is_not_joined_in_the_middle() {
    let server = Server::start(|_, seen| {
        vec![Act::Write(if seen.case() == "start" { reply(200, r#"{"id": 7}"#) } else { said("ok") })]
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cassette.jsonl");
    for mode in [CassetteMode::Record, CassetteMode::Continue, CassetteMode::Replay] {
        let (mut context, _) = context();
        context.cassette = Some(Arc::new(Cassette::open(&path, mode).unwrap()));
        let model = connected(Role::Candidate, &settings(stateful(&server)), &context);
        model.open("p1/r1").await.unwrap();
        assert_eq!(model.reply(&turn(1)).await.unwrap().text, "ok");
        assert_eq!(server.of("turn").len(), 1, "{mode:?}");
        if mode == CassetteMode::Continue {
            let error = model.reply(&turn(2)).await.unwrap_err();
            assert_eq!((error.failure, error.attempts), (Failure::Restart, 0));
            assert_eq!(server.of("turn").len(), 1);
        }
    }
    // A chatbot that gets the whole conversation each time can go on anywhere.
    let (context, _) = context();
    let model = connected(Role::Candidate, &settings(stateless(server.url("chat"))), &context);
    assert_eq!(model.reply(&turn(3)).await.unwrap().text, "ok");
}

/// A wrong key ends the run; a firewall that dislikes one message ends one conversation. Neither shows the key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forbidden_message_is_told_from_a_wrong_key() {
    let server = Server::start(|n, seen| {
        let token = seen.header("authorization").unwrap_or("").to_owned();
        let bytes = match n {
            1 => said(&format!("you sent {token}")),
            _ => reply(403, json!({"error": format!("blocked, {token}")}).to_string()),
        };
        vec![Act::Write(bytes)]
    })
    .await;
    let mut http = stateless(server.url("chat"));
    http.turn.headers.insert("authorization".to_owned(), "Bearer ${BOT_TOKEN}".to_owned());
    for (first, failure) in [(true, Failure::BadRequest), (false, Failure::Auth)] {
        let (context, _) = context();
        let model = connected(Role::Candidate, &settings(http.clone()), &context);
        if first {
            assert_eq!(model.reply(&turn(1)).await.unwrap().text, "you sent Bearer [redacted]");
        }
        let error = model.reply(&turn(2)).await.unwrap_err();
        assert!(error.failure == failure && error.message.contains("blocked, Bearer [redacted]"), "{error}");
        assert_eq!(error.message.contains("BOT_TOKEN"), failure == Failure::Auth, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_session_restarts_the_conversation() {
    let server = Server::start(|n, seen| {
        let bytes = match (seen.case(), n) {
            ("start", _) => reply(200, r#"{"id": 7}"#),
            (_, 1) => said("ok"),
            _ => reply(404, r#"{"error": "no such session"}"#),
        };
        vec![Act::Write(bytes)]
    })
    .await;
    let (context, _) = context();
    let model = connected(Role::Candidate, &settings(stateful(&server)), &context);
    model.reply(&turn(1)).await.unwrap();
    assert_eq!(model.reply(&turn(2)).await.unwrap_err().failure, Failure::Restart);
}

/// Missing, no text, and empty are three different things.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_reply_holds_is_told_apart() {
    type Wanted = Result<(Outcome, &'static str), &'static str>;
    let rows: [(&str, Wanted); 7] = [
        (r#"{"messages": [{"text": "hello"}]}"#, Ok((Outcome::Reply, "hello"))),
        (r#"{"messages": [{"text": ""}]}"#, Ok((Outcome::Empty, ""))),
        (r#"{"messages": [{"text": ["a", "b"]}]}"#, Ok((Outcome::Reply, "a\nb"))),
        (r#"{"blocked": true, "messages": [{"text": "I cannot."}]}"#, Ok((Outcome::Refusal, "I cannot."))),
        (r#"{"blocked": {"by": "policy"}}"#, Ok((Outcome::Refusal, ""))),
        (r#"{"messages": [{"text": 42}]}"#, Err("is a number")),
        (r#"{"answer": "x"}"#, Err("nothing at `/messages/-1/text`, only answer")),
    ];
    for (body, wanted) in rows {
        let server = Server::sequence(vec![reply(200, body)]).await;
        let (context, _) = context();
        let model = connected(Role::Candidate, &settings(stateless(server.url("chat"))), &context);
        match (model.reply(&turn(1)).await, wanted) {
            (Ok(exchange), Ok((outcome, text))) => {
                assert_eq!((exchange.outcome, exchange.text.as_str()), (outcome, text), "{body}");
            }
            (Err(error), Err(part)) => {
                assert!(
                    error.failure == Failure::Protocol && error.message.contains(part),
                    "{body}: {error}"
                );
                // A chatbot that gets the whole history may be asked again.
                assert_eq!(error.attempts, 2);
            }
            (came, _) => panic!("{body}: {came:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_text_is_a_reply_when_no_pointer_is_given() {
    let server =
        Server::sequence(vec![reply_with(200, &[("content-type", "text/plain")], "just text \u{e9}")]).await;
    let (context, _) = context();
    let http = HttpSettings { reply: Vec::new(), ..stateless(server.url("chat")) };
    let model = connected(Role::Candidate, &settings(http), &context);
    assert_eq!(model.reply(&turn(1)).await.unwrap().text, "just text \u{e9}");
}

fn streaming(url: String, kind: StreamKind, delta: &str, end: StreamEnd) -> HttpSettings {
    let stream = StreamSettings {
        kind,
        event: (kind == StreamKind::Sse).then(|| "delta".to_owned()),
        delta: delta.to_owned(),
        end,
        error: Some("/error".to_owned()),
    };
    HttpSettings { stream: Some(stream), ..stateless(url) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_put_together_and_a_cut_one_is_no_reply() {
    let sse = "event: ping\ndata: {}\n\nevent: delta\ndata: {\"t\": \"caf\u{e9} \"}\n\nevent: delta\ndata: {\"t\": \"\u{1f600}\"}\n\n";
    let lines = "{\"t\": \"a\"}\n{\"t\": \"b\", \"done\": false}\n";
    let done = || StreamEnd::Data("[DONE]".to_owned());
    let end_event = || StreamEnd::Event("end".to_owned());
    let pointer = || StreamEnd::Pointer("/done".to_owned());
    let rows = [
        (StreamKind::Sse, format!("{sse}data: [DONE]\n\n"), "/t", done(), Some("caf\u{e9} \u{1f600}")),
        (
            StreamKind::Sse,
            format!("{sse}event: end\ndata: {{}}\n\n"),
            "/t",
            end_event(),
            Some("caf\u{e9} \u{1f600}"),
        ),
        (StreamKind::Sse, sse.to_owned(), "/t", StreamEnd::Close, Some("caf\u{e9} \u{1f600}")),
        (StreamKind::Sse, sse.to_owned(), "/t", done(), None),
        (
            StreamKind::Sse,
            "event: delta\ndata: raw text\n\n".to_owned(),
            "",
            StreamEnd::Close,
            Some("raw text"),
        ),
        (StreamKind::Ndjson, format!("{lines}{{\"done\": true}}\n"), "/t", pointer(), Some("ab")),
        (StreamKind::Ndjson, lines.to_owned(), "/t", pointer(), None),
        (StreamKind::Ndjson, format!("{lines}{{\"error\": \"died\"}}\n"), "/t", pointer(), None),
    ];
    for (kind, body, delta, end, wanted) in rows {
        let bytes = raw(200, &[("content-type", "text/event-stream")], &body);
        let server = Server::start(move |_, _| vec![Act::Drip(7, bytes.clone())]).await;
        let (context, _) = context();
        let http = streaming(server.url("chat"), kind, delta, end.clone());
        let model = connected(Role::Candidate, &settings(http), &context);
        let came = model.reply(&turn(1)).await;
        assert_eq!(came.as_ref().ok().map(|e| e.text.as_str()), wanted, "{end:?} {body}: {came:?}");
    }
}

/// Some servers keep a stream open after its end mark.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_at_its_mark() {
    let text = "data: {\"t\": \"a\"}\n\ndata: [DONE]\n\n";
    let server = Server::start(move |_, _| vec![Act::Write(raw(200, &[], text)), Act::Hang]).await;
    let (context, _) = context();
    let mut http = streaming(server.url("chat"), StreamKind::Sse, "/t", StreamEnd::Data("[DONE]".to_owned()));
    http.stream.as_mut().unwrap().event = None;
    let model = connected(Role::Candidate, &settings(http), &context);
    assert_eq!(model.reply(&turn(1)).await.unwrap().text, "a");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cookies_stay_within_their_conversation() {
    let server = Server::start(|_, seen| {
        let bytes = match seen.case() {
            "start" => reply_with(200, &[("set-cookie", "sid=abc; Path=/; HttpOnly")], r#"{"id": 1}"#),
            _ => said("ok"),
        };
        vec![Act::Write(bytes)]
    })
    .await;
    let (context, _) = context();
    let http = HttpSettings { cookies: true, ..stateful(&server) };
    let model = connected(Role::Candidate, &settings(http), &context);
    model.reply(&turn(1)).await.unwrap();
    let shown = format!("{model:?}");
    assert!(!shown.contains("bot-token-9876") && !shown.contains("abc"), "{shown}");
    assert_eq!(server.of("turn")[0].header("cookie"), Some("sid=abc"));
    assert_eq!(server.of("start")[0].header("cookie"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_fails_only_warns() {
    let server = Server::start(|_, seen| {
        let bytes = match seen.case() {
            "start" => reply(200, r#"{"id": 1}"#),
            "turn" => said("ok"),
            _ => reply(500, ""),
        };
        vec![Act::Write(bytes)]
    })
    .await;
    let (context, events) = context();
    let model = connected(Role::Candidate, &settings(stateful(&server)), &context);
    model.reply(&turn(1)).await.unwrap();
    model.close("p1/r1").await.unwrap();
    assert_eq!(server.of("end").len(), 1);
    let events = events.lock().unwrap();
    assert!(matches!(events.last(), Some(ModelEvent::Warning { .. })), "{events:?}");
}
