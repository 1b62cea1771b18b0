//! A run on disk: what was planned, what came of it, where it comes from, and the files that hold it.

mod folder;
pub mod merge;
mod record;

pub use folder::{FolderError, RunFolder};
pub use record::{
    CONFIRMATIONS_FILE, MATRIX_FILE, MergedShard, ModelRecord, PLAN_FILE, PLAN_SCHEMA, PlanFile,
    PlannedConversation, RUN_FILE, RUN_SCHEMA, RunRecord, Settings, Stop, UsageRecord,
};
