//! `vera-gate report`: renders the report of a run folder again.

use clap::Args;

use super::conclude::{self, Format};
use super::evidence::Evidence;
use super::load::Overrides;
use super::{Global, output, policy};
use crate::error::Error;
use crate::exit::Exit;
use crate::report;
use crate::run::{RUN_FILE, RunFolder};

/// Arguments of `report`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  vera-gate report vera-gate-runs/20261130T120000Z-1a2b3c4d --format markdown"
)]
pub(super) struct ReportArgs {
    /// A run folder.
    #[arg(value_name = "RUN")]
    run: String,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Runs the command. The exit code is that of the work, not of the verdict: nothing is decided here.
pub(super) fn run(args: &ReportArgs, global: &Global) -> Result<Exit, Error> {
    let loaded = policy::judging(global, &Overrides::default())?;
    let folder = RunFolder::at(std::path::Path::new(&args.run));
    if folder.file(RUN_FILE).exists() {
        // A report of files that contradict each other would vouch for them.
        Evidence::read(&args.run)?;
    }
    let text = folder
        .read("report.json")
        .map_err(|error| Error::Usage(format!("{error}\n  help: give a run folder that has a report")))?;
    let report = report::json::read(&text).map_err(|error| Error::Usage(format!("report.json: {error}")))?;
    let templates = conclude::templates(&loaded)?;
    output::warnings(&loaded.warnings, global);
    conclude::print(global, args.format, &report.verdict, &report, &templates)?;
    Ok(Exit::Success)
}
