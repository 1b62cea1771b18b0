//! Whose rules judge: in a pull request those of the base branch, else those that lie there.
//!
//! A change must not loosen the gate it has to pass. So configuration, thresholds, target, personas, baseline, prices and
//! templates are read at the base commit; only what is under test, the `candidate` of the configuration and the files it
//! names, is that of the change. What the base branch has nothing of is the change's own, and the report says so; but a
//! baseline never is, because a change could bring one that is as harmful as itself.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;

use super::load::{self, Loaded, Overrides};
use super::publish::{connect, environment};
use super::{Global, output};
use crate::config::{Config, FILE_NAMES};
use crate::error::Error;
use crate::publish::context::{ActionsContext, Env};
use crate::publish::policy::forge::ForgeCommit;
use crate::publish::policy::git::{self, GitCommit};
use crate::source::commit::Place;
use crate::source::{Commit, CommitReader, FileSet};

/// Between two attempts to reach the forge.
const PAUSE: Duration = Duration::from_secs(1);

/// Whose rules judge a pull request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Policy {
    /// Those of the base branch.
    #[default]
    Base,
    /// Those of the pull request itself; the report says so.
    Head,
}

/// Where the rules of a result come from.
#[derive(Debug)]
pub(super) enum Rules {
    /// From the files as they lie there: nothing is proposed.
    AsTheyLie,
    /// From the proposal itself, as somebody asked for.
    Proposal,
    /// From a place that is no checkout of the repository the change is proposed to; what it is instead.
    Elsewhere(String),
    /// From the base branch.
    Base(Box<Base>),
}

/// The base branch's rules.
#[derive(Debug)]
pub(super) struct Base {
    /// Its commit.
    pub(super) revision: String,
    /// Its files, named from the configuration's folder.
    pub(super) commit: Commit,
    /// The commits that are proposed.
    head: Vec<String>,
    /// The proposal read as if it were to judge; nothing when it has no configuration.
    pub(super) proposal: Option<Loaded>,
    /// Files that the base branch does not have, by the name the configuration gives them.
    pub(super) new: Vec<String>,
    /// Files that are no part of the repository's commits, and which are used: whoever wrote the workflow put them there.
    pub(super) beside: Vec<String>,
    /// Baselines that only the proposal has, and which are not used.
    pub(super) new_baselines: Vec<String>,
}

impl Base {
    /// A few characters of the commit's id.
    pub(super) fn short(&self) -> &str {
        self.revision.get(..7).unwrap_or(&self.revision)
    }

    /// What is said where other rules than those of the base branch judge; empty when none do.
    pub(super) fn others(&self) -> String {
        let list =
            |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let mut parts = Vec::new();
        if !self.new.is_empty() {
            parts.push(format!("{} of the pull request itself", list(&self.new)));
        }
        if !self.beside.is_empty() {
            parts.push(format!("{} from outside of the repository's commits", list(&self.beside)));
        }
        parts.join(", and ")
    }
}

/// Loads what judges: configuration and changes of the command line, with the rules of the base branch where a change
/// is proposed.
pub(super) fn judging(global: &Global, overrides: &Overrides) -> Result<Loaded, Error> {
    salvaged(global, overrides)?.accepted()
}

/// The same with the configuration's problems among the warnings, for a command that looks for more of them in what
/// the configuration names.
pub(super) fn salvaged(global: &Global, overrides: &Overrides) -> Result<Loaded, Error> {
    let env = environment();
    if !ActionsContext::is_present(&env) {
        return load::salvaged(global, overrides);
    }
    let context = ActionsContext::load(&env).map_err(|error| Error::Usage(error.to_string()))?;
    let Some(base) = context.base_sha() else {
        if context.event.pull_request().is_some() && global.policy == Policy::Base {
            return Err(unreadable("its commit", "the event payload does not name it"));
        }
        return load::salvaged(global, overrides);
    };
    if global.policy == Policy::Head {
        return Ok(Loaded { rules: Rules::Proposal, ..load::salvaged(global, overrides)? });
    }
    let here = std::env::current_dir().map_err(|error| Error::io(Path::new("."), error))?;
    if let Some(what) = elsewhere(&here, &context, &env) {
        output::note(&format!("rules: as they lie here; this is {what} and not of {}", context.repository));
        return Ok(Loaded { rules: Rules::Elsewhere(what), ..load::salvaged(global, overrides)? });
    }
    let base = open(&here, base, &context, &env)?;
    let loaded = from_base(global, overrides, base)?;
    if !global.quiet
        && let Rules::Base(base) = &loaded.rules
    {
        let others = base.others();
        let but = if others.is_empty() { String::new() } else { format!("; but {others}") };
        output::note(&format!("rules: those of the base branch at {}{but}", base.short()));
    }
    Ok(loaded)
}

