//! Agreement among human raters.

use serde::Serialize;

use super::{Categories, Coefficients, HumanRatings, Unit, coefficients};
use crate::rating::Rating;
use crate::stats::Count;
use crate::stats::agreement::Resampling;

/// Agreement of one set of raters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// The group; `None` for all raters together.
    pub group: Option<String>,
    /// Who is in it.
    pub raters: Vec<String>,
    /// All dimensions pooled: dimension x conversation is an item.
    pub pooled: Coefficients,
    /// Each dimension.
    pub dimensions: Vec<DimensionAgreement>,
}

/// Agreement on one dimension.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DimensionAgreement {
    /// The dimension as the file names it.
    pub dimension: String,
    /// On the four ratings.
    pub ratings: Coefficients,
    /// On High Potential for Harm or not.
    pub harm: HarmAgreement,
}

/// The 2 x 2 table of pairs of raters of one conversation: High Potential for Harm, or anything else. Who is first in a
/// pair has no meaning, so the two off-diagonal cells are one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HarmAgreement {
    /// Pairs in which both say harm.
    pub both: u64,
    /// Pairs in which one does.
    pub one: u64,
    /// Pairs in which none does.
    pub neither: u64,
    /// Share of pairs in the first and third cell, over items with two raters or more.
    pub percent: Option<f64>,
    /// Krippendorff's alpha of the two categories.
    pub alpha: Option<f64>,
    /// Gwet's AC1 of the two categories.
    pub ac1: Option<f64>,
}

/// One human rating against the others of the same item, where these agree on harm or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Yardstick {
    /// The dimension; `None` for all pooled.
    pub dimension: Option<String>,
    /// Found of harmful: ratings High Potential for Harm where all others say so.
    pub sensitivity: Share,
    /// Cleared of not harmful: other ratings where no other says harm.
    pub specificity: Share,
    /// Ratings whose others disagree, or are fewer than two.
    pub ambiguous: u64,
}

/// `k` of `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Counted.
    pub k: u64,
    /// Of.
    pub n: u64,
}

impl Share {
    /// Counts one more.
    pub(super) fn add(&mut self, hit: bool) {
        self.n += 1;
        self.k += u64::from(hit);
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { k: self.k + other.k, n: self.n + other.n }
    }

    /// As a fraction, `None` of nothing.
    pub fn rate(self) -> Option<f64> {
        self.count().rate()
    }

    pub(super) fn count(self) -> Count {
        Count::new(self.k, self.n).unwrap_or_default()
    }
}

/// Whether the single rater of another group follows two of a group where these agree, and sides with one of them where
/// they do not: then that rater settles cases, and is no third independent opinion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Adjudication {
    /// The group of two.
    pub group: String,
    /// Items on which the two agree, and of these those on which the third agrees with them.
    pub followed: Share,
    /// Items on which the two disagree, and of these those on which the third says what one of them says.
    pub sided: Share,
}

impl Adjudication {
    /// Whether the numbers are those of somebody who settles cases.
    pub fn is_likely(&self) -> bool {
        let nearly_all = |share: Share| share.k * 20 >= share.n * 19;
        self.sided.n >= 20 && nearly_all(self.followed) && nearly_all(self.sided)
    }
}

/// The agreement of these raters.
pub(super) fn panel(
    ratings: &HumanRatings,
    group: Option<&str>,
    members: &[usize],
    resampling: Resampling,
) -> Panel {
    let units = |categories: Categories, dimension: Option<usize>| -> Vec<Unit> {
        let item = |votes: &Vec<Option<Rating>>| -> Vec<Option<usize>> {
            let of = |&member: &usize| votes.get(member).copied().flatten().map(|r| categories.of(r));
            members.iter().map(of).collect()
        };
        let conversations = ratings.conversations.iter();
        conversations
            .map(|c| match dimension {
                Some(dimension) => c.votes.get(dimension).map(item).into_iter().collect(),
                None => c.votes.iter().map(item).collect(),
            })
            .collect()
    };
    let dimensions = ratings.dimensions.iter().enumerate().map(|(index, name)| DimensionAgreement {
        dimension: name.clone(),
        ratings: coefficients(&units(Categories::Ratings, Some(index)), Categories::Ratings, resampling),
        harm: harm(&units(Categories::HarmOrNot, Some(index)), resampling),
    });
    Panel {
        group: group.map(str::to_owned),
        raters: members.iter().filter_map(|m| ratings.raters.get(*m)).map(|r| r.id.clone()).collect(),
        pooled: coefficients(&units(Categories::Ratings, None), Categories::Ratings, resampling),
        dimensions: dimensions.collect(),
    }
}

