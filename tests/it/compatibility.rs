//! What a compatible implementation must reproduce, item by item of the compatibility checklist:
//!
//! 1. published scores: `cli::results::the_published_scores_are_reproduced_byte_for_byte`;
//! 2. walks of the official rubric and their calls: below, and answer by answer in `target`;
//! 3. a yellow finding in the first dimension, and the walk goes on: below;
//! 4. the worse of two findings: below;
//! 5. transcripts there and back: below;
//! 6. requests message for message: below;
//! 7. empty and partial results: below, and `cli::results`.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use serde_json::Value;
use vera_gate::config::{Ahead, Config};
use vera_gate::judge::Judge;
use vera_gate::matrix::{EvaluationNames, Matrix, VeraScores, collapse, read_results};
use vera_gate::model::{Author, ChatModel, ChatRequest, Exchange, ModelError, ModelIdentity, Outcome};
use vera_gate::rating::JudgeId;
use vera_gate::source::{FileSet, Source};
use vera_gate::sweep::conversation::{CHATBOT_SYSTEM, Setting, hold};
use vera_gate::sweep::plan::Cell;
use vera_gate::target::rubric::{
    Answered, BlankDimension, DimensionOutcome, Graph, Rubric, Semantics, score_path,
};
use vera_gate::target::{Target, load_from};
use vera_gate::transcript::{ConversationId, read_text, write_text};

use crate::data;

/// Says its lines one after the other, the last one for ever, and keeps what it was sent.
#[derive(Debug)]
struct Speaker {
    identity: ModelIdentity,
    lines: Vec<String>,
    sent: Mutex<Vec<ChatRequest>>,
}

impl Speaker {
    fn new(lines: &[&str]) -> Arc<Self> {
        let identity = ModelIdentity { provider: "p".into(), model: "m".into(), settings: String::new() };
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        Arc::new(Self { identity, lines, sent: Mutex::default() })
    }

    /// The messages of a request as the original's body has them.
    fn messages(&self, call: usize) -> Vec<(String, String)> {
        let sent = self.sent.lock().unwrap();
        let request = &sent[call];
        let system = request.system.iter().map(|text| ("system".to_owned(), text.to_string()));
        let messages = request.messages.iter().map(|message| {
            let role = match message.author {
                Author::User => "user",
                Author::Assistant => "assistant",
            };
            (role.to_owned(), message.text.to_string())
        });
        system.chain(messages).collect()
    }
}

impl ChatModel for Speaker {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        let mut sent = self.sent.lock().unwrap();
        let text = self.lines.get(sent.len()).or(self.lines.last()).unwrap().clone();
        sent.push(request.clone());
        Box::pin(std::future::ready(Ok(Exchange::bare(Outcome::Reply, text))))
    }
}

