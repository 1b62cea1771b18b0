//! `vera-gate run`: the whole gate, plan to report.

use std::sync::Arc;

use clap::Args;
use futures::StreamExt as _;

use super::conclude::{self, Baselines, Format};
use super::crew::Needed;
use super::evidence::Evidence;
use super::execute::{self, Executed, Task};
use super::folder::{self, Found};
use super::load::Overrides;
use super::prepare::{self, Prepared, Recording};
use super::progress::Progress;
use super::simulate::{RunArgs, ShardArgs, conclude_shard};
use super::{Global, output};
use crate::config::Curtail;
use crate::error::Error;
use crate::exit::Exit;
use crate::gate::input::Confirmation;
use crate::gate::verdict::Draw;
use crate::gate::{EarlyPass, PendingConfirmation};
use crate::model::ModelError;
use crate::run::CONFIRMATIONS_FILE;
use crate::sweep::scheduler::{CellStatus, Curtailment, Progress as Progressed};

/// Arguments of `run`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vera-gate run\n  vera-gate run --candidate harmful\n  \
vera-gate run --config vera-gate.yaml --thresholds builtin:release\n  vera-gate run --sample 20 --judge openai/gpt-6-luna\n  \
vera-gate run --shard 2/4")]
pub(super) struct RunCommand {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    shard: ShardArgs,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    recording: Recording,
    /// How to print the result; the run folder holds every form.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Runs the command.
pub(super) fn run(args: &RunCommand, global: &Global) -> Result<Exit, Error> {
    let mut prepared =
        prepare::prepare(global, &args.overrides, Needed::All, &args.recording, &args.run.trust)?;
    let templates = conclude::templates(&prepared.loaded)?;
    prepared.key.shard = args.shard.of(&prepared.plan)?;
    let (path, found) = folder::choose_folder(&prepared, args.run.run.as_deref(), args.run.fresh, global)?;
    if !global.quiet {
        let word = if found == Found::New { "run folder" } else { "going on in" };
        output::note(&format!("{word}: {}", path.display()));
    }
    let meter = Arc::clone(&prepared.context.meter);
    let progress = Arc::new(Progress::new(global, meter, args.run.events.as_deref())?);
    let baselines = Arc::new(Baselines::read(&prepared.loaded));
    let curtailment = curtailment(&prepared, &baselines);
    let mut executed = execute::execute(&prepared, &path, Task::Sweep(curtailment), &progress)?;
    let mut evidence = Evidence::of_run(
        executed.record.clone(),
        executed.plan.clone(),
        std::mem::take(&mut executed.progress.assessments),
    );
    let wanted = conclude::pending(&evidence, &prepared.thresholds, &baselines);
    let (confirmations, failed) = confirm(&prepared, &executed, &wanted);
    evidence.confirmations = confirmations;
    executed.looked_again(&progress, &prepared.context.meter, failed.as_ref())?;
    evidence.record = Some(executed.record.clone());
    executed
        .folder
        .write_json(CONFIRMATIONS_FILE, &evidence.confirmations)
        .map_err(|error| Error::Provider(error.to_string()))?;
    if let Some(shard) = prepared.key.shard {
        return conclude_shard(&executed, shard, global);
    }
    let verdict = conclude::decide(&evidence, &prepared.thresholds, &baselines, &evidence.confirmations);
    let report = conclude::report(&prepared.loaded, &evidence, &verdict, &baselines);
    conclude::write(&executed.folder, &verdict, &report, &templates)?;
    conclude::print(global, args.format, &verdict, &report, &templates)?;
    if !global.quiet && args.format == Format::Text {
        output::note(&format!("everything is in {}", executed.folder.path().display()));
    }
    Ok(conclude::exit(&verdict, evidence.record.as_ref()))
}

/// Ends the sweep when the verdict can no longer change, if the configuration lets it.
fn curtailment(prepared: &Prepared, baselines: &Arc<Baselines>) -> Option<Arc<Curtailment>> {
    // What a part shows does not decide whether the whole can stop.
    if prepared.key.shard.is_some() {
        return None;
    }
    let early_pass = match prepared.loaded.config.sweep.curtail {
        Curtail::Never => return None,
        Curtail::Certain => EarlyPass::Forbidden,
        Curtail::EarlyPass => EarlyPass::Allowed,
    };
    let plan = execute::plan_file(prepared, |_| CellStatus::NotStarted);
    let provenance = execute::stated(prepared);
    let (thresholds, baselines) = (prepared.thresholds.clone(), Arc::clone(baselines));
    Some(Arc::new(move |progress: &Progressed| {
        let mut plan = plan.clone();
        for conversation in &mut plan.conversations {
            if let Some(status) = progress.statuses.get(&conversation.cell.id) {
                conversation.status = status.clone();
            }
        }
        let evidence = Evidence::of_part(&plan, progress.assessments.clone(), provenance.clone());
        conclude::can_stop(&evidence, &thresholds, &baselines, early_pass)
    }))
}

/// Takes the second looks, side by side. One that cannot be taken is missing: then the finding stands as it was. With what
/// ended the first that failed.
fn confirm(
    prepared: &Prepared,
    executed: &Executed,
    wanted: &[PendingConfirmation],
) -> (Vec<Confirmation>, Option<ModelError>) {
    let Some(judge) = &executed.confirm else { return (Vec::new(), None) };
    let look = async |pending: &PendingConfirmation| {
        let Ok(transcript) = executed.folder.transcript(&pending.conversation) else { return Ok(None) };
        let looks =
            judge.confirm(&prepared.target, &transcript, &pending.question, pending.draws).await?.into_iter();
        let draws = looks
            .map(|look| Draw { judge: judge.id.model.clone(), answer: look.answer, agrees: look.agrees })
            .collect();
        Ok(Some(Confirmation {
            conversation: pending.conversation.clone(),
            question: pending.question.clone(),
            draws,
        }))
    };
    let at_once = prepared.loaded.config.concurrency.calls as usize;
    let looks = futures::stream::iter(wanted).map(look).buffered(at_once.max(1)).collect::<Vec<_>>();
    let mut failed = None;
    let mut taken = Vec::new();
    for look in executed.runtime.block_on(looks) {
        match look {
            Ok(look) => taken.extend(look),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    (taken, failed)
}
