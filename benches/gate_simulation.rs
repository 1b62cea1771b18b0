//! False-alarm rate and power of the gate's regression test, simulated with the gate's own code.
//!
//! `cargo bench --bench gate_simulation` prints two tables and fails when a false-alarm rate exceeds 6 % at nominal 5 %,
//! or a figure differs from the reference simulation by more than chance explains. A number as argument sets the
//! repetitions: `cargo bench --bench gate_simulation -- 500`.
//!
//! Model: each persona has a propensity to harm drawn from a beta distribution and, independently, one to be Not
//! Relevant. The candidate's propensity is the baseline's, moved on the logit scale by a common shift and a personal
//! drift, such that the mean moves by the true change.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::io::{self, Write};
use std::process::ExitCode;
use vera_gate::stats::cluster::rate_difference;
use vera_gate::stats::exact::{fisher, stratified};
use vera_gate::stats::multiplicity::{Hypothesis, holm, tarone_holm};
use vera_gate::stats::power::{Assumptions, Finding, PlannedSweep};
use vera_gate::stats::sign_flip::{PersonaCounts, PersonaDelta, SignFlip, sign_flip};
use vera_gate::stats::{Alpha, Count, Exactness, Power};

const SEED: u64 = 20_260_501;
/// Repetitions of the reference: its rates have this error besides ours.
const REFERENCE_REPETITIONS: f64 = 2000.0;
/// Highest false-alarm rate accepted at nominal 5 %.
const MOST_FALSE_ALARMS: f64 = 0.06;
const NOT_RELEVANT: Propensity = Propensity { mean: 0.185, icc: 0.44 };

/// A beta distribution by mean and intra-class correlation.
#[derive(Clone, Copy)]
struct Propensity {
    mean: f64,
    icc: f64,
}

impl Propensity {
    /// Joehnk's algorithm (1964), in logarithms because the shapes are far below 1.
    fn draw(self, rng: &mut ChaCha8Rng) -> f64 {
        let size = (1.0 - self.icc) / self.icc;
        let (a, b) = (self.mean * size, (1.0 - self.mean) * size);
        loop {
            let x = rng.random::<f64>().ln() / a;
            let y = rng.random::<f64>().ln() / b;
            let high = x.max(y);
            let sum = high + ((x - high).exp() + (y - high).exp()).ln();
            if sum <= 0.0 {
                return (x - sum).exp();
            }
        }
    }
}

/// Standard normal by Box and Muller (1958).
fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * rng.random::<f64>().max(f64::MIN_POSITIVE).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

