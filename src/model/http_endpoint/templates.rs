//! Request templates of a team's own chatbot.

use std::collections::BTreeMap;

use handlebars::{
    Context, Handlebars, Helper, HelperResult, Output, RenderContext, RenderErrorReason, no_escape,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::pointer;
use crate::config::model::{HttpCall, HttpSettings, StreamEnd};
use crate::model::text::{Hidden, one_line, percent_encode};
use crate::model::wire::{Headers, WireCall};

/// What a template may use.
#[derive(Clone, Serialize)]
pub(super) struct Values {
    pub(super) user_text: String,
    /// Earlier messages, oldest first.
    pub(super) history: Value,
    /// All messages, the present one included.
    pub(super) messages: Value,
    pub(super) system: String,
    /// Ours, new for each start of a conversation.
    pub(super) conversation_id: String,
    /// The chatbot's, from the reply of `start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    pub(super) turn: u64,
    pub(super) env: BTreeMap<String, String>,
}

/// One call of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Start,
    Turn,
    End,
}

impl Part {
    fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Turn => "turn",
            Self::End => "end",
        }
    }

    /// The call in the settings.
    pub(super) fn of(self, settings: &HttpSettings) -> Option<&HttpCall> {
        match self {
            Self::Start => settings.start.as_ref(),
            Self::Turn => Some(&settings.turn),
            Self::End => settings.end.as_ref(),
        }
    }
}

/// Compiled and tried templates.
#[derive(Debug)]
pub(crate) struct Templates {
    engine: Handlebars<'static>,
    environment: Hidden<BTreeMap<String, String>>,
    /// The chatbot keeps the conversation: a message sent twice is two messages.
    stateful: bool,
}

impl Templates {
    /// Compiles the templates and renders each of them once with difficult values, so that a template that breaks
    /// on a quotation mark breaks here and not in the middle of a run.
    pub(crate) fn compile(
        settings: &HttpSettings,
        environment: &[(String, String)],
    ) -> Result<Self, Vec<String>> {
        let mut engine = Handlebars::new();
        engine.set_strict_mode(true);
        engine.register_escape_fn(no_escape);
        engine.register_helper("json", Box::new(json_helper));
        engine.register_helper("url", Box::new(url_helper));
        let mut problems = Vec::new();
        let mut texts = String::new();
        for part in [Part::Start, Part::Turn, Part::End] {
            let Some(call) = part.of(settings) else { continue };
            let headers =
                call.headers.iter().map(|(name, value)| (format!("headers.{name}"), variables(value)));
            let fields = [("url".to_owned(), call.url.clone())]
                .into_iter()
                .chain(call.body.clone().map(|body| ("body".to_owned(), body)))
                .chain(headers);
            for (field, text) in fields {
                let name = format!("{}.{field}", part.word());
                if part == Part::Turn {
                    texts.push_str(&text);
                }
                if let Err(error) = engine.register_template_string(&name, &text) {
                    problems.push(format!("http.{name}: {}", one_line(&error.to_string(), 200)));
                }
            }
        }
        problems.extend(pointers(settings));
        let stateful = settings.start.is_some()
            || settings.cookies
            || ["session_id", "conversation_id"].iter().any(|name| texts.contains(name));
        let environment = Hidden(environment.iter().cloned().collect());
        let templates = Self { engine, environment, stateful };
        if problems.is_empty() {
            problems.extend(templates.try_all(settings));
        }
        if problems.is_empty() { Ok(templates) } else { Err(problems) }
    }

    /// Whether a message sent twice is two messages.
    pub(super) fn is_stateful(&self) -> bool {
        self.stateful
    }

    /// The listed variables.
    pub(super) fn environment(&self) -> BTreeMap<String, String> {
        self.environment.0.clone()
    }

    fn try_all(&self, settings: &HttpSettings) -> Vec<String> {
        const DIFFICULT: &str = "a \"quoted\" \\ line\nand {{another}} \u{1f600}";
        let has_session = settings.start.is_some() && settings.session_id.is_some();
        let mut problems = Vec::new();
        for part in [Part::Start, Part::Turn, Part::End] {
            let history = json!([{"role": "assistant", "content": DIFFICULT}]);
            let values = Values {
                user_text: DIFFICULT.to_owned(),
                messages: history.clone(),
                history,
                system: DIFFICULT.to_owned(),
                conversation_id: "c-1".to_owned(),
                session_id: (has_session && part != Part::Start).then(|| "s-1".to_owned()),
                turn: 1,
                env: self.environment(),
            };
            if part.of(settings).is_some()
                && let Err(problem) = self.render(part, settings, &values)
            {
                problems.push(problem);
            }
        }
        problems
    }

