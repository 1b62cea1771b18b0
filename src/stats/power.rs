//! What a sweep of a given size can detect or certify, before it runs and after.
//!
//! Approximate where it says so: planning needs one digit, the verdict itself never uses these numbers.

use super::interval::{lower_bound, upper_bound};
use super::value::{Confidence, Count, EffectiveCount, StatsError};

mod detection;

pub use detection::{Comparison, Finding, smallest_detectable};

/// Conversations beyond which no plan goes; searches stop here.
const MOST_CONVERSATIONS: u64 = 10_000_000;
/// Conversations of a persona beyond which it is as good as sure that one is relevant.
const MOST_FACTORS: u64 = 10_000;

/// A planned pair of sweeps, candidate and baseline of the same shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannedSweep {
    /// Personas.
    pub personas: u64,
    /// Conversations per persona in each sweep.
    pub conversations_per_persona: u64,
    /// What is assumed about the chatbot.
    pub assumptions: Assumptions,
}

/// Assumed behaviour of a chatbot in one dimension. All values in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    harm_rate: f64,
    harm_icc: f64,
    not_relevant_rate: f64,
    not_relevant_icc: f64,
}

impl Assumptions {
    /// Harm rate among relevant conversations and share of Not Relevant, each with its intra-persona correlation.
    ///
    /// # Errors
    /// [`StatsError::NotAProbability`].
    pub fn new(
        harm_rate: f64,
        harm_icc: f64,
        not_relevant_rate: f64,
        not_relevant_icc: f64,
    ) -> Result<Self, StatsError> {
        for value in [harm_rate, harm_icc, not_relevant_rate, not_relevant_icc] {
            if !(0.0..=1.0).contains(&value) {
                return Err(StatsError::NotAProbability(value));
            }
        }
        Ok(Self { harm_rate, harm_icc, not_relevant_rate, not_relevant_icc })
    }

    /// Harm rate among relevant conversations.
    pub const fn harm_rate(self) -> f64 {
        self.harm_rate
    }

    /// Correlation of harm within a persona.
    pub const fn harm_icc(self) -> f64 {
        self.harm_icc
    }

    /// Share of conversations expected to be Not Relevant.
    pub const fn not_relevant_rate(self) -> f64 {
        self.not_relevant_rate
    }
}

impl Default for Assumptions {
    /// The published battery the reference calibrates on, Guides to Human Care: 14.7 % harmful with correlation 0.5,
    /// 18.5 % Not Relevant with correlation 0.44.
    fn default() -> Self {
        Self { harm_rate: 0.147, harm_icc: 0.5, not_relevant_rate: 0.185, not_relevant_icc: 0.44 }
    }
}

impl PlannedSweep {
    /// Conversations of one sweep.
    pub const fn conversations(&self) -> u64 {
        self.personas.saturating_mul(self.conversations_per_persona)
    }

    /// Relevant conversations of one sweep to expect.
    pub fn relevant(&self) -> f64 {
        self.conversations() as f64 * (1.0 - self.assumptions.not_relevant_rate)
    }

    /// Design effect to plan with: `1 + (m - 1) icc`.
    pub fn design_effect(&self) -> f64 {
        (self.conversations_per_persona.max(1) - 1) as f64 * self.assumptions.harm_icc + 1.0
    }

    /// Standard error of the pooled rate difference when nothing changed. `None` without conversations or when nothing
    /// is relevant.
    ///
    /// The same personas play in both sweeps, so their propensity cancels except where a persona is relevant in one
    /// sweep more often than in the other: `2 mu (1 - mu) (1 - icc) / n + mu (1 - mu) icc sum (n_c,i - n_b,i)^2 / n^2`
    /// with `n` relevant conversations and `E (n_c,i - n_b,i)^2 = 2 m q (1 - q) (1 - icc_q)`.
    pub fn standard_error(&self) -> Option<f64> {
        let n = self.relevant();
        if n <= 0.0 {
            return None;
        }
        let Assumptions { harm_rate, harm_icc, not_relevant_rate, not_relevant_icc } = self.assumptions;
        let harm_variance = harm_rate * (1.0 - harm_rate);
        let within = 2.0 * harm_variance * (1.0 - harm_icc) / n;
        let unbalanced = 2.0
            * self.conversations() as f64
            * not_relevant_rate
            * (1.0 - not_relevant_rate)
            * (1.0 - not_relevant_icc);
        Some((within + harm_variance * harm_icc * unbalanced / (n * n)).sqrt())
    }

    /// Personas to expect with a relevant conversation in both sweeps.
    ///
    /// `1 - 2 E q^m + E q^2m`, with the moments of a beta distribution of the share `q` of Not Relevant conversations.
    pub fn paired_personas(&self) -> f64 {
        let Assumptions { not_relevant_rate: mean, not_relevant_icc: icc, .. } = self.assumptions;
        let never_in = |conversations: u64| -> f64 {
            let later = |i: u64| {
                let i = i as f64;
                mean.mul_add(1.0 - icc, i * icc) / ((i - 1.0).mul_add(icc, 1.0))
            };
            (1..conversations).take_while(|i| *i < MOST_FACTORS).map(later).product::<f64>() * mean
        };
        let each = self.conversations_per_persona;
        if each == 0 {
            return 0.0;
        }
        self.personas as f64 * (1.0 - 2.0 * never_in(each) + never_in(each.saturating_mul(2))).max(0.0)
    }

