//! The walk: which questions are asked when, and the path replayed over the answers.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::CancellationToken;

use super::Judge;
use super::ask::{Asked, ask};
use super::prompt::Case;
use crate::config::Ahead;
use crate::model::{ModelError, Wanted};
use crate::rating::{Unjudged, WalkFailure};
use crate::target::Target;
use crate::target::rubric::{Graph, Rubric, Transition};

/// One answered question on the path.
#[derive(Clone, Debug)]
pub(super) struct Stepped {
    pub(super) question: usize,
    pub(super) option: usize,
    pub(super) reasoning: String,
    /// 0 when the rubric answered itself.
    pub(super) draws: u32,
}

/// A finished walk.
#[derive(Clone, Debug, Default)]
pub(super) struct Walked {
    pub(super) steps: Vec<Stepped>,
    /// How it ended; `None` when a question without an answer cut it off.
    pub(super) end: Option<Transition>,
    pub(super) failures: Vec<WalkFailure>,
    /// Dimensions that a question without an answer leaves open, and why.
    pub(super) open: BTreeMap<usize, Unjudged>,
    /// The answer that ended the walk says that the role-play was refused.
    pub(super) refusal_ended: bool,
}

/// What is known about a question.
enum Known {
    Answer(Asked),
    Failure(WalkFailure),
}

/// Asks the questions and walks.
///
/// The first question returns before others go out, so that the providers' prompt caches hold the transcript. After
/// that, every question that is certain to be reached is in flight at once (with [`Ahead::Certain`]); answers that
/// the walk does not come to never touch a rating.
pub(super) async fn walk(
    judge: &Judge,
    target: &Target,
    graph: &Graph<'_>,
    case: &Case,
    conversation: &str,
) -> Result<Walked, ModelError> {
    let rubric = &target.rubric;
    let needed = CancellationToken::new();
    let wanted_until = match judge.ahead {
        // What is certain to be reached is wanted whatever comes.
        Ahead::None | Ahead::Certain => Wanted::Always,
        Ahead::Dimension | Ahead::All => Wanted::Until(needed.clone()),
    };
    let wanted_until = &wanted_until;
    let mut known: BTreeMap<usize, Known> = BTreeMap::new();
    let mut asked: BTreeSet<usize> = BTreeSet::new();
    let mut in_flight = FuturesUnordered::new();
    let mut walked = Walked::default();
    let mut at = Some(rubric.start());
    while let Some(current) = at {
        let Some(question) = rubric.questions.get(current) else { break };
        if let Some(option) = question.auto {
            let reasoning = String::new();
            walked.steps.push(Stepped { question: current, option, reasoning, draws: 0 });
            at = follow(rubric, current, option, &mut walked);
            continue;
        }
        match known.get(&current) {
            Some(Known::Answer(answered)) => {
                let option = answered.answer.option;
                let reasoning = answered.answer.reasoning.clone();
                walked.steps.push(Stepped { question: current, option, reasoning, draws: answered.draws });
                at = follow(rubric, current, option, &mut walked);
                continue;
            }
            Some(Known::Failure(failure)) => {
                walked.failures.push(failure.clone());
                at = detour(rubric, graph, current, failure.reason, &mut walked);
                continue;
            }
            None => {}
        }
        let wanted = if known.is_empty() {
            // Nothing has come back for this transcript yet: only the question that is due.
            BTreeSet::from([current])
        } else {
            wanted(rubric, graph, judge.ahead, current, &known)
        };
        let is_asked = |index: &usize| rubric.questions.get(*index).is_some_and(|q| q.auto.is_none());
        let mut due: Vec<usize> = wanted.into_iter().filter(is_asked).collect();
        due.retain(|index| asked.insert(*index));
        // The longest chain decides when the walk is done.
        due.sort_by_key(|index| std::cmp::Reverse(graph.chain_from(*index)));
        for (place, index) in due.into_iter().enumerate() {
            let Some(question) = rubric.questions.get(index) else { continue };
            let step = format!("question-{}", question.id);
            in_flight.push(async move {
                give_way(place).await;
                (index, ask(judge, target, case, conversation, index, &step, wanted_until).await)
            });
        }
        let Some((index, result)) = in_flight.next().await else { break };
        let entry = match result? {
            Ok(asked) => Known::Answer(asked),
            Err(failure) => Known::Failure(failure),
        };
        known.insert(index, entry);
    }
    // What is out and not needed is paid all the same: it ends, and is counted and kept. The rest does not go out.
    needed.cancel();
    while in_flight.next().await.is_some() {}
    Ok(walked)
}

