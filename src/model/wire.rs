//! What every wire speaks in: a call to send, a raw reply, an answer or a fault. Pure values, no connection.

use std::fmt;

use bytes::Bytes;
use serde_json::Value;

use super::hints::Hint;
use super::text::Secrets;
use super::{Exchange, Failure, Money, Origin, Outcome, Usage};

/// Response or request headers; names are in lower case.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Headers(Vec<(String, String)>);

impl fmt::Debug for Headers {
    /// Names only: values hold keys and cookies.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Headers {
    /// From pairs, names in any case.
    pub(crate) fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect())
    }

    /// The first value under a name in lower case.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Sets a header, replacing the one of the same name.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        let name = name.to_ascii_lowercase();
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value.into()));
    }

    /// All pairs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// A request parameter that a provider may refuse and that can be left out without changing what is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Param {
    Temperature,
    TopP,
    Seed,
    Effort,
    MaxOutput,
    PromptCache,
}

impl Param {
    /// The word of the configuration.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Temperature => "temperature",
            Self::TopP => "top_p",
            Self::Seed => "seed",
            Self::Effort => "effort",
            Self::MaxOutput => "max_output_tokens",
            Self::PromptCache => "prompt_cache",
        }
    }
}

/// One HTTP request with a JSON body.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WireCall {
    /// Method.
    pub(crate) method: String,
    /// Absolute address, without secrets.
    pub(crate) url: String,
    /// Headers, keys included.
    pub(crate) headers: Headers,
    /// Body as it goes out.
    pub(crate) body: Bytes,
    /// The droppable parameters in it, under the name that this wire gives them.
    pub(crate) sent: Vec<(Param, &'static str)>,
}

/// One HTTP response, read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawReply {
    /// Status code.
    pub(crate) status: u16,
    /// Headers.
    pub(crate) headers: Headers,
    /// Body, decompressed and within the cap.
    pub(crate) body: Vec<u8>,
}

/// What a wire reads out of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) text: String,
    pub(crate) thinking: Option<String>,
    pub(crate) finish: Option<String>,
    pub(crate) usage: Option<Usage>,
    pub(crate) cost: Option<Money>,
    pub(crate) model: Option<String>,
}

impl Answer {
    /// An answer without text.
    pub(crate) fn bare(outcome: Outcome, finish: impl Into<String>) -> Self {
        Self {
            outcome,
            text: String::new(),
            thinking: None,
            finish: Some(finish.into()),
            usage: None,
            cost: None,
            model: None,
        }
    }

    /// The exchange of a call that was made now. Secrets that a model repeats are taken out here, before anything
    /// is shown, stored or sent on.
    pub(crate) fn into_exchange(self, cost: Option<Money>, attempts: u32, secrets: &Secrets) -> Exchange {
        Exchange {
            outcome: self.outcome,
            text: secrets.redact_values(self.text),
            thinking: self.thinking.map(|text| secrets.redact_values(text)),
            finish: self.finish.map(|text| secrets.redact(&text)),
            usage: self.usage,
            cost,
            model: self.model,
            attempts,
            origin: Origin::Live,
        }
    }

    /// A reply that ended in the ordinary way: empty text is an outcome of its own.
    pub(crate) fn finished(text: String, thinking: Option<String>, finish: Option<String>) -> Self {
        let (text, inline) = split_think(text);
        let thinking = match (thinking.filter(|t| !t.is_empty()), inline) {
            (Some(a), Some(b)) => Some(format!("{a}\n{b}")),
            (a, b) => a.or(b),
        };
        let outcome = if text.trim().is_empty() { Outcome::Empty } else { Outcome::Reply };
        Self { outcome, text, thinking, finish, usage: None, cost: None, model: None }
    }
}

/// Whether another attempt can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// It cannot.
    Never,
    /// It can.
    Allowed,
    /// The answer was not the provider's protocol: one more try, then it is how that server answers.
    Once,
}

/// Why one attempt gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) failure: Failure,
    pub(crate) message: String,
    pub(crate) retry: Retry,
    pub(crate) hint: Hint,
    /// The request's form was refused: the words in which, for the search for a parameter to leave out.
    pub(crate) refused_form: Option<String>,
    /// The request surely did not reach the server.
    pub(crate) unsent: bool,
}

impl Fault {
    /// A fault with the retry rule of its kind and no hint.
    pub(crate) fn new(failure: Failure, message: impl Into<String>) -> Self {
        let retry = match failure {
            Failure::Rate | Failure::Overload | Failure::Server | Failure::Timeout | Failure::Transport => {
                Retry::Allowed
            }
            Failure::Protocol => Retry::Once,
            Failure::Tls
            | Failure::Quota
            | Failure::Auth
            | Failure::NotFound
            | Failure::BadRequest
            | Failure::Budget
            | Failure::Cancelled
            | Failure::Restart
            | Failure::Interrupted
            | Failure::Exited
            | Failure::Storage => Retry::Never,
        };
        Self {
            failure,
            message: message.into(),
            retry,
            hint: Hint::default(),
            refused_form: None,
            unsent: false,
        }
    }

    /// The reply waits for a tool that the configuration made known to the model. Nobody here runs it, so that what
    /// was written before it is not what a person would have read.
    pub(crate) fn tool() -> Self {
        Self::protocol("the model calls a tool, which nobody runs here: take the tools out of `extra_body`")
    }

    /// The answer does not follow the provider's protocol.
    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new(Failure::Protocol, message)
    }
}

/// Open models write their reasoning into the text between `<think>` marks: nobody on the other side reads it.
fn split_think(text: String) -> (String, Option<String>) {
    const OPEN: &str = "<think>";
    const CLOSE: &str = "</think>";
    let start = text.trim_start();
    // Some templates put the opening mark into the prompt, so that only the closing one comes back.
    let body = match start.strip_prefix(OPEN) {
        Some(body) => body,
        None if start.contains(CLOSE) && !start.contains(OPEN) => start,
        None => return (text, None),
    };
    match body.split_once(CLOSE) {
        Some((thinking, reply)) => (reply.trim_start().to_owned(), Some(thinking.trim().to_owned())),
        // Never closed: it was cut while thinking, and there is no reply.
        None => (String::new(), Some(body.trim().to_owned())),
    }
}

/// Whether a list at a JSON pointer has anything in it.
pub(crate) fn holds_any(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

/// A count at a JSON pointer.
pub(crate) fn count(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

/// Text at a JSON pointer.
pub(crate) fn text_at<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_reasoning_is_not_part_of_the_reply() {
        for (text, reply, thinking) in [
            ("<think>a plan</think>\n\nHello", "Hello", Some("a plan")),
            ("a plan</think>Hello", "Hello", Some("a plan")),
            ("<think>never closed", "", Some("never closed")),
            ("Hello", "Hello", None),
            ("I say <think> in the middle", "I say <think> in the middle", None),
        ] {
            let answer = Answer::finished(text.to_owned(), None, None);
            assert_eq!((answer.text.as_str(), answer.thinking.as_deref()), (reply, thinking), "{text}");
        }
    }

    #[test]
    fn a_reply_of_white_space_is_empty() {
        assert_eq!(Answer::finished(" \n".to_owned(), None, None).outcome, Outcome::Empty);
    }
}
