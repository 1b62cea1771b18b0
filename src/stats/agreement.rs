//! How far raters agree: judges among themselves, clinicians among themselves, judges with clinicians.
//!
//! No single coefficient tells the story. Where one category takes nearly all ratings, alpha and kappa fall to zero
//! although raters agree on almost everything, and AC1 does not: both belong in a report, and neither gates a build.
//!
//! Missing ratings are handled as in Gwet (2014), *Handbook of Inter-Rater Reliability*, 4th ed., chapters 2 to 5, the
//! source of the R package irrCAC: agreement comes from items with at least two ratings, category shares from every
//! rating. A coefficient that is not defined (all ratings in one category, no item rated twice) is `None`.

use thiserror::Error;

mod bootstrap;
mod pairs;

pub use bootstrap::{Resampling, bootstrap};
pub use pairs::{PairAgreement, pair_agreement, weighted_mean_kappa};

/// Why ratings cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RatingsError {
    /// Fewer than two categories leave nothing to disagree about.
    #[error("agreement needs at least two categories")]
    TooFewCategories,
    /// A rating outside the categories.
    #[error("item {item}: category {category} of {categories}")]
    UnknownCategory {
        /// Position of the item.
        item: usize,
        /// Category found, from 0.
        category: usize,
        /// Number of categories.
        categories: usize,
    },
    /// Items with different numbers of raters.
    #[error("item {item} has {found} places for raters, the first has {expected}")]
    Ragged {
        /// Position of the item.
        item: usize,
        /// Places found.
        found: usize,
        /// Places of the first item.
        expected: usize,
    },
}

/// Ratings of items by raters; categories are numbered from 0, in their order where they have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ratings {
    items: Vec<Vec<Option<usize>>>,
    raters: usize,
    categories: usize,
}

impl Ratings {
    /// One row per item with one place per rater, `None` where a rater did not rate.
    ///
    /// # Errors
    /// [`RatingsError`].
    pub fn new(items: Vec<Vec<Option<usize>>>, categories: usize) -> Result<Self, RatingsError> {
        if categories < 2 {
            return Err(RatingsError::TooFewCategories);
        }
        let raters = items.first().map_or(0, Vec::len);
        for (item, row) in items.iter().enumerate() {
            if row.len() != raters {
                return Err(RatingsError::Ragged { item, found: row.len(), expected: raters });
            }
            if let Some(&category) = row.iter().flatten().find(|category| **category >= categories) {
                return Err(RatingsError::UnknownCategory { item, category, categories });
            }
        }
        Ok(Self { items, raters, categories })
    }

    /// Number of items.
    pub const fn items(&self) -> usize {
        self.items.len()
    }

    /// Number of raters.
    pub const fn raters(&self) -> usize {
        self.raters
    }

    /// Number of categories.
    pub const fn categories(&self) -> usize {
        self.categories
    }

    /// Ratings given.
    pub fn ratings(&self) -> usize {
        self.items.iter().flatten().flatten().count()
    }

    /// Items with at least two ratings.
    pub fn items_rated_twice(&self) -> usize {
        self.items.iter().filter(|row| row.iter().flatten().count() >= 2).count()
    }

    /// The items with at least `ratings` ratings, for instance those that every rater saw.
    #[must_use]
    pub fn with_at_least(&self, ratings: usize) -> Self {
        let enough = |row: &&Vec<Option<usize>>| row.iter().flatten().count() >= ratings;
        Self { items: self.items.iter().filter(enough).cloned().collect(), ..*self }
    }

    /// Ratings per category of one item.
    fn tally(&self, row: &[Option<usize>]) -> Vec<f64> {
        let mut counts = vec![0.0; self.categories];
        for category in row.iter().flatten() {
            if let Some(count) = counts.get_mut(*category) {
                *count += 1.0;
            }
        }
        counts
    }
}

/// Partial credit for near agreement on ordered categories. Gwet (2014), chapter 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// None: categories without an order.
    Identity,
    /// `1 - C(|i - j| + 1, 2) / C(q, 2)`.
    Ordinal,
    /// `1 - |i - j| / (q - 1)`.
    Linear,
    /// `1 - (i - j)^2 / (q - 1)^2`.
    Quadratic,
}

