//! `manifest.json`: VERA-MH 2.0's keys, and ours beside them.

use std::collections::BTreeMap;
use std::fmt;

use semver::Version;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::RiskLevel;
use super::persona::RiskMapping;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::source::{Location, Source};

/// The name of the file in a target's folder.
pub const FILE_NAME: &str = "manifest.json";

/// Which files a target is made of, and what is said about it. Paths are as written: relative to the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Ours: short name.
    pub name: Option<String>,
    /// Ours: version of the target.
    pub version: Option<Version>,
    /// Ours: title for reports.
    pub title: Option<String>,
    /// Ours: whether clinicians checked it.
    pub clinically_validated: Option<bool>,
    /// Ours: what reports say about it.
    pub notice: Option<String>,
    /// The rubric.
    pub rubric: String,
    /// System prompt of the judge.
    pub judge_prompt: String,
    /// User message of the judge.
    pub question_prompt: String,
    /// Persona tables, at least one.
    pub personas: Vec<String>,
    /// The inner layer of the user model's prompt.
    pub context: Option<String>,
    /// Ours: the outer layer, or the only one. VERA-MH has it beside or above the manifest under a fixed name.
    pub persona_prompt: Option<String>,
    /// Ours: the reminder. VERA-MH has it beside or above the manifest under a fixed name.
    pub reminder: Option<String>,
    /// Columns of the persona table that `results.csv` repeats.
    pub annotation_columns: Vec<String>,
    /// Ours: where the risk level stands and which words it has.
    pub risk: RiskMapping,
}

const KEYS: [&str; 15] = [
    "rubric_file",
    "rubric_prompt_beginning_file",
    "question_prompt_file",
    "personas",
    "persona_context_template_file",
    "persona_annotation_columns",
    "name",
    "version",
    "title",
    "clinically_validated",
    "notice",
    "persona_prompt_template_file",
    "persona_prompt_reminder_file",
    "risk_column",
    "risk_levels",
];

/// A JSON object with its keys in the order of the file, repetitions included.
struct Pairs(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Pairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

struct Reader<'a> {
    source: &'a Source,
    values: BTreeMap<String, Value>,
    problems: &'a mut Diagnostics,
}

impl Manifest {
    /// Reads a manifest. Every problem goes to `problems`; `None` when it is no JSON object.
    pub fn parse(source: &Source, problems: &mut Diagnostics) -> Option<Self> {
        let pairs = match serde_json::from_str::<Pairs>(source.text()) {
            Ok(Pairs(pairs)) => pairs,
            Err(error) => {
                let mut message = error.to_string();
                if let Some(end) = message.rfind(" at line ") {
                    message.truncate(end);
                }
                problems.push(
                    Diagnostic::error(Code::Syntax, format!("not a manifest: {message}"))
                        .at(source.at(error.line().max(1), error.column())),
                );
                return None;
            }
        };
        let mut reader = Reader { source, values: BTreeMap::new(), problems };
        for (key, value) in pairs {
            reader.take(&key, value);
        }
        Some(reader.manifest())
    }

    /// Where a key stands in its file, or the start of the file.
    pub(super) fn place(source: &Source, key: &str) -> Location {
        let quoted = format!("\"{key}\"");
        let text = source.text();
        let is_key =
            |at: usize| text.get(at + quoted.len()..).is_some_and(|rest| rest.trim_start().starts_with(':'));
        let found = text.match_indices(&quoted).map(|(at, _)| at).find(|at| is_key(*at));
        source.at_offset(found.unwrap_or(0))
    }
}

