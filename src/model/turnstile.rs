//! Lets so many calls out at the same time, and says whose turn is next.
//!
//! The roles take turns, so that none of them waits for another to be done. Within a role the call with the longest
//! chain of further calls behind it goes first: what takes longest should never be what was left for last.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::Role;

/// The order of the roles.
const LANES: [Role; 3] = [Role::User, Role::Candidate, Role::Judge];

/// Who waits and in which place: how much of its chain a call has behind it, and when it came.
type Place = (u32, u64);

/// Counts the calls that are out.
#[derive(Debug)]
pub(crate) struct Turnstile {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit: usize,
    out: usize,
    came: u64,
    lanes: [BTreeMap<Place, oneshot::Sender<()>>; LANES.len()],
    /// The lane whose turn is next.
    next: usize,
}

/// A call that may be out; it is back when this is dropped.
#[derive(Debug)]
pub(crate) struct Pass {
    turnstile: Arc<Turnstile>,
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.turnstile.back();
    }
}

/// A place in the queue, given up when it is dropped.
struct Waiting<'a> {
    turnstile: &'a Turnstile,
    lane: usize,
    place: Place,
    turn: oneshot::Receiver<()>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.turn.close();
        if let Some(lane) = self.turnstile.lock().lanes.get_mut(self.lane) {
            lane.remove(&self.place);
        }
        // The turn may have come in the same moment: then it is the next one's.
        if self.turn.try_recv().is_ok() {
            self.turnstile.back();
        }
    }
}

impl Turnstile {
    /// Lets so many out, at least one.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let state = State {
            limit: limit.max(1),
            out: 0,
            came: 0,
            lanes: std::array::from_fn(|_| BTreeMap::new()),
            next: 0,
        };
        Arc::new(Self { state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn. `behind` is how much of its chain the call has behind it: less goes first.
    pub(crate) async fn enter(self: &Arc<Self>, role: Role, behind: u32) -> Pass {
        let lane = LANES.iter().position(|known| *known == role).unwrap_or(0);
        let mut waiting = {
            let mut state = self.lock();
            let (sender, turn) = oneshot::channel();
            state.came += 1;
            let place = (behind, state.came);
            if let Some(lane) = state.lanes.get_mut(lane) {
                lane.insert(place, sender);
            }
            state.let_out();
            Waiting { turnstile: self, lane, place, turn }
        };
        // The sender lives in the queue until it is this call's turn, so that this ends with it.
        drop((&mut waiting.turn).await);
        // The receiver is used up: dropping the place gives nothing back.
        drop(waiting);
        Pass { turnstile: Arc::clone(self) }
    }

    fn back(&self) {
        let mut state = self.lock();
        state.out = state.out.saturating_sub(1);
        state.let_out();
    }

    /// Lets so many out from now on, at least one. Those that are out stay out.
    pub(crate) fn set_limit(&self, limit: usize) {
        let mut state = self.lock();
        state.limit = limit.max(1);
        state.let_out();
    }
}

impl State {
    fn let_out(&mut self) {
        while self.out < self.limit {
            let order = (0..LANES.len()).map(|step| (self.next + step) % LANES.len());
            let Some(lane) =
                order.into_iter().find(|lane| self.lanes.get(*lane).is_some_and(|l| !l.is_empty()))
            else {
                return;
            };
            self.next = (lane + 1) % LANES.len();
            let first = self.lanes.get_mut(lane).and_then(BTreeMap::pop_first);
            // One that waits no longer lets the next one go.
            if first.is_some_and(|(_, turn)| turn.send(()).is_ok()) {
                self.out += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::future::BoxFuture;

    use super::*;

    impl Turnstile {
        fn out(&self) -> usize {
            self.lock().out
        }
    }

    fn waiting(turnstile: &Arc<Turnstile>, role: Role, behind: u32) -> BoxFuture<'static, Pass> {
        let turnstile = Arc::clone(turnstile);
        let mut entering = async move { turnstile.enter(role, behind).await }.boxed();
        assert!((&mut entering).now_or_never().is_none(), "it has to wait");
        entering
    }

    /// Lets one after the other out and tells the order in which the waiting ones came to their turn.
    fn order(first: Pass, mut waiting: Vec<(&'static str, BoxFuture<'static, Pass>)>) -> Vec<&'static str> {
        let (mut order, mut out) = (Vec::new(), Some(first));
        while !waiting.is_empty() {
            drop(out.take());
            let came: Vec<Option<Pass>> = waiting.iter_mut().map(|(_, turn)| turn.now_or_never()).collect();
            let at = came.iter().position(Option::is_some).expect("one comes to its turn");
            assert_eq!(came.iter().flatten().count(), 1, "and only one");
            order.push(waiting.remove(at).0);
            out = came.into_iter().flatten().next();
        }
        order
    }

    #[tokio::test]
    async fn the_longest_chain_goes_first_and_roles_take_turns() {
        let turnstile = Turnstile::new(1);
        let first = turnstile.enter(Role::User, 0).await;
        let calls = [
            ("judge 1", Role::Judge, 0),
            ("judge 2", Role::Judge, 0),
            ("judge 3", Role::Judge, 0),
            ("candidate at 9", Role::Candidate, 9),
            ("candidate at 3", Role::Candidate, 3),
            ("user at 4", Role::User, 4),
        ];
        let waiting = calls.map(|(name, role, behind)| (name, waiting(&turnstile, role, behind)));
        let wanted = ["candidate at 3", "judge 1", "user at 4", "candidate at 9", "judge 2", "judge 3"];
        assert_eq!(order(first, waiting.into()), wanted);
        assert_eq!(turnstile.out(), 0);
    }

    #[tokio::test]
    async fn a_call_that_is_given_up_keeps_nobody_from_going() {
        let turnstile = Turnstile::new(1);
        let first = turnstile.enter(Role::User, 0).await;
        let given_up = waiting(&turnstile, Role::User, 0);
        let early = waiting(&turnstile, Role::User, 1);
        let late = waiting(&turnstile, Role::User, 2);
        drop(early);
        drop(first);
        // The turn of the first has come, and it goes without having looked.
        assert_eq!(turnstile.out(), 1);
        drop(given_up);
        drop(late.await);
        assert_eq!(turnstile.out(), 0);
    }

    #[tokio::test]
    async fn a_limit_can_shrink_and_grow_while_calls_are_out() {
        let turnstile = Turnstile::new(3);
        let mut out = Vec::new();
        for _ in 0..3 {
            out.push(turnstile.enter(Role::User, 0).await);
        }
        turnstile.set_limit(2);
        let mut fourth = waiting(&turnstile, Role::User, 0);
        out.pop();
        assert!((&mut fourth).now_or_never().is_none(), "two are still out");
        turnstile.set_limit(3);
        out.push(fourth.await);
        assert_eq!(turnstile.out(), 3);
    }
}
