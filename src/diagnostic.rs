//! Coded diagnostics: every problem of an input, with the line it is about and what to do.

use std::fmt;

use crate::source::Location;

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The input is refused.
    Error,
    /// The input is taken; a person should look.
    Warning,
}

macro_rules! codes {
    ($($name:ident = $text:literal : $what:literal),+ $(,)?) => {
        /// What kind of problem a diagnostic reports. Stable: scripts and documents refer to the text form.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $what] $name),+
        }

        impl Code {
            /// All codes, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The stable text form, in kebab case.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// One sentence that says what the code means.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $what),+ }
            }
        }
    };
}

codes! {
    Syntax = "syntax": "The file is not well-formed YAML, JSON, TSV or CSV.",
    Unreadable = "unreadable": "A file or folder that the input names cannot be read.",
    UnknownKey = "unknown-key": "A key that this file does not know.",
    MissingKey = "missing-key": "A key that must be there is not.",
    DuplicateKey = "duplicate-key": "The same key stands twice.",
    WrongType = "wrong-type": "The value has another type than the key wants.",
    UnknownWord = "unknown-word": "The value is not one of the allowed words.",
    OutOfRange = "out-of-range": "The number is not finite or not in the allowed range.",
    NotTogether = "not-together": "Two settings contradict each other.",
    UnsupportedVersion = "unsupported-version": "The file is made for another version of the tool or the schema.",
    MissingColumn = "missing-column": "A column that must be there is not.",
    DuplicateColumn = "duplicate-column": "Two columns have the same name.",
    UnknownColumn = "unknown-column": "A column that this file does not have, so its content would be left out.",
    RaggedRow = "ragged-row": "A row has more or fewer fields than the header.",
    EmptyInput = "empty-input": "The file holds no data, so nothing would be measured.",
    DuplicateId = "duplicate-id": "The same id or name stands twice.",
    BlankCell = "blank-cell": "A cell that must hold text is blank.",
    UnknownSeverity = "unknown-severity": "A severity that is neither Red, Yellow nor blank.",
    UnknownRiskLevel = "unknown-risk-level": "A risk level that is not None, Low, High or Immediate.",
    RenamedRiskLevel = "renamed-risk-level": "A risk level of an older file was mapped to today's word.",
    UnknownGoto = "unknown-goto": "An answer leads to a question that does not exist.",
    FlowCycle = "flow-cycle": "The questions can be walked in a circle.",
    UnreachableQuestion = "unreachable-question": "No walk from the first question reaches this one.",
    DeadEndAnswer = "dead-end-answer": "An answer leads nowhere.",
    UnrateableDimension = "unrateable-dimension": "No walk can give this dimension a rating.",
    AssignEndNotYes = "assign-end-not-yes": "ASSIGN_END stands on an answer other than Yes.",
    BadAutoAnswer = "bad-auto-answer": "Auto Answer is not true, false or blank, or the question has not exactly one option.",
    DiscardingEnd = "discarding-end": "END or NOT_RELEVANT on a path that may already have findings or ratings would discard them.",
    DuplicateOption = "duplicate-option": "Two answers of one question cannot be told apart.",
    UnknownPlaceholder = "unknown-placeholder": "A placeholder has no column or value to fill it.",
    BadTemplate = "bad-template": "A template cannot be parsed or does not hold what it must.",
    UnknownPersona = "unknown-persona": "A persona that the target does not have.",
    UnknownDimension = "unknown-dimension": "A dimension that the rubric does not have.",
    UnknownLabel = "unknown-label": "A failure mode that the rubric does not have.",
    NothingSelected = "nothing-selected": "The selection leaves no persona, so nothing would be measured.",
    NothingGated = "nothing-gated": "The thresholds file has no rule that could fail the build.",
    DuplicateRule = "duplicate-rule": "Two rules have the same id.",
    ExpiredWaiver = "expired-waiver": "A waiver's date has passed, so it no longer holds.",
    UnknownModel = "unknown-model": "A model or provider that cannot be resolved.",
    MissingCredential = "missing-credential": "The environment variable that holds a key is not set.",
    SharedModel = "shared-model": "The judge or the user model is the candidate itself.",
    BadTranscript = "bad-transcript": "A transcript cannot be read as a conversation.",
    BadResults = "bad-results": "A results file cannot be read.",
    CleanedId = "cleaned-id": "An id was read without the stray characters around it.",
    Ignored = "ignored": "Something in the input has no effect.",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One problem of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Kind of problem.
    pub code: Code,
    /// How bad.
    pub severity: Severity,
    /// What is wrong: one sentence without a full stop, lower case at the start.
    pub message: String,
    /// Where, if the problem has a place.
    pub location: Option<Location>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A problem that refuses the input.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self { code, severity: Severity::Error, message: message.into(), location: None, help: None }
    }

    /// A problem a person should look at.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    /// Says where.
    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Control characters of a quoted input line would reach the terminal: they are shown as `\u{..}`.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() && c != '\t' { c.escape_unicode().to_string() } else { c.to_string() })
        .collect::<String>()
        .replace('\t', " ")
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDEST_LINE: usize = 160;
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{word}[{}]: {}", self.code, printable(&self.message))?;
        if let Some(location) = &self.location {
            let number = location.line.to_string();
            let pad = " ".repeat(number.len());
            // A wide line (a persona row) is cut around the column, so that the caret stays visible.
            let skip = (location.column.saturating_sub(1)).saturating_sub(WIDEST_LINE / 2);
            let shown: String = location.text.chars().skip(skip).take(WIDEST_LINE).collect();
            let caret = " ".repeat(location.column.saturating_sub(1).saturating_sub(skip));
            write!(f, "\n{pad}--> {location}\n{pad} |\n{number} | {}\n{pad} | {caret}^", printable(&shown))?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {}", printable(help))?;
        }
        Ok(())
    }
}

