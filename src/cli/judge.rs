//! `vera-gate judge`: has transcripts judged that are there already, our own or VERA-MH's.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use clap::Args;

use super::conclude::{self, Baselines, Format};
use super::crew::Needed;
use super::evidence::Evidence;
use super::execute::{self, Task};
use super::load::Overrides;
use super::prepare::{self, Recording};
use super::progress::Progress;
use super::simulate::RunArgs;
use super::{Global, output};
use crate::error::Error;
use crate::exit::Exit;
use crate::fingerprint::sha256_of_parts;
use crate::run::RunFolder;
use crate::sweep::plan::Plan;
use crate::transcript::{Transcript, write_text};

/// Arguments of `judge`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vera-gate judge vera-gate-runs/20261130T120000Z-1a2b3c4d\n  \
vera-gate judge p_user__a_bot__t30__r1/conversations --target path/to/target --judge openai/gpt-6-luna")]
pub(super) struct JudgeArgs {
    /// A run folder, or a folder with VERA-MH transcripts.
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
    let mut transcripts = RunFolder::transcripts_below(Path::new(&args.folder))
        .map_err(|error| Error::Usage(format!("{error}\n  help: give a folder with transcripts")))?;
    if transcripts.is_empty() {
        return Err(Error::Usage(format!(
            "`{}` holds no transcript, so nothing would be judged",
            args.folder
        )));
    }
    unique(&transcripts)?;
    let unknown = annotate(&mut transcripts, &prepared.target);
    if unknown > 0 && !global.quiet {
        output::note(&format!(
            "warning: {unknown} of {} transcripts are of personas that the target does not have; their risk level is unknown",
            transcripts.len()
        ));
    }
    let texts: Vec<String> = transcripts.iter().map(|t| format!("{}\n{}", t.id, write_text(t))).collect();
    let hash = sha256_of_parts(texts.iter().map(String::as_str));
    prepared.key.parts.retain(|name, _| !["candidate", "user", "sweep"].iter().any(|p| name.starts_with(p)));
    prepared.key.parts.insert("transcripts".to_owned(), hash);
    prepared.plan = Plan::of_transcripts(&transcripts);
    let (path, _) = execute::choose_folder(&prepared, args.run.run.as_deref(), args.run.fresh, global)?;
    let meter = Arc::clone(&prepared.context.meter);
    let progress = Arc::new(Progress::new(global, meter, args.run.events.as_deref())?);
    let executed = execute::execute(&prepared, &path, Task::Judge(transcripts), &progress)?;
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

fn unique(transcripts: &[Transcript]) -> Result<(), Error> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for transcript in transcripts {
        *seen.entry(transcript.id.0.as_str()).or_default() += 1;
    }
    let twice: Vec<&str> = seen.into_iter().filter(|(_, count)| *count > 1).map(|(id, _)| id).collect();
    if twice.is_empty() {
        return Ok(());
    }
    Err(Error::Usage(format!("several transcripts have the same name: {}", twice.join(", "))))
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
