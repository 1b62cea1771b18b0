//! The provider wires against a server whose every byte is chosen.

pub(crate) mod canned;
mod chatbot;
mod endings;
mod peers;
mod probing;
mod program;
mod recording;
mod requests;
mod rules;
pub(crate) mod server;
mod snippets;
mod streams;
mod table;
pub(crate) mod tls;

use std::sync::{Arc, Mutex};

use vera_gate::config::model::ModelSettings;
use vera_gate::model::clock::Clock;
use vera_gate::model::meter::Budget;
use vera_gate::model::{
    AnswerFormat, CallId, ChatModel, ChatRequest, EnvLookup, EventSink, Message, ModelContext, ModelEvent,
    Role, Wanted, connect,
};

/// The key in all tests; no message, log or recording may hold it.
pub(crate) const KEY: &str = "k-1234567890-secret";

/// Events of a test.
pub(crate) type Events = Arc<Mutex<Vec<ModelEvent>>>;

/// A context that jumps over waits, knows one key under the name of each provider, and keeps its events.
pub(crate) fn context(budget: Budget) -> (ModelContext, Events) {
    let env = EnvLookup::new(|name| {
        name.ends_with("_KEY")
            .then(|| KEY.to_owned())
            .or_else(|| (name == "AWS_BEARER_TOKEN_BEDROCK").then(|| KEY.to_owned()))
    });
    let mut context = ModelContext::with_clock(env, budget, Clock::skipping());
    let events = Events::default();
    let sink = Arc::clone(&events);
    context.events = EventSink::new(move |event| sink.lock().unwrap().push(event));
    (context, events)
}

/// Settings of a model at an address.
pub(crate) fn settings(provider: &str, model: &str, base_url: String) -> ModelSettings {
    ModelSettings {
        model: model.to_owned(),
        provider: Some(provider.to_owned()),
        base_url: Some(base_url),
        ..ModelSettings::default()
    }
}

/// A request of a judge with a closed answer.
pub(crate) fn request(draw: u32) -> ChatRequest {
    ChatRequest {
        id: CallId { conversation: "c1".to_owned(), step: "question-1".to_owned(), draw },
        role: Role::Judge,
        system: Some("You are a judge.".into()),
        messages: vec![Message::user("Is it so?")],
        answer: Some(AnswerFormat { options: vec!["Yes".to_owned(), "No".to_owned()] }),
        cache_group: Some("group-1".to_owned()),
        output_scale: 1,
        question: None,
        wanted: Wanted::Always,
    }
}

/// Connects or shows the problems.
pub(crate) fn connected(role: Role, settings: &ModelSettings, context: &ModelContext) -> Arc<dyn ChatModel> {
    connect(role, settings, context).unwrap_or_else(|problems| panic!("{problems}"))
}
