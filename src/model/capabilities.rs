//! What models can do: a table, corrected by what the user states.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::profiles::Profile;
use crate::config::model::{CapabilityOverrides, Effort};

/// When sampling parameters are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sampling {
    Yes,
    No,
    /// Only with effort `none`.
    WithoutReasoning,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    sampling: Sampling,
    effort: Option<Vec<String>>,
    schema: Option<bool>,
    max_output: Option<u32>,
}

/// What one model can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Capabilities {
    pub(crate) sampling: Sampling,
    /// The effort words it takes; `None` when that is not known.
    pub(crate) effort: Option<Vec<Effort>>,
    pub(crate) schema: bool,
    pub(crate) max_output: Option<u32>,
    /// Takes cache points on Bedrock.
    pub(crate) cache_points: bool,
}

static TABLE: LazyLock<BTreeMap<String, Entry>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the file is part of the program and a test reads it")]
    let table =
        serde_yaml::from_str(include_str!("capabilities.yaml")).expect("the embedded table is well-formed");
    table
});

/// Looks a model up under its family or its own id. What is not in the table is taken to be able: the provider
/// then says what it does not take.
pub(crate) fn lookup(profile: &Profile, model: &str, stated: &CapabilityOverrides) -> Capabilities {
    let entry = find(model);
    let known = entry.and_then(|entry| entry.effort.as_ref());
    let effort = known.map(|words| words.iter().filter_map(|word| Effort::from_word(word)).collect());
    Capabilities {
        sampling: match stated.sampling {
            Some(true) => Sampling::Yes,
            Some(false) => Sampling::No,
            None => entry.map_or(Sampling::Yes, |entry| entry.sampling),
        },
        effort: stated.effort.clone().or(effort),
        schema: stated.schema.or(entry.and_then(|entry| entry.schema)).unwrap_or(profile.schema),
        max_output: entry.and_then(|entry| entry.max_output),
        cache_points: model.contains("claude") || model.contains("nova"),
    }
}

fn find(model: &str) -> Option<&'static Entry> {
    let id = model.to_lowercase();
    // `anthropic/claude-...` on a router, `us.anthropic.claude-...` on Bedrock, `claude-sonnet-4.6` on both.
    let id = id.rsplit('/').next().unwrap_or(&id).to_owned();
    let dashed = id.replace('.', "-");
    let fits = |key: &str| {
        id.starts_with(key)
            || id.split_once(&format!(".{key}")).is_some()
            || (key.starts_with("claude-")
                && (dashed.starts_with(key) || dashed.contains(&format!("-{key}"))))
    };
    TABLE.iter().filter(|(key, _)| fits(key)).max_by_key(|(key, _)| key.len()).map(|(_, entry)| entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(model: &str) -> Capabilities {
        lookup(Profile::named("openai").unwrap(), model, &CapabilityOverrides::default())
    }

    #[test]
    fn the_longest_entry_counts() {
        assert_eq!(of("gpt-6-luna").sampling, Sampling::WithoutReasoning);
        assert_eq!(of("gpt-6.1-sol").sampling, Sampling::No);
        assert_eq!(of("gpt-5-mini").sampling, Sampling::No);
        assert_eq!(of("gpt-5.4-nano").sampling, Sampling::WithoutReasoning);
        assert_eq!(of("gpt-4o-mini").max_output, Some(16_384));
    }

    #[test]
    fn ids_of_routers_and_clouds_are_understood() {
        for id in ["anthropic/claude-sonnet-4.6", "us.anthropic.claude-sonnet-4-6-v1:0", "claude-sonnet-4-6"]
        {
            assert_eq!(of(id).sampling, Sampling::Yes, "{id}");
            assert_eq!(of(id).max_output, Some(64_000), "{id}");
        }
    }

    #[test]
    fn every_effort_word_of_the_table_is_one() {
        for (key, entry) in TABLE.iter() {
            for word in entry.effort.iter().flatten() {
                assert!(Effort::from_word(word).is_some(), "{key}: {word}");
            }
        }
    }

    #[test]
    fn what_the_user_states_wins() {
        let stated = CapabilityOverrides { sampling: Some(true), schema: Some(false), effort: Some(vec![]) };
        let capabilities = lookup(Profile::named("openai").unwrap(), "gpt-6.1-sol", &stated);
        assert_eq!(capabilities.sampling, Sampling::Yes);
        assert!(!capabilities.schema);
        assert_eq!(capabilities.effort, Some(vec![]));
    }
}
