//! The flow rubric: questions by dimension, their answers, and where each answer leads.
//!
//! `parse` reads the table, `validate` refuses flows that cannot be walked or cannot find harm, `flow` walks one
//! answer at a time and scores a finished walk, `graph` looks at all walks at once.

mod flow;
mod graph;
mod parse;
mod validate;

pub use flow::{
    Answered, DimensionOutcome, DimensionResult, NotRelevantCause, PathError, Semantics, check_path,
    score_answers, score_path,
};
pub use graph::{Edge, Graph, Walk};

use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostics;
use crate::source::Source;

/// What a Yes on a question means for its dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Suboptimal but low potential for harm.
    Yellow,
    /// High potential for harm.
    Red,
}

impl Severity {
    /// The word in rubric files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yellow => "Yellow",
            Self::Red => "Red",
        }
    }
}

/// Where an answer leads. Questions are given by their index in [`Rubric::questions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transition {
    /// This question is next.
    Ask(usize),
    /// What was recorded for the current dimension is replaced by Not Relevant, and this question is next.
    NotRelevant(usize),
    /// The walk ends; dimensions that were not visited are Not Relevant.
    AssignEnd,
    /// The walk ends because the conversation cannot be rated any further.
    End,
    /// No question is left; what was recorded is scored.
    Done,
}

impl Transition {
    /// The question that comes next, if any.
    pub fn question(self) -> Option<usize> {
        match self {
            Self::Ask(next) | Self::NotRelevant(next) => Some(next),
            Self::AssignEnd | Self::End | Self::Done => None,
        }
    }
}

/// One answer a question offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerOption {
    /// What the judge is shown.
    pub text: String,
    /// Where it leads.
    pub then: Transition,
    /// Byte offset of the answer in the rubric's text.
    at: usize,
    /// Byte offset of the GOTO cell.
    goto_at: usize,
}

impl AnswerOption {
    /// Whether choosing this option records a finding: only a `Yes` does, in any case.
    pub fn is_yes(&self) -> bool {
        self.text.eq_ignore_ascii_case("yes")
    }
}

/// Whether the file lists a question's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// The file lists them.
    Listed,
    /// It lists none: `Yes` and `No` are offered, and `Yes` skips the rest of the dimension.
    ImplicitYesNo,
}

/// One question of the flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Opaque and unique, such as `4` or `1a`.
    pub id: String,
    /// Index of its dimension in [`Rubric::dimensions`].
    pub dimension: usize,
    /// What a Yes means; `None` for questions that only steer the flow.
    pub severity: Option<Severity>,
    /// Short name of the failure a Yes stands for, where the file has one.
    pub label: Option<String>,
    /// VERA-MH's remark on which risk the question is about; informational.
    pub risk_type: Option<String>,
    /// The question itself.
    pub text: String,
    /// Definitions and examples shown with it; may be empty.
    pub examples: String,
    /// What can be answered, in the order shown to the judge.
    pub options: Vec<AnswerOption>,
    /// Whether the file lists the answers.
    pub answers: Answers,
    /// The option that is taken without asking the judge.
    pub auto: Option<usize>,
    /// Line of the rubric file, from 1.
    pub line: usize,
    /// Byte offset of the id in the rubric's text.
    at: usize,
}

impl Question {
    /// The option with this text, ignoring case and outer spaces.
    pub fn option_named(&self, text: &str) -> Option<usize> {
        let wanted = text.trim().to_lowercase();
        self.options.iter().position(|option| option.text.to_lowercase() == wanted)
    }

    /// The options a walk can take: the automatic one, or all of them.
    pub fn live_options(&self) -> impl Iterator<Item = (usize, &AnswerOption)> {
        self.options.iter().enumerate().filter(|(index, _)| self.auto.is_none_or(|auto| auto == *index))
    }

    /// Model calls it takes to answer the question: 1, or 0 for an automatic one.
    pub fn calls(&self) -> usize {
        usize::from(self.auto.is_none())
    }
}

/// A validated flow rubric: at least one question, no cycle, every answer leads somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rubric {
    /// The questions in the order of the file; the walk starts at the first.
    pub questions: Vec<Question>,
    /// The dimensions in the order of the file.
    pub dimensions: Vec<String>,
}

/// What a question without a dimension means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlankDimension {
    /// The dimension before it in the file, as in VERA-MH 1.1.
    Inherit,
    /// An error, as in VERA-MH 2.0.
    Reject,
}

impl Rubric {
    /// Reads and validates a rubric.
    ///
    /// # Errors
    /// All problems of the file at once, if any of them refuses it; else the warnings come with the rubric.
    pub fn parse(source: &Source, blank: BlankDimension) -> Result<(Self, Diagnostics), Diagnostics> {
        let mut problems = Diagnostics::new();
        let draft = parse::read(source, blank, &mut problems);
        let rubric = draft.map(|draft| {
            validate::check(&draft, source, &mut problems);
            draft.rubric
        });
        problems.finish(rubric)
    }

    /// The question with this id.
    pub fn question_by_id(&self, id: &str) -> Option<usize> {
        self.questions.iter().position(|question| question.id == id)
    }

    /// The name of a question's dimension.
    pub fn dimension_of(&self, question: usize) -> &str {
        self.questions
            .get(question)
            .and_then(|question| self.dimensions.get(question.dimension))
            .map_or("", String::as_str)
    }
}

/// How answers are compared: lower case, single spaces, no full stop or the like at the end.
pub fn fold_answer(text: &str) -> String {
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    folded.trim_end_matches(['.', ',', ';', ':', '!', '?']).trim_end().to_owned()
}

#[cfg(test)]
mod tests;
