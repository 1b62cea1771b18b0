//! What the gate reads, from a run folder or from a bare results file; and baselines from wherever they are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::load;
use super::prepare::labels_by_question;
use crate::baseline::{Baseline, BaselineConversation, BaselineFault, Origin, Provenance};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::error::Error;
use crate::gate::input::CellStatus as GateStatus;
use crate::gate::{Confirmation, PlannedCell};
use crate::matrix::{Collapsed, collapse, has_standard_dimension, missing_standard_dimensions, read_results};
use crate::model::Role;
use crate::rating::{Assessment, RatingOutcome, Unjudged};
use crate::run::{ModelRecord, PlanFile, RunFolder, RunRecord, Settings};
use crate::source::commit::Place;
use crate::source::{Commit, Entry, FileSet, Source};
use crate::sweep::conversation::NotHeld;
use crate::sweep::scheduler::CellStatus;
use crate::target::{Fingerprints, Target};
use crate::transcript::ConversationId;

/// The evidence of one result, with as much of its origin as is known.
pub(super) struct Evidence {
    pub(super) dimensions: Vec<String>,
    pub(super) labels: BTreeMap<String, String>,
    /// `None` for a bare results file.
    pub(super) plan: Option<Vec<PlannedCell>>,
    pub(super) assessments: Vec<Assessment>,
    pub(super) conversations: Vec<Collapsed>,
    pub(super) provenance: Provenance,
    /// `None` for a bare results file.
    pub(super) record: Option<RunRecord>,
    pub(super) plan_file: Option<PlanFile>,
    /// A results file that nobody said the target of, and none of whose dimensions is known.
    pub(super) unknown_target: bool,
    /// Second looks that the run took.
    pub(super) confirmations: Vec<Confirmation>,
}

impl Evidence {
    /// Of a run that was just carried out or read back.
    pub(super) fn of_run(record: RunRecord, plan: PlanFile, assessments: Vec<Assessment>) -> Self {
        Self {
            dimensions: plan.dimensions.clone(),
            labels: plan.labels.clone(),
            plan: Some(plan.conversations.iter().map(planned).collect()),
            conversations: collapse(&assessments),
            assessments,
            provenance: provenance(&record),
            record: Some(record),
            plan_file: Some(plan),
            unknown_target: false,
            confirmations: Vec::new(),
        }
    }

    /// Of a run that is still going on.
    pub(super) fn of_part(plan: &PlanFile, assessments: Vec<Assessment>, provenance: Provenance) -> Self {
        Self {
            dimensions: plan.dimensions.clone(),
            labels: plan.labels.clone(),
            plan: Some(plan.conversations.iter().map(planned).collect()),
            conversations: collapse(&assessments),
            assessments,
            provenance,
            record: None,
            plan_file: None,
            unknown_target: false,
            confirmations: Vec::new(),
        }
    }

    /// Reads a run folder or a results file.
    pub(super) fn read(path: &str) -> Result<Self, Error> {
        if Path::new(path).is_dir() {
            let folder = RunFolder::at(Path::new(path));
            let unusable = |error: crate::run::FolderError| {
                Error::Usage(format!(
                    "{error}\n  help: give a run folder with run.json, plan.json and ratings.jsonl, or a results.csv"
                ))
            };
            let record = folder.record().map_err(unusable)?;
            let plan = folder.plan().map_err(unusable)?;
            let ratings = folder.ratings().map_err(unusable)?;
            let confirmations = folder.confirmations().map_err(unusable)?;
            super::integrity::check(&record, &plan, &ratings)?;
            return Ok(Self { confirmations, ..Self::of_run(record, plan, ratings) });
        }
        let (results, warnings) = read_results(&load::read(path)?)?;
        if !warnings.is_empty() {
            super::output::note(&warnings.to_string());
        }
        Ok(Self {
            dimensions: results.dimensions,
            labels: BTreeMap::new(),
            plan: None,
            conversations: collapse(&results.rows),
            assessments: results.rows,
            provenance: Provenance::default(),
            record: None,
            plan_file: None,
            unknown_target: false,
            confirmations: Vec::new(),
        })
    }
}

