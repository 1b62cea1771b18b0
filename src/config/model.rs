//! Settings of one model role, as plain values: what a role may say about the model that plays it.
//!
//! Which setting belongs to which provider is checked when the model is connected, because only the model layer
//! knows the providers; here stand the shapes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

/// How hard a model may think, one word for every provider's own parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// No reasoning.
    None,
    /// The least.
    Minimal,
    /// Little.
    Low,
    /// Middle.
    Medium,
    /// Much.
    High,
    /// More than high.
    Xhigh,
    /// All there is.
    Max,
}

impl Effort {
    /// All words, least first.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// The word of the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// Reads the word of the configuration.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.word() == word)
    }
}

/// Which of a provider's APIs is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// `/chat/completions`.
    Chat,
    /// `/responses`.
    Responses,
}

impl Api {
    /// All words.
    pub const ALL: [Self; 2] = [Self::Chat, Self::Responses];

    /// The word of the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
        }
    }

    /// Reads the word of the configuration.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.word() == word)
    }
}

/// What the user states about a model where the built-in capability table is silent or wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CapabilityOverrides {
    /// Takes `temperature`, `top_p` and `seed`.
    pub sampling: Option<bool>,
    /// Can be held to a JSON schema.
    pub schema: Option<bool>,
    /// The effort words it takes; empty means that none is sent.
    pub effort: Option<Vec<Effort>>,
}

/// Settings of one role.
///
/// Every provider takes the fields without a note. A field with a note is refused elsewhere, so that a setting
/// without effect is never silent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelSettings {
    /// The model id as people write it: `gpt-6-luna`, `anthropic/claude-haiku-5-5`, `ollama/llama3`. The part
    /// before the first slash is the provider when it names one. For `http` and `command`: a name for reports,
    /// may be empty.
    pub model: String,
    /// Provider profile; taken from the model string when absent.
    pub provider: Option<String>,
    /// `openai`, `azure`, `xai`, `openrouter`, `litellm`, `vllm`, `llama-cpp`: which API; `chat` by default.
    pub api: Option<Api>,
    /// Address up to and without the API's own path, such as `https://api.openai.com/v1`. Required for `azure`,
    /// `litellm`, `vllm`; refused for `http` and `command`.
    pub base_url: Option<String>,
    /// Name of the environment variable that holds the key; each profile has its own default. Not for `http` and
    /// `command`, which name theirs in `env`.
    pub key_env: Option<String>,
    /// More request headers. `${NAME}` is replaced by the variable if `env` lists it.
    pub headers: BTreeMap<String, String>,
    /// Environment variables that headers, `http` templates and the local program may see, all treated as secrets.
    pub env: Vec<String>,
    /// More fields of the request body, merged deeply over ours. Not for `http` and `command`.
    pub extra_body: Map<String, Value>,
    /// `openai` only: organisation id.
    pub organization: Option<String>,
    /// `openai` only: project id.
    pub project: Option<String>,
    /// `azure`: `api-version` of the classic deployment path; `anthropic`: the `anthropic-version` header.
    pub api_version: Option<String>,
    /// `bedrock` only: AWS region, when `base_url` is not given.
    pub region: Option<String>,
    /// The model a deployment or alias stands for, to look up capabilities and prices: `gpt-6-luna`.
    pub family: Option<String>,
    /// Most tokens a reply may have, reasoning included. Default: 4096 for the judge, 2048 for the user model, for
    /// the candidate only what the provider demands. Not for `http` and `command`.
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature, not sent unless given. Not for `http` and `command`.
    pub temperature: Option<f64>,
    /// Nucleus sampling share, not sent unless given. Not for `http` and `command`.
    pub top_p: Option<f64>,
    /// Sampling seed, not sent unless given. Not for `anthropic`, `bedrock`, `http` and `command`.
    pub seed: Option<u64>,
    /// Reasoning effort, not sent unless given. Not for `http` and `command`.
    pub effort: Option<Effort>,
    /// What the model can do, where the table is silent or wrong.
    pub capabilities: CapabilityOverrides,
    /// Marks shared prefixes for the provider's prompt cache; on by default.
    pub prompt_cache: Option<bool>,
    /// The user's word that the model id names one fixed version. By default only ids that say so are taken for
    /// fixed.
    pub pinned: Option<bool>,
    /// Longest wait for a connection; 10 s by default.
    pub connect_timeout: Option<Duration>,
    /// Longest time of one attempt; 120 s by default, 600 s from effort `high` on.
    pub timeout: Option<Duration>,
    /// Longest silence while a reply arrives; 60 s by default.
    pub idle_timeout: Option<Duration>,
    /// Attempts after the first; 3 by default, 0 means one request. A refusal of one call among too many does not count.
    pub max_retries: Option<u32>,
    /// Longest wait a server may ask for before the call gives up; 120 s by default.
    pub max_retry_wait: Option<Duration>,
    /// Calls of this role at the same time; 64 by default.
    pub max_concurrency: Option<u32>,
    /// `http` only, and required there.
    pub http: Option<HttpSettings>,
    /// `command` only, and required there.
    pub command: Option<CommandSettings>,
}

