//! The environment variables that stand for options.

use std::collections::BTreeSet;

use clap::Command;
use clap::builder::Resettable;

use crate::diagnostic::did_you_mean;

const PREFIX: &str = "VERA_GATE_";

/// Those that stand for no option: of Kubernetes shards, of the report's links, of certificates, and of our own action.
const OTHERS: [&str; 6] = ["SHARDS", "ARTIFACT_URL", "CA_CERT", "BIN", "OUT", "DOWNLOAD_URL"];

/// A workflow sets a variable to nothing when the value it is made of is not given: that changes no setting.
pub(super) fn without_empty(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get_env() {
        Some(name) if std::env::var_os(name).is_some_and(|value| value.is_empty()) => {
            arg.env(Resettable::Reset)
        }
        _ => arg,
    });
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, without_empty))
}

/// What to say about variables that look like ours and are not: with a slip in its name, a variable changes nothing, and
/// another sweep is measured than the one that was meant.
pub(super) fn unknown(command: &Command, set: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut known: BTreeSet<String> = OTHERS.map(str::to_owned).into();
    collect(command, &mut known);
    let ours = set.into_iter().filter_map(|name| name.strip_prefix(PREFIX).map(str::to_owned));
    let unknown: BTreeSet<String> = ours.filter(|name| !known.contains(name)).collect();
    unknown
        .into_iter()
        .map(|name| {
            let help = did_you_mean(&name, known.iter().map(String::as_str));
            let help = help
                .strip_prefix("did you mean `")
                .map_or_else(String::new, |rest| format!("\n  help: did you mean `{PREFIX}{rest}"));
            format!(
                "warning: the environment variable `{PREFIX}{name}` is not known and changes nothing{help}"
            )
        })
        .collect()
}

fn collect(command: &Command, known: &mut BTreeSet<String>) {
    let names = command.get_arguments().filter_map(|arg| arg.get_env()?.to_str());
    known.extend(names.filter_map(|name| name.strip_prefix(PREFIX)).map(str::to_owned));
    command.get_subcommands().for_each(|sub| collect(sub, known));
}