impl Evidence {
    /// The planned conversations that are not there.
    pub(super) fn never_held(&self) -> Vec<BaselineConversation> {
        let held: BTreeSet<&ConversationId> = self.conversations.iter().map(|c| &c.conversation).collect();
        let planned = self.plan_file.iter().flat_map(|plan| &plan.conversations).map(|planned| &planned.cell);
        planned
            .filter(|cell| !held.contains(&cell.id))
            .map(|cell| BaselineConversation {
                id: cell.id.clone(),
                persona: cell.persona.clone(),
                risk_level: cell.risk_level,
                user_model: cell.user_model.clone(),
                run: cell.run,
                outcomes: BTreeMap::new(),
                modes: BTreeMap::new(),
            })
            .collect()
    }

    /// Counts the dimensions of the target that a bare results file does not have as unrated: what nobody measured is no
    /// evidence. Without a target they are those of VERA-MH, if the file has some of these.
    pub(super) fn held_against(&mut self, target: Option<&Target>, reference: &str) -> Result<(), Error> {
        let dimensions = match target {
            Some(target) => target.rubric.dimensions.clone(),
            None => missing_standard_dimensions(&self.dimensions).into_iter().map(str::to_owned).collect(),
        };
        if target.is_some() && !dimensions.iter().any(|name| self.dimensions.contains(name)) {
            let problem = Diagnostic::error(
                Code::UnknownDimension,
                format!("{reference} has none of the dimensions of the target"),
            );
            let (held, wanted) = (self.dimensions.join("`, `"), dimensions.join("`, `"));
            let help = format!(
                "it has `{held}`, the target `{wanted}`; name the target it was rated by with --target"
            );
            return Err(Error::Invalid(problem.help(help).into()));
        }
        if let Some(target) = target {
            self.labels = labels_by_question(target);
        }
        let lacking = dimensions.into_iter().filter(|name| !self.dimensions.contains(name));
        let lacking: Vec<String> = lacking.collect();
        self.unknown_target = target.is_none() && !has_standard_dimension(&self.dimensions);
        let blank = RatingOutcome::Unjudged(Unjudged::Blank);
        for conversation in &mut self.conversations {
            conversation.outcomes.extend(lacking.iter().map(|name| (name.clone(), blank)));
        }
        self.dimensions.extend(lacking);
        Ok(())
    }
}

fn planned(conversation: &crate::run::PlannedConversation) -> PlannedCell {
    let cell = &conversation.cell;
    PlannedCell {
        persona: cell.persona.clone(),
        risk_level: cell.risk_level,
        user_model: cell.user_model.clone(),
        run: cell.run,
        status: match &conversation.status {
            CellStatus::Held { .. } => GateStatus::Finished,
            CellStatus::NotHeld(NotHeld::Invalid { .. }) => GateStatus::Invalid,
            CellStatus::NotHeld(why) => GateStatus::Errored(why.words()),
            CellStatus::NotStarted | CellStatus::OtherShard => GateStatus::Missing,
        },
    }
}

/// What must agree for two runs to be compared.
pub(super) fn provenance(record: &RunRecord) -> Provenance {
    comparable(
        &record.target,
        record.target_version.as_deref(),
        &record.fingerprints,
        &record.models,
        &record.settings,
    )
}

