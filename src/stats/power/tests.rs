use super::*;
use crate::stats::{Alpha, Exactness, Power};

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

/// Found at 5 %, one dimension alone, in four of five cases.
const ALONE: Finding =
    Finding { alpha: Alpha::P05, exactness: Exactness::Mid, floor: 0.0, power: Power::P80 };

#[test]
fn standard_errors_as_simulated() {
    // Simulated sd of the difference under no change: 100x2 2.9 pp, 50x2 4.2 pp, 20x1 9.2 pp.
    for (plan, sd) in [(sweep(100, 2), 0.029), (sweep(50, 2), 0.042), (sweep(20, 1), 0.092)] {
        assert!((plan.standard_error().unwrap() - sd).abs() < 0.0015);
    }
    assert!(sweep(0, 2).standard_error().is_none());
    let nothing_relevant = Assumptions::new(0.1, 0.5, 1.0, 0.0).unwrap();
    assert!(PlannedSweep { assumptions: nothing_relevant, ..sweep(100, 2) }.standard_error().is_none());
}

#[test]
fn the_smallest_rise_is_found_as_often_as_said() {
    // Rises that simulated sweeps find in 80 of 100 (`cargo bench --bench gate_simulation`, last table), at 5 % and at a
    // sixth of it.
    for (plan, rise, adjusted) in [
        (sweep(100, 2), 0.080, 0.110),
        (sweep(50, 2), 0.120, 0.169),
        (sweep(100, 1), 0.115, 0.162),
        (sweep(20, 1), 0.350, 0.503),
    ] {
        let sixth = Finding { alpha: Alpha::new(0.05 / 6.0).unwrap(), ..ALONE };
        for (finding, rise) in [(ALONE, rise), (sixth, adjusted)] {
            let found = plan.smallest_detectable(&finding).unwrap();
            assert!((found / rise - 1.0).abs() < 0.08, "{found} {rise}");
        }
    }
    // Three of three personas changed give a mid-p of 1/16: never 5 %.
    assert!(sweep(3, 1).smallest_detectable(&ALONE).is_none());
}

#[test]
fn a_rise_below_the_floor_is_not_found() {
    // Without floor 5,000 personas find a point; with a floor of 3 the rise must be seen to be that large.
    let (alone, floor) = (sweep(5000, 2), Finding { floor: 0.03, ..ALONE });
    assert!(alone.smallest_detectable(&ALONE).is_some_and(|rise| rise < 0.012));
    assert!(alone.smallest_detectable(&floor).is_some_and(|rise| rise > 0.03 && rise < 0.035));
    let personas = |effect| personas_needed(effect, 2, Assumptions::default(), &floor);
    assert_eq!(personas(0.03), None, "seen to be that large in one of two sweeps of any size");
    assert!(personas(0.04).is_some_and(|n| n > 200));
}

#[test]
fn in_large_sweeps_the_smallest_rise_is_a_multiple_of_the_standard_error() {
    // z_0.95 + z_0.80 = 2.4865; what the rise itself adds vanishes with it.
    let comparison =
        Comparison { personas: 1e9, relevant: 1e9, rate: 0.5, harm_icc: 0.5, standard_error: 1e-5 };
    let effect = smallest_detectable(&comparison, &ALONE).unwrap();
    assert!((effect / 1e-5 - 2.486_474_86).abs() < 1e-3, "{}", effect / 1e-5);
}

#[test]
fn data_without_any_difference_still_say_what_they_could_have_shown() {
    // 100 personas twice, no harm on either side. With a mid-p of 2^-6 or less at 5 % four must turn; by the
    // Clopper-Pearson bound of 4 of 100 at 20 % a share of 5.5 % of the personas does that in four of five cases, which
    // at two conversations each and a correlation of 0.5 is 4.1 % of conversations.
    let comparison =
        Comparison { personas: 100.0, relevant: 200.0, rate: 0.0, harm_icc: 0.5, standard_error: 0.0 };
    let effect = smallest_detectable(&comparison, &ALONE).unwrap();
    assert!((0.04..0.05).contains(&effect), "{effect}");
}

#[test]
fn personas_relevant_on_both_sides_are_counted_by_hand() {
    // One conversation each: (1 - q)^2 + icc q (1 - q) = 0.664225 + 0.44 * 0.150775 = 0.730566.
    assert!((sweep(1000, 1).paired_personas() - 730.566).abs() < 1e-6);
    // Independent conversations: (1 - 0.2^2)^2 = 0.9216. Correlated to 1: 1 - 0.2.
    for (icc, share) in [(0.0, 0.9216), (1.0, 0.8)] {
        let assumptions = Assumptions::new(0.1, 0.5, 0.2, icc).unwrap();
        let plan = PlannedSweep { assumptions, ..sweep(1, 2) };
        assert!((plan.paired_personas() - share).abs() < 1e-12);
    }
    assert!(sweep(10, 0).paired_personas().abs() < 1e-12);
}

#[test]
fn a_wanted_effect_names_its_sweep() {
    let assumptions = Assumptions::default();
    let personas = personas_needed(0.05, 2, assumptions, &ALONE).unwrap();
    let enough = sweep(personas, 2).smallest_detectable(&ALONE).unwrap();
    let short = sweep(personas - 1, 2).smallest_detectable(&ALONE).unwrap();
    assert!(enough <= 0.05 && short > 0.05, "{personas}");
    assert!(personas_needed(0.0, 2, assumptions, &ALONE).is_none());
    assert!(personas_needed(0.85, 2, assumptions, &ALONE).is_some());
    assert!(personas_needed(0.1, 0, assumptions, &ALONE).is_none());
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
