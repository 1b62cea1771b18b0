//! The log of a GitHub workflow, and the files through which a step hands values on.
//!
//! The runner reads every line a step prints. A line that starts, after white space, with `::name` is a command,
//! and so is `##[name]` anywhere in a line. Model text in a log must be neither.

use std::fmt;

use super::unicode::{Lines, is_bidi_control, is_invisible, plain};

/// Levels of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A broken blocking rule.
    Error,
    /// A broken advisory rule.
    Warning,
    /// For information.
    Notice,
}

impl Level {
    /// The runner's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }
}

/// One command to the runner, written by us. `Display` is the whole line without its line break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    name: &'static str,
    properties: Vec<(&'static str, String)>,
    message: String,
}

impl Command {
    /// A command with a message from anywhere.
    pub fn new(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, properties: Vec::new(), message: message.into() }
    }

    /// An annotation.
    pub fn annotation(level: Level, message: impl Into<String>) -> Self {
        Self::new(level.as_str(), message)
    }

    /// Adds a property with a value from anywhere.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.properties.push((key, value.into()));
        self
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "::{}", self.name)?;
        for (i, (key, value)) in self.properties.iter().enumerate() {
            let separator = if i == 0 { ' ' } else { ',' };
            let value = data(&plain(value, Lines::Keep)).replace(':', "%3A").replace(',', "%2C");
            write!(f, "{separator}{key}={}", break_legacy(&value))?;
        }
        write!(f, "::{}", break_legacy(&data(&plain(&self.message, Lines::Keep))))
    }
}

/// Escapes the message of a command as the runner unescapes it.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Makes text safe to print in a log, line by line.
pub fn log_text(text: &str) -> String {
    break_commands(&plain(text, Lines::Keep))
}

/// Breaks every command in text that is otherwise fit to print, such as a page with colours of our own.
///
/// The runner reads a line that starts with `::` after white space; which characters end a line or count as white
/// space is taken in the widest sense.
pub fn break_commands(text: &str) -> String {
    broken(text, ":\u{200B}", "##\u{200B}[")
}

/// Breaks every command in JSON and leaves its meaning as it is.
pub fn break_commands_in_json(text: &str) -> String {
    // Outside of its strings JSON has no number sign, and none of its lines starts with a colon.
    broken(text, "\\u003a", "#\\u0023[")
}

/// Breaks every command in HTML or XML and leaves its meaning as it is.
pub fn break_commands_in_markup(text: &str) -> String {
    broken(text, "&#58;", "#&#35;[")
}

/// `colon` stands for the first colon of a line that starts with two, `legacy` for the old form.
fn broken(text: &str, colon: &str, legacy: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at_start = true;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if at_start && c == ':' && chars.peek() == Some(&':') {
            out.push_str(colon);
        } else {
            out.push(c);
        }
        let ends = matches!(c, '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}');
        let blank = c.is_whitespace() || c.is_control() || is_bidi_control(c) || is_invisible(c);
        at_start = ends || (at_start && blank);
    }
    out.replace("##[", legacy)
}

/// Breaks the old command form, which is read anywhere in a line.
fn break_legacy(text: &str) -> String {
    text.replace("##[", "##\u{200B}[")
}

/// Why a value cannot be handed on through a file of the runner.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a name for an output or a variable: use letters, digits, `_` and `-`, and start with a letter or `_`"
)]
pub struct InvalidName(pub String);

/// One entry for `GITHUB_OUTPUT` or `GITHUB_ENV`, in the form whose end cannot be forged: the delimiter is a word
/// that does not occur in the value.
pub fn file_entry(name: &str, value: &str) -> Result<String, InvalidName> {
    let mut chars = name.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !first || !chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
        return Err(InvalidName(name.to_owned()));
    }
    let value = plain(value, Lines::Keep);
    let delimiter = absent_word("VERA_GATE_END", &value);
    Ok(format!("{name}<<{delimiter}\n{value}\n{delimiter}\n"))
}

fn absent_word(stem: &str, text: &str) -> String {
    let mut word = stem.to_owned();
    while text.contains(&word) {
        word.push_str("-x");
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_escape_message_and_properties() {
        let command = Command::annotation(Level::Error, "100 %\nsecond: a,b ##[add-path]/x")
            .with("file", "a,b:c.yaml")
            .with("line", "3");
        assert_eq!(
            command.to_string(),
            "::error file=a%2Cb%3Ac.yaml,line=3::100 %25%0Asecond: a,b ##\u{200B}[add-path]/x"
        );
    }

    #[test]
    fn printed_text_holds_no_command() {
        assert_eq!(log_text("::error::x"), ":\u{200B}:error::x");
        assert_eq!(log_text("ok\n \u{2003}::group::g"), "ok\n \u{2003}:\u{200B}:group::g");
        assert_eq!(log_text("a\r::warning::cr"), "a\n:\u{200B}:warning::cr");
        assert_eq!(log_text("a ##[error]b"), "a ##\u{200B}[error]b");
        assert_eq!(log_text("std::fmt stays"), "std::fmt stays");
        assert_eq!(log_text(":::error::x"), ":\u{200B}::error::x");
    }

    #[test]
    fn a_delimiter_cannot_be_forged() {
        let entry = file_entry("verdict", "fail\nVERA_GATE_END\nverdict=pass").unwrap();
        assert_eq!(entry, "verdict<<VERA_GATE_END-x\nfail\nVERA_GATE_END\nverdict=pass\nVERA_GATE_END-x\n");
        assert!(file_entry("a=b", "x").is_err());
        assert!(file_entry("", "x").is_err());
        assert!(file_entry("a\nb", "x").is_err());
    }
}
