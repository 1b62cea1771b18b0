//! Everything a run needs, loaded and validated before the first call, with all problems at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chrono::{NaiveDate, Utc};
use clap::Args;
use semver::Version;

use super::crew::{self, Crew, Needed};
use super::load::{self, Loaded, Overrides};
use super::names::Names;
use super::progress::Progress;
use super::trust::Trust;
use super::{Global, output, policy, program};
use crate::config::FirstSpeaker;
use crate::config::places::Places;
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::error::Error;
use crate::fingerprint::sha256;
use crate::gate::thresholds::{self, Thresholds};
use crate::model::cassette::{Cassette, CassetteMode};
use crate::model::{self, EventSink, ModelContext, ModelEvent, Role};
use crate::source::Source;
use crate::sweep::event::{Event, Listener as _};
use crate::sweep::journal::PlanKey;
use crate::sweep::plan::Plan;
use crate::target::{self, Target};

/// Recording and replaying of model calls.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Recording")]
pub(super) struct Recording {
    /// Records every exchange in this file, keys redacted.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(super) record: Option<String>,
    /// Answers every call from this recording; nothing is called.
    #[arg(long, value_name = "FILE")]
    pub(super) replay: Option<String>,
}

/// A run that is ready to start.
pub(super) struct Prepared {
    pub(super) loaded: Loaded,
    pub(super) target: Arc<Target>,
    pub(super) plan: Plan,
    pub(super) crew: Crew,
    pub(super) context: ModelContext,
    /// What the results depend on.
    pub(super) key: PlanKey,
    pub(super) thresholds: Thresholds,
    /// Where the events of the models go, once somebody listens.
    pub(super) progress: Arc<OnceLock<Arc<Progress>>>,
    /// What the models told that belongs in the report.
    notes: Arc<Mutex<BTreeSet<String>>>,
}

impl Prepared {
    /// What a reader should know about the models, as far as it has come out.
    pub(super) fn warnings(&self) -> Vec<String> {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        self.crew.warnings.iter().cloned().chain(notes.iter().cloned()).collect()
    }
}

/// This program's version.
pub(super) fn tool_version() -> Version {
    // The manifest's own version always parses; a test holds that.
    Version::parse(env!("CARGO_PKG_VERSION")).unwrap_or_else(|_| Version::new(0, 0, 0))
}

/// The day of the verdict.
pub(super) fn today() -> NaiveDate {
    Utc::now().date_naive()
}

/// Whether a missing key refuses the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// It does: calls will be made.
    Needed,
    /// It is worth a warning.
    Optional,
}

/// Loads, validates and connects everything, for a look at it.
pub(super) fn checked(
    global: &Global,
    overrides: &Overrides,
    keys: Keys,
    trust: &Trust,
) -> Result<Prepared, Error> {
    all(global, overrides, Needed::All, &Recording::default(), keys, trust)
}

/// Loads, validates and connects, for calls that will be made.
pub(super) fn prepare(
    global: &Global,
    overrides: &Overrides,
    needed: Needed,
    recording: &Recording,
    trust: &Trust,
) -> Result<Prepared, Error> {
    all(global, overrides, needed, recording, Keys::Needed, trust)
}

