//! Which rise of the harm rate two sweeps can show.

use crate::stats::interval::lower_bound;
use crate::stats::special::normal_quantile;
use crate::stats::{Alpha, Confidence, EffectiveCount, Exactness, Power};

/// Candidate and baseline over the same personas, as far as it decides what a rise must be to be found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Personas that are relevant on both sides; an expectation need not be whole.
    pub personas: f64,
    /// Relevant conversations of one side.
    pub relevant: f64,
    /// Harm rate before the rise, 0 to 1.
    pub rate: f64,
    /// Correlation of harm within a persona, 0 to 1.
    pub harm_icc: f64,
    /// Standard error of the pooled difference when nothing changed; 0 when nothing differs.
    pub standard_error: f64,
}

/// What counts as finding a rise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    /// Level of the one-sided test, after any adjustment.
    pub alpha: Alpha,
    /// Which p-value is taken.
    pub exactness: Exactness,
    /// Least observed rise that counts, 0 to 1.
    pub floor: f64,
    /// How often it is to be found.
    pub power: Power,
}

/// The smallest true rise that a sign-flip test of the personas finds with the wanted power. `None` when not even a rise
/// to 100 % would do.
///
/// Three conditions, of which the hardest decides:
/// * the sum of the differences must exceed `z_alpha` of its deviations under random signs, which grow with the rise
///   itself (a few personas with large differences are no rare event): `d >= z_alpha sqrt(s^2 + d^2 / N) + z_power s`;
/// * the observed rise must reach the floor: `d >= floor + z_power s`;
/// * enough personas must change at all: with `k` of them the smallest p is `2^-k`, half of it as a mid-p.
///
/// `s` is the standard error under the rise: the variance of the candidate's harms grows from `r(1 - r)` to that of the
/// new rate. Normal approximation of an exact test; `cargo bench --bench gate_simulation` compares it with simulated
/// sweeps: found in 72 to 88 of 100 from 50 personas on, where four of five are meant.
pub fn smallest_detectable(comparison: &Comparison, finding: &Finding) -> Option<f64> {
    const HALVINGS: u32 = 50;
    let most = 1.0 - comparison.rate;
    let changed = fewest_changed(comparison, finding)?;
    let found = |rise: f64| rise >= changed && by_size(comparison, finding, rise);
    if most <= 0.0 || !found(most) {
        return None;
    }
    let (mut low, mut high) = (0.0, most);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if found(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// The rise that lets enough personas change for the test to have a small enough p at all. `None`: there are too few.
fn fewest_changed(comparison: &Comparison, finding: &Finding) -> Option<f64> {
    let Comparison { personas, relevant, harm_icc, .. } = *comparison;
    let halves = -finding.alpha.get().log2();
    let needed = match finding.exactness {
        Exactness::Exact => halves,
        Exactness::Mid => halves - 1.0,
    };
    let needed = needed.ceil().max(1.0);
    if personas < needed || relevant <= 0.0 {
        return None;
    }
    // The share of changing personas with which `needed` of them change with the wanted power.
    let count = EffectiveCount::new(needed, personas).ok()?;
    let share = lower_bound(count, Confidence::new(1.0 - finding.power.get()).ok()?)?;
    // A persona with several conversations changes more easily than a single conversation does, as far as these differ.
    let each = (relevant / personas).max(1.0);
    Some(share * ((each - 1.0) * harm_icc + 1.0) / each)
}

fn by_size(comparison: &Comparison, finding: &Finding, rise: f64) -> bool {
    let Comparison { personas, relevant, rate, harm_icc, standard_error } = *comparison;
    let variance = |rate: f64| rate * (1.0 - rate);
    let per_variance =
        if variance(rate) > 0.0 { standard_error.powi(2) / (2.0 * variance(rate)) } else { 0.0 };
    // Data in which nothing differs have no spread to learn from; what is known of conversations then stands in.
    let per_variance = per_variance.max((1.0 - harm_icc) / relevant);
    let grown = (variance(rate + rise) - variance(rate)).max(0.0) * per_variance;
    let spread = (standard_error.powi(2) + grown).sqrt();
    let of_signs = (spread.powi(2) + rise.powi(2) / personas).sqrt();
    let (alpha, power) =
        (normal_quantile(1.0 - finding.alpha.get()), normal_quantile(finding.power.get()) * spread);
    rise >= alpha * of_signs + power && rise >= finding.floor + power
}
