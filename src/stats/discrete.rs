//! Null distributions on consecutive integers, and their tails.

use super::value::PValue;

/// Largest support a null distribution may have; a sweep of this size does not exist.
const MAX_SUPPORT: u64 = 1 << 24;

/// Probabilities that are this close, relatively, count as equal in a two-sided test: they are equal as fractions and
/// differ by rounding only (the tolerance R's `fisher.test` uses).
const TIE: f64 = 1e-7;

/// Unnormalised weights of `first, first + 1, ...`.
#[derive(Debug, Clone)]
pub(super) struct Discrete {
    first: u64,
    weights: Vec<f64>,
}

/// The tails at an observed value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tails {
    /// `P(X >= x)`, and with half the weight of `x`.
    pub(super) greater: PValue,
    /// `P(X <= x)`, and with half the weight of `x`.
    pub(super) less: PValue,
    /// Probability of everything as improbable as `x`; mid with half the weight of the ties.
    pub(super) as_improbable: PValue,
}

impl Discrete {
    /// The point mass at zero.
    pub(super) fn zero() -> Self {
        Self { first: 0, weights: vec![1.0] }
    }

    /// Successes in the first of two rows when all margins are fixed: `row` trials there, `successes` among all
    /// `total`. `None` when the support is larger than any sweep.
    pub(super) fn hypergeometric(row: u64, successes: u64, total: u64) -> Option<Self> {
        let first = (row + successes).saturating_sub(total);
        let last = row.min(successes);
        let mode = u128::from(row + 1) * u128::from(successes + 1) / u128::from(total + 2);
        let mode = u64::try_from(mode).ok()?.clamp(first, last);
        // w(x + 1) / w(x) = (row - x)(successes - x) / ((x + 1)(total - row - successes + x + 1))
        Self::from_ratio(first, last, mode, |x| {
            let up = (row - x) as f64 * (successes - x) as f64;
            let down = (x + 1) as f64 * (total + x + 1 - row - successes) as f64;
            up / down
        })
    }

    /// Binomial with `trials` fair coins.
    pub(super) fn fair_coins(trials: u64) -> Option<Self> {
        Self::from_ratio(0, trials, trials / 2, |x| (trials - x) as f64 / (x + 1) as f64)
    }

    /// Weights by their ratio `w(x + 1) / w(x)`, outwards from the mode: products of rationals near 1 keep full
    /// relative precision, which differences of log-factorials do not.
    fn from_ratio(first: u64, last: u64, mode: u64, ratio: impl Fn(u64) -> f64) -> Option<Self> {
        if last - first >= MAX_SUPPORT {
            return None;
        }
        let mut below = Vec::new();
        let mut weight = 1.0;
        for x in (first..mode).rev() {
            weight /= ratio(x);
            below.push(weight);
        }
        below.reverse();
        below.push(1.0);
        weight = 1.0;
        for x in mode..last {
            weight *= ratio(x);
            below.push(weight);
        }
        Some(Self { first, weights: below })
    }

    /// Distribution of the sum with an independent other, normalised.
    pub(super) fn convolve(&self, other: &Self) -> Self {
        let scale = self.weights.iter().sum::<f64>() * other.weights.iter().sum::<f64>();
        let mut weights = vec![0.0; self.weights.len() + other.weights.len() - 1];
        for (i, left) in self.weights.iter().enumerate() {
            for (slot, right) in weights.iter_mut().skip(i).zip(&other.weights) {
                *slot += left * right / scale;
            }
        }
        Self { first: self.first + other.first, weights }
    }

    /// The tails at `observed`, `None` outside the support.
    pub(super) fn tails(&self, observed: u64) -> Option<Tails> {
        let index = usize::try_from(observed.checked_sub(self.first)?).ok()?;
        let point = *self.weights.get(index)?;
        let (lower, rest) = self.weights.split_at(index);
        // From the far end inwards: small weights are added before large ones.
        let below: f64 = lower.iter().sum();
        let above: f64 = rest.iter().skip(1).rev().sum();
        let total = below + point + above;
        let (mut smaller, mut equal) = (0.0, 0.0);
        for weight in &self.weights {
            if *weight < point * (1.0 - TIE) {
                smaller += weight;
            } else if *weight <= point * (1.0 + TIE) {
                equal += weight;
            }
        }
        let part = |strict: f64, tied: f64| PValue {
            exact: ((strict + tied) / total).min(1.0),
            mid: ((strict + tied / 2.0) / total).min(1.0),
        };
        Some(Tails {
            greater: part(above, point),
            less: part(below, point),
            as_improbable: part(smaller, equal),
        })
    }
}