fn harm(units: &[Unit], resampling: Resampling) -> HarmAgreement {
    // The table is for reading; its coefficients need no interval.
    let point = coefficients(units, Categories::HarmOrNot, Resampling { resamples: 0, ..resampling });
    let mut harm = HarmAgreement {
        percent: point.percent.map(|e| e.value),
        alpha: point.alpha.map(|e| e.value),
        ac1: point.ac1.map(|e| e.value),
        ..HarmAgreement::default()
    };
    for item in units.iter().flatten() {
        let yes = item.iter().flatten().filter(|category| **category == 1).count() as u64;
        let no = item.iter().flatten().count() as u64 - yes;
        harm.both += yes * yes.saturating_sub(1) / 2;
        harm.neither += no * no.saturating_sub(1) / 2;
        harm.one += yes * no;
    }
    harm
}

/// Whether these say harm, when they say the same: `None` without a vote or with two minds.
fn of_one_mind<'a>(votes: impl Iterator<Item = &'a Rating>) -> Option<bool> {
    let mut minds = votes.map(|rating| *rating == Rating::HighPotentialForHarm);
    let first = minds.next()?;
    minds.all(|mind| mind == first).then_some(first)
}

pub(super) fn yardstick(ratings: &HumanRatings) -> Vec<Yardstick> {
    let mut all = Yardstick::default();
    let mut rows = Vec::new();
    for (index, name) in ratings.dimensions.iter().enumerate() {
        let mut row = Yardstick { dimension: Some(name.clone()), ..Yardstick::default() };
        for votes in ratings.conversations.iter().filter_map(|c| c.votes.get(index)) {
            for (rater, vote) in votes.iter().enumerate() {
                let Some(vote) = vote else { continue };
                let harm = *vote == Rating::HighPotentialForHarm;
                let others = || {
                    votes.iter().enumerate().filter(move |(i, _)| *i != rater).filter_map(|(_, v)| v.as_ref())
                };
                match of_one_mind(others()).filter(|_| others().count() >= 2) {
                    Some(true) => row.sensitivity.add(harm),
                    Some(false) => row.specificity.add(!harm),
                    None => row.ambiguous += 1,
                }
            }
        }
        all.sensitivity = all.sensitivity.plus(row.sensitivity);
        all.specificity = all.specificity.plus(row.specificity);
        all.ambiguous += row.ambiguous;
        rows.push(row);
    }
    // Without a third rater there is nobody to hold one against.
    if all.sensitivity.n + all.specificity.n == 0 {
        return Vec::new();
    }
    rows.push(all);
    rows
}

pub(super) fn adjudication(ratings: &HumanRatings) -> Option<Adjudication> {
    ratings
        .groups()
        .into_iter()
        .map(|(group, members)| {
            let mut found =
                Adjudication { group: group.to_owned(), followed: Share::default(), sided: Share::default() };
            for votes in ratings.conversations.iter().flat_map(|c| &c.votes) {
                let (inside, outside): (Vec<_>, Vec<_>) = votes
                    .iter()
                    .enumerate()
                    .filter_map(|(rater, vote)| vote.map(|vote| (rater, vote)))
                    .partition(|(rater, _)| members.contains(rater));
                if let ([(_, left), (_, right)], [(_, third)]) = (inside.as_slice(), outside.as_slice()) {
                    if left == right {
                        found.followed.add(third == left);
                    } else {
                        found.sided.add(third == left || third == right);
                    }
                }
            }
            found
        })
        .max_by_key(|found| found.followed.n + found.sided.n)
        .filter(|found| found.followed.n + found.sided.n > 0)
}
