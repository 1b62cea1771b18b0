//! The effective configuration as a list of settings, under the keys of the file, and where the file sets each of them.

use std::time::Duration;

use serde_json::{Value, json};

use super::model::{HttpCall, HttpSettings, ModelSettings, StreamEnd};
use super::yaml::{Node, Value as Yaml};
use super::{Ahead, Config, Curtail, Evidence, FirstSpeaker};
use crate::source::Location;

/// One setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its key, such as `sweep.runs` or `user[1].model`.
    pub key: String,
    /// Its value.
    pub value: Value,
}

#[derive(Default)]
struct Entries {
    list: Vec<Entry>,
    prefix: String,
}

impl Entries {
    /// Adds a setting; one without a value is left out.
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        let empty = match &value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        if !empty {
            self.list.push(Entry { key: format!("{}{key}", self.prefix), value });
        }
    }

    fn within(&mut self, name: &str, add: impl FnOnce(&mut Self)) {
        let outer = self.prefix.clone();
        self.prefix = format!("{outer}{name}.");
        add(self);
        self.prefix = outer;
    }
}

impl Config {
    /// Every setting that has a value, defaults included, in the order of the documentation. What a model's settings
    /// leave to the provider is not in it. Header values that name no environment variable are not shown: they may be
    /// secrets.
    pub fn entries(&self) -> Vec<Entry> {
        let mut out = Entries::default();
        out.put("target", self.target.clone());
        out.put("persona_files", self.persona_files.clone());
        for (name, user) in numbered("user", &self.users) {
            out.within(&name, |out| model(out, user));
        }
        out.within("candidate", |out| {
            let candidate = &self.candidate;
            out.put("name", candidate.name.clone());
            out.put("system_prompt", candidate.system_prompt.clone());
            out.put("system_prompt_file", candidate.system_prompt_file.clone());
            model(out, &candidate.model);
        });
        for (name, judge) in numbered("judge", &self.judge.models) {
            out.within(&name, |out| {
                model(out, &judge.model);
                out.put("instances", judge.instances);
            });
        }
        out.within("judging", |out| {
            out.put("reasks", self.judge.reasks);
            out.put("ahead", word(&Ahead::WORDS, self.judge.ahead));
            out.put("semantics", self.judge.semantics.word());
            if let Some(confirm) = &self.judge.confirm {
                out.within("confirm", |out| model(out, confirm));
            }
        });
        self.sweep_entries(&mut out);
        out.within("concurrency", |out| {
            out.put("calls", self.concurrency.calls);
            out.put("conversations", self.concurrency.conversations);
        });
        out.within("budget", |out| {
            let dollars = self.budget.dollars.as_ref().and_then(|text| text.parse::<f64>().ok());
            out.put("dollars", dollars.map_or(Value::Null, |dollars| json!(dollars)));
            out.put("tokens", self.budget.tokens);
            out.put("calls", self.budget.calls);
            out.put("time", duration(self.budget.time));
        });
        out.within("gate", |out| {
            out.put("thresholds", self.gate.thresholds.clone());
            out.put("baseline", self.gate.baseline.clone());
            out.put("last_accepted", self.gate.last_accepted.clone());
        });
        out.within("report", |out| {
            let evidence = match self.report.evidence {
                Evidence::Reasons => "reasons",
                Evidence::None => "none",
                Evidence::Quotes => "quotes",
            };
            out.put("evidence", evidence);
            out.put("templates", self.report.templates.clone());
            out.put("name", self.report.name.clone());
        });
        out.put("out", self.out.clone());
        out.put("prices", self.prices.clone());
        out.put("ca_cert", self.ca_cert.clone());
        out.list
    }

    fn sweep_entries(&self, out: &mut Entries) {
        let sweep = &self.sweep;
        out.within("sweep", |out| {
            out.put("runs", sweep.runs);
            out.put("max_messages", sweep.max_messages);
            out.put("max_words", sweep.max_words);
            let first = match sweep.first_speaker {
                FirstSpeaker::User => "user",
                FirstSpeaker::Chatbot => "chatbot",
            };
            out.put("first_speaker", first);
            out.put("first_message", sweep.first_message.clone());
            out.put("start_prompt", sweep.start_prompt.clone());
            let texts = |list: &[(String, Location)]| -> Vec<String> {
                list.iter().map(|(text, _)| text.clone()).collect()
            };
            out.put("personas", texts(&sweep.select.names));
            out.put("risk_levels", texts(&sweep.select.risk_levels));
            out.put("sample", sweep.select.sample);
            out.put("seed", sweep.seed);
            out.put("resamples", sweep.resamples);
            out.put("restarts", sweep.restarts);
            let curtail = match sweep.curtail {
                Curtail::Never => "never",
                Curtail::Certain => "certain",
                Curtail::EarlyPass => "early-pass",
            };
            out.put("curtail", curtail);
        });
    }
}

