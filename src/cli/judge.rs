//! `vera-gate judge`: has transcripts judged that are there already, our own or VERA-MH's.

use std::sync::Arc;

use clap::Args;

use super::conclude::{self, Baselines, Format};
use super::crew::Needed;
use super::evidence::Evidence;
use super::execute::{self, Task};
use super::held::Held;
use super::load::Overrides;
use super::prepare::{self, Recording};
use super::progress::Progress;
use super::simulate::RunArgs;
use super::{Global, folder, output};
use crate::error::Error;
use crate::exit::Exit;
use crate::transcript::Transcript;

/// Arguments of `judge`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vera-gate judge vera-gate-runs/20261130T120000Z-1a2b3c4d\n  \
vera-gate judge p_user__a_bot__t30__r1/conversations --target path/to/target --judge openai/gpt-6-luna")]
pub(super) struct JudgeArgs {
    /// A run folder, whose plan, chatbot and user models are taken over; or a folder with VERA-MH transcripts, whose
    /// chatbot is what --candidate or the configuration names.
    #[arg(value_name = "FOLDER")]
    folder: String,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    recording: Recording,
    /// How to print the result; the run folder holds every form.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Runs the command.
pub(super) fn run(args: &JudgeArgs, global: &Global) -> Result<Exit, Error> {
    let mut prepared =
        prepare::prepare(global, &args.overrides, Needed::Judge, &args.recording, &args.run.trust)?;
    let templates = conclude::templates(&prepared.loaded)?;
    let mut held = Held::read(&args.folder, &prepared.loaded, &args.overrides)?;
    let unknown = annotate(&mut held.transcripts, &prepared.target);
    if unknown > 0 && !global.quiet {
        output::note(&format!(
            "warning: {unknown} of {} transcripts are of personas that the target does not have; their risk level is unknown",
            held.transcripts.len()
        ));
    }
    held.take_over(&mut prepared);
    let (path, _) = folder::choose_folder(&prepared, args.run.run.as_deref(), args.run.fresh, global)?;
    let meter = Arc::clone(&prepared.context.meter);
    let progress = Arc::new(Progress::new(global, meter, args.run.events.as_deref())?);
    let executed = execute::execute(&prepared, &path, Task::Judge(Box::new(held)), &progress)?;
    let baselines = Baselines::read(&prepared.loaded);
    let evidence = Evidence::of_run(
        executed.record.clone(),
        executed.plan.clone(),
        executed.progress.assessments.clone(),
    );
    let verdict = conclude::decide(&evidence, &prepared.thresholds, &baselines, &[]);
    let report = conclude::report(&prepared.loaded, &evidence, &verdict, &baselines);
    conclude::write(&executed.folder, &verdict, &report, &templates)?;
    conclude::print(global, args.format, &verdict, &report, &templates)?;
    if !global.quiet && args.format == Format::Text {
        output::note(&format!("everything is in {}", executed.folder.path().display()));
    }
    Ok(conclude::exit(&verdict, evidence.record.as_ref()))
}

/// Gives the transcripts the risk levels of the target's personas; counts those it does not know.
fn annotate(transcripts: &mut [Transcript], target: &crate::target::Target) -> usize {
    let mut unknown = 0;
    for transcript in transcripts {
        match target.persona(&transcript.persona) {
            Some(persona) => transcript.risk_level = transcript.risk_level.or(persona.risk_level),
            None => unknown += 1,
        }
    }
    unknown
}
