//! Where text goes: results to standard output, everything else to standard error.

use std::io::{self, IsTerminal as _, Write as _};

use tracing::level_filters::LevelFilter;

use super::{Color, Global};
use crate::diagnostic::{Diagnostics, Severity};
use crate::error::Error;

/// Whether colours are wanted on standard output.
pub(super) fn colored(global: &Global) -> bool {
    match global.color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    }
}

/// Sends log lines to standard error.
pub(super) fn start_tracing(global: &Global) {
    let level = match (global.quiet, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, _) => LevelFilter::DEBUG,
    };
    let ansi = global.color == Color::Always
        || (global.color == Color::Auto
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
