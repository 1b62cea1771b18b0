//! The classical exact tests, for comparison beside the sign-flip test.
//!
//! All of them test "the same rate in both runs" on conversations; they are the more powerful by a few points, and
//! reject too often when harm merely moves between personas. None is the gate's default.

use super::discrete::{Discrete, Tails};
use super::sign_flip::PersonaCounts;
use super::special::chi_squared_1_sf;
use super::value::{Count, PValue, Tail};

/// p-values of an exact test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExactTest {
    /// Candidate more harmful.
    pub greater: PValue,
    /// Candidate less harmful.
    pub less: PValue,
    /// Candidate different.
    pub two_sided: PValue,
}

impl ExactTest {
    /// The p-value of a tail.
    pub const fn p(&self, tail: Tail) -> PValue {
        match tail {
            Tail::Greater => self.greater,
            Tail::Less => self.less,
            Tail::TwoSided => self.two_sided,
        }
    }

    /// Two-sided by adding every outcome as improbable as the observed one.
    const fn by_probability(tails: Tails) -> Self {
        Self { greater: tails.greater, less: tails.less, two_sided: tails.as_improbable }
    }

    /// Two-sided by doubling the smaller tail.
    fn by_doubling(tails: Tails) -> Self {
        let double = |a: f64, b: f64| (2.0 * a.min(b)).min(1.0);
        Self {
            greater: tails.greater,
            less: tails.less,
            two_sided: PValue {
                exact: double(tails.greater.exact, tails.less.exact),
                mid: double(tails.greater.mid, tails.less.mid),
            },
        }
    }
}

/// Fisher's exact test of two independent counts.
///
/// Fisher (1935), J. R. Statist. Soc. 98, 39-82; two-sided by probability as in R's `fisher.test`. Ignores that the
/// same personas played in both runs. An empty arm or no harm at all gives p = 1. `None` for counts beyond 2^24.
pub fn fisher(candidate: Count, baseline: Count) -> Option<ExactTest> {
    let all = candidate.plus(baseline);
    let null = Discrete::hypergeometric(candidate.total(), all.successes(), all.total())?;
    null.tails(candidate.successes()).map(ExactTest::by_probability)
}

/// McNemar's exact test on the conversations that differ: harmful only in the candidate, and only in the baseline.
///
/// McNemar (1947), Psychometrika 12, 153-157; mid-p as in Fagerland, Lydersen and Laake (2013), BMC Med. Res.
/// Methodol. 13:91. No discordant pair gives p = 1. `None` for counts beyond 2^24.
pub fn mcnemar(candidate_only: u64, baseline_only: u64) -> Option<ExactTest> {
    let null = Discrete::fair_coins(candidate_only.checked_add(baseline_only)?)?;
    null.tails(candidate_only).map(ExactTest::by_doubling)
}

/// A stratum tells something only when both runs have conversations and the outcomes are not all alike.
fn informative(stratum: &PersonaCounts) -> bool {
    let all = stratum.candidate.plus(stratum.baseline);
    stratum.candidate.total() > 0 && stratum.baseline.total() > 0 && all.successes() > 0 && all.failures() > 0
}

/// Exact conditional test with personas as strata: the sum of the candidate's harms given all margins, under a common
/// odds ratio of 1.
///
/// Mehta, Patel and Gray (1985), JASA 80, 969-973; Breslow and Day (1980), section 4.4. `None` only for counts beyond
/// 2^24.
pub fn stratified(personas: &[PersonaCounts]) -> Option<ExactTest> {
    let mut null = Discrete::zero();
    let mut observed = 0;
    for stratum in personas.iter().filter(|stratum| informative(stratum)) {
        let PersonaCounts { candidate, baseline } = *stratum;
        let all = candidate.plus(baseline);
        null = null.convolve(&Discrete::hypergeometric(candidate.total(), all.successes(), all.total())?);
        observed += candidate.successes();
    }
    null.tails(observed).map(ExactTest::by_doubling)
}

/// Cochran-Mantel-Haenszel statistic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cmh {
    /// Chi-squared with one degree of freedom, no continuity correction.
    pub chi_squared: f64,
    /// Its two-sided p-value.
    pub p: f64,
    /// Strata that carried information.
    pub informative: usize,
}

