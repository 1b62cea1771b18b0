use super::super::value::{Alpha, Exactness};
use super::*;
use proptest::prelude::*;

fn arm(k: u64, n: u64) -> Count {
    Count::new(k, n).unwrap()
}

fn delta(counts: ((u64, u64), (u64, u64))) -> PersonaDelta {
    let ((k_c, n_c), (k_b, n_b)) = counts;
    PersonaDelta::between(PersonaCounts { candidate: arm(k_c, n_c), baseline: arm(k_b, n_b) }).unwrap()
}

/// All `2^n` sign patterns, in exact integers on twelfths: the definition, not the algorithm.
fn enumerate(deltas: &[PersonaDelta]) -> (f64, f64) {
    let scaled: Vec<i128> =
        deltas.iter().map(|d| d.numerator * 12 / i128::try_from(d.denominator).unwrap()).collect();
    let observed: i128 = scaled.iter().sum();
    let (mut at_least, mut equal) = (0u64, 0u64);
    for pattern in 0u64..1 << scaled.len() {
        let sum: i128 =
            scaled.iter().enumerate().map(|(i, d)| if pattern >> i & 1 == 1 { *d } else { -d }).sum();
        at_least += u64::from(sum >= observed);
        equal += u64::from(sum == observed);
    }
    let patterns = (1u64 << scaled.len()) as f64;
    (at_least as f64 / patterns, (at_least as f64 - equal as f64 / 2.0) / patterns)
}

/// Harmful of 1 to 4 relevant conversations.
fn counts() -> impl Strategy<Value = (u64, u64)> {
    (1u64..=4).prop_flat_map(|n| (0..=n, Just(n)))
}

fn deltas(max: usize) -> impl Strategy<Value = Vec<PersonaDelta>> {
    proptest::collection::vec((counts(), counts()).prop_map(delta), 0..max)
}

#[test]
fn nothing_to_compare_is_no_evidence() {
    let empty = sign_flip(&[]);
    assert_eq!(empty.greater, PValue { exact: 1.0, mid: 0.5 });
    assert_eq!(empty.two_sided, PValue { exact: 1.0, mid: 1.0 });
    assert!(empty.mean.is_none());
    let all_equal = sign_flip(&[PersonaDelta::whole(0); 30]);
    assert_eq!((all_equal.informative, all_equal.greater.exact), (0, 1.0));
    assert!(PersonaDelta::between(PersonaCounts { candidate: arm(0, 0), baseline: arm(1, 1) }).is_none());
    assert!(PersonaDelta::new(1, 0).is_err());
}

#[test]
fn four_or_five_personas_are_the_least_that_can_reject() {
    // 2^-4 / 2 = 0.031 and 2^-5 = 0.031 are at most 0.05, 2^-3 / 2 = 0.063 and 2^-4 = 0.063 are not.
    let reaches = |n, exactness| smallest_attainable(n).get(exactness) <= Alpha::P05.get();
    assert!(reaches(4, Exactness::Mid) && !reaches(3, Exactness::Mid));
    assert!(reaches(5, Exactness::Exact) && !reaches(4, Exactness::Exact));
    let five = sign_flip(&[PersonaDelta::whole(1); 5]);
    assert_eq!(five.greater, five.smallest_attainable());
    assert!((five.greater.exact - 1.0 / 32.0).abs() < 1e-15);
}

#[test]
fn fractions_are_compared_as_fractions() {
    // 1/3 + 1/3 + 1/3 - 1 is exactly zero, which f64 sums of rates miss.
    let thirds = [delta(((1, 3), (0, 3))); 3];
    let mut all = thirds.to_vec();
    all.push(delta(((0, 1), (1, 1))));
    let result = sign_flip(&all);
    assert_eq!(result.grid, Grid::Exact(3));
    // Sums of +-1 +-1 +-1 +-3 that are >= 0: 3 always positive with +3 (8 patterns), and with -3 only +++ (1).
    assert!((result.greater.exact - 9.0 / 16.0).abs() < 1e-15);
}

#[test]
fn awkward_denominators_fall_back_to_a_rounded_grid() {
    // 31, 37, 41, 43, 47 have a common denominator near 1e8.
    let many: Vec<_> = (0..60)
        .map(|i| {
            let n = [31u64, 37, 41, 43, 47][i % 5];
            delta((((i as u64 * 7) % n, n), ((i as u64 * 3) % n, n)))
        })
        .collect();
    let result = sign_flip(&many);
    assert!(matches!(result.grid, Grid::Rounded { per_unit } if per_unit > 1000.0), "{:?}", result.grid);
    assert!(result.greater.exact > 0.0 && result.greater.exact < 1.0);
    // The normal approximation of the same sum, to three digits.
    let sum: f64 = many.iter().map(|d| d.get()).sum();
    let sd = many.iter().map(|d| d.get().powi(2)).sum::<f64>().sqrt();
    let normal = 1.0 - statrs::function::erf::erfc(-sum / sd / std::f64::consts::SQRT_2) / 2.0;
    assert!((result.greater.mid - normal).abs() < 5e-3);
}

