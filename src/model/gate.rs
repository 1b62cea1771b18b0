//! What all workers on one host and key share: when the next request may go out, and whether any should.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
}

/// The shared state of one host and key.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
}

impl Gate {
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
