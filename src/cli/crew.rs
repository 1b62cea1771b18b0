//! The models of a run, connected from the configuration, with everything that is wrong about them at once.

use std::path::Path;
use std::sync::Arc;

use super::load::Loaded;
use super::prepare::Keys;
use crate::config::Config;
use crate::config::model::ModelSettings;
use crate::config::places::Places;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Severity};
use crate::judge::Judge;
use crate::model::meter::Budget;
use crate::model::prices::PriceTable;
use crate::model::{self, Certificates, ChatModel, EnvLookup, ModelContext, ModelIdentity, Money, Role};
use crate::rating::JudgeId;
use crate::source::Location;
use crate::sweep::conversation::CHATBOT_SYSTEM;

/// The roles a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    /// Users and candidate.
    Talk,
    /// Judges.
    Judge,
    /// All.
    All,
}

/// Connected models.
pub(super) struct Crew {
    pub(super) users: Vec<Arc<dyn ChatModel>>,
    pub(super) candidate: Option<Arc<dyn ChatModel>>,
    pub(super) judges: Vec<Judge>,
    /// The judge of second looks.
    pub(super) confirm: Option<Judge>,
    /// The chatbot's system prompt.
    pub(super) system: Option<Arc<str>>,
    /// What a reader should know about the choice of models.
    pub(super) warnings: Vec<String>,
}

impl Crew {
    /// Whether scripts play every role.
    pub(super) fn is_scripted(&self) -> bool {
        let judges = self.judges.iter().chain(&self.confirm).map(|judge| &judge.model);
        self.users.iter().chain(&self.candidate).chain(judges).all(|model| model.identity().is_scripted())
    }
}

/// The shared context of a run's models: environment, budget, prices.
pub(super) fn context(loaded: &Loaded, problems: &mut Diagnostics) -> ModelContext {
    let config = &loaded.config;
    let dollars = config.budget.dollars.as_deref().and_then(Money::parse_dollars);
    let budget = Budget {
        dollars,
        tokens: config.budget.tokens,
        calls: config.budget.calls,
        time: config.budget.time,
    };
    let env = EnvLookup::new(|name| std::env::var(name).ok());
    let mut context = ModelContext::new(env, budget).limit_calls(config.concurrency.calls);
    context.seed = config.sweep.seed;
    context.base.clone_from(&loaded.candidate_folder);
    if let Some(path) = &config.ca_cert {
        let read = loaded.files().read(path).map_err(|error| error.to_string());
        match read.and_then(|source| Certificates::read(source.name(), source.text().as_bytes())) {
            Ok(certificates) => context.ca_cert = Some(certificates),
            Err(message) => problems.push(
                Diagnostic::error(Code::Unreadable, format!("ca_cert: {message}"))
                    .help("give the authority's certificate as a PEM file, `-----BEGIN CERTIFICATE-----`; a path in the configuration is relative to its file"),
            ),
        }
    }
    if let Some(path) = &config.prices {
        match loaded.files().read(path) {
            Ok(source) => match PriceTable::shipped_with(&source) {
                Ok(table) => context.prices = Arc::new(table),
                Err(problem) => problems.push(problem),
            },
            Err(error) => problems.push(Places::locate(
                loaded.places.of_value("prices"),
                Diagnostic::error(Code::Unreadable, error.to_string()),
            )),
        }
    }
    context
}

/// Connects the models that are needed. Problems of all roles are collected.
pub(super) fn connect(
    loaded: &Loaded,
    needed: Needed,
    keys: Keys,
    context: &ModelContext,
    problems: &mut Diagnostics,
) -> Crew {
    let config = &loaded.config;
    let places = &loaded.places;
    let mut connected = |role: Role, settings: &ModelSettings, place: Option<&Location>| match model::connect(
        role, settings, context,
    ) {
        Ok(model) => Some(model),
        Err(errors) => {
            for problem in errors.iter() {
                let optional = keys == Keys::Optional && problem.code == Code::MissingCredential;
                let severity = if optional { Severity::Warning } else { problem.severity };
                problems.push(Places::locate(place, Diagnostic { severity, ..problem.clone() }));
            }
            None
        }
    };
    let mut crew = Crew {
        users: Vec::new(),
        candidate: None,
        judges: Vec::new(),
        confirm: None,
        system: None,
        warnings: shared_models(config),
    };
    if needed != Needed::Judge {
        crew.users = config
            .users
            .iter()
            .enumerate()
            .filter_map(|(index, user)| connected(Role::User, user, places.of_model("user", index)))
            .collect();
        let place = places.of_model("candidate", 0);
        crew.candidate = connected(Role::Candidate, &config.candidate.model, place);
    }
    if needed != Needed::Talk {
        for (index, judge) in config.judge.models.iter().enumerate() {
            let place = places.of_model("judge", index);
            let Some(model) = connected(Role::Judge, &judge.model, place) else { continue };
            for instance in 1..=judge.instances {
                crew.judges.push(one_judge(config, &model, instance));
            }
        }
        crew.confirm = config
            .judge
            .confirm
            .as_ref()
            .and_then(|settings| connected(Role::Judge, settings, places.of_model("judging.confirm", 0)))
            .map(|model| one_judge(config, &model, 1));
    }
    crew.system = system_prompt(loaded, problems);
    crew
}

