//! Provider profiles and the resolution of model names.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::diagnostic::{Code, Diagnostic, did_you_mean};

/// The protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Wire {
    OpenaiChat,
    OpenaiResponses,
    Anthropic,
    Gemini,
    Ollama,
    Bedrock,
    Http,
    Command,
}

/// How a provider wants its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Auth {
    None,
    Bearer,
    Header(String),
}

/// Whether a key must be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum KeyRule {
    #[default]
    Required,
    Optional,
    None,
}

/// The field of the output cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MaxField {
    #[default]
    MaxTokens,
    MaxCompletionTokens,
}

impl MaxField {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// What a provider does differently from the others on its wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Quirk {
    /// Also speaks the Responses wire.
    Responses,
    /// Keeps replies unless told not to.
    Store,
    /// Groups prompt caches by `prompt_cache_key`.
    CacheKey,
    /// Groups prompt caches by a header.
    ConversationHeader,
    /// Takes organisation and project.
    Organization,
    /// Has the classic path with deployments and a version.
    Deployments,
    /// Drops the schema silently unless told that it is required.
    RequireParameters,
    /// Calls the seed `random_seed`.
    RandomSeed,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    wire: Wire,
    base_url: Option<String>,
    key_env: Option<String>,
    #[serde(default)]
    key: KeyRule,
    auth_header: Option<String>,
    #[serde(default)]
    max_field: MaxField,
    #[serde(default)]
    quirks: Vec<Quirk>,
    #[serde(default = "yes")]
    schema: bool,
    #[serde(default)]
    prefixes: Vec<String>,
}

fn yes() -> bool {
    true
}

/// One provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Profile {
    pub(crate) name: String,
    pub(crate) wire: Wire,
    pub(crate) base_url: Option<String>,
    pub(crate) key_env: Option<String>,
    pub(crate) key: KeyRule,
    pub(crate) auth: Auth,
    pub(crate) max_field: MaxField,
    pub(crate) quirks: Vec<Quirk>,
    pub(crate) schema: bool,
    prefixes: Vec<String>,
}

static PROFILES: LazyLock<BTreeMap<String, Profile>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the file is part of the program and a test reads it")]
    let entries: BTreeMap<String, Entry> =
        serde_yaml::from_str(include_str!("profiles.yaml")).expect("the embedded profiles are well-formed");
    entries.into_iter().map(|(name, entry)| (name.clone(), Profile::new(name, entry))).collect()
});

impl Profile {
    fn new(name: String, entry: Entry) -> Self {
        let auth = match (entry.key, entry.auth_header) {
            (KeyRule::None, _) => Auth::None,
            (_, Some(header)) => Auth::Header(header),
            (_, None) => Auth::Bearer,
        };
        Self {
            name,
            wire: entry.wire,
            base_url: entry.base_url,
            key_env: entry.key_env,
            key: entry.key,
            auth,
            max_field: entry.max_field,
            quirks: entry.quirks,
            schema: entry.schema,
            prefixes: entry.prefixes,
        }
    }

    /// The profile of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        PROFILES.get(name)
    }
}

/// All provider names, in order.
pub fn provider_names() -> impl Iterator<Item = &'static str> {
    PROFILES.keys().map(String::as_str)
}

/// Finds provider and model id from what people write: the provider apart, `provider/model`, or a bare id whose
/// start belongs to one provider.
pub(crate) fn resolve(provider: Option<&str>, model: &str) -> Result<(&'static Profile, String), Diagnostic> {
    let model = model.trim();
    if let Some(name) = provider {
        let profile = Profile::named(name).ok_or_else(|| {
            Diagnostic::error(Code::UnknownModel, format!("unknown provider `{name}`"))
                .help(did_you_mean(name, provider_names().chain([super::scripted::PROVIDER])))
        })?;
        let own = model.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')).unwrap_or(model);
        // OpenRouter has models of its own under its own name.
        let own = if profile.name == "openrouter" && own == "auto" { model } else { own };
        return named(profile, own);
    }
    if let Some((name, rest)) = model.split_once('/')
        && let Some(profile) = Profile::named(name)
    {
        return named(profile, rest);
    }
    if let Some(profile) = Profile::named(model).filter(|p| matches!(p.wire, Wire::Http | Wire::Command)) {
        return Ok((profile, String::new()));
    }
    let found =
        PROFILES.values().find(|p| p.prefixes.iter().any(|prefix| model.starts_with(prefix.as_str())));
    found.map(|profile| (profile, model.to_owned())).ok_or_else(|| unknown(model))
}

fn named(profile: &'static Profile, model: &str) -> Result<(&'static Profile, String), Diagnostic> {
    if model.is_empty() && !matches!(profile.wire, Wire::Http | Wire::Command) {
        let message = format!("provider `{}` needs a model", profile.name);
        return Err(Diagnostic::error(Code::UnknownModel, message)
            .help(format!("write `model: {}/...`", profile.name)));
    }
    Ok((profile, model.to_owned()))
}

fn unknown(model: &str) -> Diagnostic {
    let message = if model.is_empty() {
        "no model is named".to_owned()
    } else {
        format!("cannot tell the provider of model `{model}`")
    };
    let before = model.split('/').next().unwrap_or(model);
    let starts = PROFILES.values().flat_map(|p| p.prefixes.iter().map(String::as_str));
    let known = super::prices::shipped_names();
    let near = known
        .iter()
        .map(|name| name.split_once('/').map_or(name.as_str(), |(_, id)| id))
        .min_by_key(|id| strsim::damerau_levenshtein(id, model))
        .filter(|id| strsim::damerau_levenshtein(id, model) <= model.chars().count() / 3);
    let help = match near {
        Some(near) => format!("did you mean `{near}`? Otherwise write `provider/model`"),
        None if model.contains('/') => {
            format!("`{before}` is no provider: {}", did_you_mean(before, provider_names()))
        }
        None => format!(
            "write `provider/model`; providers: {}; ids that start with one of these need none: {}",
            provider_names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
            starts.map(|start| format!("`{start}`")).collect::<Vec<_>>().join(", ")
        ),
    };
    Diagnostic::error(Code::UnknownModel, message).help(help)
}