impl Weights {
    fn get(self, left: usize, right: usize, categories: usize) -> f64 {
        let distance = left.abs_diff(right) as f64;
        let span = categories as f64 - 1.0;
        match self {
            Self::Identity => f64::from(u8::from(left == right)),
            Self::Ordinal => 1.0 - distance * (distance + 1.0) / ((span + 1.0) * span),
            Self::Linear => 1.0 - distance / span,
            Self::Quadratic => 1.0 - (distance / span).powi(2),
        }
    }

    fn matrix(self, categories: usize) -> Matrix {
        Matrix::of(categories, |left, right| self.get(left, right, categories))
    }
}

/// Distance of categories in Krippendorff's alpha. Krippendorff (2011), *Computing Krippendorff's Alpha-Reliability*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Same or not.
    Nominal,
    /// By ranks: the ratings that lie between.
    Ordinal,
    /// Squared difference of the category numbers.
    Interval,
    /// `1 - weight`: alpha with the partial credit of the other coefficients.
    Weighted(Weights),
}

/// A square table over categories.
struct Matrix {
    size: usize,
    cells: Vec<f64>,
}

impl Matrix {
    fn of(size: usize, cell: impl Fn(usize, usize) -> f64) -> Self {
        let cells = (0..size * size).map(|i| cell(i / size, i % size)).collect();
        Self { size, cells }
    }

    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.cells.chunks(self.size)
    }

    /// `left' M right`.
    fn form(&self, left: &[f64], right: &[f64]) -> f64 {
        self.rows().zip(left).map(|(row, l)| l * dot(row, right)).sum()
    }

    /// `M vector`.
    fn times(&self, vector: &[f64]) -> Vec<f64> {
        self.rows().map(|row| dot(row, vector)).collect()
    }

    fn sum(&self) -> f64 {
        self.cells.iter().sum()
    }
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(l, r)| l * r).sum()
}

/// Chance-corrected agreement `(observed - chance) / (1 - chance)`, `None` when chance leaves no room.
fn corrected(observed: f64, chance: f64) -> Option<f64> {
    let room = 1.0 - chance;
    (room > 1e-12).then(|| (observed - chance) / room)
}

/// All coefficients of one table of ratings under one set of weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// Share of agreeing pairs, with partial credit under the weights. `None` when no item was rated twice.
    pub percent: Option<f64>,
    /// Gwet's AC1 (identity weights) or AC2. Gwet (2008), Br. J. Math. Stat. Psychol. 61, 29-48.
    pub gwet: Option<f64>,
    /// Krippendorff's alpha with distance `1 - weight`.
    pub krippendorff: Option<f64>,
    /// Fleiss' kappa. Fleiss (1971), Psychol. Bull. 76, 378-382.
    pub fleiss: Option<f64>,
    /// Conger's kappa, Cohen's for many raters. Conger (1980), Psychol. Bull. 88, 322-328. Raters who rated nothing are
    /// left out.
    pub conger: Option<f64>,
    /// Brennan and Prediger's coefficient, also Randolph's kappa. Brennan and Prediger (1981), Educ. Psychol. Meas. 41,
    /// 687-699.
    pub brennan_prediger: Option<f64>,
}

/// Computes every coefficient. A category nobody used still counts as a category.
pub fn agreement(ratings: &Ratings, weights: Weights) -> Agreement {
    let categories = ratings.categories as f64;
    let weight = weights.matrix(ratings.categories);
    let percent = percent_agreement(ratings, &weight);
    let shares = category_shares(ratings);
    let against = |chance: f64| percent.and_then(|observed| corrected(observed, chance));
    let gwet_chance = shares.as_ref().map(|shares| {
        let spread: f64 = shares.iter().map(|share| share * (1.0 - share)).sum();
        weight.sum() * spread / (categories * (categories - 1.0))
    });
    Agreement {
        percent,
        gwet: gwet_chance.and_then(against),
        krippendorff: krippendorff(ratings, Metric::Weighted(weights)),
        fleiss: shares.as_ref().and_then(|shares| against(weight.form(shares, shares))),
        conger: conger_chance(ratings, &weight).and_then(against),
        brennan_prediger: against(weight.sum() / (categories * categories)),
    }
}

/// Mean over items rated twice of the share of agreeing pairs.
fn percent_agreement(ratings: &Ratings, weight: &Matrix) -> Option<f64> {
    let per_item: Vec<f64> = ratings
        .items
        .iter()
        .filter_map(|row| {
            let counts = ratings.tally(row);
            let n: f64 = counts.iter().sum();
            (n >= 2.0).then(|| {
                let credited = weight.times(&counts);
                counts.iter().zip(credited).map(|(count, with)| count * (with - 1.0)).sum::<f64>()
                    / (n * (n - 1.0))
            })
        })
        .collect();
    (!per_item.is_empty()).then(|| per_item.iter().sum::<f64>() / per_item.len() as f64)
}

