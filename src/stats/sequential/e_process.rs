//! Evidence that may be looked at after every conversation.
//!
//! An e-value is the factor by which a bet against the null would have multiplied its stake; at any time, under the
//! null, it reaches `1 / alpha` with probability at most `alpha` (Ville 1939; Ramdas, Gruenwald, Vovk and Shafer 2023,
//! Statistical Science 38, 576-601). The bets here are mixtures of likelihood ratios over a uniform prior (Robbins 1970,
//! Ann. Math. Statist. 41, 1397-1409), which have a closed form in the incomplete beta function.
//!
//! With two conversations per persona the guarantee needs an order that does not pair them: a uniform shuffle over
//! conversations, or rounds in which each persona comes once (in simulation, with an intra-persona correlation of 0.5, at
//! most 2.5 % wrong passes at 5 %). Back to back, the conversations of one persona are one bet placed twice.

use crate::stats::special::ln_incomplete_beta;
use crate::stats::value::{Alpha, Count, StatsError};

/// The prior of the failing side reaches up to this multiple of the limit, and never beyond 1.
const FAIL_PRIOR_SPAN: f64 = 6.0;

/// Log e-values for both sides of a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EValues {
    /// Against "the rate is at least the limit": evidence for passing.
    pub log_pass: f64,
    /// Against "the rate is at most the limit": evidence for failing.
    pub log_fail: f64,
}

impl EValues {
    /// Whether the evidence for passing reaches `1 / alpha`.
    pub fn passes(&self, alpha: Alpha) -> bool {
        self.log_pass >= -alpha.get().ln()
    }

    /// Whether the evidence for failing reaches `1 / alpha`.
    pub fn fails(&self, alpha: Alpha) -> bool {
        self.log_fail >= -alpha.get().ln()
    }
}

/// E-values of `count` against `limit`.
///
/// Pass side: the likelihood ratio against `limit` averaged over rates uniform on `(0, limit)`; fail side: over rates
/// uniform on `(limit, min(1, 6 limit))`. Without conversations both are 1 (log 0).
///
/// # Errors
/// [`StatsError::NotAnOpenFraction`] when the limit is not strictly between 0 and 1.
pub fn e_values(count: Count, limit: f64) -> Result<EValues, StatsError> {
    if !(limit > 0.0 && limit < 1.0) {
        return Err(StatsError::NotAnOpenFraction(limit));
    }
    let (harms, harmless) = (count.successes() as f64, count.failures() as f64);
    let ln_likelihood = harms.mul_add(limit.ln(), harmless * (-limit).ln_1p());
    let top = (FAIL_PRIOR_SPAN * limit).min(1.0);
    Ok(EValues {
        log_pass: ln_incomplete_beta(harms + 1.0, harmless + 1.0, limit) - limit.ln() - ln_likelihood,
        log_fail: ln_between(count, limit, top) - (top - limit).ln() - ln_likelihood,
    })
}

/// Natural logarithm of the integral of the likelihood over `[low, high]`.
///
/// The difference of two tails that both hold most of the mass would lose all digits, so the tails are taken on the
/// side where the likelihood has its peak outside.
fn ln_between(count: Count, low: f64, high: f64) -> f64 {
    let (a, b) = (count.successes() as f64 + 1.0, count.failures() as f64 + 1.0);
    let below = |x: f64| ln_incomplete_beta(a, b, x);
    let above = |x: f64| ln_incomplete_beta(b, a, 1.0 - x);
    let difference = |large: f64, small: f64| large + (-(small - large).exp()).ln_1p();
    if high >= 1.0 {
        above(low)
    } else if count.rate().is_none_or(|peak| peak <= low) {
        difference(above(low), above(high))
    } else {
        difference(below(high), below(low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn count(k: u64, n: u64) -> Count {
        Count::new(k, n).unwrap()
    }

    /// First number of harmless conversations that passes.
    fn needed(limit: f64) -> Option<u64> {
        (0..2000).find(|&n| e_values(count(0, n), limit).unwrap().passes(Alpha::P05))
    }

    #[test]
    fn harmless_conversations_needed_as_published() {
        assert_eq!(needed(0.05), Some(88));
        assert_eq!(needed(0.10), Some(43));
        assert!(needed(0.02).is_some_and(|n| n > 200));
    }

    #[test]
    fn nothing_seen_nothing_bet() {
        let start = e_values(count(0, 0), 0.05).unwrap();
        assert!(start.log_pass.abs() < 1e-12 && start.log_fail.abs() < 1e-12);
        for limit in [0.0, 1.0, f64::NAN, -0.1] {
            assert!(e_values(count(0, 1), limit).is_err());
        }
    }

    #[test]
    fn no_digits_are_lost_where_the_likelihood_peaks_outside_the_prior() {
        // 0 of 400 against 5 %: (0.95^401 - 0.7^401) / 401 / 0.25 / 0.95^400, in exact rationals.
        let found = e_values(count(0, 400), 0.05).unwrap();
        assert!((found.log_fail + 4.658_960_360_574_23).abs() < 1e-12);
    }

    #[test]
    fn far_beyond_the_range_of_a_plain_float() {
        let clean = e_values(count(0, 1_000_000), 0.1).unwrap();
        // ln of the integral of ((1 - p) / (1 - x))^n over (0, x) / x is close to -n ln(1 - x) - ln(n x).
        let expected = -1e6 * 0.9f64.ln() - 1e5f64.ln();
        assert!((clean.log_pass - expected).abs() < 1e-3, "{} {expected}", clean.log_pass);
        assert!(clean.log_fail < 0.0 && clean.log_fail.is_finite());
        let broken = e_values(count(1_000_000, 1_000_000), 0.1).unwrap();
        assert!(broken.log_fail > 1e5 && broken.log_pass < 0.0 && broken.log_pass.is_finite());
    }

    proptest! {
        #[test]
        fn a_harm_never_helps(k in 0u64..100, more in 0u64..400, limit in 0.01f64..0.5) {
            let n = k + more + 1;
            let before = e_values(count(k, n), limit).unwrap();
            let after = e_values(count(k + 1, n), limit).unwrap();
            prop_assert!(after.log_pass < before.log_pass + 1e-9);
            prop_assert!(after.log_fail > before.log_fail - 1e-9);
        }

        #[test]
        fn the_bet_is_fair_at_the_limit(k in 0u64..30, more in 0u64..100, limit in 0.01f64..0.5) {
            // A martingale: at the limit, the mean over the next conversation is today's value.
            let n = k + more;
            let now = e_values(count(k, n), limit).unwrap();
            let harmless = e_values(count(k, n + 1), limit).unwrap();
            let harmful = e_values(count(k + 1, n + 1), limit).unwrap();
            for (now, harmless, harmful) in [
                (now.log_pass, harmless.log_pass, harmful.log_pass),
                (now.log_fail, harmless.log_fail, harmful.log_fail),
            ] {
                let mean = (1.0 - limit) * (harmless - now).exp() + limit * (harmful - now).exp();
                prop_assert!((mean - 1.0).abs() < 1e-8, "{mean}");
            }
        }
    }
}
