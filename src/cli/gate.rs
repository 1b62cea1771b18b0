//! `vera-gate gate`: applies thresholds and baseline to a result that is there; no model is called.

use clap::Args;

use super::conclude::{self, Baselines, Format};
use super::evidence::Evidence;
use super::load::Overrides;
use super::names::Names;
use super::{Global, output, policy, prepare};
use crate::config::BUILTIN_NAME;
use crate::error::Error;
use crate::exit::Exit;
use crate::run::RunFolder;

/// Arguments of `gate`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  vera-gate gate vera-gate-runs/20261130T120000Z-1a2b3c4d --thresholds builtin:release\n  \
vera-gate gate candidate/results.csv --baseline baseline/results.csv"
)]
pub(super) struct GateArgs {
    /// A run folder or a VERA-MH results.csv. Dimensions of the target that the file lacks count as not measured.
    #[arg(value_name = "RESULT")]
    result: String,
    #[command(flatten)]
    overrides: Overrides,
    /// Writes verdict and report into the run folder anew.
    #[arg(long)]
    write: bool,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Runs the command.
pub(super) fn run(args: &GateArgs, global: &Global) -> Result<Exit, Error> {
    let loaded = policy::judging(global, &args.overrides)?;
    output::warnings(&loaded.warnings, global);
    let result = folder_of_results(&args.result);
    let mut evidence = Evidence::read(&result)?;
    if evidence.record.is_none() {
        // Without a word about the target a results file may come from any rubric.
        let told = args.overrides.target.is_some() || loaded.source.name() != BUILTIN_NAME;
        let target = if told { Some(prepare::load_target(&loaded)?.0) } else { None };
        evidence.held_against(target.as_ref(), &result)?;
    }
    let names = Names::of_evidence(&evidence, &loaded);
    let (thresholds, warnings) = names.thresholds(&prepare::thresholds_source(&loaded)?)?;
    output::warnings(&warnings, global);
    let baselines = Baselines::named(args.overrides.baseline.as_deref(), &loaded);
    baselines.are_others(&result, evidence.record.as_ref())?;
    let templates = conclude::templates(&loaded)?;
    let verdict = conclude::decide(&evidence, &thresholds, &baselines, &evidence.confirmations);
    let report = conclude::report(&loaded, &evidence, &verdict, &baselines);
    if args.write {
        if evidence.record.is_none() {
            return Err(Error::Usage(
                "--write needs a run folder; a results file is left as it is".to_owned(),
            ));
        }
        conclude::write(&RunFolder::at(std::path::Path::new(&result)), &verdict, &report, &templates)?;
    }
    conclude::print(global, args.format, &verdict, &report, &templates)?;
    Ok(conclude::exit(&verdict, evidence.record.as_ref()))
}

/// The run folder around its results file: the file alone does not know what was planned and never came.
fn folder_of_results(result: &str) -> String {
    let path = std::path::Path::new(result);
    let folder = path.parent().filter(|_| path.file_name().is_some_and(|name| name == "results.csv"));
    let here =
        |folder: &std::path::Path| if folder.as_os_str().is_empty() { ".".into() } else { folder.to_owned() };
    match folder.map(here).filter(|folder| RunFolder::at(folder).has_record()) {
        Some(folder) => {
            let folder = folder.to_string_lossy().into_owned();
            output::note(&format!("{result} lies in a run folder, which is read: it knows the whole plan"));
            folder
        }
        None => result.to_owned(),
    }
}
