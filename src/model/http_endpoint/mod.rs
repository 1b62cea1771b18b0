//! A team's own chatbot behind HTTP.

mod pointer;
mod reading;
mod templates;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::caller::{Caller, Plan, Repeat, Returned};
use super::endpoint::{Adapted, author_word};
use super::prices::PriceTable;
use super::provider::price;
use super::text::Hidden;
use super::wire::{Answer, Fault, Headers, RawReply, WireCall};
use super::{
    Author, ChatModel, ChatRequest, Exchange, Failure, ModelError, ModelEvent, ModelIdentity, Outcome, Role,
    Wanted,
};
use crate::config::model::HttpSettings;
pub(crate) use templates::Templates;
use templates::{Part, Values};

/// What is known about a conversation that is open.
#[derive(Clone, Debug)]
struct Session {
    /// Our id of it, new for each start, so that a chatbot with a memory does not know an earlier try or run.
    conversation: String,
    /// The chatbot's own id.
    id: Option<String>,
    cookies: Hidden<BTreeMap<String, String>>,
    turns: u64,
    /// It has greeted.
    greeted: bool,
    /// The step of the latest turn and what came back.
    last: Option<(String, Exchange)>,
}

impl Session {
    /// What a chatbot that keeps the conversation has answered to this step already. Another draw would be a
    /// second message of the person.
    fn answered(&self, request: &ChatRequest) -> Option<Exchange> {
        let (step, exchange) = self.last.as_ref()?;
        let again = request.id.draw > 1 && *step == request.id.step;
        again.then(|| Exchange { usage: None, cost: None, attempts: 0, ..exchange.clone() })
    }
}

/// How many replies of the called model the request holds: what a chatbot that keeps the conversation must know.
pub(super) fn own_replies(request: &ChatRequest) -> u64 {
    request.messages.iter().map(|message| u64::from(message.author == Author::Assistant)).sum()
}

/// The chatbot.
#[derive(Debug)]
pub(crate) struct HttpModel {
    identity: ModelIdentity,
    role: Role,
    settings: HttpSettings,
    templates: Templates,
    caller: Caller,
    prices: Arc<PriceTable>,
    sessions: Mutex<BTreeMap<String, Session>>,
    /// A turn has worked, so the key and the address are right.
    worked: AtomicBool,
}

