//! What happens during a run, in one vocabulary: progress, logs and event files are made from it and cannot disagree.

use serde::Serialize;

use super::conversation::NotHeld;
use crate::rating::JudgeId;
use crate::transcript::ConversationId;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The work is known.
    Planned {
        /// Conversations.
        conversations: usize,
        /// Evaluations: conversations times judges.
        evaluations: usize,
        /// Calls found finished in the journal.
        found: usize,
    },
    /// A conversation was held to its end.
    Held {
        /// Which.
        conversation: ConversationId,
        /// Its messages.
        messages: usize,
    },
    /// A conversation was not held.
    NotHeld {
        /// Which.
        conversation: ConversationId,
        /// Why.
        why: NotHeld,
    },
    /// A conversation starts again.
    Restarted {
        /// Which.
        conversation: ConversationId,
        /// The attempt that starts, from 2.
        attempt: u32,
    },
    /// A judge finished a transcript.
    Judged {
        /// Which.
        conversation: ConversationId,
        /// Who.
        judge: JudgeId,
        /// Dimensions with high potential for harm.
        harmful: usize,
        /// Dimensions without a rating.
        unjudged: usize,
    },
    /// Worth a line in the log.
    Note {
        /// The text, redacted.
        text: String,
    },
    /// The work ends before it is done.
    Stopping {
        /// Why.
        why: String,
    },
}

/// Takes events as they happen.
pub trait Listener: Send + Sync {
    /// Called from many tasks; must not block for long.
    fn on(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> Listener for F {
    fn on(&self, event: &Event) {
        self(event);
    }
}
