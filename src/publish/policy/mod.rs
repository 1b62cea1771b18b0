//! The policy of the base branch, and what a pull request would change in it.
//!
//! In a pull request the base branch's configuration, thresholds, rubric, personas and baseline decide; otherwise a
//! change could loosen the gate it has to pass. A change to them is shown in words on top of the report.

pub mod compare;
pub mod forge;
pub mod git;

/// Why the base branch cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The revision is not the id of a commit.
    #[error("{0:?} is not the id of a commit")]
    Revision(String),
    /// git is not there, or failed.
    #[error("git: {0}")]
    Git(String),
    /// The checkout does not hold the commit.
    #[error("the checkout in {root} does not hold it")]
    Absent {
        /// The folder.
        root: String,
    },
    /// The forge does not show the commit.
    #[error("{0}")]
    Forge(String),
}

/// Whether a text is the full id of a commit, which neither an option nor a range can be.
fn is_commit_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())
}
