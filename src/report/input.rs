//! What a report is built from, beside the gate's verdict.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::Evidence;
use crate::gate::GateVerdict;
use crate::matrix::{Collapsed, Matrix};
use crate::transcript::ConversationId;

/// Everything a report is built from. Texts are raw; each rendering escapes for itself.
#[derive(Clone, Debug)]
pub struct ReportInput<'a> {
    /// The gate's answer with matrix, coverage, rules and reasons.
    pub verdict: &'a GateVerdict,
    /// The conversations, one evaluation each; empty when only counts are there.
    pub conversations: &'a [Collapsed],
    /// The matrix of the baseline that the change columns compare with, and what it is called. Shown only when the
    /// verdict holds a usable baseline.
    pub baseline: Option<(&'a str, &'a Matrix)>,
    /// How much of a judge's reason may be shown.
    pub evidence: Evidence,
    /// A heading of the team's own.
    pub name: Option<String>,
    /// What must stand above everything when scripted models took part.
    pub notice: Option<String>,
    /// Whose rules judged a pull request that changes them: a sentence, then a line for each change.
    pub policy_change: Option<String>,
    /// Where and why the sweep stopped before its plan was done, in whole sentences. What the gate itself says of a
    /// stop stands among its reasons.
    pub stopped_early: Option<String>,
    /// Where the result comes from.
    pub provenance: Provenance,
    /// What was used, per role and model.
    pub usage: Vec<RoleUsage>,
    /// What happened to single messages.
    pub turn_flags: TurnFlags,
    /// Conversations whose text tries to instruct the judge.
    pub injection_suspects: Vec<InjectionSuspect>,
    /// What a reader should know about how the run came about, in whole sentences.
    pub warnings: Vec<String>,
    /// Where more is to be found.
    pub links: Links,
}

/// The target as reports name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetInfo {
    /// Short name.
    pub name: String,
    /// Version, if it states one.
    pub version: Option<String>,
    /// Title, if it states one.
    pub title: Option<String>,
    /// What it says about itself.
    pub notice: Option<String>,
    /// Whether clinicians checked it; `None` when it does not say.
    pub clinically_validated: Option<bool>,
}

/// A model in its role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUse {
    /// `user`, `candidate` or `judge`.
    pub role: String,
    /// The model that was asked for.
    pub requested: String,
    /// The models that said they answered; more than one means that the provider changed it during the run.
    pub returned: Vec<String>,
}

/// Where a result comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// What the chatbot under test is called.
    pub candidate: String,
    /// The target.
    pub target: TargetInfo,
    /// Version of this tool.
    pub tool_version: String,
    /// Names the run.
    pub run_id: String,
    /// When the run started, RFC 3339.
    pub started: String,
    /// When it ended, RFC 3339.
    pub finished: String,
    /// Seed of the selection and the order, if one was used.
    pub seed: Option<u64>,
    /// Where the configuration came from.
    pub config: String,
    /// Models by role.
    pub models: Vec<ModelUse>,
    /// SHA-256 by what it is taken of: `rubric`, `personas`, `prompts`, `config`.
    pub fingerprints: BTreeMap<String, String>,
}

/// What one model in one role used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleUsage {
    /// `user`, `candidate` or `judge`.
    pub role: String,
    /// The model that was asked for.
    pub model: String,
    /// Calls that came back, replayed ones left out.
    pub calls: u64,
    /// Requests made for them; more than calls when some were repeated.
    pub attempts: u64,
    /// Calls answered from a recording.
    pub replayed: u64,
    /// Prompt tokens neither read from nor written to a cache.
    pub input: u64,
    /// Prompt tokens read from a cache.
    pub cache_read: u64,
    /// Prompt tokens written to a cache.
    pub cache_write: u64,
    /// Reply tokens without reasoning.
    pub output: u64,
    /// Reasoning tokens.
    pub reasoning: u64,
    /// Calls whose tokens the provider did not say.
    pub unknown_usage: u64,
    /// Known cost in micro-dollars.
    pub cost_micros: u64,
    /// Calls whose cost is unknown.
    pub unknown_cost: u64,
}

/// What happened to single messages, counted in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnFlags {
    /// Messages of the candidate in all.
    pub candidate_messages: u64,
    /// The candidate declined through its provider's refusal channel.
    pub refusals: u64,
    /// The candidate's message was cut at its length limit.
    pub truncated: u64,
    /// The provider's filter cut or replaced the candidate's message.
    pub filtered: u64,
    /// The person would have seen no reply at all.
    pub no_reply: u64,
    /// A message of the user model was asked for again because the first broke the role.
    pub user_resampled: u64,
}

impl TurnFlags {
    /// Whether anything happened that a reader should know.
    pub fn any(&self) -> bool {
        let Self { candidate_messages: _, refusals, truncated, filtered, no_reply, user_resampled } = *self;
        [refusals, truncated, filtered, no_reply, user_resampled].iter().any(|n| *n > 0)
    }
}

/// A conversation whose text tries to instruct the judge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InjectionSuspect {
    /// The conversation.
    pub conversation: ConversationId,
    /// What was found. Part of a conversation: kept only at the evidence level `quotes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Where more is to be found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    /// The workflow run.
    pub run: Option<String>,
    /// The artifact with the full report.
    pub artifact: Option<String>,
}
