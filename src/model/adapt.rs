//! The one adaptive step: a parameter that the provider refuses is renamed or left out, and stays so.

use super::endpoint::Adapted;
use super::wire::Param;

/// What is done about a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The parameter goes out under another name.
    Renamed(&'static str),
    /// The parameter is left out.
    LeftOut(Param),
}

const MAX_FIELDS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// Words in which providers say that they do not take a parameter, as opposed to a value out of range.
const NOT_TAKEN: [&str; 13] = [
    "unsupported",
    "not supported",
    "not support",
    "deprecated",
    "not permitted",
    "unrecognized",
    "unknown parameter",
    "unknown field",
    "unknown name",
    "unexpected keyword",
    "not allowed",
    "cannot be specified",
    "unknown_parameter",
];

/// Whether the refusal is about the schema, which is never dropped: free text must not pass for a checked answer.
pub(crate) fn names_schema(refusal: &str) -> bool {
    let refusal = refusal.to_lowercase();
    [
        "response_format",
        "json_schema",
        "output_config.format",
        "responsejsonschema",
        "text.format",
        "structured output",
    ]
    .iter()
    .any(|name| refusal.contains(name))
}

/// Finds the parameter that a refusal names among those that were sent, and what to do about it.
pub(crate) fn step(refusal: &str, sent: &[(Param, &'static str)], adapted: &Adapted) -> Option<Step> {
    let lower = refusal.to_lowercase();
    if !NOT_TAKEN.iter().any(|words| lower.contains(words)) {
        return None;
    }
    let tokens: Vec<String> = lower
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.')
        .map(|token| token.trim_matches('.').replace('_', ""))
        .collect();
    let named = |name: &str| {
        let name = name.to_lowercase().replace('_', "");
        let last = name.rsplit('.').next().unwrap_or(&name).to_owned();
        tokens
            .iter()
            .any(|token| *token == name || *token == last || token.rsplit('.').next() == Some(last.as_str()))
    };
    let (param, name) = sent.iter().copied().find(|(param, name)| {
        named(name)
            || (*param == Param::Effort && ["thinking", "effort", "thinking_config"].iter().any(|alias| named(alias)))
            // Gateways rename the cap on its way, so that the complaint is about the other name.
            || (*param == Param::MaxOutput && MAX_FIELDS.iter().any(|field| named(field)))
    })?;
    if param != Param::MaxOutput || !MAX_FIELDS.contains(&name) {
        return Some(Step::LeftOut(param));
    }
    if adapted.max_field.is_some() {
        return Some(Step::LeftOut(param));
    }
    let advised = lower.split_once("use ").and_then(|(_, rest)| {
        MAX_FIELDS.into_iter().find(|field| rest.trim_start_matches(['\'', '"', '`']).starts_with(field))
    });
    let other = MAX_FIELDS.into_iter().find(|field| *field != name);
    advised.or(other).map(Step::Renamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: [(Param, &str); 4] = [
        (Param::MaxOutput, "max_tokens"),
        (Param::Temperature, "temperature"),
        (Param::Effort, "reasoning_effort"),
        (Param::TopP, "generationConfig.topP"),
    ];

    fn found(refusal: &str) -> Option<Step> {
        step(refusal, &SENT, &Adapted::default())
    }

    #[test]
    fn one_named_parameter_is_found() {
        for (refusal, wanted) in [
            (
                "max_tokens: Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Some(Step::Renamed("max_completion_tokens")),
            ),
            (
                "temperature: Unsupported value: 'temperature' does not support 0.7 with this model.",
                Some(Step::LeftOut(Param::Temperature)),
            ),
            ("temperature: Extra inputs are not permitted", Some(Step::LeftOut(Param::Temperature))),
            ("`temperature` is deprecated for this model.", Some(Step::LeftOut(Param::Temperature))),
            ("reasoning.effort is not supported", Some(Step::LeftOut(Param::Effort))),
            ("Thinking level is not supported for this model.", Some(Step::LeftOut(Param::Effort))),
            ("Unknown name \"top_p\" at 'generation_config'", Some(Step::LeftOut(Param::TopP))),
            // A value out of range is the user's mistake, not the model's limit.
            ("temperature: must be at most 2", None),
            ("tool_choice forces tool use is not supported for this model", None),
            ("messages: roles must alternate", None),
        ] {
            assert_eq!(found(refusal), wanted, "{refusal}");
        }
    }

    #[test]
    fn a_cap_that_was_renamed_is_left_out_the_next_time() {
        let adapted = Adapted { max_field: Some("max_completion_tokens"), ..Adapted::default() };
        let sent = [(Param::MaxOutput, "max_completion_tokens")];
        let refusal = "max_completion_tokens: unsupported parameter";
        assert_eq!(step(refusal, &sent, &adapted), Some(Step::LeftOut(Param::MaxOutput)));
    }

    #[test]
    fn the_schema_is_recognised() {
        assert!(names_schema("response_format of type json_schema is not supported"));
        assert!(!names_schema("temperature is not supported"));
    }
}