/// What a folder is, if it is no part of a checkout of the repository the workflow runs in, or of the one a fork's change
/// comes from.
fn elsewhere(folder: &Path, context: &ActionsContext, env: &Env) -> Option<String> {
    if let Some(found) = git::repository_of(folder) {
        let head = context.event.pull_request().and_then(|pull| pull.head_repository.clone());
        let same = |name: &str| name.eq_ignore_ascii_case(&found);
        let ours = same(&context.repository.to_string()) || head.is_some_and(|head| same(&head));
        return (!ours).then(|| format!("a checkout of {found}"));
    }
    // A checkout without git is still in the workspace.
    let workspace = env.get("GITHUB_WORKSPACE").and_then(|path| Path::new(path).canonicalize().ok());
    let inside = workspace.is_some_and(|workspace| folder.starts_with(workspace));
    (git::top_of(folder).is_none() && !inside).then(|| "a folder outside of every checkout".to_owned())
}

/// Finds somebody who can read the base commit: git, or GitHub.
fn open(here: &Path, base: &str, context: &ActionsContext, env: &Env) -> Result<Base, Error> {
    let root = git::top_of(here).or_else(|| context.workspace.canonicalize().ok());
    let root = root.unwrap_or_else(|| here.to_owned());
    // GitHub's merge commit says which commit of the base branch it was made with; the event can be older than that.
    let parents = git::parents_of(&root, &context.sha);
    let merged = match parents.as_slice() {
        [base, head] if head == context.head_sha() => Some(base.as_str()),
        _ => None,
    };
    let head: Vec<String> = [context.head_sha(), &context.sha].map(str::to_owned).into();
    let opened = |reader: Box<dyn CommitReader>, revision: &str| Base {
        revision: revision.to_owned(),
        commit: Commit::new(reader, root.clone()),
        head: head.clone(),
        proposal: None,
        new: Vec::new(),
        beside: Vec::new(),
        new_baselines: Vec::new(),
    };
    let mut why = Vec::new();
    for revision in merged.into_iter().chain([base]) {
        match GitCommit::open(&root, revision) {
            Ok(commit) => return Ok(opened(Box::new(commit), revision)),
            Err(error) => why.push(error.to_string()),
        }
    }
    let revision = merged.unwrap_or(base);
    match ForgeCommit::open(|| connect(context, env), revision, PAUSE) {
        Ok(commit) => return Ok(opened(Box::new(commit), revision)),
        Err(error) => why.push(error.to_string()),
    }
    why.dedup();
    Err(unreadable(revision, &why.join("; ")))
}

fn unreadable(revision: &str, why: &str) -> Error {
    Error::Usage(format!(
        "the rules of the base branch ({revision}) cannot be read: {why}\n  help: give actions/checkout \
         `fetch-depth: 0`; or give the job `contents: read` and the step GITHUB_TOKEN\n  help: `--policy head` judges a \
         pull request by its own rules, and says so in the report"
    ))
}

/// What stands behind a name that the configuration uses.
enum Standing {
    /// The base commit has it.
    Base,
    /// It is no part of the repository: beside it, in another checkout, or made by an earlier step.
    Outside,
    /// Only the proposal has it.
    New,
    /// Nothing.
    Nowhere,
}

fn standing(commit: &Commit, name: &str) -> Result<Standing, Error> {
    let Place::Commit(path) = commit.place(name) else { return Ok(Standing::Outside) };
    let fault = |why: String| Error::Usage(format!("`{name}` of the base branch cannot be read: {why}"));
    if commit.entry(&path).map_err(fault)?.is_some() {
        return Ok(Standing::Base);
    }
    let written = commit.folder().join(name);
    let Ok(real) = written.canonicalize() else { return Ok(Standing::Nowhere) };
    let real = real.strip_prefix(commit.root()).ok().map(|path| path.to_string_lossy().replace('\\', "/"));
    // Whoever cannot tell what git keeps takes the file for one of the proposal's.
    let kept = |path: &str| git::is_tracked(commit.root(), path).unwrap_or(true);
    let new = kept(&path) || real.is_some_and(|real| real != path && kept(&real));
    Ok(if new { Standing::New } else { Standing::Outside })
}

