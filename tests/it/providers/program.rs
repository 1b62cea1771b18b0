//! A chatbot that is a local program.
#![cfg(unix)]

use vera_gate::config::model::{CommandLifetime, CommandSettings, ModelSettings};
use vera_gate::model::meter::Budget;
use vera_gate::model::{
    CallId, ChatRequest, EnvLookup, Failure, Message, ModelContext, Outcome, Role, connect,
};

use super::connected;

fn settings(script: &str, lifetime: CommandLifetime) -> ModelSettings {
    ModelSettings {
        provider: Some("command".to_owned()),
        env: vec!["BOT_TOKEN".to_owned()],
        timeout: Some(std::time::Duration::from_secs(20)),
        command: Some(CommandSettings {
            argv: vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()],
            directory: None,
            lifetime,
        }),
        ..ModelSettings::default()
    }
}

fn context() -> ModelContext {
    let (mut context, _) = super::context(Budget::default());
    let path = std::env::var("PATH").unwrap();
    context.env =
        EnvLookup::fixed([("PATH", path.as_str()), ("BOT_TOKEN", "bot-token-9876"), ("OTHER", "hidden")]);
    context
}

fn turn(conversation: &str, number: usize) -> ChatRequest {
    let mut messages = Vec::new();
    for index in 1..number {
        messages.push(Message::user(format!("u{index}")));
        messages.push(Message::assistant(format!("a{index}")));
    }
    messages.push(Message::user("hello \"you\""));
    ChatRequest {
        id: CallId { conversation: conversation.to_owned(), step: format!("turn-{number}"), draw: 1 },
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

/// Counts its own messages, so that it shows which process answers.
const COUNTS: &str = r#"n=0; while read -r line; do n=$((n+1)); echo "{\"text\":\"$n\",\"usage\":{\"input\":3,\"output\":1}}"; done"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_conversation_has_its_process() {
    let model = connected(Role::Candidate, &settings(COUNTS, CommandLifetime::PerConversation), &context());
    let mut said = Vec::new();
    for (conversation, number) in [("a", 1), ("a", 2), ("b", 1), ("a", 3)] {
        said.push(model.reply(&turn(conversation, number)).await.unwrap().text);
    }
    assert_eq!(said, ["1", "2", "1", "3"]);
    // Another draw of a message is not a second message.
    let mut again = turn("a", 3);
    again.id.draw = 2;
    assert_eq!(model.reply(&again).await.unwrap().text, "3");
    assert_eq!(model.reply(&turn("a", 4)).await.unwrap().text, "4");
    // A new start of the same conversation is a new process.
    model.open("a").await.unwrap();
    let exchange = model.reply(&turn("a", 1)).await.unwrap();
    assert_eq!((exchange.text.as_str(), exchange.usage.map(|u| u.input)), ("1", Some(3)));
    model.close("a").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process_can_serve_all() {
    let model = connected(Role::Candidate, &settings(COUNTS, CommandLifetime::Shared), &context());
    let mut said = Vec::new();
    for conversation in ["a", "b", "a"] {
        said.push(model.reply(&turn(conversation, 1)).await.unwrap().text);
    }
    assert_eq!(said, ["1", "2", "3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_gets_the_message_and_only_the_listed_environment() {
    let script = r#"read -r line; case "$line" in *'"text":"hello \"you\""'*) got=yes;; esac
        echo "{\"text\":\"$got ${OTHER:-none} ${#BOT_TOKEN}\"}""#;
    let model = connected(Role::Candidate, &settings(script, CommandLifetime::PerConversation), &context());
    assert_eq!(model.reply(&turn("a", 1)).await.unwrap().text, "yes none 14");
}

/// Death, silence, noise and a reported error are failures and never an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_fails_gives_no_answer() {
    for (script, failure, part) in [
        ("echo 'boom: bot-token-9876' >&2; exit 3", Failure::Exited, "boom: [redacted]"),
        (r#"read -r x; printf '{"text": "half'"#, Failure::Exited, "closed its output"),
        ("read -r x; echo starting...", Failure::Protocol, "logs belong on standard error"),
        (r#"read -r x; echo '{"reply": "x"}'"#, Failure::Protocol, "no `text`"),
        (r#"read -r x; echo '{"error": "no model loaded"}'"#, Failure::Server, "no model loaded"),
        ("exec sleep 60", Failure::Timeout, "no answer"),
    ] {
        let mut settings = settings(script, CommandLifetime::PerConversation);
        if failure == Failure::Timeout {
            settings.timeout = Some(std::time::Duration::from_millis(300));
        }
        let model = connected(Role::Candidate, &settings, &context());
        let error = model.reply(&turn("a", 1)).await.unwrap_err();
        assert!(error.failure == failure && error.message.contains(part), "{script}: {error}");
        if failure != Failure::Server {
            // What the program knew of the conversation is gone with it.
            assert_eq!(model.reply(&turn("a", 2)).await.unwrap_err().failure, Failure::Restart, "{script}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_and_an_empty_text_are_outcomes() {
    let script = r#"read -r x; echo '{"text": "I cannot.", "refusal": true, "model": "b7"}'; read -r x; echo '{"text": ""}'"#;
    let model = connected(Role::Candidate, &settings(script, CommandLifetime::PerConversation), &context());
    let first = model.reply(&turn("a", 1)).await.unwrap();
    assert_eq!(
        (first.outcome, first.text.as_str(), first.model.as_deref()),
        (Outcome::Refusal, "I cannot.", Some("b7"))
    );
    assert_eq!(model.reply(&turn("a", 2)).await.unwrap().outcome, Outcome::Empty);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_does_not_exist_stops_the_run() {
    let mut settings = settings("", CommandLifetime::PerConversation);
    settings.command.as_mut().unwrap().argv = vec!["/nowhere/bot".to_owned()];
    let model = connected(Role::Candidate, &settings, &context());
    let error = model.reply(&turn("a", 1)).await.unwrap_err();
    assert!(error.failure.stops_run() && error.message.contains("/nowhere/bot"), "{error}");
    settings.command = None;
    assert!(
        connect(Role::Candidate, &settings, &context()).unwrap_err().to_string().contains("command.argv")
    );
}

/// Each answer would be filed under the next message, and the last one never read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_nobody_asked_for_spoils_the_conversation() {
    let echoes = r#"while read -r line; do echo "{\"text\":\"reply\"}"; done"#;
    let greets = format!(r#"echo '{{"text":"Welcome"}}'; {echoes}"#);
    let doubles = r#"while read -r line; do echo "{\"text\":\"a\"}"; echo "{\"text\":\"b\"}"; done"#;
    // So slow that the greeting passes for the first answer.
    let slow = format!(r#"sleep 0.4; echo '{{"text":"Welcome"}}'; {echoes}"#);
    let farewell = format!(r#"{echoes}; echo '{{"text":"bye"}}'"#);
    for lifetime in [CommandLifetime::PerConversation, CommandLifetime::Shared] {
        for script in [greets.as_str(), doubles, slow.as_str(), farewell.as_str()] {
            if script == farewell && lifetime == CommandLifetime::Shared {
                continue;
            }
            let model = connected(Role::Candidate, &settings(script, lifetime), &context());
            model.open("a").await.unwrap();
            let error = match model.reply(&turn("a", 1)).await {
                Ok(_) => model.close("a").await.unwrap_err(),
                Err(error) => error,
            };
            let said = error.failure == Failure::Protocol && error.message.contains("nobody asked for");
            assert!(said, "{script}: {error}");
        }
        // One line for each message is what is wanted, and a blank line is none.
        let blank = format!("echo; {echoes}");
        let model = connected(Role::Candidate, &settings(&blank, lifetime), &context());
        model.open("a").await.unwrap();
        assert_eq!(model.reply(&turn("a", 1)).await.unwrap().text, "reply");
        model.close("a").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_surplus_line_is_found_before_the_next_message() {
    let script = r#"read -r line; echo '{"text":"1"}'; echo '{"text":"2"}'; exec sleep 20"#;
    let model = connected(Role::Candidate, &settings(script, CommandLifetime::Shared), &context());
    assert_eq!(model.reply(&turn("a", 1)).await.unwrap().text, "1");
    let error = model.reply(&turn("b", 1)).await.unwrap_err();
    assert!(error.message.contains(r#"nobody asked for: {"text":"2"}"#), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_for_another_conversation_is_none() {
    for (id, fine) in [("a", true), ("b", false)] {
        let script = format!(r#"read -r line; echo '{{"text":"x","conversation_id":"{id}"}}'"#);
        let model = connected(Role::Candidate, &settings(&script, CommandLifetime::Shared), &context());
        let reply = model.reply(&turn("a", 1)).await;
        assert_eq!(reply.is_ok(), fine, "{reply:?}");
        if let Err(error) = reply {
            assert!(
                error.failure == Failure::Protocol && error.message.contains("`b` instead of `a`"),
                "{error}"
            );
        }
    }
}
