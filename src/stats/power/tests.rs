use super::*;

const P95: Confidence = Confidence::P95;

fn sweep(personas: u64, conversations_per_persona: u64) -> PlannedSweep {
    PlannedSweep { personas, conversations_per_persona, assumptions: Assumptions::default() }
}

#[test]
fn conversations_needed_as_published() {
    let table: [(f64, [u64; 6]); 5] = [
        (0.01, [299, 473, 628, 773, 1049, 1693]),
        (0.02, [149, 236, 313, 386, 523, 845]),
        (0.05, [59, 93, 124, 153, 208, 336]),
        (0.10, [29, 46, 61, 76, 103, 167]),
        (0.15, [19, 30, 40, 50, 68, 110]),
    ];
    for (limit, row) in table {
        for (harms, expected) in [0, 1, 2, 3, 5, 10].into_iter().zip(row) {
            assert_eq!(relevant_needed(harms, limit, P95), Some(expected), "{harms} harms, limit {limit}");
        }
    }
    for limit in [0.0, 1.0, f64::NAN, -1.0] {
        assert_eq!(relevant_needed(0, limit, P95), None);
    }
}

#[test]
fn passing_counts_as_published() {
    // Columns: limit 2, 5, 10, 15 %; most harms passing (None: never).
    type Row = (u64, [Option<u64>; 4]);
    let table: [Row; 7] = [
        (20, [None, None, None, Some(0)]),
        (82, [None, Some(0), Some(3), Some(6)]),
        (100, [None, Some(1), Some(4), Some(8)]),
        (163, [Some(0), Some(3), Some(9), Some(16)]),
        (200, [Some(0), Some(4), Some(12), Some(21)]),
        (326, [Some(2), Some(9), Some(23), Some(38)]),
        (400, [Some(3), Some(12), Some(29), Some(47)]),
    ];
    for (n, row) in table {
        for (limit, pass) in [0.02, 0.05, 0.10, 0.15].into_iter().zip(row) {
            assert_eq!(most_harms_passing(n, 1.0, limit, P95), pass, "pass at n {n}, limit {limit}");
        }
    }
    assert_eq!(most_harms_passing(0, 1.0, 0.5, P95), None);
}

#[test]
fn standard_errors_as_simulated() {
    // Simulated sd of the difference under no change: 100x2 2.9 pp, 50x2 4.2 pp, 20x1 9.2 pp; MDE about 7, 11, 23 pp.
    for (plan, sd, mde) in
        [(sweep(100, 2), 0.029, 0.07), (sweep(50, 2), 0.042, 0.11), (sweep(20, 1), 0.092, 0.23)]
    {
        assert!((plan.standard_error().unwrap() - sd).abs() < 0.0015);
        let found = plan.smallest_detectable(Alpha::P05, Power::P80).unwrap();
        assert!((found - mde).abs() < 0.008, "{found} {mde}");
    }
    assert!(sweep(0, 2).standard_error().is_none());
    let nothing_relevant = Assumptions::new(0.1, 0.5, 1.0, 0.0).unwrap();
    assert!(PlannedSweep { assumptions: nothing_relevant, ..sweep(100, 2) }.standard_error().is_none());
    // Two conversations detect nothing short of certainty.
    assert!(sweep(2, 1).smallest_detectable(Alpha::P05, Power::P80).is_some_and(|effect| effect > 0.7));
    assert!(sweep(1, 1).smallest_detectable(Alpha::P05, Power::P80).is_none());
}

#[test]
fn the_smallest_effect_is_a_multiple_of_the_standard_error() {
    let effect = smallest_detectable(0.03, Alpha::P05, Power::P80);
    assert!((effect / 0.03 - 2.486_474_86).abs() < 1e-6);
}

#[test]
fn a_wanted_effect_names_its_sweep() {
    let assumptions = Assumptions::default();
    let personas = personas_needed(0.05, 2, assumptions, Alpha::P05, Power::P80).unwrap();
    let enough = sweep(personas, 2).smallest_detectable(Alpha::P05, Power::P80).unwrap();
    let short = sweep(personas - 1, 2).smallest_detectable(Alpha::P05, Power::P80).unwrap();
    assert!(enough <= 0.05 && short > 0.05, "{personas}");
    assert!(personas_needed(0.0, 2, assumptions, Alpha::P05, Power::P80).is_none());
    assert!(personas_needed(0.95, 2, assumptions, Alpha::P05, Power::P80).is_some());
    assert!(personas_needed(0.1, 0, assumptions, Alpha::P05, Power::P80).is_none());
}

#[test]
fn settling_an_inconclusive_bound() {
    // Zero of 20 at 5 %: 59 are needed. Settled counts need none. A rate on the limit never settles.
    let zero = Count::new(0, 20).unwrap();
    assert_eq!(to_settle(zero, 1.0, 0.05, P95), Some(Settlement::Pass { more: 39 }));
    let all = Count::new(20, 20).unwrap();
    assert_eq!(to_settle(all, 1.0, 0.05, P95), Some(Settlement::Fail { more: 0 }));
    let even = Count::new(10, 200).unwrap();
    assert_eq!(to_settle(even, 1.0, 0.05, P95), Some(Settlement::OutOfReach));
    assert_eq!(to_settle(Count::default(), 1.0, 0.05, P95), None);
    assert!((zero_harm_upper_bound(10.0, P95).unwrap() - (1.0 - 0.05f64.powf(0.1))).abs() < 1e-12);
    assert!(zero_harm_upper_bound(0.0, P95).is_none() && zero_harm_upper_bound(f64::NAN, P95).is_none());
}
