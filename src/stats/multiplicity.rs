//! Several dimensions tested at once: adjusted p-values.
//!
//! Results keep the order of the input. The gate blocks on [`holm`] unless the thresholds file asks for [`tarone_holm`].

use super::value::{Alpha, StatsError};

fn checked(p: &[f64]) -> Result<&[f64], StatsError> {
    match p.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        Some(bad) => Err(StatsError::NotAProbability(*bad)),
        None => Ok(p),
    }
}

/// Positions of `p`, smallest p-value first; ties keep their order.
fn ascending(p: &[f64]) -> Vec<(usize, f64)> {
    let mut order: Vec<(usize, f64)> = p.iter().copied().enumerate().collect();
    order.sort_by(|left, right| left.1.total_cmp(&right.1));
    order
}

/// Writes values by position back into input order.
fn restore(adjusted: impl Iterator<Item = (usize, f64)>) -> Vec<f64> {
    let mut by_position: Vec<(usize, f64)> = adjusted.collect();
    by_position.sort_by_key(|(position, _)| *position);
    by_position.into_iter().map(|(_, p)| p.min(1.0)).collect()
}

/// Bonferroni: every p-value times the number of tests. Dunn (1961), JASA 56, 52-64.
///
/// # Errors
/// [`StatsError::NotAProbability`].
pub fn bonferroni(p: &[f64]) -> Result<Vec<f64>, StatsError> {
    let tests = p.len() as f64;
    Ok(checked(p)?.iter().map(|p| (p * tests).min(1.0)).collect())
}

/// Holm's step-down adjustment: family-wise error under any dependence. Holm (1979), Scand. J. Statist. 6, 65-70.
///
/// # Errors
/// [`StatsError::NotAProbability`].
pub fn holm(p: &[f64]) -> Result<Vec<f64>, StatsError> {
    let tests = p.len();
    let steps = ascending(checked(p)?);
    Ok(restore(steps.iter().enumerate().scan(0.0, |highest: &mut f64, (rank, &(position, p))| {
        *highest = highest.max(p * (tests - rank) as f64);
        Some((position, *highest))
    })))
}

/// Hochberg's step-up adjustment: family-wise error under independence or positive dependence. Hochberg (1988),
/// Biometrika 75, 800-802.
///
/// # Errors
/// [`StatsError::NotAProbability`].
pub fn hochberg(p: &[f64]) -> Result<Vec<f64>, StatsError> {
    step_up(p, |p, rank, tests| p * (tests - rank) as f64)
}

/// Benjamini-Hochberg: false discovery rate, the wrong error for a gate that blocks. Benjamini and Hochberg (1995),
/// J. R. Statist. Soc. B 57, 289-300.
///
/// # Errors
/// [`StatsError::NotAProbability`].
pub fn benjamini_hochberg(p: &[f64]) -> Result<Vec<f64>, StatsError> {
    step_up(p, |p, rank, tests| p * tests as f64 / (rank + 1) as f64)
}

/// Running minimum from the largest p-value down; `factor(p, rank, tests)` with rank 0 for the smallest.
fn step_up(p: &[f64], factor: impl Fn(f64, usize, usize) -> f64) -> Result<Vec<f64>, StatsError> {
    let tests = p.len();
    let steps = ascending(checked(p)?);
    Ok(restore(steps.iter().enumerate().rev().scan(1.0, |lowest: &mut f64, (rank, &(position, p))| {
        *lowest = lowest.min(factor(p, rank, tests));
        Some((position, *lowest))
    })))
}

/// One test of a family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hypothesis {
    /// Its p-value.
    pub p: f64,
    /// Smallest p-value its data could have given, for the sign-flip test
    /// [`smallest_attainable`](super::sign_flip::smallest_attainable).
    pub smallest_attainable: f64,
}

/// Outcome of Tarone's selection followed by Holm.
#[derive(Debug, Clone, PartialEq)]
pub struct TaroneHolm {
    /// Tests that take part, by position in the input.
    pub testable: Vec<usize>,
    /// Adjusted p-value per test; `None` where no data with this little information could ever have rejected.
    pub adjusted: Vec<Option<f64>>,
}