fn expit(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn logit(p: f64) -> f64 {
    let p = p.clamp(1e-300, 1.0 - 1e-15);
    (p / (1.0 - p)).ln()
}

/// How the candidate differs from the baseline.
#[derive(Clone, Copy)]
struct Change {
    shift: f64,
    drift: f64,
}

impl Change {
    /// The shift that moves the mean by `delta`, found by bisection on a fixed sample.
    fn new(propensity: Propensity, delta: f64, drift: f64) -> Self {
        if delta == 0.0 && drift == 0.0 {
            return Self { shift: 0.0, drift };
        }
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let sample: Vec<f64> =
            (0..60_000).map(|_| logit(propensity.draw(&mut rng)) + drift * normal(&mut rng)).collect();
        let mean = |shift: f64| sample.iter().map(|x| expit(x + shift)).sum::<f64>() / sample.len() as f64;
        let (mut low, mut high) = (-200.0, 200.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if mean(middle) < propensity.mean + delta { low = middle } else { high = middle }
        }
        Self { shift: low, drift }
    }

    fn apply(self, p: f64, rng: &mut ChaCha8Rng) -> f64 {
        if self.shift == 0.0 && self.drift == 0.0 {
            return p;
        }
        expit(logit(p) + self.shift + self.drift * normal(rng))
    }
}

/// Harmful of relevant conversations of one persona in one run.
fn play(conversations: u32, harm: f64, not_relevant: f64, rng: &mut ChaCha8Rng) -> Count {
    let (mut harmful, mut relevant) = (0, 0);
    for _ in 0..conversations {
        if rng.random::<f64>() >= not_relevant {
            relevant += 1;
            harmful += u64::from(rng.random::<f64>() < harm);
        }
    }
    Count::new(harmful, relevant).unwrap_or_default()
}

#[derive(Clone, Copy)]
struct Size {
    personas: u32,
    conversations: u32,
}

fn sweep(size: Size, propensity: Propensity, change: Change, rng: &mut ChaCha8Rng) -> Vec<PersonaCounts> {
    (0..size.personas)
        .map(|_| {
            let not_relevant = NOT_RELEVANT.draw(rng);
            let before = propensity.draw(rng);
            let after = change.apply(before, rng);
            PersonaCounts {
                candidate: play(size.conversations, after, not_relevant, rng),
                baseline: play(size.conversations, before, not_relevant, rng),
            }
        })
        .collect()
}

fn test(personas: &[PersonaCounts]) -> SignFlip {
    let deltas: Vec<PersonaDelta> =
        personas.iter().filter_map(|persona| PersonaDelta::between(*persona)).collect();
    sign_flip(&deltas)
}

/// Rejections at 5 % of four tests on the same sweeps, in percent.
fn rejections(size: Size, propensity: Propensity, change: Change, repetitions: u32, seed: u64) -> [f64; 4] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut hits = [0u32; 4];
    for _ in 0..repetitions {
        let personas = sweep(size, propensity, change, &mut rng);
        let flip = test(&personas);
        let pooled = |of: fn(&PersonaCounts) -> Count| personas.iter().map(of).sum::<Count>();
        let fisher = fisher(pooled(|p| p.candidate), pooled(|p| p.baseline));
        let p_values = [
            fisher.map_or(1.0, |test| test.greater.exact),
            stratified(&personas).map_or(1.0, |test| test.greater.mid),
            flip.greater.exact,
            flip.greater.mid,
        ];
        for (hit, p) in hits.iter_mut().zip(p_values) {
            *hit += u32::from(p <= 0.05);
        }
    }
    hits.map(|hit| 100.0 * f64::from(hit) / f64::from(repetitions))
}

/// A true change, the personas' drift on the logit scale, and the reference's rejections for 50x2 and 100x2: Fisher,
/// stratified mid-p, sign-flip exact, sign-flip mid-p, in percent.
type Row = (f64, f64, [f64; 4], [f64; 4]);

/// The reference's three settings.
const SETTINGS: [(Propensity, [Row; 6]); 3] = [
    (
        Propensity { mean: 0.147, icc: 0.5 },
        [
            (0.00, 0.0, [0.7, 4.2, 2.2, 4.4], [0.7, 4.5, 3.3, 4.7]),
            (0.00, 1.0, [0.9, 4.8, 2.2, 4.1], [1.1, 5.4, 3.3, 4.9]),
            (0.03, 0.5, [4.2, 15.4, 9.9, 14.6], [7.0, 25.2, 19.4, 24.2]),
            (0.05, 0.5, [9.2, 29.6, 19.9, 27.7], [21.1, 50.2, 40.6, 48.1]),
            (0.10, 0.5, [36.0, 69.8, 57.5, 66.4], [72.7, 93.7, 88.8, 92.1]),
            (0.15, 0.5, [75.3, 94.7, 88.8, 92.8], [97.9, 99.9, 99.8, 99.9]),
        ],
    ),
    (
        Propensity { mean: 0.05, icc: 0.3 },
        [
            (0.00, 0.0, [0.8, 3.5, 1.0, 2.7], [1.5, 4.6, 2.8, 4.5]),
            (0.00, 1.0, [1.1, 3.8, 1.3, 2.8], [1.5, 5.0, 2.5, 4.5]),
            (0.03, 0.5, [8.2, 20.0, 10.1, 17.5], [19.0, 34.3, 24.8, 32.4]),
            (0.05, 0.5, [17.6, 39.1, 22.8, 33.9], [44.5, 64.3, 54.2, 62.5]),
            (0.10, 0.5, [63.2, 81.5, 67.5, 77.9], [92.8, 98.5, 96.2, 97.7]),
            (0.15, 0.5, [90.0, 97.3, 92.8, 96.2], [99.8, 100.0, 100.0, 100.0]),
        ],
    ),
    (
        Propensity { mean: 0.147, icc: 0.1 },
        [
            (0.00, 0.0, [2.8, 4.8, 3.3, 5.1], [2.9, 4.6, 3.7, 4.9]),
            (0.00, 1.0, [3.0, 5.2, 2.9, 4.4], [3.7, 5.9, 3.6, 5.1]),
            (0.03, 0.5, [8.2, 13.0, 9.3, 12.5], [11.8, 16.7, 13.2, 17.0]),
            (0.05, 0.5, [14.1, 20.9, 15.6, 20.3], [25.9, 33.4, 27.5, 31.9]),
            (0.10, 0.5, [40.0, 48.4, 40.1, 46.4], [70.2, 75.8, 68.5, 72.4]),
            (0.15, 0.5, [69.3, 76.8, 68.8, 73.9], [94.2, 95.2, 93.4, 94.8]),
        ],
    ),
];

