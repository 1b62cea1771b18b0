//! The values every statistic takes and returns.
//!
//! Each constructor refuses what has no meaning (more successes than trials, a confidence of 1, a NaN), so that no
//! function further down has to, and none can return NaN.

use thiserror::Error;

/// Why a value cannot enter a statistic.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[non_exhaustive]
pub enum StatsError {
    /// More successes than trials.
    #[error("{successes} successes of {total} trials")]
    MoreSuccessesThanTrials {
        /// Successes given.
        successes: f64,
        /// Trials given.
        total: f64,
    },
    /// A real-valued count is negative, infinite or not a number.
    #[error("{0} is not a count")]
    NotACount(f64),
    /// A confidence, significance level or power outside the open interval (0, 1).
    #[error("{0} is not strictly between 0 and 1")]
    NotAnOpenFraction(f64),
    /// A probability outside the closed interval [0, 1].
    #[error("{0} is not a probability")]
    NotAProbability(f64),
    /// A count larger than any sweep; the limit keeps products of counts exact.
    #[error("{0} is more than any sweep holds")]
    TooLarge(u64),
    /// A fraction with denominator zero.
    #[error("a fraction needs a denominator other than zero")]
    ZeroDenominator,
    /// A parameter that must be finite and above zero.
    #[error("{0} is not a finite number above zero")]
    NotPositive(f64),
}

/// `successes` of `total` trials, whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Count {
    successes: u64,
    total: u64,
}

impl Count {
    /// `successes` of `total`, at most `2^32 - 1`.
    ///
    /// # Errors
    /// [`StatsError::MoreSuccessesThanTrials`], [`StatsError::TooLarge`].
    pub fn new(successes: u64, total: u64) -> Result<Self, StatsError> {
        if total > u64::from(u32::MAX) {
            return Err(StatsError::TooLarge(total));
        }
        if successes > total {
            return Err(StatsError::MoreSuccessesThanTrials {
                successes: successes as f64,
                total: total as f64,
            });
        }
        Ok(Self { successes, total })
    }

    /// For sums of valid counts, where `successes <= total` holds by construction.
    pub(super) const fn unchecked(successes: u64, total: u64) -> Self {
        Self { successes, total }
    }

    /// Successes: the harmful, agreeing or otherwise counted units.
    pub const fn successes(self) -> u64 {
        self.successes
    }

    /// Trials.
    pub const fn total(self) -> u64 {
        self.total
    }

    /// Trials that were no success.
    pub const fn failures(self) -> u64 {
        self.total - self.successes
    }

    /// Observed share, `None` without trials.
    pub fn rate(self) -> Option<f64> {
        (self.total > 0).then(|| self.successes as f64 / self.total as f64)
    }

    /// Both counts added.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { successes: self.successes + other.successes, total: self.total + other.total }
    }
}

#[cfg(test)]
impl Count {
    /// About `share` (0 to 1) of `total`, for generated test data.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a small count")]
    pub(super) fn near(share: f64, total: u64) -> Self {
        Self::new((share * total as f64).round() as u64, total).unwrap()
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), Self::plus)
    }
}

/// A count on the effective sample size: real-valued, because a design effect divides it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EffectiveCount {
    successes: f64,
    total: f64,
}

impl EffectiveCount {
    /// `successes` of `total`, both finite and not negative.
    ///
    /// # Errors
    /// [`StatsError::NotACount`], [`StatsError::MoreSuccessesThanTrials`].
    pub fn new(successes: f64, total: f64) -> Result<Self, StatsError> {
        for value in [successes, total] {
            if !value.is_finite() || value < 0.0 {
                return Err(StatsError::NotACount(value));
            }
        }
        if successes > total {
            return Err(StatsError::MoreSuccessesThanTrials { successes, total });
        }
        Ok(Self { successes, total })
    }

    /// `count` shrunk by a design effect: `(k / deff, n / deff)`.
    pub(crate) fn shrunk(count: Count, design_effect: f64) -> Self {
        let total = count.total as f64 / design_effect;
        // Rounding must not push k above n when every trial is a success.
        Self { successes: (count.successes as f64 / design_effect).min(total), total }
    }

    /// Effective successes.
    pub const fn successes(self) -> f64 {
        self.successes
    }

    /// Effective sample size.
    pub const fn total(self) -> f64 {
        self.total
    }

    /// Effective trials that were no success.
    pub fn failures(self) -> f64 {
        self.total - self.successes
    }

