//! From the settings of a role to a model that can be talked to. Everything that can be known to be wrong is said
//! here, all of it at once, before the first call.

mod checks;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::config::model::{Api, Effort, ModelSettings};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::model::caller::{Caller, Memory, Patience, Place};
use crate::model::capabilities;
use crate::model::cassette::{CassetteMode, Recorder, digest};
use crate::model::endpoint::Endpoint;
use crate::model::metered::Metered;
use crate::model::prices::{Price, PriceTable};
use crate::model::profiles::{KeyRule, Profile, Quirk, Wire, names_fixed_version, resolve};
use crate::model::provider::ProviderModel;
use crate::model::scripted::{self, Scripted};
use crate::model::text::{Hidden, Secrets};
use crate::model::transport::{Timeouts, Transport};
use crate::model::turnstile::Turnstile;
use crate::model::{ChatModel, ModelContext, ModelIdentity, Role, command, http_endpoint};

/// What a role may write when nobody says.
const JUDGE_CAP: u32 = 4096;
const USER_CAP: u32 = 2048;
const CONCURRENCY: u32 = 64;
const RETRIES: u32 = 3;

/// Settings of one role on their way to a model; collects problems.
struct Connecting<'a> {
    role: Role,
    settings: &'a ModelSettings,
    context: &'a ModelContext,
    problems: Diagnostics,
    secrets: Secrets,
    /// Nothing is called, so no key is needed.
    replays: bool,
}

/// Makes the model of a role.
///
/// # Errors
/// All problems of the settings: unknown provider or model, settings that the provider does not have, missing keys,
/// a money budget without a known price.
pub fn connect(
    role: Role,
    settings: &ModelSettings,
    context: &ModelContext,
) -> Result<Arc<dyn ChatModel>, Diagnostics> {
    let replays = context.cassette.as_ref().is_some_and(|cassette| cassette.mode() == CassetteMode::Replay);
    let mut connecting = Connecting {
        role,
        settings,
        context,
        problems: Diagnostics::new(),
        secrets: Secrets::default(),
        replays,
    };
    let made = connecting.model();
    let secrets = connecting.secrets;
    let (made, _warnings) = connecting.problems.finish(made)?;
    Ok(match &context.cassette {
        None => made,
        Some(cassette) => Arc::new(Recorder::new(
            (role, made.identity().clone()),
            (!replays).then_some(made),
            Arc::clone(cassette),
            secrets,
            Arc::clone(&context.meter),
        )),
    })
}

/// Who would play a role, without keys and without a connection: for plans and comparisons.
///
/// # Errors
/// The provider or the model cannot be resolved.
pub fn identify(role: Role, settings: &ModelSettings) -> Result<ModelIdentity, Diagnostics> {
    if let Some(character) = scripted_character(settings) {
        return Ok(identity(role, scripted::PROVIDER, character, settings));
    }
    let (profile, model) =
        resolve(settings.provider.as_deref(), &settings.model).map_err(|problem| for_role(role, problem))?;
    Ok(identity(role, &profile.name, &model, settings))
}

/// Whether a role's model is one fixed version: by the user's word, or because its id says so.
pub fn is_pinned(settings: &ModelSettings) -> bool {
    settings.pinned.unwrap_or_else(|| {
        scripted_character(settings).is_some()
            || resolve(settings.provider.as_deref(), &settings.model)
                .is_ok_and(|(_, model)| names_fixed_version(&model))
    })
}

/// The price of a role's model, for forecasts; `None` when it is not known. The script costs nothing and has none.
pub fn price_of(settings: &ModelSettings, prices: &PriceTable) -> Option<Price> {
    let (profile, model) = resolve(settings.provider.as_deref(), &settings.model).ok()?;
    let own = prices.price(&profile.name, &model).copied();
    own.or_else(|| {
        let family = settings.family.as_deref()?;
        let listed = prices.price(&profile.name, family).copied();
        listed.or_else(|| {
            let (profile, model) = resolve(None, family).ok()?;
            prices.price(&profile.name, &model).copied()
        })
    })
}

/// The character when the role is played by the script: `scripted/careful`, or the provider apart.
fn scripted_character(settings: &ModelSettings) -> Option<&str> {
    let model = settings.model.as_str();
    let own = model.strip_prefix(scripted::PROVIDER).and_then(|rest| rest.strip_prefix('/'));
    match settings.provider.as_deref() {
        Some(scripted::PROVIDER) => Some(own.unwrap_or(model)),
        Some(_) => None,
        None => own,
    }
}

