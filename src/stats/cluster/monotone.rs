//! Bounds that no additional harm can move the wrong way.
//!
//! An estimated design effect is not monotone in harm: one more harmful rating can make harm look more evenly spread,
//! lower the design effect, and with it the upper bound; and at `min_harms` the rule drops the planned design effect
//! altogether. A verdict computed from such a bound could improve because a conversation turned harmful. So the
//! decision takes the least bound above the rule's that is monotone: the largest bound that the rule gives to any part
//! of the harms observed. In ordinary data that is the bound of all of them, and nothing changes.

use super::{DesignEffectRule, Inference, clustered};
use crate::stats::interval::{lower_bound, upper_bound};
use crate::stats::value::{Confidence, Count, EffectiveCount, Interval};

/// One-sided bounds, each at the confidence, that never fall when a harmless conversation turns harmful.
///
/// Both ends are at least those of [`super::Clustered::bounds`]. `None` without conversations.
pub fn decision_bounds(
    per_persona: &[Count],
    inference: Inference,
    confidence: Confidence,
) -> Option<Interval> {
    let whole = clustered(per_persona, inference)?;
    let mut bounds = Interval {
        lower: lower_bound(whole.effective, confidence)?,
        upper: upper_bound(whole.effective, confidence)?,
    };
    let Inference::UsersLikeThese(rule) = inference else {
        return Some(bounds);
    };
    let present: Vec<Count> = per_persona.iter().copied().filter(|count| count.total() > 0).collect();
    let total = whole.pooled.total();
    for harms in (0..whole.pooled.successes()).rev() {
        let part = Part { present: &present, harms, total };
        let at = |design_effect: f64| EffectiveCount::shrunk(Count::unchecked(harms, total), design_effect);
        let planned = rule.planned(whole.mean_cluster_size);
        let most = part.design_effect(part.largest_residuals(), rule, planned);
        bounds.upper = bounds.upper.max(upper_bound(at(most), confidence)?);
        let least = part.design_effect(part.smallest_residuals(), rule, planned);
        bounds.lower = bounds.lower.max(lower_bound(at(least), confidence)?);
    }
    Some(bounds)
}

/// All ways to keep `harms` of the harms observed and call the others harmless.
struct Part<'a> {
    present: &'a [Count],
    harms: u64,
    total: u64,
}

impl Part<'_> {
    fn rate(&self) -> f64 {
        self.harms as f64 / self.total as f64
    }

    /// The rule's design effect for a sum of squared residuals.
    fn design_effect(&self, residuals: f64, rule: DesignEffectRule, planned: f64) -> f64 {
        let rate = self.rate();
        let personas = self.present.len() as f64;
        let defined = self.present.len() >= 2 && self.harms > 0 && self.harms < self.total;
        let estimated = defined
            .then(|| personas / (personas - 1.0) * residuals / (self.total as f64 * rate * (1.0 - rate)));
        rule.used(self.harms, estimated, planned)
    }

    /// Sum of `(p n_i)^2`, the part of the residuals that does not depend on which harms are kept.
    fn constant(&self) -> f64 {
        self.present.iter().map(|count| (self.rate() * count.total() as f64).powi(2)).sum()
    }

    /// An upper bound of `sum (x_i - p n_i)^2` over `0 <= x_i <= k_i` with the given sum.
    ///
    /// The sum is convex in `x`, so each term lies below its chord `x_i (k_i - 2 p n_i)`; maximising the chords is a
    /// fractional knapsack. The bound rises with every `k_i`, and is exact when all harms are kept.
    fn largest_residuals(&self) -> f64 {
        let rate = self.rate();
        let mut worth: Vec<(f64, u64)> = self
            .present
            .iter()
            .filter(|count| count.successes() > 0)
            .map(|count| {
                let chord = (2.0 * rate).mul_add(-(count.total() as f64), count.successes() as f64);
                (chord, count.successes())
            })
            .collect();
        worth.sort_by(|left, right| right.0.total_cmp(&left.0));
        let mut left = self.harms;
        let mut sum = self.constant();
        for (chord, available) in worth {
            let taken = available.min(left);
            sum += chord * taken as f64;
            left -= taken;
        }
        sum
    }

    /// The least `sum (x_i - p n_i)^2` over whole `0 <= x_i <= k_i` with the given sum: a separable convex allocation,
    /// solved exactly by adding each harm where it costs least.
    fn smallest_residuals(&self) -> f64 {
        let rate = self.rate();
        // The j-th harm kept in persona i costs 2 j - 1 - 2 p n_i; the cheapest `harms` of all of them form a valid
        // choice, because the costs within a persona rise.
        let mut costs: Vec<f64> = self
            .present
            .iter()
            .flat_map(|count| {
                let slope = 2.0 * rate * count.total() as f64;
                (1..=count.successes()).map(move |j| 2.0f64.mul_add(j as f64, -1.0) - slope)
            })
            .collect();
        let kept = usize::try_from(self.harms).unwrap_or(usize::MAX);
        if kept < costs.len() {
            // Their order does not matter, and there are as many calls of this as there are harms.
            costs.select_nth_unstable_by(kept, f64::total_cmp);
        }
        self.constant() + costs.into_iter().take(kept).sum::<f64>()
    }
}
