//! The command line: arguments, one file per command, and the edge to the machine.

mod baseline;
mod calibrate;
mod changes;
mod check;
mod conclude;
mod config;
mod crew;
mod evidence;
mod execute;
mod folder;
mod gate;
mod held;
mod history;
mod init;
mod integrity;
mod judge;
mod load;
mod merge;
mod names;
mod output;
mod plan;
mod policy;
mod prepare;
mod program;
mod progress;
mod publish;
mod report;
mod run;
mod score;
mod simulate;
mod table;
mod trust;
mod variables;

use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::error::Error;
use crate::exit::Exit;

/// Runs a VERA-MH sweep against a chatbot and fails the build when it became likely harmful.
#[derive(Debug, Parser)]
#[command(name = "vera-gate", version, propagate_version = true, max_term_width = 110)]
#[command(
    after_help = "Exit codes: 0 pass or warn, 1 gate failed, 2 usage or invalid input, 3 inconclusive or \
incomplete, 4 provider or machine gave up, 5 only publishing failed, 70 internal fault.\n\n\
With no configuration file, scripted models play all roles offline: a demonstration that measures nothing."
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(Args, Clone, Debug)]
struct Global {
    /// Configuration file; without it `vera-gate.yaml` is looked for here and in `.github`.
    #[arg(long, global = true, value_name = "FILE", env = "VERA_GATE_CONFIG")]
    config: Option<String>,
    /// Says less: only results and errors.
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Says more; twice for everything.
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Whose rules judge a pull request: configuration, thresholds, target, personas, baseline, templates.
    #[arg(long, global = true, value_enum, env = "VERA_GATE_POLICY", default_value_t)]
    policy: policy::Policy,
    /// Colours on a terminal.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    color: Color,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The whole gate: sweep, judging, verdict, report.
    Run(Box<run::RunCommand>),
    /// Checks configuration, target, thresholds and baseline; reports every problem at once.
    Check(Box<check::CheckArgs>),
    /// Holds the conversations and writes the transcripts; nothing is judged.
    Simulate(Box<simulate::SimulateArgs>),
    /// Has transcripts judged that are there already, our own or VERA-MH's.
    Judge(Box<judge::JudgeArgs>),
    /// Makes one run of the shards of a sweep, and gives its verdict.
    Merge(Box<merge::MergeArgs>),
    /// Applies thresholds and baseline to a result that is there.
    Gate(Box<gate::GateArgs>),
    /// Renders the report of a run folder again.
    Report(report::ReportArgs),
    /// Forecasts calls, tokens, money and time, and what the sweep could detect; nothing is called.
    Plan(Box<plan::PlanArgs>),
    /// Writes a starter configuration, thresholds and workflow.
    Init(init::InitArgs),
    /// Makes a baseline of a run, or shows one.
    Baseline(baseline::BaselineArgs),
    /// Shows the configuration that counts.
    Config(config::ConfigArgs),
    /// Shows a result on the pull request, in a check and in the job.
    Publish(publish::PublishArgs),
    /// Computes VERA-MH's scores from results.csv files.
    Score(score::ScoreArgs),
    /// Compares human ratings with each other, and a judge with them.
    Calibrate(calibrate::CalibrateArgs),
    /// Shows many results in a row and the trend of harm.
    History(history::HistoryArgs),
}

/// Parses the arguments, runs the command and says how it ended.
pub fn main() -> Exit {
    let parsed = variables::without_empty(Cli::command())
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches).map(|cli| (cli, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // clap prints help and version to standard output, everything else to standard error.
            if error.use_stderr() {
                // In a workflow's log, an argument made of somebody's text could command the runner.
                if output::is_obeyed() {
                    output::note(error.to_string().trim_end());
                } else if error.print().is_err() {
                    return Exit::Provider;
                }
                return Exit::Usage;
            }
            return if error.print().is_ok() { Exit::Success } else { Exit::Provider };
        }
    };
    output::tell_panics();
    output::start_tracing(&cli.global);
    let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for warning in variables::unknown(&Cli::command(), set) {
        output::note(&warning);
    }
    // A panic is a fault of this program: it has been printed, and must not look like a verdict.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&cli, &matches))) {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => {
            output::error(&error);
            error.exit()
        }
        Err(_panic) => Exit::Internal,
    }
}

fn run(cli: &Cli, matches: &ArgMatches) -> Result<Exit, Error> {
    match &cli.command {
        Command::Check(args) => check::run(args, &cli.global),
        Command::Init(args) => init::run(args),
        Command::Run(args) => run::run(args, &cli.global),
        Command::Judge(args) => judge::run(args, &cli.global),
        Command::Merge(args) => merge::run(args, &cli.global),
        Command::Gate(args) => gate::run(args, &cli.global),
        Command::Report(args) => report::run(args, &cli.global),
        Command::Plan(args) => plan::run(args, &cli.global),
        Command::Baseline(args) => baseline::run(args, &cli.global),
        Command::Simulate(args) => simulate::run(args, &cli.global),
        Command::Config(args) => config::run(args, &cli.global, matches),
        Command::Publish(args) => publish::run(args, &cli.global),
        Command::Score(args) => score::run(args),
        Command::Calibrate(args) => calibrate::run(args, &cli.global),
        Command::History(args) => history::run(args, &cli.global),
    }
}
