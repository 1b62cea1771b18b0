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
    let found =
        difference_interval(&personas, DesignEffectRule::default(), Sides::Both, Confidence::P95).unwrap();
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
        let counts: Vec<_> = sizes.iter().map(|&(n, share)| Count::near(share, n)).collect();
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
            sizes.iter().map(|&(n, share)| Count::near(share, n)).collect();
        let forward = clustered(&counts, like_these()).unwrap();
        counts.reverse();
        let backward = clustered(&counts, like_these()).unwrap();
        prop_assert!((forward.used - backward.used).abs() < 1e-9);
    }

    #[test]
    fn harm_never_lowers_a_decision_bound(
        per_persona in proptest::collection::vec((0u64..5, 0.0f64..1.0), 1..60),
        scale in 0.0f64..1.0,
        at in 0usize..60,
    ) {
        let mut counts: Vec<_> =
            per_persona.iter().map(|&(n, share)| Count::near(share * scale, n)).collect();
        let at = at % counts.len();
        prop_assume!(counts[at].failures() > 0);
        let rule = clustered(&counts, like_these()).unwrap().bounds(Sides::Each, Confidence::P95).unwrap();
        let before = decision_bounds(&counts, like_these(), Confidence::P95).unwrap();
        counts[at] = arm(counts[at].successes() + 1, counts[at].total());
        let after = decision_bounds(&counts, like_these(), Confidence::P95).unwrap();
        prop_assert!(after.upper >= before.upper - 1e-12 && after.lower >= before.lower - 1e-12);
        prop_assert!(before.upper >= rule.upper && before.lower >= rule.lower);
    }
}

#[test]
fn the_tenth_harm_does_not_improve_the_verdict() {
    // 100 personas with two conversations, harms in different personas: at the tenth the rule drops the planned design
    // effect of 1.5, and its upper bound falls although harm rose.
    let with = |harms: usize| -> Vec<Count> { (0..100).map(|i| arm(u64::from(i < harms), 2)).collect() };
    let rule = |harms: usize| {
        clustered(&with(harms), like_these()).unwrap().bounds(Sides::Each, Confidence::P95).unwrap().upper
    };
    assert!(rule(10) < rule(9));
    let decision = |harms: usize| decision_bounds(&with(harms), like_these(), Confidence::P95).unwrap().upper;
    assert!(decision(10) >= decision(9));
    // Away from the step the two agree.
    assert!((decision(24) - rule(24)).abs() < 1e-12);
}
