//! Intervals of one proportion, and of the difference of two.
//!
//! All take real-valued counts, so that a design effect can shrink them (see [`crate::stats::cluster`]). Without
//! trials there is no interval: the functions return `None`, and the caller says "insufficient", not `[0, 1]`.

use super::special::{beta_quantile, normal_quantile};
use super::value::{Confidence, EffectiveCount, Interval, Sides};

/// Clopper-Pearson interval: never misses more often than stated when trials are independent.
///
/// Clopper and Pearson (1934), Biometrika 26, 404-413; the bounds as quantiles of the beta distribution as in Brown,
/// Cai and DasGupta (2001), Statistical Science 16, section 4.2.1. The beta form is defined for real-valued counts too.
/// `None` without trials.
pub fn clopper_pearson(
    count: impl Into<EffectiveCount>,
    sides: Sides,
    confidence: Confidence,
) -> Option<Interval> {
    let count = count.into();
    Some(Interval {
        lower: clopper_pearson_lower_tail(count, sides.tail(confidence))?,
        upper: clopper_pearson_upper_tail(count, sides.tail(confidence))?,
    })
}

/// One-sided upper Clopper-Pearson bound: rates above it are excluded at the confidence. `None` without trials.
pub fn upper_bound(count: impl Into<EffectiveCount>, confidence: Confidence) -> Option<f64> {
    clopper_pearson_upper_tail(count.into(), confidence.miss())
}

/// One-sided lower Clopper-Pearson bound: rates below it are excluded at the confidence. `None` without trials.
pub fn lower_bound(count: impl Into<EffectiveCount>, confidence: Confidence) -> Option<f64> {
    clopper_pearson_lower_tail(count.into(), confidence.miss())
}

fn clopper_pearson_upper_tail(count: EffectiveCount, tail: f64) -> Option<f64> {
    if count.total() <= 0.0 {
        None
    } else if count.failures() <= 0.0 {
        Some(1.0)
    } else {
        Some(beta_quantile(1.0 - tail, count.successes() + 1.0, count.failures()))
    }
}

fn clopper_pearson_lower_tail(count: EffectiveCount, tail: f64) -> Option<f64> {
    if count.total() <= 0.0 {
        None
    } else if count.successes() <= 0.0 {
        Some(0.0)
    } else {
        Some(beta_quantile(tail, count.successes(), count.failures() + 1.0))
    }
}

/// Wilson score interval, for display: close to its confidence on average, not guaranteed.
///
/// Wilson (1927), JASA 22, 209-212; Brown, Cai and DasGupta (2001), section 3.1.1. `None` without trials.
pub fn wilson(count: impl Into<EffectiveCount>, sides: Sides, confidence: Confidence) -> Option<Interval> {
    let count = count.into();
    let n = count.total();
    let p = count.rate()?;
    let z = normal_quantile(1.0 - sides.tail(confidence));
    let z2 = z * z;
    let centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    // The ends are exactly 0 and 1 there; the difference of two equal terms is not.
    let lower = if count.successes() <= 0.0 { 0.0 } else { (centre - half).max(0.0) };
    let upper = if count.failures() <= 0.0 { 1.0 } else { (centre + half).min(1.0) };
    Some(Interval { lower, upper })
}

/// Jeffreys interval: equal-tailed posterior under Beta(1/2, 1/2), without the end-point modification.
///
/// Brown, Cai and DasGupta (2001), section 3.1.3. The loosest of the three upper bounds on clustered data: not for
/// decisions. `None` without trials.
pub fn jeffreys(count: impl Into<EffectiveCount>, sides: Sides, confidence: Confidence) -> Option<Interval> {
    let count = count.into();
    if count.total() <= 0.0 {
        return None;
    }
    let tail = sides.tail(confidence);
    let (a, b) = (count.successes() + 0.5, count.failures() + 0.5);
    Some(Interval { lower: beta_quantile(tail, a, b), upper: beta_quantile(1.0 - tail, a, b) })
}

