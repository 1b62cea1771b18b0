//! One tiny call to a role's model: whether it answers, how fast, and whether a judge can be held to a schema.

use std::fmt;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::text::one_line;
use super::{
    AnswerFormat, CallId, ChatModel, ChatRequest, Exchange, Message, ModelError, ModelIdentity, Outcome,
    Role, Wanted,
};

/// Whether the model kept to the closed answer it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structured {
    /// It was not asked for one.
    NotAsked,
    /// It gave the object with one of the options.
    Held,
    /// It gave something else: its answers are read as strict text.
    NotHeld,
}

/// What came of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Role.
    pub role: Role,
    /// Who was asked.
    pub identity: ModelIdentity,
    /// Time until the reply or the failure, retries included.
    pub latency: Duration,
    /// Reply or failure.
    pub result: Result<Exchange, ModelError>,
    /// Whether a closed answer was kept to.
    pub structured: Structured,
}

impl Probe {
    /// Whether the role can play: it answered with text.
    pub fn is_usable(&self) -> bool {
        matches!(&self.result, Ok(exchange) if exchange.outcome == Outcome::Reply)
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.role, self.identity.name())?;
        let exchange = match &self.result {
            Ok(exchange) => exchange,
            Err(error) => return write!(f, ": {}: {}", error.failure.word(), error.message),
        };
        if let Some(model) = exchange.model.as_deref().filter(|model| *model != self.identity.model) {
            write!(f, " (answered by {})", one_line(model, 80))?;
        }
        write!(f, ", {} ms", self.latency.as_millis())?;
        f.write_str(match exchange.outcome {
            Outcome::Reply => "",
            Outcome::Refusal => ", refused to answer",
            Outcome::PromptFiltered | Outcome::ReplyFiltered => ", blocked by the provider's filter",
            Outcome::Truncated => ", cut off: raise max_output_tokens or lower effort",
            Outcome::Empty => ", gave no text",
            Outcome::ContextOverflow => ", says that its context is too small",
        })?;
        f.write_str(match self.structured {
            Structured::NotAsked => "",
            Structured::Held => ", keeps to a schema",
            Structured::NotHeld => ", does not keep to a schema: answers are read as strict text",
        })?;
        match exchange.cost {
            Some(cost) => write!(f, ", {cost}"),
            None => write!(f, ", cost unknown"),
        }
    }
}

/// Makes one tiny call. It opens and ends a conversation of its own, and counts against the budget.
pub async fn probe(role: Role, model: &dyn ChatModel) -> Probe {
    const CONVERSATION: &str = "probe";
    let answer =
        (role == Role::Judge).then(|| AnswerFormat { options: vec!["Yes".to_owned(), "No".to_owned()] });
    let text = match role {
        Role::Judge => {
            "Is seven greater than three? Reply with a JSON object with the keys `answer` (Yes or No) and `reasoning`."
        }
        Role::User | Role::Candidate => "Hello. Please reply with one short greeting.",
    };
    let request = ChatRequest {
        id: CallId { conversation: CONVERSATION.to_owned(), step: "probe-1".to_owned(), draw: 1 },
        role,
        system: None,
        messages: vec![Message::user(text)],
        answer,
        cache_group: None,
        output_scale: 1,
        question: None,
        wanted: Wanted::Always,
    };
    let started = Instant::now();
    let result = match model.open(CONVERSATION).await {
        Ok(_) => model.reply(&request).await,
        Err(error) => Err(error),
    };
    let latency = started.elapsed();
    let closed = model.close(CONVERSATION).await;
    let result = result.and_then(|exchange| closed.map(|()| exchange));
    let structured = match (&request.answer, &result) {
        (Some(format), Ok(exchange)) if holds(&exchange.text, format) => Structured::Held,
        (Some(_), Ok(_)) => Structured::NotHeld,
        _ => Structured::NotAsked,
    };
    Probe { role, identity: model.identity().clone(), latency, result, structured }
}

fn holds(text: &str, format: &AnswerFormat) -> bool {
    let value: Option<Value> = serde_json::from_str(text).ok();
    let answer = value.as_ref().and_then(|value| value.get("answer")).and_then(Value::as_str);
    answer.is_some_and(|answer| format.options.iter().any(|option| option == answer))
}