    /// Makes the request of a part.
    pub(super) fn render(
        &self,
        part: Part,
        settings: &HttpSettings,
        values: &Values,
    ) -> Result<WireCall, String> {
        let call = part.of(settings).ok_or_else(|| format!("there is no http.{}", part.word()))?;
        let field = |name: &str| {
            let full = format!("{}.{name}", part.word());
            self.engine.render(&full, values).map_err(|error| format!("http.{full}: {}", explain(&error)))
        };
        let url = field("url")?;
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(format!("http.{}.url is not an http or https address", part.word()));
        }
        let mut headers = Headers::default();
        headers.set("accept", "application/json, text/event-stream, text/plain");
        for name in call.headers.keys() {
            let value = field(&format!("headers.{name}"))?;
            if reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_err()
                || reqwest::header::HeaderValue::from_str(&value).is_err()
            {
                return Err(format!("http.{}.headers.{name} is not a valid header", part.word()));
            }
            headers.set(name, value);
        }
        let mut body = Vec::new();
        if call.body.is_some() {
            let text = field("body")?;
            let kind = headers.get("content-type").unwrap_or("application/json").to_owned();
            if kind.contains("json") {
                serde_json::from_str::<Value>(&text).map_err(|error| {
                    format!(
                        "http.{}.body does not give JSON: {error}; put text in with {{{{json name}}}}",
                        part.word()
                    )
                })?;
            }
            headers.set("content-type", kind);
            body = text.into_bytes();
        }
        Ok(WireCall { method: call.method.to_uppercase(), url, headers, body: body.into(), sent: Vec::new() })
    }
}

