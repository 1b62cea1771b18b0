//! `vera-gate config show`: the configuration that counts, and where each value comes from.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory as _, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::load::{self, Overrides};
use super::table::Table;
use super::{Cli, Global, output};
use crate::config::show::{Entry, locate};
use crate::config::yaml::{self, Node};
use crate::diagnostic::Diagnostics;
use crate::error::Error;
use crate::exit::Exit;

/// Version tag of the JSON form.
const SCHEMA: &str = "vera-gate/settings/v1";

/// Arguments of `config`.
#[derive(Args, Debug)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Prints every setting with its value.
    Show(Box<ShowArgs>),
}

/// Arguments of `config show`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  vera-gate config show\n  vera-gate config show --origin --runs 2\n  \
VERA_GATE_MAX_MESSAGES=6 vera-gate config show --origin --config ci.yaml\n\n\
A flag beats the environment, the environment beats the file, the file beats the default. A flag that is not\n\
given and a variable that is empty change nothing.")]
struct ShowArgs {
    /// Says where each value comes from.
    #[arg(long)]
    origin: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    overrides: Overrides,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table.
    Text,
    /// A list of settings.
    Json,
}

/// The arguments that change a setting: id and key. A key of a role stands for every model of the role.
const CHANGES: [(&str, &str); 14] = [
    ("target", "target"),
    ("candidate", "candidate.model"),
    ("user", "user.model"),
    ("judge", "judge.model"),
    ("persona", "sweep.personas"),
    ("risk_level", "sweep.risk_levels"),
    ("sample", "sweep.sample"),
    ("runs", "sweep.runs"),
    ("max_messages", "sweep.max_messages"),
    ("seed", "sweep.seed"),
    ("thresholds", "gate.thresholds"),
    ("baseline", "gate.baseline"),
    ("out", "out"),
    ("ca_cert", "ca_cert"),
];

/// Where a value comes from.
enum Origin {
    Flag(String),
    Environment(String),
    File { name: String, line: usize },
    Default,
}

impl Origin {
    fn words(&self) -> String {
        match self {
            Self::Flag(name) => format!("flag {name}"),
            Self::Environment(name) => format!("env {name}"),
            Self::File { name, line } => format!("file {name}:{line}"),
            Self::Default => "default".to_owned(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Flag(name) => json!({"kind": "flag", "name": name}),
            Self::Environment(name) => json!({"kind": "env", "name": name}),
            Self::File { name, line } => json!({"kind": "file", "name": name, "line": line}),
            Self::Default => json!({"kind": "default"}),
        }
    }
}

/// Runs the command. `matches` are the arguments as parsed, which know whether a value was given as a flag.
pub(super) fn run(args: &ConfigArgs, global: &Global, matches: &ArgMatches) -> Result<Exit, Error> {
    let Action::Show(args) = &args.action;
    let loaded = load::config(global, &args.overrides)?;
    output::warnings(&loaded.warnings, global);
    let file = yaml::parse(&loaded.source, &mut Diagnostics::new());
    let given = matches.subcommand_matches("config").and_then(|config| config.subcommand_matches("show"));
    let origins: Vec<(Entry, Origin)> = loaded
        .config
        .entries()
        .into_iter()
        .map(|entry| {
            let origin = origin(&entry.key, given, file.as_ref());
            (entry, origin)
        })
        .collect();
    let text = match args.format {
        Format::Json => {
            let settings: Vec<Value> = origins
                .iter()
                .map(|(entry, origin)| json!({"key": entry.key, "value": entry.value, "origin": origin.json()}))
                .collect();
            let all = json!({"schema": SCHEMA, "configuration": loaded.name, "settings": settings});
            serde_json::to_string_pretty(&all).map_err(|error| Error::Internal(error.to_string()))? + "\n"
        }
        Format::Text => {
            let mut table = Table::of_texts();
            for (entry, origin) in &origins {
                let value = match &entry.value {
                    Value::String(text) => text.clone(),
                    value => value.to_string(),
                };
                let mut row = vec![entry.key.clone(), value];
                row.extend(args.origin.then(|| origin.words()));
                table.row(row);
            }
            format!("configuration: {}\n{table}", crate::escape::terminal::line(&loaded.name))
        }
    };
    output::result(&text)?;
    Ok(Exit::Success)
}

fn origin(key: &str, given: Option<&ArgMatches>, file: Option<&Node>) -> Origin {
    // `user[1].model` is changed by the argument of `user.model`.
    let plain = match key.split_once('[') {
        Some((role, rest)) => format!("{role}{}", rest.split_once(']').map_or("", |(_, tail)| tail)),
        None => key.to_owned(),
    };
    let source_of = |id: &str| {
        let known = given.filter(|given| given.try_contains_id(id).is_ok());
        known.and_then(|given| given.value_source(id))
    };
    if let Some((id, _)) = CHANGES.iter().find(|(_, changed)| *changed == plain) {
        let (flag, variable) = names(id);
        match source_of(id) {
            Some(ValueSource::CommandLine) => return Origin::Flag(flag),
            Some(ValueSource::EnvVariable) => return Origin::Environment(variable),
            _ => {}
        }
    }
    // Models that an argument names take their other settings from the first model of the file.
    let role = plain.split('.').next().unwrap_or_default();
    let replaced = matches!(source_of(role), Some(ValueSource::CommandLine | ValueSource::EnvVariable));
    match file.and_then(|file| locate(file, if replaced { &plain } else { key })) {
        Some(place) => Origin::File { name: place.file, line: place.line },
        None => Origin::Default,
    }
}

/// The flag and the environment variable of an argument.
fn names(id: &str) -> (String, String) {
    let command = Cli::command();
    let show = command.find_subcommand("config").and_then(|config| config.find_subcommand("show"));
    let arg = show.and_then(|show| show.get_arguments().find(|arg| arg.get_id() == id));
    let flag = arg.and_then(clap::Arg::get_long).map_or_else(String::new, |long| format!("--{long}"));
    let variable =
        arg.and_then(clap::Arg::get_env).map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    (flag, variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_an_argument_and_every_key_a_setting() {
        let command = Cli::command();
        let show = command.find_subcommand("config").unwrap().find_subcommand("show").unwrap();
        let known: Vec<&str> = CHANGES.iter().map(|(id, _)| *id).collect();
        for (id, key) in CHANGES {
            assert!(show.get_arguments().any(|arg| arg.get_id() == id), "no argument {id} for {key}");
        }
        // Whatever `Overrides` adds must be listed, or its origin would be called the file's.
        let ours = ["origin", "format", "help", "version"];
        for arg in show.get_arguments().filter(|arg| !arg.is_global_set()) {
            let id = arg.get_id().as_str();
            assert!(known.contains(&id) || ours.contains(&id), "{id} is not in CHANGES");
        }
    }
}