/// What must agree for two runs to be compared, from its parts.
pub(super) fn comparable(
    target: &str,
    version: Option<&str>,
    fingerprints: &Fingerprints,
    models: &[ModelRecord],
    settings: &Settings,
) -> Provenance {
    let names = |role: Role| {
        let models = models.iter().filter(|model| model.role == role);
        models
            .map(|m| {
                // Effort, temperature and the like make another judge of the same model.
                let settings: String = m.settings.chars().take(8).collect();
                let times = if m.instances > 1 { format!(" x{}", m.instances) } else { String::new() };
                format!("{}/{}{times} ({settings})", m.provider, m.requested)
            })
            .collect::<Vec<_>>()
            .join(", ")
    };
    let stated = [
        ("target", target.to_owned()),
        ("target version", version.unwrap_or_default().to_owned()),
        ("user models", names(Role::User)),
        ("judges", names(Role::Judge)),
        ("messages", settings.max_messages.to_string()),
        ("words", settings.max_words.map_or_else(|| "no limit".to_owned(), |words| words.to_string())),
        ("first speaker", settings.first_speaker.clone()),
    ];
    // Named only where it is not ours, so that older baselines stay comparable.
    let other = Some(settings.semantics).filter(|semantics| !semantics.is_native());
    let stated = stated.into_iter().chain(other.map(|semantics| ("rated as", semantics.word().to_owned())));
    Provenance {
        fingerprints: Some(fingerprints.clone()),
        settings: stated.map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}

/// A baseline that was asked for.
pub(super) struct Asked {
    /// What it is called.
    pub(super) source: String,
    /// `None` when nothing stands there.
    pub(super) found: Option<Result<Baseline, BaselineFault>>,
    /// Where it stands on the disk.
    pub(super) path: Option<PathBuf>,
}

impl Asked {
    /// Looks for it. `place` says where, after the name, when nothing is found.
    pub(super) fn of(reference: &str, files: &FileSet, place: &str) -> Self {
        let found = baseline(reference, files);
        let source = if found.is_none() { format!("{reference}{place}") } else { reference.to_owned() };
        let path = match files {
            FileSet::Folder(base) => Some(base.join(reference)),
            FileSet::Commit(_) | FileSet::Memory(_) => None,
        };
        Self { source, found, path }
    }
}

/// What tells a run from every other: its folder may have been given the same name as another's.
pub(super) fn name_of_run(record: &RunRecord) -> String {
    format!("{} of {}", record.run_id, record.started)
}

impl Asked {
    /// Whether it is the result itself: the same run, the same file, one that lies in the other's folder, or a copy.
    pub(super) fn is(&self, result: &str, record: Option<&RunRecord>) -> bool {
        let run = self.found.as_ref().and_then(|found| found.as_ref().ok()).and_then(|b| b.run.as_ref());
        if record.is_some_and(|record| run == Some(&name_of_run(record))) {
            return true;
        }
        let real = |path: &Path| path.canonicalize().ok();
        let (Some(ours), Some(theirs)) = (real(Path::new(result)), self.path.as_deref().and_then(real))
        else {
            return false;
        };
        let within = |file: &Path, folder: &Path| file.parent() == Some(folder);
        let copy = || {
            // Of a run folder it is its results file that may have been copied.
            let file = |path: &Path| if path.is_dir() { path.join("results.csv") } else { path.to_owned() };
            let read = |path: &Path| std::fs::read(file(path)).ok();
            read(&ours).is_some_and(|bytes| read(&theirs) == Some(bytes))
        };
        ours == theirs || within(&ours, &theirs) || within(&theirs, &ours) || copy()
    }
}

/// Reads a baseline: a baseline file, a results file, a run folder, or `git:REF:PATH`. `None` when nothing stands
/// there yet: a first run says so and gates on absolute rules.
pub(super) fn baseline(reference: &str, files: &FileSet) -> Option<Result<Baseline, BaselineFault>> {
    let unreadable = |why: String| BaselineFault::Unreadable(why);
    let (base, place) = match files {
        FileSet::Folder(base) => (base.as_path(), Place::Disk(base.join(reference))),
        FileSet::Commit(commit) => (commit.root(), commit.place(reference)),
        FileSet::Memory(_) => return None,
    };
    if let Some(rest) = reference.strip_prefix("git:") {
        return match from_git(rest, base) {
            Ok(Some(text)) => Some(parse(&Source::new(reference, text))),
            Ok(None) => None,
            Err(why) => Some(Err(unreadable(why))),
        };
    }
    let taken = match (place, files) {
        (Place::Disk(path), _) => Taken { path, _folder: None },
        (Place::Commit(path), FileSet::Commit(commit)) => match take_out(commit, &path) {
            Ok(Some(taken)) => taken,
            Ok(None) => return None,
            Err(why) => return Some(Err(unreadable(why))),
        },
        (Place::Commit(_), _) => return None,
    };
    let path = &taken.path;
    if path.is_dir() {
        if let Some(shard) = RunFolder::at(path).record().ok().and_then(|record| record.shard) {
            return Some(Err(unreadable(format!("it is shard {shard} of a run; merge the shards first"))));
        }
        // The verdict takes one line of it; the help behind it speaks to whoever gave the result.
        let first_line = |error: Error| error.to_string().lines().next().unwrap_or_default().to_owned();
        let folder = path.to_string_lossy();
        let read = Evidence::read(&folder).and_then(|evidence| as_baseline(&evidence, &folder));
        return Some(read.map_err(|error| unreadable(first_line(error))));
    }
    if !path.exists() {
        return None;
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Some(parse(&Source::new(reference, text))),
        Err(error) => Some(Err(unreadable(error.to_string()))),
    }
}

/// Something on the disk, for as long as this lives.
struct Taken {
    path: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

/// Writes a file or a folder of a commit into a place of its own.
fn take_out(commit: &Commit, path: &str) -> Result<Option<Taken>, String> {
    fn write(commit: &Commit, path: &str, entry: &Entry, to: &Path) -> Result<(), String> {
        let fault = |error: std::io::Error| format!("{}: {error}", to.display());
        match entry {
            Entry::File(bytes) => std::fs::write(to, bytes).map_err(fault),
            Entry::Folder(names) => {
                std::fs::create_dir_all(to).map_err(fault)?;
                for name in names.iter().map(|name| name.trim_end_matches('/')) {
                    let inner = format!("{path}/{name}");
                    let Some(entry) = commit.entry(&inner)? else { continue };
                    write(commit, &inner, &entry, &to.join(name))?;
                }
                Ok(())
            }
        }
    }
    let Some(entry) = commit.entry(path)? else { return Ok(None) };
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let to = folder.path().join(path.rsplit('/').next().unwrap_or("baseline"));
    write(commit, path, &entry, &to)?;
    Ok(Some(Taken { path: to, _folder: Some(folder) }))
}

fn parse(source: &Source) -> Result<Baseline, BaselineFault> {
    if source.text().trim_start().starts_with('{') {
        return Baseline::from_json(source.text()).map_err(|e| BaselineFault::Unreadable(e.to_string()));
    }
    // The verdict takes one line of it.
    let first = |problems: Diagnostics| problems.to_string().lines().next().unwrap_or_default().to_owned();
    let (results, _) = read_results(source).map_err(|p| BaselineFault::Unreadable(first(p)))?;
    Ok(Baseline::from_conversations(
        "",
        None,
        Provenance::default(),
        &results.dimensions,
        &collapse(&results.rows),
        &BTreeMap::new(),
    ))
}

/// A run as a baseline, with what would speak against blessing it.
fn as_baseline(evidence: &Evidence, folder: &str) -> Result<Baseline, Error> {
    let record = evidence.record.as_ref();
    let against = super::baseline::refusals_of(evidence, folder)?;
    let baseline = Baseline::from_conversations(
        &record.map_or_else(String::new, |record| record.candidate.clone()),
        record.and_then(|record| record.finished.get(..10)?.parse().ok()),
        evidence.provenance.clone(),
        &evidence.dimensions,
        &evidence.conversations,
        &evidence.labels,
    );
    let missing = evidence.never_held();
    let run = record.map(name_of_run);
    let baseline = Baseline { origin: Origin::Run, run, forced: against, ..baseline };
    Ok(baseline.with_missing(&missing))
}

/// Reads `REF:PATH` from the repository around a folder; `None` when the commit does not have the file.
fn from_git(reference: &str, base: &Path) -> Result<Option<String>, String> {
    let Some((revision, path)) = reference.split_once(':') else {
        return Err(format!("`git:{reference}` names no file; write git:REF:PATH"));
    };
    // A revision that looks like an option must not become one.
    if revision.starts_with('-') || revision.is_empty() || path.is_empty() {
        return Err(format!("`git:{reference}` is not git:REF:PATH"));
    }
    let folder = if base.as_os_str().is_empty() { Path::new(".") } else { base };
    let git = |arguments: &[&str]| {
        Command::new("git").current_dir(folder).args(arguments).output().map_err(|e| format!("git: {e}"))
    };
    let commit =
        git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision}^{{commit}}")])?;
    if !commit.status.success() {
        return Err(format!(
            "git knows no `{revision}` here; fetch it first (in a workflow: actions/checkout with fetch-depth: 0)"
        ));
    }
    let listed = git(&["ls-tree", "--full-tree", "--name-only", "-z", revision, "--", path])?;
    if listed.stdout.is_empty() {
        return Ok(None);
    }
    let kind = git(&["cat-file", "-t", "--end-of-options", &format!("{revision}:{path}")])?;
    if kind.stdout.starts_with(b"tree") {
        return Err(format!("`git:{reference}` is a folder; name a baseline file or a results.csv"));
    }
    let shown = git(&["show", "--end-of-options", &format!("{revision}:{path}")])?;
    if !shown.status.success() {
        return Err(String::from_utf8_lossy(&shown.stderr).trim().to_owned());
    }
    String::from_utf8(shown.stdout).map(Some).map_err(|error| format!("the file is not UTF-8: {error}"))
}
