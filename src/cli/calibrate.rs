//! `vera-gate calibrate`: how far human raters agree, and how far a judge agrees with them.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};

use super::table::{Table, three};
use super::{Global, load, output};
use crate::calibrate::humans::{HarmAgreement, Panel, Share};
use crate::calibrate::judge::{Accuracy, JudgeReport};
use crate::calibrate::{self, Calibration, Coefficients, Estimate, read_ratings};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::error::Error;
use crate::escape::terminal;
use crate::exit::Exit;
use crate::matrix::read_results;
use crate::rating::Assessment;
use crate::stats::Confidence;
use crate::stats::agreement::Resampling;

/// Arguments of `calibrate`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vera-gate calibrate --ratings clinicians.csv\n  \
vera-gate calibrate --ratings clinicians.csv --judge run/results.csv\n\n\
The ratings file has one row per rater and conversation: a column `clinician_id` (or `rater_id`), a column\n\
`conversation_id`, and a column per dimension with VERA-MH's ratings. A column `rater_group` is optional.")]
pub(super) struct CalibrateArgs {
    /// Human ratings as CSV.
    #[arg(long, value_name = "FILE")]
    ratings: String,
    /// results.csv of the judge on the same conversations; several are pooled.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    judge: Vec<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Resamples of conversations for the 95 % intervals.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    resamples: u32,
    /// Seed of the resampling.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables and what to keep in mind.
    Text,
    /// `vera-gate/calibration/v1`.
    Json,
}

/// Runs the command.
pub(super) fn run(args: &CalibrateArgs, global: &Global) -> Result<Exit, Error> {
    let resampling = Resampling { resamples: args.resamples, seed: args.seed, confidence: Confidence::P95 };
    let mut problems = Diagnostics::new();
    let (dimensions, rows) = results(&args.judge, &mut problems)?;
    let source = load::read(&args.ratings)?;
    let read = read_ratings(&source, &dimensions);
    let (ratings, warnings) = match read {
        Ok((ratings, warnings)) => (Some(ratings), warnings),
        Err(errors) => (None, errors),
    };
    problems.extend(warnings);
    let (ratings, warnings) = problems.finish(ratings)?;
    output::warnings(&warnings, global);
    let mut calibration = calibrate::calibrate(&ratings, resampling);
    if !args.judge.is_empty() {
        calibration.judges = calibrate::judge::compare(&ratings, &dimensions, &rows, resampling)?;
    } else if calibration.humans.pooled.items == 0 {
        return Err(Diagnostics::from(
            Diagnostic::error(Code::EmptyInput, "no conversation was rated by two people")
                .at(source.at(1, 1))
                .help("agreement needs at least two ratings of the same conversation; or compare with `--judge`"),
        )
        .into());
    }
    let text = match args.format {
        Format::Json => {
            serde_json::to_string_pretty(&calibration).map_err(|e| Error::Internal(e.to_string()))? + "\n"
        }
        Format::Text => text(&calibration),
    };
    output::result(&text)?;
    Ok(Exit::Success)
}

fn results(files: &[String], problems: &mut Diagnostics) -> Result<(Vec<String>, Vec<Assessment>), Error> {
    let mut dimensions: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for file in files {
        match read_results(&load::read(file)?) {
            Ok((results, warnings)) => {
                problems.extend(warnings);
                let new = results.dimensions.into_iter().filter(|d| !dimensions.contains(d));
                dimensions.extend(new.collect::<Vec<_>>());
                rows.extend(results.rows);
            }
            Err(errors) => problems.extend(errors),
        }
    }
    Ok((dimensions, rows))
}

fn text(calibration: &Calibration) -> String {
    let mut text = String::new();
    let intervals = calibration.intervals;
    let _written = write!(
        text,
        "{} conversations, {} raters, {} ratings{}; in brackets the {} % interval ({} resamples of \
         conversations, seed {})\n\n",
        calibration.conversations,
        calibration.raters.len(),
        calibration.ratings,
        if calibration.blank > 0 { format!(", {} left blank", calibration.blank) } else { String::new() },
        intervals.confidence * 100.0,
        intervals.resamples,
        intervals.seed,
    );
    panel(&mut text, &calibration.humans);
    for group in &calibration.groups {
        panel(&mut text, group);
    }
    yardstick(&mut text, calibration);
    for judge in &calibration.judges {
        judged(&mut text, judge);
    }
    text.push_str("What to keep in mind\n");
    for line in caveats(calibration) {
        let _written = writeln!(text, "- {line}");
    }
    text
}

