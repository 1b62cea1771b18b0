//! Every exit code of the tool, documented once.

use std::process::ExitCode;

/// How a command ended, as the calling shell sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// The gate passed, or passed with warnings; or a command without a verdict did its work.
    Success = 0,
    /// A blocking rule is broken.
    GateFailed = 1,
    /// The command line or an input file is wrong; nothing was measured.
    Usage = 2,
    /// There is not enough evidence for a verdict, or the run is incomplete.
    Inconclusive = 3,
    /// A provider or the machine gave up for good.
    Provider = 4,
    /// Publishing failed, and nothing worse happened.
    PublishFailed = 5,
    /// A fault of the tool itself.
    Internal = 70,
}

impl Exit {
    /// All codes, for the documentation and its test.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::GateFailed,
        Self::Usage,
        Self::Inconclusive,
        Self::Provider,
        Self::PublishFailed,
        Self::Internal,
    ];

    /// The number the shell sees.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// One or two sentences for the documentation.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Success => {
                "The gate passed, or passed with warnings; or a command without a verdict did its work."
            }
            Self::GateFailed => "A blocking rule is broken.",
            Self::Usage => "The command line or an input file is wrong. Nothing was measured.",
            Self::Inconclusive => {
                "There is not enough evidence for a verdict, or the run is incomplete. Not a pass."
            }
            Self::Provider => "A provider or the machine gave up for good.",
            Self::PublishFailed => {
                "Publishing failed, and nothing worse happened. It never softens a verdict."
            }
            Self::Internal => "A fault of the tool itself. Please report it.",
        }
    }

    /// One word for outputs and logs.
    pub fn class(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::GateFailed => "gate-failed",
            Self::Usage => "usage",
            Self::Inconclusive => "inconclusive",
            Self::Provider => "provider",
            Self::PublishFailed => "publish-failed",
            Self::Internal => "internal",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
