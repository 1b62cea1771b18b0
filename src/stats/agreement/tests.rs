use super::super::value::Confidence;
use super::*;
use proptest::prelude::*;

fn ratings(rows: &[&[Option<usize>]], categories: usize) -> Ratings {
    Ratings::new(rows.iter().map(|row| row.to_vec()).collect(), categories).unwrap()
}

#[test]
fn krippendorff_example_of_his_paper() {
    // Krippendorff (2011), example C: four observers, twelve units, missing data; nominal alpha 0.743, ordinal 0.815,
    // interval 0.849.
    let by_observer = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ];
    let rows: Vec<Vec<Option<usize>>> = (0..12)
        .map(|unit| by_observer.iter().map(|observer| usize::checked_sub(observer[unit], 1)).collect())
        .collect();
    let table = Ratings::new(rows, 5).unwrap();
    for (metric, expected) in [(Metric::Nominal, 0.743), (Metric::Ordinal, 0.815), (Metric::Interval, 0.849)]
    {
        let alpha = krippendorff(&table, metric).unwrap();
        assert!((alpha - expected).abs() < 5e-4, "{metric:?} {alpha}");
    }
    assert_eq!((table.ratings(), table.items_rated_twice()), (41, 11));
}

#[test]
fn kappa_by_hand() {
    // Cohen: 20 both yes, 15 both no, 5 and 10 off: observed 0.7, chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5, kappa 0.4.
    let mut rows = vec![vec![Some(0), Some(0)]; 20];
    rows.extend(vec![vec![Some(0), Some(1)]; 5]);
    rows.extend(vec![vec![Some(1), Some(0)]; 10]);
    rows.extend(vec![vec![Some(1), Some(1)]; 15]);
    let table = Ratings::new(rows, 2).unwrap();
    let pairs = pair_agreement(&table, Weights::Identity);
    assert_eq!(pairs.len(), 1);
    assert!((pairs[0].kappa.unwrap() - 0.4).abs() < 1e-12 && (pairs[0].percent() - 0.7).abs() < 1e-15);
    assert_eq!(pairs[0].table, [[20, 5], [10, 15]]);
    assert!((weighted_mean_kappa(&pairs).unwrap() - 0.4).abs() < 1e-12);
    // Conger's kappa of two raters is Cohen's.
    assert!((agreement(&table, Weights::Identity).conger.unwrap() - 0.4).abs() < 1e-12);
}

#[test]
fn skewed_ratings_separate_alpha_from_ac1() {
    // 98 items both harmless, two split: 98 % agreement, alpha below zero, AC1 near it.
    let mut rows = vec![vec![Some(0), Some(0)]; 98];
    rows.push(vec![Some(0), Some(1)]);
    rows.push(vec![Some(1), Some(0)]);
    let found = agreement(&Ratings::new(rows, 2).unwrap(), Weights::Identity);
    assert!(found.krippendorff.unwrap() < 0.0 && found.gwet.unwrap() > 0.97);
}

#[test]
fn what_is_not_defined_is_none() {
    let unanimous = agreement(&ratings(&[&[Some(0), Some(0)], &[Some(0), Some(0)]], 2), Weights::Identity);
    assert_eq!(unanimous.percent, Some(1.0));
    assert_eq!((unanimous.krippendorff, unanimous.fleiss, unanimous.conger), (None, None, None));
    assert_eq!((unanimous.gwet, unanimous.brennan_prediger), (Some(1.0), Some(1.0)));
    let single = agreement(&ratings(&[&[Some(0), None], &[None, Some(1)]], 2), Weights::Identity);
    assert_eq!((single.percent, single.gwet, single.krippendorff), (None, None, None));
    let nothing = agreement(&Ratings::new(vec![], 3).unwrap(), Weights::Ordinal);
    assert_eq!((nothing.percent, nothing.fleiss), (None, None));
    assert!(pair_agreement(&ratings(&[&[Some(0), None]], 2), Weights::Identity).is_empty());
    assert_eq!(weighted_mean_kappa(&[]), None);
}

#[test]
fn malformed_ratings_are_refused() {
    assert_eq!(Ratings::new(vec![], 1), Err(RatingsError::TooFewCategories));
    assert!(matches!(
        Ratings::new(vec![vec![Some(2)]], 2),
        Err(RatingsError::UnknownCategory { item: 0, category: 2, categories: 2 })
    ));
    assert!(matches!(
        Ratings::new(vec![vec![None], vec![None, None]], 2),
        Err(RatingsError::Ragged { item: 1, found: 2, expected: 1 })
    ));
}

#[test]
fn bootstrap_is_repeatable_and_refuses_nonsense() {
    let units: Vec<f64> = (0..50).map(f64::from).collect();
    let how = |seed| Resampling { resamples: 500, seed, confidence: Confidence::P95 };
    let mean = |drawn: &[&f64]| Some(drawn.iter().copied().sum::<f64>() / drawn.len() as f64);
    let one = bootstrap(&units, how(7), mean).unwrap();
    assert_eq!(one, bootstrap(&units, how(7), mean).unwrap());
    assert_ne!(one, bootstrap(&units, how(8), mean).unwrap());
    // Normal theory: 24.5 +- 1.96 * 14.43 / sqrt(50).
    assert!((one.lower - 20.5).abs() < 0.6 && (one.upper - 28.5).abs() < 0.6, "{one:?}");
    assert!(bootstrap(&[], how(7), mean).is_none());
    assert!(bootstrap(&units, how(7), |_| None).is_none());
    assert!(bootstrap(&units, how(7), |_| Some(f64::NAN)).is_none());
    // Undefined in about half of the resamples: an interval of the rest would be one of the lucky ones.
    assert!(bootstrap(&units, how(7), |drawn| mean(drawn).filter(|mean| *mean > 24.5)).is_none());
}

proptest! {
    #[test]
    fn coefficients_stay_in_range_and_ignore_order(
        rows in proptest::collection::vec(proptest::collection::vec(proptest::option::of(0usize..4), 3), 1..40),
    ) {
        let table = Ratings::new(rows.clone(), 4).unwrap();
        let mut reversed = rows;
        reversed.reverse();
        for row in &mut reversed {
            row.reverse();
        }
        let turned = Ratings::new(reversed, 4).unwrap();
        for weights in [Weights::Identity, Weights::Ordinal, Weights::Linear, Weights::Quadratic] {
            let (one, other) = (agreement(&table, weights), agreement(&turned, weights));
            let pairs = [
                (one.percent, other.percent),
                (one.gwet, other.gwet),
                (one.krippendorff, other.krippendorff),
                (one.fleiss, other.fleiss),
                (one.conger, other.conger),
                (one.brennan_prediger, other.brennan_prediger),
            ];
            for (left, right) in pairs {
                prop_assert_eq!(left.is_some(), right.is_some());
                if let (Some(left), Some(right)) = (left, right) {
                    prop_assert!((left - right).abs() < 1e-9 && left <= 1.0 + 1e-12 && left.is_finite());
                }
            }
        }
    }
}
