//! Integration tests, one binary so that the crate is linked once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    reason = "clippy.toml allows them in tests, but clippy does not see helpers of an integration test as tests"
)]

mod calibrate;
mod cli;
mod compatibility;
mod config_show;
mod docs;
mod documents;
mod escape;
mod gate;
mod hfo;
mod hfo_scripted;
mod history;
mod judge_ahead;
mod personas;
mod providers;
mod publish;
mod readers;
mod report;
mod resume;
mod rubric_flow;
mod rubric_text;
mod scheduler;
mod schema;
mod scripted;
mod shards;
mod stats_fixtures;
mod target;
mod target_properties;

/// A part of the data beside the repository; says that a test is skipped when it is not there.
fn data(part: &str) -> Option<std::path::PathBuf> {
    let folder = std::env::var_os("VERA_GATE_DATA").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
        std::path::PathBuf::from,
    );
    let path = folder.join(part);
    if !path.exists() {
        eprintln!("SKIPPED: {part} is not there; set VERA_GATE_DATA to the folder that holds it");
        return None;
    }
    Some(path)
}
