//! Many runs in a row: which of them compare, and whether harm creeps up in steps too small for a single comparison.
//!
//! The trend informs and warns; it never decides a build. Runs are cut into segments wherever anything that results
//! depend on changed, and the average starts anew in each. Within a segment the first accepted runs are the anchor, see
//! [`crate::stats::trend`]; without a firm anchor there is no trend.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::baseline::{Baseline, Mismatch, Provenance};
use crate::fingerprint::sha256_of_parts;
use crate::gate::Verdict;
use crate::matrix::{Collapsed, Matrix};
use crate::rating::RatingOutcome;
use crate::stats::Count;
use crate::stats::trend::{Anchor, Drift, EwmaRule, ewma};

/// Version tag of the JSON form.
pub const SCHEMA: &str = "vera-gate/history/v1";

/// What the series over all dimensions is called: harm in at least one of them.
pub const ANY: &str = "any dimension";

/// What is known of how a result was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The gate let it through, or it was blessed as a baseline.
    Accepted,
    /// The gate stopped it, or left it open.
    NotAccepted,
    /// It measured too little: it is listed, and in no average.
    Incomplete,
    /// Nobody has said, as with a bare results file.
    Unknown,
}

/// One result of the past.
#[derive(Clone, Debug, PartialEq)]
pub struct PastRun {
    /// What it is called: a path or a reference.
    pub name: String,
    /// When it was made, as an RFC 3339 time or a day; `None` when unknown.
    pub made: Option<String>,
    /// What reports call the candidate; empty when unknown.
    pub candidate: String,
    /// How it was received.
    pub standing: Standing,
    /// The gate's answer, if there was one.
    pub verdict: Option<Verdict>,
    /// What it was made with.
    pub provenance: Provenance,
    /// Its counts.
    pub matrix: Matrix,
    /// Names the run it is, if it knows: two runs may agree in every rating and are two runs.
    pub run_id: Option<String>,
    /// Hash of its conversations and ratings, which tells the same result under two names.
    content: String,
    /// The personas of its conversations.
    personas: BTreeSet<String>,
}

impl PastRun {
    /// A result that no gate has seen.
    pub fn new(
        name: &str,
        candidate: &str,
        provenance: Provenance,
        dimensions: &[String],
        conversations: &[Collapsed],
    ) -> Self {
        let content = conversations.iter().map(|c| (c.conversation.0.as_str(), &c.outcomes));
        Self {
            name: name.to_owned(),
            made: None,
            candidate: candidate.to_owned(),
            standing: Standing::Unknown,
            verdict: None,
            provenance,
            matrix: Matrix::count(dimensions, conversations),
            run_id: None,
            content: content_hash(content),
            personas: conversations.iter().map(|c| c.persona.clone()).collect(),
        }
    }

    /// A blessed baseline: accepted by its blessing.
    pub fn of_baseline(name: &str, baseline: &Baseline) -> Self {
        let conversations: Vec<Collapsed> = baseline.conversations.iter().map(Into::into).collect();
        let run = Self::new(
            name,
            &baseline.candidate,
            baseline.provenance.clone(),
            &baseline.dimensions,
            &conversations,
        );
        Self {
            made: baseline.created.map(|day| day.to_string()),
            standing: if baseline.forced.is_empty() { Standing::Accepted } else { Standing::Unknown },
            ..run
        }
    }

    /// Whether the two are one result, such as a run and the baseline that was blessed from it.
    fn is(&self, other: &Self) -> bool {
        let ids = self.run_id.as_ref().zip(other.run_id.as_ref());
        ids.is_none_or(|(own, others)| own == others)
            && self.content == other.content
            && self.provenance == other.provenance
    }

    /// Harmful of relevant conversations in a dimension, or in any.
    fn count(&self, dimension: &str) -> Count {
        let (harmful, relevant) = if dimension == ANY {
            (self.matrix.harmful_conversations, self.matrix.relevant_conversations)
        } else {
            let row = self.matrix.dimensions.iter().find(|row| row.dimension == dimension);
            row.map_or((0, 0), |row| (row.all.high_potential_for_harm, row.all.relevant()))
        };
        Count::new(harmful, relevant).unwrap_or_default()
    }
}

