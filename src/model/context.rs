//! What the models of a run share, and what they report.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::cassette::Cassette;
use super::clock::Clock;
use super::gate::Gates;
use super::meter::{Budget, Meter};
use super::prices::PriceTable;
use super::transport::Clients;
use super::turnstile::Turnstile;
use super::{Certificates, Failure, Role};

/// Looks up environment variables. The process environment is read by the caller, not here.
#[derive(Clone)]
pub struct EnvLookup(Arc<Lookup>);

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

impl EnvLookup {
    /// From a function, such as one over the process environment.
    pub fn new(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(lookup))
    }

    /// From fixed values.
    pub fn fixed<'a>(values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let values: BTreeMap<String, String> =
            values.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self::new(move |name| values.get(name).cloned())
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }
}

impl fmt::Debug for EnvLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnvLookup")
    }
}

/// Something a person may want to know while calls are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelEvent {
    /// A request failed and is made again after a wait.
    Retry {
        /// Role.
        role: Role,
        /// Why it failed.
        failure: Failure,
        /// Redacted message.
        message: String,
        /// Wait before the next attempt.
        wait: Duration,
    },
    /// A parameter is not sent because the model does not take it. Belongs in the report.
    NotSent {
        /// Role.
        role: Role,
        /// The word of the configuration, such as `temperature`.
        parameter: &'static str,
        /// Who said so: the capability table or the provider, in its redacted words.
        because: String,
    },
    /// The provider answered with another model than the one asked for. Belongs in the report.
    OtherModel {
        /// Role.
        role: Role,
        /// Asked for.
        requested: String,
        /// Answered.
        returned: String,
    },
    /// Something else that did not stop the call.
    Warning {
        /// Role.
        role: Role,
        /// Redacted message.
        message: String,
    },
}

impl fmt::Display for ModelEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry { role, failure, message, wait } => {
                write!(
                    f,
                    "{role} model: {}: {message}; next attempt in {:.1} s",
                    failure.word(),
                    wait.as_secs_f64()
                )
            }
            Self::NotSent { role, parameter, because } => {
                write!(f, "{role} model: {parameter}: not sent ({because})")
            }
            Self::OtherModel { role, requested, returned } => {
                write!(f, "{role} model: asked for {requested}, answered by {returned}")
            }
            Self::Warning { role, message } => write!(f, "{role} model: {message}"),
        }
    }
}

/// Takes events.
#[derive(Clone)]
pub struct EventSink(Arc<dyn Fn(ModelEvent) + Send + Sync>);

impl EventSink {
    /// Gives every event to a function.
    pub fn new(sink: impl Fn(ModelEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Drops every event.
    pub fn none() -> Self {
        Self::new(drop)
    }

    pub(crate) fn send(&self, event: ModelEvent) {
        (self.0)(event);
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSink")
    }
}

/// What the models of a run share.
#[derive(Clone, Debug)]
pub struct ModelContext {
    /// Environment.
    pub env: EnvLookup,
    /// Use and budget.
    pub meter: Arc<Meter>,
    /// Stops all calls.
    pub cancel: CancellationToken,
    /// Recording, if the run has one.
    pub cassette: Option<Arc<Cassette>>,
    /// Prices.
    pub prices: Arc<PriceTable>,
    /// Takes what is worth telling.
    pub events: EventSink,
    /// Gates per host and key.
    pub gates: Arc<Gates>,
    /// Where relative paths of the settings start; empty for the folder the process runs in.
    pub base: PathBuf,
    /// Authorities that are trusted beside the others.
    pub ca_cert: Option<Certificates>,
    /// Clock.
    pub clock: Clock,
    /// Seed of the scripted models that have none of their own.
    pub seed: u64,
    /// HTTP clients, made with `env` when the first role connects.
    pub(crate) clients: Clients,
    /// Calls of all roles at the same time.
    pub(crate) calls: Arc<Turnstile>,
}

impl ModelContext {
    /// A context with an environment and a budget: shipped prices, no recording, no listener.
    pub fn new(env: EnvLookup, budget: Budget) -> Self {
        Self::with_clock(env, budget, Clock::real())
    }

    /// The same with a clock of the caller's.
    pub fn with_clock(env: EnvLookup, budget: Budget, clock: Clock) -> Self {
        Self {
            env,
            meter: Arc::new(Meter::new(budget, clock.clone())),
            cancel: CancellationToken::new(),
            cassette: None,
            prices: Arc::new(PriceTable::shipped()),
            events: EventSink::none(),
            gates: Arc::new(Gates::new()),
            base: PathBuf::new(),
            ca_cert: None,
            clock,
            seed: 0,
            clients: Clients::default(),
            calls: Turnstile::new(usize::MAX),
        }
    }

    /// Lets at most so many calls of all roles out at the same time, at least one.
    #[must_use]
    pub fn limit_calls(mut self, most: u32) -> Self {
        self.calls = Turnstile::new(usize::try_from(most).unwrap_or(usize::MAX));
        self
    }
}
