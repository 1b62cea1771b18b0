//! The gate: rules, comparison with a baseline, verdict. Pure: values in, one value out.
//!
//! | module | does |
//! |---|---|
//! | [`thresholds`] | reads the thresholds file, every problem at once |
//! | [`rules`] | the rules as typed values |
//! | [`input`] | everything a verdict is computed from |
//! | [`verdict`] | the verdict: what the exit code, report, check and comment read |

pub mod input;
pub mod rules;
pub mod thresholds;
pub mod verdict;

pub use input::{BaselineState, CellStatus, Confirmation, GateInput, PendingConfirmation, PlannedCell};
pub use thresholds::{Known, Thresholds};
pub use verdict::{GateVerdict, Verdict};
