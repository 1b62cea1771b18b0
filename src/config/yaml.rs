//! YAML as a person wrote it: values with their place, and a reader that collects every problem.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::source::Location;

mod node;

pub use node::{Key, Node, Value, parse};

fn allowed(range: &std::ops::RangeInclusive<f64>) -> String {
    if range.end().is_finite() {
        format!("a number from {} to {}", range.start(), range.end())
    } else {
        format!("a number from {}", range.start())
    }
}

fn from_to(range: &std::ops::RangeInclusive<u64>) -> String {
    if *range.end() == u64::MAX {
        format!("from {}", range.start())
    } else {
        format!("from {} to {}", range.start(), range.end())
    }
}

/// Reads the keys of one mapping. Every key that is asked for is a known key; [`Section::finish`] reports the
/// others. A key without a value counts as absent.
#[derive(Debug)]
pub struct Section<'a> {
    path: String,
    location: Location,
    entries: Entries<'a>,
    asked: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug)]
enum Entries<'a> {
    Mapping(&'a [(Key, Node)]),
    /// One text that stands for the value of this key.
    Short(&'static str, &'a Node),
}

impl<'a> Entries<'a> {
    fn find(self, wanted: &str) -> Option<&'a Node> {
        match self {
            Self::Mapping(entries) => entries.iter().find(|(k, _)| k.text == wanted).map(|(_, node)| node),
            Self::Short(key, node) => (key == wanted).then_some(node),
        }
    }

    fn mapping(self) -> &'a [(Key, Node)] {
        match self {
            Self::Mapping(entries) => entries,
            Self::Short(..) => &[],
        }
    }
}

impl<'a> Section<'a> {
    /// The mapping of a node; another kind of value is a problem. `path` is how messages call it, empty for the
    /// whole file.
    pub fn new(node: &'a Node, path: &str, problems: &mut Diagnostics) -> Option<Self> {
        match &node.value {
            Value::Map(entries) => {
                let location = node.location.clone();
                let path = path.to_owned();
                Some(Self { path, location, entries: Entries::Mapping(entries), asked: Vec::new() })
            }
            _ if path.is_empty() => {
                let said = format!("the file is {}, want a mapping (`key: value` lines)", node.kind());
                problems.push(
                    Diagnostic::error(Code::WrongType, said).at(node.location.clone()).help(
                        "is it another file than was meant? `vera-gate check FILE` says what a file is",
                    ),
                );
                None
            }
            _ => {
                problems.push(node.wrong_type(path, "a mapping (`key: value` lines)"));
                None
            }
        }
    }

    /// A mapping, or a plain text that stands for a mapping with this one key.
    pub fn or_shorthand(
        node: &'a Node,
        path: &str,
        key: &'static str,
        problems: &mut Diagnostics,
    ) -> Option<Self> {
        if let Value::Text(_) = node.value {
            let (path, location) = (path.to_owned(), node.location.clone());
            return Some(Self { path, location, entries: Entries::Short(key, node), asked: Vec::new() });
        }
        Self::new(node, path, problems)
    }

