//! `vera-gate merge`: makes one run of the shards of a sweep, and gives its verdict.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;

use super::conclude::{self, Baselines, Format};
use super::evidence::Evidence;
use super::load::{Loaded, Overrides};
use super::names::Names;
use super::simulate::by_completeness;
use super::{Global, execute, folder, output, policy, prepare};
use crate::error::Error;
use crate::exit::Exit;
use crate::gate::{Confirmation, Thresholds};
use crate::run::merge::{Merged, Part, merge};
use crate::run::{CONFIRMATIONS_FILE, FolderError, PLAN_FILE, RUN_FILE, RunFolder};
use crate::sweep::journal::Journal;

/// How deep below a given folder run folders are looked for: artifact, output folder, run.
const DEPTH: u32 = 3;

/// Arguments of `merge`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vera-gate merge vera-gate-runs/*of4\n  \
vera-gate merge shards --out merged --thresholds builtin:release")]
pub(super) struct MergeArgs {
    /// Run folders of shards, or folders that hold such, as downloaded artifacts do.
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// The folder of the merged run; by default a new one where run folders go.
    #[arg(long, short, alias = "run", value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Thresholds: `builtin:pull-request`, `builtin:release`, `builtin:strict` or a file.
    #[arg(long, value_name = "FILE", env = "VERA_GATE_THRESHOLDS")]
    thresholds: Option<String>,
    /// Baseline: a file, a run folder, or `git:REF:PATH`.
    #[arg(long, value_name = "BASELINE", env = "VERA_GATE_BASELINE")]
    baseline: Option<String>,
    /// How to print the result; the run folder holds every form.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Runs the command.
pub(super) fn run(args: &MergeArgs, global: &Global) -> Result<Exit, Error> {
    let overrides = Overrides {
        thresholds: args.thresholds.clone(),
        baseline: args.baseline.clone(),
        ..Overrides::default()
    };
    let loaded = policy::judging(global, &overrides)?;
    output::warnings(&loaded.warnings, global);
    let templates = conclude::templates(&loaded)?;
    let baselines = Baselines::named(args.baseline.as_deref(), &loaded);
    let folders = run_folders(&args.folders)?;
    let parts = folders.iter().map(part).collect::<Result<Vec<Part>, Error>>()?;
    let out = out_folder(args, &loaded, &folders, &parts)?;
    let run_id = out.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let merged = merge(&parts, &run_id).map_err(|error| Error::Usage(error.to_string()))?;
    let thresholds = thresholds(&loaded, &merged, global)?;
    if !global.quiet {
        for note in &merged.notes {
            output::note(note);
        }
    }
    for problem in &merged.problems {
        output::note(&format!("inconclusive: {problem}"));
    }
    let taken = confirmations(&folders, &merged)?;
    let folder = write(&out, &folders, &merged)?;
    if merged.plan.judges.is_empty() {
        return held_only(&folder, &merged);
    }
    let evidence = Evidence::of_run(merged.record, merged.plan, merged.ratings);
    let wanted = conclude::pending(&evidence, &thresholds, &baselines);
    // In the order in which a single run would have taken them.
    let taken: Vec<Confirmation> = wanted
        .iter()
        .filter_map(|w| taken.iter().find(|c| w.conversation == c.conversation && w.question == c.question))
        .cloned()
        .collect();
    let verdict = conclude::decide(&evidence, &thresholds, &baselines, &taken);
    let report = conclude::report(&loaded, &evidence, &verdict, &baselines);
    folder.write_json(CONFIRMATIONS_FILE, &taken).map_err(unwritten)?;
    conclude::write(&folder, &verdict, &report, &templates)?;
    conclude::print(global, args.format, &verdict, &report, &templates)?;
    if !global.quiet && args.format == Format::Text {
        output::note(&format!("everything is in {}", folder.path().display()));
    }
    Ok(conclude::exit(&verdict, evidence.record.as_ref()))
}

#[expect(clippy::needless_pass_by_value, reason = "used as `map_err(unwritten)`")]
fn unwritten(error: FolderError) -> Error {
    Error::Provider(error.to_string())
}

/// The thresholds, held against what was measured, before anything is written.
fn thresholds(loaded: &Loaded, merged: &Merged, global: &Global) -> Result<Thresholds, Error> {
    let names = Names::of_run(&merged.record, &merged.plan, loaded);
    let (thresholds, warnings) = names.thresholds(&prepare::thresholds_source(loaded)?)?;
    output::warnings(&warnings, global);
    Ok(thresholds)
}

/// The run folders among and below the given ones, each once. A run that did not end has no record: it is named, and
/// its shard counts as missing.
fn run_folders(given: &[PathBuf]) -> Result<Vec<RunFolder>, Error> {
    let mut found = BTreeSet::new();
    for path in given {
        let whole = path.canonicalize().map_err(|error| Error::io(path, error))?;
        let before = found.len();
        collect(&whole, DEPTH, &mut found)?;
        if found.len() == before && !found.contains(&whole) {
            output::note(&format!("`{}` holds no finished run", path.display()));
        }
    }
    if found.is_empty() {
        return Err(Error::Usage(
            "no run folder was found\n  help: give the folders with the run.json of each shard".to_owned(),
        ));
    }
    Ok(found.iter().map(|path| RunFolder::at(path)).collect())
}

fn collect(path: &Path, depth: u32, found: &mut BTreeSet<PathBuf>) -> Result<(), Error> {
    if path.join(RUN_FILE).is_file() {
        found.insert(path.to_owned());
        return Ok(());
    }
    if let Some(plan) = Journal::plan_of(path) {
        let which = plan.shard.map_or_else(|| "a whole run".to_owned(), |shard| format!("shard {shard}"));
        output::note(&format!(
            "`{}` is {which} that did not end; go on with it where its journal is, or it counts as missing",
            path.display()
        ));
        return Ok(());
    }
    if depth == 0 || !path.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(|error| Error::io(path, error))? {
        let child = entry.map_err(|error| Error::io(path, error))?.path();
        if child.is_dir() {
            collect(&child, depth - 1, found)?;
        }
    }
    Ok(())
}

fn part(folder: &RunFolder) -> Result<Part, Error> {
    let unusable =
        |error: FolderError| Error::Usage(format!("{error}\n  help: take the shard's run folder as a whole"));
    let plan = folder.plan().map_err(unusable)?;
    let ratings = if plan.judges.is_empty() { Vec::new() } else { folder.ratings().map_err(unusable)? };
    Ok(Part {
        name: folder.path().display().to_string(),
        record: folder.record().map_err(unusable)?,
        plan,
        ratings,
    })
}

/// Where the merged run goes: a folder of its own, so that no shard is overwritten.
fn out_folder(
    args: &MergeArgs,
    loaded: &Loaded,
    folders: &[RunFolder],
    parts: &[Part],
) -> Result<PathBuf, Error> {
    let Some(out) = &args.out else {
        let hash: String =
            parts.iter().flat_map(|part| part.record.plan_hash.chars().take(8)).take(8).collect();
        return Ok(folder::new_folder(&loaded.base.join(&loaded.config.out), &format!("{hash}-merged")));
    };
    let is_shard = out.canonicalize().is_ok_and(|out| folders.iter().any(|folder| folder.path() == out));
    let there = RunFolder::at(out);
    let is_run = there.has_record() && !there.record().is_ok_and(|record| !record.merged.is_empty());
    if is_shard || is_run || Journal::plan_of(out).is_some() {
        return Err(Error::Usage(format!(
            "`{}` holds a run, which would be overwritten; give another folder",
            out.display()
        )));
    }
    Ok(out.clone())
}

/// The second looks that the shards took at their own conversations.
fn confirmations(folders: &[RunFolder], merged: &Merged) -> Result<Vec<Confirmation>, Error> {
    let mut taken = Vec::new();
    for (index, folder) in folders.iter().enumerate() {
        if merged.held_by.values().any(|owner| *owner == index) {
            let looks = folder.confirmations().map_err(|error| Error::Usage(error.to_string()))?;
            taken.extend(looks.into_iter().filter(|c| merged.held_by.get(&c.conversation) == Some(&index)));
        }
    }
    Ok(taken)
}

fn write(out: &Path, folders: &[RunFolder], merged: &Merged) -> Result<RunFolder, Error> {
    RunFolder::at(out).forget_transcripts().map_err(unwritten)?;
    let folder = RunFolder::create(out).map_err(unwritten)?;
    for (id, owner) in &merged.held_by {
        if let Some(from) = folders.get(*owner) {
            folder.adopt(from, id).map_err(unwritten)?;
        }
    }
    folder.write_json(PLAN_FILE, &merged.plan).map_err(unwritten)?;
    execute::write_evaluations(&folder, &merged.plan, &merged.ratings, &merged.record)?;
    folder.write_json(RUN_FILE, &merged.record).map_err(unwritten)?;
    Ok(folder)
}

/// The end of a merge of transcripts that nobody has judged yet.
fn held_only(folder: &RunFolder, merged: &Merged) -> Result<Exit, Error> {
    output::result(&format!(
        "{}\n{} of {} conversations held; `vera-gate judge` has them judged\n",
        folder.path().display(),
        merged.record.held,
        merged.record.planned
    ))?;
    Ok(by_completeness(&merged.record))
}
