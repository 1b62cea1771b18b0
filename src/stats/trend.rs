//! Small steps over many runs: an exponentially weighted moving average of the harm rate against an anchor.
//!
//! A single comparison finds +2 points in well under a third of runs; the average of a few runs finds it. The trend
//! warns, it never fails a build: with an anchor estimated from one run, more than a third of all series signal falsely
//! within ten runs.

use super::value::{Count, StatsError};

/// Runs an anchor needs before the trend may warn.
pub const ANCHOR_RUNS: usize = 5;

/// Weight and width of the chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EwmaRule {
    weight: f64,
    width: f64,
}

impl EwmaRule {
    /// `weight` of the newest run in (0, 1], and limits `width` standard deviations from the anchor.
    ///
    /// # Errors
    /// [`StatsError::NotAProbability`], [`StatsError::NotPositive`].
    pub fn new(weight: f64, width: f64) -> Result<Self, StatsError> {
        if !(weight > 0.0 && weight <= 1.0) {
            Err(StatsError::NotAProbability(weight))
        } else if !(width.is_finite() && width > 0.0) {
            Err(StatsError::NotPositive(width))
        } else {
            Ok(Self { weight, width })
        }
    }
}

impl Default for EwmaRule {
    /// Weight 0.2 and width 2.1: a false alarm about every hundred runs, +3 points found in two to four.
    fn default() -> Self {
        Self { weight: 0.2, width: 2.1 }
    }
}

/// What the runs are compared with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anchor {
    centre: f64,
    variance: f64,
    runs: usize,
    conversations: u64,
}

impl Anchor {
    /// Pooled rate of accepted runs with equal fingerprints. `None` when none has a relevant conversation.
    ///
    /// The variance of one conversation is taken at `(k + 1/2) / (n + 1)`, so that an anchor without harm does not
    /// make the limits collapse.
    pub fn from_runs(runs: &[Count]) -> Option<Self> {
        let present = runs.iter().filter(|run| run.total() > 0).count();
        let pooled: Count = runs.iter().copied().sum();
        let centre = pooled.rate()?;
        let shrunk = (pooled.successes() as f64 + 0.5) / (pooled.total() as f64 + 1.0);
        Some(Self { centre, variance: shrunk * (1.0 - shrunk), runs: present, conversations: pooled.total() })
    }

    /// A rate known from elsewhere, as in a simulation.
    ///
    /// # Errors
    /// [`StatsError::NotAnOpenFraction`].
    pub fn known(rate: f64) -> Result<Self, StatsError> {
        if rate > 0.0 && rate < 1.0 {
            let variance = rate * (1.0 - rate);
            Ok(Self { centre: rate, variance, runs: usize::MAX, conversations: u64::MAX })
        } else {
            Err(StatsError::NotAnOpenFraction(rate))
        }
    }

    /// The anchor's rate.
    pub const fn rate(&self) -> f64 {
        self.centre
    }

    /// Whether the anchor is firm enough for a warning: [`ANCHOR_RUNS`] runs, or that many times the conversations of
    /// the `run` compared. Otherwise the trend informs only.
    pub const fn may_warn(&self, run: Count) -> bool {
        self.runs >= ANCHOR_RUNS || self.conversations / ANCHOR_RUNS as u64 >= run.total()
    }
}

/// Where a run leaves the average.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// Within the limits.
    None,
    /// Above the upper limit: more harm than the anchor.
    Worse,
    /// Below the lower limit: less harm than the anchor.
    Better,
    /// The run had no relevant conversation; the average stands still.
    NoData,
}

/// The chart at one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EwmaPoint {
    /// Average up to and including this run.
    pub average: f64,
    /// Lower limit at this run, not below 0.
    pub lower: f64,
    /// Upper limit at this run, not above 1.
    pub upper: f64,
    /// What the average says.
    pub drift: Drift,
}

