//! The scheduler: what is held when, how much at once, and what the curtailment is shown.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use vera_gate::config::{Ahead, Config};
use vera_gate::gate::stop::StopReason;
use vera_gate::judge::Judge;
use vera_gate::model::meter::Budget;
use vera_gate::model::{
    ChatModel, ChatRequest, EnvLookup, Exchange, Failure, ModelContext, ModelError, ModelIdentity, Role,
    connect,
};
use vera_gate::rating::JudgeId;
use vera_gate::source::FileSet;
use vera_gate::sweep::event::Event;
use vera_gate::sweep::plan::Plan;
use vera_gate::sweep::scheduler::{CellStatus, Curtailment, Keeper, Progress, Stopped, Work, run};
use vera_gate::target::load;
use vera_gate::target::rubric::Semantics;
use vera_gate::transcript::Transcript;

const PERSONAS: u32 = 12;

/// Conversations that were begun and have not been judged to the end, and the most there were of them.
#[derive(Debug, Default)]
struct Open {
    now: BTreeSet<String>,
    most: usize,
}

/// A scripted model that lets others go first in each call, and notes the conversations.
#[derive(Debug)]
struct Slow {
    inner: Arc<dyn ChatModel>,
    open: Arc<Mutex<Open>>,
    /// Makes no new call once this is cancelled, as the journal does.
    stop: CancellationToken,
}

impl ChatModel for Slow {
    fn identity(&self) -> &ModelIdentity {
        self.inner.identity()
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        Box::pin(async move {
            {
                let mut open = self.open.lock().unwrap();
                open.now.insert(request.id.conversation.clone());
                open.most = open.most.max(open.now.len());
            }
            tokio::task::yield_now().await;
            if self.stop.is_cancelled() {
                let (role, failure) = (request.role, Failure::Cancelled);
                return Err(ModelError { role, failure, message: "stopped".to_owned(), attempts: 0 });
            }
            self.inner.reply(request).await
        })
    }
}

/// Forgets what it is given.
struct Nowhere;

impl Keeper for Nowhere {
    fn keep(&self, _: &Transcript) -> Result<(), String> {
        Ok(())
    }
}