fn from_base(global: &Global, overrides: &Overrides, mut base: Base) -> Result<Loaded, Error> {
    let here = base.commit.clone();
    let files = FileSet::Commit(here.clone());
    let on_disk = match &global.config {
        Some(path) => Path::new(path).is_file().then(|| path.clone()),
        None => FILE_NAMES.iter().find(|name| Path::new(name).is_file()).map(|name| (*name).to_owned()),
    };
    base.proposal = match &on_disk {
        Some(_) => Some(load::config(global, overrides)?),
        None => None,
    };
    let in_base = match &global.config {
        Some(path) => match standing(&here, path)? {
            Standing::Base => Some(path.clone()),
            Standing::New => {
                base.new.push(path.clone());
                None
            }
            Standing::Outside => {
                base.beside.push(path.clone());
                None
            }
            Standing::Nowhere => None,
        },
        None => {
            let found = FILE_NAMES.iter().find(|name| files.contains(name)).map(|name| (*name).to_owned());
            base.new.extend(on_disk.clone().filter(|_| found.is_none()));
            found
        }
    };
    let mut loaded = match &in_base {
        Some(path) => {
            let source = files.read(path).map_err(|error| {
                Error::Usage(format!("`{path}` of the base branch cannot be read: {error}"))
            })?;
            let folder = load::folder_of(path);
            let (config, warnings) = Config::parse(&source).map_err(|problems| {
                output::note(&format!(
                    "the configuration is that of the base branch at {}; a pull request that repairs it needs `--policy head`",
                    base.short()
                ));
                Error::Invalid(problems)
            })?;
            let mut loaded = Loaded::new(config, source, folder, warnings);
            loaded.apply(overrides);
            if let Some(proposal) = &base.proposal {
                loaded.places.adopt("candidate", &proposal.places);
                loaded.config.candidate = proposal.config.candidate.clone();
                loaded.candidate_folder.clone_from(&proposal.base);
            }
            loaded.name = format!("{path} of the base branch at {}", base.short());
            loaded
        }
        // The proposal's own, or the built-in one, or one that is no part of the repository.
        None => load::config(global, overrides)?,
    };
    base.commit = here.from_folder(&loaded.base);
    resolve(&mut loaded, &mut base)?;
    loaded.rules = Rules::Base(Box::new(base));
    Ok(loaded)
}

/// Decides for each file that the configuration names where it is read from.
fn resolve(loaded: &mut Loaded, base: &mut Base) -> Result<(), Error> {
    for name in named_files(&loaded.config) {
        match standing(&base.commit, &name)? {
            Standing::Base | Standing::Nowhere => continue,
            Standing::Outside => base.beside.push(name.clone()),
            Standing::New => base.new.push(name.clone()),
        }
        if let Place::Commit(path) = base.commit.place(&name) {
            base.commit.read_from_disk(path);
        }
    }
    let root = base.commit.root().to_owned();
    let gate = &mut loaded.config.gate;
    for reference in [&mut gate.baseline, &mut gate.last_accepted].into_iter().flatten() {
        if let Some(rest) = reference.strip_prefix("git:") {
            // The proposed commit itself is no place for a baseline; the base branch is meant.
            if let Some((revision, path)) = rest.split_once(':')
                && git::commit_of(&root, revision).is_some_and(|commit| base.head.contains(&commit))
            {
                *reference = format!("git:{}:{path}", base.revision);
            }
            continue;
        }
        match standing(&base.commit, reference)? {
            Standing::Base | Standing::Nowhere => {}
            Standing::New => base.new_baselines.push(reference.clone()),
            Standing::Outside => {
                if let Place::Commit(path) = base.commit.place(reference) {
                    base.commit.read_from_disk(path);
                }
            }
        }
    }
    Ok(())
}

/// The files and folders of the policy that a configuration names, the baselines left out.
fn named_files(config: &Config) -> Vec<String> {
    let all = [&config.target, &config.gate.thresholds].into_iter().chain(&config.persona_files);
    let all = all.chain(&config.prices).chain(&config.report.templates).chain(&config.ca_cert);
    all.filter(|name| !is_builtin(name)).cloned().collect()
}

fn is_builtin(name: &str) -> bool {
    name.starts_with("builtin:") || crate::target::embedded::TARGETS.iter().any(|(known, _)| *known == name)
}
