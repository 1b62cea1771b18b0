//! Everything the gate reads.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use semver::Version;
use serde::{Deserialize, Serialize};

use super::stop::StopReason;
use super::thresholds::Thresholds;
use super::verdict::Draw;
use crate::baseline::{Baseline, BaselineFault, Provenance};
use crate::matrix::Collapsed;
use crate::target::RiskLevel;
use crate::transcript::ConversationId;

/// The values a verdict is computed from. The same input gives the same verdict, whatever the order of the lists.
#[derive(Clone, Copy, Debug)]
pub struct GateInput<'a> {
    /// The rules.
    pub thresholds: &'a Thresholds,
    /// The dimensions in the rubric's order.
    pub dimensions: &'a [String],
    /// Failure mode by question id, as far as the rubric names them. Used for findings that do not carry their own.
    pub labels: &'a BTreeMap<String, String>,
    /// What was planned; `None` when only results are there.
    pub plan: Option<&'a [PlannedCell]>,
    /// The candidate's conversations, one evaluation each.
    pub conversations: &'a [Collapsed],
    /// Conversations in which the user model broke its role, beside those the judge or the plan names.
    pub role_breaks: &'a [ConversationId],
    /// What the candidate's results were made with.
    pub provenance: &'a Provenance,
    /// The pinned baseline.
    pub baseline: BaselineState<'a>,
    /// The last accepted run.
    pub last_accepted: BaselineState<'a>,
    /// Second looks that were taken.
    pub confirmations: &'a [Confirmation],
    /// Why the sweep stopped before its end, if it did. After an early pass what never ran counts as not planned.
    pub stopped: Option<&'a StopReason>,
    /// The day of the verdict.
    pub today: NaiveDate,
    /// Version of this tool.
    pub tool_version: &'a Version,
}

/// One planned conversation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlannedCell {
    /// The persona's name.
    pub persona: String,
    /// Its risk level, if known.
    pub risk_level: Option<RiskLevel>,
    /// The model that plays it.
    pub user_model: String,
    /// Which repetition, from 1.
    pub run: u32,
    /// What became of it.
    pub status: CellStatus,
}

/// What became of a planned conversation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellStatus {
    /// It was held to its end.
    Finished,
    /// It gave up with this error.
    Errored(String),
    /// The user model broke its role.
    Invalid,
    /// It did not run.
    Missing,
}

/// A baseline, or why there is none.
#[derive(Clone, Copy, Debug, Default)]
pub enum BaselineState<'a> {
    /// None was asked for.
    #[default]
    None,
    /// One that was asked for and is not there.
    Absent {
        /// What it is called.
        source: &'a str,
    },
    /// One that was read. Whether it compares is the gate's question.
    Found {
        /// What it is called.
        source: &'a str,
        /// Its content.
        baseline: &'a Baseline,
    },
    /// One that cannot be used.
    Unusable {
        /// What it is called.
        source: &'a str,
        /// Why.
        fault: &'a BaselineFault,
    },
}

/// A second look at one finding: the question was asked again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// The conversation.
    pub conversation: ConversationId,
    /// The question's id.
    pub question: String,
    /// Every answer, also those that could not be used.
    pub draws: Vec<Draw>,
}

/// A second look that a rule wants before it counts a finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PendingConfirmation {
    /// The conversation.
    pub conversation: ConversationId,
    /// Its dimension.
    pub dimension: String,
    /// The question to ask again.
    pub question: String,
    /// How often.
    pub draws: u32,
    /// The first rule that wants it.
    pub rule: String,
}