/// Cochran-Mantel-Haenszel test with personas as strata, the large-sample form of [`stratified`].
///
/// Mantel and Haenszel (1959), J. Natl. Cancer Inst. 22, 719-748. `None` without an informative stratum.
pub fn cmh(personas: &[PersonaCounts]) -> Option<Cmh> {
    let (mut deviation, mut variance, mut strata) = (0.0, 0.0, 0);
    for PersonaCounts { candidate, baseline } in personas.iter().filter(|stratum| informative(stratum)) {
        let all = candidate.plus(*baseline);
        let n = all.total() as f64;
        let (row, column) = (candidate.total() as f64, all.successes() as f64);
        deviation += candidate.successes() as f64 - row * column / n;
        variance += row * baseline.total() as f64 * column * all.failures() as f64 / (n * n * (n - 1.0));
        strata += 1;
    }
    (strata > 0).then(|| {
        let chi_squared = deviation * deviation / variance;
        Cmh { chi_squared, p: chi_squared_1_sf(chi_squared), informative: strata }
    })
}

#[cfg(test)]
mod tests {
    use super::super::sign_flip::{PersonaDelta, sign_flip};
    use super::*;
    use proptest::prelude::*;

    fn arm(k: u64, n: u64) -> Count {
        Count::new(k, n).unwrap()
    }

    #[test]
    fn the_lady_tasting_tea() {
        // Fisher (1935): 3 of 4 right gives 17/70; mid-p takes half of the 16/70 off.
        let tea = fisher(arm(3, 4), arm(1, 4)).unwrap();
        assert!((tea.greater.exact - 17.0 / 70.0).abs() < 1e-15);
        assert!((tea.greater.mid - 9.0 / 70.0).abs() < 1e-15);
        assert!((tea.two_sided.exact - 34.0 / 70.0).abs() < 1e-15);
    }

    #[test]
    fn sizes_no_sweep_has_are_refused() {
        assert!(mcnemar(u64::MAX, 1).is_none());
        assert!(mcnemar(1 << 30, 1 << 30).is_none());
        assert!(fisher(arm(1 << 30, 1 << 31), arm(1 << 30, 1 << 31)).is_none());
    }

    #[test]
    fn nothing_informative_is_no_evidence() {
        let quiet = [PersonaCounts { candidate: arm(0, 2), baseline: arm(0, 2) }; 5];
        assert_eq!(stratified(&quiet).unwrap().greater, PValue { exact: 1.0, mid: 0.5 });
        assert!(cmh(&quiet).is_none() && cmh(&[]).is_none());
    }

    proptest! {
        #[test]
        fn one_conversation_each_makes_three_tests_one(worse in 0u64..40, better in 0u64..40, same in 0u64..10) {
            let pair = |c: u64, b: u64| PersonaCounts { candidate: arm(c, 1), baseline: arm(b, 1) };
            let personas: Vec<_> = (0..worse).map(|_| pair(1, 0))
                .chain((0..better).map(|_| pair(0, 1)))
                .chain((0..same).map(|_| pair(1, 1)))
                .collect();
            let deltas: Vec<_> = personas.iter().filter_map(|p| PersonaDelta::between(*p)).collect();
            let flip = sign_flip(&deltas);
            let mcnemar = mcnemar(worse, better).unwrap();
            let stratified = stratified(&personas).unwrap();
            for (one, other) in [(flip.greater, mcnemar.greater), (flip.greater, stratified.greater), (flip.two_sided, mcnemar.two_sided)] {
                prop_assert!((one.exact - other.exact).abs() <= 1e-12 * one.exact);
                prop_assert!((one.mid - other.mid).abs() <= 1e-12 * one.mid);
            }
        }

        #[test]
        fn more_harm_never_raises_p(k_c in 0u64..60, n in 60u64..120, k_b in 0u64..60) {
            let before = fisher(arm(k_c, n), arm(k_b, n)).unwrap();
            let after = fisher(arm(k_c + 1, n), arm(k_b, n)).unwrap();
            prop_assert!(after.greater.exact <= before.greater.exact + 1e-12);
            prop_assert!(after.greater.mid <= before.greater.mid + 1e-12);
            prop_assert!(before.greater.mid <= before.greater.exact);
        }
    }
}
