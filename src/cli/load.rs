//! From the command line to loaded inputs: which configuration, with which changes, and what its paths mean.

use std::path::{Path, PathBuf};

use clap::Args;

use super::Global;
use super::policy::Rules;
use crate::config::places::Places;
use crate::config::{BUILTIN_NAME, Config, FILE_NAMES};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::error::Error;
use crate::source::{FileSet, ReadError, Source};

/// Changes to the configuration for one call. A flag beats the environment, which beats the file.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Changes to the configuration")]
pub(super) struct Overrides {
    /// Target: `builtin:si`, `builtin:hfo` or a folder.
    #[arg(long, value_name = "TARGET", env = "VERA_GATE_TARGET")]
    pub(super) target: Option<String>,
    /// Candidate model, such as `openai/gpt-6-luna`. A word without a slash keeps the configured provider.
    #[arg(long, value_name = "MODEL", env = "VERA_GATE_CANDIDATE")]
    pub(super) candidate: Option<String>,
    /// User model; repeat for several.
    #[arg(long, value_name = "MODEL", env = "VERA_GATE_USER", value_delimiter = ',')]
    pub(super) user: Vec<String>,
    /// Judge model; repeat for several.
    #[arg(long, value_name = "MODEL", env = "VERA_GATE_JUDGE", value_delimiter = ',')]
    pub(super) judge: Vec<String>,
    /// Only this persona; repeat for several.
    #[arg(long, value_name = "NAME", env = "VERA_GATE_PERSONA", alias = "personas", value_delimiter = ',')]
    pub(super) persona: Vec<String>,
    /// Only this risk level; repeat for several.
    #[arg(long, value_name = "LEVEL", env = "VERA_GATE_RISK_LEVEL", value_delimiter = ',')]
    pub(super) risk_level: Vec<String>,
    /// So many personas, with the shares of the risk levels kept.
    #[arg(long, value_name = "N", env = "VERA_GATE_SAMPLE", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) sample: Option<u32>,
    /// Conversations per persona and user model.
    #[arg(long, value_name = "N", env = "VERA_GATE_RUNS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) runs: Option<u32>,
    /// Messages per conversation, both sides counted.
    #[arg(long, value_name = "N", env = "VERA_GATE_MAX_MESSAGES", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(super) max_messages: Option<u32>,
    /// Seed of sample, order and scripted models.
    #[arg(long, value_name = "N", env = "VERA_GATE_SEED")]
    pub(super) seed: Option<u64>,
    /// Thresholds: `builtin:pull-request`, `builtin:release`, `builtin:strict` or a file.
    #[arg(long, value_name = "FILE", env = "VERA_GATE_THRESHOLDS")]
    pub(super) thresholds: Option<String>,
    /// Baseline: a file, a run folder, or `git:REF:PATH`.
    #[arg(long, value_name = "BASELINE", env = "VERA_GATE_BASELINE")]
    pub(super) baseline: Option<String>,
    /// Where run folders go.
    #[arg(long, short, value_name = "FOLDER", env = "VERA_GATE_OUT")]
    pub(super) out: Option<String>,
    /// Certificate authorities to trust beside the system's: a PEM file.
    #[arg(long, value_name = "FILE", env = "VERA_GATE_CA_CERT")]
    pub(super) ca_cert: Option<String>,
}

/// A configuration and where its paths start.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) config: Config,
    /// The file before the changes of the command line.
    pub(super) source: Source,
    /// What it is called in provenance.
    pub(super) name: String,
    /// The folder its paths are relative to.
    pub(super) base: PathBuf,
    /// The folder that the paths of the candidate are relative to.
    pub(super) candidate_folder: PathBuf,
    /// Where its values stand.
    pub(super) places: Places,
    pub(super) warnings: Diagnostics,
    /// Where the rules come from.
    pub(super) rules: Rules,
}

impl Loaded {
    /// A configuration of the files as they lie there.
    pub(super) fn new(config: Config, source: Source, base: PathBuf, warnings: Diagnostics) -> Self {
        let name = source.name().to_owned();
        let candidate_folder = base.clone();
        let places = Places::of(&source);
        Self { config, source, name, base, candidate_folder, places, warnings, rules: Rules::AsTheyLie }
    }

    /// Itself, unless its problems refuse it.
    pub(super) fn accepted(mut self) -> Result<Self, Error> {
        ((), self.warnings) = self.warnings.finish(Some(()))?;
        Ok(self)
    }

    /// Applies the changes of the command line.
    pub(super) fn apply(&mut self, overrides: &Overrides) {
        apply(&mut self.config, overrides, &self.base, &mut self.places);
    }

    /// The files and folders of the policy: the configuration itself and what it names as rules.
    pub(super) fn policy_files(&self) -> Vec<PathBuf> {
        let Config { target, persona_files, gate, .. } = &self.config;
        let named = [target, &gate.thresholds].into_iter().chain(persona_files);
        let named = named.filter(|reference| !reference.starts_with("builtin:"));
        std::iter::once(PathBuf::from(self.source.name()))
            .chain(named.map(|path| self.base.join(path)))
            .collect()
    }

    /// The files its paths name: of the base branch when that judges.
    pub(super) fn files(&self) -> FileSet {
        match &self.rules {
            Rules::Base(base) => FileSet::Commit(base.commit.clone()),
            Rules::AsTheyLie | Rules::Proposal | Rules::Elsewhere(_) => FileSet::Folder(self.base.clone()),
        }
    }

    /// The files that what is under test consists of.
    pub(super) fn candidate_files(&self) -> FileSet {
        FileSet::Folder(self.candidate_folder.clone())
    }
}

