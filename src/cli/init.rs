//! `vera-gate init`: a starter configuration, thresholds and workflow, from flags alone: it never asks.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{Args, ValueEnum};

use super::output;
use crate::config::{Config, FILE_NAMES};
use crate::error::Error;
use crate::exit::Exit;
use crate::gate::thresholds::builtin;
use crate::model::default_key;
use crate::publish::starter::{Case, workflows};
use crate::run::RunFolder;
use crate::source::Source;

/// Arguments of `init`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vera-gate init --candidate openai/gpt-5.4\n  \
vera-gate init --for nightly\n  vera-gate init --for release --user anthropic/claude-opus-4-7 --candidate openai/gpt-5.4 --judge openai/gpt-5.4")]
pub(super) struct InitArgs {
    /// What the gate is for.
    #[arg(long = "for", value_enum, default_value_t = Use::PullRequest)]
    case: Use,
    /// Model that plays the person.
    #[arg(long, value_name = "MODEL", default_value = "openai/gpt-6-luna")]
    user: String,
    /// The chatbot under test.
    #[arg(long, value_name = "MODEL", default_value = "openai/gpt-6-luna")]
    candidate: String,
    /// Model that judges; another one than the candidate.
    #[arg(long, value_name = "MODEL", default_value = "anthropic/claude-haiku-5-5")]
    judge: String,
    /// What follows the `@` of the action: the commit of the release you use.
    #[arg(long, value_name = "REVISION", default_value = concat!("v", env!("CARGO_PKG_VERSION")))]
    revision: String,
    /// Replaces files that are there.
    #[arg(long)]
    force: bool,
}

/// What the gate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Use {
    /// Every pull request, on a sample.
    PullRequest,
    /// The whole sweep, at night.
    Nightly,
    /// Before a release.
    Release,
    /// Pull requests from forks, in two stages.
    Forks,
}

impl Use {
    fn case(self) -> Case {
        match self {
            Self::PullRequest => Case::PullRequest,
            Self::Nightly => Case::Nightly,
            Self::Release => Case::Release,
            Self::Forks => Case::Forks,
        }
    }

    /// The preset that the thresholds start from, and how much is simulated.
    fn preset(self) -> (&'static str, &'static str) {
        match self {
            // Enough for 30 personas that say something on both sides of a comparison.
            Self::PullRequest | Self::Forks => (
                "builtin:pull-request",
                "sweep: { runs: 2, sample: 50 }      # with a baseline 40 personas or more; see `vera-gate plan --power`",
            ),
            Self::Nightly | Self::Release => ("builtin:release", "sweep: { runs: 2 }"),
        }
    }

    /// Configuration and thresholds. Those of several cases can stand side by side.
    fn files(self) -> (&'static str, &'static str) {
        match self {
            Self::PullRequest | Self::Forks => (FILE_NAMES[0], "vera-gate-thresholds.yaml"),
            Self::Nightly => ("vera-gate.nightly.yaml", "vera-gate-thresholds.nightly.yaml"),
            Self::Release => ("vera-gate.release.yaml", "vera-gate-thresholds.release.yaml"),
        }
    }

    /// The settings of the candidate, and a file that they name.
    fn candidate(self, model: &str) -> (String, Option<(&'static str, &'static str)>) {
        match self {
            // What a fork changes is read as data: its prompt.
            Self::Forks => {
                (format!("\n  model: {model}\n  system_prompt_file: {PROMPT}"), Some((PROMPT, PROMPT_TEXT)))
            }
            Self::PullRequest | Self::Nightly | Self::Release => (format!(" {model}"), None),
        }
    }
}

const PROMPT: &str = "prompts/system.md";
const PROMPT_TEXT: &str = "You are a helpful assistant.\n";

/// Runs the command.
pub(super) fn run(args: &InitArgs) -> Result<Exit, Error> {
    let (preset, sweep) = args.case.preset();
    let (name, thresholds_name) = args.case.files();
    let (candidate, prompt) = args.case.candidate(&args.candidate);
    let config = format!(
        "# Who talks with whom, and what decides. Every key: docs/configuration.md of vera-gate.\n\
         schema: vera-gate/config/v1\n\
         target: builtin:si                  # not clinically validated; see docs/rubric.md for the official target\n\n\
         user: {}\ncandidate:{candidate}\njudge: {}\n\n{sweep}\n\ngate:\n  thresholds: {thresholds_name}\n  \
         # baseline: vera-gate-baseline.json  # made by `vera-gate baseline bless`\n",
        args.user, args.judge
    );
    // What is written must be what the tool reads.
    Config::parse(&Source::new(name, config.as_str()))?;
    let thresholds = builtin(preset).ok_or_else(|| Error::Internal(format!("no {preset}")))?;
    let keys: BTreeSet<String> = [&args.user, &args.candidate, &args.judge]
        .into_iter()
        .filter_map(|model| default_key(model))
        .collect();
    let secrets: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut files =
        vec![(name.to_owned(), config), (thresholds_name.to_owned(), thresholds.text().to_owned())];
    // A prompt that is there is the team's own.
    let prompt = prompt.filter(|(path, _)| !Path::new(path).exists());
    files.extend(prompt.map(|(path, text)| (path.to_owned(), text.to_owned())));
    let starters = workflows(args.case.case(), &secrets, &args.revision);
    let starters = starters.map_err(|error| Error::Usage(error.to_string()))?;
    files.extend(starters.into_iter().map(|file| (file.path.to_owned(), file.text)));
    let there: Vec<&str> =
        files.iter().map(|(path, _)| path.as_str()).filter(|path| Path::new(path).exists()).collect();
    if !args.force && !there.is_empty() {
        return Err(Error::Usage(format!(
            "nothing was written, because these files are there: {}\n  help: move them away, or replace them with --force",
            there.join(", ")
        )));
    }
    let mut written = String::new();
    for (path, text) in &files {
        let folder = Path::new(path).parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
        let name = Path::new(path).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        RunFolder::at(folder).write(&name, text).map_err(|error| Error::Provider(error.to_string()))?;
        written.push_str(path);
        written.push('\n');
    }
    output::result(&written)?;
    let config = if name == FILE_NAMES[0] { String::new() } else { format!(" --config {name}") };
    output::note(&format!(
        "next: set the secrets {}, read the files, and try `vera-gate check{config}` and `vera-gate plan{config} --power`",
        secrets.join(", ")
    ));
    Ok(Exit::Success)
}
