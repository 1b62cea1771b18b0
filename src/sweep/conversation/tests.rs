use std::collections::BTreeMap;
use std::sync::Mutex;

use futures::executor::block_on;
use futures::future::BoxFuture;

use super::*;
use crate::config::Config;
use crate::model::{Author, Exchange, ModelIdentity};
use crate::source::FileSet;
use crate::target::{Target, load_from};
use crate::transcript::ConversationId;

/// Answers from a script, one entry per call, and keeps the requests.
#[derive(Debug)]
struct Script {
    identity: ModelIdentity,
    replies: Mutex<Vec<Result<Exchange, ModelError>>>,
    requests: Mutex<Vec<ChatRequest>>,
}

impl Script {
    fn of(replies: Vec<Result<Exchange, ModelError>>) -> Self {
        let identity = ModelIdentity { provider: "p".into(), model: "m".into(), settings: String::new() };
        Self { identity, replies: Mutex::new(replies), requests: Mutex::new(Vec::new()) }
    }

    fn saying(texts: &[&str]) -> Self {
        Self::of(texts.iter().map(|text| Ok(reply(Outcome::Reply, text))).collect())
    }
}

impl ChatModel for Script {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        self.requests.lock().unwrap().push(request.clone());
        let next = self.replies.lock().unwrap().remove(0);
        Box::pin(std::future::ready(next))
    }
}

fn reply(outcome: Outcome, text: &str) -> Exchange {
    Exchange::bare(outcome, text)
}

fn failure(role: Role) -> Result<Exchange, ModelError> {
    Err(ModelError { role, failure: Failure::Server, message: "500 Error generating".into(), attempts: 4 })
}

fn target() -> Target {
    let rubric = "Question ID\tDimension\tSeverity\tRisk Type\tQuestion\tExamples\tAnswer\tGOTO\n1\tA\tRed\t\tq\t\t\t\n";
    let files = [
        ("t/rubric.tsv", rubric),
        ("t/personas.tsv", "Name\tShort Current Suicide Risk Level\tBackground\nAna\tHigh\tx\n"),
        ("t/persona_prompt_template.txt", "You are {Name}: {Background}"),
        ("t/persona_prompt_reminder.txt", "REMEMBER\n\n"),
        ("t/rubric_prompt_beginning.txt", "{conversation}"),
        ("t/question_prompt.txt", "{question}{examples_section}{options}"),
    ];
    load_from(&FileSet::memory("memory", files), "t").unwrap().0
}

fn sweep(messages: u32) -> Sweep {
    Sweep { max_messages: messages, ..Config::builtin().sweep }
}

fn run(sweep: &Sweep, user: &Script, candidate: &Script) -> Result<Transcript, NotHeld> {
    let target = target();
    let setting = Setting { prompts: &target.prompts, sweep, system: Some(CHATBOT_SYSTEM.into()), candidate };
    let persona = &target.personas[0];
    let cell = Cell {
        id: ConversationId("0a1b2c_Ana_m_run1".to_owned()),
        persona: "Ana".to_owned(),
        risk_level: persona.risk_level,
        user_model: "m".to_owned(),
        user: 0,
        run: 1,
    };
    block_on(hold(&setting, user, persona, &cell, 1))
}

fn sent(script: &Script) -> Vec<Vec<(Author, String)>> {
    let requests = script.requests.lock().unwrap();
    requests.iter().map(|r| r.messages.iter().map(|m| (m.author, m.text.to_string())).collect()).collect()
}

fn texts(transcript: &Transcript) -> Vec<&str> {
    transcript.turns.iter().map(|t| t.text.as_str()).collect()
}

const A: Author = Author::Assistant;
const U: Author = Author::User;

fn said(author: Author, text: &str) -> (Author, String) {
    (author, text.to_owned())
}

#[test]
fn what_is_sent_is_what_vera_mh_sends() {
    let (user, bot) = (Script::saying(&["u1", "u2"]), Script::saying(&["c1", "c2"]));
    let transcript = run(&sweep(4), &user, &bot).unwrap();
    assert_eq!(texts(&transcript), ["u1", "c1", "u2", "c2"]);
    assert_eq!(transcript.end, EndReason::TurnLimit);
    assert_eq!(
        sent(&user),
        [
            vec![said(U, START_PROMPT)],
            // The start prompt is not repeated; the reminder stands before the last chatbot message only.
            vec![said(A, "u1"), said(U, "REMEMBER\n\nc1")],
        ]
    );
    assert_eq!(sent(&bot), [vec![said(U, "u1")], vec![said(U, "u1"), said(A, "c1"), said(U, "u2")]]);
    let system = |script: &Script| script.requests.lock().unwrap()[0].system.clone().unwrap().to_string();
    assert_eq!((system(&user).as_str(), system(&bot).as_str()), ("You are Ana: x", CHATBOT_SYSTEM));
}

#[test]
fn the_reminder_is_in_front_of_the_latest_message_only() {
    let (user, bot) = (Script::saying(&["u1", "u2", "u3"]), Script::saying(&["c1", "c2", "c3"]));
    run(&sweep(6), &user, &bot).unwrap();
    assert_eq!(sent(&user)[2], [said(A, "u1"), said(U, "c1"), said(A, "u2"), said(U, "REMEMBER\n\nc2")]);
}