fn all(
    global: &Global,
    overrides: &Overrides,
    needed: Needed,
    recording: &Recording,
    keys: Keys,
    trust: &Trust,
) -> Result<Prepared, Error> {
    // Whoever only looks wants to see the files as they lie there.
    let loaded = match keys {
        Keys::Optional => load::salvaged(global, overrides)?,
        Keys::Needed => {
            trust.named(global, overrides)?;
            let loaded = policy::salvaged(global, overrides)?;
            trust.configured(&loaded)?;
            loaded
        }
    };
    let mut problems = loaded.warnings.clone();
    let mut context = crew::context(&loaded, &mut problems);
    cassette(recording, &mut context, &mut problems);
    let progress: Arc<OnceLock<Arc<Progress>>> = Arc::default();
    let listening = Arc::clone(&progress);
    let notes: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let noted = Arc::clone(&notes);
    context.events = EventSink::new(move |event| {
        if let ModelEvent::NotSent { .. } | ModelEvent::OtherModel { .. } = &event {
            noted.lock().unwrap_or_else(PoisonError::into_inner).insert(event.to_string());
        }
        if let Some(progress) = listening.get() {
            progress.on(&Event::Note { text: event.to_string() });
        }
    });
    let crew = crew::connect(&loaded, needed, keys, &context, &mut problems);
    let target = match load_target(&loaded) {
        Ok((target, warnings)) => {
            problems.extend(warnings);
            Some(target)
        }
        Err(errors) => {
            let place = loaded.places.of_value("target");
            for problem in errors.iter() {
                problems.push(Places::locate(place, problem.clone()));
            }
            None
        }
    };
    let mut plan = None;
    let mut thresholds = None;
    if let Some(target) = &target {
        match Plan::new(target, &loaded.config.sweep, &user_names(&loaded)) {
            Ok(planned) => {
                planned.short_sample(&loaded.config.sweep.select).into_iter().for_each(|warning| {
                    problems.push(warning);
                });
                plan = Some(planned);
            }
            Err(errors) => problems.extend(errors),
        }
    }
    match read_thresholds(&loaded, target.as_ref()) {
        Ok((read, warnings)) => {
            problems.extend(warnings);
            thresholds = Some(read);
        }
        Err(errors) => problems.extend(errors),
    }
    let ready = target.zip(plan).zip(thresholds);
    let (((target, plan), thresholds), warnings) = problems.finish(ready)?;
    output::warnings(&warnings, global);
    let key = plan_key(&loaded, &target, &crew);
    Ok(Prepared { loaded, target: Arc::new(target), plan, crew, context, key, thresholds, progress, notes })
}

fn cassette(recording: &Recording, context: &mut ModelContext, problems: &mut Diagnostics) {
    let (path, mode) = match (&recording.record, &recording.replay) {
        (Some(path), _) => (path, CassetteMode::Record),
        (None, Some(path)) => (path, CassetteMode::Replay),
        (None, None) => return,
    };
    match Cassette::open(std::path::Path::new(path), mode) {
        Ok(cassette) => context.cassette = Some(Arc::new(cassette)),
        Err(message) => problems
            .push(Diagnostic::error(Code::Unreadable, message).help("give the file that `--record` wrote")),
    }
}

/// Loads the target, with the persona files that replace its own.
pub(super) fn load_target(loaded: &Loaded) -> Result<(Target, Diagnostics), Diagnostics> {
    let files = loaded.files();
    if loaded.config.persona_files.is_empty() {
        target::load(&loaded.config.target, &files)
    } else {
        target::load_with_personas(&loaded.config.target, &files, &loaded.config.persona_files)
    }
}

/// Reads the thresholds, held against the target where there is one.
pub(super) fn read_thresholds(
    loaded: &Loaded,
    target: Option<&Target>,
) -> Result<(Thresholds, Diagnostics), Diagnostics> {
    let names = target.map_or_else(Names::default, Names::of_target);
    names.thresholds(&thresholds_source(loaded)?)
}

/// The text of the configured thresholds.
pub(super) fn thresholds_source(loaded: &Loaded) -> Result<Source, Diagnostics> {
    let reference = &loaded.config.gate.thresholds;
    if reference.starts_with("builtin:") {
        return thresholds::builtin(reference).ok_or_else(|| {
            let names = thresholds::BUILTIN.map(|(name, _)| name);
            let unknown = Diagnostic::error(
                Code::UnknownWord,
                format!("there are no built-in thresholds `{reference}`"),
            )
            .help(crate::diagnostic::did_you_mean(reference, names));
            Places::locate(loaded.places.of_value("gate.thresholds"), unknown).into()
        });
    }
    loaded.files().read(reference).map_err(|error| {
        let unreadable = Diagnostic::error(Code::Unreadable, format!("gate.thresholds: {error}"))
            .help("give a file, or one of builtin:pull-request, builtin:release, builtin:strict");
        Places::locate(loaded.places.of_value("gate.thresholds"), unreadable).into()
    })
}