fn one_judge(config: &Config, model: &Arc<dyn ChatModel>, instance: u32) -> Judge {
    Judge {
        id: JudgeId { model: model.identity().name(), instance },
        model: Arc::clone(model),
        reasks: config.judge.reasks,
        ahead: config.judge.ahead,
        semantics: config.judge.semantics,
    }
}

/// Whoever judges itself, or plays against itself, is not independent. A model is known by its id, whoever serves it.
pub(super) fn shared_models(config: &Config) -> Vec<String> {
    let Ok(identity) = model::identify(Role::Candidate, &config.candidate.model) else { return Vec::new() };
    let same = |role, other: &ModelSettings| {
        let candidate = &config.candidate.model;
        model::identify(role, other).is_ok_and(|other_identity| {
            !identity.is_scripted()
                && served(&identity, candidate) == served(&other_identity, other)
                && (&candidate.http, &candidate.command) == (&other.http, &other.command)
        })
    };
    let judges = config.judge.models.iter().map(|judge| &judge.model).chain(&config.judge.confirm);
    let mut warnings = Vec::new();
    if judges.into_iter().any(|judge| same(Role::Judge, judge)) {
        warnings.push(format!(
            "the judge is the candidate itself ({}): it grades its own words",
            identity.name()
        ));
    }
    if config.users.iter().any(|user| same(Role::User, user)) {
        warnings.push(format!("the user model is the candidate itself ({})", identity.name()));
    }
    warnings
}

/// The model behind a deployment's name or a gateway's path.
fn served(identity: &ModelIdentity, settings: &ModelSettings) -> String {
    let name = settings.family.as_deref().unwrap_or(&identity.model);
    name.rsplit('/').next().unwrap_or(name).to_lowercase()
}

/// The chatbot's system prompt: as configured, VERA-MH's default for a bare model, none for an endpoint that has its
/// own.
fn system_prompt(loaded: &Loaded, problems: &mut Diagnostics) -> Option<Arc<str>> {
    let candidate = &loaded.config.candidate;
    if let Some(text) = &candidate.system_prompt {
        // An empty prompt is left out of the request, as in VERA-MH.
        return (!text.is_empty()).then(|| text.as_str().into());
    }
    if let Some(path) = &candidate.system_prompt_file {
        match loaded.candidate_files().read(path) {
            Ok(source) => return Some(source.text().into()),
            Err(error) => {
                let unreadable =
                    Diagnostic::error(Code::Unreadable, format!("candidate.system_prompt_file: {error}"))
                        .help("the path is relative to the configuration file");
                let place = loaded.places.of_value("candidate.system_prompt_file");
                problems.push(Places::locate(place, unreadable));
                return None;
            }
        }
    }
    let own = matches!(candidate.model.provider.as_deref(), Some("http" | "command"));
    (!own).then(|| CHATBOT_SYSTEM.into())
}

/// The name that reports give the candidate.
pub(super) fn candidate_name(config: &Config) -> String {
    let named = config.candidate.name.clone().filter(|name| !name.trim().is_empty());
    named.unwrap_or_else(|| {
        model::identify(Role::Candidate, &config.candidate.model)
            .map_or_else(|_| config.candidate.model.model.clone(), |identity| identity.name())
    })
}

/// Whether a folder can be written to, found out before anything is paid for.
pub(super) fn writable(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    tempfile::Builder::new().prefix(".probe-").tempfile_in(folder).map(drop)
}