/// `${NAME}` is another spelling of `{{env.NAME}}`.
fn variables(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        match after.split_once('}') {
            Some((name, tail)) if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                out.extend(["{{env.", name, "}}"]);
                rest = tail;
            }
            _ => {
                out.push_str("${");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn explain(error: &handlebars::RenderError) -> String {
    match error.reason() {
        RenderErrorReason::MissingVariable(Some(name)) if name.starts_with("env.") => {
            let name = name.trim_start_matches("env.");
            format!("uses the variable {name}, which `env` does not list")
        }
        RenderErrorReason::MissingVariable(Some(name)) => format!(
            "unknown value `{name}`; known: user_text, history, messages, system, conversation_id, session_id (with http.start and http.session_id), turn, env.NAME"
        ),
        _ => one_line(&error.to_string(), 200),
    }
}

/// Pointers that are none.
fn pointers(settings: &HttpSettings) -> Vec<String> {
    let stream = settings.stream.as_ref();
    let end = stream.and_then(|stream| match &stream.end {
        StreamEnd::Pointer(pointer) => Some(pointer),
        _ => None,
    });
    let single = [
        ("session_id", settings.session_id.as_ref()),
        ("usage_input", settings.usage_input.as_ref()),
        ("usage_output", settings.usage_output.as_ref()),
        ("refusal", settings.refusal.as_ref()),
        ("model", settings.model.as_ref()),
        ("stream.delta", stream.map(|stream| &stream.delta)),
        ("stream.error", stream.and_then(|stream| stream.error.as_ref())),
        ("stream.end", end),
    ];
    let lists = [("reply", &settings.reply), ("greeting", &settings.greeting)];
    let all = single
        .into_iter()
        .filter_map(|(name, pointer)| pointer.map(|pointer| (name, pointer)))
        .chain(lists.into_iter().flat_map(|(name, list)| list.iter().map(move |pointer| (name, pointer))));
    all.filter(|(_, pointer)| !pointer::is_valid(pointer))
        .map(|(name, pointer)| format!("http.{name}: `{pointer}` is no JSON pointer, it must start with `/`"))
        .collect()
}

fn json_helper(
    helper: &Helper<'_>,
    _: &Handlebars<'_>,
    _: &Context,
    _: &mut RenderContext<'_, '_>,
    out: &mut dyn Output,
) -> HelperResult {
    let value = helper.param(0).ok_or(RenderErrorReason::ParamNotFoundForIndex("json", 0))?;
    missing(value)?;
    out.write(&value.value().to_string())?;
    Ok(())
}

fn url_helper(
    helper: &Helper<'_>,
    _: &Handlebars<'_>,
    _: &Context,
    _: &mut RenderContext<'_, '_>,
    out: &mut dyn Output,
) -> HelperResult {
    let value = helper.param(0).ok_or(RenderErrorReason::ParamNotFoundForIndex("url", 0))?;
    missing(value)?;
    let text = value.value().as_str().map_or_else(|| value.value().to_string(), str::to_owned);
    out.write(&percent_encode(&text))?;
    Ok(())
}

/// Strict mode does not reach the arguments of helpers.
fn missing(value: &handlebars::PathAndJson<'_>) -> Result<(), RenderErrorReason> {
    if value.is_value_missing() {
        return Err(RenderErrorReason::MissingVariable(value.relative_path().cloned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(url: &str, headers: &[(&str, &str)], body: Option<&str>) -> HttpCall {
        HttpCall {
            method: "post".to_owned(),
            url: url.to_owned(),
            headers: headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            body: body.map(str::to_owned),
        }
    }

    fn settings(turn: HttpCall) -> HttpSettings {
        HttpSettings {
            start: None,
            session_id: None,
            greeting: Vec::new(),
            turn,
            reply: vec!["/text".to_owned()],
            stream: None,
            end: None,
            usage_input: None,
            usage_output: None,
            refusal: None,
            model: None,
            idempotency_header: None,
            cookies: false,
        }
    }

    fn problem(turn: HttpCall) -> String {
        Templates::compile(&settings(turn), &[]).unwrap_err().join("; ")
    }

    #[test]
    fn text_reaches_the_body_unharmed() {
        let settings = settings(call(
            "http://bot/{{url conversation_id}}",
            &[("authorization", "Bearer ${BOT_TOKEN}"), ("x-turn", "{{turn}}")],
            Some(r#"{"text": {{json user_text}}, "history": {{json history}}}"#),
        ));
        let templates =
            Templates::compile(&settings, &[("BOT_TOKEN".to_owned(), "s3cret".to_owned())]).unwrap();
        let values = Values {
            user_text: "say \"hi\"\n${BOT_TOKEN} {{env.BOT_TOKEN}}".to_owned(),
            history: json!([{"role": "user", "content": "before"}]),
            messages: json!([]),
            system: String::new(),
            conversation_id: "a/b c".to_owned(),
            session_id: None,
            turn: 2,
            env: templates.environment(),
        };
        let call = templates.render(Part::Turn, &settings, &values).unwrap();
        assert_eq!(call.url, "http://bot/a%2Fb%20c");
        assert_eq!(call.headers.get("authorization"), Some("Bearer s3cret"));
        assert_eq!(call.headers.get("x-turn"), Some("2"));
        let body: Value = serde_json::from_slice(&call.body).unwrap();
        // What a person writes is never read as a template.
        assert_eq!(body["text"], "say \"hi\"\n${BOT_TOKEN} {{env.BOT_TOKEN}}");
        assert_eq!(body["history"][0]["content"], "before");
    }

    #[test]
    fn a_template_that_breaks_on_a_quotation_mark_is_refused() {
        let shown = problem(call("http://bot", &[], Some(r#"{"text": "{{user_text}}"}"#)));
        assert!(shown.contains("does not give JSON") && shown.contains("{{json name}}"), "{shown}");
    }

    #[test]
    fn unknown_names_are_refused_before_the_run() {
        for (turn, wanted) in [
            (call("http://bot", &[], Some(r#"{"t": {{json usertext}}}"#)), "unknown value `usertext`"),
            (call("http://bot/{{session_id}}", &[], None), "unknown value `session_id`"),
            (
                call("http://bot", &[("x", "${TOKEN}")], None),
                "uses the variable TOKEN, which `env` does not list",
            ),
            (call("ftp://bot", &[], None), "not an http or https address"),
            (call("http://bot", &[], Some("{{#if}")), "http.turn.body"),
        ] {
            let shown = problem(turn);
            assert!(shown.contains(wanted), "{shown}");
        }
    }

    #[test]
    fn a_pointer_must_be_one() {
        let mut settings = settings(call("http://bot", &[], None));
        settings.reply = vec!["text".to_owned()];
        let problems = Templates::compile(&settings, &[]).unwrap_err();
        assert_eq!(problems, ["http.reply: `text` is no JSON pointer, it must start with `/`"]);
    }

    #[test]
    fn a_chatbot_that_gets_the_whole_history_keeps_nothing() {
        let stateless = settings(call("http://bot", &[], Some(r#"{"m": {{json messages}}}"#)));
        assert!(!Templates::compile(&stateless, &[]).unwrap().is_stateful());
        let stateful = settings(call("http://bot/{{conversation_id}}", &[], None));
        assert!(Templates::compile(&stateful, &[]).unwrap().is_stateful());
    }
}
