//! vera-gate: a gate that stops a harmful chatbot before it reaches people in crisis.

pub mod baseline;
pub mod calibrate;
pub mod cli;
pub mod config;
pub mod diagnostic;
pub mod error;
pub mod escape;
pub mod exit;
pub mod fingerprint;
pub mod gate;
pub mod history;
pub mod judge;
pub mod matrix;
pub mod model;
pub mod publish;
pub mod rating;
pub mod report;
pub mod run;
pub mod source;
pub mod stats;
pub mod sweep;
pub mod target;
pub mod transcript;
