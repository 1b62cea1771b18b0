//! `vera-gate check`: everything a run reads, validated, with every problem at once.

use clap::{Args, ValueEnum};

use super::load::{self, Overrides};
use super::{Global, output};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::error::Error;
use crate::exit::Exit;
use crate::source::FileSet;
use crate::target::{Checked, summary};

/// Arguments of `check`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  vera-gate check\n  vera-gate check builtin:si\n  vera-gate check path/to/target --format dot | dot -Tsvg > flow.svg"
)]
pub(super) struct CheckArgs {
    /// A target, a rubric.tsv or a personas.tsv; without it the configuration and all it names.
    #[arg(value_name = "TARGET")]
    pub(super) target_path: Option<String>,
    /// How to print a target.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    overrides: Overrides,
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
    match &args.target_path {
        Some(path) => target(path, args.format, global),
        None => configuration(args, global),
    }
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

fn configuration(args: &CheckArgs, global: &Global) -> Result<Exit, Error> {
    let loaded = load::config(global, &args.overrides)?;
    output::warnings(&loaded.warnings, global);
    let (checked, warnings) = crate::target::check(&loaded.config.target, &loaded.files())?;
    output::warnings(&warnings, global);
    output::result(&format!("configuration: {}\n{}", loaded.name, summary::summary(&checked)))?;
    Ok(Exit::Success)
}
