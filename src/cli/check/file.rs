//! Checks one file by itself and says what is in it.

use std::path::Path;

use crate::baseline::Baseline;
use crate::cli::evidence::Evidence;
use crate::cli::load::{self, Overrides};
use crate::cli::names::Names;
use crate::cli::{Global, baseline, output, prepare};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::error::Error;
use crate::matrix::Matrix;
use crate::source::Source;
use crate::target::Target;

/// Rules, waivers and what becomes of an open verdict. Names are held against the target of the configuration, if there
/// is one or the command line names a target; a file may serve several targets.
pub(super) fn thresholds(source: &Source, overrides: &Overrides, global: &Global) -> Result<String, Error> {
    let target = target(overrides, global)?;
    let names = target.as_ref().map_or_else(Names::default, Names::of_target);
    let (thresholds, warnings) = names.thresholds(source)?;
    output::warnings(&warnings, global);
    let mut lines = vec![format!("thresholds     {}", thresholds.name)];
    let width = thresholds.rules.iter().map(|rule| rule.id.len()).max().unwrap_or_default();
    for rule in &thresholds.rules {
        let tier = match rule.tier {
            crate::gate::rules::Tier::Block => "blocks",
            crate::gate::rules::Tier::Warn => "warns ",
        };
        let scope = rule.scope.words();
        let scope = if scope.is_empty() { String::new() } else { format!(" ({scope})") };
        lines.push(format!("  {tier}  {:<width$}  {}{scope}", rule.id, rule.kind.word()));
    }
    for waiver in &thresholds.waivers {
        lines.push(format!("  waiver of {} by {} until {}", waiver.rule, waiver.owner, waiver.expires));
    }
    lines.push(match &target {
        Some(target) => format!("Names were held against the target {}.", target.name),
        None => "Names of dimensions, failure modes and personas were held against no target; `--target` names one."
            .to_owned(),
    });
    Ok(lines.join("\n") + "\n")
}

/// The target that names are held against.
fn target(overrides: &Overrides, global: &Global) -> Result<Option<Target>, Error> {
    let loaded = load::config(global, overrides)?;
    if loaded.name == crate::config::BUILTIN_NAME && overrides.target.is_none() {
        return Ok(None);
    }
    let (target, warnings) = prepare::load_target(&loaded)?;
    output::warnings(&warnings, global);
    Ok(Some(target))
}

/// A baseline file, as `baseline show` shows it.
pub(super) fn baseline(source: &Source) -> Result<String, Error> {
    let fault = |message: String| {
        Diagnostics::from(
            Diagnostic::error(Code::Unreadable, message)
                .at(source.at(1, 1))
                .help("a baseline is written by `vera-gate baseline bless`, and better not by hand"),
        )
    };
    let baseline = Baseline::from_json(source.text()).map_err(|error| fault(error.to_string()))?;
    Ok(baseline::described(&baseline))
}

/// A results file, counted.
pub(super) fn results(reference: &str) -> Result<String, Error> {
    let evidence = Evidence::read(reference)?;
    let mut lines = vec![
        format!("results        {reference}"),
        format!("conversations  {}", evidence.conversations.len()),
        format!("rows           {}", evidence.assessments.len()),
    ];
    lines.push(String::new());
    lines.extend(baseline::harm_lines(&Matrix::count(&evidence.dimensions, &evidence.conversations)));
    Ok(lines.join("\n") + "\n")
}

/// A run folder: whether it can be read, and whether it is whole.
pub(super) fn run(reference: &str) -> Result<String, Error> {
    let evidence = Evidence::read(reference)?;
    let held = evidence.conversations.len();
    let planned = evidence.plan.as_ref().map_or(held, Vec::len);
    let complete = evidence.record.as_ref().is_some_and(|record| record.complete);
    let folder = Path::new(reference).display();
    Ok(format!(
        "run            {folder}\nconversations  {held} judged of {planned} planned\ncomplete       {}\n",
        if complete { "yes" } else { "no" }
    ))
}
