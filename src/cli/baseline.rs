//! `vera-gate baseline`: makes a baseline of a run, and shows one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::conclude::VERDICT_FILE;
use super::evidence::{self, Evidence};
use super::load::{self, Loaded, Overrides};
use super::prepare::today;
use super::{Global, conclude, output};
use crate::baseline::{Baseline, BlessInput, Force, ModelUse, Origin, bless, refusals};
use crate::config::{BUILTIN_NAME, FILE_NAMES};
use crate::error::Error;
use crate::exit::Exit;
use crate::gate::GateVerdict;
use crate::gate::rules::Tier;
use crate::gate::verdict::Status;
use crate::matrix::{DimensionCounts, Matrix};
use crate::run::{PlanFile, RunFolder, RunRecord};
use crate::source::FileSet;
use crate::sweep::scheduler::CellStatus;

/// Arguments of `baseline`.
#[derive(Args, Debug)]
pub(super) struct BaselineArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Makes a baseline of a complete, uncached run with pinned models.
    #[command(
        after_help = "Example:\n  vera-gate baseline bless vera-gate-runs/20261130T120000Z-1a2b3c4d --to baselines/bot.json"
    )]
    Bless {
        /// A run folder.
        #[arg(value_name = "RUN")]
        run: String,
        /// Where the baseline goes.
        #[arg(long, value_name = "FILE")]
        to: String,
        /// Overrides the refusals; the baseline says so, and the gate prints it each time.
        #[arg(long)]
        force: bool,
    },
    /// Says what a baseline holds.
    #[command(after_help = "Example:\n  vera-gate baseline show baselines/bot.json")]
    Show {
        /// A baseline file, a run folder, a results.csv or `git:REF:PATH`.
        #[arg(value_name = "BASELINE")]
        baseline: String,
    },
}

/// Runs the command.
pub(super) fn run(args: &BaselineArgs, global: &Global) -> Result<Exit, Error> {
    match &args.action {
        Action::Bless { run, to, force } => {
            let force = if *force { Force::Yes } else { Force::No };
            make(run, to, force, global)
        }
        Action::Show { baseline } => show(baseline),
    }
}

fn make(run: &str, to: &str, force: Force, global: &Global) -> Result<Exit, Error> {
    let evidence = Evidence::read(run)?;
    let (Some(record), Some(plan)) = (&evidence.record, &evidence.plan_file) else {
        return Err(Error::Usage(format!("`{run}` is no run folder, and only a run knows how it was made")));
    };
    if let Some(shard) = record.shard {
        return Err(Error::Usage(format!("`{run}` is shard {shard} of a run; merge the shards first")));
    }
    let broken = broken_rules(run)?;
    let blessed = with_input(&evidence, record, plan, broken.as_deref(), &dirty_files(global), |input| {
        bless(input, force)
    })
    .map_err(|refusals| {
        let list: Vec<String> = refusals.iter().map(|refusal| format!("\n  - {refusal}")).collect();
        Error::Incomplete(format!(
            "this run may not become a baseline:{}\n  help: make a complete run of fixed model versions without a recording that the gate lets pass, or override with --force (the gate will say so each time)",
            list.concat()
        ))
    })?;
    let text = blessed.to_json().map_err(|error| Error::Internal(error.to_string()))?;
    let path = Path::new(to);
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    RunFolder::at(folder).write(&name, &text).map_err(|error| Error::Provider(error.to_string()))?;
    if !global.quiet {
        for forced in &blessed.forced {
            output::note(&format!("forced: {forced}"));
        }
    }
    output::result(&format!("{to}: {} conversations of {}\n", blessed.rated(), record.candidate))?;
    Ok(Exit::Success)
}

