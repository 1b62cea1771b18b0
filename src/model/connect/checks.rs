//! What can be wrong with the settings of a role.

use super::Connecting;
use crate::config::model::{Api, Effort};
use crate::diagnostic::Code;
use crate::model::capabilities::{Capabilities, Sampling};
use crate::model::profiles::{Profile, Quirk, Wire};
use crate::model::{ModelEvent, Usage, provider};

impl Connecting<'_> {
    /// Settings that the provider does not have.
    pub(super) fn misplaced(&mut self, profile: &Profile) {
        let s = self.settings;
        let own = matches!(profile.wire, Wire::Http | Wire::Command);
        let is = |wire| profile.wire == wire;
        let has = |quirk| profile.quirks.contains(&quirk);
        let no_seed = own || is(Wire::Anthropic) || is(Wire::Bedrock) || s.api == Some(Api::Responses);
        let rules: [(&str, bool, bool); 18] = [
            (
                "api",
                s.api.is_some(),
                s.api == Some(Api::Chat) && is(Wire::OpenaiChat) || has(Quirk::Responses),
            ),
            ("base_url", s.base_url.is_some(), !own),
            ("key_env", s.key_env.is_some(), !own),
            ("headers", !s.headers.is_empty(), !own),
            ("extra_body", !s.extra_body.is_empty(), !own),
            ("organization", s.organization.is_some(), has(Quirk::Organization)),
            ("project", s.project.is_some(), has(Quirk::Organization)),
            ("api_version", s.api_version.is_some(), has(Quirk::Deployments) || is(Wire::Anthropic)),
            ("region", s.region.is_some(), is(Wire::Bedrock)),
            ("max_output_tokens", s.max_output_tokens.is_some(), !own),
            ("temperature", s.temperature.is_some(), !own),
            ("top_p", s.top_p.is_some(), !own),
            ("seed", s.seed.is_some(), !no_seed),
            ("effort", s.effort.is_some(), !own),
            ("prompt_cache", s.prompt_cache.is_some(), !own),
            ("http", s.http.is_some(), is(Wire::Http)),
            ("command", s.command.is_some(), is(Wire::Command)),
            ("idle_timeout", s.idle_timeout.is_some(), !is(Wire::Command)),
        ];
        for (name, given, allowed) in rules {
            if given && !allowed {
                let message = format!("`{name}` has no effect with provider `{}`", profile.name);
                self.error(Code::NotTogether, message, "remove it");
            }
        }
    }

    pub(super) fn ranges(&mut self) {
        let s = self.settings;
        for (name, value, most) in [("temperature", s.temperature, 2.0), ("top_p", s.top_p, 1.0)] {
            if value.is_some_and(|value| !(0.0..=most).contains(&value)) {
                self.error(Code::OutOfRange, format!("`{name}` is not between 0 and {most}"), "");
            }
        }
        for (name, value) in
            [("max_output_tokens", s.max_output_tokens), ("max_concurrency", s.max_concurrency)]
        {
            if value == Some(0) {
                self.error(Code::OutOfRange, format!("`{name}` is 0"), "");
            }
        }
    }

    /// What is asked of the model against what it is known to take.
    pub(super) fn suits(&mut self, capabilities: &Capabilities, model: &str) {
        let s = self.settings;
        if let (Some(effort), Some(allowed)) = (s.effort, &capabilities.effort)
            && !allowed.contains(&effort)
        {
            let words =
                allowed.iter().map(|word| format!("`{}`", word.word())).collect::<Vec<_>>().join(", ");
            let help = if allowed.is_empty() {
                "it takes no effort; remove it, or state `capabilities.effort`".to_owned()
            } else {
                format!("it takes {words}; or state `capabilities.effort`")
            };
            let message = format!("model `{model}` does not take effort `{}`", effort.word());
            self.error(Code::NotTogether, message, &help);
        }
        let quiet = match capabilities.sampling {
            Sampling::Yes => false,
            Sampling::No => true,
            Sampling::WithoutReasoning => s.effort != Some(Effort::None),
        };
        for (parameter, given) in [("temperature", s.temperature.is_some()), ("top_p", s.top_p.is_some())] {
            if quiet && given {
                let because = match capabilities.sampling {
                    Sampling::WithoutReasoning => format!("{model} takes it only with effort none"),
                    _ => format!("{model} does not take it"),
                };
                self.context.events.send(ModelEvent::NotSent { role: self.role, parameter, because });
            }
        }
    }

    /// A money budget can only be kept when the price is known; gateways say theirs with each reply.
    pub(super) fn priced(&mut self, profile: &Profile, model: &str) {
        let gateway = matches!(profile.name.as_str(), "openrouter" | "litellm");
        if self.context.meter.budget().dollars.is_none() || gateway || self.replays {
            return;
        }
        let names = [None, Some(model), self.settings.family.as_deref()];
        let known = provider::price(&self.context.prices, &profile.name, names, Some(&Usage::default()));
        if known.is_none() {
            let message =
                format!("no price is known for `{}/{model}`, so a money budget cannot be kept", profile.name);
            let help = format!(
                "add `{}/{model}` to your prices file, set `family`, or use a budget of tokens or calls",
                profile.name
            );
            self.error(Code::NotTogether, message, &help);
        }
    }
}
