//! Holds the planned conversations and has each judged as soon as it is finished.
//!
//! A conversation keeps its place until its judges are done, so that what is in memory grows with what is in flight
//! and started work is finished first. Calls of all roles share one cap.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::conversation::{NotHeld, Setting, hold};
use super::event::{Event, Listener};
use super::plan::{Cell, Plan};
use crate::config::Sweep;
use crate::gate::stop::StopReason;
use crate::judge::Judge;
use crate::model::{ChatModel, Failure, ModelError, Role};
use crate::rating::{Assessment, RatingOutcome};
use crate::target::Target;
use crate::target::rubric::Graph;
use crate::transcript::{ConversationId, Speaker, Transcript, TurnFlag};

/// What became of a planned conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellStatus {
    /// It was held to its end.
    Held {
        /// Its messages.
        messages: usize,
        /// How many of the chatbot's messages were remarkable, by how; and how many of the person's were asked for
        /// again.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        flags: BTreeMap<TurnFlag, usize>,
    },
    /// It was not.
    NotHeld(NotHeld),
    /// It was never started.
    NotStarted,
    /// It belongs to another shard of the plan.
    OtherShard,
}

/// Keeps finished transcripts, such as a run folder.
pub trait Keeper: Send + Sync {
    /// Keeps one. Called once per finished conversation.
    ///
    /// # Errors
    /// Why it cannot be kept: the run stops.
    fn keep(&self, transcript: &Transcript) -> Result<(), String>;
}

/// Decides whether the rest is needed, from what the first conversations of the order came to; says why not.
///
/// It is shown a beginning of the shuffled order and nothing else: which conversations happen to finish first may
/// depend on what is said in them.
pub type Curtailment = dyn Fn(&Progress) -> Option<StopReason> + Send + Sync;

/// Into how many looks a sweep is divided at most: a look costs as much as a verdict.
const LOOKS: usize = 50;

/// Everything a sweep works with.
pub struct Work {
    /// What is talked about and judged by.
    pub target: Arc<Target>,
    /// What is to be held.
    pub plan: Arc<Plan>,
    /// How.
    pub sweep: Sweep,
    /// The chatbot's system prompt, `None` for an endpoint that has its own.
    pub system: Option<Arc<str>>,
    /// The models that play the person, in the order of the plan's indexes.
    pub users: Vec<Arc<dyn ChatModel>>,
    /// The candidate.
    pub candidate: Arc<dyn ChatModel>,
    /// The judges; none to only hold the conversations.
    pub judges: Vec<Judge>,
    /// Conversations at the same time.
    pub conversations: usize,
    /// Stops new work; cancelled by the end of `abort` as well.
    pub cancel: CancellationToken,
    /// Also ends the calls that are out.
    pub abort: CancellationToken,
    /// Takes what happens.
    pub listener: Arc<dyn Listener>,
    /// Keeps transcripts.
    pub keeper: Arc<dyn Keeper>,
    /// Ends the sweep early.
    pub curtailment: Option<Arc<Curtailment>>,
}

/// What is there so far, or at the end.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// What became of each conversation that was started.
    pub statuses: BTreeMap<ConversationId, CellStatus>,
    /// The evaluations.
    pub assessments: Vec<Assessment>,
    /// Why the work ended before it was done.
    pub stopped: Option<Stopped>,
    /// How much of the order is finished from its start on.
    done: usize,
    /// How much of it the curtailment has seen.
    looked: usize,
}

/// Why a sweep ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// No further call could have succeeded, or a budget is used up.
    Model(ModelError),
    /// A person or the machine asked for it.
    Cancelled,
    /// Something could not be written.
    Storage(String),
    /// The rest could not have changed the verdict.
    Curtailed(StopReason),
}

/// Holds and judges everything, or as much as can be.
pub async fn run(work: Arc<Work>) -> Progress {
    let shared = Arc::new(Mutex::new(Progress::default()));
    let places = Arc::new(Semaphore::new(work.conversations.max(1)));
    let mut tasks = JoinSet::new();
    let order: Arc<[usize]> = work.plan.order(work.sweep.seed).into();
    for index in order.iter().copied() {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        if work.cancel.is_cancelled() {
            break;
        }
        let (work, order, shared) = (Arc::clone(&work), Arc::clone(&order), Arc::clone(&shared));
        tasks.spawn(async move {
            if let Some(cell) = work.plan.cells.get(index) {
                one(&work, &order, cell, &shared).await;
            }
            drop(place);
        });
        // Finished tasks are collected on the way, so that their remains do not pile up.
        while tasks.try_join_next().is_some() {}
    }
    while tasks.join_next().await.is_some() {}
    finished(&work, &shared)
}

