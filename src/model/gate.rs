//! What all workers on one host and key share: when the next request may go out, how many at once, and whether any
//! should.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Role;
use super::turnstile::{Pass, Turnstile};

/// Calls in a row that failed after all their retries before the circuit opens.
const FAILURES_TO_OPEN: u32 = 5;
/// How long an open circuit stays open before one call may try.
const OPEN_FOR: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
struct State {
    not_before: Option<Instant>,
    failures: u32,
    last: String,
    open_until: Option<Instant>,
    width: Width,
}

/// How many calls a provider takes at once: halved by a refusal, one more after as many good answers as there are
/// places (additive increase, multiplicative decrease: Chiu and Jain, 1989).
#[derive(Debug, Default)]
struct Width {
    /// `None` until the provider has refused a call.
    limit: Option<usize>,
    /// Calls that are out.
    out: usize,
    good: usize,
    /// Counts the refusals that narrowed it. Calls that went out before one of them say nothing new.
    narrowed: u64,
}

/// The shared state of one host and key.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    turnstile: Arc<Turnstile>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { state: Mutex::default(), turnstile: Turnstile::new(usize::MAX) }
    }
}

/// A call that is out at its provider.
#[derive(Debug)]
pub(crate) struct Entered<'a> {
    gate: &'a Gate,
    /// Held while the call is out.
    _pass: Pass,
    /// How often the provider's width had been narrowed when the call went out.
    narrowed: u64,
}

/// What the refusal of a call says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// More were out than go out from now on: another try has better prospects, whichever call it was that was refused.
    InACrowd,
    /// It was the only one: fewer cannot be sent.
    Alone,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.width.out = state.width.out.saturating_sub(1);
    }
}

impl Gate {
    /// Waits for a place among the calls that the provider takes at once.
    pub(crate) async fn place(&self, role: Role, behind: u32) -> Pass {
        self.turnstile.enter(role, behind).await
    }

