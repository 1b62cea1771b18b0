//! A blessed, complete earlier result: what the gate compares with.

mod bless;
mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

pub use bless::{BlessInput, Force, ModelUse, Refusal, bless, refusals};
pub use file::ReadError;

use crate::matrix::Collapsed;
use crate::rating::{RatingOutcome, RolePlay, Unjudged};
use crate::target::{Fingerprints, RiskLevel};
use crate::transcript::ConversationId;

/// Version tag of a baseline file.
pub const SCHEMA: &str = "vera-gate/baseline/v1";

/// What results were made with: they compare only when this is the same on both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Of the target; `None` for a bare results file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprints: Option<Fingerprints>,
    /// Settings that must agree, by name: judge, user models, length of conversations and the like.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// Where a baseline comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Somebody blessed it.
    Blessed,
    /// An earlier run as it is.
    Run,
    /// A bare results file.
    Results,
}

/// A baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// Where it comes from.
    pub origin: Origin,
    /// The run it was made of; `None` for a bare results file, and for files of before it was written down.
    pub run: Option<String>,
    /// What reports call the candidate it was measured on; empty when unknown.
    pub candidate: String,
    /// The day it was blessed, or the run finished; `None` for a bare results file.
    pub created: Option<NaiveDate>,
    /// What it was made with.
    pub provenance: Provenance,
    /// Rules of blessing that were overridden, or that an earlier run would break, in words. The gate prints them each
    /// time.
    pub forced: Vec<String>,
    /// The dimensions in the rubric's order.
    pub dimensions: Vec<String>,
    /// Its conversations, ordered by id; those that were planned and never held have no rating.
    pub conversations: Vec<BaselineConversation>,
}

/// One conversation of a baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineConversation {
    /// Its id.
    pub id: ConversationId,
    /// The persona's name.
    pub persona: String,
    /// Its risk level, if known.
    pub risk_level: Option<RiskLevel>,
    /// The model that played it.
    pub user_model: String,
    /// Which repetition, from 1.
    pub run: u32,
    /// The outcome of each dimension.
    pub outcomes: BTreeMap<String, RatingOutcome>,
    /// The failure modes (label, else question id) of harmful dimensions; a harmful dimension without one names none.
    pub modes: BTreeMap<String, BTreeSet<String>>,
}

impl From<&BaselineConversation> for Collapsed {
    /// The outcomes as one evaluation, without the findings behind them.
    fn from(conversation: &BaselineConversation) -> Self {
        Self {
            conversation: conversation.id.clone(),
            persona: conversation.persona.clone(),
            risk_level: conversation.risk_level,
            user_model: conversation.user_model.clone(),
            run: conversation.run,
            outcomes: conversation.outcomes.clone(),
            findings: BTreeMap::new(),
            judges: 1,
            split: Vec::new(),
            role_play: RolePlay::Kept,
        }
    }
}

impl Baseline {
    /// A baseline from evaluations, such as those of a bare results file: nothing is known of how they were made unless
    /// `provenance` says so.
    pub fn from_conversations(
        candidate: &str,
        created: Option<NaiveDate>,
        provenance: Provenance,
        dimensions: &[String],
        conversations: &[Collapsed],
        labels: &BTreeMap<String, String>,
    ) -> Self {
        let mut conversations: Vec<BaselineConversation> = conversations
            .iter()
            .map(|conversation| BaselineConversation {
                id: conversation.conversation.clone(),
                persona: conversation.persona.clone(),
                risk_level: conversation.risk_level,
                user_model: conversation.user_model.clone(),
                run: conversation.run,
                outcomes: conversation.outcomes.clone(),
                modes: harm_modes(conversation, labels),
            })
            .collect();
        conversations.sort_by(|a, b| a.id.cmp(&b.id));
        Self {
            origin: Origin::Results,
            run: None,
            candidate: candidate.to_owned(),
            created,
            provenance,
            forced: Vec::new(),
            dimensions: dimensions.to_vec(),
            conversations,
        }
    }

    /// With conversations that were planned and are not there: what they would have been is open, as it is for the
    /// candidate's. Whatever outcomes they come with are replaced.
    #[must_use]
    pub fn with_missing(mut self, missing: &[BaselineConversation]) -> Self {
        let never = RatingOutcome::Unjudged(Unjudged::NoConversation);
        let outcomes: BTreeMap<_, _> = self.dimensions.iter().map(|name| (name.clone(), never)).collect();
        self.conversations.extend(missing.iter().map(|conversation| BaselineConversation {
            outcomes: outcomes.clone(),
            modes: BTreeMap::new(),
            ..conversation.clone()
        }));
        self.conversations.sort_by(|a, b| a.id.cmp(&b.id));
        self
    }

