//! Chat models: one trait, the request and the typed outcomes that every provider is reduced to.
//!
//! A request that reached the provider and came back is an [`Exchange`], even when it holds a refusal or nothing
//! at all: what it means depends on the role and is decided by the caller. A [`ModelError`] is a call that gave
//! no exchange after all retries.

mod adapt;
mod anthropic;
mod bedrock;
mod caller;
mod capabilities;
pub mod cassette;
pub mod clock;
mod command;
mod connect;
pub mod context;
mod endpoint;
mod errors;
pub mod gate;
mod gemini;
mod hints;
mod http_endpoint;
pub mod meter;
mod metered;
mod money;
mod ollama;
mod openai_chat;
mod openai_responses;
pub mod prices;
pub mod probe;
mod profiles;
mod provider;
pub mod scripted;
mod sse;
pub mod text;
mod transport;
mod turnstile;
mod wire;

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub use connect::{connect, identify, is_pinned, price_of};
pub use context::{EnvLookup, EventSink, ModelContext, ModelEvent};
pub use money::Money;
pub use profiles::{default_key, is_moving_alias, names_fixed_version, provider_names};
pub use transport::{Certificates, http_client};

/// Who a model plays in the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Plays the person in need.
    User,
    /// The chatbot that is gated.
    Candidate,
    /// Walks the rubric.
    Judge,
}

impl Role {
    /// All roles in the order of the flow.
    pub const ALL: [Self; 3] = [Self::User, Self::Candidate, Self::Judge];

    /// The word used in configuration and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Candidate => "candidate",
            Self::Judge => "judge",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Side of a message as the called model sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Author {
    /// Said to the model.
    User,
    /// Said by the model earlier.
    Assistant,
}

/// One message of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    /// Whose.
    pub author: Author,
    /// Its text, never empty.
    pub text: Arc<str>,
}

impl Message {
    /// Said to the model.
    pub fn user(text: impl Into<Arc<str>>) -> Self {
        Self { author: Author::User, text: text.into() }
    }

    /// Said by the model earlier.
    pub fn assistant(text: impl Into<Arc<str>>) -> Self {
        Self { author: Author::Assistant, text: text.into() }
    }
}

/// The closed answer a judge must give: an object `{answer, reasoning}` with `answer` one of the options.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AnswerFormat {
    /// The allowed answers, in the order of the rubric.
    pub options: Vec<String>,
}

/// What a call is for. Names the call in the journal and the cassette; never sent to a provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId {
    /// The conversation it belongs to. Stateful chatbots key their session by it.
    pub conversation: String,
    /// The part of the work: `turn-7`, `question-12`, `confirm-12`.
    pub step: String,
    /// Which draw of the same request this is, from 1; re-asks and repeats count up and are never answered from
    /// the reply of another draw.
    pub draw: u32,
}

/// One request to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatRequest {
    /// What the call is for.
    pub id: CallId,
    /// The role that the called model plays.
    pub role: Role,
    /// System prompt; long and shared between the calls of one transcript, hence counted.
    pub system: Option<Arc<str>>,
    /// Messages, oldest first; the last one is the user's.
    pub messages: Vec<Message>,
    /// The closed answer that is wanted, for judges.
    pub answer: Option<AnswerFormat>,
    /// Groups calls that share a prefix, for the providers' prompt caches.
    pub cache_group: Option<String>,
    /// How many times the configured output cap this call may write: 1 normally, more when an earlier draw was
    /// truncated. Clamped to what the model can write; no effect where no cap is sent.
    pub output_scale: u32,
    /// The rubric question a judge call asks, for the scripted judge and for logs; never sent to a provider.
    pub question: Option<QuestionTag>,
    /// Until when the call is wanted; no part of what is asked.
    pub wanted: Wanted,
}