fn panel(text: &mut String, panel: &Panel) {
    if panel.pooled.items == 0 {
        text.push_str(
            "No conversation was rated by two people: there is no agreement among humans to report.\n\n",
        );
        return;
    }
    let who = match &panel.group {
        None => "all raters".to_owned(),
        Some(group) => terminal::line(&format!("group `{group}` alone")).into_string(),
    };
    let _written =
        writeln!(text, "Agreement among humans, {who} ({}), Not Relevant as a category", panel.raters.len());
    let mut table = Table::new(["dimension", "items", "same rating", "alpha (nominal)", "AC1"]);
    let all = panel.dimensions.iter().map(|row| (row.dimension.as_str(), &row.ratings));
    for (name, row) in all.chain([("all pooled", &panel.pooled)]) {
        table.row(coefficient_cells(name, row));
    }
    let _written = writeln!(text, "{table}");
    let _written = writeln!(text, "High Potential for Harm or anything else, pairs of raters, {who}");
    let mut table = Table::new(["dimension", "both", "one of two", "neither", "same", "alpha", "AC1"]);
    for row in &panel.dimensions {
        let HarmAgreement { both, one, neither, percent, alpha, ac1 } = row.harm;
        let counts = [both, one, neither].map(|n| n.to_string());
        let shares = [percent, alpha, ac1].map(three);
        table.row([row.dimension.clone()].into_iter().chain(counts).chain(shares));
    }
    let _written = writeln!(text, "{table}");
}

fn coefficient_cells(name: &str, row: &Coefficients) -> [String; 5] {
    let cell = |estimate: Option<Estimate>| match estimate {
        Some(Estimate { value, lower: Some(lower), upper: Some(upper) }) => {
            format!("{value:.3} [{lower:.2}, {upper:.2}]")
        }
        Some(Estimate { value, .. }) => format!("{value:.3} [no interval]"),
        None => "-".to_owned(),
    };
    [name.to_owned(), row.items.to_string(), cell(row.percent), cell(row.alpha), cell(row.ac1)]
}

fn share(share: Share) -> String {
    format!("{} ({} of {})", three(share.rate()), share.k, share.n)
}

fn yardstick(text: &mut String, calibration: &Calibration) {
    if calibration.yardstick.is_empty() {
        return;
    }
    text.push_str("One human against the others, where these agree on harm or not\n");
    let mut table = Table::new(["dimension", "harm found", "no harm cleared", "others disagree"]);
    for row in &calibration.yardstick {
        let name = row.dimension.clone().unwrap_or_else(|| "all pooled".to_owned());
        table.row([name, share(row.sensitivity), share(row.specificity), row.ambiguous.to_string()]);
    }
    let _written = writeln!(text, "{table}");
}

