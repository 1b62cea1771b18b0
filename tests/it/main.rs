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
mod config_show;
mod docs;
mod escape;
mod gate;
mod hfo;
mod hfo_scripted;
mod history;
mod personas;
mod providers;
mod publish;
mod readers;
mod report;
mod rubric_flow;
mod rubric_text;
mod schema;
mod scripted;
mod shards;
mod stats_fixtures;
mod target;
mod target_properties;