/// One item is called by the name, several by name and place.
fn numbered<'a, T>(name: &str, items: &'a [T]) -> Vec<(String, &'a T)> {
    match items {
        [only] => vec![(name.to_owned(), only)],
        _ => items.iter().enumerate().map(|(index, item)| (format!("{name}[{index}]"), item)).collect(),
    }
}

fn word<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> Option<&'static str> {
    words.iter().find(|(_, known)| *known == value).map(|(word, _)| *word)
}

fn duration(duration: Option<Duration>) -> Option<String> {
    duration.map(|duration| match duration.subsec_millis() {
        0 => format!("{}s", duration.as_secs()),
        _ => format!("{}ms", duration.as_millis()),
    })
}

/// Headers with the values that show nothing secret.
fn headers(headers: &std::collections::BTreeMap<String, String>) -> Value {
    let shown = headers.iter().map(|(name, value)| {
        let names_variable = value.contains("${") || value.contains("{{");
        (name.clone(), if names_variable { value.clone() } else { "(not shown)".to_owned() }.into())
    });
    Value::Object(shown.collect())
}

fn model(out: &mut Entries, model: &ModelSettings) {
    if !model.model.is_empty() {
        out.put("model", model.model.clone());
    }
    out.put("provider", model.provider.clone());
    out.put("api", model.api.map(super::model::Api::word));
    out.put("base_url", model.base_url.clone());
    out.put("key_env", model.key_env.clone());
    out.put("headers", headers(&model.headers));
    out.put("env", model.env.clone());
    out.put("extra_body", Value::Object(model.extra_body.clone()));
    out.put("organization", model.organization.clone());
    out.put("project", model.project.clone());
    out.put("api_version", model.api_version.clone());
    out.put("region", model.region.clone());
    out.put("family", model.family.clone());
    out.put("max_output_tokens", model.max_output_tokens);
    out.put("temperature", model.temperature);
    out.put("top_p", model.top_p);
    out.put("seed", model.seed);
    out.put("effort", model.effort.map(super::model::Effort::word));
    out.within("capabilities", |out| {
        out.put("sampling", model.capabilities.sampling);
        out.put("schema", model.capabilities.schema);
        if let Some(effort) = &model.capabilities.effort {
            let words: Vec<&str> = effort.iter().map(|effort| effort.word()).collect();
            // An empty list says something here: no effort is sent.
            let value = if words.is_empty() { Value::from("[]") } else { words.into() };
            out.put("effort", value);
        }
    });
    out.put("prompt_cache", model.prompt_cache);
    out.put("pinned", model.pinned);
    out.put("connect_timeout", duration(model.connect_timeout));
    out.put("timeout", duration(model.timeout));
    out.put("idle_timeout", duration(model.idle_timeout));
    out.put("max_retries", model.max_retries);
    out.put("max_retry_wait", duration(model.max_retry_wait));
    out.put("max_concurrency", model.max_concurrency);
    if let Some(settings) = &model.http {
        out.within("http", |out| http(out, settings));
    }
    if let Some(command) = &model.command {
        out.within("command", |out| {
            out.put("argv", command.argv.clone());
            out.put("directory", command.directory.as_ref().map(|path| path.to_string_lossy().into_owned()));
            out.put("lifetime", command.lifetime.word());
        });
    }
}

fn http(out: &mut Entries, http: &HttpSettings) {
    let call = |out: &mut Entries, name: &str, call: &HttpCall| {
        out.within(name, |out| {
            out.put("method", call.method.clone());
            out.put("url", call.url.clone());
            out.put("headers", headers(&call.headers));
            out.put("body", call.body.clone());
        });
    };
    if let Some(start) = &http.start {
        call(out, "start", start);
    }
    out.put("session_id", http.session_id.clone());
    out.put("greeting", http.greeting.clone());
    call(out, "turn", &http.turn);
    out.put("reply", http.reply.clone());
    if let Some(stream) = &http.stream {
        out.within("stream", |out| {
            out.put("kind", stream.kind.word());
            out.put("event", stream.event.clone());
            out.put("delta", stream.delta.clone());
            match &stream.end {
                StreamEnd::Data(text) => out.put("end_data", text.clone()),
                StreamEnd::Event(name) => out.put("end_event", name.clone()),
                StreamEnd::Pointer(pointer) => out.put("end_pointer", pointer.clone()),
                StreamEnd::Close => {}
            }
            out.put("error", stream.error.clone());
        });
    }
    if let Some(end) = &http.end {
        call(out, "end", end);
    }
    out.put("usage_input", http.usage_input.clone());
    out.put("usage_output", http.usage_output.clone());
    out.put("refusal", http.refusal.clone());
    out.put("reply_model", http.model.clone());
    out.put("idempotency_header", http.idempotency_header.clone());
    out.put("cookies", http.cookies);
}