/// Has transcripts judged that were held elsewhere. They are kept like those of a sweep.
pub async fn judge_all(work: Arc<Work>, transcripts: Vec<Transcript>) -> Progress {
    let shared = Arc::new(Mutex::new(Progress::default()));
    let places = Arc::new(Semaphore::new(work.conversations.max(1)));
    let mut tasks = JoinSet::new();
    for transcript in transcripts {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        if work.cancel.is_cancelled() {
            break;
        }
        let (work, shared) = (Arc::clone(&work), Arc::clone(&shared));
        tasks.spawn(async move {
            keep_and_judge(&work, &[], &transcript, &shared).await;
            drop(place);
        });
        while tasks.try_join_next().is_some() {}
    }
    while tasks.join_next().await.is_some() {}
    finished(&work, &shared)
}

/// What is there at the end, ordered by conversation and judge, whatever the order of the work was.
fn finished(work: &Work, shared: &Mutex<Progress>) -> Progress {
    let mut progress = std::mem::take(&mut *lock(shared));
    for cell in &work.plan.cells {
        progress.statuses.entry(cell.id.clone()).or_insert(CellStatus::NotStarted);
    }
    progress.assessments.sort_by(|a, b| a.conversation.cmp(&b.conversation).then(a.judge.cmp(&b.judge)));
    if progress.stopped.is_none() && work.cancel.is_cancelled() {
        progress.stopped = Some(Stopped::Cancelled);
    }
    progress
}

fn lock(shared: &Mutex<Progress>) -> std::sync::MutexGuard<'_, Progress> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the sweep. The first reason counts: the others follow from it.
fn stop(work: &Work, shared: &Mutex<Progress>, why: Stopped, said: &str) {
    let mut progress = lock(shared);
    let first = progress.stopped.is_none() && !work.cancel.is_cancelled();
    let abort = first && !matches!(why, Stopped::Curtailed(_));
    if first {
        work.listener.on(&Event::Stopping { why: said.to_owned() });
        progress.stopped = Some(why);
    }
    drop(progress);
    work.cancel.cancel();
    if abort {
        work.abort.cancel();
    }
}

/// One conversation with all of its judges.
async fn one(work: &Work, order: &[usize], cell: &Cell, shared: &Mutex<Progress>) {
    let transcript = match held(work, cell, shared).await {
        Ok(transcript) => transcript,
        // Cut off by the end of the run, which is no fault of the conversation: it counts as never started.
        Err(NotHeld::Failed { failure: Failure::Cancelled, .. }) => return,
        Err(why) => {
            work.listener.on(&Event::NotHeld { conversation: cell.id.clone(), why: why.clone() });
            lock(shared).statuses.insert(cell.id.clone(), CellStatus::NotHeld(why));
            return;
        }
    };
    work.listener.on(&Event::Held { conversation: cell.id.clone(), messages: transcript.turns.len() });
    keep_and_judge(work, order, &transcript, shared).await;
}

/// What happens to a transcript, whoever held the conversation.
async fn keep_and_judge(work: &Work, order: &[usize], transcript: &Transcript, shared: &Mutex<Progress>) {
    if let Err(error) = work.keeper.keep(transcript) {
        stop(work, shared, Stopped::Storage(error.clone()), &error);
        return;
    }
    let messages = transcript.turns.len();
    let flags = remarkable(transcript);
    let evaluated = judged(work, transcript, shared).await;
    let mut progress = lock(shared);
    let curtailed = matches!(progress.stopped, Some(Stopped::Curtailed(_)));
    let harmful = || evaluated.iter().flat_map(|a| &a.dimensions).any(|d| d.outcome.is_harm());
    if curtailed && evaluated.len() < work.judges.len() && !harmful() {
        // Cut off by the gate, which needs it no more: it is left out, and no judge has failed. Harm that was seen stays.
        return;
    }
    progress.statuses.insert(transcript.id.clone(), CellStatus::Held { messages, flags });
    progress.assessments.extend(evaluated);
    drop(progress);
    look(work, order, shared);
}

fn remarkable(transcript: &Transcript) -> BTreeMap<TurnFlag, usize> {
    let mut counts = BTreeMap::new();
    for turn in &transcript.turns {
        let told = |flag: &&TurnFlag| turn.speaker == Speaker::Chatbot || **flag == TurnFlag::Resampled;
        for flag in turn.flags.iter().filter(told) {
            *counts.entry(*flag).or_default() += 1;
        }
    }
    counts
}

