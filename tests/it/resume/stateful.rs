//! A chatbot that keeps the conversation itself: what an ended run left in the middle is started again, and no
//! message is posted twice into one conversation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::{Place, SWEEP, answer, until};
use crate::providers::server::{Act, Seen, Server, reply};

/// The messages of each of the chatbot's conversations.
type Talks = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

async fn server(talks: &Talks) -> Server {
    let talks = Arc::clone(talks);
    Server::start(move |number, seen| {
        let body = match seen.case() {
            "start" => json!({"id": format!("s{number}"), "hello": "Hi, I am Bot."}),
            "turn" => turn(&talks, seen),
            "end" => json!({}),
            _ => answer(seen),
        };
        vec![Act::Wait(Duration::from_millis(8)), Act::Write(reply(200, body.to_string()))]
    })
    .await
}

/// Answers from what it was told in this conversation, so that a wrong memory shows in the transcript.
fn turn(talks: &Talks, seen: &Seen) -> serde_json::Value {
    let session = seen.path.rsplit('/').next().unwrap().to_owned();
    let mut talks = talks.lock().unwrap();
    let talk = talks.entry(session).or_default();
    talk.push(seen.body["text"].as_str().unwrap().to_owned());
    json!({"text": format!("I heard {} messages, the first: {}", talk.len(), talk[0])})
}

fn place(server: &Server) -> Place {
    let place = Place::new(server, "");
    let (start, turn, end) = (server.url("start"), server.url("turn"), server.url("end"));
    let model = server.url("v1");
    let role = |name: &str, id: &str| format!("{name}: {{ model: openai/{id}, base_url: \"{model}\" }}\n");
    let config = format!(
        r#"{}{}{SWEEP}concurrency: {{ calls: 4 }}
candidate:
  provider: http
  model: bot
  http:
    start: {{ url: "{start}", body: '{{}}' }}
    session_id: /id
    greeting: /hello
    turn: {{ url: "{turn}/{{{{session_id}}}}", body: '{{"text": {{{{json user_text}}}}}}' }}
    reply: /text
    end: {{ method: DELETE, url: "{end}/{{{{session_id}}}}" }}
"#,
        role("user", "person"),
        role("judge", "rater"),
    );
    std::fs::write(place.path("vera-gate.yaml"), config).unwrap();
    place
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_conversation_is_started_again_and_never_joined() {
    let talks = Talks::default();
    let server = server(&talks).await;
    let place = place(&server);
    // More kills than a conversation may be started again for faults of its own, which is once.
    for kill in 1..=5 {
        let mut child = place.start(&["run", "--run", "r"]);
        assert!(until(&server, server.count() + 9, &mut child), "life {kill}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    place.completes(&["run", "--run", "r"]);
    let run = place.json("r/run.json");
    assert_eq!((&run["complete"], &run["held"]), (&true.into(), &6.into()));
    let talks = talks.lock().unwrap().clone();
    for (session, messages) in &talks {
        let mut once = messages.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), messages.len(), "{session} got a message twice: {messages:?}");
    }
    // In each transcript the chatbot remembers this conversation and no other.
    let mut transcripts = 0;
    for entry in std::fs::read_dir(place.path("r/conversations")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|form| form == "jsonl") {
            let text = std::fs::read_to_string(path).unwrap();
            let heard = |number: usize| text.matches(&format!("I heard {number} messages")).count();
            assert!((heard(1), heard(2)) == (1, 1) || text.contains("END OF CONVERSATION"), "{text}");
            transcripts += 1;
        }
    }
    assert_eq!(transcripts, 6);
    // A complete run opens nothing again.
    let before = server.count();
    place.completes(&["run", "--run", "r"]);
    assert_eq!(server.count(), before);
}