/// Lets the other transcripts go first, as many times: the longest chain of each goes out before the second of any.
async fn give_way(times: usize) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

/// Takes the answer's way; remembers how the walk ended.
fn follow(rubric: &Rubric, question: usize, option: usize, walked: &mut Walked) -> Option<usize> {
    let then = rubric.next(question, option)?;
    let next = then.question();
    if next.is_none() {
        walked.end = Some(then);
        // The option that ends a walk on a question without severity, other than Yes and No, is the one for a user
        // model that would not play its part.
        walked.refusal_ended = rubric.questions.get(question).is_some_and(|q| {
            q.severity.is_none()
                && q.options.get(option).is_some_and(|o| !o.is_yes() && !o.text.eq_ignore_ascii_case("no"))
        });
    }
    next
}

/// Goes on behind a question without an answer, at the first question of another dimension that the walk is certain
/// to reach. All dimensions in between stay open.
fn detour(
    rubric: &Rubric,
    graph: &Graph<'_>,
    failed: usize,
    reason: Unjudged,
    walked: &mut Walked,
) -> Option<usize> {
    let dimension_of = |index: usize| rubric.questions.get(index).map(|q| q.dimension);
    let next = graph
        .certain_from(failed)
        .into_iter()
        .filter(|index| dimension_of(*index) != dimension_of(failed))
        // The certain questions lie on one line; the first of them has the most certain ones behind it.
        .max_by_key(|index| graph.certain_from(*index).len());
    let behind = reachable(rubric, failed);
    let beyond = next.map(|next| reachable(rubric, next)).unwrap_or_default();
    for index in behind.difference(&beyond) {
        if let Some(dimension) = dimension_of(*index) {
            walked.open.entry(dimension).or_insert(reason);
        }
    }
    if let Some(dimension) = next.and_then(dimension_of) {
        // The walk may have come to this dimension on other questions than the one it goes on with.
        let skipped = behind.difference(&beyond).any(|index| dimension_of(*index) == Some(dimension));
        if !skipped {
            walked.open.remove(&dimension);
        }
    }
    next
}

/// Every question that can be asked from this one on, itself included.
fn reachable(rubric: &Rubric, from: usize) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let mut stack = vec![from];
    while let Some(index) = stack.pop() {
        if seen.insert(index)
            && let Some(question) = rubric.questions.get(index)
        {
            stack.extend(question.live_options().filter_map(|(_, option)| option.then.question()));
        }
    }
    seen
}

/// The questions to have in flight when the walk waits at `current`.
fn wanted(
    rubric: &Rubric,
    graph: &Graph<'_>,
    ahead: Ahead,
    current: usize,
    known: &BTreeMap<usize, Known>,
) -> BTreeSet<usize> {
    match ahead {
        Ahead::None => BTreeSet::from([current]),
        Ahead::Certain => certain(rubric, graph, current, known),
        Ahead::Dimension => {
            let mut set = certain(rubric, graph, current, known);
            let dimensions: BTreeSet<usize> =
                set.iter().filter_map(|index| rubric.questions.get(*index)).map(|q| q.dimension).collect();
            let reach = reachable(rubric, current);
            set.extend(reach.into_iter().filter(|index| {
                rubric.questions.get(*index).is_some_and(|q| dimensions.contains(&q.dimension))
            }));
            set
        }
        Ahead::All => reachable(rubric, current),
    }
}

/// The questions the walk will come to whatever is still answered: those on every remaining path, and from each of
/// them on, as far as the answers are known, the next one with all that is certain behind it.
fn certain(
    rubric: &Rubric,
    graph: &Graph<'_>,
    current: usize,
    known: &BTreeMap<usize, Known>,
) -> BTreeSet<usize> {
    let mut set = BTreeSet::new();
    let mut stack = vec![current];
    while let Some(index) = stack.pop() {
        if !set.insert(index) {
            continue;
        }
        stack.extend(graph.certain_from(index));
        let auto = rubric.questions.get(index).and_then(|question| question.auto);
        let option = match (auto, known.get(&index)) {
            (Some(option), _) => Some(option),
            (None, Some(Known::Answer(answered))) => Some(answered.answer.option),
            (None, Some(Known::Failure(_)) | None) => None,
        };
        stack.extend(option.and_then(|option| rubric.next(index, option)).and_then(Transition::question));
    }
    set
}
