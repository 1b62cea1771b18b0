//! What ends a command without a result: each kind knows its exit code and what a person can do.

use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostics;
use crate::exit::Exit;

/// The top-level error of a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line asks for something that does not go together.
    #[error("{0}")]
    Usage(String),
    /// An input file is refused.
    #[error("{0}")]
    Invalid(Diagnostics),
    /// The machine refused to read or write.
    #[error("`{path}`: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the machine said.
        source: std::io::Error,
    },
    /// A provider, a local program or the machine gave up for good.
    #[error("{0}")]
    Provider(String),
    /// There is not enough to go on: no verdict is possible.
    #[error("{0}")]
    Incomplete(String),
    /// The result could not be published.
    #[error("{0}")]
    Publish(String),
    /// A fault of this program.
    #[error("{0} (this is a fault of vera-gate; please report it)")]
    Internal(String),
}

impl Error {
    /// An error of the machine about this path.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) | Self::Invalid(_) => Exit::Usage,
            Self::Io { .. } | Self::Provider(_) => Exit::Provider,
            Self::Incomplete(_) => Exit::Inconclusive,
            Self::Publish(_) => Exit::PublishFailed,
            Self::Internal(_) => Exit::Internal,
        }
    }
}

impl From<Diagnostics> for Error {
    fn from(problems: Diagnostics) -> Self {
        Self::Invalid(problems)
    }
}
