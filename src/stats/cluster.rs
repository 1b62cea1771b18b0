//! Conversations of one persona resemble each other: what that does to the evidence.
//!
//! The design effect is the factor by which clustering by persona inflates the variance of a rate; dividing a count by
//! it gives the effective sample size on which bounds are computed.

use super::interval::{clopper_pearson, newcombe};
use super::sign_flip::PersonaCounts;
use super::special::student_t_quantile;
use super::value::{Confidence, Count, EffectiveCount, Interval, Sides, StatsError};

mod margin;
mod monotone;

pub use margin::difference_upper_bound;
pub use monotone::decision_bounds;

/// How the design effect is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DesignEffectRule {
    /// Intra-persona correlation assumed when harms are too few to estimate one.
    icc: f64,
    /// Harms from which the estimate alone is used.
    min_harms: u64,
}

impl DesignEffectRule {
    /// Assumed correlation `icc` in `[0, 1]`, the estimate alone from `min_harms` harms on.
    ///
    /// # Errors
    /// [`StatsError::NotAProbability`].
    pub fn new(icc: f64, min_harms: u64) -> Result<Self, StatsError> {
        if (0.0..=1.0).contains(&icc) {
            Ok(Self { icc, min_harms })
        } else {
            Err(StatsError::NotAProbability(icc))
        }
    }

    /// Assumed intra-persona correlation.
    pub const fn icc(self) -> f64 {
        self.icc
    }

    /// Planned design effect `1 + (m - 1) icc` for a mean cluster size `m >= 1`. Kish (1965), *Survey Sampling*, 5.4.
    pub fn planned(self, mean_cluster_size: f64) -> f64 {
        (mean_cluster_size - 1.0).max(0.0).mul_add(self.icc, 1.0)
    }

    /// The design effect to use: the estimate, not below 1, and below `min_harms` harms or where there is no estimate
    /// not below the plan either.
    fn used(self, harms: u64, estimated: Option<f64>, planned: f64) -> f64 {
        match estimated {
            Some(estimated) if harms >= self.min_harms => estimated.max(1.0),
            _ => estimated.unwrap_or(1.0).max(planned).max(1.0),
        }
    }
}

impl Default for DesignEffectRule {
    /// Correlation 0.5 below ten harms: the beta-binomial fit on the published batteries is 0.53 (0.22 to 0.77), and
    /// the rule keeps the miss rate of a 95 % bound at or below 5 % in all designs simulated.
    fn default() -> Self {
        Self { icc: 0.5, min_harms: 10 }
    }
}

/// About whom a bound speaks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Inference {
    /// About these very personas: no clustering adjustment, stratification only makes the bound safer.
    FixedPersonas,
    /// About users like these personas: the design effect applies.
    UsersLikeThese(DesignEffectRule),
}

/// A rate measured on personas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clustered {
    /// All conversations together.
    pub pooled: Count,
    /// Personas with at least one conversation.
    pub personas: usize,
    /// `sum n_i^2 / sum n_i`.
    pub mean_cluster_size: f64,
    /// Design effect estimated from the data, `None` when the rate is 0 or 1 or there is one persona.
    pub estimated: Option<f64>,
    /// Design effect the rule plans with; 1 for [`Inference::FixedPersonas`].
    pub planned: f64,
    /// Design effect used, at least 1.
    pub used: f64,
    /// The count on the effective sample size.
    pub effective: EffectiveCount,
}

impl Clustered {
    /// Clopper-Pearson on the effective sample size. For decisions take [`decision_bounds`].
    pub fn bounds(&self, sides: Sides, confidence: Confidence) -> Option<Interval> {
        clopper_pearson(self.effective, sides, confidence)
    }
}

/// Pools harm counts per persona and finds the design effect.
///
/// Estimated: the cluster-robust (CR1) variance of the pooled rate, `N/(N-1) sum (k_i - p n_i)^2 / n^2`, over the
/// binomial `p (1 - p) / n`; Rao and Scott (1992), Biometrics 48, 577-585. Used: from `min_harms` harms on
/// `max(1, estimated)`, below `max(1, estimated, planned)`. Personas without a conversation are left out; `None` when
/// all are.
pub fn clustered(per_persona: &[Count], inference: Inference) -> Option<Clustered> {
    let present: Vec<Count> = per_persona.iter().copied().filter(|count| count.total() > 0).collect();
    let pooled: Count = present.iter().copied().sum();
    let rate = pooled.rate()?;
    let n = pooled.total() as f64;
    let mean_cluster_size = present.iter().map(|count| (count.total() as f64).powi(2)).sum::<f64>() / n;
    let estimated = estimated_design_effect(&present, pooled, rate);
    let (planned, used) = match inference {
        Inference::FixedPersonas => (1.0, 1.0),
        Inference::UsersLikeThese(rule) => {
            let planned = rule.planned(mean_cluster_size);
            (planned, rule.used(pooled.successes(), estimated, planned))
        }
    };
    Some(Clustered {
        pooled,
        personas: present.len(),
        mean_cluster_size,
        estimated,
        planned,
        used,
        effective: EffectiveCount::shrunk(pooled, used),
    })
}

fn estimated_design_effect(present: &[Count], pooled: Count, rate: f64) -> Option<f64> {
    if present.len() < 2 || pooled.successes() == 0 || pooled.failures() == 0 {
        return None;
    }
    let personas = present.len() as f64;
    let residuals: f64 = present
        .iter()
        .map(|count| rate.mul_add(-(count.total() as f64), count.successes() as f64).powi(2))
        .sum();
    Some(personas / (personas - 1.0) * residuals / (pooled.total() as f64 * rate * (1.0 - rate)))
}

