//! A run on disk: what was planned, what came of it, where it comes from, and the files that hold it.

mod folder;
mod record;

pub use folder::{FolderError, RunFolder};
pub use record::{
    MATRIX_FILE, ModelRecord, PLAN_FILE, PLAN_SCHEMA, PlanFile, PlannedConversation, RUN_FILE, RUN_SCHEMA,
    RunRecord, Settings, Stop, UsageRecord,
};
