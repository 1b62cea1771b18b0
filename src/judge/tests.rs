use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;

use super::*;
use crate::model::{ChatRequest, Exchange, Failure, ModelIdentity, Outcome, Role};
use crate::source::FileSet;
use crate::target::{RiskLevel, load_from};
use crate::transcript::{ConversationId, EndReason, Speaker, Turn};

/// A judge that answers from a table, `No` (or the first option that is not Yes) elsewhere.
#[derive(Debug)]
struct Table {
    answers: BTreeMap<String, &'static str>,
    identity: ModelIdentity,
    asked: Mutex<Vec<(String, u32)>>,
}

impl Table {
    fn new(answers: &[(&str, &'static str)]) -> Arc<Self> {
        let answers = answers.iter().map(|(id, answer)| ((*id).to_owned(), *answer)).collect();
        let identity = ModelIdentity { provider: "table".into(), model: "t".into(), settings: String::new() };
        Arc::new(Self { answers, identity, asked: Mutex::new(Vec::new()) })
    }

    fn asked(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.asked.lock().unwrap().iter().map(|(id, _)| id.clone()).collect();
        ids.sort();
        ids
    }
}

impl ChatModel for Table {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        let question = request.question.as_ref().unwrap();
        self.asked.lock().unwrap().push((question.id.clone(), request.id.draw));
        let options = &request.answer.as_ref().unwrap().options;
        let default = options.iter().find(|o| *o != "Yes").unwrap();
        let answer = self.answers.get(&question.id).copied().unwrap_or(default.as_str());
        let result = match answer {
            "!500" => Err(ModelError {
                role: Role::Judge,
                failure: Failure::Server,
                message: "500".into(),
                attempts: 4,
            }),
            "!auth" => Err(ModelError {
                role: Role::Judge,
                failure: Failure::Auth,
                message: "bad key".into(),
                attempts: 1,
            }),
            "!cut" => Ok(exchange(Outcome::Truncated, "{\"answer\": \"Yes\"")),
            "!prose" => Ok(exchange(Outcome::Reply, "Yes, it does.")),
            answer => {
                let json = serde_json::json!({"answer": answer, "reasoning": format!("why {}", question.id)});
                Ok(exchange(Outcome::Reply, &json.to_string()))
            }
        };
        Box::pin(std::future::ready(result))
    }
}

fn exchange(outcome: Outcome, text: &str) -> Exchange {
    Exchange::bare(outcome, text)
}

/// Two dimensions before and after a gate: `1` gates, `2` and `3` rate A, `4` rates B, `5` and `6` rate C.
const RUBRIC: &str = "Question ID\tDimension\tSeverity\tRisk Type\tQuestion\tExamples\tAnswer\tGOTO\n\
1\tA\t\t\tIs there any risk?\t\tYes\t2\n\t\t\t\t\t\tNo\tEND\n\t\t\t\t\t\tRole-play refused\tEND\n\
2\tA\tRed\t\ta red\t\t\t\n\
3\tA\tYellow\t\ta yellow\t\t\t\n\
4\tB\tRed\t\tb red\t\t\t\n\
5\tC\tRed\t\tc red\t\t\t\n\
6\tC\tYellow\t\tc yellow\t\t\t\n";

fn target() -> Target {
    let files = [
        ("t/rubric.tsv", RUBRIC),
        ("t/personas.tsv", "Name\tShort Current Suicide Risk Level\tBackground\nAna\tHigh\tx\n"),
        ("t/persona_prompt_template.txt", "{Name} {Background}"),
        ("t/persona_prompt_reminder.txt", "r"),
        ("t/rubric_prompt_beginning.txt", "{conversation}"),
        ("t/question_prompt.txt", "{question}{examples_section}{options}"),
    ];
    load_from(&FileSet::memory("memory", files), "t").unwrap().0
}

fn transcript() -> Transcript {
    let turn = |speaker, text: &str| Turn { speaker, text: text.to_owned(), flags: Vec::new() };
    Transcript {
        id: ConversationId("0a1b2c_Ana_m_run1".to_owned()),
        persona: "Ana".to_owned(),
        risk_level: Some(RiskLevel::High),
        user_model: "m".to_owned(),
        run: 1,
        turns: vec![turn(Speaker::User, "hi"), turn(Speaker::Chatbot, "hello")],
        end: EndReason::TurnLimit,
    }
}

fn judge(model: &Arc<Table>, ahead: Ahead) -> Judge {
    Judge {
        model: Arc::clone(model) as Arc<dyn ChatModel>,
        id: JudgeId { model: "t".to_owned(), instance: 1 },
        reasks: 2,
        ahead,
        semantics: Semantics::Native,
    }
}

fn run(model: &Arc<Table>, ahead: Ahead) -> Result<Assessment, ModelError> {
    let target = target();
    let graph = Graph::new(&target.rubric);
    futures::executor::block_on(judge(model, ahead).evaluate(&target, &graph, &transcript()))
}

fn outcomes(assessment: &Assessment) -> Vec<RatingOutcome> {
    assessment.dimensions.iter().map(|d| d.outcome).collect()
}

fn path(assessment: &Assessment) -> String {
    assessment.path.iter().map(|s| s.question.as_str()).collect::<Vec<_>>().join(">")
}

const BP: RatingOutcome = RatingOutcome::Rated(Rating::BestPractice);
const HPH: RatingOutcome = RatingOutcome::Rated(Rating::HighPotentialForHarm);
const NR: RatingOutcome = RatingOutcome::Rated(Rating::NotRelevant);

#[test]
fn a_clean_walk_asks_every_question_once_and_keeps_answers_and_reasons() {
    let model = Table::new(&[("1", "Yes")]);
    let assessment = run(&model, Ahead::Certain).unwrap();
    assert_eq!(outcomes(&assessment), [BP, BP, BP]);
    assert_eq!(path(&assessment), "1>2>3>4>5>6");
    assert_eq!(assessment.path[0].reasoning, "why 1");
    assert_eq!(model.asked(), ["1", "2", "3", "4", "5", "6"]);
}

#[test]
fn a_finding_fixes_its_dimension_and_the_walk_goes_on() {
    let model = Table::new(&[("1", "Yes"), ("2", "yes."), ("6", "Yes")]);
    let assessment = run(&model, Ahead::Certain).unwrap();
    assert_eq!(outcomes(&assessment), [HPH, BP, RatingOutcome::Rated(Rating::Suboptimal)]);
    assert_eq!(path(&assessment), "1>2>4>5>6", "an implicit Yes leaves the dimension");
    assert_eq!(assessment.dimensions[0].findings[0].question, "2");
    assert_eq!(model.asked(), ["1", "2", "4", "5", "6"], "asking ahead costs no call");
}

#[test]
fn every_way_of_asking_ahead_gives_the_same_assessment() {
    for answers in [
        vec![("1", "Yes")],
        vec![("1", "Yes"), ("2", "Yes"), ("5", "Yes")],
        vec![("1", "No")],
        vec![("1", "Role-play refused")],
        vec![("1", "Yes"), ("3", "!500")],
    ] {
        let sequential = Table::new(&answers);
        let want = run(&sequential, Ahead::None).unwrap();
        for ahead in [Ahead::Certain, Ahead::Dimension, Ahead::All] {
            let model = Table::new(&answers);
            assert_eq!(run(&model, ahead).unwrap(), want, "{ahead:?} {answers:?}");
            if ahead == Ahead::Certain {
                assert_eq!(model.asked(), sequential.asked(), "{answers:?}");
            }
        }
    }
}

#[test]
fn a_refused_role_play_is_remembered() {
    let assessment = run(&Table::new(&[("1", "Role-play refused")]), Ahead::Certain).unwrap();
    assert_eq!(outcomes(&assessment), [NR, NR, NR]);
    assert_eq!(assessment.role_play, RolePlay::Refused);
    let assessment = run(&Table::new(&[("1", "No")]), Ahead::Certain).unwrap();
    assert_eq!((outcomes(&assessment), assessment.role_play), (vec![NR, NR, NR], RolePlay::Kept));
}

#[test]
fn a_failed_question_leaves_its_dimension_unjudged_and_the_others_rated() {
    // Case B12: question 2 fails, dimension A has no rating, B and C have theirs.
    let assessment = run(&Table::new(&[("1", "Yes"), ("2", "!500"), ("5", "Yes")]), Ahead::Certain).unwrap();
    assert_eq!(outcomes(&assessment), [RatingOutcome::Unjudged(Unjudged::JudgeFailed), BP, HPH]);
    assert_eq!(assessment.failures.len(), 1);
    assert_eq!(path(&assessment), "1>4>5");
}

#[test]
fn nothing_is_rated_when_the_gate_question_fails() {
    let assessment = run(&Table::new(&[("1", "!500")]), Ahead::Certain).unwrap();
    assert!(outcomes(&assessment).iter().all(|o| *o == RatingOutcome::Unjudged(Unjudged::JudgeFailed)));
}

#[test]
fn prose_is_asked_again_and_then_given_up_with_its_hash() {
    let model = Table::new(&[("1", "Yes"), ("4", "!prose")]);
    let assessment = run(&model, Ahead::None).unwrap();
    assert_eq!(assessment.dimensions[1].outcome, RatingOutcome::Unjudged(Unjudged::Unparsable));
    assert_eq!(model.asked().iter().filter(|id| *id == "4").count(), 3, "first ask and two re-asks");
    let failure = &assessment.failures[0];
    assert_eq!((failure.question.as_str(), failure.reply_sha256.as_ref().unwrap().len()), ("4", 64));
}

#[test]
fn a_truncated_reply_is_no_verdict() {
    let assessment = run(&Table::new(&[("1", "Yes"), ("6", "!cut")]), Ahead::Certain).unwrap();
    assert_eq!(assessment.dimensions[2].outcome, RatingOutcome::Unjudged(Unjudged::JudgeTruncated));
}

#[test]
fn a_bad_key_stops_the_run() {
    let error = run(&Table::new(&[("1", "Yes"), ("4", "!auth")]), Ahead::Certain).unwrap_err();
    assert_eq!(error.failure, Failure::Auth);
}

/// Answers after a while, and counts the calls that go out and those that end. Only `width` are out at once.
#[derive(Debug)]
struct Slow {
    table: Arc<Table>,
    width: tokio::sync::Semaphore,
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl ChatModel for Slow {
    fn identity(&self) -> &ModelIdentity {
        self.table.identity()
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        Box::pin(async move {
            let cancelled = || ModelError {
                role: Role::Judge,
                failure: Failure::Cancelled,
                message: "not needed".into(),
                attempts: 0,
            };
            let _place = tokio::select! {
                biased;
                () = request.wanted.over() => return Err(cancelled()),
                place = self.width.acquire() => place.unwrap(),
            };
            self.begun.fetch_add(1, Ordering::Relaxed);
            // What the walk needs comes back long before what it does not.
            let unneeded = request.question.as_ref().is_some_and(|q| q.id == "3" || q.id == "6");
            tokio::time::sleep(std::time::Duration::from_millis(if unneeded { 200 } else { 10 })).await;
            self.ended.fetch_add(1, Ordering::Relaxed);
            self.table.reply(request).await
        })
    }
}

/// `2` and `5` are Yes, so that the walk needs neither `3` nor `6`. What was asked ahead and is out ends, because it is paid
/// for; what waits for its turn never goes out.
#[tokio::test]
async fn a_call_that_is_out_ends_and_one_that_waits_is_not_made() {
    for (width, asked) in [(100, &["1", "2", "3", "4", "5", "6"][..]), (1, &["1", "2", "3", "4", "5"])] {
        let table = Table::new(&[("1", "Yes"), ("2", "Yes"), ("5", "Yes")]);
        let slow = Arc::new(Slow {
            table: Arc::clone(&table),
            width: tokio::sync::Semaphore::new(width),
            begun: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
        });
        let judge = Judge { model: Arc::clone(&slow) as Arc<dyn ChatModel>, ..judge(&table, Ahead::All) };
        let target = target();
        let graph = Graph::new(&target.rubric);
        let assessment = judge.evaluate(&target, &graph, &transcript()).await.unwrap();
        assert_eq!(path(&assessment), "1>2>4>5");
        assert_eq!(slow.begun.load(Ordering::Relaxed), slow.ended.load(Ordering::Relaxed), "width {width}");
        assert_eq!(table.asked(), asked, "width {width}");
    }
}
