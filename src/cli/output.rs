//! Where text goes: results to standard output, everything else to standard error.

use std::io::{self, IsTerminal as _, Write as _};

use tracing::level_filters::LevelFilter;

use super::Global;
use crate::diagnostic::{Diagnostics, Severity};
use crate::error::Error;
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
        .with_writer(io::stderr)
        .with_ansi(ansi)
        .with_target(false)
        .try_init();
}

/// Prints a result. A closed pipe is no fault: the reader has seen enough.
pub(super) fn result(text: &str) -> Result<(), Error> {
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
    let _lost = writeln!(io::stderr().lock(), "{text}");
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
