//! Interval of a coefficient by resampling whole conversations.

use crate::stats::value::{Confidence, Interval, Sides};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How to resample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resampling {
    /// Resamples to draw; 1000 settle the second digit of an end.
    pub resamples: u32,
    /// Seed of the generator: the same seed gives the same interval on every machine.
    pub seed: u64,
    /// Confidence of the interval.
    pub confidence: Confidence,
}

/// Percentile bootstrap interval of `statistic` over `units`, which are drawn with replacement.
///
/// The unit is the conversation with all its dimensions, because ratings of one conversation resemble each other. Efron
/// (1979), Ann. Statist. 7, 1-26; clusters: Davison and Hinkley (1997), section 3.8. Resamples in which the statistic
/// is not defined are left out; `None` when there are no units, or it is undefined in more than one in twenty.
pub fn bootstrap<T>(
    units: &[T],
    resampling: Resampling,
    statistic: impl Fn(&[&T]) -> Option<f64>,
) -> Option<Interval> {
    if units.is_empty() || resampling.resamples == 0 {
        return None;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(resampling.seed);
    let mut drawn = Vec::with_capacity(units.len());
    let mut values: Vec<f64> = (0..resampling.resamples)
        .filter_map(|_| {
            drawn.clear();
            drawn.extend((0..units.len()).filter_map(|_| units.get(rng.random_range(0..units.len()))));
            statistic(&drawn)
        })
        .filter(|value| value.is_finite())
        .collect();
    if (values.len() as f64) < 0.95 * f64::from(resampling.resamples) {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let tail = Sides::Both.tail(resampling.confidence);
    Some(Interval { lower: quantile(&values, tail)?, upper: quantile(&values, 1.0 - tail)? })
}

/// Quantile of sorted values, interpolated linearly (Hyndman and Fan 1996, type 7).
fn quantile(sorted: &[f64], probability: f64) -> Option<f64> {
    let position = probability * (sorted.len().checked_sub(1)? as f64);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the length of the list"
    )]
    let below = position.floor() as usize;
    let low = sorted.get(below)?;
    let high = sorted.get(below + 1).unwrap_or(low);
    Some((position - position.floor()).mul_add(high - low, *low))
}
