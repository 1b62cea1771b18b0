//! Values of a YAML file, each with its place.

use saphyr::{LoadableYamlNode as _, MarkedYaml, Scalar, YamlData};

use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::source::{Location, Source};

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its first character.
    pub location: Location,
}

/// A YAML value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number; may be infinite or not a number.
    Float(f64),
    /// Text.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping in the order of the file.
    Map(Vec<(Key, Node)>),
}

/// A key and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its text.
    pub text: String,
    /// Its first character.
    pub location: Location,
}

/// Parses one YAML document. Returns `None` after telling why.
pub fn parse(source: &Source, problems: &mut Diagnostics) -> Option<Node> {
    let documents = match MarkedYaml::load_from_str(source.text()) {
        Ok(documents) => documents,
        Err(error) => {
            let place = source.at(error.marker().line(), error.marker().col() + 1);
            let duplicate = error.info().contains("duplicated key");
            let code = if duplicate { Code::DuplicateKey } else { Code::Syntax };
            let (message, help) = if duplicate {
                let key = key_at(source, error.marker().line(), error.marker().col());
                (format!("the key{key} stands twice in the same mapping"), "remove one of the two")
            } else {
                let help = "YAML is indented with spaces, keys end with `: `, and text with `: ` or `#` in it is quoted";
                (error.info().to_owned(), help)
            };
            problems.push(Diagnostic::error(code, message).at(place).help(help));
            return None;
        }
    };
    let mut documents = documents.into_iter();
    let Some(document) = documents.next() else {
        problems.push(Diagnostic::error(Code::EmptyInput, "the file is empty").at(source.at(1, 1)));
        return None;
    };
    if let Some(second) = documents.next() {
        problems.push(
            Diagnostic::error(Code::Syntax, "a second document starts here")
                .at(source.at(second.span.start.line(), second.span.start.col() + 1))
                .help("keep one document in the file: remove the line `---`"),
        );
        return None;
    }
    node(&document, source, problems)
}

fn node(yaml: &MarkedYaml<'_>, source: &Source, problems: &mut Diagnostics) -> Option<Node> {
    let location = source.at(yaml.span.start.line(), yaml.span.start.col() + 1);
    let value = match &yaml.data {
        YamlData::Value(scalar) => match scalar {
            Scalar::Null => Value::Null,
            Scalar::Boolean(value) => Value::Bool(*value),
            Scalar::Integer(value) => Value::Integer(*value),
            Scalar::FloatingPoint(value) => Value::Float(value.into_inner()),
            Scalar::String(text) => Value::Text(text.clone().into_owned()),
        },
        YamlData::Sequence(items) => {
            Value::List(items.iter().filter_map(|item| node(item, source, problems)).collect())
        }
        YamlData::Mapping(entries) => {
            let mut map = Vec::with_capacity(entries.len());
            for (key, value) in entries {
                let place = source.at(key.span.start.line(), key.span.start.col() + 1);
                let text = match &key.data {
                    YamlData::Value(Scalar::String(text)) => text.clone().into_owned(),
                    YamlData::Value(Scalar::Integer(number)) => number.to_string(),
                    YamlData::Value(Scalar::Boolean(value)) => value.to_string(),
                    YamlData::Value(Scalar::Null) => "None".to_owned(),
                    _ => {
                        problems.push(Diagnostic::error(Code::WrongType, "a key must be text").at(place));
                        continue;
                    }
                };
                if text == "<<" {
                    problems.push(
                        Diagnostic::error(Code::Syntax, "merge keys (`<<`) are not read")
                            .at(place)
                            .help("write the keys out here"),
                    );
                    continue;
                }
                if let Some(value) = node(value, source, problems) {
                    map.push((Key { text, location: place }, value));
                }
            }
            Value::Map(map)
        }
        YamlData::Tagged(tag, inner) => {
            problems.push(
                Diagnostic::error(Code::Syntax, format!("the tag `{tag}` is not read"))
                    .at(location)
                    .help("remove it; what kind of value is meant is known from the key"),
            );
            return node(inner, source, problems);
        }
        YamlData::Representation(..) | YamlData::Alias(_) | YamlData::BadValue => {
            problems.push(
                Diagnostic::error(Code::Syntax, "this value cannot be read")
                    .at(location)
                    .help("use plain text, a number, `true`, `false`, a list or a mapping; no aliases"),
            );
            return None;
        }
    };
    Some(Node { value, location })
}

/// The key that stands at a place, in backquotes after a space; nothing where the line has none.
fn key_at(source: &Source, line: usize, column: usize) -> String {
    let text = source.text().lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let rest: String = text.chars().skip(column).take_while(|c| *c != ':').collect();
    let key = rest.trim().trim_matches(['"', '\'']);
    if key.is_empty() { String::new() } else { format!(" `{key}`") }
}

impl Node {
    /// What to write where a number is wanted: what was probably meant, where that can be told.
    pub(super) fn number_help(&self, range: String) -> String {
        let Value::Text(text) = &self.value else { return range };
        let text = text.trim();
        let share = text.strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
        match share {
            Some(percent) => format!("write `{}`, without the sign %", percent / 100.0),
            None if text.parse::<f64>().is_ok() => format!("write `{text}`, without quotation marks"),
            None => range,
        }
    }

    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    pub(super) fn wrong_type(&self, path: &str, want: &str) -> Diagnostic {
        Diagnostic::error(Code::WrongType, format!("`{path}` is {}, want {want}", self.kind()))
            .at(self.location.clone())
    }

    /// The value as JSON.
    pub fn to_json(&self) -> Option<serde_json::Value> {
        Some(match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Integer(value) => (*value).into(),
            Value::Float(value) => serde_json::Number::from_f64(*value)?.into(),
            Value::Text(text) => text.clone().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect::<Option<Vec<_>>>()?.into(),
            Value::Map(entries) => serde_json::Value::Object(
                entries
                    .iter()
                    .map(|(key, value)| Some((key.text.clone(), value.to_json()?)))
                    .collect::<Option<_>>()?,
            ),
        })
    }
}
