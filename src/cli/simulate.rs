//! `vera-gate simulate`: holds the conversations and writes the transcripts; nothing is judged.

use std::sync::Arc;

use clap::Args;

use super::crew::Needed;
use super::execute::{self, Executed, Task};
use super::folder::{self, Found};
use super::load::Overrides;
use super::prepare::{self, Recording};
use super::progress::Progress;
use super::trust::Trust;
use super::{Global, output};
use crate::error::Error;
use crate::exit::Exit;
use crate::run::{RunRecord, Stop};
use crate::sweep::plan::Plan;
use crate::sweep::shard::{Asked, Choice, Shard};

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
    #[command(flatten)]
    pub(super) trust: Trust,
}

/// Which part of the plan a process works on.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Run")]
pub(super) struct ShardArgs {
    /// Works on part K of N of the plan; `vera-gate merge` makes one run of all parts. `auto` takes the part from GitLab's
    /// `parallel`; an indexed Kubernetes Job needs VERA_GATE_SHARDS only.
    #[arg(long, value_name = "K/N", env = "VERA_GATE_SHARD")]
    shard: Option<Choice>,
}

impl ShardArgs {
    /// The part, from the command line or the environment. An empty plan part is refused.
    pub(super) fn of(&self, plan: &Plan) -> Result<Option<Shard>, Error> {
        let of_job = |asked: Asked| {
            let found = Shard::from_environment(asked, |name| std::env::var(name).ok());
            found.map_err(|error| Error::Usage(error.to_string()))
        };
        let shard = match self.shard {
            Some(Choice::Part(shard)) => Some(shard),
            Some(Choice::Auto) => of_job(Asked::Yes)?,
            None => {
                let found = of_job(Asked::No)?;
                if found.is_none() && of_job(Asked::Yes).is_ok_and(|job| job.is_some_and(|job| job.of() > 1))
                {
                    output::note(
                        "GitLab runs this job several times, and each works on the whole plan; `--shard auto` or \
VERA_GATE_SHARD=auto takes a part each, for `vera-gate merge`",
                    );
                }
                found
            }
        };
        let planned = plan.cells.len();
        match shard {
            Some(shard) if shard.of() as usize > planned => Err(Error::Usage(format!(
                "{planned} planned conversations cannot be divided into {} shards\n  help: plan more, or use fewer shards",
                shard.of()
            ))),
            shard => Ok(shard),
        }
    }
}

/// How the run of a shard ends: by the completeness of its part. The verdict is that of the merged run.
pub(super) fn conclude_shard(executed: &Executed, shard: Shard, global: &Global) -> Result<Exit, Error> {
    let record = &executed.record;
    let folder = executed.folder.path().display();
    let judged = if executed.plan.judges.is_empty() {
        String::new()
    } else {
        format!(", {} evaluations", record.evaluated)
    };
    output::result(&format!(
        "{folder}\nshard {shard}: {} of {} conversations held{judged}\n",
        record.held, record.planned
    ))?;
    if !global.quiet {
        output::note(
            "this part has no verdict of its own: `vera-gate merge` with the run folders of all shards gives it",
        );
    }
    Ok(by_completeness(record))
}

/// The exit code of a run without a verdict.
pub(super) fn by_completeness(record: &RunRecord) -> Exit {
    match &record.stopped {
        Some(Stop::Provider(_) | Stop::Storage(_)) => Exit::Provider,
        Some(_) => Exit::Inconclusive,
        None if !record.complete => Exit::Inconclusive,
        None => Exit::Success,
    }
}

/// Arguments of `simulate`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vera-gate simulate --sample 20 --candidate openai/gpt-6-luna\n  \
vera-gate simulate --shard 2/4")]
pub(super) struct SimulateArgs {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    shard: ShardArgs,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    recording: Recording,
}

/// Runs the command.
pub(super) fn run(args: &SimulateArgs, global: &Global) -> Result<Exit, Error> {
    let mut prepared =
        prepare::prepare(global, &args.overrides, Needed::Talk, &args.recording, &args.run.trust)?;
    prepared.key.parts.insert("judging".to_owned(), "none".to_owned());
    let shard = args.shard.of(&prepared.plan)?;
    prepared.key.shard = shard;
    let (path, found) = folder::choose_folder(&prepared, args.run.run.as_deref(), args.run.fresh, global)?;
    if found == Found::New && !global.quiet {
        output::note(&format!("run folder: {}", path.display()));
    }
    let progress =
        Arc::new(Progress::new(global, Arc::clone(&prepared.context.meter), args.run.events.as_deref())?);
    let executed = execute::execute(&prepared, &path, Task::Sweep(None), &progress)?;
    if let Some(shard) = shard {
        return conclude_shard(&executed, shard, global);
    }
    let record = &executed.record;
    output::result(&format!(
        "{}\n{} of {} conversations held\n",
        executed.folder.path().display(),
        record.held,
        record.planned
    ))?;
    Ok(by_completeness(record))
}