/// Where a file sets the key of an [`Entry`]; `None` when it does not, so that the value is a default.
pub fn locate(file: &Node, key: &str) -> Option<Location> {
    let mut node = file;
    for part in key.split('.') {
        let (name, index) = match part.strip_suffix(']').and_then(|part| part.split_once('[')) {
            Some((name, index)) => (name, index.parse().ok()?),
            None => (part, 0),
        };
        node = match &node.value {
            Yaml::Map(entries) => entries.iter().find(|(key, _)| key.text == name).map(|(_, node)| node)?,
            // A role as one text is the model's id.
            Yaml::Text(_) if name == "model" => node,
            _ => return None,
        };
        // The roles may be lists of models; a list of texts is the setting itself.
        if let Yaml::List(items) = &node.value
            && matches!(name, "user" | "judge" | "candidate")
        {
            node = items.get(index)?;
        }
    }
    (node.value != Yaml::Null).then(|| node.location.clone())
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::*;
    use crate::diagnostic::Diagnostics;
    use crate::source::Source;

    const FILE: &str = "user: [a/b, { model: c/d, effort: low }]\n\
                        candidate: { provider: http, http: { turn: { url: 'https://b', headers: { k: '${K}', s: secret } } } }\n\
                        judge: j/k\n\
                        sweep: { runs: 3, personas: [Alix], max_words: }\n\
                        budget: { dollars: 2.5, time: 90m }\n";

    fn shown() -> Vec<(String, String)> {
        let (config, _) = Config::parse(&Source::new("c.yaml", FILE)).unwrap();
        config.entries().into_iter().map(|entry| (entry.key, entry.value.to_string())).collect()
    }

    #[test]
    fn settings_stand_under_the_keys_of_the_file() {
        let shown = shown();
        let value = |key: &str| shown.iter().find(|(found, _)| found == key).map(|(_, value)| value.as_str());
        assert_eq!(value("user[0].model"), Some("\"a/b\""));
        assert_eq!(value("user[1].effort"), Some("\"low\""));
        assert_eq!(value("judge.model"), Some("\"j/k\""));
        assert_eq!(value("judge.instances"), Some("1"));
        assert_eq!(value("sweep.runs"), Some("3"));
        assert_eq!(value("sweep.max_words"), None);
        assert_eq!(value("sweep.personas"), Some("[\"Alix\"]"));
        assert_eq!((value("budget.dollars"), value("budget.time")), (Some("2.5"), Some("\"5400s\"")));
        assert_eq!(value("candidate.http.turn.method"), Some("\"POST\""));
    }

    #[test]
    fn a_literal_header_is_not_shown() {
        let headers = shown().into_iter().find(|(key, _)| key == "candidate.http.turn.headers").unwrap().1;
        assert_eq!(headers, r#"{"k":"${K}","s":"(not shown)"}"#);
    }

    #[test]
    fn the_place_of_a_setting_is_found_and_a_default_has_none() {
        let mut problems = Diagnostics::new();
        let node = yaml::parse(&Source::new("c.yaml", FILE), &mut problems).unwrap();
        let line = |key: &str| locate(&node, key).map(|place| (place.line, place.column));
        assert_eq!(line("user[0].model"), Some((1, 8)));
        assert_eq!(line("user[1].effort").map(|(line, _)| line), Some(1));
        assert_eq!(line("user[0].effort"), None);
        assert_eq!(line("judge.model"), Some((3, 8)));
        assert_eq!(line("judge.instances"), None);
        assert_eq!(line("sweep.runs"), Some((4, 16)));
        assert_eq!(line("sweep.personas").map(|(line, _)| line), Some(4));
        assert_eq!(line("sweep.max_words"), None, "a key without a value is absent");
        assert_eq!(line("concurrency.calls"), None);
    }
}