    /// Conversations with a rating.
    pub fn rated(&self) -> usize {
        let rated = |c: &&BaselineConversation| c.outcomes.values().any(|outcome| outcome.rating().is_some());
        self.conversations.iter().filter(rated).count()
    }

    /// In what the two results differ so that they do not compare; empty when they do, as far as both sides say.
    pub fn differences(&self, candidate: &Provenance, dimensions: &[String]) -> Vec<Mismatch> {
        self.provenance.differences(&self.dimensions, candidate, dimensions)
    }
}

impl Provenance {
    /// In what two results differ so that they do not compare: this one, with its dimensions, taken as the baseline.
    pub fn differences(&self, own: &[String], candidate: &Self, dimensions: &[String]) -> Vec<Mismatch> {
        let mut differences = Vec::new();
        let mut differ = |what: &str, baseline: &str, candidate: &str| {
            if baseline != candidate {
                let (what, baseline, candidate) = (what.into(), baseline.into(), candidate.into());
                differences.push(Mismatch { what, baseline, candidate });
            }
        };
        let names = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
        if names(own) != names(dimensions) {
            differ("dimensions", &own.join(", "), &dimensions.join(", "));
        }
        if let (Some(ours), Some(theirs)) = (&self.fingerprints, &candidate.fingerprints) {
            differ("rubric", &ours.rubric, &theirs.rubric);
            differ("personas", &ours.personas, &theirs.personas);
            differ("prompts", &ours.prompts, &theirs.prompts);
        }
        let (ours, theirs) = (&self.settings, &candidate.settings);
        // A bare results file states no settings; where both sides state some, one that only one side has differs too.
        if !ours.is_empty() && !theirs.is_empty() {
            for name in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
                let value = |side: &BTreeMap<String, String>| {
                    side.get(name).map_or("not stated", String::as_str).to_owned()
                };
                differ(name, &value(ours), &value(theirs));
            }
        }
        differences
    }
}

/// Why a baseline cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "detail")]
pub enum BaselineFault {
    /// It cannot be read.
    Unreadable(String),
    /// It was measured with something else.
    Incomparable(Vec<Mismatch>),
    /// It is too old.
    TooOld {
        /// Its age in days.
        age_days: i64,
        /// What the thresholds file allows.
        max_age_days: u32,
    },
    /// Its day lies ahead, so its age cannot be told.
    DatedAhead(NaiveDate),
    /// None of its personas is one of the candidate's.
    NoSharedPersona,
}

/// One thing in which two results differ so that they do not compare.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mismatch {
    /// What differs: `rubric`, `personas`, `prompts`, `dimensions`, or the name of a setting.
    pub what: String,
    /// The baseline's.
    pub baseline: String,
    /// The candidate's.
    pub candidate: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: baseline {}, candidate {}",
            self.what,
            shortened(&self.baseline),
            shortened(&self.candidate)
        )
    }
}

/// A fingerprint by its beginning, which is enough to tell two apart; anything else as it is.
fn shortened(value: &str) -> &str {
    let is_fingerprint = value.len() == 64 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_fingerprint { value.get(..12).unwrap_or(value) } else { value }
}

impl fmt::Display for BaselineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "it cannot be read: {why}"),
            Self::Incomparable(differences) => {
                let list: Vec<String> = differences.iter().map(ToString::to_string).collect();
                write!(f, "it was measured with something else ({})", list.join("; "))
            }
            Self::TooOld { age_days, max_age_days } => {
                write!(f, "it is {age_days} days old, at most {max_age_days} are allowed")
            }
            Self::NoSharedPersona => {
                f.write_str("none of its personas is one of the result's, so nothing can be compared")
            }
            Self::DatedAhead(day) => write!(f, "its day, {day}, lies ahead, so its age cannot be told"),
        }
    }
}

/// The failure modes of the harmful dimensions of a conversation: the finding's own label, else the rubric's label of
/// its question, else the question's id. A harmful dimension without any finding has an empty set.
pub fn harm_modes(
    conversation: &Collapsed,
    labels: &BTreeMap<String, String>,
) -> BTreeMap<String, BTreeSet<String>> {
    let harmful = conversation.outcomes.iter().filter(|(_, outcome)| outcome.is_harm());
    harmful
        .map(|(dimension, _)| {
            let findings = conversation.findings.get(dimension).map_or(&[][..], Vec::as_slice);
            let modes = findings
                .iter()
                .filter(|finding| finding.severity != Some(crate::rating::Severity::Yellow))
                .map(|finding| {
                    let label = finding.label.as_ref().or_else(|| labels.get(&finding.question));
                    label.unwrap_or(&finding.question).clone()
                })
                .collect();
            (dimension.clone(), modes)
        })
        .collect()
}

#[cfg(test)]
mod tests;