/// The messages of a recorded request.
fn recorded(name: &str) -> Option<Vec<(String, String)>> {
    let path = data(&format!("requests/{name}.json"))?;
    let value: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let messages = value["body"]["messages"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Some(messages.iter().map(|m| (text(&m["role"]), text(&m["content"]))).collect())
}

fn official() -> Option<Target> {
    let folder = data("vera-mh-1.1")?;
    Some(load_from(&FileSet::Folder(folder), "").unwrap().0)
}

#[test]
fn user_model_and_chatbot_are_sent_what_the_original_sends() {
    let (Some(first), Some(later), Some(provider), Some(target)) = (
        recorded("persona_call_first"),
        recorded("persona_call_later"),
        recorded("provider_call"),
        official(),
    ) else {
        return;
    };
    let persona = target
        .personas
        .iter()
        .find(|persona| target.prompts.persona_system(persona) == first[0].1)
        .expect("the recorded system prompt is that of a persona");
    // The recorded later call holds what was said before it: the person's message and the chatbot's reply.
    let said = &later[1].1;
    let replied = later[2].1.strip_prefix(target.prompts.reminder()).expect("the reminder stands in front");
    let (user, candidate) = (Speaker::new(&[said, "x"]), Speaker::new(&[replied, "y"]));
    let sweep = vera_gate::config::Sweep { max_messages: 4, ..Config::builtin().sweep };
    let setting = Setting {
        prompts: &target.prompts,
        sweep: &sweep,
        system: Some(CHATBOT_SYSTEM.into()),
        candidate: candidate.as_ref(),
    };
    let cell = Cell {
        id: ConversationId("c".to_owned()),
        persona: persona.name.clone(),
        risk_level: persona.risk_level,
        user_model: "m".to_owned(),
        user: 0,
        run: 1,
    };
    futures::executor::block_on(hold(&setting, user.as_ref(), persona, &cell, 1)).unwrap();
    assert_eq!(user.messages(0), first);
    assert_eq!(user.messages(1), later);
    assert_eq!(candidate.messages(0)[0], provider[0]);
    assert_eq!(candidate.messages(0)[1], ("user".to_owned(), said.clone()));
}

#[test]
fn the_judge_is_sent_what_the_original_sends() {
    let (Some(want), Some(target)) = (recorded("judge_call"), official()) else { return };
    let (_, rest) = want[0].1.split_once("<conversation>\n").unwrap();
    let (conversation, _) = rest.split_once("</conversation>").unwrap();
    let transcript = read_text(&Source::new("t", conversation), "0a1b2c_Ana_m_run1.txt").unwrap();
    let model = Speaker::new(&[r#"{"answer": "No", "reasoning": "r"}"#]);
    let judge = Judge {
        model: Arc::clone(&model) as Arc<dyn ChatModel>,
        id: JudgeId { model: "m".to_owned(), instance: 1 },
        reasks: 0,
        ahead: Ahead::None,
        semantics: Semantics::Native,
    };
    let graph = Graph::new(&target.rubric);
    futures::executor::block_on(judge.evaluate(&target, &graph, &transcript)).unwrap();
    assert_eq!(model.messages(0), want);
}

const MINI: &str = "Question ID\tDimension\tSeverity\tRisk Type\tQuestion\tExamples\tAnswer\tGOTO\n\
1\tDetects\tYellow\t\ta\t\tYes\t2\n\t\t\t\t\t\tNo\t2\n\
2\tDetects\tRed\t\tb\t\tYes\t3\n\t\t\t\t\t\tNo\t3\n\
3\tConfirms\tRed\t\tc\t\t\t\n";

/// Scores the walk with these options, one per question in order; 0 is Yes, 1 is No.
fn scored(options: &[usize]) -> Vec<DimensionOutcome> {
    let (rubric, _) = Rubric::parse(&Source::new("r.tsv", MINI), BlankDimension::Reject).unwrap();
    let path: Vec<Answered> =
        options.iter().enumerate().map(|(question, &option)| Answered { question, option }).collect();
    let results = score_path(&rubric, &path, Semantics::Native).unwrap();
    results.into_iter().map(|result| result.outcome).collect()
}

#[test]
fn a_yellow_finding_is_suboptimal_and_the_next_dimension_is_still_asked() {
    assert_eq!(scored(&[0, 1, 1]), [DimensionOutcome::Suboptimal, DimensionOutcome::BestPractice]);
}

#[test]
fn the_worse_of_two_findings_wins() {
    let want = [DimensionOutcome::HighPotentialForHarm, DimensionOutcome::BestPractice];
    assert_eq!(scored(&[0, 0, 1]), want);
    assert_eq!(scored(&[1, 0, 1]), want);
}

#[test]
fn a_clean_walk_of_the_official_rubric_takes_27_calls() {
    let Some(target) = official() else { return };
    assert_eq!(target.rubric.questions.len(), 35);
    assert_eq!(Graph::new(&target.rubric).clean_calls(), Some((27, 27)));
}

#[test]
fn transcripts_go_there_and_back() {
    let text = "user: hi\nthere\n\nchatbot: hello\n\nuser: bye\n[CONVERSATION ENDED - persona signaled termination]\n";
    let read = read_text(&Source::new("t", text), "0a1b2c_Ana_m_run1.txt").unwrap();
    assert_eq!(write_text(&read), text);
}

#[test]
fn an_empty_result_scores_fifty_in_the_original_and_nothing_here() {
    // Measured on the original: no relevant cell at all gives a score of 50.0 while every dimension says 0.0.
    let header = "filename,judge_model,judge_instance,A,A_yes_question_id\n";
    let (results, _) =
        read_results(&Source::new("r.csv", format!("{header}0a_P_m_run1.txt,j,1,Not Relevant,\n"))).unwrap();
    let names = EvaluationNames::from_folder("");
    let scores = VeraScores::compute(&results.dimensions, &results.rows, &names, None).to_json().unwrap();
    let scores: Value = serde_json::from_str(&scores).unwrap();
    assert_eq!(scores["aggregates"]["vera_score"], 50.0);
    assert_eq!(scores["dimensions"]["A"]["vera_score"], 0.0);
    assert_eq!(Matrix::count(&results.dimensions, &collapse(&results.rows)).score(), None);
}
