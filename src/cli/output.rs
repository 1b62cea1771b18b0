//! Where text goes: results to standard output, everything else to standard error.

use std::io::{self, IsTerminal as _, Write as _};

use tracing::level_filters::LevelFilter;

use super::Global;
use crate::diagnostic::{Diagnostics, Severity};
use crate::error::Error;
use crate::escape::{terminal, workflow};
use crate::report::terminal::{Color, Style};

/// Columns where nobody says how wide the terminal is.
const PAGE_WIDTH: usize = 110;

/// How to print on standard output: colours, and the width of the terminal or of a page.
pub(super) fn style(global: &Global) -> Style {
    let terminal = io::stdout().is_terminal();
    let color = match global.color {
        super::Color::Always => Color::Ansi,
        super::Color::Auto if terminal && std::env::var_os("NO_COLOR").is_none() => Color::Ansi,
        super::Color::Auto | super::Color::Never => Color::Plain,
    };
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    Style { width: columns.unwrap_or(PAGE_WIDTH), color }
}

/// Sends log lines to standard error.
pub(super) fn start_tracing(global: &Global) {
    let level = match (global.quiet, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, _) => LevelFilter::DEBUG,
    };
    let ansi = global.color == super::Color::Always
        || (global.color == super::Color::Auto
            && io::stderr().is_terminal()
            && std::env::var_os("NO_COLOR").is_none());
    // A second call in one process (tests) keeps the first subscriber.
    let _already = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(move || Log { color: ansi })
        .with_ansi(ansi)
        .with_target(false)
        .try_init();
}

/// Whether standard output and standard error are read by the runner of a GitHub workflow, which obeys commands in them.
pub(super) fn is_obeyed() -> bool {
    std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true")
}

/// Prints a result. Text in it that came from elsewhere cannot command a workflow's runner.
pub(super) fn result(text: &str) -> Result<(), Error> {
    if !is_obeyed() {
        return print(text);
    }
    print(&match text.trim_start().chars().next() {
        Some('{' | '[') => workflow::break_commands_in_json(text),
        Some('<') => workflow::break_commands_in_markup(text),
        _ => workflow::break_commands(text),
    })
}

/// Prints a command of ours to a workflow's runner.
pub(super) fn command(command: &workflow::Command) -> Result<(), Error> {
    print(&format!("{command}\n"))
}

/// A closed pipe is no fault: the reader has seen enough.
fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::io(std::path::Path::new("standard output"), error))
        }
        _ => Ok(()),
    }
}

/// Prints a line that is not part of the result.
pub(super) fn note(text: &str) {
    // Nobody can be told when standard error is closed.
    let _lost = writeln!(io::stderr().lock(), "{}", shown(text));
}

/// Text for standard error: neither a terminal nor a workflow's runner obeys it.
fn shown(text: &str) -> String {
    if is_obeyed() { workflow::log_text(text) } else { terminal::block(text).into_string() }
}

/// Standard error for log lines, which hold words of servers. Each line comes in one piece.
struct Log {
    color: bool,
}

impl io::Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = match (is_obeyed(), self.color) {
            (true, true) => workflow::break_commands(&text),
            // A terminal that shows colours is the person's own.
            (false, true) => text.into_owned(),
            (_, false) => shown(&text),
        };
        io::stderr().lock().write_all(text.as_bytes()).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

/// Says a panic like everything else: its words can hold text that was being worked on.
pub(super) fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        note(&panic.to_string());
        let trace = std::backtrace::Backtrace::capture();
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            note(&trace.to_string());
        }
    }));
}

/// Prints the error a command ended with.
pub(super) fn error(error: &Error) {
    match error {
        Error::Invalid(problems) => {
            note(&problems.to_string());
            let errors = problems.count(Severity::Error);
            note(&format!("\n{errors} {}", if errors == 1 { "error" } else { "errors" }));
        }
        _ => note(&format!("error: {error}")),
    }
}

/// Prints warnings that came with a value.
pub(super) fn warnings(problems: &Diagnostics, global: &Global) {
    if !global.quiet && !problems.is_empty() {
        note(&problems.to_string());
    }
}
