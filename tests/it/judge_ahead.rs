//! Asking ahead of the walk: the same ratings, in the default the same calls, and how many rounds it takes.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use futures::future::BoxFuture;
use proptest::prelude::*;
use vera_gate::config::Ahead;
use vera_gate::fingerprint::sha256;
use vera_gate::judge::Judge;
use vera_gate::model::{ChatModel, ChatRequest, Exchange, Failure, ModelError, ModelIdentity, Outcome, Role};
use vera_gate::rating::{Assessment, JudgeId};
use vera_gate::source::FileSet;
use vera_gate::target::rubric::{Graph, Semantics};
use vera_gate::target::{Target, load, load_from};
use vera_gate::transcript::{ConversationId, EndReason, Speaker, Transcript, Turn};

/// How a question is answered.
#[derive(Clone, Copy, Debug)]
enum Answers {
    /// Yes to the first, else No, and the last answer where there is no No: no failure, in every dimension.
    Clean,
    /// Drawn by this seed; one question in so many gets no answer at all, 0 for none.
    Drawn(u64, u32),
}

/// Which of the calls that wait come back next.
#[derive(Clone, Copy, Debug)]
enum Back {
    /// All: rounds are counted.
    Together,
    /// One, drawn by this seed.
    One(u64),
}

#[derive(Debug, Default)]
struct Calls {
    asked: Vec<(String, u32)>,
    waiting: BTreeMap<usize, Option<Waker>>,
    back: BTreeSet<usize>,
}

/// A judge whose replies come when they are told to.
#[derive(Debug)]
struct Held {
    identity: ModelIdentity,
    answers: Answers,
    calls: Arc<Mutex<Calls>>,
}

struct Reply {
    number: usize,
    calls: Arc<Mutex<Calls>>,
    result: Option<Result<Exchange, ModelError>>,
}

impl Future for Reply {
    type Output = Result<Exchange, ModelError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        {
            let mut calls = self.calls.lock().unwrap();
            if !calls.back.contains(&self.number) {
                calls.waiting.insert(self.number, Some(context.waker().clone()));
                return Poll::Pending;
            }
        }
        Poll::Ready(self.result.take().unwrap())
    }
}

impl Held {
    fn result(&self, request: &ChatRequest) -> Result<Exchange, ModelError> {
        let options = &request.answer.as_ref().unwrap().options;
        let named = |wanted: &str| options.iter().find(|option| option.eq_ignore_ascii_case(wanted));
        let question = &request.question.as_ref().unwrap().id;
        let chosen = match self.answers {
            Answers::Clean => named(if question == "1" { "Yes" } else { "No" }).or(options.last()).unwrap(),
            Answers::Drawn(seed, failing) => {
                let die = u32::from_str_radix(&sha256(format!("{seed} {question}"))[..8], 16).unwrap();
                if failing > 0 && die.is_multiple_of(failing) {
                    let (role, failure) = (Role::Judge, Failure::Server);
                    return Err(ModelError { role, failure, message: "500".to_owned(), attempts: 4 });
                }
                &options[die as usize / 7 % options.len()]
            }
        };
        Ok(Exchange::bare(
            Outcome::Reply,
            serde_json::json!({"answer": chosen, "reasoning": question}).to_string(),
        ))
    }
}

impl ChatModel for Held {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        let mut calls = self.calls.lock().unwrap();
        let number = calls.asked.len();
        calls.asked.push((request.question.as_ref().unwrap().id.clone(), request.id.draw));
        calls.waiting.insert(number, None);
        Box::pin(Reply { number, calls: Arc::clone(&self.calls), result: Some(self.result(request)) })
    }
}

/// Whether the walk wants to go on by itself.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What came of one evaluation.
struct Walked {
    assessment: Assessment,
    asked: Vec<(String, u32)>,
    rounds: usize,
}

fn walked(target: &Target, ahead: Ahead, answers: Answers, back: Back) -> Walked {
    let calls: Arc<Mutex<Calls>> = Arc::default();
    let identity = ModelIdentity { provider: "p".into(), model: "m".into(), settings: String::new() };
    let judge = Judge {
        model: Arc::new(Held { identity, answers, calls: Arc::clone(&calls) }),
        id: JudgeId { model: "m".to_owned(), instance: 1 },
        reasks: 1,
        ahead,
        semantics: Semantics::Native,
    };
    let turn = |speaker| Turn { speaker, text: "hi".to_owned(), flags: Vec::new() };
    let transcript = Transcript {
        id: ConversationId("0a1b2c_Ana_m_run1".to_owned()),
        persona: "Ana".to_owned(),
        risk_level: None,
        user_model: "m".to_owned(),
        run: 1,
        turns: vec![turn(Speaker::User), turn(Speaker::Chatbot)],
        end: EndReason::TurnLimit,
    };
    let graph = Graph::new(&target.rubric);
    let mut walking = Box::pin(judge.evaluate(target, &graph, &transcript));
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut rounds = 0;
    loop {
        if let Poll::Ready(result) = walking.as_mut().poll(&mut Context::from_waker(&waker)) {
            let asked = calls.lock().unwrap().asked.clone();
            return Walked { assessment: result.unwrap(), asked, rounds };
        }
        if woken.0.swap(false, Ordering::Relaxed) {
            // It only let others go first.
            continue;
        }
        rounds += 1;
        let mut calls = calls.lock().unwrap();
        let waiting: Vec<usize> = calls.waiting.keys().copied().collect();
        assert!(!waiting.is_empty(), "the walk waits for nothing");
        let come = match back {
            Back::Together => waiting,
            Back::One(seed) => {
                let die = u32::from_str_radix(&sha256(format!("{seed} {rounds}"))[..8], 16).unwrap();
                vec![waiting[die as usize % waiting.len()]]
            }
        };
        let mut wakers = Vec::new();
        for number in come {
            wakers.extend(calls.waiting.remove(&number).flatten());
            calls.back.insert(number);
        }
        drop(calls);
        wakers.into_iter().for_each(Waker::wake);
        woken.0.store(false, Ordering::Relaxed);
    }
}