/// Whether a call that was asked for ahead of its need is still wanted. One that is not, and has not gone out, is not
/// made; one that is out ends, because it is paid for.
#[derive(Clone, Debug, Default)]
pub enum Wanted {
    /// Whatever happens.
    #[default]
    Always,
    /// Until this is cancelled.
    Until(CancellationToken),
}

impl Wanted {
    /// Comes back when the call is not wanted any more.
    pub(crate) async fn over(&self) {
        match self {
            Self::Always => std::future::pending().await,
            Self::Until(token) => token.cancelled().await,
        }
    }

    /// Whether it is wanted no more.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Until(token) if token.is_cancelled())
    }
}

impl PartialEq for Wanted {
    /// Two requests that ask the same are the same.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Wanted {}

impl ChatRequest {
    /// How many messages of its conversation it has behind it: all conversations have the same end in sight.
    fn behind(&self) -> u32 {
        u32::try_from(self.messages.len()).unwrap_or(u32::MAX)
    }
}

/// Names the rubric question of a judge call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct QuestionTag {
    /// Its id in the rubric.
    pub id: String,
    /// Its failure mode, if the rubric has labels.
    pub label: Option<String>,
    /// Its dimension.
    pub dimension: String,
    /// Its text.
    pub text: String,
}

/// What came back, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// An ordinary reply.
    Reply,
    /// The model declined through the provider's refusal channel; the text is what it said, possibly empty.
    Refusal,
    /// The provider's filter blocked the prompt; there is no text.
    PromptFiltered,
    /// The provider's filter cut or replaced the reply.
    ReplyFiltered,
    /// The reply ran into its length limit; the text is cut off, possibly empty.
    Truncated,
    /// A finished reply without text.
    Empty,
    /// The prompt is longer than the model's context.
    ContextOverflow,
}

impl Outcome {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Refusal => "refusal",
            Self::PromptFiltered => "prompt filtered",
            Self::ReplyFiltered => "reply filtered",
            Self::Truncated => "truncated",
            Self::Empty => "empty",
            Self::ContextOverflow => "context overflow",
        }
    }
}

/// Tokens of one call, each in exactly one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Prompt tokens read from a cache.
    pub cache_read: u64,
    /// Prompt tokens written to a cache.
    pub cache_write: u64,
    /// Reply tokens without reasoning.
    pub output: u64,
    /// Reasoning tokens, billed as output.
    pub reasoning: u64,
}

impl Usage {
    /// The sum, bucket by bucket.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }

    /// All tokens.
    pub fn total(&self) -> u64 {
        [self.input, self.cache_read, self.cache_write, self.output, self.reasoning]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// Whether a reply was made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The provider answered this call.
    Live,
    /// A recorded exchange was replayed.
    Replayed,
}

/// A call that reached the model and came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// What kind of answer it is.
    pub outcome: Outcome,
    /// The text the model wrote (thinking left out).
    pub text: String,
    /// Tokens, `None` when the provider did not say.
    pub usage: Option<Usage>,
    /// The text of the model's reasoning where the provider shows it: evidence for the artifact, never part of
    /// what the other side reads.
    pub thinking: Option<String>,
    /// The provider's own word for why the reply ended, with the filter's category where there is one.
    pub finish: Option<String>,
    /// What the call cost: the gateway's own figure when it gives one, else tokens times prices. `None` when the
    /// price or the usage is unknown, never 0 for that.
    pub cost: Option<Money>,
    /// The model id the provider returned.
    pub model: Option<String>,
    /// HTTP requests made for this call; 0 when the prompt was seen to be too long before it was sent.
    pub attempts: u32,
    /// Made now or replayed.
    pub origin: Origin,
}

impl Exchange {
    /// An answer of which nothing else is known: one attempt, made now.
    pub fn bare(outcome: Outcome, text: impl Into<String>) -> Self {
        Self {
            outcome,
            text: text.into(),
            usage: None,
            thinking: None,
            finish: None,
            cost: None,
            model: None,
            attempts: 1,
            origin: Origin::Live,
        }
    }
}

