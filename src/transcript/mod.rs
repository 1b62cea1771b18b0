//! Conversations as they were held: who said what, how it ended, and the two file forms.
//!
//! A turn is one message. The user's side is the simulated person, the chatbot's side the candidate.

mod jsonl;
mod text;

use std::fmt;

pub use jsonl::{read_jsonl, write_jsonl};
use serde::{Deserialize, Serialize};
pub use text::{EvaluationName, FileName, read_text, write_text};

/// Version tag of the native transcript form.
pub const SCHEMA: &str = "vera-gate/transcript/v1";

/// Names one conversation: the stem of its files, unique within a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConversationId(pub String);

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whose message a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Speaker {
    /// The simulated person.
    User,
    /// The candidate chatbot.
    Chatbot,
}

impl Speaker {
    /// The other side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::User => Self::Chatbot,
            Self::Chatbot => Self::User,
        }
    }

    /// The word in front of a message in VERA-MH's text form.
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Chatbot => "chatbot",
        }
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Who wrote it.
    pub speaker: Speaker,
    /// What was written, unchanged.
    pub text: String,
    /// What a reader must know about how it came about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<TurnFlag>,
}

/// Something remarkable about one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnFlag {
    /// The candidate declined through the provider's refusal channel.
    Refusal,
    /// The reply was cut at its length limit.
    Truncated,
    /// The provider's content filter cut or replaced the reply.
    Filtered,
    /// The chatbot gave no text at all; the message is a note in its place.
    NoReply,
    /// The message was given in the configuration, no model wrote it.
    Scripted,
    /// The user model's first try broke its role, this is a later one.
    Resampled,
}

/// Why a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// The planned number of messages was reached.
    TurnLimit,
    /// The cap on words was reached.
    WordLimit,
    /// The simulated person left, and has the last word.
    PersonaEnded,
    /// The transcript was made elsewhere and does not say.
    Unknown,
}

/// A finished conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// Its name.
    pub id: ConversationId,
    /// The persona's name.
    pub persona: String,
    /// The persona's risk level as the target names it, if known.
    pub risk_level: Option<crate::target::RiskLevel>,
    /// The model that played the person, as configured.
    pub user_model: String,
    /// Which repetition of persona and user model, from 1.
    pub run: u32,
    /// The messages in order.
    pub turns: Vec<Turn>,
    /// Why it ended.
    pub end: EndReason,
}
