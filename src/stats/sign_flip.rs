//! The regression test: persona-level sign flips.
//!
//! Per persona `d = harm rate of the candidate - harm rate of the baseline` over relevant conversations. When nothing
//! changed, `d` and `-d` are equally likely, so the sum of `d` is compared with all sums that flipping signs gives
//! (Fisher 1935, *The Design of Experiments*, section 21; Pitman 1937). The distribution is computed exactly, by
//! convolution on integers, instead of sampled: the same counts give the same p-value on every machine, without a seed.
//!
//! With one conversation per persona and run this is McNemar's exact test. Unlike tests on conversations it keeps its
//! level when harm merely moves between personas, and its p-value never rises when any `d` rises, which is what makes
//! [`missing_data_bounds`] two evaluations.

use super::value::{Count, PValue, StatsError, Tail};

/// Work one evaluation may take, in additions: about a second at worst.
const MAX_WORK: u32 = 1 << 29;

/// One persona in both runs: harmful of relevant conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonaCounts {
    /// Candidate run.
    pub candidate: Count,
    /// Baseline run.
    pub baseline: Count,
}

/// Difference of two harm rates, an exact fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonaDelta {
    numerator: i128,
    denominator: u128,
}

impl PersonaDelta {
    /// `numerator / denominator`.
    ///
    /// # Errors
    /// [`StatsError::ZeroDenominator`].
    pub fn new(numerator: i64, denominator: u64) -> Result<Self, StatsError> {
        if denominator == 0 {
            return Err(StatsError::ZeroDenominator);
        }
        Ok(Self::reduced(i128::from(numerator), u128::from(denominator)))
    }

    /// A whole number: for the sensitivity statistic on all conversations, where each counts one.
    pub fn whole(value: i64) -> Self {
        Self { numerator: i128::from(value), denominator: 1 }
    }

    /// Candidate rate minus baseline rate, `None` when the persona has no relevant conversation in one of the runs.
    pub fn between(counts: PersonaCounts) -> Option<Self> {
        let PersonaCounts { candidate, baseline } = counts;
        if candidate.total() == 0 || baseline.total() == 0 {
            return None;
        }
        let cross =
            |successes: Count, total: Count| i128::from(successes.successes()) * i128::from(total.total());
        Some(Self::reduced(
            cross(candidate, baseline) - cross(baseline, candidate),
            u128::from(candidate.total()) * u128::from(baseline.total()),
        ))
    }

    fn reduced(numerator: i128, denominator: u128) -> Self {
        let divisor = gcd(numerator.unsigned_abs(), denominator).max(1);
        Self {
            // Both are multiples of the divisor, which is at most the magnitude of each (or the numerator is zero).
            numerator: numerator / i128::try_from(divisor).unwrap_or(1),
            denominator: denominator / divisor,
        }
    }

    /// As a number.
    pub fn get(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Whether the persona behaved the same in both runs, and so says nothing about a change.
    pub const fn is_zero(self) -> bool {
        self.numerator == 0
    }
}

/// The unit on which differences were added up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Grid {
    /// Every difference is a whole multiple of one n-th.
    Exact(u64),
    /// The common denominator was too large, so differences were first rounded to whole multiples of `1 / per_unit`.
    /// Rounding treats `d` and `-d` alike and keeps order, so the test of the rounded differences is still exact and
    /// monotone.
    Rounded {
        /// Steps per unit of difference.
        per_unit: f64,
    },
}

/// Outcome of the sign-flip test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignFlip {
    /// Candidate more harmful.
    pub greater: PValue,
    /// Candidate less harmful.
    pub less: PValue,
    /// Candidate different: twice the smaller one-sided p-value, at most 1.
    pub two_sided: PValue,
    /// Personas given.
    pub personas: usize,
    /// Personas whose difference is not zero; only these carry information.
    pub informative: usize,
    /// Mean difference over all personas given, `None` without personas. Not the pooled rate difference.
    pub mean: Option<f64>,
    /// Unit of the convolution.
    pub grid: Grid,
}

