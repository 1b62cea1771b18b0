//! A judge against human raters.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::humans::Share;
use super::ratings::dimension_of;
use super::{Categories, Coefficients, HumanRatings, RatedConversation, Unit, coefficients};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::matrix::collapse;
use crate::rating::{Assessment, Rating};
use crate::stats::agreement::Resampling;
use crate::stats::interval::clopper_pearson;
use crate::stats::{Confidence, Sides};

/// One judge against the humans.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgeReport {
    /// The judge model; `all judges` for the majority over several models, which is what the gate counts.
    pub judge: String,
    /// Conversations that the judge and at least one human rated.
    pub conversations: u64,
    /// Rated by humans and not by the judge.
    pub without_judge: Vec<String>,
    /// Evaluated by the judge and not rated by humans: not looked at.
    pub without_humans: u64,
    /// All dimensions pooled, then each.
    pub majority: Vec<AgainstMajority>,
    /// Against each human, all dimensions pooled.
    pub raters: Vec<AgainstRater>,
}

/// The judge against the majority of the humans.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgainstMajority {
    /// The dimension; `None` for all pooled.
    pub dimension: Option<String>,
    /// Items that humans rated and the judge did not. They are in no other number.
    pub unjudged: u64,
    /// Items on which no rating has more than half of the humans.
    pub undecided: u64,
    /// On the four ratings.
    pub agreement: Coefficients,
    /// On High Potential for Harm or not.
    pub harm: Accuracy,
}

/// The judge against one human.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgainstRater {
    /// The human.
    pub rater: String,
    /// On the four ratings.
    pub agreement: Coefficients,
    /// On High Potential for Harm or not, with this human taken as right.
    pub harm: Accuracy,
}

/// How well High Potential for Harm is found, with humans taken as right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Accuracy {
    /// Of the items that are harmful for the humans, those the judge calls harmful.
    pub sensitivity: Share,
    /// 95 % Clopper-Pearson interval; not given for pooled dimensions, whose items hang together.
    pub sensitivity_interval: Option<[f64; 2]>,
    /// Of the items that are not, those the judge does not call harmful.
    pub specificity: Share,
    /// As above.
    pub specificity_interval: Option<[f64; 2]>,
    /// Items on which exactly half of the humans say harm.
    pub ambiguous: u64,
    /// Youden's J, `sensitivity + specificity - 1`: the share of a true difference in harm that is left in the judge's
    /// ratings. `None` without harmful or without harmless items. Youden (1950), Cancer 3, 32-35.
    pub youden: Option<f64>,
}

/// Compares the judges of results files with the humans, each judge model by itself and, when there are several, their
/// majority. `dimensions` are those of the results.
///
/// # Errors
/// When a column of the ratings is none of the dimensions, a conversation's id is ambiguous, a row stands twice, or no
/// conversation was rated by both.
pub fn compare(
    humans: &HumanRatings,
    dimensions: &[String],
    rows: &[Assessment],
    resampling: Resampling,
) -> Result<Vec<JudgeReport>, Diagnostics> {
    let mut problems = Diagnostics::new();
    let named = name_dimensions(humans, dimensions, &mut problems);
    let mut seen = BTreeSet::new();
    for row in rows {
        if !seen.insert((&row.conversation, &row.judge)) {
            problems.push(
                Diagnostic::error(
                    Code::DuplicateId,
                    format!(
                        "`{}` of judge `{}` {} is in two results files",
                        row.conversation, row.judge.model, row.judge.instance
                    ),
                )
                .help("give each evaluation once"),
            );
        }
    }
    let found = find_conversations(humans, rows, &mut problems);
    if found.is_empty() && !problems.has_errors() {
        problems.push(
            Diagnostic::error(Code::NothingSelected, "the judge and the humans rated no conversation in common")
                .help("a conversation's id in the ratings is the file name of its transcript, or the part before the first `_`"),
        );
    }
    if problems.has_errors() {
        return Err(problems);
    }
    let models: BTreeSet<&str> = rows.iter().map(|row| row.judge.model.as_str()).collect();
    let mut reports = Vec::new();
    if models.len() > 1 {
        reports.push(report("all judges", humans, &named, rows, &found, resampling));
    }
    for model in models {
        let own: Vec<Assessment> = rows.iter().filter(|row| row.judge.model == model).cloned().collect();
        reports.push(report(model, humans, &named, &own, &found, resampling));
    }
    Ok(reports)
}