    /// Smallest increase of the harm rate this sweep finds, see [`smallest_detectable`]. `None` when no increase up to a
    /// rate of 1 would do.
    pub fn smallest_detectable(&self, finding: &Finding) -> Option<f64> {
        let comparison = Comparison {
            personas: self.paired_personas(),
            relevant: self.relevant(),
            rate: self.assumptions.harm_rate,
            harm_icc: self.assumptions.harm_icc,
            standard_error: self.standard_error()?,
        };
        smallest_detectable(&comparison, finding)
    }
}

/// Personas a sweep with `conversations_per_persona` needs to find `effect`, other things as assumed. `None` when the
/// effect is not above zero or no sweep of a thinkable size finds it.
pub fn personas_needed(
    effect: f64,
    conversations_per_persona: u64,
    assumptions: Assumptions,
    finding: &Finding,
) -> Option<u64> {
    if !effect.is_finite() || effect <= 0.0 || conversations_per_persona == 0 {
        return None;
    }
    let detects = |personas: u64| {
        let sweep = PlannedSweep { personas, conversations_per_persona, assumptions };
        sweep.smallest_detectable(finding).is_some_and(|smallest| smallest <= effect)
    };
    smallest_where(1, MOST_CONVERSATIONS / conversations_per_persona, detects)
}

/// Relevant, independent conversations needed before `harms` harms still leave the upper bound at or below `limit`.
/// Multiply by the design effect for clustered ones. `None` when the limit is not within (0, 1) or out of reach.
pub fn relevant_needed(harms: u64, limit: f64, confidence: Confidence) -> Option<u64> {
    if !(limit > 0.0 && limit < 1.0) {
        return None;
    }
    smallest_where(harms.max(1), MOST_CONVERSATIONS, |n| {
        Count::new(harms, n).ok().and_then(|count| upper_bound(count, confidence)).is_some_and(|u| u <= limit)
    })
}

/// Most harms with which `relevant` conversations at this design effect still certify `limit` (upper bound at or below
/// it). `None`: not even zero harms do, this size cannot pass.
pub fn most_harms_passing(
    relevant: u64,
    design_effect: f64,
    limit: f64,
    confidence: Confidence,
) -> Option<u64> {
    let passes = |harms: u64| {
        bound(harms, relevant, design_effect, |count| upper_bound(count, confidence))
            .is_some_and(|u| u <= limit)
    };
    let first_not_passing = smallest_where(0, relevant, |harms| !passes(harms));
    match first_not_passing {
        Some(0) => None,
        Some(harms) => Some(harms - 1),
        None => (relevant > 0).then_some(relevant),
    }
}

/// Upper bound when no harm was seen in `effective_total` conversations: `1 - (1 - confidence)^(1/n)`, the exact form of
/// the rule of three. `None` without conversations.
pub fn zero_harm_upper_bound(effective_total: f64, confidence: Confidence) -> Option<f64> {
    (effective_total.is_finite() && effective_total > 0.0)
        .then(|| -(confidence.miss().ln() / effective_total).exp_m1())
}

/// What more conversations at the observed rate would do to an inconclusive bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// This many more relevant conversations at the observed rate would bring the upper bound to the limit.
    Pass {
        /// More relevant conversations.
        more: u64,
    },
    /// This many more would bring the lower bound above the limit.
    Fail {
        /// More relevant conversations.
        more: u64,
    },
    /// The observed rate is so close to the limit that no thinkable size settles it.
    OutOfReach,
}

/// How many more relevant conversations at the observed rate and design effect would settle `limit`; zero when it is
/// settled. `None` without conversations.
pub fn to_settle(count: Count, design_effect: f64, limit: f64, confidence: Confidence) -> Option<Settlement> {
    let rate = count.rate()?;
    let grown = |more: u64| {
        let total = (count.total() + more) as f64 / design_effect.max(1.0);
        EffectiveCount::new((rate * total).min(total), total).ok()
    };
    let passes = |more: u64| grown(more).and_then(|c| upper_bound(c, confidence)).is_some_and(|u| u <= limit);
    let fails = |more: u64| grown(more).and_then(|c| lower_bound(c, confidence)).is_some_and(|l| l > limit);
    let settled = if rate <= limit {
        smallest_where(0, MOST_CONVERSATIONS, passes).map(|more| Settlement::Pass { more })
    } else {
        smallest_where(0, MOST_CONVERSATIONS, fails).map(|more| Settlement::Fail { more })
    };
    Some(settled.unwrap_or(Settlement::OutOfReach))
}

fn bound(
    harms: u64,
    relevant: u64,
    design_effect: f64,
    of: impl Fn(EffectiveCount) -> Option<f64>,
) -> Option<f64> {
    let count = Count::new(harms, relevant).ok()?;
    of(EffectiveCount::shrunk(count, design_effect.max(1.0)))
}

/// Smallest value in `[low, high]` for which a predicate that switches once from false to true holds.
fn smallest_where(low: u64, high: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    if low > high || !holds(high) {
        return None;
    }
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

#[cfg(test)]
mod tests;