fn content_hash<'a>(
    conversations: impl Iterator<Item = (&'a str, &'a BTreeMap<String, RatingOutcome>)>,
) -> String {
    let sorted: BTreeMap<&str, &BTreeMap<String, RatingOutcome>> = conversations.collect();
    let parts: Vec<String> = sorted
        .into_iter()
        .flat_map(|(id, outcomes)| {
            std::iter::once(id.to_owned())
                .chain(outcomes.iter().map(|(dimension, outcome)| format!("{dimension} {outcome:?}")))
        })
        .collect();
    sha256_of_parts(parts.iter().map(String::as_str))
}

/// A run in the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed {
    /// What it is called.
    pub name: String,
    /// When it was made, if known.
    pub made: Option<String>,
    /// What reports call the candidate; empty when unknown.
    pub candidate: String,
    /// How it was received.
    pub standing: Standing,
    /// The gate's answer, if there was one.
    pub verdict: Option<Verdict>,
    /// Its segment, from 1: runs of one segment compare.
    pub segment: usize,
    /// In what it differs from the run before, so that a new segment starts.
    pub changed: Vec<Mismatch>,
    /// Conversations counted.
    pub conversations: u64,
    /// VERA-MH's score, exact; `None` when nothing was relevant.
    pub score: Option<f64>,
    /// Harm per dimension, [`ANY`] first.
    pub harm: Vec<Harm>,
}

/// Harm of a run in one dimension.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Harm {
    /// The dimension, or [`ANY`].
    pub dimension: String,
    /// Conversations rated High Potential for Harm.
    pub harmful: u64,
    /// Relevant conversations.
    pub relevant: u64,
    /// Their share; `None` without relevant conversations.
    pub rate: Option<f64>,
    /// Where the run leaves the average; `None` while the anchor is not firm, and for incomplete runs.
    pub trend: Option<Point>,
}

/// The moving average after a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Rate of the anchor.
    pub anchor: f64,
    /// The average.
    pub average: f64,
    /// Lower limit.
    pub lower: f64,
    /// Upper limit.
    pub upper: f64,
    /// What it says.
    pub drift: Direction,
}

/// What the average says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Within the limits.
    Steady,
    /// More harm than the anchor.
    Worse,
    /// Less harm than the anchor.
    Better,
    /// No relevant conversation in this run.
    NoData,
}

impl From<Drift> for Direction {
    fn from(drift: Drift) -> Self {
        match drift {
            Drift::None => Self::Steady,
            Drift::Worse => Self::Worse,
            Drift::Better => Self::Better,
            Drift::NoData => Self::NoData,
        }
    }
}

/// The history: the content of the JSON form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The runs, oldest first when all say when they were made, else in the order given.
    pub runs: Vec<Listed>,
    /// Segments of comparable runs.
    pub segments: Vec<Segment>,
    /// Harm that crept up, in words: of the newest run, if it is in a segment with a firm anchor.
    pub warnings: Vec<String>,
    /// What a reader should know. Names come from inputs: escape before showing.
    pub notes: Vec<String>,
}

/// Runs that compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// From 1.
    pub number: usize,
    /// Runs in it.
    pub runs: usize,
    /// Of these, accepted ones.
    pub accepted: usize,
    /// Whether fingerprints say that its runs compare; without them nobody knows.
    pub fingerprints: Known,
}

/// Whether something is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Known {
    /// It is.
    Known,
    /// It is not.
    Unknown,
}

