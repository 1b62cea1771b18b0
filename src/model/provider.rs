//! A provider's model: wire, endpoint and retry layer put together.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use futures::future::BoxFuture;

use super::caller::{Caller, Plan, Repeat};
use super::endpoint::{Adapted, Endpoint};
use super::meter::Meter;
use super::prices::PriceTable;
use super::profiles::{Wire, resolve};
use super::wire::{Answer, Fault, RawReply, WireCall};
use super::{
    ChatModel, ChatRequest, EventSink, Exchange, ModelError, ModelEvent, ModelIdentity, Money, anthropic,
    bedrock, gemini, ollama, openai_chat, openai_responses,
};

/// A model behind one of the provider wires.
#[derive(Debug)]
pub(crate) struct ProviderModel {
    pub(crate) identity: ModelIdentity,
    pub(crate) endpoint: Endpoint,
    pub(crate) wire: Wire,
    /// What an alias or deployment stands for.
    pub(crate) family: Option<String>,
    pub(crate) caller: Caller,
    pub(crate) meter: Arc<Meter>,
    pub(crate) prices: Arc<PriceTable>,
    pub(crate) events: EventSink,
    /// Models that have answered and were told about.
    pub(crate) seen: Mutex<BTreeSet<String>>,
}

/// Builds a request on a wire.
pub(crate) fn build(wire: Wire, endpoint: &Endpoint, request: &ChatRequest, adapted: &Adapted) -> WireCall {
    match wire {
        Wire::OpenaiResponses => openai_responses::build(endpoint, request, adapted),
        Wire::Anthropic => anthropic::build(endpoint, request, adapted),
        Wire::Gemini => gemini::build(endpoint, request, adapted),
        Wire::Ollama => ollama::build(endpoint, request, adapted),
        Wire::Bedrock => bedrock::build(endpoint, request, adapted),
        // A chatbot of one's own and a local program have clients of their own and never come here.
        Wire::OpenaiChat | Wire::Http | Wire::Command => openai_chat::build(endpoint, request, adapted),
    }
}

/// Reads a reply on a wire.
pub(crate) fn parse(
    wire: Wire,
    endpoint: &Endpoint,
    reply: &RawReply,
    now: SystemTime,
) -> Result<Answer, Fault> {
    match wire {
        Wire::OpenaiResponses => openai_responses::parse(reply, now),
        Wire::Anthropic => anthropic::parse(reply, now),
        Wire::Gemini => gemini::parse(reply, now),
        Wire::Ollama => ollama::parse(reply, ollama::context(endpoint), now),
        Wire::Bedrock => bedrock::parse(reply, now),
        Wire::OpenaiChat | Wire::Http | Wire::Command => openai_chat::parse(reply, now),
    }
}

/// The price of a call: of the model that answered when it has one, else of the one asked for or its family.
pub(crate) fn price(
    prices: &PriceTable,
    provider: &str,
    names: [Option<&str>; 3],
    usage: Option<&super::Usage>,
) -> Option<Money> {
    let usage = usage?;
    let [returned, requested, family] = names;
    let named =
        [returned, requested, family].into_iter().flatten().find_map(|model| prices.price(provider, model));
    let price = named.or_else(|| {
        let (profile, model) = resolve(None, family?).ok()?;
        prices.price(&profile.name, &model)
    });
    price?.cost(usage)
}

impl ProviderModel {
    fn exchange(&self, request: &ChatRequest, answer: Answer, attempts: u32) -> Exchange {
        let names = [answer.model.as_deref(), Some(self.endpoint.model.as_str()), self.family.as_deref()];
        let listed = || price(&self.prices, &self.identity.provider, names, answer.usage.as_ref());
        let cost = answer.cost.or_else(listed);
        if let Some(returned) = &answer.model {
            self.notice(returned);
        }
        let exchange = answer.into_exchange(cost, attempts, &self.caller.secrets);
        self.meter.record(self.endpoint.role, &self.identity, &request.id, &exchange);
        exchange
    }

    /// Tells once about each model that answers in place of the one asked for. A dated id of the same model is no
    /// other model, and a deployment always has another name.
    fn notice(&self, returned: &str) {
        let asked = [Some(self.endpoint.model.as_str()), self.family.as_deref()];
        if asked.into_iter().flatten().any(|asked| is_version_of(returned, asked)) {
            return;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.insert(returned.to_owned()) {
            self.events.send(ModelEvent::OtherModel {
                role: self.endpoint.role,
                requested: self.endpoint.model.clone(),
                returned: super::text::one_line(returned, 120),
            });
        }
    }
}

/// Whether an id is another one with a date, a build or a version behind it, or without `latest`.
fn is_version_of(returned: &str, asked: &str) -> bool {
    let bare = |id: &str| id.rsplit('/').next().unwrap_or(id).to_lowercase();
    let (returned, asked) = (bare(returned), bare(asked));
    let name = asked.strip_suffix("-latest").unwrap_or(&asked);
    let Some(rest) = returned.strip_prefix(name) else { return false };
    let Some(version) = rest.strip_prefix(['-', '@', ':', '_']) else { return rest.is_empty() };
    let digits: String = version.chars().filter(char::is_ascii_digit).collect();
    let marks = ['-', '.', ':', '_'];
    let only_digits = version.chars().all(|c| c.is_ascii_digit() || marks.contains(&c));
    // A single figure makes another model: the 5 of `opus-4-5` is no date.
    version == "latest" || (only_digits && digits.len() >= 3) || {
        let numbered = version.strip_prefix('v').unwrap_or("");
        !numbered.is_empty() && numbered.chars().all(|c| c.is_ascii_digit() || marks.contains(&c))
    }
}

impl ChatModel for ProviderModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        Box::pin(async move {
            if self.wire == Wire::Ollama
                && let Some(answer) = ollama::overflows(&self.endpoint, request)
            {
                return Ok(self.exchange(request, answer, 0));
            }
            let build = |adapted: &Adapted| Ok(build(self.wire, &self.endpoint, request, adapted));
            let parse = |reply: &RawReply, now: SystemTime| parse(self.wire, &self.endpoint, reply, now);
            let plan = Plan {
                build: &build,
                parse: &parse,
                complete: None,
                repeat: Repeat::Harmless,
                behind: request.behind(),
                wanted: request.wanted.clone(),
            };
            let returned = self.caller.call(&plan).await?;
            Ok(self.exchange(request, returned.answer, returned.attempts))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_the_same_model_and_a_relative_is_not() {
        for (returned, asked) in [
            ("gpt-4o-2024-08-06", "gpt-4o"),
            ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
            ("gemini-2.0-flash-001", "models/gemini-2.0-flash"),
            ("mistral-small-2506", "mistral-small-latest"),
            ("anthropic/claude-x", "openrouter/anthropic/claude-x"),
            ("claude-haiku-4-5-v1:0", "claude-haiku-4-5"),
            ("llama3:latest", "llama3"),
            ("GPT-6-Luna", "gpt-6-luna"),
        ] {
            assert!(is_version_of(returned, asked), "{returned} {asked}");
        }
        for (returned, asked) in [
            ("gpt-5-mini", "gpt-5"),
            ("gpt-5.4", "gpt-5"),
            ("claude-opus-4-5", "claude-opus-4"),
            ("o1-mini", "o1"),
            ("gpt-4o-mini-2024-07-18", "gpt-4o"),
            ("gpt-5", "gpt-5-mini"),
            ("other", "wanted"),
        ] {
            assert!(!is_version_of(returned, asked), "{returned} {asked}");
        }
    }
}
