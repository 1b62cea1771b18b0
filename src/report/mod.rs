//! The report: one value, and a rendering for each reader.
//!
//! | module | does |
//! |---|---|
//! | [`input`] | what a report is built from |
//! | [`mod@build`] | the verdict and its evidence become one [`Report`] |
//! | [`next_steps`] | what a reader does next |
//! | [`words`], [`quotes`] | words and numbers all renderings share; judges' reasons without quotes |
//! | [`view`] | a report as texts escaped for one kind of page, which is all that templates see |
//! | [`templates`] | the Markdown templates, and a team's own in their place |
//! | [`markdown`] | comment, check, job summary, `report.md` |
//! | [`size`] | keeps Markdown within a limit by leaving out whole sections |
//! | [`html`], [`json`], [`junit`], [`terminal`] | the other renderings |
//!
//! A rendering is a function of the report and reads no clock, file or environment. The verdict is decided elsewhere
//! and shown by all of them from the same field.

pub mod build;
pub mod html;
pub mod input;
pub mod json;
pub mod junit;
pub mod markdown;
mod next;
pub mod quotes;
pub mod size;
pub mod templates;
pub mod terminal;
pub mod view;
pub mod words;

use serde::{Deserialize, Serialize};

use crate::config::Evidence;
use crate::exit::Exit;
use crate::gate::verdict::{Drawn, GateVerdict, Observed};
use crate::rating::{RatingOutcome, RolePlay};
use crate::target::RiskLevel;
use crate::transcript::ConversationId;

pub use build::build;
pub use input::{
    InjectionSuspect, Links, ModelUse, Provenance, ReportInput, RoleUsage, TargetInfo, TurnFlags,
};
pub use next::next_steps;
pub use size::{Budget, Fitted, Section};
pub use templates::Templates;

/// Version tag of a report.
pub const SCHEMA: &str = "vera-gate/report/v1";

/// Everything a reader is told. Texts are raw: every rendering escapes them for itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// A heading of the team's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What stands above everything when scripted models took part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// The verdict in one sentence.
    pub headline: String,
    /// What was found about harm, in one sentence.
    pub harm: String,
    /// Whose rules judged a pull request that changes them: a sentence, then a line for each change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_change: Option<String>,
    /// Where and why the sweep stopped early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_early: Option<String>,
    /// The exit code of the command: that of the verdict, or what kept the run from its end.
    pub exit_code: u8,
    /// How much of the judges' reasons this report holds.
    pub evidence: Evidence,
    /// The gate's answer with matrix, coverage, rules and reasons.
    pub verdict: GateVerdict,
    /// Harm in at least one dimension, of relevant conversations.
    pub overall: HarmRate,
    /// What is said of each dimension beside its counts, in the order of the matrix.
    pub dimensions: Vec<DimensionSummary>,
    /// What the change columns compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_with: Option<ComparedWith>,
    /// Harmful findings, those with the highest risk first.
    pub findings: Vec<HarmFinding>,
    /// The conversations with their outcomes, by name.
    pub conversations: Vec<ConversationRow>,
    /// What happened to single messages.
    pub turn_flags: TurnFlags,
    /// Conversations whose text tries to instruct the judge.
    pub injection_suspects: Vec<InjectionSuspect>,
    /// What a reader should know about how the run came about, in whole sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Where the result comes from.
    pub provenance: Provenance,
    /// What was used.
    pub usage: Vec<RoleUsage>,
    /// Where more is to be found.
    pub links: Links,
}

impl Report {
    /// How the command ends.
    pub fn exit(&self) -> Exit {
        Exit::ALL.into_iter().find(|exit| exit.code() == self.exit_code).unwrap_or(Exit::Internal)
    }

    /// The report of a command that ends otherwise than the verdict says, because a provider or the machine gave up.
    /// What the verdict does not let pass stays so.
    #[must_use]
    pub fn with_exit(mut self, exit: Exit) -> Self {
        if exit != Exit::Success || self.verdict.exit() == Exit::Success {
            self.exit_code = exit.code();
        }
        self
    }
}

/// A harm rate and what the counts do not exclude.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HarmRate {
    /// Harmful of relevant conversations.
    pub observed: Observed,
    /// Rates above are excluded at 95 %, conversations with one persona counted for less than their number; `None`
    /// without relevant conversations.
    pub upper: Option<f64>,
    /// Against the baseline.
    pub change: Option<Change>,
}

/// What is said of a dimension beside its counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DimensionSummary {
    /// Its name.
    pub dimension: String,
    /// Its harm rate.
    pub harm: HarmRate,
    /// Best practice against the baseline.
    pub best_practice_change: Option<Change>,
}

/// A share beside that of the baseline. A picture of the counts, not a decision: regression rules decide.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Candidate.
    pub candidate: Observed,
    /// Baseline.
    pub baseline: Observed,
    /// Candidate share minus baseline share, -1 to 1.
    pub difference: f64,
    /// What it means.
    pub direction: Direction,
}

/// What a change means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// For the better.
    Better,
    /// The same share.
    Same,
    /// For the worse.
    Worse,
}

/// What the change columns compare with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedWith {
    /// What it is called.
    pub label: String,
    /// Conversations in it.
    pub conversations: u64,
}

/// A question whose answer found high potential for harm in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HarmFinding {
    /// The conversation.
    pub conversation: ConversationId,
    /// The persona's name.
    pub persona: String,
    /// The persona's risk level, if known.
    pub risk_level: Option<RiskLevel>,
    /// The model that played the person.
    pub user_model: String,
    /// Which repetition, from 1.
    pub run: u32,
    /// The dimension.
    pub dimension: String,
    /// The question, if known.
    pub question: Option<String>,
    /// Its failure mode, if the rubric names one.
    pub failure_mode: Option<String>,
    /// The judge's reason on one line, as far as the evidence level lets it be shown.
    pub reason: Option<String>,
    /// Whether the judges disagreed on the dimension.
    pub split: bool,
    /// What a second look came to, if one was taken.
    pub second_look: Option<Drawn>,
    /// Every answer of it in order, with who was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub second_look_answers: Vec<String>,
}

/// One conversation and its outcomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationRow {
    /// The conversation.
    pub conversation: ConversationId,
    /// The persona's name.
    pub persona: String,
    /// The persona's risk level, if known.
    pub risk_level: Option<RiskLevel>,
    /// The model that played the person.
    pub user_model: String,
    /// Which repetition, from 1.
    pub run: u32,
    /// Whether the user model played the person.
    pub role_play: RolePlay,
    /// The outcome in each dimension, in the order of the matrix.
    pub outcomes: Vec<RatingOutcome>,
}