/// Largest value the estimated design effect can take with up to `largest_cluster` conversations per persona.
///
/// `(k_i - p n_i)^2 <= n_max n_i (p_i - p)^2`, and the variance between personas is at most `p (1 - p)`, so the
/// estimate is at most `N/(N-1) n_max`. `None` below two personas.
pub fn largest_design_effect(personas: usize, largest_cluster: u64) -> Option<f64> {
    let personas = personas as f64;
    (personas >= 2.0).then(|| (personas / (personas - 1.0) * largest_cluster as f64).max(1.0))
}

/// Pooled difference of two rates on the same personas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateDifference {
    /// Candidate, pooled.
    pub candidate: Count,
    /// Baseline, pooled.
    pub baseline: Count,
    /// Pooled candidate rate minus pooled baseline rate.
    pub estimate: f64,
    /// Persona-clustered standard error; zero when no persona deviates from the pooled rates, which is no certainty.
    pub standard_error: f64,
    /// Personas with a conversation in either run.
    pub personas: usize,
}

/// How an interval of the rate difference was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceMethod {
    /// Persona-clustered t.
    ClusteredT,
    /// Fewer than ten harms in both runs together: the wider of clustered t and Newcombe's hybrid score on effective
    /// counts, end by end, because the variance of a handful of harms is not known.
    WiderOfTwo,
}

/// An interval of the rate difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DifferenceInterval {
    /// The interval, within [-1, 1].
    pub interval: Interval,
    /// Its method.
    pub method: DifferenceMethod,
}

/// Pools both runs and finds the persona-clustered standard error of the difference.
///
/// Linearisation with the persona as cluster across both runs (generalised estimating equations with independence
/// working correlation; Liang and Zeger 1986, Biometrika 73, 13-22), with the factor `N/(N-1)`. `None` when either run
/// has no conversation.
pub fn rate_difference(personas: &[PersonaCounts]) -> Option<RateDifference> {
    let present: Vec<&PersonaCounts> =
        personas.iter().filter(|persona| persona.candidate.total() + persona.baseline.total() > 0).collect();
    let candidate: Count = present.iter().map(|persona| persona.candidate).sum();
    let baseline: Count = present.iter().map(|persona| persona.baseline).sum();
    let (p_c, p_b) = (candidate.rate()?, baseline.rate()?);
    let influence = |count: Count, rate: f64, pooled: Count| {
        rate.mul_add(-(count.total() as f64), count.successes() as f64) / pooled.total() as f64
    };
    let squares: f64 = present
        .iter()
        .map(|persona| {
            let of_candidate = influence(persona.candidate, p_c, candidate);
            let of_baseline = influence(persona.baseline, p_b, baseline);
            (of_candidate - of_baseline).powi(2)
        })
        .sum();
    let n = present.len() as f64;
    let variance = if present.len() < 2 { 0.0 } else { n / (n - 1.0) * squares };
    Some(RateDifference {
        candidate,
        baseline,
        estimate: p_c - p_b,
        standard_error: variance.sqrt(),
        personas: present.len(),
    })
}

/// Interval of the pooled rate difference.
///
/// Clustered t with `N - 1` degrees of freedom from ten harms on; below, the wider of it and Newcombe's interval with
/// each arm on its effective sample size under `rule`. `None` when either run has no conversation.
pub fn difference_interval(
    personas: &[PersonaCounts],
    rule: DesignEffectRule,
    sides: Sides,
    confidence: Confidence,
) -> Option<DifferenceInterval> {
    const ENOUGH_HARMS: u64 = 10;
    let difference = rate_difference(personas)?;
    let t = clustered_t(&difference, sides, confidence);
    let harms = difference.candidate.successes() + difference.baseline.successes();
    if let (Some(interval), true) = (t, harms >= ENOUGH_HARMS) {
        return Some(DifferenceInterval { interval, method: DifferenceMethod::ClusteredT });
    }
    let arm = |of: fn(&PersonaCounts) -> Count| {
        let counts: Vec<Count> = personas.iter().map(of).collect();
        clustered(&counts, Inference::UsersLikeThese(rule)).map(|arm| arm.effective)
    };
    let score =
        newcombe(arm(|persona| persona.candidate)?, arm(|persona| persona.baseline)?, sides, confidence)?;
    let t = t.unwrap_or(score);
    let interval = Interval { lower: t.lower.min(score.lower), upper: t.upper.max(score.upper) };
    Some(DifferenceInterval { interval, method: DifferenceMethod::WiderOfTwo })
}

/// `None` when the standard error is zero or there is one persona: a width of zero would claim certainty.
fn clustered_t(difference: &RateDifference, sides: Sides, confidence: Confidence) -> Option<Interval> {
    if difference.personas < 2 || difference.standard_error <= 0.0 {
        return None;
    }
    let tail = sides.tail(confidence);
    // Below 50 % confidence a one-sided bound crosses the estimate; the quantile is then negative.
    let t = if tail < 0.5 { student_t_quantile(tail, (difference.personas - 1) as f64) } else { 0.0 };
    let half = t * difference.standard_error;
    Some(Interval {
        lower: (difference.estimate - half).max(-1.0),
        upper: (difference.estimate + half).min(1.0),
    })
}

#[cfg(test)]
mod tests;
