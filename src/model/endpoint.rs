//! A role's model with everything resolved, and what the wires share when they build a request.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::capabilities::{Capabilities, Sampling};
use super::profiles::{Auth, Profile, Quirk};
use super::text::Hidden;
use super::wire::{Headers, Param, WireCall};
use super::{AnswerFormat, Author, ChatRequest, Role};
use crate::config::model::Effort;

/// A model with its address, key and parameters.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) role: Role,
    pub(crate) profile: Profile,
    /// Address without a trailing slash.
    pub(crate) base: String,
    pub(crate) model: String,
    pub(crate) key: Option<Hidden<String>>,
    pub(crate) headers: Hidden<Vec<(String, String)>>,
    pub(crate) extra_body: Map<String, Value>,
    pub(crate) api_version: Option<String>,
    pub(crate) capabilities: Capabilities,
    pub(crate) max_output: Option<u32>,
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) seed: Option<u64>,
    pub(crate) effort: Option<Effort>,
    pub(crate) prompt_cache: bool,
}

/// What a provider has refused so far: not sent again in this run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Adapted {
    /// Parameters left out.
    pub(crate) left_out: BTreeSet<Param>,
    /// The name under which the output cap goes, when the provider asked for another one.
    pub(crate) max_field: Option<&'static str>,
}

impl Endpoint {
    /// Whether this profile has the quirk.
    pub(crate) fn has(&self, quirk: Quirk) -> bool {
        self.profile.quirks.contains(&quirk)
    }

    /// The output cap of this request, as far as one is sent.
    pub(crate) fn output_cap(&self, request: &ChatRequest) -> Option<u32> {
        let cap = self.max_output?.saturating_mul(request.output_scale.max(1));
        Some(cap.min(self.capabilities.max_output.unwrap_or(u32::MAX).max(self.max_output?)))
    }

    /// The schema of the wanted answer, when the provider can be held to one.
    pub(crate) fn schema(&self, request: &ChatRequest) -> Option<Value> {
        request.answer.as_ref().filter(|_| self.capabilities.schema).map(answer_schema)
    }

    /// Starts a call to a path under the base address.
    pub(crate) fn call<'a>(&'a self, path: &str, adapted: &'a Adapted) -> Draft<'a> {
        let mut headers = Headers::default();
        headers.set("content-type", "application/json");
        headers.set("accept", "application/json");
        if let Some(key) = &self.key {
            match &self.profile.auth {
                Auth::None => {}
                Auth::Bearer => headers.set("authorization", format!("Bearer {}", key.0)),
                Auth::Header(name) => headers.set(name, key.0.clone()),
            }
        }
        Draft {
            endpoint: self,
            adapted,
            url: format!("{}{path}", self.base),
            headers,
            body: json!({}),
            sent: Vec::new(),
        }
    }

    /// Whether sampling parameters go out at all with this effort.
    pub(crate) fn takes_sampling(&self) -> bool {
        match self.capabilities.sampling {
            Sampling::Yes => true,
            Sampling::No => false,
            Sampling::WithoutReasoning => self.effort == Some(Effort::None),
        }
    }
}

/// A call that is being built.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    endpoint: &'a Endpoint,
    adapted: &'a Adapted,
    url: String,
    headers: Headers,
    body: Value,
    sent: Vec<(Param, &'static str)>,
}

impl Draft<'_> {
    /// Sets a body field; dots go one object deeper.
    pub(crate) fn put(&mut self, path: &str, value: impl Into<Value>) {
        let mut value = value.into();
        for part in path.rsplit('.') {
            value = Value::Object(Map::from_iter([(part.to_owned(), value)]));
        }
        merge(&mut self.body, value);
    }

    /// Sets a parameter that the provider may refuse, unless it has.
    pub(crate) fn param(&mut self, param: Param, path: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value
            && !self.adapted.left_out.contains(&param)
        {
            self.put(path, value);
            self.sent.push((param, path));
        }
    }

    /// Sets the sampling parameters that the model takes.
    pub(crate) fn sampling(
        &mut self,
        temperature: &'static str,
        top_p: &'static str,
        seed: Option<&'static str>,
    ) {
        if self.endpoint.takes_sampling() {
            self.param(Param::Temperature, temperature, self.endpoint.temperature);
            self.param(Param::TopP, top_p, self.endpoint.top_p);
        }
        if let Some(seed) = seed {
            self.param(Param::Seed, seed, self.endpoint.seed);
        }
    }

    /// Whether marks for the prompt cache are wanted and not refused.
    pub(crate) fn caches(&self) -> bool {
        self.endpoint.prompt_cache && !self.adapted.left_out.contains(&Param::PromptCache)
    }

    /// Notes a parameter that was set by hand.
    pub(crate) fn note(&mut self, param: Param, name: &'static str) {
        self.sent.push((param, name));
    }

    /// Sets a header.
    pub(crate) fn header(&mut self, name: &str, value: impl Into<String>) {
        self.headers.set(name, value);
    }

    /// Adds the configured headers and body fields, which win.
    pub(crate) fn finish(mut self) -> WireCall {
        for (name, value) in &self.endpoint.headers.0 {
            self.headers.set(name, value.clone());
        }
        merge(&mut self.body, Value::Object(self.endpoint.extra_body.clone()));
        let method = "POST".to_owned();
        WireCall {
            method,
            url: self.url,
            headers: self.headers,
            body: text_of(&self.body).into(),
            sent: self.sent,
        }
    }
}

/// A body as it goes out. Bytes take it in one go, where a string is formatted piece by piece; a value can be written
/// either way.
fn text_of(body: &Value) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_else(|_| body.to_string().into_bytes())
}

/// Lays `over` on `base`: objects are merged, everything else is replaced.
fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                merge(base.entry(name).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

/// The schema of a closed answer, within the strict subset of all providers.
pub(crate) fn answer_schema(answer: &AnswerFormat) -> Value {
    json!({
        "type": "object",
        "properties": {
            "answer": {"type": "string", "enum": answer.options},
            "reasoning": {"type": "string"},
        },
        "required": ["answer", "reasoning"],
        "additionalProperties": false,
    })
}

/// Name of the schema where a provider wants one.
pub(crate) const SCHEMA_NAME: &str = "answer";

/// Stands first where a provider wants the first message from the user and the conversation starts otherwise.
pub(crate) const OPENING: &str = "(The conversation starts.)";

/// The messages for providers that want strict alternation, the user first.
pub(crate) fn alternating(request: &ChatRequest) -> Vec<(Author, String)> {
    let mut turns: Vec<(Author, String)> = Vec::with_capacity(request.messages.len() + 1);
    for message in request.messages.iter().filter(|message| !message.text.is_empty()) {
        match turns.last_mut() {
            Some((author, text)) if *author == message.author => {
                text.push_str("\n\n");
                text.push_str(&message.text);
            }
            _ => turns.push((message.author, message.text.to_string())),
        }
    }
    if turns.first().is_none_or(|(author, _)| *author == Author::Assistant) {
        turns.insert(0, (Author::User, OPENING.to_owned()));
    }
    turns
}

/// The word for a side that most providers use.
pub(crate) fn author_word(author: Author) -> &'static str {
    match author {
        Author::User => "user",
        Author::Assistant => "assistant",
    }
}