/// The dimension of the results that each column of the ratings means.
fn name_dimensions(humans: &HumanRatings, dimensions: &[String], problems: &mut Diagnostics) -> Vec<String> {
    let mut named = Vec::new();
    for column in &humans.dimensions {
        match dimension_of(column, dimensions) {
            Some(dimension) if named.contains(dimension) => problems.push(Diagnostic::error(
                Code::DuplicateColumn,
                format!("two columns of the ratings are the dimension `{dimension}`"),
            )),
            Some(dimension) => named.push(dimension.clone()),
            None => problems.push(
                Diagnostic::error(
                    Code::UnknownDimension,
                    format!("the column `{column}` of the ratings is no dimension of the judge's results"),
                )
                .help(did_you_mean(column, dimensions.iter().map(String::as_str))),
            ),
        }
    }
    named
}

/// The judge's conversation of each human one: the same id, or a file name that starts with it.
fn find_conversations<'a>(
    humans: &'a HumanRatings,
    rows: &'a [Assessment],
    problems: &mut Diagnostics,
) -> BTreeMap<&'a str, &'a str> {
    let mut by_name: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in rows {
        let stem = row.conversation.0.as_str();
        let start = stem.split('_').next().unwrap_or(stem);
        for name in BTreeSet::from([stem, start]) {
            by_name.entry(name).or_default().insert(stem);
        }
    }
    let mut found = BTreeMap::new();
    for conversation in &humans.conversations {
        let Some(stems) = by_name.get(conversation.id.as_str()) else { continue };
        if stems.len() > 1 {
            let list = stems.iter().copied().collect::<Vec<_>>().join("`, `");
            problems.push(
                Diagnostic::error(
                    Code::DuplicateId,
                    format!("conversation `{}` may be any of `{list}`", conversation.id),
                )
                .help("write the whole file name of the transcript in the ratings"),
            );
        }
        found.extend(stems.iter().next().map(|stem| (conversation.id.as_str(), *stem)));
    }
    found
}

fn report(
    judge: &str,
    humans: &HumanRatings,
    dimensions: &[String],
    rows: &[Assessment],
    found: &BTreeMap<&str, &str>,
    resampling: Resampling,
) -> JudgeReport {
    let collapsed = collapse(rows);
    let by_id: BTreeMap<&str, _> = collapsed.iter().map(|c| (c.conversation.0.as_str(), c)).collect();
    let pairs: Vec<Pair<'_>> = humans
        .conversations
        .iter()
        .filter_map(|human| {
            let judged = by_id.get(found.get(human.id.as_str())?)?;
            let outcome = |name: &String| judged.outcomes.get(name).and_then(|outcome| outcome.rating());
            Some(Pair { human, judge: dimensions.iter().map(outcome).collect() })
        })
        .collect();
    let with: BTreeSet<&str> = pairs.iter().map(|pair| pair.human.id.as_str()).collect();
    let every: Vec<usize> = (0..dimensions.len()).collect();
    let mut against = vec![majority(&pairs, None, &every, resampling)];
    against.extend(
        dimensions.iter().enumerate().map(|(index, name)| majority(&pairs, Some(name), &[index], resampling)),
    );
    JudgeReport {
        judge: judge.to_owned(),
        conversations: pairs.len() as u64,
        without_judge: humans
            .conversations
            .iter()
            .map(|c| c.id.clone())
            .filter(|id| !with.contains(id.as_str()))
            .collect(),
        without_humans: collapsed.len() as u64 - pairs.len() as u64,
        majority: against,
        raters: humans
            .raters
            .iter()
            .enumerate()
            .map(|(index, rater)| one_rater(&pairs, &rater.id, index, &every, resampling))
            .filter(|against| against.agreement.items > 0)
            .collect(),
    }
}

