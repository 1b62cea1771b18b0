//! Conversations that were held earlier, and what is known of how: of a run of ours everything, of other transcripts
//! only what the caller says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::crew;
use super::load::{Loaded, Overrides};
use super::prepare::Prepared;
use crate::config::BUILTIN_NAME;
use crate::config::model::ModelSettings;
use crate::error::Error;
use crate::fingerprint::{sha256, sha256_of_parts};
use crate::model::{Role, identify};
use crate::run::{ModelRecord, PLAN_FILE, PlanFile, RUN_FILE, RunFolder, RunRecord, Settings};
use crate::sweep::plan::Plan;
use crate::sweep::scheduler::CellStatus;
use crate::transcript::{ConversationId, Transcript};

/// The conversations and their origin.
pub(super) struct Held {
    pub(super) transcripts: Vec<Transcript>,
    /// What reports call the chatbot that was talked to.
    pub(super) candidate: String,
    /// The models that took part in the conversations, as far as they are known.
    pub(super) models: Vec<ModelRecord>,
    /// How they were held; `None` when nobody says.
    pub(super) settings: Option<Settings>,
    /// SHA-256 of the personas that were played; `None` when nobody says.
    pub(super) personas: Option<String>,
    /// Why planned conversations are not among the transcripts.
    pub(super) absent: BTreeMap<ConversationId, CellStatus>,
    /// Calls of the conversations that were answered from a recording.
    pub(super) replayed: u64,
    plan: Option<Plan>,
    warnings: Vec<String>,
    stated: bool,
}

impl Held {
    /// Reads a folder.
    ///
    /// # Errors
    /// There is nothing to judge, the run in it is not whole enough to say what was planned, or the command line
    /// names another chatbot or user model than the run talked to.
    pub(super) fn read(folder: &str, loaded: &Loaded, overrides: &Overrides) -> Result<Self, Error> {
        let path = Path::new(folder);
        let transcripts = RunFolder::transcripts_below(path)
            .map_err(|error| Error::Usage(format!("{error}\n  help: give a folder with transcripts")))?;
        if transcripts.is_empty() {
            return Err(Error::Usage(format!("`{folder}` holds no transcript, so nothing would be judged")));
        }
        unique(&transcripts)?;
        match run_around(path) {
            Some(run) => of_run(&run, transcripts, loaded, overrides),
            None => Ok(from_elsewhere(folder, transcripts, loaded, overrides)),
        }
    }

    /// Makes a prepared run one over these conversations: its plan, what it depends on, what is said about the models.
    pub(super) fn take_over(&self, prepared: &mut Prepared) {
        let parts = &mut prepared.key.parts;
        parts.retain(|name, _| !["candidate", "user", "sweep"].iter().any(|part| name.starts_with(part)));
        let texts = self
            .transcripts
            .iter()
            .map(|held| format!("{}\n{}", held.id, crate::transcript::write_text(held)))
            .collect::<Vec<_>>();
        parts.insert("transcripts".to_owned(), sha256_of_parts(texts.iter().map(String::as_str)));
        if self.stated {
            parts.insert("candidate".to_owned(), self.candidate.clone());
        }
        if let Some(model) = self.models.iter().find(|model| model.role == Role::Candidate) {
            parts.insert("candidate.settings".to_owned(), model.settings.clone());
        }
        if let Some(plan) = &self.plan {
            let ids: Vec<&str> = plan.cells.iter().map(|cell| cell.id.0.as_str()).collect();
            parts.insert("planned".to_owned(), sha256(ids.join("\n")));
        }
        prepared.plan = self.plan.clone().unwrap_or_else(|| Plan::of_transcripts(&self.transcripts));
        prepared.crew.warnings.clone_from(&self.warnings);
    }
}

/// The run that a folder is, or whose `conversations` it is.
fn run_around(path: &Path) -> Option<PathBuf> {
    let is_run = |path: &Path| path.join(RUN_FILE).is_file() || path.join(PLAN_FILE).is_file();
    if is_run(path) {
        return Some(path.to_owned());
    }
    let path = path.canonicalize().ok()?;
    let parent = path.parent().filter(|_| path.file_name().is_some_and(|name| name == "conversations"))?;
    is_run(parent).then(|| parent.to_owned())
}

fn of_run(
    run: &Path,
    transcripts: Vec<Transcript>,
    loaded: &Loaded,
    overrides: &Overrides,
) -> Result<Held, Error> {
    let folder = RunFolder::at(run);
    let unusable = |error: crate::run::FolderError| {
        Error::Usage(format!(
            "{error}\n  help: without `{RUN_FILE}` and `{PLAN_FILE}` nobody knows what was planned and which chatbot was talked to; if the run was cut off, give its command again with `--run {}` to go on with it first",
            run.display()
        ))
    };
    let record = folder.record().map_err(unusable)?;
    let plan = folder.plan().map_err(unusable)?;
    contradictions(run, &record, loaded, overrides)?;
    let there: BTreeSet<&ConversationId> = transcripts.iter().map(|held| &held.id).collect();
    let planned: BTreeSet<&ConversationId> = plan.conversations.iter().map(|held| &held.cell.id).collect();
    if let Some(foreign) = there.difference(&planned).next() {
        return Err(Error::Usage(format!(
            "`{}` holds a transcript that its {PLAN_FILE} does not plan: {foreign}\n  help: take it out, or judge the transcripts in a folder of their own",
            run.display()
        )));
    }
    let absent = absent(&plan, &there);
    let models: Vec<ModelRecord> =
        record.models.iter().filter(|model| model.role != Role::Judge).cloned().collect();
    let mut warnings = shared(loaded, &models);
    // What was said about the earlier run's judges is not about these.
    warnings.extend(record.warnings.iter().filter(|text| !text.starts_with("the judge ")).cloned());
    let cells = plan.conversations.into_iter().map(|planned| planned.cell).collect();
    Ok(Held {
        candidate: record.candidate,
        models,
        settings: Some(record.settings),
        personas: Some(record.fingerprints.personas),
        absent,
        replayed: record.usage.iter().filter(|row| row.role != Role::Judge).map(|row| row.replayed).sum(),
        plan: Some(Plan { cells }),
        warnings,
        stated: true,
        transcripts,
    })
}