/// Tarone's modified Bonferroni selection, then Holm among the selected.
///
/// `K` is the smallest `k` for which at most `k` tests could attain `alpha / k`; only those enter the family. A
/// dimension in which hardly any persona changed then costs the others nothing. The reverse of that: a dimension that
/// becomes testable raises the adjusted p-values of the others, so changes in one dimension may cost another its
/// significance at the margin ([`holm`] over a fixed family does not have this, and finds less). Tarone (1990), Biometrics 46, 515-522;
/// Hommel and Krummenauer (1998), Biometrics 54, 673-681 for the step-down form.
///
/// # Errors
/// [`StatsError::NotAProbability`].
pub fn tarone_holm(family: &[Hypothesis], alpha: Alpha) -> Result<TaroneHolm, StatsError> {
    let p: Vec<f64> = family.iter().map(|test| test.p).collect();
    let attainable: Vec<f64> = family.iter().map(|test| test.smallest_attainable).collect();
    checked(&p)?;
    checked(&attainable)?;
    let within = |k: usize| attainable.iter().filter(move |best| **best <= alpha.get() / k as f64).count();
    // k = number of tests always qualifies.
    let k = (1..=family.len()).find(|&k| within(k) <= k).unwrap_or(1);
    let limit = alpha.get() / k as f64;
    let testable: Vec<usize> = attainable
        .iter()
        .enumerate()
        .filter(|(_, best)| **best <= limit)
        .map(|(position, _)| position)
        .collect();
    let selected: Vec<f64> = testable.iter().filter_map(|position| p.get(*position).copied()).collect();
    let mut adjusted = vec![None; family.len()];
    for (position, value) in testable.iter().zip(holm(&selected)?) {
        if let Some(slot) = adjusted.get_mut(*position) {
            *slot = Some(value);
        }
    }
    Ok(TaroneHolm { testable, adjusted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Adjustment = fn(&[f64]) -> Result<Vec<f64>, StatsError>;
    const ALL: [Adjustment; 4] = [bonferroni, holm, hochberg, benjamini_hochberg];

    #[test]
    fn what_is_no_probability_is_refused() {
        for adjust in ALL {
            assert!(adjust(&[0.5, f64::NAN]).is_err() && adjust(&[-0.1]).is_err() && adjust(&[1.1]).is_err());
            assert_eq!(adjust(&[]).unwrap(), Vec::<f64>::new());
        }
        let bad = Hypothesis { p: 0.1, smallest_attainable: f64::NAN };
        assert!(tarone_holm(&[bad], Alpha::P05).is_err());
        assert_eq!(tarone_holm(&[], Alpha::P05).unwrap().testable, Vec::<usize>::new());
    }

    #[test]
    fn silent_dimensions_cost_nothing() {
        // Four dimensions with two informative personas each can never reach 5 %: the fifth is tested alone.
        let silent = Hypothesis { p: 0.25, smallest_attainable: 0.25 };
        let moved = Hypothesis { p: 0.03, smallest_attainable: 0.5f64.powi(20) };
        let family = [silent, silent, moved, silent, silent];
        let outcome = tarone_holm(&family, Alpha::P05).unwrap();
        assert_eq!(outcome.testable, [2]);
        assert_eq!(outcome.adjusted, [None, None, Some(0.03), None, None]);
    }

    #[test]
    fn a_dimension_that_becomes_testable_costs_the_others() {
        // Five informative personas attain 2^-5, above 0.05 / 2: alone with the first. Six attain 2^-6, below it.
        let moved = Hypothesis { p: 0.04, smallest_attainable: 0.5f64.powi(20) };
        let first = |informative: i32| {
            let other = Hypothesis { p: 0.5, smallest_attainable: 0.5f64.powi(informative) };
            tarone_holm(&[moved, other], Alpha::P05).unwrap().adjusted[0]
        };
        assert_eq!((first(5), first(6)), (Some(0.04), Some(0.08)));
    }

    proptest! {
        #[test]
        fn adjusting_only_raises_and_follows_the_order_of_the_input(
            mut p in proptest::collection::vec(0.0f64..=1.0, 1..12),
        ) {
            for adjust in ALL {
                let forward = adjust(&p).unwrap();
                for (raw, adjusted) in p.iter().zip(&forward) {
                    prop_assert!(*adjusted >= raw * (1.0 - 1e-15) && *adjusted <= 1.0);
                }
                p.reverse();
                let mut backward = adjust(&p).unwrap();
                backward.reverse();
                p.reverse();
                prop_assert_eq!(forward, backward);
            }
        }

        #[test]
        fn a_smaller_p_never_adjusts_to_a_larger_one(
            p in proptest::collection::vec(0.0f64..=1.0, 1..8), at in 0usize..8, factor in 0.0f64..1.0,
        ) {
            let at = at % p.len();
            let mut smaller = p.clone();
            smaller[at] *= factor;
            for adjust in ALL {
                for (before, after) in adjust(&p).unwrap().iter().zip(adjust(&smaller).unwrap()) {
                    prop_assert!(after <= *before + 1e-15);
                }
            }
        }
    }
}
