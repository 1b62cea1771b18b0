//! Arguments, tracing, command, exit code; nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    vera_gate::cli::main().into()
}