/// What became of the planned conversations whose transcripts are not there. One that was held and is lost counts as
/// not held: nobody can judge it.
fn absent(plan: &PlanFile, there: &BTreeSet<&ConversationId>) -> BTreeMap<ConversationId, CellStatus> {
    let missing = plan.conversations.iter().filter(|planned| !there.contains(&planned.cell.id));
    missing
        .filter_map(|planned| match &planned.status {
            CellStatus::Held { .. } | CellStatus::NotStarted => None,
            status => Some((planned.cell.id.clone(), status.clone())),
        })
        .collect()
}

/// A run was held with the models it was held with, whatever a command line says later.
fn contradictions(
    run: &Path,
    record: &RunRecord,
    loaded: &Loaded,
    overrides: &Overrides,
) -> Result<(), Error> {
    let names = |role: Role| -> Vec<String> {
        let models = record.models.iter().filter(|model| model.role == role);
        models.map(|model| format!("{}/{}", model.provider, model.requested)).collect()
    };
    let named = |role: Role, settings: &ModelSettings| {
        identify(role, settings).map_or_else(|_| settings.model.clone(), |identity| identity.name())
    };
    let refuse = |flag: &str, asked: &str, held: &str| {
        Err(Error::Usage(format!(
            "`--{flag} {asked}` contradicts the run in `{}`, whose conversations were held with {held}\n  help: leave out --{flag} (or VERA_GATE_{}); `vera-gate run --{flag} {asked}` holds conversations with it",
            run.display(),
            flag.to_uppercase()
        )))
    };
    if let Some(asked) = &overrides.candidate {
        let name = named(Role::Candidate, &loaded.config.candidate.model);
        let mut held = names(Role::Candidate);
        held.push(record.candidate.clone());
        if !held.contains(&name) && !held.contains(asked) {
            return refuse("candidate", asked, &record.candidate);
        }
    }
    let held = names(Role::User);
    for (asked, settings) in overrides.user.iter().zip(&loaded.config.users) {
        if !held.contains(&named(Role::User, settings)) {
            return refuse("user", asked, &held.join(", "));
        }
    }
    Ok(())
}

fn from_elsewhere(
    folder: &str,
    transcripts: Vec<Transcript>,
    loaded: &Loaded,
    overrides: &Overrides,
) -> Held {
    // The built-in configuration names models for a first run; nobody said that these were talked to.
    let configured = loaded.source.name() != BUILTIN_NAME;
    let stated = configured || overrides.candidate.is_some();
    let users = configured || !overrides.user.is_empty();
    let models: Vec<ModelRecord> = super::execute::configured_models(loaded, &BTreeMap::new())
        .into_iter()
        .filter(|model| match model.role {
            Role::Candidate => stated,
            Role::User => users,
            Role::Judge => false,
        })
        .collect();
    let candidate = if stated {
        crew::candidate_name(&loaded.config)
    } else {
        format!("unknown (transcripts from {folder})")
    };
    let warnings = shared(loaded, &models);
    Held {
        candidate,
        models,
        settings: None,
        personas: None,
        absent: BTreeMap::new(),
        replayed: 0,
        plan: None,
        warnings,
        stated,
        transcripts,
    }
}

/// What the crew says about models in two roles, for the models that were talked to.
fn shared(loaded: &Loaded, models: &[ModelRecord]) -> Vec<String> {
    let settings = |role: Role| {
        let of_role = models.iter().filter(move |model| model.role == role);
        of_role.map(|model| ModelSettings {
            provider: Some(model.provider.clone()),
            model: model.requested.clone(),
            ..ModelSettings::default()
        })
    };
    let mut config = loaded.config.clone();
    let Some(candidate) = settings(Role::Candidate).next() else { return Vec::new() };
    // The same settings make the same model: a chatbot of one's own is known by more than its name.
    let known = identify(Role::Candidate, &config.candidate.model)
        .is_ok_and(|identity| models.iter().any(|model| model.settings == identity.settings));
    if !known {
        config.candidate.model = candidate;
    }
    config.users = settings(Role::User).collect();
    crew::shared_models(&config)
}

fn unique(transcripts: &[Transcript]) -> Result<(), Error> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for transcript in transcripts {
        *seen.entry(transcript.id.0.as_str()).or_default() += 1;
    }
    let twice: Vec<&str> = seen.into_iter().filter(|(_, count)| *count > 1).map(|(id, _)| id).collect();
    if twice.is_empty() {
        return Ok(());
    }
    Err(Error::Usage(format!("several transcripts have the same name: {}", twice.join(", "))))
}