/// The environment variable that holds a model's key by default; `None` when it needs none or is not known.
pub fn default_key(model: &str) -> Option<String> {
    let (profile, _) = resolve(None, model).ok()?;
    profile.key_env.clone().filter(|_| profile.key == KeyRule::Required)
}

/// Whether a model id names one fixed version: a date, a commit or a numbered build. A name without one may point
/// at another model tomorrow, so that two runs with it are not the same measurement.
pub fn names_fixed_version(model: &str) -> bool {
    let model = model.to_lowercase();
    if model.ends_with("latest") || model.is_empty() {
        return false;
    }
    let parts: Vec<&str> = model.split(['-', '@', ':', '.', '/', '_']).collect();
    let digits = |text: &str, length: usize| text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    let dated = parts.iter().any(|part| digits(part, 8) && part.starts_with("20"))
        || parts.windows(3).any(|w| matches!(w, [y, m, d] if digits(y, 4) && digits(m, 2) && digits(d, 2)));
    let hashed = model.contains("sha256")
        || parts.iter().any(|part| part.len() == 40 && part.bytes().all(|b| b.is_ascii_hexdigit()));
    let numbered = parts.last().is_some_and(|part| digits(part, 3));
    dated || hashed || numbered
}

/// Whether a model id is a name that its provider moves on to newer models.
pub fn is_moving_alias(model: &str) -> bool {
    let model = model.to_lowercase();
    let last = model.rsplit(['-', ':', '/', '.']).next().unwrap_or(&model);
    matches!(last, "latest" | "auto" | "default" | "stable" | "preview" | "experimental" | "exp")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(provider: Option<&str>, model: &str) -> String {
        match resolve(provider, model) {
            Ok((profile, id)) => format!("{} {id}", profile.name),
            Err(problem) => format!("{} / {}", problem.message, problem.help.unwrap_or_default()),
        }
    }

    #[test]
    fn names_resolve_as_people_write_them() {
        for (provider, model, wanted) in [
            (None, "gpt-6-luna", "openai gpt-6-luna"),
            (None, "claude-haiku-5-5", "anthropic claude-haiku-5-5"),
            (None, "anthropic/claude-haiku-5-5", "anthropic claude-haiku-5-5"),
            (None, "gemini/gemini-3.8-flash", "gemini gemini-3.8-flash"),
            (None, "xai/grok-4.7", "xai grok-4.7"),
            (None, "openrouter/anthropic/claude-haiku-5-5", "openrouter anthropic/claude-haiku-5-5"),
            (Some("openrouter"), "anthropic/claude-haiku-5-5", "openrouter anthropic/claude-haiku-5-5"),
            (Some("openai"), "openai/gpt-6-luna", "openai gpt-6-luna"),
            (Some("vllm"), "meta-llama/Llama-3", "vllm meta-llama/Llama-3"),
            (None, "us.anthropic.claude-haiku-4-5-v1:0", "bedrock us.anthropic.claude-haiku-4-5-v1:0"),
            (Some("http"), "", "http "),
            (None, "command", "command "),
        ] {
            assert_eq!(resolved(provider, model), wanted);
        }
    }

    #[test]
    fn unknown_names_say_what_is_known() {
        assert_eq!(
            resolved(Some("anthropc"), "x"),
            "unknown provider `anthropc` / did you mean `anthropic`?"
        );
        assert_eq!(
            resolved(None, "antropic/claude-haiku-5-5"),
            "cannot tell the provider of model `antropic/claude-haiku-5-5` / `antropic` is no provider: did you mean `anthropic`?"
        );
        assert_eq!(
            resolved(None, "claud-haiku-5-5"),
            "cannot tell the provider of model `claud-haiku-5-5` / did you mean `claude-haiku-5-5`? Otherwise write `provider/model`"
        );
        let far = resolved(None, "zebra");
        assert!(far.contains("`openai`") && far.contains("`claude-`"), "{far}");
        assert!(resolved(Some("openai"), "").contains("needs a model"));
    }

    #[test]
    fn fixed_versions_are_told_from_names_that_move() {
        for fixed in ["gpt-4o-2024-08-06", "claude-haiku-4-5-20251001", "gemini-2.0-flash-001"] {
            assert!(names_fixed_version(fixed), "{fixed}");
        }
        for moving in ["gpt-6-luna", "mistral-small-latest", "claude-haiku-5-5", "llama3", ""] {
            assert!(!names_fixed_version(moving), "{moving}");
        }
        assert!(is_moving_alias("mistral-small-latest") && is_moving_alias("gemini-3.1-pro-preview"));
        assert!(!is_moving_alias("claude-haiku-5-5") && !is_moving_alias("gpt-4o-2024-08-06"));
    }

    #[test]
    fn every_profile_has_an_address_and_a_key_rule() {
        for profile in PROFILES.values() {
            let local = matches!(profile.wire, Wire::Http | Wire::Command);
            let own_address = ["azure", "litellm", "vllm"].contains(&profile.name.as_str());
            assert_eq!(profile.base_url.is_none(), local || own_address, "{}", profile.name);
            assert_eq!(profile.key_env.is_none(), profile.key == KeyRule::None, "{}", profile.name);
        }
    }
}
