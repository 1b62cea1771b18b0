//! From the table to questions whose answers point at each other.

use std::collections::{BTreeMap, BTreeSet};

use super::{AnswerOption, Answers, BlankDimension, Question, Rubric, Severity, Transition, fold_answer};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::source::Source;
use crate::target::table::{Cell, Delimiter, Row, Shape, Table};

const END: &str = "END";
const ASSIGN_END: &str = "ASSIGN_END";
const NOT_RELEVANT: &str = "NOT_RELEVANT>>";

/// VERA-MH before 2.0 answers a question with this text by itself; the column `Auto Answer` replaced it.
const AUTOMATIC_TEXT: &str = "select \"rate this dimension not relevant\".";
const AUTOMATIC_OPTION: &str = "rate this dimension not relevant";

/// What was read, and what is known to be wrong with it, so that no fault is reported twice.
pub(super) struct Draft {
    pub(super) rubric: Rubric,
    /// Answers whose GOTO could not be resolved, as (question, option).
    pub(super) unresolved: BTreeSet<(usize, usize)>,
    /// Questions whose severity could not be read.
    pub(super) unread_severities: BTreeSet<usize>,
    /// Later questions with the id of an earlier one: no GOTO can name them.
    pub(super) shadowed: BTreeSet<usize>,
}

struct Columns {
    id: Option<usize>,
    dimension: Option<usize>,
    severity: Option<usize>,
    risk_type: Option<usize>,
    question: Option<usize>,
    examples: Option<usize>,
    answer: Option<usize>,
    goto: Option<usize>,
    auto: Option<usize>,
    label: Option<usize>,
}

const REQUIRED: [&str; 6] = ["Question ID", "Dimension", "Severity", "Question", "Answer", "GOTO"];
const OPTIONAL: [&str; 4] = ["Risk Type", "Examples", "Auto Answer", "Label"];

impl Columns {
    fn find(table: &Table, problems: &mut Diagnostics) -> Option<Self> {
        let mut complete = true;
        for name in REQUIRED {
            if table.column(name).is_none() {
                complete = false;
                problems.push(
                    Diagnostic::error(Code::MissingColumn, format!("column `{name}` is missing"))
                        .at(table.source().at(1, 1))
                        .help("names are exact, spaces and case included"),
                );
            }
        }
        // An optional column under a slightly wrong name would be dropped without a word.
        for cell in &table.header {
            let name = cell.text.trim();
            let near = OPTIONAL.iter().find(|known| known.eq_ignore_ascii_case(name));
            if let Some(known) = near
                && cell.text != **known
                && !(*known == "Label" && cell.text == "label")
            {
                problems.push(
                    Diagnostic::error(Code::MissingColumn, format!("column `{}` is not read", cell.text))
                        .at(table.at(cell))
                        .help(format!("names are exact: `{known}`")),
                );
            }
        }
        complete.then(|| Self {
            id: table.column("Question ID"),
            dimension: table.column("Dimension"),
            severity: table.column("Severity"),
            risk_type: table.column("Risk Type"),
            question: table.column("Question"),
            examples: table.column("Examples"),
            answer: table.column("Answer"),
            goto: table.column("GOTO"),
            auto: table.column("Auto Answer"),
            label: table.column("Label").or_else(|| table.column("label")),
        })
    }
}

/// A cell without its outer spaces.
fn trimmed(row: &Row, column: Option<usize>) -> Cell {
    let cell = row.cell(column);
    let text = cell.text.trim();
    let leading = cell.text.len() - cell.text.trim_start().len();
    Cell { text: text.to_owned(), offset: cell.offset + if text.is_empty() { 0 } else { leading } }
}

fn filled(cell: Cell) -> Option<String> {
    (!cell.text.is_empty()).then_some(cell.text)
}

struct DraftOption {
    answer: Cell,
    goto: Cell,
}

struct DraftQuestion {
    row: Row,
    question: Question,
    auto: Cell,
    options: Vec<DraftOption>,
}

struct Reader<'a> {
    table: &'a Table,
    columns: Columns,
    blank: BlankDimension,
    problems: &'a mut Diagnostics,
    dimensions: Vec<String>,
    questions: Vec<DraftQuestion>,
    unread_severities: BTreeSet<usize>,
}