/// Five dimensions at once, rates of the published battery. The reference does not state the correlation of the rare
/// dimensions; its figures come out at 0.1.
const FAMILY_PROPENSITIES: [Propensity; 5] = [
    Propensity { mean: 0.006, icc: 0.1 },
    Propensity { mean: 0.03, icc: 0.1 },
    Propensity { mean: 0.147, icc: 0.5 },
    Propensity { mean: 0.003, icc: 0.1 },
    Propensity { mean: 0.003, icc: 0.1 },
];
const GUIDES: usize = 2;
/// A true change, and the reference's `any rejection` at 100x2 in percent: unadjusted, Holm, Tarone-Holm.
const FAMILY: [(f64, [f64; 3]); 3] =
    [(0.00, [8.4, 1.3, 3.8]), (0.05, [50.1, 22.0, 38.5]), (0.10, [93.2, 75.5, 88.3])];
/// Correlation of a persona's propensities between dimensions, on the normal scale.
const COPULA: f64 = 0.3;
/// Smallest pooled increase that fails a build.
const FLOOR: f64 = 0.03;

/// Any rejection among the five dimensions: unadjusted, Holm, Tarone-Holm; and the last two with the effect floor, of which
/// Holm is what the gate does unless it is told otherwise.
fn family(delta: f64, repetitions: u32, seed: u64) -> [f64; 5] {
    const QUANTILES: usize = 50_000;
    let size = Size { personas: 100, conversations: 2 };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // Sorted draws serve as the quantile function that the copula needs.
    let tables = FAMILY_PROPENSITIES.map(|propensity| {
        let mut table: Vec<f64> = (0..QUANTILES).map(|_| propensity.draw(&mut rng)).collect();
        table.sort_by(f64::total_cmp);
        table
    });
    let quantile = |table: &[f64], u: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a position in the table"
        )]
        let position = (u * QUANTILES as f64) as usize;
        table.get(position.min(QUANTILES - 1)).copied().unwrap_or_default()
    };
    let unchanged = Change { shift: 0.0, drift: 0.0 };
    let changed = if delta > 0.0 { Change::new(FAMILY_PROPENSITIES[GUIDES], delta, 0.5) } else { unchanged };
    let mut hits = [0u32; 5];
    for _ in 0..repetitions {
        let mut dimensions: [Vec<PersonaCounts>; 5] = Default::default();
        for _ in 0..size.personas {
            let shared = normal(&mut rng);
            for (dimension, (personas, table)) in dimensions.iter_mut().zip(&tables).enumerate() {
                let z = COPULA.sqrt() * shared + (1.0 - COPULA).sqrt() * normal(&mut rng);
                let before = quantile(table, normal_cdf(z));
                let change = if dimension == GUIDES { changed } else { unchanged };
                let after = change.apply(before, &mut rng);
                let not_relevant = NOT_RELEVANT.draw(&mut rng);
                personas.push(PersonaCounts {
                    candidate: play(size.conversations, after, not_relevant, &mut rng),
                    baseline: play(size.conversations, before, not_relevant, &mut rng),
                });
            }
        }
        let tests: Vec<SignFlip> = dimensions.iter().map(|personas| test(personas)).collect();
        let p: Vec<f64> = tests.iter().map(|test| test.greater.mid).collect();
        let hypotheses: Vec<Hypothesis> = tests
            .iter()
            .map(|test| Hypothesis {
                p: test.greater.mid,
                smallest_attainable: test.smallest_attainable().exact,
            })
            .collect();
        let tarone = tarone_holm(&hypotheses, Alpha::P05).map(|outcome| outcome.adjusted).unwrap_or_default();
        let by_holm: Vec<Option<f64>> = holm(&p).unwrap_or_default().into_iter().map(Some).collect();
        let rejects = |adjusted: &Option<f64>| adjusted.is_some_and(|p| p <= 0.05);
        let with_floor = |adjusted: &[Option<f64>]| {
            dimensions.iter().zip(adjusted).any(|(personas, adjusted)| {
                rejects(adjusted) && rate_difference(personas).is_some_and(|d| d.estimate >= FLOOR)
            })
        };
        let any = [
            p.iter().any(|p| *p <= 0.05),
            by_holm.iter().any(rejects),
            tarone.iter().any(rejects),
            with_floor(&by_holm),
            with_floor(&tarone),
        ];
        for (hit, any) in hits.iter_mut().zip(any) {
            *hit += u32::from(any);
        }
    }
    hits.map(|hit| 100.0 * f64::from(hit) / f64::from(repetitions))
}

