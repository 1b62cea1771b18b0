//! `vera-gate history`: many results in a row, which of them compare, and the trend of harm.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::evidence::{self, Evidence};
use super::table::Table;
use super::{Global, output};
use crate::error::Error;
use crate::escape::{csv as spreadsheet, terminal};
use crate::exit::Exit;
use crate::gate::GateVerdict;
use crate::gate::verdict::SCHEMA as VERDICT_SCHEMA;
use crate::history::{self, Direction, Harm, History, Known, Listed, PastRun, Point, Standing};
use crate::run::RunFolder;
use crate::source::FileSet;
use crate::stats::trend::{ANCHOR_RUNS, EwmaRule};

/// Arguments of `history`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vera-gate history vera-gate-runs/*\n  \
vera-gate history baselines/bot.json vera-gate-runs/20261130T120000Z-1a2b3c4d\n  \
vera-gate history results/*.csv --format csv > history.csv\n\n\
Runs are taken oldest first by the time they were made, or in the order given when one does not say.")]
pub(super) struct HistoryArgs {
    /// Run folders, baseline files, results.csv files or `git:REF:PATH`.
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables and what they say.
    Text,
    /// `vera-gate/history/v1`.
    Json,
    /// One line per run and dimension, for a spreadsheet.
    Csv,
}

/// Runs the command.
pub(super) fn run(args: &HistoryArgs, global: &Global) -> Result<Exit, Error> {
    let runs = args.results.iter().map(|result| read(result)).collect::<Result<Vec<_>, _>>()?;
    let history = history::history(runs, EwmaRule::default());
    let text = match args.format {
        Format::Text => text(&history),
        Format::Json => {
            serde_json::to_string_pretty(&history).map_err(|error| Error::Internal(error.to_string()))? + "\n"
        }
        Format::Csv => table(&history).map_err(|error| Error::Internal(error.to_string()))?,
    };
    output::result(&text)?;
    if args.format != Format::Text && !global.quiet {
        for line in history.notes.iter().chain(&history.warnings) {
            output::note(&format!("note: {}", terminal::line(line)));
        }
    }
    Ok(Exit::Success)
}

fn read(result: &str) -> Result<PastRun, Error> {
    if Path::new(result).is_dir() {
        return run_folder(result);
    }
    let is_results = Path::new(result).extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
    if is_results && !result.starts_with("git:") {
        let found = Evidence::read(result)?;
        return Ok(PastRun::new(result, "", found.provenance, &found.dimensions, &found.conversations));
    }
    match evidence::baseline(result, &FileSet::Folder(PathBuf::new())) {
        None => Err(Error::Usage(format!("`{result}` does not exist"))),
        Some(Ok(baseline)) => Ok(PastRun::of_baseline(result, &baseline)),
        Some(Err(fault)) => Err(Error::Usage(format!("`{result}`: {fault}"))),
    }
}

fn run_folder(result: &str) -> Result<PastRun, Error> {
    let found = Evidence::read(result)?;
    let mut run = PastRun::new(result, "", found.provenance, &found.dimensions, &found.conversations);
    let Some(record) = found.record else { return Ok(run) };
    run.candidate = record.candidate;
    run.made = Some(record.started);
    run.run_id = Some(record.run_id);
    let folder = RunFolder::at(Path::new(result));
    if folder.file("verdict.json").is_file() {
        let verdict: GateVerdict = folder
            .read_json("verdict.json", VERDICT_SCHEMA)
            .map_err(|error| Error::Usage(error.to_string()))?;
        run.standing = match verdict.exit() {
            _ if verdict.is_incomplete() => Standing::Incomplete,
            Exit::Success => Standing::Accepted,
            _ => Standing::NotAccepted,
        };
        run.verdict = Some(verdict.verdict);
    }
    // A sweep that was cut short saw a part of the personas only.
    if !record.complete {
        run.standing = Standing::Incomplete;
    }
    Ok(run)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn standing(run: &Listed) -> String {
    let word = match run.standing {
        Standing::Accepted => "accepted",
        Standing::NotAccepted => "not accepted",
        Standing::Incomplete => "incomplete",
        Standing::Unknown => "not gated",
    };
    run.verdict.map_or_else(|| word.to_owned(), |verdict| format!("{verdict}, {word}"))
}

fn day(run: &Listed) -> String {
    run.made.as_deref().and_then(|made| made.get(..10)).unwrap_or("-").to_owned()
}

fn text(history: &History) -> String {
    let mut text = format!(
        "{} results, oldest first; harm is High Potential for Harm of relevant conversations\n",
        history.runs.len()
    );
    for segment in &history.segments {
        let runs: Vec<&Listed> = history.runs.iter().filter(|run| run.segment == segment.number).collect();
        let _written = match segment.fingerprints {
            Known::Known => writeln!(text, "\nSegment {}: these compare", segment.number),
            Known::Unknown => writeln!(
                text,
                "\nSegment {}: without fingerprints nobody knows whether these compare",
                segment.number
            ),
        };
        if let Some(first) = runs.first() {
            for change in &first.changed {
                let line = format!("{}: `{}` became `{}`", change.what, change.baseline, change.candidate);
                let _written = writeln!(text, "  starts anew: {}", terminal::line(&line));
            }
            let names = first.harm.iter().map(|harm| harm.dimension.clone());
            let heads = ["run", "day", "candidate", "gate", "conversations", "score"].map(str::to_owned);
            let mut table = Table::new(heads.into_iter().chain(names)).texts(4);
            for run in &runs {
                let cells = [
                    run.name.clone(),
                    day(run),
                    run.candidate.clone(),
                    standing(run),
                    run.conversations.to_string(),
                    run.score.map_or_else(|| "none".to_owned(), |score| format!("{score:.1}")),
                ];
                let harm = run.harm.iter().map(|harm| match harm.rate {
                    Some(rate) => format!("{} ({}/{})", percent(rate), harm.harmful, harm.relevant),
                    None => "none relevant".to_owned(),
                });
                table.row(cells.into_iter().chain(harm));
            }
            let _written = write!(text, "{table}");
        }
        trend(&mut text, &runs, segment.accepted);
    }
    for (title, lines) in [("Warnings", &history.warnings), ("Notes", &history.notes)] {
        if !lines.is_empty() {
            let _written = writeln!(text, "\n{title}");
            for line in lines {
                let _written = writeln!(text, "- {}", terminal::line(line));
            }
        }
    }
    text
}

/// The moving average after the newest run of a segment.
fn trend(text: &mut String, runs: &[&Listed], accepted: usize) {
    let newest = runs.iter().rev().find(|run| run.harm.iter().any(|harm| harm.trend.is_some()));
    let Some(newest) = newest else {
        let _written = writeln!(
            text,
            "no trend: it needs {ANCHOR_RUNS} accepted runs to start from, or one with {ANCHOR_RUNS} times the \
             conversations, and one more; accepted here: {accepted}"
        );
        return;
    };
    let mut table = Table::new(["harm, moving average", "anchor", "now", "limits", "says"]);
    for harm in &newest.harm {
        if let Some(Point { anchor, average, lower, upper, drift }) = harm.trend {
            let says = match drift {
                Direction::Steady => "steady",
                Direction::Worse => "more harm",
                Direction::Better => "less harm",
                Direction::NoData => "nothing relevant",
            };
            let [now, limits] = if drift == Direction::NoData {
                // The average stands where it stood, and says nothing of this run.
                ["-".to_owned(), "-".to_owned()]
            } else {
                [percent(average), format!("{} to {}", percent(lower), percent(upper))]
            };
            table.row([harm.dimension.clone(), percent(anchor), now, limits, says.to_owned()]);
        }
    }
    let _written = write!(text, "\n{table}");
}

fn table(history: &History) -> Result<String, csv::Error> {
    let mut writer =
        csv::WriterBuilder::new().terminator(csv::Terminator::Any(b'\n')).from_writer(Vec::new());
    writer.write_record([
        "run",
        "made",
        "candidate",
        "standing",
        "verdict",
        "segment",
        "conversations",
        "score",
        "dimension",
        "harmful",
        "relevant",
        "rate",
        "anchor",
        "average",
        "lower",
        "upper",
        "drift",
    ])?;
    for run in &history.runs {
        for harm in &run.harm {
            writer.write_record(line(run, harm))?;
        }
    }
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn line(run: &Listed, harm: &Harm) -> Vec<String> {
    let word = |value: serde_json::Result<serde_json::Value>| {
        value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let point = harm.trend;
    vec![
        spreadsheet::cell(&run.name),
        run.made.clone().unwrap_or_default(),
        spreadsheet::cell(&run.candidate),
        word(serde_json::to_value(run.standing)),
        run.verdict.map_or_else(String::new, |verdict| verdict.to_string()),
        run.segment.to_string(),
        run.conversations.to_string(),
        number(run.score),
        spreadsheet::cell(&harm.dimension),
        harm.harmful.to_string(),
        harm.relevant.to_string(),
        number(harm.rate),
        number(point.map(|point| point.anchor)),
        number(point.map(|point| point.average)),
        number(point.map(|point| point.lower)),
        number(point.map(|point| point.upper)),
        point.map_or_else(String::new, |point| word(serde_json::to_value(point.drift))),
    ]
}