fn sorted(mut asked: Vec<(String, u32)>) -> Vec<(String, u32)> {
    asked.sort();
    asked
}

/// A target with this rubric, if it is one.
fn with_rubric(rubric: &str) -> Option<Target> {
    let files = [
        ("t/rubric.tsv", rubric),
        ("t/personas.tsv", "Name\tShort Current Suicide Risk Level\tBackground\nAna\tHigh\tx\n"),
        ("t/persona_prompt_template.txt", "{Name} {Background}"),
        ("t/persona_prompt_reminder.txt", "r"),
        ("t/rubric_prompt_beginning.txt", "{conversation}"),
        ("t/question_prompt.txt", "{question}{examples_section}{options}"),
    ];
    load_from(&FileSet::memory("memory", files.map(|(path, text)| (path, text.to_owned()))), "t")
        .ok()
        .map(|(target, _)| target)
}

fn builtin(name: &str) -> Target {
    load(name, &FileSet::memory("", Vec::<(String, String)>::new())).unwrap().0
}

/// The calls and the rounds of a clean walk, one after the other and ahead.
fn clean(target: &Target) -> (usize, usize, usize) {
    let one_by_one = walked(target, Ahead::None, Answers::Clean, Back::Together);
    let ahead = walked(target, Ahead::Certain, Answers::Clean, Back::Together);
    assert_eq!(one_by_one.assessment, ahead.assessment);
    assert_eq!(sorted(one_by_one.asked.clone()), sorted(ahead.asked));
    (one_by_one.asked.len(), one_by_one.rounds, ahead.rounds)
}

/// By hand from the rubric: the first question alone, since it may end the walk; then the dimensions side by side,
/// where a question waits for the one before it that may leave the dimension. The longest dimension of `si` has eight
/// questions (31 to 38), and so has that of `hfo` (27 to 34).
#[test]
fn a_clean_walk_takes_one_round_and_the_longest_dimension() {
    // 1, 2 and 3; 7 to 10; 11 and 17 to 22; 23 to 30; 31 to 38.
    assert_eq!(clean(&builtin("builtin:si")), (30, 30, 9));
    // 1 to 4; 7 to 10; 11 and 17 to 20; 21 to 26; 27 to 34.
    assert_eq!(clean(&builtin("builtin:hfo")), (27, 27, 9));
}

/// VERA-MH 1.1: after the first question 2 and 4, 6 to 8; 9 and 16 to 21, which are seven in a row; 22 to 28 and 29 to
/// 35, seven each. So 27 calls in eight rounds.
#[test]
fn a_clean_walk_of_the_original_takes_eight_rounds_instead_of_27() {
    let Some(folder) = crate::data("vera-mh-1.1") else { return };
    let (target, _) = load_from(&FileSet::Folder(folder), "").unwrap();
    assert_eq!(clean(&target), (27, 27, 8));
}

/// By hand: certain behind the first answer are 23 and 31 with eight questions in a row each, 11 with seven and 2
/// with two.
#[test]
fn the_longest_chain_goes_out_first() {
    let asked = walked(&builtin("builtin:si"), Ahead::Certain, Answers::Clean, Back::Together).asked;
    let order: Vec<&str> = asked.iter().take(5).map(|(question, _)| question.as_str()).collect();
    assert_eq!(order, ["1", "23", "31", "11", "2"]);
}

fn same_ratings(target: &Target, answers: Answers, order: u64) -> Result<(), TestCaseError> {
    let want = walked(target, Ahead::None, answers, Back::Together);
    for back in [Back::Together, Back::One(order)] {
        for ahead in [Ahead::Certain, Ahead::Dimension, Ahead::All] {
            let came = walked(target, ahead, answers, back);
            prop_assert_eq!(&came.assessment, &want.assessment, "{:?} {:?}", ahead, back);
            if let (Ahead::Certain, Answers::Drawn(_, 0)) = (ahead, answers) {
                prop_assert_eq!(sorted(came.asked), sorted(want.asked.clone()), "{:?}", back);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn on_any_rubric_the_ratings_are_those_of_the_walk_and_the_default_costs_no_call(
        text in crate::target_properties::any_rubric(),
        seed in any::<u64>(),
        failing in prop::sample::select(vec![0, 0, 3, 6]),
        order in any::<u64>(),
    ) {
        let Some(target) = with_rubric(&text) else { return Err(TestCaseError::reject("does not load")) };
        same_ratings(&target, Answers::Drawn(seed, failing), order)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_the_built_in_rubrics_too(
        name in prop::sample::select(vec!["builtin:si", "builtin:hfo"]),
        seed in any::<u64>(),
        failing in prop::sample::select(vec![0, 5, 20]),
        order in any::<u64>(),
    ) {
        same_ratings(&builtin(name), Answers::Drawn(seed, failing), order)?;
    }
}