/// Arranges the runs and computes the trend of each segment.
pub fn history(mut runs: Vec<PastRun>, rule: EwmaRule) -> History {
    let mut notes = Vec::new();
    if runs.iter().all(|run| run.made.is_some()) {
        // A day stands before the times of that day.
        runs.sort_by(|a, b| a.made.cmp(&b.made));
    } else if runs.len() > 1 {
        notes.push("Not every run says when it was made: they are taken in the order given.".to_owned());
    }
    let mut kept: Vec<PastRun> = Vec::with_capacity(runs.len());
    for run in runs {
        match kept.iter_mut().find(|earlier| earlier.is(&run)) {
            None => kept.push(run),
            Some(earlier) => {
                notes.push(format!(
                    "`{}` holds the same conversations and ratings as `{}`: they count once.",
                    run.name, earlier.name
                ));
                // A run that was blessed is accepted, whatever the gate had left open; the run itself knows more.
                let blessed = [&*earlier, &run].iter().any(|run| run.standing == Standing::Accepted);
                if earlier.verdict.is_none() && run.verdict.is_some() {
                    *earlier = run;
                }
                if blessed {
                    earlier.standing = Standing::Accepted;
                }
            }
        }
    }
    let (segments, changes) = segments(&kept);
    let mut listed: Vec<Listed> = kept
        .iter()
        .zip(&segments)
        .zip(changes)
        .map(|((run, segment), changed)| list(run, *segment, changed))
        .collect();
    let mut shown = Vec::new();
    let mut warnings = Vec::new();
    let last = segments.last().copied().unwrap_or(0);
    for number in 1..=last {
        let members: Vec<usize> = (0..kept.len()).filter(|i| segments.get(*i) == Some(&number)).collect();
        let of = |standing| {
            members.iter().filter(|i| kept.get(**i).is_some_and(|run| run.standing == standing)).count()
        };
        let known = members.iter().all(|i| kept.get(*i).is_some_and(|r| r.provenance.fingerprints.is_some()));
        shown.push(Segment {
            number,
            runs: members.len(),
            accepted: of(Standing::Accepted),
            fingerprints: if known { Known::Known } else { Known::Unknown },
        });
        chart(&kept, &members, rule, &mut listed);
        if number == last && known {
            warnings = warn(&listed, &members);
        }
        if number == last && !known && members.len() > 1 {
            notes.push(
                "Some of the newest runs carry no fingerprints: nobody knows whether they compare, so nothing is warned of."
                    .to_owned(),
            );
        }
    }
    History { schema: SCHEMA, runs: listed, segments: shown, warnings, notes }
}

/// The segment of each run, and in what it differs from the run before.
fn segments(runs: &[PastRun]) -> (Vec<usize>, Vec<Vec<Mismatch>>) {
    let mut segment = 0;
    let mut previous: Option<&PastRun> = None;
    let mut whole: Option<&PastRun> = None;
    runs.iter()
        .map(|run| {
            let mut changed = previous.map_or_else(Vec::new, |previous| {
                let names = |run: &PastRun| -> Vec<String> {
                    run.matrix.dimensions.iter().map(|row| row.dimension.clone()).collect()
                };
                previous.provenance.differences(&names(previous), &run.provenance, &names(run))
            });
            // An incomplete run lacks personas without being another sweep.
            if run.standing != Standing::Incomplete {
                changed.extend(whole.and_then(|earlier| other_personas(&earlier.personas, &run.personas)));
                whole = Some(run);
            }
            // One with fingerprints and one without may or may not compare: they do not share an average.
            let known = |run: &PastRun| run.provenance.fingerprints.is_some();
            let other_kind = previous.is_some_and(|previous| known(previous) != known(run));
            if previous.is_none() || !changed.is_empty() || other_kind {
                segment += 1;
            }
            previous = Some(run);
            (segment, changed)
        })
        .unzip()
}

/// Another sample of personas has another rate of harm without any change of the candidate.
fn other_personas(earlier: &BTreeSet<String>, later: &BTreeSet<String>) -> Option<Mismatch> {
    const SHOWN: usize = 3;
    if earlier == later {
        return None;
    }
    let words = |own: &BTreeSet<String>, other: &BTreeSet<String>| {
        let only: Vec<&str> = own.difference(other).map(String::as_str).collect();
        let list = only.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
        match only.len() {
            0 => format!("{} personas", own.len()),
            n if n > SHOWN => format!("{} personas, {list} and {} more only here", own.len(), n - SHOWN),
            _ => format!("{} personas, {list} only here", own.len()),
        }
    };
    Some(Mismatch {
        what: "personas in the sweep".to_owned(),
        baseline: words(earlier, later),
        candidate: words(later, earlier),
    })
}