fn for_role(role: Role, problem: Diagnostic) -> Diagnostics {
    Diagnostic { message: format!("{role}: {}", problem.message), ..problem }.into()
}

/// The settings part of the identity covers what shapes replies, and nothing that only paces calls.
fn identity(role: Role, provider: &str, model: &str, settings: &ModelSettings) -> ModelIdentity {
    let s = settings;
    let shaping = json!({
        "role": role,
        "api": s.api,
        "base_url": s.base_url,
        "headers": s.headers,
        "extra_body": s.extra_body,
        "api_version": s.api_version,
        "region": s.region,
        "family": s.family,
        "max_output_tokens": s.max_output_tokens,
        "temperature": s.temperature,
        "top_p": s.top_p,
        "seed": s.seed,
        "effort": s.effort,
        "capabilities": s.capabilities,
        "http": s.http,
        "command": s.command,
    });
    let model = if model.is_empty() { provider } else { model }.to_owned();
    ModelIdentity { provider: provider.to_owned(), model, settings: digest(shaping.to_string()) }
}

type Made = Arc<dyn ChatModel>;

impl Connecting<'_> {
    fn error(&mut self, code: Code, message: impl std::fmt::Display, help: &str) {
        let problem = Diagnostic::error(code, format!("{}: {message}", self.role));
        self.problems.push(if help.is_empty() { problem } else { problem.help(help) });
    }

    fn model(&mut self) -> Option<Made> {
        if let Some(character) = scripted_character(self.settings) {
            return self.scripted(character);
        }
        let (profile, model) = match resolve(self.settings.provider.as_deref(), &self.settings.model) {
            Ok(found) => found,
            Err(problem) => {
                self.problems.extend(for_role(self.role, problem));
                return None;
            }
        };
        self.misplaced(profile);
        self.ranges();
        let environment = self.environment();
        let identity = identity(self.role, &profile.name, &model, self.settings);
        let timeouts = self.timeouts();
        let transport = match Transport::new(
            &self.context.clients,
            &self.context.env,
            self.context.ca_cert.as_ref(),
            timeouts,
        ) {
            Ok(transport) => Some(transport),
            Err(message) => {
                self.error(Code::Unreadable, message, "check the proxy and certificate variables");
                None
            }
        };
        match profile.wire {
            Wire::Http => self.http(identity, transport, &environment),
            Wire::Command => self.command(identity, timeouts, environment),
            _ => self.provider(profile, model, identity, transport, &environment),
        }
    }

    fn scripted(&mut self, character: &str) -> Option<Made> {
        let identity = identity(self.role, scripted::PROVIDER, character, self.settings);
        let seed = self.settings.seed.unwrap_or(self.context.seed);
        match Scripted::new(self.role, character, seed, identity.settings.clone()) {
            Ok(model) => {
                let model = Metered::new(self.role, Arc::new(model), self.context);
                Some(Arc::new(model))
            }
            Err(message) => {
                self.error(Code::UnknownModel, message, "");
                None
            }
        }
    }

    fn timeouts(&self) -> Timeouts {
        let s = self.settings;
        let long = s.effort.is_some_and(|effort| effort >= Effort::High);
        Timeouts {
            connect: s.connect_timeout.unwrap_or(Duration::from_secs(10)),
            total: s.timeout.unwrap_or(Duration::from_secs(if long { 600 } else { 120 })),
            idle: s.idle_timeout.unwrap_or(Duration::from_mins(1)),
        }
    }

    /// The values of the variables in `env`; each of them is a secret.
    fn environment(&mut self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for name in &self.settings.env {
            match self.context.env.get(name) {
                Some(value) => {
                    self.secrets.add(&value);
                    found.push((name.clone(), value));
                }
                None if self.replays => found.push((name.clone(), String::new())),
                // Known from here on, so that nothing that uses it complains once more.
                None => {
                    self.missing_variable(name);
                    found.push((name.clone(), String::new()));
                }
            }
        }
        found
    }

    fn missing_variable(&mut self, name: &str) {
        let message = format!("the environment variable {name} is not set");
        self.error(Code::MissingCredential, message, "set it in the job's `env`, from a repository secret");
    }

    fn key(&mut self, profile: &Profile) -> Option<Hidden<String>> {
        let name = self.settings.key_env.as_deref().or(profile.key_env.as_deref())?;
        if let Some(value) = self.context.env.get(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty())
        {
            self.secrets.add(&value);
            return Some(Hidden(value));
        }
        // A server of one's own may want no key; naming a variable says that it does.
        let required = self.settings.key_env.is_some()
            || (profile.key == KeyRule::Required && self.settings.base_url.is_none());
        if required && !self.replays {
            self.missing_variable(name);
        }
        None
    }

    fn base(&mut self, profile: &Profile, wire: Wire) -> Option<String> {
        let given = self.settings.base_url.clone();
        let default = profile.base_url.clone().map(|base| {
            let region = self.settings.region.clone().or_else(|| self.context.env.get("AWS_REGION"));
            base.replace("{region}", region.as_deref().unwrap_or("us-east-1"))
        });
        let Some(base) = given.or(default) else {
            let help = match profile.name.as_str() {
                "azure" => "set `base_url: https://RESOURCE.openai.azure.com`",
                _ => "set `base_url` to the server's address",
            };
            self.error(Code::MissingKey, format!("provider `{}` needs `base_url`", profile.name), help);
            return None;
        };
        let Ok(url) = reqwest::Url::parse(&base) else {
            self.error(Code::WrongType, "`base_url` is not an address", "write it with https:// or http://");
            return None;
        };
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            self.error(Code::WrongType, "`base_url` is not an http or https address", "");
            return None;
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            self.error(
                Code::NotTogether,
                "`base_url` holds a user, a password or a query",
                "name the key's variable in `key_env` instead",
            );
            return None;
        }
        let base = base.trim_end_matches('/').to_owned();
        Some(match wire {
            // People give these with and without the version that the wire adds itself.
            Wire::Anthropic => base.strip_suffix("/v1").unwrap_or(&base).to_owned(),
            Wire::Ollama => {
                base.strip_suffix("/v1").or_else(|| base.strip_suffix("/api")).unwrap_or(&base).to_owned()
            }
            _ if profile.quirks.contains(&Quirk::Deployments) => {
                let bare =
                    base.strip_suffix("/openai/v1").or_else(|| base.strip_suffix("/openai")).unwrap_or(&base);
                let host_only = url.path().trim_matches('/').is_empty() || bare != base;
                if self.settings.api_version.is_some() || !host_only {
                    bare.to_owned()
                } else {
                    format!("{bare}/openai/v1")
                }
            }
            _ => base,
        })
    }

    fn provider(
        &mut self,
        profile: &'static Profile,
        model: String,
        identity: ModelIdentity,
        transport: Option<Transport>,
        environment: &[(String, String)],
    ) -> Option<Made> {
        let s = self.settings;
        let wire = match (profile.wire, s.api) {
            (Wire::OpenaiChat, Some(Api::Responses)) => Wire::OpenaiResponses,
            (wire, _) => wire,
        };
        let key = self.key(profile);
        let base = self.base(profile, wire);
        let headers = self.headers(environment);
        let named = s.family.as_deref().unwrap_or(&model);
        let capabilities = capabilities::lookup(profile, named, &s.capabilities);
        self.suits(&capabilities, named);
        self.priced(profile, &model);
        let (base, transport) = (base?, transport?);
        let host = base.clone();
        let secret = key.as_ref().map(|key| key.0.clone()).unwrap_or_default();
        let place = Place {
            base: base.clone(),
            model: model.clone(),
            key_env: s.key_env.clone().or_else(|| profile.key_env.clone()).filter(|_| key.is_some()),
        };
        let max_output = s.max_output_tokens.or(match self.role {
            Role::Judge => Some(JUDGE_CAP),
            Role::User => Some(USER_CAP),
            Role::Candidate => None,
        });
        let endpoint = Endpoint {
            role: self.role,
            profile: profile.clone(),
            base,
            model,
            key,
            headers: Hidden(headers),
            extra_body: s.extra_body.clone(),
            api_version: s.api_version.clone(),
            capabilities,
            max_output,
            temperature: s.temperature,
            top_p: s.top_p,
            seed: s.seed,
            effort: s.effort,
            prompt_cache: s.prompt_cache.unwrap_or(true),
        };
        let made = ProviderModel {
            identity,
            endpoint,
            wire,
            family: s.family.clone(),
            caller: self.caller(place, transport, &host, &secret),
            meter: Arc::clone(&self.context.meter),
            prices: Arc::clone(&self.context.prices),
            events: self.context.events.clone(),
            seen: Mutex::new(BTreeSet::new()),
        };
        Some(Arc::new(made))
    }

    fn caller(&self, place: Place, transport: Transport, address: &str, key: &str) -> Caller {
        let s = self.settings;
        let host = address.split('/').nth(2).unwrap_or(address);
        let permits = usize::try_from(s.max_concurrency.unwrap_or(CONCURRENCY)).unwrap_or(1);
        Caller {
            role: self.role,
            place,
            transport,
            gate: self.context.gates.of(host, key),
            slots: Turnstile::new(permits),
            calls: Arc::clone(&self.context.calls),
            meter: Arc::clone(&self.context.meter),
            cancel: self.context.cancel.clone(),
            clock: self.context.clock.clone(),
            events: self.context.events.clone(),
            secrets: self.secrets.clone(),
            patience: Patience {
                retries: s.max_retries.unwrap_or(RETRIES),
                longest_wait: s.max_retry_wait.unwrap_or(Duration::from_mins(2)),
            },
            memory: Mutex::new(Memory::default()),
        }
    }

    /// The configured headers with the listed variables filled in.
    fn headers(&mut self, environment: &[(String, String)]) -> Vec<(String, String)> {
        let s = self.settings;
        let mut headers = Vec::new();
        for (name, value) in &s.headers {
            match fill(value, environment) {
                Ok(value) => {
                    let valid = reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_ok()
                        && reqwest::header::HeaderValue::from_str(&value).is_ok();
                    if valid {
                        headers.push((name.clone(), value));
                    } else {
                        self.error(Code::WrongType, format!("header `{name}` is not a valid header"), "");
                    }
                }
                Err(unlisted) => self.unlisted(&format!("header `{name}`"), &unlisted),
            }
        }
        for (name, value) in [("openai-organization", &s.organization), ("openai-project", &s.project)] {
            if let Some(value) = value {
                headers.push((name.to_owned(), value.clone()));
            }
        }
        headers
    }

    fn unlisted(&mut self, place: &str, name: &str) {
        let message = format!("{place} uses ${{{name}}}, which `env` does not list");
        self.error(Code::MissingKey, message, &format!("add `env: [{name}]` to the role"));
    }

    fn http(
        &mut self,
        identity: ModelIdentity,
        transport: Option<Transport>,
        environment: &[(String, String)],
    ) -> Option<Made> {
        let Some(settings) = &self.settings.http else {
            self.error(Code::MissingKey, "provider `http` needs `http.turn`", "see docs/your-chatbot.md");
            return None;
        };
        let templates = match http_endpoint::Templates::compile(settings, environment) {
            Ok(templates) => templates,
            Err(problems) => {
                for problem in problems {
                    self.error(Code::BadTemplate, problem, "see docs/your-chatbot.md");
                }
                return None;
            }
        };
        let place = Place {
            base: settings.turn.url.clone(),
            model: identity.model.clone(),
            key_env: Some(self.settings.env.join(", ")).filter(|names| !names.is_empty()),
        };
        let caller = self.caller(place, transport?, &settings.turn.url, "");
        let made = http_endpoint::HttpModel::new(
            identity,
            self.role,
            settings.clone(),
            templates,
            caller,
            Arc::clone(&self.context.prices),
        );
        Some(Arc::new(made))
    }

    fn command(
        &mut self,
        identity: ModelIdentity,
        timeouts: Timeouts,
        environment: Vec<(String, String)>,
    ) -> Option<Made> {
        let Some(settings) = self.settings.command.clone().filter(|settings| !settings.argv.is_empty())
        else {
            self.error(
                Code::MissingKey,
                "provider `command` needs `command.argv`",
                "see docs/your-chatbot.md",
            );
            return None;
        };
        let made = command::CommandModel::new(
            identity,
            self.role,
            settings,
            environment,
            (timeouts.total, self.settings.max_concurrency.unwrap_or(CONCURRENCY)),
            self.secrets.clone(),
            self.context,
        );
        Some(Arc::new(made))
    }
}

/// Replaces `${NAME}` by the listed variables; an unlisted name is the error.
fn fill(text: &str, environment: &[(String, String)]) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, tail)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        match environment.iter().find(|(known, _)| known == name) {
            Some((_, value)) => out.push_str(value),
            None => return Err(name.to_owned()),
        }
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}