/// Mean over rated items of the share of each category.
fn category_shares(ratings: &Ratings) -> Option<Vec<f64>> {
    let mut shares = vec![0.0; ratings.categories];
    let mut items = 0.0;
    for row in &ratings.items {
        let counts = ratings.tally(row);
        let n: f64 = counts.iter().sum();
        if n > 0.0 {
            items += 1.0;
            for (share, count) in shares.iter_mut().zip(counts) {
                *share += count / n;
            }
        }
    }
    (items > 0.0).then(|| shares.into_iter().map(|share| share / items).collect())
}

/// Chance agreement from each rater's own shares: their mean product less the covariance between raters.
fn conger_chance(ratings: &Ratings, weight: &Matrix) -> Option<f64> {
    let per_rater: Vec<Vec<f64>> = (0..ratings.raters)
        .filter_map(|rater| {
            let own: Vec<Option<usize>> =
                ratings.items.iter().map(|row| row.get(rater).copied().flatten()).collect();
            let counts = ratings.tally(&own);
            let n: f64 = counts.iter().sum();
            (n > 0.0).then(|| counts.into_iter().map(|count| count / n).collect())
        })
        .collect();
    let raters = per_rater.len() as f64;
    if raters < 2.0 {
        return None;
    }
    let mut mean = vec![0.0; ratings.categories];
    for shares in &per_rater {
        for (slot, share) in mean.iter_mut().zip(shares) {
            *slot += share / raters;
        }
    }
    // sum_kl w_kl s_kl with s the sample covariance is the mean quadratic form of the deviations.
    let covariance: f64 = per_rater
        .iter()
        .map(|shares| {
            let deviation: Vec<f64> = shares.iter().zip(&mean).map(|(share, mean)| share - mean).collect();
            weight.form(&deviation, &deviation)
        })
        .sum::<f64>()
        / (raters - 1.0);
    Some(weight.form(&mean, &mean) - covariance / raters)
}

/// Krippendorff's alpha from the coincidence matrix of items rated at least twice: `1 - observed / expected
/// disagreement`.
///
/// Krippendorff (2011); Hayes and Krippendorff (2007), Commun. Methods Meas. 1, 77-89. `None` when no item was rated
/// twice or all ratings fall in one category.
pub fn krippendorff(ratings: &Ratings, metric: Metric) -> Option<f64> {
    let categories = ratings.categories;
    let mut coincidences = vec![0.0; categories * categories];
    for row in &ratings.items {
        let counts = ratings.tally(row);
        let n: f64 = counts.iter().sum();
        if n < 2.0 {
            continue;
        }
        for (line, left) in coincidences.chunks_mut(categories).zip(&counts) {
            for (cell, right) in line.iter_mut().zip(&counts) {
                *cell += left * right / (n - 1.0);
            }
        }
        for (category, count) in counts.iter().enumerate() {
            if let Some(cell) = coincidences.get_mut(category * categories + category) {
                *cell -= count / (n - 1.0);
            }
        }
    }
    let totals: Vec<f64> = coincidences.chunks(categories).map(|line| line.iter().sum()).collect();
    let n: f64 = totals.iter().sum();
    let distance = distances(metric, &totals);
    let observed = dot(&distance.cells, &coincidences);
    let expected = distance.form(&totals, &totals) / (n - 1.0);
    (n > 1.0 && expected > 0.0).then(|| 1.0 - observed / expected)
}

fn distances(metric: Metric, totals: &[f64]) -> Matrix {
    let categories = totals.len();
    Matrix::of(categories, |left, right| match metric {
        Metric::Nominal => f64::from(u8::from(left != right)),
        Metric::Interval => (left.abs_diff(right) as f64).powi(2),
        Metric::Ordinal => {
            let (low, high) = (left.min(right), left.max(right));
            let at = |category: usize| totals.get(category).copied().unwrap_or(0.0);
            let between: f64 = (low..=high).map(at).sum();
            (between - f64::midpoint(at(low), at(high))).powi(2)
        }
        Metric::Weighted(weights) => 1.0 - weights.get(left, right, categories),
    })
}

#[cfg(test)]
mod tests;
