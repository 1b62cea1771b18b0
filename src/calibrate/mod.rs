//! How far humans agree, and how far a judge agrees with them: what a score can be trusted to, and no further.
//!
//! | module | does |
//! |---|---|
//! | [`ratings`] | reads a file of human ratings |
//! | [`humans`] | agreement among raters: all of them, and each group alone |
//! | [`judge`] | a judge against the majority of the humans and against each of them |
//!
//! Not Relevant is a category of its own throughout. Intervals resample whole conversations, because ratings of one
//! conversation resemble each other.

pub mod humans;
pub mod judge;
pub mod ratings;

use std::collections::BTreeMap;

use serde::Serialize;

pub use ratings::read_ratings;

use crate::rating::Rating;
use crate::stats::agreement::{Ratings, Resampling, Weights, agreement, bootstrap};

/// Version tag of the JSON form.
pub const SCHEMA: &str = "vera-gate/calibration/v1";

/// Who rated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rater {
    /// Their id in the file.
    pub id: String,
    /// Their group, such as `clinician`, when the file names one.
    pub group: Option<String>,
}

/// One conversation with all its ratings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatedConversation {
    /// Its id without stray characters.
    pub id: String,
    /// Per dimension, per rater; `None` where a rater gave none.
    pub votes: Vec<Vec<Option<Rating>>>,
}

/// A file of human ratings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HumanRatings {
    /// Who rated, by id.
    pub raters: Vec<Rater>,
    /// The dimensions as the columns name them.
    pub dimensions: Vec<String>,
    /// What was rated, by id.
    pub conversations: Vec<RatedConversation>,
}

impl HumanRatings {
    /// The groups by name with the positions of their raters.
    pub fn groups(&self) -> BTreeMap<&str, Vec<usize>> {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, rater) in self.raters.iter().enumerate() {
            if let Some(group) = &rater.group {
                groups.entry(group).or_default().push(index);
            }
        }
        groups
    }
}

/// A coefficient with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The coefficient; 1 is full agreement, 0 what chance gives.
    pub value: f64,
    /// Lower end of the bootstrap interval; `None` when too few resamples define the coefficient.
    pub lower: Option<f64>,
    /// Upper end.
    pub upper: Option<f64>,
}

/// Agreement on a set of items.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Coefficients {
    /// Items (a dimension of a conversation) with at least two ratings.
    pub items: u64,
    /// Share of pairs of ratings that are the same.
    pub percent: Option<Estimate>,
    /// Krippendorff's alpha, nominal.
    pub alpha: Option<Estimate>,
    /// Gwet's AC1.
    pub ac1: Option<Estimate>,
}

/// What the intervals were made with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Intervals {
    /// Their confidence.
    pub confidence: f64,
    /// Resamples of conversations.
    pub resamples: u32,
    /// Seed of the generator.
    pub seed: u64,
}

/// The whole calibration: the content of the JSON form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Conversations rated by humans.
    pub conversations: u64,
    /// Who rated.
    pub raters: Vec<Rater>,
    /// Ratings given.
    pub ratings: u64,
    /// Ratings that rows of the file leave out.
    pub blank: u64,
    /// How the intervals were made.
    pub intervals: Intervals,
    /// All raters together.
    pub humans: humans::Panel,
    /// Each group alone, where two of its members rated the same conversation.
    pub groups: Vec<humans::Panel>,
    /// How well one human agrees with the others.
    pub yardstick: Vec<humans::Yardstick>,
    /// Whether one rater settles what two others disagree on.
    pub adjudication: Option<humans::Adjudication>,
    /// The judges.
    pub judges: Vec<judge::JudgeReport>,
}

/// Computes everything that the human ratings tell by themselves.
pub fn calibrate(ratings: &HumanRatings, resampling: Resampling) -> Calibration {
    let everybody: Vec<usize> = (0..ratings.raters.len()).collect();
    let votes = || ratings.conversations.iter().flat_map(|c| &c.votes);
    let rows: usize = ratings
        .conversations
        .iter()
        .map(|c| {
            everybody.iter().filter(|&&r| c.votes.iter().any(|d| matches!(d.get(r), Some(Some(_))))).count()
        })
        .sum();
    let given = votes().flatten().flatten().count();
    Calibration {
        schema: SCHEMA,
        conversations: ratings.conversations.len() as u64,
        raters: ratings.raters.clone(),
        ratings: given as u64,
        blank: (rows * ratings.dimensions.len() - given) as u64,
        intervals: Intervals {
            confidence: resampling.confidence.get(),
            resamples: resampling.resamples,
            seed: resampling.seed,
        },
        humans: humans::panel(ratings, None, &everybody, resampling),
        groups: ratings
            .groups()
            .into_iter()
            .filter(|(_, members)| members.len() >= 2 && members.len() < everybody.len())
            .map(|(group, members)| humans::panel(ratings, Some(group), &members, resampling))
            .filter(|panel| panel.pooled.items > 0)
            .collect(),
        yardstick: humans::yardstick(ratings),
        adjudication: humans::adjudication(ratings),
        judges: Vec::new(),
    }
}

/// The items of one conversation as category numbers, one row per dimension with one place per rater.
type Unit = Vec<Vec<Option<usize>>>;

/// How ratings become categories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Categories {
    /// The four ratings.
    Ratings,
    /// High Potential for Harm, or anything else.
    HarmOrNot,
}

impl Categories {
    fn number(self) -> usize {
        match self {
            Self::Ratings => Rating::ALL.len(),
            Self::HarmOrNot => 2,
        }
    }

    fn of(self, rating: Rating) -> usize {
        match self {
            Self::Ratings => Rating::ALL.iter().position(|r| *r == rating).unwrap_or(0),
            Self::HarmOrNot => usize::from(rating == Rating::HighPotentialForHarm),
        }
    }
}

/// The three coefficients over conversations, with their intervals.
fn coefficients(units: &[Unit], categories: Categories, resampling: Resampling) -> Coefficients {
    let table = |units: &[&Unit]| {
        let items: Vec<Vec<Option<usize>>> = units.iter().flat_map(|unit| unit.iter().cloned()).collect();
        Ratings::new(items, categories.number()).ok()
    };
    let all: Vec<&Unit> = units.iter().collect();
    let Some(whole) = table(&all) else {
        return Coefficients { items: 0, percent: None, alpha: None, ac1: None };
    };
    let estimate = |pick: fn(&crate::stats::agreement::Agreement) -> Option<f64>| {
        let of = |table: &Ratings| pick(&agreement(table, Weights::Identity));
        of(&whole).map(|value| {
            let interval = bootstrap(units, resampling, |drawn| table(drawn).as_ref().and_then(of));
            Estimate { value, lower: interval.map(|i| i.lower), upper: interval.map(|i| i.upper) }
        })
    };
    Coefficients {
        items: whole.items_rated_twice() as u64,
        percent: estimate(|a| a.percent),
        alpha: estimate(|a| a.krippendorff),
        ac1: estimate(|a| a.gwet),
    }
}

#[cfg(test)]
mod tests;