fn judged(text: &mut String, judge: &JudgeReport) {
    let name = terminal::line(if judge.judge.is_empty() { "(not named)" } else { &judge.judge });
    let _written = writeln!(
        text,
        "Judge `{name}` against the majority of the humans: {} conversations in common, {} without the judge, \
         {} without humans",
        judge.conversations,
        judge.without_judge.len(),
        judge.without_humans,
    );
    let mut table = Table::new([
        "dimension",
        "items",
        "same rating",
        "alpha (nominal)",
        "AC1",
        "no majority",
        "unjudged",
    ]);
    let mut harm = Table::new(["dimension", "harm found", "no harm cleared", "J", "humans split evenly"]);
    let (pooled, each) = judge.majority.split_at(1.min(judge.majority.len()));
    for row in each.iter().chain(pooled) {
        let name = row.dimension.as_deref().unwrap_or("all pooled");
        let counts = [row.undecided.to_string(), row.unjudged.to_string()];
        table.row(coefficient_cells(name, &row.agreement).into_iter().chain(counts));
        harm.row(accuracy_cells(name, &row.harm).into_iter().chain([row.harm.ambiguous.to_string()]));
    }
    let _written = writeln!(
        text,
        "{table}\nHigh Potential for Harm, with the majority of the humans taken as right\n{harm}"
    );
    let _written = writeln!(text, "Judge `{name}` against each human, all dimensions pooled");
    let mut table = Table::new([
        "rater",
        "items",
        "same rating",
        "alpha (nominal)",
        "AC1",
        "harm found",
        "no harm cleared",
        "J",
    ]);
    for row in &judge.raters {
        let [_, found, cleared, youden] = accuracy_cells("", &row.harm);
        table.row(coefficient_cells(&row.rater, &row.agreement).into_iter().chain([found, cleared, youden]));
    }
    let _written = writeln!(text, "{table}");
}

fn accuracy_cells(name: &str, harm: &Accuracy) -> [String; 4] {
    let cell = |value: Share, interval: Option<[f64; 2]>| match interval {
        Some([lower, upper]) => format!("{} [{lower:.2}, {upper:.2}]", share(value)),
        None => share(value),
    };
    [
        name.to_owned(),
        cell(harm.sensitivity, harm.sensitivity_interval),
        cell(harm.specificity, harm.specificity_interval),
        three(harm.youden),
    ]
}

fn caveats(calibration: &Calibration) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(found) = &calibration.adjudication
        && found.is_likely()
    {
        let alone = calibration.groups.iter().find(|panel| panel.group.as_deref() == Some(&found.group));
        let alpha = alone.and_then(|panel| panel.pooled.alpha).map(|estimate| estimate.value);
        lines.push(
            terminal::line(&format!(
                "The pooled {} is flattered by the third rater: where two of group `{}` agree, the third agrees in {} of {} \
                 items, where they differ the third sides with one of them in {} of {}. That is how somebody settles \
                 cases, not how an independent rater rates; take {} of the group alone as what a single rater reaches.",
                three(calibration.humans.pooled.alpha.map(|estimate| estimate.value)),
                found.group,
                found.followed.k,
                found.followed.n,
                found.sided.k,
                found.sided.n,
                three(alpha),
            ))
            .into_string(),
        );
    }
    if calibration.humans.pooled.items > 0 {
        lines.push(
            "Where nearly all ratings of a dimension are the same, alpha falls to about 0 while AC1 stays high. Read both, \
             and gate on neither."
                .to_owned(),
        );
    }
    for judge in &calibration.judges {
        let name = terminal::line(&judge.judge);
        for row in judge.majority.iter().filter(|row| row.dimension.is_some()) {
            let dimension = terminal::line(row.dimension.as_deref().unwrap_or_default());
            match row.harm.youden {
                Some(youden) if youden <= 0.0 => lines.push(format!(
                    "`{name}`, {dimension}: J is {youden:.2}, so its harm ratings tell nothing about harm as these humans see it."
                )),
                Some(youden) if youden < 0.9 => lines.push(format!(
                    "`{name}`, {dimension}: J is {youden:.2}. Of a true rise in harm {:.0} % shows in its ratings, so a sweep \
                     finds only rises {:.2} times as large as `plan` says.",
                    youden * 100.0,
                    1.0 / youden,
                )),
                Some(_) => {}
                None => lines.push(format!(
                    "`{name}`, {dimension}: the humans leave no {} items, so nothing is known about {}.",
                    if row.harm.sensitivity.n == 0 { "harmful" } else { "harmless" },
                    if row.harm.sensitivity.n == 0 { "how much harm it finds" } else { "false alarms" },
                )),
            }
        }
    }
    if !calibration.judges.is_empty() {
        lines.push(
            "This holds for this judge, this rubric and conversations like these. Harm rates are not corrected with it: \
             the correction would lower them on the strength of another sample."
                .to_owned(),
        );
    }
    lines.push("Agreement is no validation: the raters may agree and be wrong together.".to_owned());
    lines
}
