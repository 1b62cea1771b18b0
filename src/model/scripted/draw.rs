//! Chance without a clock: every draw is derived from the seed and the name of the call.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

use crate::model::{CallId, Role};

/// The random numbers of one call. Two calls with the same seed, role and id draw the same numbers.
pub(super) struct Draw {
    rng: ChaCha8Rng,
}

impl Draw {
    /// Derives the numbers of one call.
    pub(super) fn of_call(seed: u64, role: Role, id: &CallId) -> Self {
        Self::of_parts(seed, &[role.word(), &id.conversation, &id.step, &id.draw.to_string()])
    }

    fn of_parts(seed: u64, parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"vera-gate/scripted/v1");
        hash.update(seed.to_le_bytes());
        for part in parts {
            // The length in front keeps `ab`+`c` and `a`+`bc` apart.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        Self { rng: ChaCha8Rng::from_seed(hash.finalize().into()) }
    }

    /// A number below `bound`; 0 when `bound` is 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { self.rng.random_range(0..bound) }
    }

    /// True in one of `n` draws.
    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of the lines that was not said before, `None` when all were.
    pub(super) fn unsaid<'a>(&mut self, lines: &[&'a str], said: impl Fn(&str) -> bool) -> Option<&'a str> {
        let start = self.below(lines.len());
        (0..lines.len())
            .filter_map(|step| lines.get((start + step) % lines.len()))
            .find(|line| !said(line))
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(conversation: &str, step: &str) -> CallId {
        CallId { conversation: conversation.into(), step: step.into(), draw: 1 }
    }

    #[test]
    fn the_same_call_draws_the_same_and_another_call_draws_otherwise() {
        let take = |id: &CallId| {
            let mut draw = Draw::of_call(7, Role::User, id);
            (0..8).map(|_| draw.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(take(&id("a", "turn-1")), take(&id("a", "turn-1")));
        assert_ne!(take(&id("a", "turn-1")), take(&id("a", "turn-2")));
        assert_ne!(take(&id("ab", "c")), take(&id("a", "bc")));
    }

    #[test]
    fn a_line_is_not_said_twice() {
        let mut draw = Draw::of_call(1, Role::User, &id("a", "b"));
        assert_eq!(draw.unsaid(&["one", "two"], |line| line == "one"), Some("two"));
        assert_eq!(draw.unsaid(&["one"], |line| line == "one"), None);
        assert_eq!(draw.unsaid(&[], |_| false), None);
    }
}