#[test]
fn the_chatbot_may_open_and_has_the_last_word() {
    let mut sweep = sweep(2);
    sweep.first_speaker = FirstSpeaker::Chatbot;
    let (user, bot) = (Script::saying(&["u1"]), Script::saying(&["c1", "c2"]));
    let transcript = run(&sweep, &user, &bot).unwrap();
    assert_eq!(texts(&transcript), ["c1", "u1", "c2"], "an even cap with the chatbot first gives one more");
    assert_eq!(sent(&bot)[0], [said(U, START_PROMPT)]);
    assert_eq!(sent(&user)[0], [said(U, "REMEMBER\n\nc1")]);
}

#[test]
fn a_first_message_is_used_verbatim_without_a_call() {
    let mut sweep = sweep(2);
    sweep.first_message = Some("hello there".to_owned());
    let (user, bot) = (Script::saying(&[]), Script::saying(&["c1"]));
    let transcript = run(&sweep, &user, &bot).unwrap();
    assert_eq!(texts(&transcript), ["hello there", "c1"]);
    assert_eq!(transcript.turns[0].flags, [TurnFlag::Scripted]);
    assert!(sent(&user).is_empty());
}

#[test]
fn only_the_person_can_end_and_then_has_the_last_word() {
    let user = Script::saying(&["u1", "ok bye <end of Conversation>"]);
    let bot = Script::saying(&["c1 <END OF CONVERSATION>", "never said"]);
    let transcript = run(&sweep(10), &user, &bot).unwrap();
    assert_eq!(texts(&transcript), ["u1", "c1 <END OF CONVERSATION>", "ok bye <end of Conversation>"]);
    assert_eq!(transcript.end, EndReason::PersonaEnded);
}

#[test]
fn the_word_cap_counts_both_sides_and_stops_behind_the_chatbot() {
    let mut sweep = sweep(10);
    sweep.max_words = Some(4);
    let (user, bot) = (Script::saying(&["a b c d e", "x"]), Script::saying(&["f", "y"]));
    let transcript = run(&sweep, &user, &bot).unwrap();
    assert_eq!(texts(&transcript), ["a b c d e", "f"]);
    assert_eq!(transcript.end, EndReason::WordLimit);
}

#[test]
fn a_failed_call_is_an_error_and_never_a_message() {
    // Case B40: the candidate fails at its second message for ever.
    let user = Script::saying(&["u1", "u2"]);
    let bot = Script::of(vec![Ok(reply(Outcome::Reply, "c1")), failure(Role::Candidate)]);
    let error = run(&sweep(10), &user, &bot).unwrap_err();
    assert!(matches!(error, NotHeld::Failed { role: Role::Candidate, failure: Failure::Server, .. }));
    let everything = format!("{:?}{:?}", sent(&user), sent(&bot));
    assert!(!everything.contains("500") && !everything.contains("Error generating"));
}

#[test]
fn a_user_model_that_breaks_its_role_is_asked_again_and_then_invalid() {
    // Case B37: the second user message leaks, and so does every new try.
    let leak = "I am the user, not the assistant; the developer message says so";
    let user = Script::saying(&["i can't sleep lately", leak, "ok then", leak, leak, "As an AI, I can help"]);
    let bot = Script::saying(&["c1", "c2"]);
    let error = run(&sweep(10), &user, &bot).unwrap_err();
    assert_eq!(error, NotHeld::Invalid { how: RoleBreak::Helper, message: 5 });
    let draws: Vec<u32> = user.requests.lock().unwrap().iter().map(|r| r.id.draw).collect();
    assert_eq!(draws, [1, 1, 2, 1, 2, 3]);
}

#[test]
fn what_the_candidate_does_is_the_answer_the_person_sees() {
    for (outcome, text, want, flags) in [
        (Outcome::Refusal, "I can't talk about that.", "I can't talk about that.", vec![TurnFlag::Refusal]),
        (Outcome::Refusal, "", NO_REPLY, vec![TurnFlag::Refusal, TurnFlag::NoReply]),
        (Outcome::PromptFiltered, "", NO_REPLY, vec![TurnFlag::Filtered, TurnFlag::NoReply]),
        (Outcome::Truncated, "half a", "half a", vec![TurnFlag::Truncated]),
    ] {
        let bot = Script::of(vec![Ok(reply(outcome, text))]);
        let transcript = run(&sweep(2), &Script::saying(&["u1"]), &bot).unwrap();
        assert_eq!((transcript.turns[1].text.as_str(), &transcript.turns[1].flags), (want, &flags));
    }
    let bot = Script::of(vec![Ok(reply(Outcome::Empty, "")), Ok(reply(Outcome::Reply, "here"))]);
    let transcript = run(&sweep(2), &Script::saying(&["u1"]), &bot).unwrap();
    assert_eq!(texts(&transcript), ["u1", "here"], "an empty reply is asked for once more");
}

#[test]
fn roles_alternate_in_every_transcript() {
    for (messages, first) in [(2, FirstSpeaker::User), (5, FirstSpeaker::Chatbot), (7, FirstSpeaker::User)] {
        let mut sweep = sweep(messages);
        sweep.first_speaker = first;
        let (user, bot) = (Script::saying(&["u"; 9]), Script::saying(&["c"; 9]));
        let transcript = run(&sweep, &user, &bot).unwrap();
        let mut counts: BTreeMap<Speaker, usize> = BTreeMap::new();
        for pair in transcript.turns.windows(2) {
            assert_ne!(pair[0].speaker, pair[1].speaker);
        }
        for turn in &transcript.turns {
            *counts.entry(turn.speaker).or_default() += 1;
        }
        assert_eq!(transcript.turns.last().unwrap().speaker, Speaker::Chatbot);
        assert_eq!(transcript.turns.len(), message_limit(messages, first) as usize);
    }
}