impl Reader<'_> {
    fn problem(&mut self, code: Code, key: &str, message: String) {
        self.problems.push(Diagnostic::error(code, message).at(Manifest::place(self.source, key)));
    }

    fn take(&mut self, key: &str, value: Value) {
        if !KEYS.contains(&key) {
            self.problems.push(
                Diagnostic::warning(Code::UnknownKey, format!("unknown key `{key}`"))
                    .at(Manifest::place(self.source, key))
                    .help(did_you_mean(key, KEYS)),
            );
        } else if self.values.insert(key.to_owned(), value).is_some() {
            self.problem(Code::DuplicateKey, key, format!("key `{key}` stands twice"));
        }
    }

    fn wrong_type(&mut self, key: &str, want: &str) {
        self.problem(Code::WrongType, key, format!("`{key}` must be {want}"));
    }

    /// A text that is not blank; `null` counts as absent.
    fn text(&mut self, key: &str) -> Option<String> {
        match self.values.remove(key) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if !text.trim().is_empty() => Some(text),
            Some(_) => {
                self.wrong_type(key, "a text that is not blank");
                None
            }
        }
    }

    fn file(&mut self, key: &str) -> String {
        let given = self.values.contains_key(key);
        let file = self.text(key);
        if file.is_none() && !given {
            self.problem(Code::MissingKey, key, format!("key `{key}` is missing"));
        }
        file.unwrap_or_default()
    }

    fn texts(&mut self, key: &str) -> Vec<String> {
        match self.values.remove(key) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => {
                let texts: Vec<String> =
                    items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
                if texts.len() != items.len() {
                    self.wrong_type(key, "a list of texts");
                }
                texts
            }
            Some(_) => {
                self.wrong_type(key, "a list of texts");
                Vec::new()
            }
        }
    }

    fn manifest(mut self) -> Manifest {
        let version = self.text("version").and_then(|text| match Version::parse(&text) {
            Ok(version) => Some(version),
            Err(error) => {
                self.problem(Code::WrongType, "version", format!("`{text}` is no semantic version: {error}"));
                None
            }
        });
        let validated = match self.values.remove("clinically_validated") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(validated)) => Some(validated),
            Some(_) => {
                self.wrong_type("clinically_validated", "true or false");
                None
            }
        };
        let given = self.values.contains_key("personas");
        let personas = self.texts("personas");
        if personas.is_empty() {
            let message = if given { "`personas` names no file" } else { "key `personas` is missing" };
            self.problem(Code::MissingKey, "personas", message.to_owned());
        }
        let context = self.text("persona_context_template_file");
        let persona_prompt = self.text("persona_prompt_template_file");
        if context.is_none() && persona_prompt.is_none() {
            let key = "persona_context_template_file";
            self.problem(Code::MissingKey, key, format!("key `{key}` is missing"));
        }
        Manifest {
            name: self.text("name"),
            version,
            title: self.text("title"),
            clinically_validated: validated,
            notice: self.text("notice"),
            rubric: self.file("rubric_file"),
            judge_prompt: self.file("rubric_prompt_beginning_file"),
            question_prompt: self.file("question_prompt_file"),
            personas,
            context,
            persona_prompt,
            reminder: self.text("persona_prompt_reminder_file"),
            annotation_columns: self.texts("persona_annotation_columns"),
            risk: RiskMapping { column: self.text("risk_column"), words: self.risk_words() },
        }
    }

    fn risk_words(&mut self) -> BTreeMap<String, RiskLevel> {
        const KEY: &str = "risk_levels";
        let mut words = BTreeMap::new();
        match self.values.remove(KEY) {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => {
                for (word, level) in map {
                    let shown = level.as_str().map_or_else(|| level.to_string(), str::to_owned);
                    if let Some(level) = RiskLevel::from_word(&shown) {
                        words.insert(word, level);
                    } else {
                        self.problems.push(
                            Diagnostic::error(
                                Code::UnknownRiskLevel,
                                format!("`{word}` is mapped to the unknown risk level `{shown}`"),
                            )
                            .at(Manifest::place(self.source, &word))
                            .help(did_you_mean(&shown, RiskLevel::ALL.map(RiskLevel::word))),
                        );
                    }
                }
            }
            Some(_) => self.wrong_type(KEY, "an object from the target's words to risk levels"),
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Option<Manifest>, Diagnostics) {
        let mut problems = Diagnostics::new();
        let manifest = Manifest::parse(&Source::new("manifest.json", text), &mut problems);
        (manifest, problems)
    }

    #[test]
    fn the_keys_of_vera_mh_are_enough() {
        let (manifest, problems) = parse(
            r#"{"rubric_file": "r.tsv", "rubric_prompt_beginning_file": "b.txt", "question_prompt_file": "q.txt",
                "personas": ["p.tsv"], "persona_context_template_file": "c.txt", "persona_annotation_columns": ["Age"]}"#,
        );
        assert!(problems.is_empty(), "{problems}");
        let manifest = manifest.unwrap();
        assert_eq!((manifest.rubric.as_str(), manifest.context.as_deref()), ("r.tsv", Some("c.txt")));
        assert_eq!(
            (manifest.personas, manifest.annotation_columns),
            (vec!["p.tsv".to_owned()], vec!["Age".to_owned()])
        );
        assert_eq!((manifest.version, manifest.clinically_validated), (None, None));
    }

    #[test]
    fn our_keys_are_read() {
        let (manifest, problems) = parse(
            r#"{"rubric_file": "r", "rubric_prompt_beginning_file": "b", "question_prompt_file": "q", "personas": ["p"],
                "persona_prompt_template_file": "t", "name": "own", "version": "1.2.3", "clinically_validated": false,
                "risk_column": "Danger", "risk_levels": {"No": "None", "Now": "immediate"}}"#,
        );
        assert!(problems.is_empty(), "{problems}");
        let manifest = manifest.unwrap();
        assert_eq!(manifest.version, Some(Version::new(1, 2, 3)));
        assert_eq!(manifest.clinically_validated, Some(false));
        assert_eq!(manifest.risk.column.as_deref(), Some("Danger"));
        assert_eq!(manifest.risk.words["Now"], RiskLevel::Immediate);
    }

    #[test]
    fn every_fault_is_reported_at_its_key() {
        let (_, problems) = parse(
            "{\n\"rubric_fil\": \"r\",\n\"question_prompt_file\": 3,\n\"personas\": [],\n\"version\": \"1\",\n\"name\": \"a\",\n\"name\": \"b\",\n\"risk_levels\": {\"No\": \"Non\"}\n}",
        );
        let mut found: Vec<(Code, usize)> =
            problems.iter().map(|d| (d.code, d.location.as_ref().unwrap().line)).collect();
        found.sort();
        let mut want = [
            (Code::UnknownKey, 2),
            (Code::WrongType, 3),
            (Code::MissingKey, 4),
            (Code::WrongType, 5),
            (Code::DuplicateKey, 6),
            (Code::UnknownRiskLevel, 8),
            // rubric_file, rubric_prompt_beginning_file and the persona template stand nowhere.
            (Code::MissingKey, 1),
            (Code::MissingKey, 1),
            (Code::MissingKey, 1),
        ];
        want.sort_unstable();
        assert_eq!(found, want);
        assert!(problems.to_string().contains("did you mean `rubric_file`?"));
    }

    #[test]
    fn broken_json_is_shown_at_its_place() {
        let (manifest, problems) = parse("{\n  \"personas\": [\n}");
        assert!(manifest.is_none());
        let first = problems.iter().next().unwrap();
        assert_eq!((first.code, first.location.as_ref().unwrap().line), (Code::Syntax, 3));
        assert!(parse("[]").0.is_none());
        assert!(parse("").0.is_none());
    }
}