    /// Share, `None` without trials.
    pub fn rate(self) -> Option<f64> {
        (self.total > 0.0).then(|| self.successes / self.total)
    }
}

impl From<Count> for EffectiveCount {
    fn from(count: Count) -> Self {
        Self { successes: count.successes as f64, total: count.total as f64 }
    }
}

/// A closed interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

impl Interval {
    /// Whether `value` lies inside, ends included.
    pub fn contains(self, value: f64) -> bool {
        self.lower <= value && value <= self.upper
    }
}

/// A number strictly between 0 and 1.
fn open_fraction(value: f64) -> Result<f64, StatsError> {
    if value > 0.0 && value < 1.0 { Ok(value) } else { Err(StatsError::NotAnOpenFraction(value)) }
}

/// Confidence of an interval or bound, strictly between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// 95 %.
    pub const P95: Self = Self(0.95);

    /// A confidence such as `0.95`.
    ///
    /// # Errors
    /// [`StatsError::NotAnOpenFraction`].
    pub fn new(value: f64) -> Result<Self, StatsError> {
        open_fraction(value).map(Self)
    }

    /// As a fraction.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Probability left outside: `1 - confidence`.
    pub fn miss(self) -> f64 {
        1.0 - self.0
    }
}

/// Significance level of a test, strictly between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Alpha(f64);

impl Alpha {
    /// 5 %.
    pub const P05: Self = Self(0.05);

    /// A level such as `0.05`.
    ///
    /// # Errors
    /// [`StatsError::NotAnOpenFraction`].
    pub fn new(value: f64) -> Result<Self, StatsError> {
        open_fraction(value).map(Self)
    }

    /// As a fraction.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// Power of a test, strictly between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Power(f64);

impl Power {
    /// 80 %.
    pub const P80: Self = Self(0.8);

    /// A power such as `0.8`.
    ///
    /// # Errors
    /// [`StatsError::NotAnOpenFraction`].
    pub fn new(value: f64) -> Result<Self, StatsError> {
        open_fraction(value).map(Self)
    }

    /// As a fraction.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// How the miss probability is spent on the two ends of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    /// Both ends together hold at the confidence: for display.
    Both,
    /// Each end holds at the confidence on its own: for a decision that looks at one end.
    Each,
}

impl Sides {
    /// Probability beyond each end.
    pub(crate) fn tail(self, confidence: Confidence) -> f64 {
        match self {
            Self::Both => confidence.miss() / 2.0,
            Self::Each => confidence.miss(),
        }
    }
}

/// Which alternative a p-value speaks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// The candidate is higher (more harm).
    Greater,
    /// The candidate is lower.
    Less,
    /// The candidate differs.
    TwoSided,
}

/// Which of the two p-values of a discrete test decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exactness {
    /// `P(T >= t)`: never exceeds its level, and on small samples falls far short of it.
    Exact,
    /// `P(T > t) + P(T = t) / 2` (Lancaster 1961): closer to its level on average.
    Mid,
}

/// A p-value of a discrete test, exact and mid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PValue {
    /// Exact p-value.
    pub exact: f64,
    /// Mid p-value, never above the exact one.
    pub mid: f64,
}

impl PValue {
    /// The p-value of the wanted kind.
    pub const fn get(self, exactness: Exactness) -> f64 {
        match exactness {
            Exactness::Exact => self.exact,
            Exactness::Mid => self.mid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_values_are_refused() {
        assert!(Count::new(2, 1).is_err());
        assert!(Count::new(0, 0).is_ok_and(|count| count.rate().is_none()));
        for value in [0.0, 1.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Confidence::new(value).is_err(), "{value}");
            assert!(Alpha::new(value).is_err(), "{value}");
            assert!(Power::new(value).is_err(), "{value}");
        }
        assert!(EffectiveCount::new(-1.0, 2.0).is_err());
        assert!(EffectiveCount::new(f64::NAN, 2.0).is_err());
        assert!(EffectiveCount::new(1.0, f64::INFINITY).is_err());
        assert!(EffectiveCount::new(3.0, 2.0).is_err());
    }

    #[test]
    fn a_shrunk_count_never_exceeds_its_trials() {
        for n in 1..500 {
            let count = Count::new(n, n).unwrap();
            let shrunk = EffectiveCount::shrunk(count, 1.3);
            assert!(shrunk.successes() <= shrunk.total());
        }
    }
}
