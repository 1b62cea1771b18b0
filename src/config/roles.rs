//! The three roles of the configuration and everything a role can say about its model.

use super::model::{
    Api, CapabilityOverrides, CommandLifetime, CommandSettings, Effort, HttpCall, HttpSettings,
    ModelSettings, StreamEnd, StreamKind, StreamSettings,
};
use super::yaml::{Node, Section, Value};
use super::{Ahead, Candidate, Judge, JudgeModel, Semantics, texts};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};

/// Reads `user`: one model or a list of models.
pub(super) fn users(file: &mut Section<'_>, problems: &mut Diagnostics) -> Option<Vec<ModelSettings>> {
    let sections = one_or_many(file, "user", problems)?;
    let users = sections.into_iter().filter_map(|mut section| {
        let settings = model(&mut section, problems);
        section.finish(problems);
        settings
    });
    Some(users.collect::<Vec<_>>()).filter(|users| !users.is_empty())
}

/// Reads `candidate`.
pub(super) fn candidate(file: &mut Section<'_>, problems: &mut Diagnostics) -> Option<Candidate> {
    let sections = one_or_many(file, "candidate", problems)?;
    if sections.len() > 1 {
        problems.push(
            Diagnostic::error(Code::NotTogether, "`candidate` is a list")
                .at(file.location().clone())
                .help("one run gates one candidate; run the gate once for each"),
        );
    }
    let mut section = sections.into_iter().next()?;
    let name = section.text("name", problems);
    let system_prompt = section.text("system_prompt", problems);
    let system_prompt_file = section.text("system_prompt_file", problems);
    if system_prompt.is_some() && system_prompt_file.is_some() {
        problems.push(
            Diagnostic::error(Code::NotTogether, "`system_prompt` and `system_prompt_file` are both given")
                .at(section.location().clone())
                .help("keep one of the two"),
        );
    }
    let model = model(&mut section, problems);
    section.finish(problems);
    Some(Candidate { model: model?, name, system_prompt, system_prompt_file })
}

/// Reads `judge`: one model or a list, each with `instances`; `judging` holds how they work.
pub(super) fn judge(file: &mut Section<'_>, problems: &mut Diagnostics) -> Option<Judge> {
    let sections = one_or_many(file, "judge", problems)?;
    let mut models = Vec::with_capacity(sections.len());
    for mut section in sections {
        let instances = section.small("instances", 1..=99, problems).unwrap_or(1);
        if let Some(model) = model(&mut section, problems) {
            models.push(JudgeModel { model, instances });
        }
        section.finish(problems);
    }
    let (mut reasks, mut ahead, mut confirm) = (2, Ahead::Certain, None);
    let mut semantics = Semantics::Native;
    if let Some(mut section) = file.section("judging", problems) {
        reasks = section.small("reasks", 0..=10, problems).unwrap_or(reasks);
        ahead = section.word("ahead", &Ahead::WORDS, problems).unwrap_or_default();
        semantics = section.word("semantics", &Semantics::WORDS, problems).unwrap_or_default();
        if let Some(mut inner) = section.section("confirm", problems) {
            confirm = model(&mut inner, problems);
            inner.finish(problems);
        }
        section.finish(problems);
    }
    (!models.is_empty()).then_some(Judge { models, reasks, ahead, semantics, confirm })
}

/// A role is a model string, a mapping, or a list of these.
fn one_or_many<'a>(
    file: &mut Section<'a>,
    key: &'static str,
    problems: &mut Diagnostics,
) -> Option<Vec<Section<'a>>> {
    let Some(node) = file.get(key) else {
        problems.push(file.missing(key).help(format!(
            "name the model, as in `{key}: openai/gpt-6-luna`; the three roles `user`, `candidate` and `judge` are all needed"
        )));
        return None;
    };
    let items: Vec<&Node> = match &node.value {
        Value::List(items) => items.iter().collect(),
        _ => vec![node],
    };
    if items.is_empty() {
        problems.push(
            Diagnostic::error(Code::EmptyInput, format!("`{key}` names no model"))
                .at(node.location.clone())
                .help(format!("name a model, as in `{key}: openai/gpt-6-luna`")),
        );
        return None;
    }
    Some(items.into_iter().filter_map(|item| Section::or_shorthand(item, key, "model", problems)).collect())
}