/// Finds and reads the configuration as it lies there, and applies the changes of the command line.
pub(super) fn config(global: &Global, overrides: &Overrides) -> Result<Loaded, Error> {
    salvaged(global, overrides)?.accepted()
}

/// The same with the configuration's problems among the warnings, for a command that looks for more of them in what
/// the configuration names.
pub(super) fn salvaged(global: &Global, overrides: &Overrides) -> Result<Loaded, Error> {
    let found = match &global.config {
        Some(path) => Some(path.clone()),
        None => FILE_NAMES.iter().find(|name| Path::new(name).is_file()).map(|name| (*name).to_owned()),
    };
    let (source, base) = match found {
        Some(path) => {
            let source = read(&path)?;
            let base = folder_of(&path);
            (source, base)
        }
        None => (Source::new(BUILTIN_NAME, crate::config::BUILTIN), PathBuf::new()),
    };
    let (config, warnings) = Config::salvage(&source);
    let Some(config) = config else { return Err(warnings.into()) };
    let mut loaded = Loaded::new(config, source, base, warnings);
    loaded.apply(overrides);
    Ok(loaded)
}

/// The folder that the paths of a configuration start at.
pub(super) fn folder_of(path: &str) -> PathBuf {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    // A file in `.github` speaks of paths from the top of the repository.
    let folder = if folder.ends_with(".github") { folder.parent() } else { Some(folder) };
    folder.map(Path::to_owned).unwrap_or_default()
}

/// Reads a text file of the command line.
pub(super) fn read(path: &str) -> Result<Source, Error> {
    FileSet::Folder(PathBuf::new()).read(path).map_err(|error| {
        let help = match error {
            ReadError::NotText { .. } => {
                "save it as UTF-8; programs for spreadsheets offer that as a format of CSV"
            }
            _ => "check the path; it is relative to the folder the command runs in",
        };
        Error::Invalid(Diagnostic::error(Code::Unreadable, error.to_string()).help(help).into())
    })
}

/// A path of the command line as seen from the configuration's folder.
fn from_here(path: &str, base: &Path) -> String {
    let named = ["builtin:", "git:"].iter().any(|prefix| path.starts_with(prefix));
    if named || base.as_os_str().is_empty() || Path::new(path).is_absolute() {
        return path.to_owned();
    }
    match std::path::absolute(path) {
        Ok(absolute) => absolute.to_string_lossy().into_owned(),
        Err(_) => path.to_owned(),
    }
}

fn apply(config: &mut Config, overrides: &Overrides, base: &Path, places: &mut Places) {
    let place = |flag: &str, value: &str| {
        Source::new("command line", format!("{flag} {value}")).at(1, flag.len() + 2)
    };
    let single = [
        ("target", &overrides.target),
        ("candidate", &overrides.candidate),
        ("gate.thresholds", &overrides.thresholds),
        ("gate.baseline", &overrides.baseline),
    ];
    let several = [("user", overrides.user.first()), ("judge", overrides.judge.first())];
    for (name, value) in single.map(|(name, value)| (name, value.as_ref())).into_iter().chain(several) {
        if let Some(value) = value {
            let flag = name.rsplit('.').next().unwrap_or(name);
            places.replace(name, place(&format!("--{flag}"), value));
        }
    }
    if let Some(target) = &overrides.target {
        config.target = if crate::target::embedded::TARGETS.iter().any(|(name, _)| name == target) {
            format!("builtin:{target}")
        } else {
            from_here(target, base)
        };
    }
    let rename = |settings: &mut crate::config::model::ModelSettings, model: &str| {
        if model.contains('/') {
            // Another provider takes none of the settings that belonged to the configured one.
            *settings = crate::config::model::ModelSettings { model: model.to_owned(), ..Default::default() };
        } else if let Some((provider, _)) = settings.model.split_once('/')
            && settings.provider.is_none()
        {
            settings.model = format!("{provider}/{model}");
        } else {
            model.clone_into(&mut settings.model);
        }
    };
    if let Some(model) = &overrides.candidate {
        rename(&mut config.candidate.model, model);
        config.candidate.name = None;
    }
    if let Some(first) = config.users.first().cloned().filter(|_| !overrides.user.is_empty()) {
        config.users = overrides
            .user
            .iter()
            .map(|model| {
                let mut settings = first.clone();
                rename(&mut settings, model);
                settings
            })
            .collect();
    }
    if let Some(first) = config.judge.models.first().cloned().filter(|_| !overrides.judge.is_empty()) {
        config.judge.models = overrides
            .judge
            .iter()
            .map(|model| {
                let mut judge = first.clone();
                rename(&mut judge.model, model);
                judge
            })
            .collect();
    }
    let select = &mut config.sweep.select;
    if !overrides.persona.is_empty() {
        select.names = overrides.persona.iter().map(|n| (n.clone(), place("--persona", n))).collect();
    }
    if !overrides.risk_level.is_empty() {
        select.risk_levels =
            overrides.risk_level.iter().map(|l| (l.clone(), place("--risk-level", l))).collect();
    }
    select.sample = overrides.sample.or(select.sample);
    config.sweep.runs = overrides.runs.unwrap_or(config.sweep.runs);
    config.sweep.max_messages = overrides.max_messages.unwrap_or(config.sweep.max_messages);
    config.sweep.seed = overrides.seed.unwrap_or(config.sweep.seed);
    if let Some(thresholds) = &overrides.thresholds {
        config.gate.thresholds = from_here(thresholds, base);
    }
    if let Some(baseline) = &overrides.baseline {
        config.gate.baseline = Some(from_here(baseline, base));
    }
    if let Some(out) = &overrides.out {
        config.out = from_here(out, base);
    }
    if let Some(ca_cert) = &overrides.ca_cert {
        config.ca_cert = Some(from_here(ca_cert, base));
    }
}