/// One request to a team's own chatbot. URL, headers and body are handlebars templates in strict mode over
/// `user_text`, `history` (`[{role, content}]`), `system`, `conversation_id`, `session_id`, `turn` and `env`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HttpCall {
    /// HTTP method; `POST` by default.
    pub method: String,
    /// Absolute address.
    pub url: String,
    /// Headers.
    pub headers: BTreeMap<String, String>,
    /// Body; strings go in through the helper `json`, as in `{"text": {{json user_text}}}`.
    pub body: Option<String>,
}

/// How a chatbot streams a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamKind {
    /// One JSON or text body.
    #[default]
    None,
    /// Server-sent events.
    Sse,
    /// One JSON object a line.
    Ndjson,
}

impl StreamKind {
    /// All words.
    pub const ALL: [Self; 3] = [Self::None, Self::Sse, Self::Ndjson];

    /// The word of the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sse => "sse",
            Self::Ndjson => "ndjson",
        }
    }

    /// Reads the word of the configuration.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// How the end of a stream is known. Without an end mark a cut stream looks like a short reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamEnd {
    /// A data line with this text, such as `[DONE]`.
    Data(String),
    /// A server-sent event with this name.
    Event(String),
    /// A JSON pointer that is present and neither null nor false in the last object.
    Pointer(String),
    /// The connection's regular end (chunked or with a length).
    Close,
}

/// Reading of a streamed reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamSettings {
    /// Framing.
    pub kind: StreamKind,
    /// Server-sent events with another name are skipped; all are read when absent.
    pub event: Option<String>,
    /// JSON pointer to the piece of text in each object; an object without it is skipped.
    pub delta: String,
    /// End mark.
    pub end: StreamEnd,
    /// JSON pointer to an error in an object.
    pub error: Option<String>,
}

/// A team's own chatbot behind HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HttpSettings {
    /// Opens a conversation, if the chatbot has such a call.
    pub start: Option<HttpCall>,
    /// JSON pointer to the conversation id in the reply of `start`; required when `turn` uses `session_id`.
    pub session_id: Option<String>,
    /// JSON pointers to a greeting in the reply of `start`.
    pub greeting: Vec<String>,
    /// Sends one message.
    pub turn: HttpCall,
    /// JSON pointers to the reply's text, the first that hits counts; `-1` is the last element of an array, `*`
    /// every element. Empty: the whole body is the text.
    pub reply: Vec<String>,
    /// Streaming of the reply.
    pub stream: Option<StreamSettings>,
    /// Ends a conversation; its failure only warns.
    pub end: Option<HttpCall>,
    /// JSON pointers to token counts.
    pub usage_input: Option<String>,
    /// JSON pointer to the output token count.
    pub usage_output: Option<String>,
    /// JSON pointer that marks a refusal or block when it is present and neither null nor false.
    pub refusal: Option<String>,
    /// JSON pointer to the model or build that answered.
    pub model: Option<String>,
    /// Header that carries a key under which the chatbot takes a message once, such as `Idempotency-Key`. With it
    /// a turn is retried like a stateless call.
    pub idempotency_header: Option<String>,
    /// Keeps the cookies of one conversation.
    pub cookies: bool,
}

/// How many processes of a local program serve the conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandLifetime {
    /// A fresh process for each conversation.
    #[default]
    PerConversation,
    /// One process for all of them, told apart by `conversation_id`.
    Shared,
}

impl CommandLifetime {
    /// All words.
    pub const ALL: [Self; 2] = [Self::PerConversation, Self::Shared];

    /// The word of the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::PerConversation => "per-conversation",
            Self::Shared => "shared",
        }
    }

    /// Reads the word of the configuration.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lifetime| lifetime.word() == word)
    }
}

/// A local program that speaks JSON lines over its standard input and output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommandSettings {
    /// Program and arguments; no shell in between.
    pub argv: Vec<String>,
    /// Working directory, from the folder of the configuration; that of the process by default.
    pub directory: Option<PathBuf>,
    /// Processes.
    pub lifetime: CommandLifetime,
}
