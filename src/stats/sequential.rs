//! May the sweep stop before it is complete?
//!
//! Curtailment stops when no way of finishing can change the verdict: it costs nothing, statistically. The e-process
//! stops on evidence alone and passes earlier than curtailment can, at some cost in power; it is opt-in.
//!
//! All of it assumes that conversations arrive in an order that does not depend on their outcome: a seeded shuffle
//! in rounds, each persona once before any comes again, not the order in which they happen to finish.

use super::cluster::{DesignEffectRule, largest_design_effect};
use super::interval::{lower_bound, upper_bound};
use super::sign_flip::{IncompletePersona, PersonaDelta, missing_data_bounds, smallest_attainable};
use super::value::{Alpha, Confidence, Count, EffectiveCount, Exactness, Interval, StatsError};

mod e_process;

pub use e_process::{EValues, e_values};

/// How far an unfinished sweep has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Harmful of relevant conversations so far.
    pub judged: Count,
    /// Planned conversations without a rating. Each counts as relevant: one that turns out Not Relevant only moves the
    /// bounds further the way that was certain.
    pub remaining: u64,
}

/// The design effects the finished sweep may be evaluated with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DesignEffectRange {
    low: f64,
    high: f64,
}

impl DesignEffectRange {
    /// The evaluation uses exactly this design effect, for instance the planned one. At least 1.
    ///
    /// # Errors
    /// [`StatsError::NotPositive`] for anything below 1 or not finite.
    pub fn fixed(design_effect: f64) -> Result<Self, StatsError> {
        if design_effect.is_finite() && design_effect >= 1.0 {
            Ok(Self { low: design_effect, high: design_effect })
        } else {
            Err(StatsError::NotPositive(design_effect))
        }
    }

    /// The evaluation uses whatever `rule` makes of the finished data, with at least `personas` personas that have a
    /// conversation and at most `largest_cluster` conversations each. Certificates then hold for
    /// [`decision_bounds`](super::cluster::decision_bounds), and come later than with a fixed design effect.
    pub fn any(rule: DesignEffectRule, personas: usize, largest_cluster: u64) -> Self {
        let planned = rule.planned(largest_cluster as f64);
        // The factor N/(N-1) only falls as more personas turn up; two are the least with an estimate.
        let estimated = largest_design_effect(personas.max(2), largest_cluster).unwrap_or(1.0);
        Self { low: 1.0, high: planned.max(estimated) }
    }
}

/// What is certain about an absolute limit although the sweep is unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// Nothing yet.
    Open,
    /// The lower bound will be above the limit.
    Fails,
    /// The upper bound will be above the limit: fail or inconclusive, no longer pass.
    CannotPass,
    /// The upper bound will be at or below the limit.
    Passes,
}

/// Deterministic curtailment of an absolute limit on the harm rate.
///
/// Bounds are one-sided Clopper-Pearson on the effective sample size. They are monotone in harms and in harmless
/// conversations, so the two extreme completions decide: all that remain harmless, and all harmful. (Stochastic
/// curtailment with certainty: Lan, Simon and Halperin 1982, Commun. Statist. C 1, 207-219.)
pub fn curtail(
    progress: Progress,
    limit: f64,
    confidence: Confidence,
    design_effect: DesignEffectRange,
) -> Certainty {
    let Progress { judged, remaining } = progress;
    let total = judged.total().saturating_add(remaining);
    let harmless = Count::new(judged.successes(), total);
    let harmful = Count::new(judged.successes().saturating_add(remaining), total);
    let (Ok(harmless), Ok(harmful)) = (harmless, harmful) else {
        return Certainty::Open;
    };
    let at = EffectiveCount::shrunk;
    if lower_bound(at(harmless, design_effect.high), confidence).is_some_and(|lower| lower > limit) {
        Certainty::Fails
    } else if upper_bound(at(harmless, design_effect.low), confidence).is_some_and(|upper| upper > limit) {
        Certainty::CannotPass
    } else if judged.total() > 0
        && upper_bound(at(harmful, design_effect.high), confidence).is_some_and(|upper| upper <= limit)
    {
        Certainty::Passes
    } else {
        Certainty::Open
    }
}

/// What a regression rule asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegressionRule {
    /// Level of the adjusted p-value.
    pub alpha: Alpha,
    /// Hypotheses tested together, for the correction; at least 1.
    pub family: usize,
    /// Which p-value decides.
    pub exactness: Exactness,
    /// Smallest pooled rate increase that counts.
    pub floor: f64,
}