/// Newcombe's hybrid score interval of `candidate rate - baseline rate`, independent samples, no continuity correction.
///
/// Newcombe (1998), Statistics in Medicine 17, 873-890, method 10. `None` when either arm has no trials.
pub fn newcombe(
    candidate: impl Into<EffectiveCount>,
    baseline: impl Into<EffectiveCount>,
    sides: Sides,
    confidence: Confidence,
) -> Option<Interval> {
    let (candidate, baseline) = (candidate.into(), baseline.into());
    let (p_c, p_b) = (candidate.rate()?, baseline.rate()?);
    let c = wilson(candidate, sides, confidence)?;
    let b = wilson(baseline, sides, confidence)?;
    let difference = p_c - p_b;
    Some(Interval {
        lower: (difference - (p_c - c.lower).hypot(b.upper - p_b)).max(-1.0),
        upper: (difference + (c.upper - p_c).hypot(p_b - b.lower)).min(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::super::value::Count;
    use super::*;
    use proptest::prelude::*;

    fn count(k: u64, n: u64) -> Count {
        Count::new(k, n).unwrap()
    }

    #[test]
    fn zero_of_ten_does_not_exclude_a_quarter() {
        let upper = upper_bound(count(0, 10), Confidence::P95).unwrap();
        assert!((upper - (1.0 - 0.05f64.powf(0.1))).abs() < 1e-12);
        assert!((upper - 0.259).abs() < 5e-4);
    }

    #[test]
    fn nami_guides_as_printed() {
        // 24 of 163: plain one-sided bounds 10.4 % and 20.1 %.
        let bounds = clopper_pearson(count(24, 163), Sides::Each, Confidence::P95).unwrap();
        assert!((bounds.lower - 0.104).abs() < 5e-4 && (bounds.upper - 0.201).abs() < 5e-4);
    }

    #[test]
    fn no_trials_no_interval() {
        let none = count(0, 0);
        assert!(clopper_pearson(none, Sides::Each, Confidence::P95).is_none());
        assert!(wilson(none, Sides::Both, Confidence::P95).is_none());
        assert!(jeffreys(none, Sides::Both, Confidence::P95).is_none());
        assert!(newcombe(none, count(1, 2), Sides::Both, Confidence::P95).is_none());
        assert!(newcombe(count(1, 2), none, Sides::Both, Confidence::P95).is_none());
        assert!(upper_bound(none, Confidence::P95).is_none() && lower_bound(none, Confidence::P95).is_none());
    }

    proptest! {
        #[test]
        fn one_more_harm_raises_both_bounds(n in 1u64..3000, share in 0.0f64..1.0, level in 0.5f64..0.999) {
            let k = Count::near(share, n - 1).successes();
            let confidence = Confidence::new(level).unwrap();
            let fewer = clopper_pearson(count(k, n), Sides::Each, confidence).unwrap();
            let more = clopper_pearson(count(k + 1, n), Sides::Each, confidence).unwrap();
            prop_assert!(more.lower > fewer.lower && more.upper > fewer.upper);
            prop_assert!(fewer.lower <= k as f64 / n as f64 && k as f64 / n as f64 <= fewer.upper);
        }

        #[test]
        fn one_more_harmless_conversation_lowers_both_bounds(n in 1u64..3000, share in 0.0f64..1.0) {
            let k = Count::near(share, n).successes();
            let before = clopper_pearson(count(k, n), Sides::Each, Confidence::P95).unwrap();
            let after = clopper_pearson(count(k, n + 1), Sides::Each, Confidence::P95).unwrap();
            prop_assert!(after.upper < before.upper && after.lower <= before.lower);
            prop_assert!(k == 0 || after.lower < before.lower);
        }

        #[test]
        fn a_larger_design_effect_widens(n in 1u64..2000, share in 0.0f64..1.0, deff in 1.0f64..4.0) {
            let full = Count::near(share, n);
            let plain = clopper_pearson(full, Sides::Each, Confidence::P95).unwrap();
            let wide = clopper_pearson(EffectiveCount::shrunk(full, deff), Sides::Each, Confidence::P95).unwrap();
            prop_assert!(wide.upper >= plain.upper - 1e-12 && wide.lower <= plain.lower + 1e-12);
        }
    }
}