#[test]
fn hostile_sizes_end_quickly_and_stay_probabilities() {
    let huge = [PersonaDelta::whole(i64::MAX), PersonaDelta::whole(i64::MIN + 1), PersonaDelta::whole(3)];
    let result = sign_flip(&huge);
    assert!(result.greater.exact > 0.0 && result.greater.exact <= 1.0);
    let tiny = [PersonaDelta::new(1, u64::MAX).unwrap(), PersonaDelta::new(1, u64::MAX - 1).unwrap()];
    assert!(sign_flip(&tiny).greater.exact <= 1.0);
}

proptest! {
    #[test]
    fn convolution_is_the_enumeration(deltas in deltas(11)) {
        let (exact, mid) = enumerate(&deltas);
        let result = sign_flip(&deltas);
        prop_assert!((result.greater.exact - exact).abs() <= 1e-12 * exact);
        prop_assert!((result.greater.mid - mid).abs() <= 1e-12 * mid);
    }

    #[test]
    fn order_does_not_matter(deltas in deltas(60), rotation in 0usize..60) {
        let mut turned = deltas.clone();
        turned.reverse();
        if !turned.is_empty() {
            let by = rotation % turned.len();
            turned.rotate_left(by);
        }
        let (one, other) = (sign_flip(&deltas), sign_flip(&turned));
        prop_assert!((one.greater.exact - other.greater.exact).abs() <= 1e-12);
        prop_assert!((one.greater.mid - other.greater.mid).abs() <= 1e-12);
        prop_assert_eq!((one.informative, one.grid), (other.informative, other.grid));
    }

    #[test]
    fn more_harm_in_one_persona_never_raises_p(
        pairs in proptest::collection::vec((counts(), counts()), 1..60),
        which in 0usize..60,
    ) {
        let at = which % pairs.len();
        let mut worse = pairs.clone();
        let ((k_c, n_c), _) = worse[at];
        prop_assume!(k_c < n_c);
        worse[at].0 = (k_c + 1, n_c);
        let before = sign_flip(&pairs.into_iter().map(delta).collect::<Vec<_>>());
        let after = sign_flip(&worse.into_iter().map(delta).collect::<Vec<_>>());
        prop_assert!(after.greater.exact <= before.greater.exact + 1e-12);
        prop_assert!(after.greater.mid <= before.greater.mid + 1e-12);
        prop_assert!(after.less.exact >= before.less.exact - 1e-12);
    }

    #[test]
    fn personas_without_a_difference_change_nothing(deltas in deltas(40), zeros in 0usize..40) {
        let mut padded = deltas.clone();
        padded.extend(std::iter::repeat_n(PersonaDelta::whole(0), zeros));
        prop_assert_eq!(sign_flip(&deltas).greater, sign_flip(&padded).greater);
    }

    #[test]
    fn every_completion_lies_between_the_bounds(
        personas in proptest::collection::vec((counts(), counts(), 0u64..3, 0u64..3), 1..30),
        ratings in proptest::collection::vec(0u8..3, 200),
    ) {
        let incomplete: Vec<_> = personas
            .iter()
            .map(|&((k_c, n_c), (k_b, n_b), m_c, m_b)| IncompletePersona {
                candidate: IncompleteArm { judged: arm(k_c, n_c), missing: m_c },
                baseline: IncompleteArm { judged: arm(k_b, n_b), missing: m_b },
            })
            .collect();
        let bounds = missing_data_bounds(&incomplete);
        // Rate each missing conversation harmful, harmless or not relevant, as drawn.
        let mut draws = ratings.iter().cycle();
        let mut complete = |known: Count, missing: u64| {
            (0..missing).fold(known, |count, _| match draws.next() {
                Some(0) => arm(count.successes() + 1, count.total() + 1),
                Some(1) => arm(count.successes(), count.total() + 1),
                _ => count,
            })
        };
        let deltas: Vec<_> = incomplete
            .iter()
            .filter_map(|persona| PersonaDelta::between(PersonaCounts {
                candidate: complete(persona.candidate.judged, persona.candidate.missing),
                baseline: complete(persona.baseline.judged, persona.baseline.missing),
            }))
            .collect();
        let drawn = sign_flip(&deltas);
        for exactness in [Exactness::Exact, Exactness::Mid] {
            let p = drawn.greater.get(exactness);
            prop_assert!(bounds.worst.greater.get(exactness) <= p + 1e-12);
            prop_assert!(p <= bounds.best.greater.get(exactness) + 1e-12);
        }
    }
}