/// What happened to whom, in order.
type Log = Arc<Mutex<Vec<(&'static str, String)>>>;

fn work(conversations: usize, curtailment: Option<Arc<Curtailment>>) -> (Arc<Work>, Log, Arc<Mutex<Open>>) {
    let files = FileSet::memory("", Vec::<(String, String)>::new());
    let target = Arc::new(load("builtin:si", &files).unwrap().0);
    let mut sweep = Config::builtin().sweep;
    sweep.select.sample = Some(PERSONAS);
    sweep.max_messages = 4;
    let context = ModelContext::new(EnvLookup::fixed([]), Budget::default());
    let open: Arc<Mutex<Open>> = Arc::default();
    let cancel = CancellationToken::new();
    let builtin = Config::builtin();
    let model = |role, settings| -> Arc<dyn ChatModel> {
        let inner = connect(role, settings, &context).unwrap_or_else(|problems| panic!("{problems}"));
        Arc::new(Slow { inner, open: Arc::clone(&open), stop: cancel.clone() })
    };
    let judge = Judge {
        model: model(Role::Judge, &builtin.judge.models[0].model),
        id: JudgeId { model: "rules".to_owned(), instance: 1 },
        reasks: 0,
        ahead: Ahead::Certain,
        semantics: Semantics::Native,
    };
    let log = Log::default();
    let (written, closed) = (Arc::clone(&log), Arc::clone(&open));
    let work = Work {
        plan: Arc::new(Plan::new(&target, &sweep, &["person".to_owned()]).unwrap()),
        target,
        sweep,
        system: None,
        users: vec![model(Role::User, &builtin.users[0])],
        candidate: model(Role::Candidate, &builtin.candidate.model),
        judges: vec![judge],
        conversations,
        cancel: cancel.clone(),
        abort: cancel,
        listener: Arc::new(move |event: &Event| {
            let entry = match event {
                Event::Held { conversation, .. } => ("held", conversation.0.clone()),
                Event::Judged { conversation, .. } => {
                    closed.lock().unwrap().now.remove(&conversation.0);
                    ("judged", conversation.0.clone())
                }
                _ => return,
            };
            written.lock().unwrap().push(entry);
        }),
        keeper: Arc::new(Nowhere),
        curtailment,
    };
    (Arc::new(work), log, open)
}

fn order(work: &Work) -> Vec<String> {
    let order = work.plan.order(work.sweep.seed);
    order.into_iter().map(|index| work.plan.cells[index].id.0.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_conversation_is_judged_as_soon_as_it_is_held_in_the_shuffled_order() {
    let (work, log, open) = work(1, None);
    let progress = run(Arc::clone(&work)).await;
    assert_eq!(progress.assessments.len(), PERSONAS as usize);
    let want: Vec<(&str, String)> =
        order(&work).into_iter().flat_map(|id| [("held", id.clone()), ("judged", id)]).collect();
    assert_eq!(*log.lock().unwrap(), want);
    assert_eq!(open.lock().unwrap().most, 1);
    let by_name: Vec<&str> = work.plan.cells.iter().map(|cell| cell.id.0.as_str()).collect();
    assert_ne!(order(&work), by_name, "the order is shuffled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_conversations_are_open_than_have_a_place() {
    for places in [3, 100] {
        let (work, _, open) = work(places, None);
        let progress = run(work).await;
        assert_eq!(progress.assessments.len(), PERSONAS as usize);
        let most = open.lock().unwrap().most;
        assert!(most <= places.min(PERSONAS as usize) && most > 1, "{most} at {places}");
    }
}

/// It is shown beginnings of the order, each longer than the one before, whatever finishes first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_curtailment_sees_growing_beginnings_and_ends_the_sweep() {
    let shown: Arc<Mutex<Vec<BTreeSet<String>>>> = Arc::default();
    let seen = Arc::clone(&shown);
    let enough = move |progress: &Progress| {
        let ids: BTreeSet<String> = progress.statuses.keys().map(|id| id.0.clone()).collect();
        assert_eq!(ids.len(), progress.assessments.len());
        let done = ids.len() >= 5;
        seen.lock().unwrap().push(ids);
        done.then(|| StopReason::CertainFail { rule: "a".to_owned(), dimension: None })
    };
    let (work, _, _) = work(2, Some(Arc::new(enough)));
    let progress = run(Arc::clone(&work)).await;
    let order = order(&work);
    // Two looks may cross between the moment they see the progress and the moment they note it.
    let mut looks = shown.lock().unwrap().clone();
    looks.sort_by_key(BTreeSet::len);
    let mut last = 0;
    for ids in &looks {
        assert!(ids.len() > last, "each look has more to see");
        last = ids.len();
        assert_eq!(*ids, order[..last].iter().cloned().collect(), "a beginning of the order");
    }
    // One that finishes late holds the beginning up, however far the others get.
    assert!(last >= 5, "{last}");
    assert!(progress.stopped.is_some());
}

/// All conversations are on their way when the first look ends the sweep. What is not judged to its end by then is left
/// out like what was never begun: it is not taken for a failure of the judge.
#[tokio::test]
async fn what_the_end_of_the_sweep_cuts_off_is_left_out() {
    let reason = StopReason::CertainFail { rule: "a".to_owned(), dimension: None };
    let enough = {
        let reason = reason.clone();
        move |_: &Progress| Some(reason.clone())
    };
    let (work, log, _) = work(100, Some(Arc::new(enough)));
    let progress = run(work).await;
    assert_eq!(progress.stopped, Some(Stopped::Curtailed(reason)));
    let held = log.lock().unwrap().iter().filter(|(what, _)| *what == "held").count();
    let counted: BTreeSet<&str> = progress
        .statuses
        .iter()
        .filter(|(_, status)| matches!(status, CellStatus::Held { .. }))
        .map(|(id, _)| id.0.as_str())
        .collect();
    let judged: BTreeSet<&str> = progress.assessments.iter().map(|a| a.conversation.0.as_str()).collect();
    assert_eq!(counted, judged, "what counts as held is judged");
    assert!(counted.len() < held, "the test cuts something off: {} of {held}", counted.len());
}