/// Asks the curtailment, when the finished beginning of the order has grown by a look.
fn look(work: &Work, order: &[usize], shared: &Mutex<Progress>) {
    let Some(enough) = &work.curtailment else { return };
    let mut progress = lock(shared);
    let ids = || order.iter().filter_map(|index| work.plan.cells.get(*index)).map(|cell| &cell.id);
    let more = ids().skip(progress.done).take_while(|id| progress.statuses.contains_key(*id)).count();
    progress.done += more;
    let done = progress.done;
    let step = order.len().div_ceil(LOOKS).max(1);
    if done / step <= progress.looked / step || progress.stopped.is_some() {
        return;
    }
    progress.looked = done;
    let beginning: BTreeSet<&ConversationId> = ids().take(done).collect();
    let shown = Progress {
        statuses: progress
            .statuses
            .iter()
            .filter(|(id, _)| beginning.contains(id))
            .map(|(id, status)| (id.clone(), status.clone()))
            .collect(),
        assessments: progress
            .assessments
            .iter()
            .filter(|a| beginning.contains(&a.conversation))
            .cloned()
            .collect(),
        ..Progress::default()
    };
    drop(progress);
    if let Some(reason) = enough(&shown) {
        let words = reason.words();
        stop(work, shared, Stopped::Curtailed(reason), &words);
    }
}

/// Has one transcript judged by every judge.
async fn judged(work: &Work, transcript: &Transcript, shared: &Mutex<Progress>) -> Vec<Assessment> {
    let graph = Graph::new(&work.target.rubric);
    let evaluations = work.judges.iter().map(|judge| judge.evaluate(&work.target, &graph, transcript));
    let mut evaluated = Vec::new();
    for result in futures::future::join_all(evaluations).await {
        match result {
            Ok(assessment) => {
                let count = |wanted: fn(RatingOutcome) -> bool| {
                    assessment.dimensions.iter().filter(|d| wanted(d.outcome)).count()
                };
                work.listener.on(&Event::Judged {
                    conversation: transcript.id.clone(),
                    judge: assessment.judge.clone(),
                    harmful: count(RatingOutcome::is_harm),
                    unjudged: count(|outcome| outcome.rating().is_none()),
                });
                evaluated.push(assessment);
            }
            Err(error) => stop(work, shared, Stopped::Model(error.clone()), &error.to_string()),
        }
    }
    evaluated
}

/// Whether a conversation that failed is held again from its start. A call that could be made again was, by the model
/// layer and as often as is allowed; only the other side's own state makes a new start something else than more of the
/// same.
fn starts_again(failure: Failure, failed: &dyn ChatModel) -> bool {
    matches!(failure, Failure::Restart | Failure::Interrupted | Failure::Exited)
        || failed.identity().provider == "command"
}

/// Holds a conversation, from its start again when the other side lost it on the way.
async fn held(work: &Work, cell: &Cell, shared: &Mutex<Progress>) -> Result<Transcript, NotHeld> {
    let setting = Setting {
        prompts: &work.target.prompts,
        sweep: &work.sweep,
        system: work.system.clone(),
        candidate: work.candidate.as_ref(),
    };
    let missing = |what: &str| NotHeld::Failed {
        role: Role::User,
        failure: Failure::NotFound,
        message: format!("the plan names {what} that is not there"),
    };
    let persona = work.target.persona(&cell.persona).ok_or_else(|| missing("a persona"))?;
    let user = work.users.get(cell.user).ok_or_else(|| missing("a user model"))?;
    let (mut attempt, mut failed) = (1, 0);
    loop {
        let result = hold(&setting, user.as_ref(), persona, cell, attempt).await;
        let Err(NotHeld::Failed { role, failure, message }) = &result else { return result };
        if failure.stops_run() {
            let (role, failure, message) = (*role, *failure, message.clone());
            let error = ModelError { role, failure, message, attempts: 0 };
            let said = error.to_string();
            let why = if failure == Failure::Cancelled { Stopped::Cancelled } else { Stopped::Model(error) };
            stop(work, shared, why, &said);
            return result;
        }
        // What an earlier run left in the middle does not count against the conversation.
        failed += u32::from(*failure != Failure::Interrupted);
        let with: &dyn ChatModel = if *role == Role::User { user.as_ref() } else { work.candidate.as_ref() };
        if !starts_again(*failure, with) || failed > work.sweep.restarts || work.cancel.is_cancelled() {
            return result;
        }
        attempt += 1;
        work.listener.on(&Event::Restarted { conversation: cell.id.clone(), attempt });
    }
}