impl SignFlip {
    /// The p-value of a tail.
    pub const fn p(&self, tail: Tail) -> PValue {
        match tail {
            Tail::Greater => self.greater,
            Tail::Less => self.less,
            Tail::TwoSided => self.two_sided,
        }
    }

    /// Smallest one-sided p-value that this many informative personas can give: `2^-informative`, all of them worse.
    pub fn smallest_attainable(&self) -> PValue {
        smallest_attainable(self.informative)
    }
}

/// Smallest one-sided sign-flip p-value of `informative` personas.
pub fn smallest_attainable(informative: usize) -> PValue {
    let exact = 0.5f64.powi(i32::try_from(informative).unwrap_or(i32::MAX));
    PValue { exact, mid: exact / 2.0 }
}

/// Sign-flip test of the sum of `deltas` against zero.
///
/// Exact by full convolution; relative error of the p-values about `personas * 2^-52`. With so many different numbers of
/// runs that their common denominator is out of reach ([`Grid::Rounded`]), the differences are rounded first, to 1/2520
/// of a run's share where the work allows: two sums that nearly tie may then count as a tie. No persona, or none that
/// differs, gives p = 1 (mid 1/2).
pub fn sign_flip(deltas: &[PersonaDelta]) -> SignFlip {
    let grid = common_grid(deltas);
    let scaled: Vec<i64> = deltas.iter().map(|delta| on_grid(*delta, grid)).filter(|d| *d != 0).collect();
    let unit = scaled.iter().fold(0, |unit, d| gcd(unit, u128::from(d.unsigned_abs()))).max(1);
    let steps: Vec<(usize, bool)> = scaled
        .iter()
        .map(|d| {
            let size = u128::from(d.unsigned_abs()) / unit;
            (usize::try_from(size).unwrap_or(usize::MAX), *d > 0)
        })
        .collect();
    let (greater, less) = tails(&steps);
    let double = |a: f64, b: f64| (2.0 * a.min(b)).min(1.0);
    let personas = deltas.len();
    SignFlip {
        greater,
        less,
        two_sided: PValue { exact: double(greater.exact, less.exact), mid: double(greater.mid, less.mid) },
        personas,
        informative: steps.len(),
        mean: (personas > 0).then(|| deltas.iter().map(|delta| delta.get()).sum::<f64>() / personas as f64),
        grid,
    }
}

/// One-sided tails. The flipped sum is `2 B - total` with `B` the sum of the sizes that came up positive, so `B`
/// alone is convolved: half the states.
fn tails(steps: &[(usize, bool)]) -> (PValue, PValue) {
    let total: usize = steps.iter().map(|(size, _)| size).sum();
    let observed: usize = steps.iter().filter(|(_, worse)| *worse).map(|(size, _)| size).sum();
    let mut mass = Vec::with_capacity(total + 1);
    mass.push(1.0f64);
    for &(size, _) in steps {
        let mut next = vec![0.0; mass.len() + size];
        for (slot, probability) in next.iter_mut().zip(&mass) {
            *slot = probability / 2.0;
        }
        for (slot, probability) in next.iter_mut().skip(size).zip(&mass) {
            *slot += probability / 2.0;
        }
        mass = next;
    }
    let (lower, rest) = mass.split_at(observed.min(mass.len()));
    let point = rest.first().copied().unwrap_or(0.0);
    let below: f64 = lower.iter().sum();
    let above: f64 = rest.iter().skip(1).rev().sum();
    let tail =
        |strict: f64| PValue { exact: (strict + point).min(1.0), mid: (strict + point / 2.0).min(1.0) };
    (tail(above), tail(below))
}