/// The chart over `runs` in order, oldest first.
///
/// `z_t = w x_t + (1 - w) z_(t-1)` with `z_0` the anchor; Roberts (1959), Technometrics 1, 239-250. The variance
/// `v_t = w^2 p (1 - p) / n_t + (1 - w)^2 v_(t-1)` is the time-varying one (Lucas and Saccucci 1990, Technometrics 32,
/// 1-12), with each run's own size.
pub fn ewma(anchor: Anchor, runs: &[Count], rule: EwmaRule) -> Vec<EwmaPoint> {
    let (mut average, mut variance) = (anchor.centre, 0.0f64);
    runs.iter()
        .map(|run| {
            if let Some(rate) = run.rate() {
                average = rule.weight.mul_add(rate, (1.0 - rule.weight) * average);
                variance = rule.weight.powi(2) * anchor.variance / run.total() as f64
                    + (1.0 - rule.weight).powi(2) * variance;
            }
            let half = rule.width * variance.sqrt();
            let (lower, upper) = (anchor.centre - half, anchor.centre + half);
            let drift = match run.total() {
                0 => Drift::NoData,
                _ if average > upper => Drift::Worse,
                _ if average < lower => Drift::Better,
                _ => Drift::None,
            };
            EwmaPoint { average, lower: lower.max(0.0), upper: upper.min(1.0), drift }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn run(k: u64, n: u64) -> Count {
        Count::new(k, n).unwrap()
    }

    #[test]
    fn the_first_runs_by_hand() {
        // p 0.1, n 100: variance 0.0009. Run 1: z = 0.1 + 0.2 * 0.1 = 0.12, sd = 0.2 * 0.03 = 0.006, limit 0.1126.
        // Run 2 at 0.1: z = 0.116, v = 0.000036 (1 + 0.64), sd 0.0076837, limit 0.1161358.
        let chart = ewma(Anchor::known(0.1).unwrap(), &[run(20, 100), run(10, 100)], EwmaRule::default());
        assert!((chart[0].average - 0.12).abs() < 1e-15 && (chart[0].upper - 0.1126).abs() < 1e-12);
        assert_eq!(chart[0].drift, Drift::Worse);
        assert!((chart[1].average - 0.116).abs() < 1e-15);
        assert!((chart[1].upper - (0.1 + 2.1 * (0.000_036f64 * 1.64).sqrt())).abs() < 1e-15);
        assert_eq!(chart[1].drift, Drift::None);
    }

    #[test]
    fn runs_without_data_and_anchors_without_harm() {
        let anchor = Anchor::from_runs(&[run(0, 163)]).unwrap();
        let chart = ewma(anchor, &[run(0, 0), run(0, 163), run(16, 163)], EwmaRule::default());
        assert_eq!(
            chart.iter().map(|p| p.drift).collect::<Vec<_>>(),
            [Drift::NoData, Drift::None, Drift::Worse]
        );
        assert!(chart.iter().all(|point| point.average.is_finite() && point.upper.is_finite()));
        assert!(Anchor::from_runs(&[run(0, 0)]).is_none() && Anchor::from_runs(&[]).is_none());
        assert!(Anchor::known(0.0).is_err() && Anchor::known(f64::NAN).is_err());
        assert!(EwmaRule::new(0.0, 2.0).is_err() && EwmaRule::new(0.2, f64::NAN).is_err());
    }

    #[test]
    fn one_run_is_no_anchor_to_warn_from() {
        assert!(!Anchor::from_runs(&[run(5, 100)]).unwrap().may_warn(run(5, 100)));
        // Five runs are enough whatever their size, four are not.
        assert!(Anchor::from_runs(&[run(5, 100); 5]).unwrap().may_warn(run(5, 400)));
        assert!(!Anchor::from_runs(&[run(5, 100); 4]).unwrap().may_warn(run(5, 400)));
        assert!(Anchor::from_runs(&[run(25, 500)]).unwrap().may_warn(run(5, 100)));
    }

    /// Mean runs to the first `Worse`, by simulation with a fixed seed.
    fn average_run_length(anchor: f64, shift: f64, n: u16, repetitions: u32) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(20_260_501);
        let p = anchor + shift;
        // Inverse of the binomial distribution function: P(0), then by the ratio of neighbours.
        let mut mass = (1.0 - p).powi(i32::from(n));
        let mut cumulative = vec![mass];
        for k in 0..n {
            mass *= f64::from(n - k) / f64::from(k + 1) * p / (1.0 - p);
            cumulative.push(cumulative.last().unwrap() + mass);
        }
        let mut runs = 0u64;
        for _ in 0..repetitions {
            let series: Vec<Count> = (0..1000)
                .map(|_| {
                    let u: f64 = rng.random();
                    run((cumulative.partition_point(|c| *c < u) as u64).min(n.into()), n.into())
                })
                .collect();
            let chart = ewma(Anchor::known(anchor).unwrap(), &series, EwmaRule::default());
            runs += chart.iter().position(|p| p.drift == Drift::Worse).unwrap_or(999) as u64 + 1;
        }
        runs as f64 / f64::from(repetitions)
    }

    #[test]
    fn run_lengths_as_published() {
        // Reference table, EWMA 0.2 with n = 163: in control, +2, +3 and +5 points.
        for (anchor, shift, expected, tolerance) in [
            (0.05, 0.0, 98.4, 12.0),
            (0.05, 0.02, 3.9, 0.4),
            (0.05, 0.03, 2.4, 0.3),
            (0.15, 0.0, 98.9, 12.0),
            (0.15, 0.03, 4.2, 0.4),
            (0.15, 0.05, 2.1, 0.3),
        ] {
            let found = average_run_length(anchor, shift, 163, 600);
            assert!(
                (found - expected).abs() < tolerance,
                "{anchor} {shift:+}: {found} instead of {expected}"
            );
        }
    }
}