fn list(run: &PastRun, segment: usize, changed: Vec<Mismatch>) -> Listed {
    let names = std::iter::once(ANY).chain(run.matrix.dimensions.iter().map(|row| row.dimension.as_str()));
    Listed {
        name: run.name.clone(),
        made: run.made.clone(),
        candidate: run.candidate.clone(),
        standing: run.standing,
        verdict: run.verdict,
        segment,
        changed,
        conversations: run.matrix.conversations,
        score: run.matrix.score(),
        harm: names
            .map(|dimension| {
                let count = run.count(dimension);
                Harm {
                    dimension: dimension.to_owned(),
                    harmful: count.successes(),
                    relevant: count.total(),
                    rate: count.rate(),
                    trend: None,
                }
            })
            .collect(),
    }
}

/// Adds the trend of one segment: accepted runs make the anchor until it is firm, then every complete run is charted.
fn chart(runs: &[PastRun], members: &[usize], rule: EwmaRule, listed: &mut [Listed]) {
    let Some(first) = members.first().and_then(|index| runs.get(*index)) else { return };
    let names: Vec<String> = list(first, 0, Vec::new()).harm.into_iter().map(|harm| harm.dimension).collect();
    for name in names {
        let mut accepted: Vec<Count> = Vec::new();
        let mut firm: Option<Anchor> = None;
        let mut charted: Vec<(usize, Count)> = Vec::new();
        let complete = |index: &usize| runs.get(*index).filter(|run| run.standing != Standing::Incomplete);
        for (place, &index) in members.iter().enumerate() {
            let Some(run) = complete(&index) else { continue };
            let count = run.count(&name);
            // The anchor stands for all runs after it: one that is firm for a small run only, or for one in which nothing
            // was relevant, is none.
            let later = members.iter().skip(place).filter_map(complete).map(|run| run.count(&name));
            let largest = later.filter(|count| count.total() > 0).max_by_key(|count| count.total());
            let largest = largest.unwrap_or_else(|| accepted.iter().copied().sum());
            firm = firm.or_else(|| Anchor::from_runs(&accepted).filter(|anchor| anchor.may_warn(largest)));
            if firm.is_some() {
                charted.push((index, count));
            } else if run.standing == Standing::Accepted || run.provenance.fingerprints.is_none() {
                // Bare results files have seen no gate; their trend informs and warns of nothing.
                accepted.push(count);
            }
        }
        let Some(anchor) = firm else { continue };
        let counts: Vec<Count> = charted.iter().map(|(_, count)| *count).collect();
        for ((index, _), point) in charted.iter().zip(ewma(anchor, &counts, rule)) {
            let harm = listed.get_mut(*index).and_then(|l| l.harm.iter_mut().find(|h| h.dimension == name));
            if let Some(harm) = harm {
                harm.trend = Some(Point {
                    anchor: anchor.rate(),
                    average: point.average,
                    lower: point.lower,
                    upper: point.upper,
                    drift: point.drift.into(),
                });
            }
        }
    }
}

/// What the newest charted run says.
fn warn(listed: &[Listed], members: &[usize]) -> Vec<String> {
    let charted = |index: &&usize| {
        listed.get(**index).is_some_and(|run| run.harm.iter().any(|harm| harm.trend.is_some()))
    };
    let Some(newest) = members.iter().rev().find(charted).and_then(|index| listed.get(*index)) else {
        return Vec::new();
    };
    newest
        .harm
        .iter()
        .filter_map(|harm| {
            harm.trend.filter(|point| point.drift == Direction::Worse).map(|point| (harm, point))
        })
        .map(|(harm, point)| {
            let percent = |share: f64| format!("{:.1} %", share * 100.0);
            format!(
                "{}: harm crept up. The average is {} after `{}`, above its limit of {}; the anchor is {}.",
                harm.dimension,
                percent(point.average),
                newest.name,
                percent(point.upper),
                percent(point.anchor),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests;