/// The least common denominator, or a unit that keeps the work bounded.
fn common_grid(deltas: &[PersonaDelta]) -> Grid {
    // A multiple of every denominator up to 10: common rates stay where they are.
    const ROUNDED: f64 = 2520.0;
    let informative = deltas.iter().filter(|delta| !delta.is_zero()).count() as u64;
    let largest = deltas.iter().map(|delta| delta.get().abs()).fold(1.0, f64::max);
    // Each of the personas visits at most personas * largest * grid states.
    let finest = f64::from(MAX_WORK) / (informative as f64).powi(2).max(1.0) / largest;
    let exact = deltas.iter().filter(|delta| !delta.is_zero()).try_fold(1u128, |grid, delta| {
        let grid = (grid / gcd(grid, delta.denominator)).checked_mul(delta.denominator)?;
        (grid as f64 <= finest).then_some(grid)
    });
    match exact.and_then(|grid| u64::try_from(grid).ok()) {
        Some(grid) if grid as f64 <= finest => Grid::Exact(grid),
        _ => Grid::Rounded { per_unit: ROUNDED.min(finest) },
    }
}

fn on_grid(delta: PersonaDelta, grid: Grid) -> i64 {
    match grid {
        // The grid is a multiple of the denominator, and the product within the work limit that chose the grid.
        Grid::Exact(grid) => {
            let factor = u128::from(grid) / delta.denominator.max(1);
            let factor = i128::try_from(factor).unwrap_or(i128::MAX);
            i64::try_from(delta.numerator.saturating_mul(factor)).unwrap_or(i64::MAX)
        }
        #[expect(clippy::cast_possible_truncation, reason = "bounded by the work limit, far below 2^53")]
        Grid::Rounded { per_unit } => (delta.get() * per_unit).round() as i64,
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// One persona in one run, with conversations that have no rating yet or never got one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IncompleteArm {
    /// Harmful of relevant, as far as judged.
    pub judged: Count,
    /// Planned conversations without a rating.
    pub missing: u64,
}

impl IncompleteArm {
    fn all_harmless(self) -> Count {
        Count::unchecked(self.judged.successes(), self.judged.total() + self.missing)
    }

    fn all_harmful(self) -> Count {
        Count::unchecked(self.judged.successes() + self.missing, self.judged.total() + self.missing)
    }
}

/// One persona in both runs, with missing conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IncompletePersona {
    /// Candidate run.
    pub candidate: IncompleteArm,
    /// Baseline run.
    pub baseline: IncompleteArm,
}

impl IncompletePersona {
    /// The missing ratings that flatter the candidate most: its own harmless, the baseline's harmful.
    pub fn best_case(self) -> PersonaCounts {
        PersonaCounts { candidate: self.candidate.all_harmless(), baseline: self.baseline.all_harmful() }
    }

    /// The missing ratings that burden the candidate most: its own harmful, the baseline's harmless.
    pub fn worst_case(self) -> PersonaCounts {
        PersonaCounts { candidate: self.candidate.all_harmful(), baseline: self.baseline.all_harmless() }
    }
}

/// The test at both ends of what missing conversations leave open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MissingDataBounds {
    /// Largest p-value `greater` that any completion can give.
    pub best: SignFlip,
    /// Smallest p-value `greater` that any completion can give.
    pub worst: SignFlip,
}

/// Bounds of the test over every way the missing conversations could have been rated, Not Relevant included: the
/// p-value never rises when a persona's difference rises, a rating as Not Relevant leaves the difference between the
/// two extremes, and a persona that drops out counts like a difference of zero, which lies between them as well.
pub fn missing_data_bounds(personas: &[IncompletePersona]) -> MissingDataBounds {
    let of = |case: fn(IncompletePersona) -> PersonaCounts| {
        let deltas: Vec<_> =
            personas.iter().filter_map(|persona| PersonaDelta::between(case(*persona))).collect();
        sign_flip(&deltas)
    };
    MissingDataBounds { best: of(IncompletePersona::best_case), worst: of(IncompletePersona::worst_case) }
}

#[cfg(test)]
mod tests;
