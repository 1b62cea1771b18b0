//! Time of the model layer: waiting, deadlines, and a clock for tests that does not wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The clock by which the model layer waits.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// All waits so far, when they are skipped instead of waited.
    skipped: Option<Arc<Mutex<Vec<Duration>>>>,
}

impl Clock {
    /// The real one.
    pub fn real() -> Self {
        Self::default()
    }

    /// A clock that jumps over every wait and remembers it.
    pub fn skipping() -> Self {
        Self { skipped: Some(Arc::default()) }
    }

    /// The waits that were jumped over, in order; empty for the real clock.
    pub fn waits(&self) -> Vec<Duration> {
        self.skipped
            .as_ref()
            .map(|waits| waits.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .unwrap_or_default()
    }

    /// The present moment, jumped waits included.
    pub fn now(&self) -> Instant {
        let jumped: Duration = self.waits().iter().sum();
        let now = Instant::now();
        now.checked_add(jumped).unwrap_or(now)
    }

    /// The wall clock, for the dates in servers' answers.
    pub(crate) fn wall(&self) -> SystemTime {
        let jumped: Duration = self.waits().iter().sum();
        let now = SystemTime::now();
        now.checked_add(jumped).unwrap_or(now)
    }

    /// Waits.
    pub(crate) async fn sleep(&self, duration: Duration) {
        match &self.skipped {
            Some(waits) => {
                waits.lock().unwrap_or_else(PoisonError::into_inner).push(duration);
                tokio::task::yield_now().await;
            }
            None => tokio::time::sleep(duration).await,
        }
    }
}