    /// Where the mapping starts.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The full name of a key, as messages show it.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The node under a key, `None` when absent or without a value.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Node> {
        self.asked.push(key);
        let node = self.entries.find(key)?;
        (node.value != Value::Null).then_some(node)
    }

    /// Whether the key is there, even without a value.
    pub fn has(&self, key: &str) -> bool {
        self.entries.find(key).is_some()
    }

    /// Text.
    pub fn text(&mut self, key: &'static str, problems: &mut Diagnostics) -> Option<String> {
        let node = self.get(key)?;
        match &node.value {
            Value::Text(text) => Some(text.clone()),
            // A model named `4` or a version `1.2` is text that YAML reads as a number.
            Value::Integer(number) => Some(number.to_string()),
            _ => {
                problems.push(node.wrong_type(&self.path_of(key), "text").help("quote the value"));
                None
            }
        }
    }

    /// Text that must be there.
    pub fn required_text(&mut self, key: &'static str, problems: &mut Diagnostics) -> Option<String> {
        if self.get(key).is_none() {
            problems.push(self.missing(key));
            return None;
        }
        self.text(key, problems)
    }

    /// The problem that a key is missing.
    pub fn missing(&self, key: &str) -> Diagnostic {
        Diagnostic::error(Code::MissingKey, format!("`{}` is missing", self.path_of(key)))
            .at(self.location.clone())
            .help(format!("add `{key}: ...` here"))
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, key: &'static str, problems: &mut Diagnostics) -> Option<bool> {
        let node = self.get(key)?;
        match node.value {
            Value::Bool(value) => Some(value),
            _ => {
                let help = "write the word as it is, without quotation marks";
                problems.push(node.wrong_type(&self.path_of(key), "`true` or `false`").help(help));
                None
            }
        }
    }

    /// A whole number within bounds.
    pub fn whole(
        &mut self,
        key: &'static str,
        range: std::ops::RangeInclusive<u64>,
        problems: &mut Diagnostics,
    ) -> Option<u64> {
        let node = self.get(key)?;
        let path = self.path_of(key);
        let Value::Integer(number) = node.value else {
            let help = node.number_help(format!("a whole number {}", from_to(&range)));
            problems.push(node.wrong_type(&path, "a whole number").help(help));
            return None;
        };
        match u64::try_from(number).ok().filter(|n| range.contains(n)) {
            Some(number) => Some(number),
            None => {
                problems.push(
                    Diagnostic::error(Code::OutOfRange, format!("`{path}` is {number}"))
                        .at(node.location.clone())
                        .help(format!("a whole number {}", from_to(&range))),
                );
                None
            }
        }
    }

    /// A 32-bit whole number within bounds.
    pub fn small(
        &mut self,
        key: &'static str,
        range: std::ops::RangeInclusive<u32>,
        problems: &mut Diagnostics,
    ) -> Option<u32> {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        self.whole(key, range, problems).and_then(|number| u32::try_from(number).ok())
    }

    /// A finite number within bounds.
    pub fn number(
        &mut self,
        key: &'static str,
        range: std::ops::RangeInclusive<f64>,
        problems: &mut Diagnostics,
    ) -> Option<f64> {
        let node = self.get(key)?;
        let path = self.path_of(key);
        let number = match node.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => {
                let help = node.number_help(allowed(&range));
                problems.push(node.wrong_type(&path, "a number").help(help));
                return None;
            }
        };
        if number.is_finite() && range.contains(&number) {
            return Some(number);
        }
        problems.push(
            Diagnostic::error(Code::OutOfRange, format!("`{path}` is {number}"))
                .at(node.location.clone())
                .help(allowed(&range)),
        );
        None
    }

    /// A length of time: a number of seconds, or text such as `500ms`, `30s`, `10m`, `2h`.
    pub fn duration(&mut self, key: &'static str, problems: &mut Diagnostics) -> Option<Duration> {
        let node = self.get(key)?;
        let read = match &node.value {
            Value::Integer(seconds) => u64::try_from(*seconds).ok().map(Duration::from_secs),
            Value::Float(seconds) => Duration::try_from_secs_f64(*seconds).ok(),
            Value::Text(text) => read_duration(text),
            _ => None,
        };
        if read.is_none() {
            problems.push(
                Diagnostic::error(Code::WrongType, format!("`{}` is no length of time", self.path_of(key)))
                    .at(node.location.clone())
                    .help("seconds as a number, or text such as `500ms`, `30s`, `10m`, `2h`"),
            );
        }
        read
    }

    /// One of a closed set of words.
    pub fn word<T: Copy>(
        &mut self,
        key: &'static str,
        allowed: &[(&str, T)],
        problems: &mut Diagnostics,
    ) -> Option<T> {
        let node = self.get(key)?;
        one_of(node, &self.path_of(key), allowed, problems)
    }

    /// A list of words of a closed set; one word alone is a list of one.
    pub fn words<T: Copy>(
        &mut self,
        key: &'static str,
        allowed: &[(&str, T)],
        problems: &mut Diagnostics,
    ) -> Option<Vec<T>> {
        let node = self.get(key)?;
        let path = self.path_of(key);
        match &node.value {
            Value::List(items) => {
                Some(items.iter().filter_map(|item| one_of(item, &path, allowed, problems)).collect())
            }
            _ => one_of(node, &path, allowed, problems).map(|word| vec![word]),
        }
    }

    /// A list of texts with their places; one text alone is a list of one.
    pub fn texts(
        &mut self,
        key: &'static str,
        problems: &mut Diagnostics,
    ) -> Option<Vec<(String, Location)>> {
        let node = self.get(key)?;
        let path = self.path_of(key);
        let items = match &node.value {
            Value::List(items) => items.iter().collect(),
            _ => vec![node],
        };
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            match &item.value {
                Value::Text(text) => texts.push((text.clone(), item.location.clone())),
                Value::Integer(number) => texts.push((number.to_string(), item.location.clone())),
                _ => problems.push(item.wrong_type(&path, "text")),
            }
        }
        Some(texts)
    }

    /// A mapping from any key to text, number or truth value, taken as text.
    pub fn text_map(
        &mut self,
        key: &'static str,
        problems: &mut Diagnostics,
    ) -> Option<BTreeMap<String, String>> {
        let node = self.get(key)?;
        let path = self.path_of(key);
        let section = Section::new(node, &path, problems)?;
        let mut map = BTreeMap::new();
        for (key, value) in section.entries.mapping() {
            let text = match &value.value {
                Value::Text(text) => text.clone(),
                Value::Integer(number) => number.to_string(),
                Value::Bool(value) => value.to_string(),
                Value::Float(number) => number.to_string(),
                _ => {
                    problems.push(value.wrong_type(&format!("{path}.{}", key.text), "text"));
                    continue;
                }
            };
            map.insert(key.text.clone(), text);
        }
        Some(map)
    }

    /// A mapping of its own.
    pub fn section(&mut self, key: &'static str, problems: &mut Diagnostics) -> Option<Section<'a>> {
        let node = self.get(key)?;
        Section::new(node, &self.path_of(key), problems)
    }

    /// A list of mappings.
    pub fn sections(&mut self, key: &'static str, problems: &mut Diagnostics) -> Option<Vec<Section<'a>>> {
        let node = self.get(key)?;
        let path = self.path_of(key);
        let Value::List(items) = &node.value else {
            problems.push(node.wrong_type(&path, "a list (lines that start with `- `)"));
            return None;
        };
        let sections = items.iter().enumerate();
        Some(sections.filter_map(|(i, item)| Section::new(item, &format!("{path}[{i}]"), problems)).collect())
    }

    /// Reports every key that was never asked for.
    pub fn finish(self, problems: &mut Diagnostics) {
        for (key, _) in self.entries.mapping() {
            if !self.asked.contains(&key.text.as_str()) {
                problems.push(
                    Diagnostic::error(Code::UnknownKey, format!("unknown key `{}`", self.path_of(&key.text)))
                        .at(key.location.clone())
                        .help(did_you_mean(&key.text, self.asked.iter().copied())),
                );
            }
        }
    }
}

fn one_of<T: Copy>(node: &Node, path: &str, allowed: &[(&str, T)], problems: &mut Diagnostics) -> Option<T> {
    let text = match &node.value {
        Value::Text(text) => text.clone(),
        // `none` and `off` are words of ours; YAML 1.2 reads only `null`, `true` and `false` otherwise.
        Value::Bool(value) => value.to_string(),
        _ => {
            problems.push(
                node.wrong_type(path, "a word").help(did_you_mean("", allowed.iter().map(|(word, _)| *word))),
            );
            return None;
        }
    };
    let found = allowed.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    if found.is_none() {
        problems.push(
            Diagnostic::error(Code::UnknownWord, format!("`{path}` is `{text}`"))
                .at(node.location.clone())
                .help(did_you_mean(&text, allowed.iter().map(|(word, _)| *word))),
        );
    }
    found
}

fn read_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at_checked(split)?;
    let number: f64 = number.parse().ok()?;
    let seconds = match unit.trim() {
        "ms" => number / 1000.0,
        "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn node_of(text: &str) -> Node {
        let mut problems = Diagnostics::new();
        let node = parse(&Source::new("f.yaml", text), &mut problems);
        assert!(problems.is_empty(), "{problems}");
        node.unwrap()
    }

    #[test]
    fn every_problem_is_reported_with_its_place() {
        let node = node_of("runs: two\nfirst: usr\nlimit: .nan\nrans: 3\nwait: 5 parsecs\n");
        let mut problems = Diagnostics::new();
        let mut section = Section::new(&node, "", &mut problems).unwrap();
        assert_eq!(section.whole("runs", 1..=9, &mut problems), None);
        assert_eq!(section.word("first", &[("user", 1), ("chatbot", 2)], &mut problems), None);
        assert_eq!(section.number("limit", 0.0..=1.0, &mut problems), None);
        assert_eq!(section.duration("wait", &mut problems), None);
        section.finish(&mut problems);
        let shown: Vec<String> =
            problems.iter().map(|d| format!("{} {}", d.location.as_ref().unwrap(), d.code)).collect();
        assert_eq!(
            shown,
            [
                "f.yaml:1:7 wrong-type",
                "f.yaml:2:8 unknown-word",
                "f.yaml:3:8 out-of-range",
                "f.yaml:4:1 unknown-key",
                "f.yaml:5:7 wrong-type"
            ]
        );
        assert!(problems.to_string().contains("did you mean `runs`?"));
        assert!(problems.to_string().contains("did you mean `user`?"));
    }

    #[test]
    fn duplicate_keys_and_second_documents_are_refused() {
        for (text, code) in [
            ("a: 1\na: 2\n", Code::DuplicateKey),
            ("a: 1\n---\nb: 2\n", Code::Syntax),
            ("a: [1\n", Code::Syntax),
            ("", Code::EmptyInput),
        ] {
            let mut problems = Diagnostics::new();
            assert!(parse(&Source::new("f", text), &mut problems).is_none(), "{text}");
            assert_eq!(problems.iter().next().unwrap().code, code, "{text}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, seconds) in [("500ms", 0.5), ("30s", 30.0), ("10m", 600.0), ("1.5h", 5400.0)] {
            assert_eq!(read_duration(text), Some(Duration::from_secs_f64(seconds)), "{text}");
        }
        assert_eq!(read_duration("10"), None);
        assert_eq!(read_duration("-3s"), None);
    }

    #[test]
    fn a_problem_says_what_to_write() {
        let told = |text: &str| {
            let mut problems = Diagnostics::new();
            if let Some(node) = parse(&Source::new("f.yaml", text), &mut problems)
                && let Some(mut section) = Section::new(&node, "", &mut problems)
            {
                section.number("limit", 0.0..=1.0, &mut problems);
                section.whole("runs", 1..=9, &mut problems);
                section.boolean("on", &mut problems);
                section.finish(&mut problems);
            }
            problems.to_string()
        };
        for (text, help) in [
            ("limit: 5%", "write `0.05`, without the sign %"),
            ("limit: \"0.1\"", "write `0.1`, without quotation marks"),
            ("limit: true", "a number from 0 to 1"),
            ("runs: some", "a whole number from 1 to 9"),
            ("on: \"true\"", "without quotation marks"),
            ("limit: 0.1\nlimit: 0.9", "the key `limit` stands twice"),
            ("{\"limit\": 0.1, \"limit\": 0.9}", "the key `limit` stands twice"),
            ("<<: {limit: 0.1}", "merge keys (`<<`) are not read"),
            ("limit: !share 0.1", "the tag `!share` is not read"),
            ("a,b,c", "is it another file than was meant?"),
        ] {
            assert!(told(text).contains(help), "{text}: {}", told(text));
        }
        assert_eq!(told("limit: 0.1\nruns: 3\non: true"), "");
    }
}
