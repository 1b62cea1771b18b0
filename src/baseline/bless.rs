//! Blessing: which runs may become a baseline.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use chrono::NaiveDate;

use super::{Baseline, BaselineConversation, Origin, Provenance};
use crate::matrix::Collapsed;
use crate::rating::RatingOutcome;

/// A model that took part, with the names it goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelUse {
    /// `user`, `candidate` or `judge`.
    pub role: String,
    /// The id that was asked for.
    pub requested: String,
    /// The ids that providers reported; empty when they report none.
    pub returned: BTreeSet<String>,
}

impl ModelUse {
    /// Whether the id names one unchanging model: what was asked for is what every reply reported. An alias such as
    /// `latest` may be another model tomorrow.
    pub fn is_pinned(&self) -> bool {
        !self.requested.ends_with("latest") && self.returned.iter().all(|id| *id == self.requested)
    }
}

/// A finished run that asks to become a baseline.
#[derive(Clone, Debug)]
pub struct BlessInput<'a> {
    /// The run's id.
    pub run: &'a str,
    /// What reports call the candidate.
    pub candidate: &'a str,
    /// The day of the blessing.
    pub today: NaiveDate,
    /// What it was made with.
    pub provenance: &'a Provenance,
    /// The dimensions in the rubric's order.
    pub dimensions: &'a [String],
    /// Its conversations.
    pub conversations: &'a [Collapsed],
    /// Planned conversations that are not there.
    pub missing: &'a [BaselineConversation],
    /// Failure mode by question id.
    pub labels: &'a BTreeMap<String, String>,
    /// Conversations planned.
    pub planned: u64,
    /// Planned conversations that gave up, were invalid or never ran.
    pub failed: u64,
    /// Conversations or judgements that were taken from a cache or recording instead of being made.
    pub replayed: u64,
    /// The models.
    pub models: &'a [ModelUse],
    /// Files of the policy (config, rubric, thresholds) that are changed and not committed.
    pub dirty_files: &'a [String],
    /// Blocking rules that the run itself broke by its own verdict; `None` when it was never gated.
    pub broken: Option<&'a [String]>,
}

/// Why a run may not become a baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It holds no conversation.
    Empty,
    /// Not every planned conversation is there.
    Incomplete {
        /// Conversations there.
        there: u64,
        /// Conversations planned.
        planned: u64,
    },
    /// Planned conversations failed.
    Failed(u64),
    /// Dimensions without a verdict of the judge.
    Unjudged(u64),
    /// Conversations or judgements came from a cache or recording: repeats that are copies are no evidence.
    Replayed(u64),
    /// A model id that may mean another model tomorrow.
    Unpinned {
        /// The role.
        role: String,
        /// The id asked for.
        requested: String,
        /// The ids reported.
        returned: Vec<String>,
    },
    /// Without fingerprints nobody can tell later whether another run compares.
    NoFingerprints,
    /// Uncommitted changes in the policy.
    Dirty(Vec<String>),
    /// No gate ever looked at the run.
    NotGated,
    /// The gate failed the run: as a baseline it would make its harm the measure of the next.
    Broken(Vec<String>),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the run holds no conversation"),
            Self::Incomplete { there, planned } => {
                write!(f, "{there} of the {planned} planned conversations are there")
            }
            Self::Failed(1) => f.write_str("1 planned conversation failed or did not run"),
            Self::Failed(n) => write!(f, "{n} planned conversations failed or did not run"),
            Self::Unjudged(1) => f.write_str("1 rating is missing because the judge came to no verdict"),
            Self::Unjudged(n) => write!(f, "{n} ratings are missing because the judge came to no verdict"),
            Self::Replayed(1) => f.write_str("1 reply came from a cache or recording"),
            Self::Replayed(n) => write!(f, "{n} replies came from a cache or recording"),
            Self::Unpinned { role, requested, returned } if returned.is_empty() => {
                write!(f, "the model of the {role}, `{requested}`, is an alias")
            }
            Self::Unpinned { role, requested, returned } => {
                write!(
                    f,
                    "the model of the {role} was asked for as `{requested}` and answered as `{}`",
                    returned.join("`, `")
                )
            }
            Self::NoFingerprints => {
                f.write_str("the run carries no fingerprints of rubric, personas and prompts")
            }
            Self::Broken(rules) => write!(f, "its own verdict is fail (broken: {})", rules.join(", ")),
            Self::NotGated => f.write_str("no gate ever looked at it (`vera-gate gate RUN --write` does)"),
            Self::Dirty(files) => write!(f, "uncommitted changes in {}", files.join(", ")),
        }
    }
}

/// Whether refusals are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// They are.
    No,
    /// They are written into the baseline, and the gate prints them each time. An empty run stays refused.
    Yes,
}

/// Every reason against a run, worst first.
pub fn refusals(input: &BlessInput<'_>) -> Vec<Refusal> {
    let there = input.conversations.len() as u64;
    if there == 0 {
        return vec![Refusal::Empty];
    }
    let mut refusals = Vec::new();
    match input.broken {
        None => refusals.push(Refusal::NotGated),
        Some([]) => {}
        Some(broken) => refusals.push(Refusal::Broken(broken.to_vec())),
    }
    if there < input.planned {
        refusals.push(Refusal::Incomplete { there, planned: input.planned });
    }
    if input.failed > 0 {
        refusals.push(Refusal::Failed(input.failed));
    }
    let unjudged = input
        .conversations
        .iter()
        .flat_map(|c| input.dimensions.iter().map(|name| c.outcomes.get(name).copied()))
        .filter(|outcome| outcome.and_then(RatingOutcome::rating).is_none())
        .count() as u64;
    if unjudged > 0 {
        refusals.push(Refusal::Unjudged(unjudged));
    }
    if input.replayed > 0 {
        refusals.push(Refusal::Replayed(input.replayed));
    }
    for model in input.models.iter().filter(|model| !model.is_pinned()) {
        refusals.push(Refusal::Unpinned {
            role: model.role.clone(),
            requested: model.requested.clone(),
            returned: model.returned.iter().cloned().collect(),
        });
    }
    if input.provenance.fingerprints.is_none() {
        refusals.push(Refusal::NoFingerprints);
    }
    if !input.dirty_files.is_empty() {
        refusals.push(Refusal::Dirty(input.dirty_files.to_vec()));
    }
    refusals
}

/// Makes a baseline of a run.
///
/// # Errors
/// Every reason against it.
pub fn bless(input: &BlessInput<'_>, force: Force) -> Result<Baseline, Vec<Refusal>> {
    let refusals = refusals(input);
    if !refusals.is_empty() && (force == Force::No || refusals.contains(&Refusal::Empty)) {
        return Err(refusals);
    }
    let mut baseline = Baseline::from_conversations(
        input.candidate,
        Some(input.today),
        input.provenance.clone(),
        input.dimensions,
        input.conversations,
        input.labels,
    );
    baseline.origin = Origin::Blessed;
    baseline.run = Some(input.run.to_owned());
    baseline.forced = refusals.iter().map(ToString::to_string).collect();
    Ok(baseline.with_missing(input.missing))
}
