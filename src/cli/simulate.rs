//! `vera-gate simulate`: holds the conversations and writes the transcripts; nothing is judged.

use std::sync::Arc;

use clap::Args;

use super::crew::Needed;
use super::execute::{self, Found, Task};
use super::load::Overrides;
use super::prepare::{self, Recording};
use super::progress::Progress;
use super::{Global, output, publish};
use crate::error::Error;
use crate::exit::Exit;
use crate::run::Stop;

/// How a run starts and where it lives; for every command that makes one.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Run")]
pub(super) struct RunArgs {
    /// The run folder itself; an unfinished run in it is gone on with.
    #[arg(long, value_name = "FOLDER")]
    pub(super) run: Option<String>,
    /// Starts anew even if an unfinished run of the same plan is there.
    #[arg(long)]
    pub(super) fresh: bool,
    /// Writes every event as a line of JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub(super) events: Option<String>,
    /// Runs with secrets on files of a fork's pull request. Strangers can then read the secrets.
    #[arg(long)]
    pub(super) i_accept_pwn_risk: bool,
}

/// Arguments of `simulate`.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  vera-gate simulate --sample 20 --candidate openai/gpt-6-luna")]
pub(super) struct SimulateArgs {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    recording: Recording,
}

/// Runs the command.
pub(super) fn run(args: &SimulateArgs, global: &Global) -> Result<Exit, Error> {
    publish::refuse_untrusted(global, args.run.i_accept_pwn_risk)?;
    let mut prepared = prepare::prepare(global, &args.overrides, Needed::Talk, &args.recording)?;
    prepared.key.parts.insert("judging".to_owned(), "none".to_owned());
    let (path, found) = execute::choose_folder(&prepared, args.run.run.as_deref(), args.run.fresh)?;
    if found == Found::New && !global.quiet {
        output::note(&format!("run folder: {}", path.display()));
    }
    let progress =
        Arc::new(Progress::new(global, Arc::clone(&prepared.context.meter), args.run.events.as_deref())?);
    let executed = execute::execute(&prepared, &path, Task::Sweep(None), &progress)?;
    let record = &executed.record;
    output::result(&format!(
        "{}\n{} of {} conversations held\n",
        executed.folder.path().display(),
        record.held,
        record.planned
    ))?;
    Ok(match &record.stopped {
        Some(Stop::Provider(_) | Stop::Storage(_)) => Exit::Provider,
        Some(_) => Exit::Inconclusive,
        None if record.held < record.planned => Exit::Inconclusive,
        None => Exit::Success,
    })
}
