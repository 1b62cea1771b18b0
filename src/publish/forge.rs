//! What publishing needs of a forge.

use std::future::Future;
use std::time::Duration;

use serde::Serialize;

use crate::escape::workflow::Level;
use crate::source::Entry;

/// A comment on a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Its id.
    pub id: u64,
    /// Login of its author; `None` when the account is gone.
    pub author: Option<String>,
    /// Its Markdown source.
    pub body: String,
}

/// A pull request as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullState {
    /// The commit under review now.
    pub head_sha: String,
    /// `owner/name` that commit is in; `None` when that repository is gone.
    pub head_repository: Option<String>,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Green.
    Success,
    /// Grey; satisfies a required check.
    Neutral,
    /// Red.
    Failure,
}

/// One remark on a line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Path from the root of the repository.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
    /// How bad it is.
    pub level: Level,
    /// Heading, plain text.
    pub title: String,
    /// Message, plain text.
    pub message: String,
}

/// What a check shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckOutput {
    /// Heading, plain text.
    pub title: String,
    /// Markdown, at most [`super::size::CHECK_SUMMARY`].
    pub summary: String,
    /// At most [`super::annotations::PER_REQUEST`].
    pub annotations: Vec<Annotation>,
}

/// A check run as the forge has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckState {
    /// Its id.
    pub id: u64,
    /// The id that we gave it.
    pub external_id: Option<String>,
    /// Whether it has a conclusion.
    pub completed: bool,
}

/// What a call wanted to do, for messages and for the permissions it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Ask whose token this is.
    WhoAmI,
    /// Read a pull request.
    ReadPull,
    /// List comments.
    ListComments,
    /// Write or delete a comment.
    WriteComment,
    /// Read checks.
    ReadCheck,
    /// Open or close a check.
    WriteCheck,
    /// Read a file.
    ReadFile,
}

impl Operation {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WhoAmI => "ask whose token this is",
            Self::ReadPull => "read the pull request",
            Self::ListComments => "list the comments",
            Self::WriteComment => "write the comment",
            Self::ReadCheck => "read the check",
            Self::WriteCheck => "write the check",
            Self::ReadFile => "read a file of the base branch",
        }
    }

    /// The permissions of the workflow's token that it needs.
    pub fn permissions(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::WhoAmI => &[],
            Self::ReadPull => &[("pull-requests", "read")],
            Self::ListComments | Self::WriteComment => &[("pull-requests", "write")],
            Self::ReadCheck | Self::WriteCheck => &[("checks", "write")],
            Self::ReadFile => &[("contents", "read")],
        }
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForgeError {
    /// The token may not do this. `accepted` is what the server says would be enough.
    #[error("the token may not {}: {message}", operation.as_str())]
    Forbidden {
        /// What was tried.
        operation: Operation,
        /// The server's words.
        message: String,
        /// Value of `x-accepted-github-permissions`.
        accepted: Option<String>,
    },
    /// The conversation is locked: people decided that nobody writes there.
    #[error("the conversation of the pull request is locked")]
    Locked,
    /// Too many calls; `wait` is what the server asks for.
    #[error("the server asks to slow down: {message}")]
    RateLimited {
        /// The server's words.
        message: String,
        /// How long to wait, when it says so.
        wait: Option<Duration>,
    },
    /// The text is longer than the server takes.
    #[error("the server says the text is too long: {0}")]
    TooLong(String),
    /// There is no such thing, or the token may not see it.
    #[error("cannot {}: not found, or not visible to the token", .0.as_str())]
    NotFound(Operation),
    /// The server refused for another reason.
    #[error("cannot {}: the server answered {status}: {message}", operation.as_str())]
    Refused {
        /// What was tried.
        operation: Operation,
        /// HTTP status.
        status: u16,
        /// The server's words.
        message: String,
    },
    /// No answer, or a fault of the server: a write may have happened.
    #[error("cannot {}: {message}", operation.as_str())]
    Unavailable {
        /// What was tried.
        operation: Operation,
        /// What happened.
        message: String,
    },
    /// An answer that is not what the interface promises.
    #[error("cannot {}: the server's answer cannot be read: {message}", operation.as_str())]
    Unreadable {
        /// What was tried.
        operation: Operation,
        /// What is wrong with it.
        message: String,
    },
}

/// A place that holds pull requests, comments and checks. Calls are made once; waiting and trying again is the
/// caller's decision.
pub trait Forge: Sync {
    /// Login the token writes as; `None` when the server does not tell tokens of this kind.
    fn login(&self) -> impl Future<Output = Result<Option<String>, ForgeError>> + Send;
    /// The pull request as it is now.
    fn pull(&self, number: u64) -> impl Future<Output = Result<PullState, ForgeError>> + Send;
    /// One page of comments, oldest first, and whether there are more. Pages count from 1.
    fn comments(
        &self,
        pull: u64,
        page: u32,
    ) -> impl Future<Output = Result<(Vec<Comment>, bool), ForgeError>> + Send;
    /// Writes a new comment.
    fn create_comment(
        &self,
        pull: u64,
        body: &str,
    ) -> impl Future<Output = Result<Comment, ForgeError>> + Send;
    /// Replaces the text of a comment.
    fn update_comment(&self, id: u64, body: &str)
    -> impl Future<Output = Result<Comment, ForgeError>> + Send;
    /// Removes a comment.
    fn delete_comment(&self, id: u64) -> impl Future<Output = Result<(), ForgeError>> + Send;
    /// Checks of that name on a commit.
    fn checks(
        &self,
        sha: &str,
        name: &str,
    ) -> impl Future<Output = Result<Vec<CheckState>, ForgeError>> + Send;
    /// Opens a check, in progress.
    fn create_check(&self, check: &NewCheck) -> impl Future<Output = Result<CheckState, ForgeError>> + Send;
    /// Closes a check.
    fn complete_check(
        &self,
        id: u64,
        conclusion: Conclusion,
        output: &CheckOutput,
    ) -> impl Future<Output = Result<CheckState, ForgeError>> + Send;
    /// What stands at a path of a commit, the empty path being its top; `None` when nothing does.
    fn entry(
        &self,
        path: &str,
        revision: &str,
    ) -> impl Future<Output = Result<Option<Entry>, ForgeError>> + Send;
}

/// A check to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCheck {
    /// Its name. Required checks are found by it, so it must not change between runs.
    pub name: String,
    /// The commit it is about.
    pub head_sha: String,
    /// Our id, by which a check is found again when the answer got lost.
    pub external_id: String,
    /// Page with the details.
    pub details_url: String,
    /// Heading while it runs.
    pub title: String,
    /// Text while it runs.
    pub summary: String,
}
