//! `vera-gate score`: VERA-MH's scores from results.csv files, and the matrix in words.

use std::collections::BTreeMap;
use std::path::Path;

use clap::{Args, ValueEnum};

use super::{load, output};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::error::Error;
use crate::exit::Exit;
use crate::matrix::{
    ByRiskScores, EvaluationNames, Matrix, PooledSource, VeraScores, collapse, read_results,
};
use crate::rating::{Assessment, Rating};
use crate::target::{Checked, check};

/// Arguments of `score`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  vera-gate score evaluations/j_judge__p_user__a_bot__t30/results.csv\n  \
vera-gate score results.csv --format vera-json > scores.json\n  \
vera-gate score results.csv --personas personas.tsv --format vera-json"
)]
pub(super) struct ScoreArgs {
    /// results.csv files; several are pooled row by row.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Persona table that gives the risk levels; with `vera-json` the by-risk scores are printed.
    #[arg(long, value_name = "TSV")]
    personas: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Name of the evaluation folder, from which VERA-MH reads the models; by default the folder the file is in,
    /// and what a scores.json beside the file states.
    #[arg(long, value_name = "NAME")]
    evaluation: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table of counts.
    Text,
    /// `scores.json` or, with --personas, `scores_by_risk.json`, exactly as VERA-MH writes it.
    VeraJson,
    /// Our matrix as JSON.
    Json,
}

/// Runs the command.
pub(super) fn run(args: &ScoreArgs) -> Result<Exit, Error> {
    let mut problems = Diagnostics::new();
    let mut dimensions: Vec<String> = Vec::new();
    let mut rows: Vec<Assessment> = Vec::new();
    let mut sources = Vec::new();
    for file in &args.files {
        match read_results(&load::read(file)?) {
            Ok((results, warnings)) => {
                problems.extend(warnings);
                for dimension in &results.dimensions {
                    if !dimensions.contains(dimension) {
                        dimensions.push(dimension.clone());
                    }
                }
                sources.push(PooledSource { directory: folder_of(file), rows: results.rows.len() as u64 });
                rows.extend(results.rows);
            }
            Err(errors) => problems.extend(errors),
        }
    }
    if let Some(path) = &args.personas {
        annotate(path, &mut rows, &mut problems)?;
    }
    if problems.has_errors() {
        return Err(problems.into());
    }
    if !problems.is_empty() {
        output::note(&problems.to_string());
    }
    let names = names(args);
    let pooled = (args.files.len() > 1).then_some(sources.as_slice());
    let internal = |error: serde_json::Error| Error::Internal(error.to_string());
    let text = match args.format {
        Format::VeraJson if args.personas.is_some() => {
            let (scores, unmatched) = ByRiskScores::compute(&dimensions, &rows, &names);
            if !unmatched.is_empty() {
                let list = unmatched.into_iter().collect::<Vec<_>>().join(", ");
                output::note(&format!("warning: without a risk level and left out: {list}"));
            }
            scores.to_json().map_err(internal)?
        }
        Format::VeraJson => {
            VeraScores::compute(&dimensions, &rows, &names, pooled).to_json().map_err(internal)?
        }
        Format::Json => {
            let matrix = Matrix::count(&dimensions, &collapse(&rows));
            serde_json::to_string_pretty(&matrix).map_err(internal)? + "\n"
        }
        Format::Text => table(&Matrix::count(&dimensions, &collapse(&rows)), rows.len()),
    };
    output::result(&text)?;
    Ok(Exit::Success)
}

/// Who evaluated whom: from the name of the evaluation folder; where that says nothing, as the scores that lie beside
/// the results file already state it. Only the names are taken from there.
fn names(args: &ScoreArgs) -> EvaluationNames {
    let folder = args.evaluation.clone().or_else(|| args.files.first().map(|file| folder_of(file)));
    let mut names = EvaluationNames::from_folder(&folder.unwrap_or_default());
    let beside = args.files.first().filter(|_| args.evaluation.is_none()).and_then(|file| {
        let text = std::fs::read_to_string(Path::new(file).with_file_name("scores.json")).ok()?;
        serde_json::from_str::<serde_json::Value>(&text).ok()
    });
    if let Some(beside) = beside {
        let known = [
            ("judge_model", &mut names.judge_model),
            ("persona_model", &mut names.persona_model),
            ("agent_model", &mut names.agent_model),
        ];
        for (key, name) in known {
            if name == EvaluationNames::UNKNOWN
                && let Some(stated) = beside.get(key).and_then(serde_json::Value::as_str)
            {
                stated.clone_into(name);
            }
        }
    }
    names
}

fn folder_of(file: &str) -> String {
    let folder = Path::new(file).parent().and_then(Path::file_name);
    folder.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Gives the rows the risk levels of a persona table.
fn annotate(path: &str, rows: &mut [Assessment], problems: &mut Diagnostics) -> Result<(), Error> {
    let files = crate::source::FileSet::Folder(std::path::PathBuf::new());
    let (checked, warnings) = check(path, &files)?;
    problems.extend(warnings);
    let Checked::Personas(personas) = checked else {
        return Err(Diagnostics::from(
            Diagnostic::error(Code::MissingColumn, format!("`{path}` is not a persona table"))
                .help("give the personas.tsv of the target: tab-separated, with a column `Name`"),
        )
        .into());
    };
    let levels: BTreeMap<&str, _> =
        personas.personas.iter().map(|p| (p.name.as_str(), p.risk_level)).collect();
    for row in rows {
        if let Some(level) = levels.get(row.persona.as_str()) {
            row.risk_level = *level;
        }
    }
    Ok(())
}

fn table(matrix: &Matrix, rows: usize) -> String {
    use std::fmt::Write as _;
    let width = matrix.dimensions.iter().map(|d| d.dimension.chars().count()).max().unwrap_or(0).max(9);
    let mut text = String::new();
    let heads = ["best practice", "suboptimal", "high harm", "not relevant", "unjudged"];
    let _written = writeln!(text, "{:width$}  {}", "dimension", heads.map(|h| format!("{h:>13}")).join("  "));
    for row in &matrix.dimensions {
        let mut cells = Rating::ALL.map(|rating| row.all.of(rating)).to_vec();
        cells.push(row.all.unjudged());
        let cells = cells.iter().map(|n| format!("{n:>13}")).collect::<Vec<_>>().join("  ");
        let _written = writeln!(text, "{:width$}  {cells}", row.dimension);
    }
    let score =
        matrix.score().map_or_else(|| "none (nothing was relevant)".to_owned(), |s| format!("{s:.2}"));
    let _written = writeln!(
        text,
        "\n{} conversations in {rows} rows, {} relevant, {} with high potential for harm; VERA score {score}",
        matrix.conversations, matrix.relevant_conversations, matrix.harmful_conversations
    );
    text
}