pub(super) fn read(source: &Source, blank: BlankDimension, problems: &mut Diagnostics) -> Option<Draft> {
    let table = Table::read(source, Delimiter::Tab, problems)?;
    let columns = Columns::find(&table, problems)?;
    let mut reader = Reader {
        table: &table,
        columns,
        blank,
        problems,
        dimensions: Vec::new(),
        questions: Vec::new(),
        unread_severities: BTreeSet::new(),
    };
    for row in &table.rows {
        reader.row(row);
    }
    if reader.questions.is_empty() {
        problems.push(Diagnostic::error(Code::EmptyInput, "the file holds no question").at(source.at(1, 1)));
        return None;
    }
    Some(reader.resolve())
}

impl Reader<'_> {
    fn error(&mut self, code: Code, cell: &Cell, message: String, help: &str) {
        let problem = Diagnostic::error(code, message).at(self.table.at(cell));
        self.problems.push(if help.is_empty() { problem } else { problem.help(help) });
    }

    fn row(&mut self, row: &Row) {
        let id = trimmed(row, self.columns.id);
        let answer = trimmed(row, self.columns.answer);
        let goto = trimmed(row, self.columns.goto);
        if !id.text.is_empty() {
            self.primary(row, id);
        } else if self.questions.is_empty() {
            self.error(
                Code::BlankCell,
                &id,
                "a row without a question id before the first question".to_owned(),
                "a row without an id continues the question above it",
            );
            return;
        } else {
            self.continuation(row, &answer);
        }
        if answer.text.is_empty() {
            if !goto.text.is_empty() && row.shape == Shape::Whole {
                let problem =
                    Diagnostic::warning(Code::Ignored, "GOTO of a row without an answer has no effect")
                        .at(self.table.at(&goto))
                        .help("name the answer it belongs to");
                self.problems.push(problem);
            }
            return;
        }
        if let Some(last) = self.questions.last_mut() {
            last.options.push(DraftOption { answer, goto });
        }
    }

    /// A row without an id adds an answer. What belongs to a question may only repeat the question above it, as cells
    /// that were merged do: anything else is a question that has lost its id, and would not be asked.
    fn continuation(&mut self, row: &Row, answer: &Cell) {
        let Some(last) = self.questions.last().map(|last| last.row.clone()) else { return };
        let columns = &self.columns;
        let own = [columns.question, columns.dimension, columns.severity, columns.risk_type, columns.label];
        let lost = own.into_iter().flatten().find(|column| {
            let cell = trimmed(row, Some(*column));
            let repeated = !answer.text.is_empty() && cell.text == trimmed(&last, Some(*column)).text;
            !cell.text.is_empty() && !repeated
        });
        if let Some(column) = lost {
            let name = self.table.header.get(column).map_or("", |cell| cell.text.as_str());
            let message = format!("the row has text in `{name}` but no `Question ID`");
            let help =
                "give the question an id; a row without one only adds an answer to the question above it";
            self.error(Code::BlankCell, &trimmed(row, Some(column)), message, help);
        }
    }

    fn primary(&mut self, row: &Row, id: Cell) {
        let dimension = self.dimension(row, &id);
        let severity_cell = trimmed(row, self.columns.severity);
        let severity = self.severity(&severity_cell, &id.text);
        let text = trimmed(row, self.columns.question);
        if text.text.is_empty() && row.shape == Shape::Whole {
            self.error(Code::BlankCell, &text, format!("question `{}` has no text", id.text), "");
        }
        if id.text == END || id.text == ASSIGN_END || id.text.starts_with(NOT_RELEVANT) {
            self.error(
                Code::DuplicateId,
                &id,
                format!("`{}` is the word of a terminal and cannot be a question's id", id.text),
                "",
            );
        }
        self.questions.push(DraftQuestion {
            row: row.clone(),
            question: Question {
                at: id.offset,
                id: id.text,
                dimension,
                severity,
                label: filled(trimmed(row, self.columns.label)),
                risk_type: filled(trimmed(row, self.columns.risk_type)),
                text: text.text,
                examples: trimmed(row, self.columns.examples).text,
                options: Vec::new(),
                answers: Answers::Listed,
                auto: None,
                line: row.line,
            },
            auto: trimmed(row, self.columns.auto),
            options: Vec::new(),
        });
    }

    fn dimension(&mut self, row: &Row, id: &Cell) -> usize {
        let cell = trimmed(row, self.columns.dimension);
        if cell.text.is_empty() {
            let inherited = self.questions.last().map(|last| last.question.dimension);
            let shown = format!("question `{}` has no dimension", id.text);
            match (self.blank, inherited) {
                (BlankDimension::Inherit, Some(index)) => {
                    let name = self.dimensions.get(index).cloned().unwrap_or_default();
                    self.problems.push(
                        Diagnostic::warning(Code::BlankCell, shown)
                            .at(self.table.at(&cell))
                            .help(format!("it is counted to the one before it, `{name}`")),
                    );
                }
                _ if row.shape == Shape::Whole => {
                    self.error(Code::BlankCell, &cell, shown, "every question names its dimension");
                }
                _ => {}
            }
            return inherited.unwrap_or(0);
        }
        if let Some(index) = self.dimensions.iter().position(|known| *known == cell.text) {
            return index;
        }
        let near = self.dimensions.iter().find(|known| almost_alike(known, &cell.text));
        if let Some(near) = near {
            let problem = Diagnostic::warning(
                Code::UnknownDimension,
                format!("dimension `{}` is almost `{near}` and counts as another one", cell.text),
            )
            .at(self.table.at(&cell))
            .help("write both alike if they are meant to be one");
            self.problems.push(problem);
        }
        self.dimensions.push(cell.text);
        self.dimensions.len() - 1
    }

    /// `Red` or a text with `high`, `Yellow` or a text with `medium`, in any case, as VERA-MH reads them.
    fn severity(&mut self, cell: &Cell, id: &str) -> Option<Severity> {
        let word = cell.text.to_lowercase();
        if word.is_empty() {
            return None;
        }
        let red = word == "red" || word.contains("high");
        let yellow = word == "yellow" || word.contains("medium");
        match (red, yellow) {
            (true, false) => Some(Severity::Red),
            (false, true) => Some(Severity::Yellow),
            _ => {
                self.unread_severities.insert(self.questions.len());
                let help = did_you_mean(&cell.text, ["Red", "Yellow"]);
                self.error(
                    Code::UnknownSeverity,
                    cell,
                    format!("question `{id}` has the unknown severity `{}`", cell.text),
                    &format!("{help} (blank for a question that only steers the flow)"),
                );
                None
            }
        }
    }

    fn resolve(mut self) -> Draft {
        let drafts = std::mem::take(&mut self.questions);
        let numeric = drafts.iter().all(|draft| is_number(&draft.question.id));
        let ids: Vec<String> = drafts.iter().map(|draft| folded_id(&draft.question.id, numeric)).collect();
        let shadowed = self.shadowed(&drafts, &ids);
        let known: BTreeMap<&str, usize> =
            ids.iter().enumerate().rev().map(|(index, id)| (id.as_str(), index)).collect();
        let dimensions: Vec<usize> = drafts.iter().map(|draft| draft.question.dimension).collect();
        let mut unresolved = BTreeSet::new();
        let mut questions = Vec::with_capacity(drafts.len());
        for (index, draft) in drafts.iter().enumerate() {
            let mut question = draft.question.clone();
            if let Some(id) = ids.get(index) {
                question.id.clone_from(id);
            }
            let following =
                if index + 1 < drafts.len() { Transition::Ask(index + 1) } else { Transition::Done };
            if draft.options.is_empty() {
                // Yes skips to the first later question of another dimension.
                let other =
                    dimensions.iter().enumerate().skip(index + 1).find(|(_, d)| **d != question.dimension);
                let skip = other.map_or(Transition::Done, |(other, _)| Transition::Ask(other));
                question.answers = Answers::ImplicitYesNo;
                question.options = [("Yes", skip), ("No", following)]
                    .map(|(text, then)| AnswerOption {
                        text: text.to_owned(),
                        then,
                        at: question.at,
                        goto_at: question.at,
                    })
                    .to_vec();
            } else {
                for (at, option) in draft.options.iter().enumerate() {
                    let then = if option.goto.text.is_empty() {
                        Some(following)
                    } else {
                        self.goto(&option.goto, &known, numeric)
                    };
                    if then.is_none() {
                        unresolved.insert((index, at));
                    }
                    question.options.push(AnswerOption {
                        text: option.answer.text.clone(),
                        then: then.unwrap_or(Transition::Done),
                        at: option.answer.offset,
                        goto_at: option.goto.offset,
                    });
                }
                self.check_options(&question);
            }
            question.auto = self.automatic(&question, &draft.auto);
            questions.push(question);
        }
        let rubric = Rubric { questions, dimensions: self.dimensions };
        Draft { rubric, unresolved, unread_severities: self.unread_severities, shadowed }
    }

    fn shadowed(&mut self, drafts: &[DraftQuestion], ids: &[String]) -> BTreeSet<usize> {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        let mut shadowed = BTreeSet::new();
        for (index, (id, draft)) in ids.iter().zip(drafts).enumerate() {
            let Some(line) = first.get(id.as_str()).copied() else {
                first.insert(id, draft.question.line);
                continue;
            };
            shadowed.insert(index);
            self.error(
                Code::DuplicateId,
                &Cell { text: String::new(), offset: draft.question.at },
                format!("question id `{id}` stands twice"),
                &format!("the first one is on line {line}"),
            );
        }
        shadowed
    }

    fn goto(&mut self, cell: &Cell, known: &BTreeMap<&str, usize>, numeric: bool) -> Option<Transition> {
        let word = cell.text.as_str();
        let (id, make): (&str, fn(usize) -> Transition) = match word {
            END => return Some(Transition::End),
            ASSIGN_END => return Some(Transition::AssignEnd),
            _ => match word.strip_prefix(NOT_RELEVANT) {
                Some(id) => (id.trim(), Transition::NotRelevant),
                None => (word, Transition::Ask),
            },
        };
        if id.is_empty() {
            self.error(
                Code::DeadEndAnswer,
                cell,
                format!("`{word}` does not say which question comes next"),
                "write `NOT_RELEVANT>>` and the id of a question",
            );
            return None;
        }
        let found = known.get(id).or_else(|| known.get(folded_id(id, numeric).as_str())).copied();
        if found.is_none() {
            let words = known.keys().copied().chain([END, ASSIGN_END]);
            self.error(
                Code::UnknownGoto,
                cell,
                format!("no question has the id `{id}`"),
                &did_you_mean(id, words),
            );
        }
        found.map(make)
    }

    fn check_options(&mut self, question: &Question) {
        let mut seen = BTreeSet::new();
        for option in &question.options {
            if !seen.insert(fold_answer(&option.text)) {
                let cell = Cell { text: String::new(), offset: option.at };
                self.error(
                    Code::DuplicateOption,
                    &cell,
                    format!("question `{}` offers `{}` twice", question.id, option.text),
                    "answers are compared without case, spacing and closing punctuation",
                );
            }
            if option.then == Transition::AssignEnd && !option.is_yes() {
                let cell = Cell { text: String::new(), offset: option.goto_at };
                self.error(
                    Code::AssignEndNotYes,
                    &cell,
                    format!(
                        "`ASSIGN_END` stands on the answer `{}` of question `{}`",
                        option.text, question.id
                    ),
                    "only a `Yes` can carry the question's severity to the end of the walk",
                );
            }
        }
    }

    fn automatic(&mut self, question: &Question, cell: &Cell) -> Option<usize> {
        if self.columns.auto.is_none() {
            if question.text.to_lowercase() != AUTOMATIC_TEXT {
                return None;
            }
            let option = question.option_named(AUTOMATIC_OPTION);
            if option.is_none() {
                let cell = Cell { text: String::new(), offset: question.at };
                self.error(
                    Code::BadAutoAnswer,
                    &cell,
                    format!(
                        "question `{}` is answered automatically, but the answer it takes is not there",
                        question.id
                    ),
                    "the text of the question asks for `Rate this dimension Not Relevant`",
                );
            }
            return option;
        }
        match cell.text.to_lowercase().as_str() {
            "" | "false" => None,
            "true" if question.answers == Answers::Listed && question.options.len() == 1 => Some(0),
            "true" => {
                self.error(
                    Code::BadAutoAnswer,
                    cell,
                    format!(
                        "question `{}` is answered automatically and must list exactly one answer",
                        question.id
                    ),
                    "",
                );
                None
            }
            _ => {
                self.error(
                    Code::BadAutoAnswer,
                    cell,
                    format!("`Auto Answer` of question `{}` is `{}`", question.id, cell.text),
                    "write `true`, `false` or nothing",
                );
                None
            }
        }
    }
}

/// Two letters may differ in a name of eight or more: fewer letters, and short names of their own would be hit.
fn almost_alike(a: &str, b: &str) -> bool {
    a.chars().count().min(b.chars().count()) >= 8
        && strsim::damerau_levenshtein(&a.to_lowercase(), &b.to_lowercase()) <= 2
}

fn is_number(id: &str) -> bool {
    let (whole, fraction) = id.split_once('.').unwrap_or((id, "0"));
    [whole, fraction].iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

/// Spreadsheets write whole numbers as `4.0`; ids are opaque, so that is undone only where all of them are numbers.
fn folded_id(id: &str, numeric: bool) -> String {
    match id.split_once('.') {
        Some((whole, fraction)) if numeric && is_number(id) && fraction.bytes().all(|b| b == b'0') => {
            whole.to_owned()
        }
        _ => id.to_owned(),
    }
}