/// Reads everything a role can say about its model.
fn model(s: &mut Section<'_>, problems: &mut Diagnostics) -> Option<ModelSettings> {
    let apis = Api::ALL.map(|api| (api.word(), api));
    let efforts = Effort::ALL.map(|effort| (effort.word(), effort));
    let provider = s.text("provider", problems);
    // A chatbot behind HTTP or a local program has no model id.
    let named = matches!(provider.as_deref(), Some("http" | "command"));
    let model = if named {
        s.text("model", problems).or_else(|| Some(String::new()))
    } else {
        s.required_text("model", problems)
    };
    let mut settings = ModelSettings {
        provider,
        api: s.word("api", &apis, problems),
        base_url: s.text("base_url", problems),
        key_env: s.text("key_env", problems),
        headers: s.text_map("headers", problems).unwrap_or_default(),
        env: texts(s, "env", problems),
        organization: s.text("organization", problems),
        project: s.text("project", problems),
        api_version: s.text("api_version", problems),
        region: s.text("region", problems),
        family: s.text("family", problems),
        max_output_tokens: s.small("max_output_tokens", 1..=10_000_000, problems),
        temperature: s.number("temperature", 0.0..=2.0, problems),
        top_p: s.number("top_p", 0.0..=1.0, problems),
        seed: s.whole("seed", 0..=u64::MAX, problems),
        effort: s.word("effort", &efforts, problems),
        prompt_cache: s.boolean("prompt_cache", problems),
        pinned: s.boolean("pinned", problems),
        connect_timeout: s.duration("connect_timeout", problems),
        timeout: s.duration("timeout", problems),
        idle_timeout: s.duration("idle_timeout", problems),
        max_retries: s.small("max_retries", 0..=100, problems),
        max_retry_wait: s.duration("max_retry_wait", problems),
        max_concurrency: s.small("max_concurrency", 1..=10_000, problems),
        ..ModelSettings::default()
    };
    if let Some(node) = s.get("extra_body") {
        match node.to_json() {
            Some(serde_json::Value::Object(fields)) => settings.extra_body = fields,
            _ => problems.push(
                Diagnostic::error(
                    Code::WrongType,
                    format!("`{}` is {}, want a mapping", s.path_of("extra_body"), node.kind()),
                )
                .at(node.location.clone()),
            ),
        }
    }
    if let Some(mut inner) = s.section("capabilities", problems) {
        settings.capabilities = CapabilityOverrides {
            sampling: inner.boolean("sampling", problems),
            schema: inner.boolean("schema", problems),
            effort: inner.words("effort", &efforts, problems),
        };
        inner.finish(problems);
    }
    if let Some(mut inner) = s.section("http", problems) {
        settings.http = http(&mut inner, problems);
        inner.finish(problems);
    }
    if let Some(mut inner) = s.section("command", problems) {
        settings.command = command(&mut inner, problems);
        inner.finish(problems);
    }
    settings.model = model?;
    Some(settings)
}

fn http(s: &mut Section<'_>, problems: &mut Diagnostics) -> Option<HttpSettings> {
    let turn = call(s, "turn", problems);
    if turn.is_none() && s.get("turn").is_none() {
        problems.push(s.missing("turn").help("`turn` is the request that sends one message to the chatbot"));
    }
    let stream = s.section("stream", problems).and_then(|mut inner| {
        let stream = stream(&mut inner, problems);
        inner.finish(problems);
        stream
    });
    let settings = HttpSettings {
        start: call(s, "start", problems),
        session_id: s.text("session_id", problems),
        greeting: texts(s, "greeting", problems),
        turn: turn.unwrap_or_else(|| HttpCall {
            method: String::new(),
            url: String::new(),
            headers: std::collections::BTreeMap::new(),
            body: None,
        }),
        reply: texts(s, "reply", problems),
        stream,
        end: call(s, "end", problems),
        usage_input: s.text("usage_input", problems),
        usage_output: s.text("usage_output", problems),
        refusal: s.text("refusal", problems),
        model: s.text("reply_model", problems),
        idempotency_header: s.text("idempotency_header", problems),
        cookies: s.boolean("cookies", problems).unwrap_or(false),
    };
    (!settings.turn.url.is_empty()).then_some(settings)
}

fn call(s: &mut Section<'_>, key: &'static str, problems: &mut Diagnostics) -> Option<HttpCall> {
    let mut inner = s.section(key, problems)?;
    let url = inner.required_text("url", problems);
    let call = HttpCall {
        method: inner.text("method", problems).unwrap_or_else(|| "POST".to_owned()),
        url: url.unwrap_or_default(),
        headers: inner.text_map("headers", problems).unwrap_or_default(),
        body: inner.text("body", problems),
    };
    inner.finish(problems);
    (!call.url.is_empty()).then_some(call)
}

fn stream(s: &mut Section<'_>, problems: &mut Diagnostics) -> Option<StreamSettings> {
    let kinds = StreamKind::ALL.map(|kind| (kind.word(), kind));
    let kind = s.word("kind", &kinds, problems).unwrap_or_default();
    let delta = s.required_text("delta", problems);
    let ends = [
        s.text("end_data", problems).map(StreamEnd::Data),
        s.text("end_event", problems).map(StreamEnd::Event),
        s.text("end_pointer", problems).map(StreamEnd::Pointer),
    ];
    let given: Vec<StreamEnd> = ends.into_iter().flatten().collect();
    if given.len() > 1 {
        problems.push(
            Diagnostic::error(Code::NotTogether, "a stream has several end marks")
                .at(s.location().clone())
                .help("keep one of `end_data`, `end_event` and `end_pointer`"),
        );
    }
    Some(StreamSettings {
        kind,
        event: s.text("event", problems),
        delta: delta?,
        end: given.into_iter().next().unwrap_or(StreamEnd::Close),
        error: s.text("error", problems),
    })
}

fn command(s: &mut Section<'_>, problems: &mut Diagnostics) -> Option<CommandSettings> {
    let lifetimes = CommandLifetime::ALL.map(|lifetime| (lifetime.word(), lifetime));
    let argv = texts(s, "argv", problems);
    if argv.is_empty() {
        problems.push(s.missing("argv").help("a list: the program and its arguments, as in `[./bot, --ci]`"));
    }
    let settings = CommandSettings {
        argv,
        directory: s.text("directory", problems).map(std::path::PathBuf::from),
        lifetime: s.word("lifetime", &lifetimes, problems).unwrap_or_default(),
    };
    (!settings.argv.is_empty()).then_some(settings)
}
