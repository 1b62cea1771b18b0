//! `vera-gate check`: everything a run reads, validated, with every problem at once.

mod file;
mod kind;

use clap::{Args, ValueEnum};

use kind::Kind;

use super::load::Overrides;
use super::prepare::{self, Keys};
use super::trust::Trust;
use super::{Global, evidence, execute, output};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::error::Error;
use crate::escape::terminal;
use crate::exit::Exit;
use crate::model::Role;
use crate::model::probe::probe;
use crate::source::FileSet;
use crate::target::{Checked, summary};

/// Arguments of `check`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  vera-gate check\n  vera-gate check builtin:si\n  vera-gate check thresholds.yaml --target builtin:si\n  vera-gate check path/to/target --format dot | dot -Tsvg > flow.svg"
)]
pub(super) struct CheckArgs {
    /// A target, rubric.tsv, personas.tsv, configuration, thresholds file, baseline, results.csv or run folder; without
    /// it the configuration and all it names.
    #[arg(value_name = "WHAT")]
    pub(super) what: Option<String>,
    /// Also makes one tiny call per role.
    #[arg(long)]
    live: bool,
    /// How to print a target.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    overrides: Overrides,
    #[command(flatten)]
    trust: Trust,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Questions per dimension, walks, personas per risk level.
    Text,
    /// The flow as a Graphviz graph.
    Dot,
}

/// Runs the command.
pub(super) fn run(args: &CheckArgs, global: &Global) -> Result<Exit, Error> {
    let Some(what) = &args.what else { return configuration(args, global) };
    let kind = kind::of(what, &FileSet::Folder(std::path::PathBuf::new()))?;
    if args.format == Format::Dot && !matches!(kind, Kind::Target) {
        return Err(Diagnostics::from(
            Diagnostic::error(Code::NotTogether, "only a target or a rubric has a flow to draw")
                .help("leave `--format` away"),
        )
        .into());
    }
    let text = match &kind {
        Kind::Target => return target(what, args.format, global),
        Kind::Configuration => {
            return configuration(args, &Global { config: Some(what.clone()), ..global.clone() });
        }
        Kind::Thresholds(source) => file::thresholds(source, &args.overrides, global)?,
        Kind::Baseline(source) => file::baseline(source)?,
        Kind::GitBaseline => return super::baseline::show(what),
        Kind::Results => file::results(what)?,
        Kind::Run => file::run(what)?,
    };
    output::result(&text)?;
    Ok(Exit::Success)
}

fn target(path: &str, format: Format, global: &Global) -> Result<Exit, Error> {
    let (checked, warnings) = crate::target::check(path, &FileSet::Folder(std::path::PathBuf::new()))?;
    output::warnings(&warnings, global);
    let text = match (format, &checked) {
        (Format::Text, checked) => summary::summary(checked),
        (Format::Dot, Checked::Target(target)) => summary::dot(&target.rubric, &target.name),
        (Format::Dot, Checked::Rubric(rubric)) => summary::dot(rubric, path),
        (Format::Dot, Checked::Personas(_)) => {
            return Err(Diagnostics::from(
                Diagnostic::error(Code::NotTogether, "a persona table has no flow to draw")
                    .help("give a target or a rubric.tsv"),
            )
            .into());
        }
    };
    output::result(&text)?;
    Ok(Exit::Success)
}

/// Everything a run reads. Keys may be missing here, unless calls are to be made.
fn configuration(args: &CheckArgs, global: &Global) -> Result<Exit, Error> {
    let keys = if args.live { Keys::Needed } else { Keys::Optional };
    let prepared = prepare::checked(global, &args.overrides, keys, &args.trust)?;
    let config = &prepared.loaded.config;
    let mut lines = vec![format!("configuration  {}", prepared.loaded.name)];
    let mut line = |name: &str, value: &str| lines.push(format!("{name:<15}{value}"));
    for model in execute::models(&prepared, &std::collections::BTreeMap::new()) {
        let pinned = if model.pinned { "" } else { " (not one fixed version)" };
        line(model.role.word(), &format!("{}/{}{pinned}", model.provider, model.requested));
    }
    line("conversations", &prepared.plan.cells.len().to_string());
    line("thresholds", &format!("{} ({} rules)", prepared.thresholds.name, prepared.thresholds.rules.len()));
    if let Some(reference) = &config.gate.baseline {
        line("baseline", &baseline_words(reference, &prepared.loaded.files())?);
    }
    for warning in prepared.warnings() {
        line("warning", &warning);
    }
    let target = summary::summary(&Checked::Target(Box::new((*prepared.target).clone())));
    output::result(&format!("{}\n\n{target}", lines.join("\n")))?;
    if args.live { live(&prepared) } else { Ok(Exit::Success) }
}

fn baseline_words(reference: &str, files: &FileSet) -> Result<String, Error> {
    match evidence::baseline(reference, files) {
        None => Ok(format!("{reference} does not exist yet")),
        Some(Ok(baseline)) => Ok(format!("{reference} ({} conversations)", baseline.rated())),
        Some(Err(fault)) => Err(Error::Usage(format!("gate.baseline `{reference}`: {fault}"))),
    }
}

/// One tiny call per role.
fn live(prepared: &prepare::Prepared) -> Result<Exit, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::Internal(error.to_string()))?;
    let users = prepared.crew.users.iter().map(|model| (Role::User, model));
    let candidate = prepared.crew.candidate.iter().map(|model| (Role::Candidate, model));
    let mut judges: Vec<_> = prepared.crew.judges.iter().map(|judge| (Role::Judge, &judge.model)).collect();
    judges.dedup_by(|a, b| a.1.identity() == b.1.identity());
    let mut failed = false;
    output::result("\n")?;
    for (role, model) in users.chain(candidate).chain(judges) {
        let probe = runtime.block_on(probe(role, model.as_ref()));
        failed |= !probe.is_usable();
        output::result(&format!("{}\n", terminal::line(&probe.to_string())))?;
    }
    Ok(if failed { Exit::Provider } else { Exit::Success })
}