/// All problems of the inputs of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// No problem yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a problem.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.items.push(diagnostic);
    }

    /// Adds all problems of another collection.
    pub fn extend(&mut self, other: Self) {
        self.items.extend(other.items);
    }

    /// Whether the input is refused.
    pub fn has_errors(&self) -> bool {
        self.items.iter().any(|d| d.severity == Severity::Error)
    }

    /// Whether there is no problem at all.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The problems in the order of files and lines.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        let mut sorted: Vec<&Diagnostic> = self.items.iter().collect();
        sorted.sort_by(|a, b| a.location.cmp(&b.location).then(a.severity.cmp(&b.severity)));
        sorted.into_iter()
    }

    /// How many problems of this severity there are.
    pub fn count(&self, severity: Severity) -> usize {
        self.items.iter().filter(|d| d.severity == severity).count()
    }

    /// Gives the value if no problem refuses the input, else the problems.
    pub fn finish<T>(self, value: Option<T>) -> Result<(T, Self), Self> {
        match value {
            Some(value) if !self.has_errors() => Ok((value, self)),
            _ => Err(self),
        }
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { items: vec![diagnostic] }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

/// A help text that names the nearest allowed word, or all of them when none is near.
pub fn did_you_mean<'a>(given: &str, allowed: impl IntoIterator<Item = &'a str>) -> String {
    let mut allowed: Vec<&str> = allowed.into_iter().collect();
    let mut seen = std::collections::BTreeSet::new();
    allowed.retain(|word| seen.insert(*word));
    // The beginning of a word is near to it, however long the rest is.
    let mut beginnings = allowed.iter().filter(|word| given.chars().count() >= 3 && word.starts_with(given));
    if let (Some(word), None) = (beginnings.next(), beginnings.next()) {
        return format!("did you mean `{word}`?");
    }
    let nearest = allowed
        .iter()
        .map(|word| (strsim::damerau_levenshtein(&given.to_lowercase(), &word.to_lowercase()), *word))
        .min();
    match nearest {
        // A third of the letters may be wrong before a suggestion becomes a guess.
        Some((distance, word)) if distance <= (given.chars().count().max(3)) / 3 + 1 => {
            format!("did you mean `{word}`?")
        }
        _ if allowed.is_empty() => "nothing is allowed here".to_owned(),
        _ => {
            const MOST: usize = 24;
            let more = allowed.len().saturating_sub(MOST);
            let list = allowed.iter().take(MOST).map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
            if more > 0 { format!("allowed: {list} and {more} more") } else { format!("allowed: {list}") }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::source::Source;

    #[test]
    fn codes_are_unique_kebab_case() {
        let texts: BTreeSet<&str> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        assert!(texts.iter().all(|t| t.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
    }

    #[test]
    fn a_diagnostic_shows_the_line_and_points_at_the_column() {
        let source = Source::new("vera-gate.yaml", "sweep:\n  rans: 2\n");
        let shown = Diagnostic::error(Code::UnknownKey, "unknown key `rans`")
            .at(source.at(2, 3))
            .help(did_you_mean("rans", ["runs", "max_messages"]))
            .to_string();
        assert_eq!(
            shown,
            "error[unknown-key]: unknown key `rans`\n --> vera-gate.yaml:2:3\n  |\n2 |   rans: 2\n  |   ^\n  help: did you mean `runs`?"
        );
    }

    #[test]
    fn control_characters_of_an_input_do_not_reach_the_terminal() {
        let source = Source::new("p.tsv", "a\u{1b}[31mb");
        let shown = Diagnostic::error(Code::Syntax, "bad").at(source.at(1, 1)).to_string();
        assert!(!shown.contains('\u{1b}'));
    }

    #[test]
    fn far_words_get_the_list() {
        assert_eq!(did_you_mean("zebra", ["runs", "seed", "runs"]), "allowed: `runs`, `seed`");
    }

    #[test]
    fn the_beginning_of_one_word_is_near_to_it() {
        assert_eq!(did_you_mean("risk", ["runs", "risk_levels"]), "did you mean `risk_levels`?");
        assert_eq!(
            did_you_mean("max", ["max_words", "max_messages"]),
            "allowed: `max_words`, `max_messages`"
        );
    }
}
