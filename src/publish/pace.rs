//! Waiting between tries, within a deadline.

use std::time::Duration;

use tokio::time::Instant;

use super::forge::ForgeError;

/// Tries of one piece of work, the first included.
pub const TRIES: u32 = 4;

/// Time that publishing may take. Every wait is bounded by it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    deadline: Instant,
    unit: Duration,
}

impl Pace {
    /// `total` is the time for all of publishing; `unit` the first wait after a fault, one second outside of tests.
    pub fn new(total: Duration, unit: Duration) -> Self {
        Self { deadline: Instant::now() + total, unit }
    }

    /// Time that is left.
    pub fn remaining(self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Waits before another try, and says whether there may be one. `attempt` counts from 0.
    ///
    /// A limit is waited out as long as the server asks for; where it does not say, a minute, as GitHub's
    /// documentation wants. A missing answer is waited out for one, two, four units. Nothing else is tried again.
    pub async fn again(self, error: &ForgeError, attempt: u32) -> bool {
        let wait = match error {
            ForgeError::RateLimited { wait, .. } => wait.unwrap_or(self.unit * 60),
            ForgeError::Unavailable { .. } => self.unit * 2_u32.saturating_pow(attempt),
            _ => return false,
        };
        if attempt + 1 >= TRIES || wait >= self.remaining() {
            return false;
        }
        tokio::time::sleep(wait).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::forge::Operation;

    fn limited(wait: Option<u64>) -> ForgeError {
        ForgeError::RateLimited { message: String::new(), wait: wait.map(Duration::from_secs) }
    }

    #[tokio::test]
    async fn only_limits_and_missing_answers_are_tried_again() {
        let pace = Pace::new(Duration::from_secs(5), Duration::from_millis(1));
        let unavailable = ForgeError::Unavailable { operation: Operation::ReadPull, message: String::new() };
        assert!(pace.again(&unavailable, 0).await);
        assert!(pace.again(&limited(None), 0).await);
        assert!(!pace.again(&ForgeError::NotFound(Operation::ReadPull), 0).await);
        let forbidden =
            ForgeError::Forbidden { operation: Operation::ReadPull, message: String::new(), accepted: None };
        assert!(!pace.again(&forbidden, 0).await);
        assert!(!pace.again(&unavailable, TRIES - 1).await, "the last try was made");
    }

    #[tokio::test]
    async fn a_wait_beyond_the_deadline_is_not_begun() {
        let pace = Pace::new(Duration::from_secs(5), Duration::from_secs(1));
        assert!(!pace.again(&limited(Some(6)), 0).await);
        assert!(!pace.again(&limited(None), 0).await, "a minute is more than five seconds");
    }
}