/// Gives what blessing looks at to something that judges it.
fn with_input<T>(
    evidence: &Evidence,
    record: &RunRecord,
    plan: &PlanFile,
    broken: Option<&[String]>,
    dirty_files: &[String],
    judge: impl FnOnce(&BlessInput<'_>) -> T,
) -> T {
    let failed = plan.conversations.iter().filter(|c| !matches!(c.status, CellStatus::Held { .. })).count();
    let models: Vec<ModelUse> = record
        .models
        .iter()
        .map(|model| ModelUse {
            role: model.role.word().to_owned(),
            // A name that the configuration calls pinned is one, whatever the provider answers to.
            returned: if model.pinned { BTreeSet::new() } else { model.returned.iter().cloned().collect() },
            requested: model.requested.clone(),
        })
        .collect();
    judge(&BlessInput {
        run: &evidence::name_of_run(record),
        candidate: &record.candidate,
        today: today(),
        provenance: &evidence.provenance,
        dimensions: &evidence.dimensions,
        conversations: &evidence.conversations,
        missing: &evidence.never_held(),
        labels: &evidence.labels,
        planned: record.planned,
        failed: failed as u64,
        replayed: record.replayed_calls,
        models: &models,
        dirty_files,
        broken,
    })
}

/// What would speak against blessing a run that is a baseline as it is, in words. Files that are not committed say
/// nothing about a run that was made earlier.
pub(super) fn refusals_of(evidence: &Evidence, run: &str) -> Result<Vec<String>, Error> {
    let (Some(record), Some(plan)) = (&evidence.record, &evidence.plan_file) else { return Ok(Vec::new()) };
    let refusals = with_input(evidence, record, plan, broken_rules(run)?.as_deref(), &[], refusals);
    Ok(refusals.iter().map(ToString::to_string).collect())
}

/// The blocking rules that a run broke by the verdict in its folder; `None` where there is no verdict.
fn broken_rules(run: &str) -> Result<Option<Vec<String>>, Error> {
    let folder = RunFolder::at(Path::new(run));
    if !folder.file(VERDICT_FILE).exists() {
        return Ok(None);
    }
    let text = folder.read(VERDICT_FILE).map_err(|error| Error::Usage(error.to_string()))?;
    let verdict: GateVerdict =
        serde_json::from_str(&text).map_err(|error| Error::Usage(format!("{VERDICT_FILE}: {error}")))?;
    let fails = verdict.rules.iter().filter(|rule| rule.tier == Tier::Block && rule.status == Status::Fail);
    Ok(Some(fails.map(|rule| rule.id.clone()).collect()))
}

/// Files of the policy with changes that are not committed: those that the configuration names, and those that are called
/// like one. None where there is no repository.
fn dirty_files(global: &Global) -> Vec<String> {
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git").args(arguments).output().ok();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    // Without its configuration a run can still be blessed; what it named is then not known.
    let top = git(&["rev-parse", "--show-toplevel"]).unwrap_or_default();
    let named: Vec<PathBuf> = configuration(global, Path::new(top.trim()))
        .map(|loaded| loaded.policy_files().iter().filter_map(|path| path.canonicalize().ok()).collect())
        .unwrap_or_default();
    // Ignored files are listed too: rules that no commit ever holds.
    let listed =
        git(&["status", "--porcelain", "--untracked-files=all", "--ignored=traditional"]).unwrap_or_default();
    let is_named = |path: &str| {
        let path = Path::new(top.trim()).join(path);
        // A folder that is ignored stands for all that is in it.
        let about = |path: &Path, named: &Path| path.starts_with(named) || named.starts_with(path);
        path.canonicalize().is_ok_and(|path| named.iter().any(|named| about(&path, named)))
    };
    let policy = |path: &str, endings: &[&str]| {
        let name = path.rsplit('/').next().unwrap_or(path);
        ["vera-gate", "rubric", "thresholds", "personas"].iter().any(|word| path.contains(word))
            && endings.iter().any(|ending| name.ends_with(ending))
    };
    // A JSON file that git does not know yet is a result more likely than a rule.
    let endings = |state: &str| match state {
        "!!" => &[][..],
        "??" => &[".yaml", ".yml", ".tsv"][..],
        _ => &[".yaml", ".yml", ".tsv", ".json", ".txt"][..],
    };
    listed
        .lines()
        .filter_map(|line| Some((line.get(..2)?, line.get(3..)?)))
        .filter(|(state, path)| is_named(path) || policy(path, endings(state)))
        .map(|(_, path)| path.to_owned())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// The configuration here, or else the one at the top of the repository.
fn configuration(global: &Global, top: &Path) -> Result<Loaded, Error> {
    let here = load::config(global, &Overrides::default())?;
    let above = FILE_NAMES.iter().map(|name| top.join(name)).find(|path| path.is_file());
    match above {
        Some(path) if here.source.name() == BUILTIN_NAME => {
            let global = Global { config: Some(path.to_string_lossy().into_owned()), ..global.clone() };
            load::config(&global, &Overrides::default())
        }
        _ => Ok(here),
    }
}

/// Shows a baseline wherever it is kept.
pub(super) fn show(reference: &str) -> Result<Exit, Error> {
    let baseline = evidence::baseline(reference, &FileSet::Folder(PathBuf::new()))
        .ok_or_else(|| Error::Usage(format!("the baseline `{reference}` does not exist")))?
        .map_err(|fault| Error::Usage(format!("`{reference}`: {fault}")))?;
    output::result(&described(&baseline))?;
    Ok(Exit::Success)
}

/// What a baseline holds, line by line.
pub(super) fn described(baseline: &Baseline) -> String {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: &str| lines.push(format!("{name:<15}{value}"));
    line("candidate", if baseline.candidate.is_empty() { "unknown" } else { &baseline.candidate });
    let day = match baseline.origin {
        Origin::Blessed => "blessed",
        Origin::Run => "run of",
        Origin::Results => "made",
    };
    line(day, &baseline.created.map_or_else(|| "unknown".to_owned(), |day| day.to_string()));
    let (all, rated) = (baseline.conversations.len(), baseline.rated());
    line("conversations", &if rated < all { format!("{rated} of {all}") } else { all.to_string() });
    if let Some(prints) = &baseline.provenance.fingerprints {
        line("rubric", &prints.rubric);
        line("personas", &prints.personas);
        line("prompts", &prints.prompts);
    }
    for (name, value) in &baseline.provenance.settings {
        line(name, value);
    }
    for forced in &baseline.forced {
        line(if baseline.origin == Origin::Run { "not blessed" } else { "forced" }, forced);
    }
    lines.push(String::new());
    lines.extend(harm_lines(&conclude::matrix_of(baseline)));
    lines.join("\n") + "\n"
}

/// Harm per dimension, and how much was not relevant or has no rating.
pub(super) fn harm_lines(matrix: &Matrix) -> Vec<String> {
    let line = |row: &DimensionCounts| {
        let counts = &row.all;
        let also = |n: u64, what: &str| if n > 0 { format!(", {n} {what}") } else { String::new() };
        format!(
            "{}: {} of {} relevant with high potential for harm{}{}",
            row.dimension,
            counts.high_potential_for_harm,
            counts.relevant(),
            also(counts.not_relevant, "not relevant"),
            also(counts.unjudged(), "without a rating")
        )
    };
    matrix.dimensions.iter().map(line).collect()
}