impl HttpModel {
    pub(crate) fn new(
        identity: ModelIdentity,
        role: Role,
        settings: HttpSettings,
        templates: Templates,
        caller: Caller,
        prices: Arc<PriceTable>,
    ) -> Self {
        Self {
            identity,
            role,
            settings,
            templates,
            caller,
            prices,
            sessions: Mutex::default(),
            worked: AtomicBool::new(false),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn values(&self, session: &Session) -> Values {
        Values {
            user_text: String::new(),
            history: json!([]),
            messages: json!([]),
            system: String::new(),
            conversation_id: session.conversation.clone(),
            session_id: session.id.clone(),
            turn: session.turns + 1,
            env: self.templates.environment(),
        }
    }

    /// Renders a call and adds the conversation's cookies and the key under which a repeat is recognised.
    fn request(&self, part: Part, values: &Values, session: &Session) -> Result<WireCall, Fault> {
        let mut call = self
            .templates
            .render(part, &self.settings, values)
            .map_err(|message| Fault::new(Failure::BadRequest, message))?;
        if !session.cookies.0.is_empty() {
            let all =
                session.cookies.0.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
            call.headers.set("cookie", all.join("; "));
        }
        if let Some(header) = &self.settings.idempotency_header {
            call.headers.set(header, format!("{}-{}", session.conversation, values.turn));
        }
        Ok(call)
    }

    fn repeat(&self) -> Repeat {
        if self.templates.is_stateful() && self.settings.idempotency_header.is_none() {
            Repeat::AddsMessage
        } else {
            Repeat::Harmless
        }
    }

    fn not_known(&self) -> ModelError {
        let message = "the conversation began in an earlier run, and the chatbot does not know it".to_owned();
        ModelError { role: self.role, failure: Failure::Restart, message, attempts: 0 }
    }

    async fn start(&self, conversation: &str) -> Result<(Session, Option<String>), ModelError> {
        let nonce = RandomState::new().hash_one(conversation);
        let mut session = Session {
            conversation: format!("{conversation}-{nonce:016x}"),
            id: None,
            cookies: Hidden::default(),
            turns: 0,
            greeted: false,
            last: None,
        };
        self.sessions().remove(conversation);
        let mut greeting = None;
        if self.settings.start.is_some() {
            let values = self.values(&session);
            let build = |_: &Adapted| self.request(Part::Start, &values, &session);
            let read = Mutex::new((None, None));
            let parse = |reply: &RawReply, now: SystemTime| {
                let both = reading::start(&self.settings, reply, now)?;
                *read.lock().unwrap_or_else(PoisonError::into_inner) = both;
                Ok(Answer::bare(Outcome::Reply, "started"))
            };
            // An opened conversation that nobody uses is no second message.
            let plan = Plan {
                build: &build,
                parse: &parse,
                complete: None,
                repeat: Repeat::Harmless,
                behind: 0,
                wanted: Wanted::Always,
            };
            let returned = self.caller.call(&plan).await?;
            let (id, said) = read.into_inner().unwrap_or_else(PoisonError::into_inner);
            session.id = id;
            session.greeted = said.is_some();
            greeting = said;
            self.keep_cookies(&mut session, &returned.headers);
        }
        self.sessions().insert(conversation.to_owned(), session.clone());
        Ok((session, greeting))
    }

    fn keep_cookies(&self, session: &mut Session, headers: &Headers) {
        if !self.settings.cookies {
            return;
        }
        for (_, line) in headers.iter().filter(|(name, _)| *name == "set-cookie") {
            let pair = line.split(';').next().unwrap_or(line);
            if let Some((name, value)) = pair.split_once('=') {
                session.cookies.0.insert(name.trim().to_owned(), value.trim().to_owned());
            }
        }
    }

    async fn turn(&self, session: &mut Session, request: &ChatRequest) -> Result<Returned, ModelError> {
        let messages: Vec<Value> = request
            .messages
            .iter()
            .map(|message| json!({"role": author_word(message.author), "content": &*message.text}))
            .collect();
        let earlier = messages.len().saturating_sub(1);
        let values = Values {
            user_text: request.messages.last().map(|message| message.text.to_string()).unwrap_or_default(),
            history: messages.iter().take(earlier).cloned().collect(),
            messages: messages.into(),
            system: request.system.as_deref().unwrap_or("").to_owned(),
            ..self.values(session)
        };
        let known = session.turns > 0 && self.templates.is_stateful();
        let build = |_: &Adapted| self.request(Part::Turn, &values, session);
        let parse = |reply: &RawReply, now: SystemTime| {
            if known && matches!(reply.status, 404 | 410) {
                let message =
                    format!("status {}: the chatbot no longer knows the conversation", reply.status);
                return Err(Fault::new(Failure::Restart, message));
            }
            let read = reading::turn(&self.settings, reply, now);
            if reply.status == 403 && self.worked.load(Ordering::Relaxed) {
                // A firewall that dislikes one message is no reason to end the run.
                return read.map_err(|fault| Fault::new(Failure::BadRequest, fault.message));
            }
            read
        };
        let stream = self.settings.stream.as_ref();
        let complete = |body: &[u8]| stream.is_some_and(|stream| reading::is_complete(stream, body));
        let complete: super::transport::Complete<'_> = &complete;
        let plan = Plan {
            build: &build,
            parse: &parse,
            complete: stream.map(|_| complete),
            repeat: self.repeat(),
            behind: request.behind(),
            wanted: request.wanted.clone(),
        };
        let returned = self.caller.call(&plan).await?;
        session.turns += 1;
        self.worked.store(true, Ordering::Relaxed);
        self.keep_cookies(session, &returned.headers);
        Ok(returned)
    }
}

impl ChatModel for HttpModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        Box::pin(async move {
            let conversation = &request.id.conversation;
            // A greeting is part of the conversation only where the chatbot speaks first.
            let opened = request.messages.first().is_some_and(|first| first.author == Author::Assistant);
            let known = self.sessions().get(conversation).cloned();
            let mut session = match known {
                Some(session) => session,
                None if self.templates.is_stateful() && own_replies(request) > u64::from(opened) => {
                    return Err(self.not_known());
                }
                None => self.start(conversation).await?.0,
            };
            if self.templates.is_stateful() {
                if let Some(exchange) = session.answered(request) {
                    return Ok(exchange);
                }
                if own_replies(request) > session.turns + u64::from(session.greeted && opened) {
                    return Err(self.not_known());
                }
            }
            let Returned { answer, attempts, .. } = self.turn(&mut session, request).await?;
            let names = [answer.model.as_deref(), Some(self.identity.model.as_str()), None];
            let cost = price(&self.prices, &self.identity.provider, names, answer.usage.as_ref());
            let exchange = answer.into_exchange(cost, attempts, &self.caller.secrets);
            self.caller.meter.record(self.role, &self.identity, &request.id, &exchange);
            session.last = Some((request.id.step.clone(), exchange.clone()));
            self.sessions().insert(conversation.clone(), session);
            Ok(exchange)
        })
    }

    fn open<'a>(&'a self, conversation: &'a str) -> BoxFuture<'a, Result<Option<String>, ModelError>> {
        Box::pin(async move { Ok(self.start(conversation).await?.1) })
    }

    fn opens(&self) -> bool {
        self.settings.start.is_some()
    }

    fn close<'a>(&'a self, conversation: &'a str) -> BoxFuture<'a, Result<(), ModelError>> {
        Box::pin(async move {
            let Some(session) = self.sessions().remove(conversation) else { return Ok(()) };
            if self.settings.end.is_none() {
                return Ok(());
            }
            let values = self.values(&session);
            let build = |_: &Adapted| self.request(Part::End, &values, &session);
            let parse = |reply: &RawReply, _: SystemTime| match reply.status {
                200..300 => Ok(Answer::bare(Outcome::Reply, "ended")),
                status => Err(Fault::new(Failure::BadRequest, format!("status {status}"))),
            };
            let plan = Plan {
                build: &build,
                parse: &parse,
                complete: None,
                repeat: Repeat::AddsMessage,
                behind: 0,
                wanted: Wanted::Always,
            };
            if let Err(error) = self.caller.call(&plan).await {
                let message =
                    format!("the conversation was not ended on the chatbot's side: {}", error.message);
                self.caller.events.send(ModelEvent::Warning { role: self.role, message });
            }
            Ok(())
        })
    }
}