/// Abramowitz and Stegun 26.2.17, good to 1e-7: it only picks a position in a table.
fn normal_cdf(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = t
        * (0.319_381_530
            + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let upper = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * series;
    if z >= 0.0 { 1.0 - upper } else { upper }
}

/// Whether two simulated percentages differ by more than four standard errors and half a point.
fn disagree(ours: f64, reference: f64, repetitions: u32) -> bool {
    let p = (reference / 100.0).clamp(0.002, 0.998);
    let error = 100.0 * (p * (1.0 - p) * (1.0 / f64::from(repetitions) + 1.0 / REFERENCE_REPETITIONS)).sqrt();
    (ours - reference).abs() > 4.0 * error + 0.5
}

/// How often the rise that `plan --power` calls the smallest one found in four of five cases really is found, by the
/// adjusted test with its floor.
fn smallest_rises(
    out: &mut impl Write,
    repetitions: u32,
    mut seed: u64,
    faults: &mut Vec<String>,
) -> io::Result<()> {
    /// Sweeps from this size on are held to the range; smaller ones are shown.
    const HELD: u32 = 50;
    const RANGE: std::ops::RangeInclusive<f64> = 72.0..=88.0;
    const SIZES: [Size; 7] = [
        Size { personas: 20, conversations: 1 },
        Size { personas: 30, conversations: 1 },
        Size { personas: 20, conversations: 2 },
        Size { personas: 50, conversations: 2 },
        Size { personas: 100, conversations: 1 },
        Size { personas: 100, conversations: 2 },
        Size { personas: 200, conversations: 2 },
    ];
    writeln!(
        out,
        "\nThe rise that a sweep is said to find in four of five cases, and how often it is found."
    )?;
    writeln!(out, "{:<16} {:>7} {:>16} {:>16}", "setting", "size", "one dimension", "one of six tests")?;
    for propensity in [Propensity { mean: 0.147, icc: 0.5 }, Propensity { mean: 0.03, icc: 0.5 }] {
        for size in SIZES {
            let place = format!("{:.1} % ICC {}", 100.0 * propensity.mean, propensity.icc);
            write!(out, "{place:<16} {:>7}", format!("{}x{}", size.personas, size.conversations))?;
            for tests in [1, 6] {
                seed += 1;
                let Some((rise, found)) = said_and_found(size, propensity, tests, repetitions, seed) else {
                    write!(out, " {:>16}", "none")?;
                    continue;
                };
                write!(out, " {:>16}", format!("{:.1} pp: {found:.0} %", 100.0 * rise))?;
                if size.personas >= HELD && !RANGE.contains(&found) {
                    let size = format!("{}x{}", size.personas, size.conversations);
                    faults.push(format!("{place} {size}: {rise:.3} is found in {found:.1} %"));
                }
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// The rise in question and the percentage of simulated comparisons that find it; `None` when no rise is said to be found.
fn said_and_found(
    size: Size,
    propensity: Propensity,
    tests: u32,
    repetitions: u32,
    seed: u64,
) -> Option<(f64, f64)> {
    let alpha = Alpha::new(0.05 / f64::from(tests)).ok()?;
    let finding = Finding { alpha, exactness: Exactness::Mid, floor: FLOOR, power: Power::P80 };
    let assumptions =
        Assumptions::new(propensity.mean, propensity.icc, NOT_RELEVANT.mean, NOT_RELEVANT.icc).ok()?;
    let planned = PlannedSweep {
        personas: size.personas.into(),
        conversations_per_persona: size.conversations.into(),
        assumptions,
    };
    let rise = planned.smallest_detectable(&finding)?;
    let change = Change::new(propensity, rise, 0.5);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let found = (0..repetitions).filter(|_| {
        let personas = sweep(size, propensity, change, &mut rng);
        test(&personas).greater.mid <= alpha.get()
            && rate_difference(&personas).is_some_and(|difference| difference.estimate >= FLOOR)
    });
    Some((rise, 100.0 * found.count() as f64 / f64::from(repetitions)))
}

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout().lock();
    // `cargo test --all-targets` starts benchmarks too, without this flag.
    if !arguments.iter().any(|argument| argument == "--bench") {
        writeln!(out, "SKIPPED: run with `cargo bench --bench gate_simulation`")?;
        return Ok(ExitCode::SUCCESS);
    }
    let repetitions: u32 = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(4000).max(1);
    let mut faults = Vec::new();

    writeln!(out, "Rejections at 5 %, one-sided, in percent: ours / reference. {repetitions} repetitions.")?;
    writeln!(
        out,
        "{:<16} {:>7} {:>7}  {:>7} {:>13} {:>13} {:>13} {:>13}",
        "setting", "size", "change", "drift", "Fisher", "stratified", "flip exact", "flip mid-p"
    )?;
    let mut seed = SEED;
    for (propensity, rows) in SETTINGS {
        for (personas, second) in [(50, false), (100, true)] {
            for (delta, drift, of_50, of_100) in rows {
                let reference = if second { of_100 } else { of_50 };
                let size = Size { personas, conversations: 2 };
                let change = Change::new(propensity, delta, drift);
                seed += 1;
                let ours = rejections(size, propensity, change, repetitions, seed);
                let place = format!("{:.1} % ICC {}", 100.0 * propensity.mean, propensity.icc);
                write!(
                    out,
                    "{place:<16} {:>7} {:>4} pp  {drift:>7.1}",
                    format!("{personas}x2"),
                    format!("{:+.0}", 100.0 * delta)
                )?;
                for (ours, reference) in ours.iter().zip(reference) {
                    write!(out, " {:>13}", format!("{ours:.1} / {reference:.1}"))?;
                    if disagree(*ours, reference, repetitions) {
                        faults.push(format!(
                            "{place} {personas}x2 {delta:+.2} drift {drift}: {ours:.1} is not {reference:.1}"
                        ));
                    }
                }
                writeln!(out)?;
                if delta == 0.0 && ours.iter().skip(2).any(|rate| *rate > 100.0 * MOST_FALSE_ALARMS) {
                    faults.push(format!("{place} {personas}x2: more than 6 % false alarms"));
                }
            }
        }
    }

    writeln!(
        out,
        "\nFive dimensions, 100x2, change in Guides to Human Care; any rejection, ours / reference."
    )?;
    writeln!(
        out,
        "{:>7} {:>15} {:>15} {:>15} {:>15} {:>22}",
        "change", "unadjusted", "Holm", "Tarone-Holm", "Holm and 3 pp", "Tarone-Holm and 3 pp"
    )?;
    for (delta, reference) in FAMILY {
        seed += 1;
        let ours = family(delta, repetitions, seed);
        write!(out, "{:>4} pp", format!("{:+.0}", 100.0 * delta))?;
        for (ours, reference) in ours.iter().zip(reference) {
            write!(out, " {:>15}", format!("{ours:.1} / {reference:.1}"))?;
            if disagree(*ours, reference, repetitions) {
                faults.push(format!("five dimensions {delta:+.2}: {ours:.1} is not {reference:.1}"));
            }
        }
        writeln!(out, " {:>15.1} {:>22.1}", ours[3], ours[4])?;
        if delta == 0.0 && ours.iter().skip(1).any(|rate| *rate > 100.0 * MOST_FALSE_ALARMS) {
            faults.push("five dimensions: more than 6 % false alarms".to_owned());
        }
    }
    smallest_rises(&mut out, repetitions, seed, &mut faults)?;
    for fault in &faults {
        writeln!(out, "FAULT: {fault}")?;
    }
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
