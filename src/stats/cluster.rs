//! Conversations of one persona resemble each other: what that does to the evidence.
//!
//! The design effect is the factor by which clustering by persona inflates the variance of a rate; dividing a count by
//! it gives the effective sample size on which bounds are computed.

use super::interval::{clopper_pearson, newcombe};
use super::sign_flip::PersonaCounts;
use super::special::student_t_quantile;
use super::value::{Confidence, Count, EffectiveCount, Interval, Sides, StatsError};

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
    /// Clopper-Pearson on the effective sample size.
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
            let floor =
                if pooled.successes() >= rule.min_harms && estimated.is_some() { 1.0 } else { planned };
            (planned, estimated.unwrap_or(1.0).max(floor).max(1.0))
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arm(k: u64, n: u64) -> Count {
        Count::new(k, n).unwrap()
    }

    fn like_these() -> Inference {
        Inference::UsersLikeThese(DesignEffectRule::default())
    }

    #[test]
    fn no_conversation_no_rate() {
        assert!(clustered(&[], like_these()).is_none());
        assert!(clustered(&[arm(0, 0); 4], like_these()).is_none());
        let empty = PersonaCounts { candidate: arm(0, 0), baseline: arm(1, 2) };
        assert!(rate_difference(&[empty]).is_none());
        let rule = DesignEffectRule::default();
        assert!(difference_interval(&[empty], rule, Sides::Both, Confidence::P95).is_none());
        assert!(DesignEffectRule::new(f64::NAN, 10).is_err() && DesignEffectRule::new(1.5, 10).is_err());
    }

    #[test]
    fn zero_harm_pays_the_planned_design_effect() {
        // 100 personas with two conversations: deff 1.5, n_eff 133.3, bound 1 - 0.05^(1.5/200).
        let result = clustered(&[arm(0, 2); 100], like_these()).unwrap();
        let upper = result.bounds(Sides::Each, Confidence::P95).unwrap().upper;
        assert!((result.used - 1.5).abs() < 1e-12);
        assert!((upper - (1.0 - 0.05f64.powf(1.5 / 200.0))).abs() < 1e-12);
        let fixed = clustered(&[arm(0, 2); 100], Inference::FixedPersonas).unwrap();
        assert!(fixed.bounds(Sides::Each, Confidence::P95).unwrap().upper < upper);
    }

    #[test]
    fn the_difference_of_a_hand_computed_sweep() {
        // Personas (cand, base): (2/2, 0/2) and (0/2, 0/2) and (1/2, 1/2) twice over, ten harms in all with 6 personas
        // would be too few, so five copies of each: p_c = 1/2, p_b = 1/6, estimate 1/3.
        // Influences on n = 30 per arm: (1 + 1/3)/30, (-1 + 1/3)/30, (0 - 2/3)/30; squares 16/9, 4/9, 4/9 over 900.
        // Sum 5 * 24/9/900, times 15/14.
        let kinds = [((2, 2), (0, 2)), ((0, 2), (0, 2)), ((1, 2), (1, 2))];
        let personas: Vec<PersonaCounts> = kinds
            .iter()
            .flat_map(|&((a, b), (c, d))| [PersonaCounts { candidate: arm(a, b), baseline: arm(c, d) }; 5])
            .collect();
        let difference = rate_difference(&personas).unwrap();
        let expected = (15.0f64 / 14.0 * 5.0 * 24.0 / 9.0 / 900.0).sqrt();
        assert!((difference.estimate - 1.0 / 3.0).abs() < 1e-15);
        assert!((difference.standard_error - expected).abs() < 1e-15);
        let found = difference_interval(&personas, DesignEffectRule::default(), Sides::Both, Confidence::P95)
            .unwrap();
        assert_eq!(found.method, DifferenceMethod::ClusteredT);
        // t(0.975, 14) = 2.144786687917804
        assert!((found.interval.upper - (1.0 / 3.0 + 2.144_786_687_917_804 * expected)).abs() < 1e-10);
    }

    #[test]
    fn no_harm_in_either_run_is_not_certainty() {
        let quiet = [PersonaCounts { candidate: arm(0, 2), baseline: arm(0, 2) }; 20];
        assert!(rate_difference(&quiet).unwrap().standard_error <= 0.0);
        let found =
            difference_interval(&quiet, DesignEffectRule::default(), Sides::Each, Confidence::P95).unwrap();
        assert_eq!(found.method, DifferenceMethod::WiderOfTwo);
        assert!(found.interval.upper > 0.05 && found.interval.lower < -0.05);
    }

    proptest! {
        #[test]
        fn the_estimate_stays_below_its_ceiling(
            sizes in proptest::collection::vec((1u64..6, 0.0f64..1.0), 2..40),
        ) {
            let counts: Vec<_> = sizes.iter().map(|&(n, share)| arm((n as f64 * share).round() as u64, n)).collect();
            let largest = sizes.iter().map(|&(n, _)| n).max().unwrap();
            let result = clustered(&counts, like_these()).unwrap();
            let ceiling = largest_design_effect(counts.len(), largest).unwrap();
            prop_assert!(result.estimated.unwrap_or(0.0) <= ceiling + 1e-9);
            prop_assert!(result.used >= 1.0 && result.effective.total() <= result.pooled.total() as f64);
        }

        #[test]
        fn order_of_personas_does_not_matter(
            sizes in proptest::collection::vec((1u64..5, 0.0f64..1.0), 2..40),
        ) {
            let mut counts: Vec<_> =
                sizes.iter().map(|&(n, share)| arm((n as f64 * share).round() as u64, n)).collect();
            let forward = clustered(&counts, like_these()).unwrap();
            counts.reverse();
            let backward = clustered(&counts, like_these()).unwrap();
            prop_assert!((forward.used - backward.used).abs() < 1e-9);
        }
    }
}