/// Failure mode by question id.
pub(super) fn labels_by_question(target: &Target) -> BTreeMap<String, String> {
    let labelled = target.rubric.questions.iter().filter_map(|q| Some((q.id.clone(), q.label.clone()?)));
    labelled.collect()
}

/// The names of the user models, each once: a model that stands twice in the list gets a number.
pub(super) fn user_names(loaded: &Loaded) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    loaded
        .config
        .users
        .iter()
        .map(|user| {
            let name = model::identify(Role::User, user)
                .map_or_else(|_| user.model.clone(), |identity| identity.model);
            let count = seen.entry(name.clone()).or_default();
            *count += 1;
            if *count == 1 { name } else { format!("{name}-{count}") }
        })
        .collect()
}

/// Everything the results depend on, by name.
fn plan_key(loaded: &Loaded, target: &Target, crew: &Crew) -> PlanKey {
    let config = &loaded.config;
    let mut parts = BTreeMap::new();
    let mut put = |name: &str, value: String| {
        parts.insert(name.to_owned(), value);
    };
    put("tool", env!("CARGO_PKG_VERSION").to_owned());
    put("target", target.name.clone());
    put("target.version", target.version.as_ref().map_or_else(String::new, Version::to_string));
    put("target.rubric", target.fingerprints.rubric.clone());
    put("target.personas", target.fingerprints.personas.clone());
    put("target.prompts", target.fingerprints.prompts.clone());
    for (index, user) in config.users.iter().enumerate() {
        put_model(&mut put, &format!("user.{}", index + 1), Role::User, user);
    }
    put_model(&mut put, "candidate", Role::Candidate, &config.candidate.model);
    if let Some(command) = &config.candidate.model.command {
        put("candidate.program", program::contents(command, &loaded.candidate_folder));
    }
    put("candidate.system", crew.system.as_deref().map_or_else(String::new, sha256));
    for (index, judge) in config.judge.models.iter().enumerate() {
        let name = format!("judge.{}", index + 1);
        put_model(&mut put, &name, Role::Judge, &judge.model);
        put(&format!("{name}.instances"), judge.instances.to_string());
    }
    put("judge.reasks", config.judge.reasks.to_string());
    if !config.judge.semantics.is_native() {
        put("judge.semantics", config.judge.semantics.word().to_owned());
    }
    let sweep = &config.sweep;
    put("sweep.runs", sweep.runs.to_string());
    put("sweep.max_messages", sweep.max_messages.to_string());
    put("sweep.max_words", sweep.max_words.map_or_else(String::new, |words| words.to_string()));
    put("sweep.first_speaker", first_speaker(sweep.first_speaker).to_owned());
    put("sweep.first_message", sweep.first_message.clone().unwrap_or_default());
    put("sweep.start_prompt", sweep.start_prompt.clone().unwrap_or_default());
    put("sweep.seed", sweep.seed.to_string());
    put("sweep.resamples", sweep.resamples.to_string());
    put("sweep.restarts", sweep.restarts.to_string());
    let names: Vec<&str> = sweep.select.names.iter().map(|(name, _)| name.as_str()).collect();
    put("sweep.personas", names.join(","));
    let levels: Vec<&str> = sweep.select.risk_levels.iter().map(|(level, _)| level.as_str()).collect();
    put("sweep.risk_levels", levels.join(","));
    put("sweep.sample", sweep.select.sample.map_or_else(String::new, |size| size.to_string()));
    PlanKey::new(parts)
}

fn put_model(
    put: &mut impl FnMut(&str, String),
    name: &str,
    role: Role,
    settings: &crate::config::model::ModelSettings,
) {
    match model::identify(role, settings) {
        Ok(identity) => {
            put(name, identity.name());
            put(&format!("{name}.settings"), identity.settings);
        }
        Err(_) => put(name, settings.model.clone()),
    }
}

/// The word of the configuration.
pub(super) fn first_speaker(first: FirstSpeaker) -> &'static str {
    match first {
        FirstSpeaker::User => "user",
        FirstSpeaker::Chatbot => "chatbot",
    }
}
