//! Refuses calls with secrets on files that a stranger wrote; for every command that makes calls.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Global;
use super::load::{Loaded, Overrides};
use super::publish::environment;
use crate::error::Error;
use crate::publish::ActionsContext;
use crate::publish::policy::git::is_tracked;
use crate::publish::trust::{PwnRisk, check, checkout_of};

/// What the person who wrote the workflow accepts.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Run")]
pub(super) struct Trust {
    /// Runs with secrets on files of a fork's pull request. Strangers can then read the secrets.
    #[arg(long)]
    i_accept_pwn_risk: bool,
}

impl Trust {
    /// Looks at where the files lie that the command line names, before the first of them is read.
    pub(super) fn named(&self, global: &Global, overrides: &Overrides) -> Result<(), Error> {
        let paths = [&global.config, &overrides.target, &overrides.thresholds];
        self.refuse(paths.into_iter().flatten().map(PathBuf::from))
    }

    /// Looks at where the files lie that the configuration names, before a secret is read.
    pub(super) fn configured(&self, loaded: &Loaded) -> Result<(), Error> {
        let config = &loaded.config;
        let rules = [&config.target, &config.gate.thresholds].into_iter();
        let rules = rules.chain(&config.persona_files).chain(&config.prices).chain(&config.report.templates);
        let rules = rules.map(|name| loaded.base.join(name));
        let candidate =
            config.candidate.system_prompt_file.iter().map(|name| loaded.candidate_folder.join(name));
        let models = config.users.iter().chain([&config.candidate.model]);
        let programs = models.chain(config.judge.models.iter().map(|judge| &judge.model)).flat_map(|model| {
            model.command.iter().flat_map(|command| {
                let folder = command.directory.clone().unwrap_or_default();
                let words = command.argv.iter().map(|word| folder.join(word));
                words.chain(command.directory.clone()).collect::<Vec<_>>()
            })
        });
        self.refuse(rules.chain(candidate).chain(programs))
    }

    fn refuse(&self, paths: impl Iterator<Item = PathBuf>) -> Result<(), Error> {
        let env = environment();
        if !ActionsContext::is_present(&env) {
            return Ok(());
        }
        let context = ActionsContext::load(&env).map_err(|error| Error::Usage(error.to_string()))?;
        let risk = if self.i_accept_pwn_risk { PwnRisk::Accepted } else { PwnRisk::Refused };
        // A file may stand in a second checkout beside the first.
        let existing = paths.filter(|path| path.exists());
        let folders: BTreeSet<PathBuf> =
            existing.map(|path| folder_of(&path)).chain([PathBuf::from(".")]).collect();
        for folder in folders {
            check(&context, &checkout_of(&folder), risk).map_err(|error| Error::Usage(error.to_string()))?;
        }
        Ok(())
    }
}

/// Refuses to go on, in a workflow, with a run that came with the sources: a change could bring answers that no model gave.
pub(super) fn not_of_the_repository(folder: &Path) -> Result<(), Error> {
    let env = environment();
    if !ActionsContext::is_present(&env) {
        return Ok(());
    }
    let workspace = env.get("GITHUB_WORKSPACE").and_then(|path| Path::new(path).canonicalize().ok());
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    // In a checkout without git nobody can tell what came with it.
    let unknown = || workspace.is_some_and(|workspace| real.starts_with(workspace));
    if is_tracked(folder, ".").unwrap_or_else(unknown) {
        return Err(Error::Usage(format!(
            "`{}` holds a run that came with the sources, and its answers would be taken for a model's\n  help: give another \
             folder with --run, and keep run folders out of the repository",
            folder.display()
        )));
    }
    Ok(())
}

fn folder_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_owned();
    }
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}
