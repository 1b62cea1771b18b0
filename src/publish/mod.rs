//! Publishing a result: comment, check, job summary, annotations, step outputs.
//!
//! Nothing here decides. A [`Publication`] comes in with its verdict; what cannot be shown is reported as a warning,
//! and never makes a verdict better or worse.

pub mod annotations;
pub mod check_run;
pub mod context;
pub mod event;
pub mod forge;
pub mod from_report;
pub mod github;
pub mod handover;
pub mod outputs;
pub mod pace;
pub mod permissions;
pub mod policy;
pub mod preview;
pub mod publisher;
pub mod session;
pub mod size;
pub mod starter;
pub mod sticky;
pub mod summary;
pub mod trust;

use std::collections::BTreeMap;

pub use crate::report::size::Section;
pub use context::ActionsContext;
pub use forge::{Annotation, Forge, ForgeError};
pub use github::GitHub;
pub use publisher::{Options, Published, Publisher, State, Warning};

use crate::escape::markdown::{self, Markdown};
use crate::exit::Exit;
use forge::Conclusion;

/// What there is to say about a run, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// Nothing broke a rule, on enough evidence.
    Pass,
    /// Only advisory rules are broken.
    Warn,
    /// A blocking rule is broken.
    Fail,
    /// There is not enough evidence for a verdict.
    Inconclusive,
    /// The input is wrong; nothing was measured.
    Invalid,
    /// The run ended without a result.
    DidNotFinish,
    /// The run has started.
    Running,
}

impl Word {
    /// The word in machine output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
            Self::Invalid => "invalid",
            Self::DidNotFinish => "did-not-finish",
            Self::Running => "running",
        }
    }

    /// The word for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pass => "Pass",
            Self::Warn => "Pass with warnings",
            Self::Fail => "Fail",
            Self::Inconclusive => "Inconclusive",
            Self::Invalid => "Invalid input",
            Self::DidNotFinish => "Did not finish",
            Self::Running => "Running",
        }
    }

    /// A picture beside the word, never instead of it.
    pub fn icon(self) -> &'static str {
        match self {
            Self::Pass => "\u{2705}",
            Self::Warn => "\u{26A0}\u{FE0F}",
            Self::Fail => "\u{274C}",
            Self::Inconclusive => "\u{2753}",
            Self::Invalid | Self::DidNotFinish => "\u{1F6D1}",
            Self::Running => "\u{23F3}",
        }
    }

    /// Kind of GitHub's alert box.
    fn alert(self) -> &'static str {
        match self {
            Self::Pass => "TIP",
            Self::Warn => "WARNING",
            Self::Fail | Self::Invalid | Self::DidNotFinish => "CAUTION",
            Self::Inconclusive => "IMPORTANT",
            Self::Running => "NOTE",
        }
    }

    /// The exit code that goes with the word by itself.
    pub fn exit(self) -> Exit {
        match self {
            Self::Pass | Self::Warn => Exit::Success,
            Self::Fail => Exit::GateFailed,
            Self::Inconclusive => Exit::Inconclusive,
            Self::Invalid => Exit::Usage,
            Self::DidNotFinish | Self::Running => Exit::Internal,
        }
    }
}

/// What is to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The verdict, decided elsewhere.
    pub word: Word,
    /// The exit code that was decided with it: a thresholds file can let an inconclusive result go on.
    pub exit: Exit,
    /// Heading of the check, plain text.
    pub title: String,
    /// The verdict in one sentence, plain text.
    pub one_line: String,
    /// Heading and alert box of the comment; made of the fields above when absent.
    pub heading: Option<Markdown>,
    /// Heading in a few hundred characters, for when nothing else fits; made of the fields above when absent.
    pub short_heading: Option<Markdown>,
    /// The rest of the comment, in its order.
    pub sections: Vec<Section>,
    /// Remarks on lines of the thresholds file, or of others.
    pub annotations: Vec<Annotation>,
    /// Values for later steps of the workflow.
    pub outputs: BTreeMap<String, String>,
    /// Where the full report is, such as "the artifact `vera-gate` of this run".
    pub full_report: Markdown,
}

impl Publication {
    /// A publication without sections.
    pub fn short(word: Word, one_line: impl Into<String>) -> Self {
        Self {
            word,
            exit: word.exit(),
            title: word.label().to_owned(),
            one_line: one_line.into(),
            heading: None,
            short_heading: None,
            sections: Vec::new(),
            annotations: Vec::new(),
            outputs: BTreeMap::from([("verdict".to_owned(), word.as_str().to_owned())]),
            full_report: Markdown::trusted("the files of this run"),
        }
    }

    /// What stands while the gate works.
    pub fn running() -> Self {
        Self::short(Word::Running, "The conversations are being held and judged. There is no result yet.")
    }

    /// What stands when the gate died without a result.
    pub fn did_not_finish() -> Self {
        Self::short(
            Word::DidNotFinish,
            "The run ended before there was a result. Nothing can be concluded from it.",
        )
    }

    /// What stands when the input was refused.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self::short(Word::Invalid, reason)
    }

    /// What the check says. It is green or grey exactly when the exit code is 0, and green only for a pass.
    pub fn conclusion(&self) -> Conclusion {
        match (self.exit, self.word) {
            (Exit::Success, Word::Pass) => Conclusion::Success,
            (Exit::Success, Word::Warn | Word::Inconclusive) => Conclusion::Neutral,
            _ => Conclusion::Failure,
        }
    }

    /// Heading and alert box.
    pub fn heading(&self) -> Markdown {
        self.heading.clone().unwrap_or_else(|| {
            Markdown::trusted(format!(
                "## {} vera-gate: {}\n\n> [!{}]\n> {}",
                self.word.icon(),
                markdown::inline(&self.title),
                self.word.alert(),
                markdown::inline(&self.one_line),
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_and_exit_code_agree() {
        let words = [
            Word::Pass,
            Word::Warn,
            Word::Fail,
            Word::Inconclusive,
            Word::Invalid,
            Word::DidNotFinish,
            Word::Running,
        ];
        for word in words {
            for exit in Exit::ALL {
                let publication = Publication { exit, ..Publication::short(word, "x") };
                let conclusion = publication.conclusion();
                assert_eq!(conclusion == Conclusion::Success, exit == Exit::Success && word == Word::Pass);
                assert!(exit == Exit::Success || conclusion == Conclusion::Failure, "{word:?} {exit:?}");
            }
        }
        let lenient = Publication { exit: Exit::Success, ..Publication::short(Word::Inconclusive, "x") };
        assert_eq!(lenient.conclusion(), Conclusion::Neutral);
        assert_eq!(Publication::short(Word::Inconclusive, "x").conclusion(), Conclusion::Failure);
    }

    #[test]
    fn a_short_publication_says_what_happened() {
        let heading = Publication::invalid("thresholds.yaml: unknown key `@team`").heading();
        assert_eq!(
            heading.as_str(),
            "## \u{1F6D1} vera-gate: Invalid input\n\n> [!CAUTION]\n> thresholds.yaml: unknown key \\`@\u{200B}team\\`"
        );
    }
}