/// A conversation that both rated, with the judge's rating of each dimension.
struct Pair<'a> {
    human: &'a RatedConversation,
    judge: Vec<Option<Rating>>,
}

impl Pair<'_> {
    /// The humans' votes and the judge's of one dimension.
    fn item(&self, dimension: usize) -> (Vec<Option<Rating>>, Option<Rating>) {
        let votes = self.human.votes.get(dimension).cloned().unwrap_or_default();
        (votes, self.judge.get(dimension).copied().flatten())
    }
}

fn majority(
    pairs: &[Pair<'_>],
    name: Option<&String>,
    dimensions: &[usize],
    resampling: Resampling,
) -> AgainstMajority {
    let (mut unjudged, mut undecided, mut harm) = (0, 0, Accuracy::default());
    let mut units: Vec<Unit> = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let mut unit = Unit::new();
        for &dimension in dimensions {
            let (votes, judge) = pair.item(dimension);
            let votes: Vec<Rating> = votes.into_iter().flatten().collect();
            if votes.is_empty() {
                continue;
            }
            let Some(judge) = judge else {
                unjudged += 1;
                continue;
            };
            let of = |rating: Rating| votes.iter().filter(|vote| **vote == rating).count();
            let winner = Rating::ALL.into_iter().find(|rating| of(*rating) * 2 > votes.len());
            undecided += u64::from(winner.is_none());
            let category = |rating| Categories::Ratings.of(rating);
            unit.push(vec![winner.map(category), Some(category(judge))]);
            let harmful = of(Rating::HighPotentialForHarm) * 2;
            harm.count((harmful != votes.len()).then_some(harmful > votes.len()), judge);
        }
        units.push(unit);
    }
    AgainstMajority {
        dimension: name.cloned(),
        unjudged,
        undecided,
        agreement: coefficients(&units, Categories::Ratings, resampling),
        harm: harm.finish(name.is_some()),
    }
}

fn one_rater(
    pairs: &[Pair<'_>],
    rater: &str,
    index: usize,
    dimensions: &[usize],
    resampling: Resampling,
) -> AgainstRater {
    let mut harm = Accuracy::default();
    let mut units: Vec<Unit> = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let mut unit = Unit::new();
        for &dimension in dimensions {
            let (votes, judge) = pair.item(dimension);
            let (Some(Some(vote)), Some(judge)) = (votes.get(index), judge) else { continue };
            unit.push(vec![Some(Categories::Ratings.of(*vote)), Some(Categories::Ratings.of(judge))]);
            harm.count(Some(*vote == Rating::HighPotentialForHarm), judge);
        }
        units.push(unit);
    }
    AgainstRater {
        rater: rater.to_owned(),
        agreement: coefficients(&units, Categories::Ratings, resampling),
        harm: harm.finish(false),
    }
}

impl Accuracy {
    /// Counts an item: whether it is harmful for the humans, and the judge's rating.
    fn count(&mut self, harmful: Option<bool>, judge: Rating) {
        let called = judge == Rating::HighPotentialForHarm;
        match harmful {
            Some(true) => self.sensitivity.add(called),
            Some(false) => self.specificity.add(!called),
            None => self.ambiguous += 1,
        }
    }

    /// Adds what follows from the counts.
    fn finish(mut self, independent: bool) -> Self {
        let interval = |share: Share| {
            clopper_pearson(share.count(), Sides::Both, Confidence::P95).map(|i| [i.lower, i.upper])
        };
        if independent {
            self.sensitivity_interval = interval(self.sensitivity);
            self.specificity_interval = interval(self.specificity);
        }
        self.youden = self.sensitivity.rate().zip(self.specificity.rate()).map(|(s, t)| s + t - 1.0);
        self
    }
}
