//! The content of `run.json` and `plan.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::gate::stop::StopReason;
use crate::model::Role;
use crate::model::meter::LedgerRow;
use crate::sweep::plan::Cell;
use crate::sweep::scheduler::CellStatus;
use crate::sweep::shard::Shard;
use crate::target::Fingerprints;
use crate::target::rubric::Semantics;

/// Version tag of `run.json`.
pub const RUN_SCHEMA: &str = "vera-gate/run/v1";
/// Version tag of `plan.json`.
pub const PLAN_SCHEMA: &str = "vera-gate/plan/v1";
/// Name of the record in a run folder.
pub const RUN_FILE: &str = "run.json";
/// Name of the plan in a run folder.
pub const PLAN_FILE: &str = "plan.json";
/// Name of the second looks in a run folder.
pub const CONFIRMATIONS_FILE: &str = "confirmations.json";
/// Name of the matrix in a run folder.
pub const MATRIX_FILE: &str = "matrix.json";

/// Provenance, coverage, usage and cost of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// [`RUN_SCHEMA`].
    pub schema: String,
    /// Names the run.
    pub run_id: String,
    /// Version of the tool.
    pub tool_version: String,
    /// Hash of everything the results depend on.
    pub plan_hash: String,
    /// What that is, part by part.
    pub plan_parts: BTreeMap<String, String>,
    /// Which part of the plan this is, as `k/n`; `None` for the whole.
    pub shard: Option<Shard>,
    /// The runs of shards that this one was merged from; none for a run that held its conversations itself.
    #[serde(default)]
    pub merged: Vec<MergedShard>,
    /// Where the configuration came from.
    pub config: String,
    /// The target's short name.
    pub target: String,
    /// The target's version, if it states one.
    pub target_version: Option<String>,
    /// The target's title, if it states one.
    pub target_title: Option<String>,
    /// What the target says about itself.
    pub target_notice: Option<String>,
    /// Whether clinicians validated the target, if it says so.
    pub clinically_validated: Option<bool>,
    /// SHA-256 of rubric, personas and prompts.
    pub fingerprints: Fingerprints,
    /// What reports call the candidate.
    pub candidate: String,
    /// The models by role.
    pub models: Vec<ModelRecord>,
    /// What was simulated.
    pub settings: Settings,
    /// When the run started, RFC 3339.
    pub started: String,
    /// When it ended, RFC 3339.
    pub finished: String,
    /// Planned conversations; of a shard, its own.
    pub planned: u64,
    /// Held to their end.
    pub held: u64,
    /// Evaluations that are there.
    pub evaluated: u64,
    /// Whether all planned conversations were held and evaluated by every judge.
    pub complete: bool,
    /// Why the run ended before its plan was done.
    pub stopped: Option<Stop>,
    /// Calls answered from a recording instead of a provider.
    pub replayed_calls: u64,
    /// What a reader should know about how the run came about.
    pub warnings: Vec<String>,
    /// What was used, per role, model and stage.
    pub usage: Vec<UsageRecord>,
}

/// One shard's part in a merged run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergedShard {
    /// Which.
    pub shard: Shard,
    /// Its run.
    pub run_id: String,
    /// When that started, RFC 3339.
    pub started: String,
    /// When it ended, RFC 3339.
    pub finished: String,
}

/// Why a run ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "detail")]
pub enum Stop {
    /// No further call could have succeeded.
    Provider(String),
    /// The budget or the deadline is used up.
    Budget(String),
    /// A person or the machine asked for it.
    Cancelled,
    /// Something could not be written.
    Storage(String),
    /// Shards of a merged run are missing, or are not what they should be.
    Shards(String),
    /// The rest could not have changed the verdict.
    Curtailed(StopReason),
}

/// A model in its role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRecord {
    /// The role.
    pub role: Role,
    /// Provider profile.
    pub provider: String,
    /// The model id as requested.
    pub requested: String,
    /// SHA-256 of everything in the configuration that shapes its replies.
    pub settings: String,
    /// The model ids that came back.
    pub returned: Vec<String>,
    /// Whether the id names one fixed version.
    pub pinned: bool,
    /// Repetitions, for judges.
    pub instances: u32,
}

/// What was simulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Conversations per persona and user model.
    pub runs: u32,
    /// Messages per conversation.
    pub max_messages: u32,
    /// Words per conversation.
    pub max_words: Option<u32>,
    /// Who started.
    pub first_speaker: String,
    /// Seed of sample, order and scripted models.
    pub seed: u64,
    /// Which rules rated the walks.
    #[serde(default, skip_serializing_if = "Semantics::is_native")]
    pub semantics: Semantics,
}

/// What one model used in one role and stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageRecord {
    /// The role.
    pub role: Role,
    /// Provider profile and requested model.
    pub model: String,
    /// Part of the work, such as `turn` or `question`.
    pub stage: String,
    /// Calls that came back.
    pub calls: u64,
    /// Requests made for them.
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
    /// Known cost in dollars, as a decimal; exact.
    pub cost: String,
    /// Known cost in millionths of a dollar, rounded up.
    pub cost_micros: u64,
    /// Calls whose cost is unknown: the true cost is higher than the sum.
    pub unknown_cost: u64,
}

impl From<&LedgerRow> for UsageRecord {
    fn from(row: &LedgerRow) -> Self {
        Self {
            role: row.role,
            model: format!("{}/{}", row.provider, row.model),
            stage: row.stage.clone(),
            calls: row.calls,
            attempts: row.attempts,
            replayed: row.replayed,
            input: row.usage.input,
            cache_read: row.usage.cache_read,
            cache_write: row.usage.cache_write,
            output: row.usage.output,
            reasoning: row.usage.reasoning,
            unknown_usage: row.unknown_usage,
            cost: row.cost.to_string(),
            cost_micros: row.cost.micros(),
            unknown_cost: row.unknown_cost,
        }
    }
}

/// The plan with what became of each conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// [`PLAN_SCHEMA`].
    pub schema: String,
    /// The dimensions in the rubric's order.
    pub dimensions: Vec<String>,
    /// Failure mode by question id, as far as the rubric names them.
    pub labels: BTreeMap<String, String>,
    /// The judges, as `model#instance`.
    pub judges: Vec<String>,
    /// The conversations, ordered by name.
    pub conversations: Vec<PlannedConversation>,
}

/// One planned conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedConversation {
    /// Which.
    pub cell: Cell,
    /// What became of it.
    pub status: CellStatus,
}