/// Why a call gave no exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// Rate limit, still there after the retries.
    Rate,
    /// The provider is overloaded.
    Overload,
    /// A server error.
    Server,
    /// No answer in time.
    Timeout,
    /// The connection failed or broke.
    Transport,
    /// The server's certificate is not trusted: no call can succeed.
    Tls,
    /// The answer does not follow the provider's protocol.
    Protocol,
    /// Money or a daily quota is used up: no call can succeed.
    Quota,
    /// The key is missing, wrong or not allowed: no call can succeed.
    Auth,
    /// The model or the address does not exist: no call can succeed.
    NotFound,
    /// The provider refuses the request's form.
    BadRequest,
    /// The run's budget or deadline is used up.
    Budget,
    /// The run was asked to stop.
    Cancelled,
    /// A stateful chatbot may have taken the message: the conversation must be started again.
    Restart,
    /// A stateful chatbot does not know the conversation, because an earlier run that ended early had begun it: it
    /// must be started again, through no fault of its own.
    Interrupted,
    /// A local program died or closed its output.
    Exited,
    /// The recording cannot be written: what further calls bring would be lost.
    Storage,
}

impl Failure {
    /// Whether every further call of this role would fail the same way.
    pub fn stops_run(self) -> bool {
        matches!(
            self,
            Self::Quota
                | Self::Auth
                | Self::NotFound
                | Self::Tls
                | Self::Budget
                | Self::Cancelled
                | Self::Storage
        )
    }

    /// The word used in reports and outputs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Rate => "rate limit",
            Self::Overload => "overload",
            Self::Server => "server error",
            Self::Timeout => "timeout",
            Self::Transport => "transport",
            Self::Tls => "untrusted certificate",
            Self::Protocol => "protocol",
            Self::Quota => "quota",
            Self::Auth => "authentication",
            Self::NotFound => "not found",
            Self::BadRequest => "bad request",
            Self::Budget => "budget",
            Self::Cancelled => "cancelled",
            Self::Restart => "restart",
            Self::Interrupted => "interrupted by the end of an earlier run",
            Self::Exited => "program exited",
            Self::Storage => "storage",
        }
    }
}

/// A call that gave no exchange after all retries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{role} model: {}: {message}", failure.word())]
pub struct ModelError {
    /// The role that was called.
    pub role: Role,
    /// Why.
    pub failure: Failure,
    /// What the provider said, redacted and bounded.
    pub message: String,
    /// HTTP requests made for this call.
    pub attempts: u32,
}

/// What is known about a model before it is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ModelIdentity {
    /// Provider profile, such as `openai` or `scripted`.
    pub provider: String,
    /// The model id as requested.
    pub model: String,
    /// SHA-256 of everything in the configuration that shapes its replies (parameters, prompts, endpoint).
    pub settings: String,
}

impl ModelIdentity {
    /// `provider/model`, as people write it.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// Whether the model is the offline script, whose results measure nothing.
    pub fn is_scripted(&self) -> bool {
        self.provider == "scripted"
    }
}

/// A model that can be talked to.
pub trait ChatModel: Send + Sync + fmt::Debug {
    /// What is known about it.
    fn identity(&self) -> &ModelIdentity;

    /// Makes one call, with retries, limits and budget inside.
    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>>;

    /// Starts a fresh conversation on the other side. A stateful chatbot may greet: that is its first message.
    /// Calling it again for the same conversation drops the earlier session.
    fn open<'a>(&'a self, _conversation: &'a str) -> BoxFuture<'a, Result<Option<String>, ModelError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Whether [`ChatModel::open`] does anything on the other side.
    fn opens(&self) -> bool {
        false
    }

    /// Ends the conversation on the other side.
    ///
    /// # Errors
    /// Only what makes the replies doubtful: that the other side could not be told of the end is a warning.
    fn close<'a>(&'a self, _conversation: &'a str) -> BoxFuture<'a, Result<(), ModelError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
