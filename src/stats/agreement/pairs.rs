//! Two raters at a time.

use super::{Matrix, Ratings, Weights, corrected};

/// Agreement of two raters on the items both rated.
#[derive(Debug, Clone, PartialEq)]
pub struct PairAgreement {
    /// Position of the first rater.
    pub first: usize,
    /// Position of the second rater.
    pub second: usize,
    /// Items both rated.
    pub items: u64,
    /// Items both rated the same.
    pub agreeing: u64,
    /// Cohen's kappa, weighted; Cohen (1960), Educ. Psychol. Meas. 20, 37-46, and (1968), Psychol. Bull. 70, 213-220.
    /// `None` when both used one and the same category only.
    pub kappa: Option<f64>,
    /// Items by category of the first rater (rows) and of the second (columns).
    pub table: Vec<Vec<u64>>,
}

impl PairAgreement {
    /// Share of items rated the same.
    pub fn percent(&self) -> f64 {
        self.agreeing as f64 / self.items as f64
    }
}

/// Every pair of raters with an item in common, first rater before second.
pub fn pair_agreement(ratings: &Ratings, weights: Weights) -> Vec<PairAgreement> {
    (0..ratings.raters)
        .flat_map(|first| (first + 1..ratings.raters).map(move |second| (first, second)))
        .filter_map(|(first, second)| pair(ratings, weights, first, second))
        .collect()
}

fn pair(ratings: &Ratings, weights: Weights, first: usize, second: usize) -> Option<PairAgreement> {
    let size = ratings.categories;
    let mut table = vec![vec![0u64; size]; size];
    let (mut items, mut agreeing) = (0, 0);
    for row in &ratings.items {
        let of = |rater: usize| row.get(rater).copied().flatten();
        let (Some(left), Some(right)) = (of(first), of(second)) else { continue };
        items += 1;
        agreeing += u64::from(left == right);
        if let Some(cell) = table.get_mut(left).and_then(|line| line.get_mut(right)) {
            *cell += 1;
        }
    }
    (items > 0).then(|| PairAgreement {
        first,
        second,
        items,
        agreeing,
        kappa: kappa(&table, items, &weights.matrix(size)),
        table,
    })
}

fn kappa(table: &[Vec<u64>], items: u64, weight: &Matrix) -> Option<f64> {
    let n = items as f64;
    let rows: Vec<f64> = table.iter().map(|line| line.iter().sum::<u64>() as f64 / n).collect();
    let columns: Vec<f64> = (0..table.len())
        .map(|column| table.iter().filter_map(|line| line.get(column)).sum::<u64>() as f64 / n)
        .collect();
    let observed: f64 = weight
        .rows()
        .zip(table)
        .map(|(weights, line)| weights.iter().zip(line).map(|(w, count)| w * *count as f64 / n).sum::<f64>())
        .sum();
    corrected(observed, weight.form(&rows, &columns))
}

/// Mean kappa of the pairs for which it is defined, weighted by their items. `None` when there is none.
pub fn weighted_mean_kappa(pairs: &[PairAgreement]) -> Option<f64> {
    let (sum, items) = pairs.iter().fold((0.0, 0.0), |(sum, items), pair| match pair.kappa {
        Some(kappa) => (kappa.mul_add(pair.items as f64, sum), items + pair.items as f64),
        None => (sum, items),
    });
    (items > 0.0).then(|| sum / items)
}