/// What is certain about a regression although the candidate sweep is unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegressionCertainty {
    /// Nothing yet.
    Open,
    /// The rule will find a regression, under any correction for the family (Bonferroni, Holm, Tarone-Holm).
    Regresses,
    /// The rule will not find one.
    CannotRegress,
}

/// Deterministic curtailment of the regression test on a known baseline.
///
/// Each unfinished persona's difference lies between "everything left is harmless" and "everything left is harmful", and
/// the p-value is monotone in each difference, so two evaluations bound it for every way to finish.
pub fn curtail_regression(personas: &[IncompletePersona], rule: &RegressionRule) -> RegressionCertainty {
    let bounds = missing_data_bounds(personas);
    let difference = difference_range(personas);
    let shared = rule.alpha.get() / rule.family.max(1) as f64;
    let largest = bounds.best.greater.get(rule.exactness);
    let smallest = bounds.worst.greater.get(rule.exactness);
    // Tarone's selection keeps a test only if its smallest attainable p-value fits; that grows with fewer informative
    // personas, of which these are the ones that cannot become equal any more.
    let testable = smallest_attainable(certainly_informative(personas)).exact <= shared;
    if largest <= shared && testable && difference.is_some_and(|range| range.lower >= rule.floor) {
        RegressionCertainty::Regresses
    } else if smallest > rule.alpha.get() || difference.is_none_or(|range| range.upper < rule.floor) {
        RegressionCertainty::CannotRegress
    } else {
        RegressionCertainty::Open
    }
}

/// Personas whose two runs differ however the missing conversations turn out.
fn certainly_informative(personas: &[IncompletePersona]) -> usize {
    let sign = |counts| PersonaDelta::between(counts).map_or(0.0, PersonaDelta::get);
    personas
        .iter()
        .filter(|persona| sign(persona.best_case()) > 0.0 || sign(persona.worst_case()) < 0.0)
        .count()
}

/// Range of the pooled rate difference over all ways to finish, over the personas relevant in both runs.
///
/// `None` when no persona can be relevant in both.
pub fn difference_range(personas: &[IncompletePersona]) -> Option<Interval> {
    let can_pair = |persona: &&IncompletePersona| {
        let best = persona.best_case();
        best.candidate.total() > 0 && best.baseline.total() > 0
    };
    // A persona with nothing relevant yet in one of the runs may still drop out, and take its counts along.
    let certain = |persona: &IncompletePersona| {
        persona.candidate.judged.total() > 0 && persona.baseline.judged.total() > 0
    };
    let paired: Vec<&IncompletePersona> = personas.iter().filter(can_pair).collect();
    let pool = |of: &dyn Fn(&IncompletePersona) -> Count, keep: Keep| {
        let (fixed, optional): (Vec<_>, Vec<_>) = paired.iter().partition(|persona| certain(persona));
        let fixed: Count = fixed.into_iter().map(of).sum();
        let optional = optional.into_iter().map(of).collect();
        extreme_rate(fixed, optional, keep)
    };
    Some(Interval {
        lower: pool(&|p| p.best_case().candidate, Keep::Lowest)?
            - pool(&|p| p.best_case().baseline, Keep::Highest)?,
        upper: pool(&|p| p.worst_case().candidate, Keep::Highest)?
            - pool(&|p| p.worst_case().baseline, Keep::Lowest)?,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Lowest,
    Highest,
}

/// The extreme pooled rate of `fixed` with any part of `optional`: the rate moves as long as the next most extreme
/// count is more extreme than the pool.
fn extreme_rate(fixed: Count, mut optional: Vec<Count>, keep: Keep) -> Option<f64> {
    let rate = |count: &Count| count.rate().unwrap_or(0.0);
    optional.retain(|count| count.total() > 0);
    optional.sort_by(|left, right| match keep {
        Keep::Lowest => rate(left).total_cmp(&rate(right)),
        Keep::Highest => rate(right).total_cmp(&rate(left)),
    });
    let mut pool = fixed;
    for count in optional {
        let more_extreme = match keep {
            Keep::Lowest => rate(&count) < rate(&pool),
            Keep::Highest => rate(&count) > rate(&pool),
        };
        if pool.total() == 0 || more_extreme {
            pool = pool.plus(count);
        }
    }
    pool.rate()
}

#[cfg(test)]
mod tests;