    /// The call goes out.
    pub(crate) fn enter(&self, place: Pass) -> Entered<'_> {
        let mut state = self.lock();
        state.width.out += 1;
        Entered { gate: self, _pass: place, narrowed: state.width.narrowed }
    }

    /// The provider has refused this call because there are too many: half as many go out from now on.
    pub(crate) fn narrow(&self, entered: &Entered<'_>) -> Refusal {
        let mut state = self.lock();
        let width = &mut state.width;
        if entered.narrowed < width.narrowed {
            return Refusal::InACrowd;
        }
        let refusal = if width.out > 1 { Refusal::InACrowd } else { Refusal::Alone };
        let limit = (width.limit.unwrap_or(usize::MAX).min(width.out) / 2).max(1);
        width.limit = Some(limit);
        width.good = 0;
        width.narrowed += 1;
        drop(state);
        self.turnstile.set_limit(limit);
        refusal
    }

    fn widen(&self) {
        let mut state = self.lock();
        let Some(limit) = state.width.limit else { return };
        state.width.good += 1;
        if state.width.good < limit {
            return;
        }
        state.width.good = 0;
        let limit = limit.saturating_add(1);
        state.width.limit = Some(limit);
        drop(state);
        self.turnstile.set_limit(limit);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long requests still have to wait.
    pub(crate) fn held(&self, now: Instant) -> Option<Duration> {
        let left = self.lock().not_before?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// Whether too many calls in a row have failed, with the last one's message. When the circuit has been open
    /// long enough, one call is let through; the others stay out until it is back or another period is over.
    pub(crate) fn broken(&self, now: Instant) -> Option<String> {
        let mut state = self.lock();
        let until = state.open_until?;
        if now < until {
            return Some(state.last.clone());
        }
        state.open_until = now.checked_add(OPEN_FOR);
        None
    }

    /// Nothing goes out before this moment.
    pub(crate) fn hold(&self, until: Instant) {
        let mut state = self.lock();
        state.not_before = state.not_before.max(Some(until));
    }

    /// A call came back.
    pub(crate) fn succeeded(&self) {
        let mut state = self.lock();
        state.failures = 0;
        state.open_until = None;
        drop(state);
        self.widen();
    }

    /// A call failed after all its retries for a reason that may pass.
    pub(crate) fn failed(&self, now: Instant, message: &str) {
        let mut state = self.lock();
        state.failures = state.failures.saturating_add(1);
        message.clone_into(&mut state.last);
        if state.failures >= FAILURES_TO_OPEN {
            state.open_until = now.checked_add(OPEN_FOR);
        }
    }
}

/// The gates of a run.
#[derive(Debug, Default)]
pub struct Gates {
    gates: Mutex<BTreeMap<(String, String), Arc<Gate>>>,
}

impl Gates {
    /// No gate yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The gate of a host and a key; the key is only compared.
    pub(crate) fn of(&self, host: &str, key: &str) -> Arc<Gate> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(gates.entry((host.to_owned(), super::cassette::digest(key))).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_shared_and_only_grows() {
        let gates = Gates::new();
        let now = Instant::now();
        gates.of("h", "k").hold(now + Duration::from_secs(5));
        gates.of("h", "k").hold(now + Duration::from_secs(2));
        assert_eq!(gates.of("h", "k").held(now), Some(Duration::from_secs(5)));
        assert_eq!(gates.of("h", "other").held(now), None);
        assert_eq!(gates.of("h", "k").held(now + Duration::from_secs(5)), None);
    }

    /// By hand: eight are out and one is refused, so four; the others that were out then change nothing; after four
    /// good answers five, after five more six.
    #[tokio::test]
    async fn the_width_halves_on_a_refusal_and_grows_back() {
        let gate = Gate::default();
        let mut out = Vec::new();
        for _ in 0..8 {
            out.push(gate.enter(gate.place(Role::Judge, 0).await));
        }
        assert_eq!(gate.narrow(&out[0]), Refusal::InACrowd);
        assert_eq!(gate.narrow(&out[1]), Refusal::InACrowd);
        let limit = || gate.lock().width.limit;
        assert_eq!(limit(), Some(4));
        out.clear();
        let (good, limits): (Vec<usize>, Vec<usize>) = (1..=9)
            .filter_map(|good| {
                let before = limit()?;
                gate.succeeded();
                (limit()? != before).then_some((good, limit()?))
            })
            .unzip();
        assert_eq!((good, limits), (vec![4, 9], vec![5, 6]));
        for _ in 0..6 {
            out.push(gate.enter(gate.place(Role::Judge, 0).await));
        }
        assert!(futures::FutureExt::now_or_never(gate.place(Role::Judge, 0)).is_none(), "no seventh");
        for _ in 0..2 {
            assert_eq!(gate.narrow(&out[5]), Refusal::InACrowd);
        }
        assert_eq!(limit(), Some(3));
        out.clear();
        for wanted in [1, 1] {
            let entered = gate.enter(gate.place(Role::Judge, 0).await);
            assert_eq!(gate.narrow(&entered), Refusal::Alone);
            assert_eq!(limit(), Some(wanted), "never none");
        }
    }

    #[test]
    fn the_circuit_opens_after_failures_in_a_row_and_lets_one_call_try() {
        let gate = Gate::default();
        let now = Instant::now();
        for _ in 0..4 {
            gate.failed(now, "down");
        }
        gate.succeeded();
        for _ in 0..4 {
            gate.failed(now, "down");
        }
        assert_eq!(gate.broken(now), None);
        gate.failed(now, "still down");
        assert_eq!(gate.broken(now), Some("still down".to_owned()));
        let later = now + OPEN_FOR;
        assert_eq!(gate.broken(later), None);
        assert_eq!(gate.broken(later), Some("still down".to_owned()));
        gate.succeeded();
        assert_eq!(gate.broken(later), None);
    }
}
