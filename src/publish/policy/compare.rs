//! What a change would make of a file of the policy, in words.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::escape::unicode::clip;

/// Differences of one file that are told one by one; the rest is counted.
const TOLD: usize = 12;
/// Characters of a value that are shown.
const VALUE: usize = 60;

/// The differences between two readings of a settings file, looser or stricter where that is known.
pub fn settings(base: &Value, head: &Value) -> Vec<String> {
    let mut words = Vec::new();
    different("", "", base, head, &mut words);
    words
}

/// The difference between two texts of another form, if there is one.
pub fn texts(base: &str, head: &str) -> Option<String> {
    if base == head {
        return None;
    }
    let count = |text: &str| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for line in text.lines() {
            *counts.entry(line.trim_end().to_owned()).or_default() += 1;
        }
        counts
    };
    let missing = |from: &BTreeMap<String, usize>, of: &BTreeMap<String, usize>| -> usize {
        of.iter().map(|(line, n)| n.saturating_sub(from.get(line).copied().unwrap_or(0))).sum()
    };
    let (before, after) = (count(base), count(head));
    Some(match (missing(&after, &before), missing(&before, &after)) {
        (0, 0) => "order of lines or white space changed".to_owned(),
        (removed, added) => format!("{} removed, {} added", lines(removed), lines(added)),
    })
}

/// At most a dozen differences and the number of the rest.
pub fn told(mut words: Vec<String>) -> Vec<String> {
    if words.len() > TOLD {
        let more = words.len() - TOLD;
        words.truncate(TOLD);
        words.push(format!("and {more} more"));
    }
    words
}

/// A name or a value, short enough for a sentence.
pub fn short(text: &str) -> String {
    clip(text, VALUE).into_owned()
}

fn lines(count: usize) -> String {
    if count == 1 { "1 line".to_owned() } else { format!("{count} lines") }
}

/// `kind` is that of the rule the values belong to, if they belong to one.
fn different(path: &str, kind: &str, base: &Value, head: &Value, words: &mut Vec<String>) {
    match (base, head) {
        (base, head) if base == head => {}
        (Value::Object(base), Value::Object(head)) => objects(path, kind, base, head, words),
        (Value::Array(base), Value::Array(head)) => lists(path, base, head, words),
        (old, new) => {
            let key = path.rsplit(['.', ' ']).next().unwrap_or_default();
            let way = direction(kind, key, old, new).map_or("", Direction::words);
            words.push(format!("{path}: {} \u{2192} {}{way}", value(old), value(new)));
        }
    }
}

fn objects(
    path: &str,
    kind: &str,
    base: &Map<String, Value>,
    head: &Map<String, Value>,
    words: &mut Vec<String>,
) {
    let kind = base.get("kind").or_else(|| head.get("kind")).and_then(Value::as_str).unwrap_or(kind);
    let inner = |key: &str| match path {
        "" => key.to_owned(),
        path if path.ends_with(':') => format!("{path} {key}"),
        path => format!("{path}.{key}"),
    };
    for (key, old) in base {
        match head.get(key) {
            Some(new) => different(&inner(key), kind, old, new, words),
            None => words.push(format!("{}: removed (was {})", inner(key), value(old))),
        }
    }
    let added = head.iter().filter(|(key, _)| !base.contains_key(*key));
    words.extend(added.map(|(key, new)| {
        let way = if key == "waivers" { Direction::Looser.words() } else { "" };
        format!("{}: added ({}){way}", inner(key), value(new))
    }));
}

/// Entries with an id are found by it, so that inserting one does not look like changing all behind it.
fn lists(path: &str, base: &[Value], head: &[Value], words: &mut Vec<String>) {
    let entry = |name: &str| match path {
        "rules" => format!("rule `{}`", short(name)),
        path => format!("{path} `{}`", short(name)),
    };
    let (Some(before), Some(after)) = (by_name(base), by_name(head)) else {
        words.push(format!("{path}: {} \u{2192} {}", list(base), list(head)));
        return;
    };
    let loosens = |gone: bool| match path {
        "rules" if gone => Direction::Looser.words(),
        "rules" => Direction::Stricter.words(),
        "waivers" if gone => Direction::Stricter.words(),
        "waivers" => Direction::Looser.words(),
        _ => "",
    };
    for (name, old) in &before {
        match after.get(name) {
            Some(new) => different(&format!("{}:", entry(name)), "", old, new, words),
            None => words.push(format!("{} removed{}", entry(name), loosens(true))),
        }
    }
    let added = after.keys().filter(|name| !before.contains_key(*name));
    words.extend(added.map(|name| format!("{} added{}", entry(name), loosens(false))));
}

/// The entries by their names; `None` when one has none. A second entry of a name gets a number.
fn by_name(list: &[Value]) -> Option<BTreeMap<String, &Value>> {
    let mut named = BTreeMap::new();
    for entry in list {
        let name = match entry {
            Value::Object(map) => {
                ["id", "name", "rule", "model"].iter().find_map(|key| map.get(*key)?.as_str())?
            }
            Value::String(text) => text,
            _ => return None,
        };
        let numbered = (2..).map(|number| format!("{name}#{number}"));
        let key = std::iter::once(name.to_owned()).chain(numbered).find(|key| !named.contains_key(key))?;
        named.insert(key, entry);
    }
    Some(named)
}

fn value(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{}`", short(text)),
        Value::Array(entries) => list(entries),
        other => short(&other.to_string()),
    }
}

fn list(entries: &[Value]) -> String {
    short(&format!("[{}]", entries.iter().map(value).collect::<Vec<_>>().join(", ")))
}

/// What a change of a rule does to the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Looser,
    Stricter,
}

impl Direction {
    fn words(self) -> &'static str {
        match self {
            Self::Looser => " (looser)",
            Self::Stricter => " (stricter)",
        }
    }
}

fn direction(kind: &str, key: &str, old: &Value, new: &Value) -> Option<Direction> {
    let looser = match (key, old, new) {
        // What no longer stops a build.
        ("tier" | "inconclusive", Value::String(old), _) => old == "block",
        ("advisory_only", _, Value::Bool(on)) => *on,
        (_, Value::Number(old), Value::Number(new)) => {
            let higher = new.as_f64()? > old.as_f64()?;
            match (kind, key) {
                ("min_best_practice" | "coverage" | "min_relevant", "limit") | ("regression", "alpha") => {
                    !higher
                }
                (_, "limit" | "margin" | "floor" | "agree") if !kind.is_empty() || key == "agree" => higher,
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(if looser { Direction::Looser } else { Direction::Stricter })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_compared_key_by_key() {
        let base = json!({"version": 1, "sweep": {"runs": 2}, "baseline": {"min_n": 10}, "judge": "a/b"});
        let head = json!({"sweep": {"runs": 1}, "version": 1, "judge": ["a/b", "c/d"]});
        assert_eq!(
            settings(&base, &head),
            [
                "baseline: removed (was {\"min_n\":10})",
                "judge: `a/b` \u{2192} [`a/b`, `c/d`]",
                "sweep.runs: 2 \u{2192} 1"
            ]
        );
        assert_eq!(settings(&base, &base), Vec::<String>::new());
    }

    #[test]
    fn rules_are_found_by_their_id_and_say_which_way_they_moved() {
        let rule = |id: &str, kind: &str, limit: f64| json!({"id": id, "kind": kind, "limit": limit, "tier": "block"});
        let base = json!({"rules": [rule("harm", "max_harm", 0.0), rule("cover", "coverage", 0.9), rule("gone", "never", 0.0)],
            "inconclusive": "block"});
        let head = json!({"rules": [rule("new", "never", 0.0), rule("cover", "coverage", 0.5), rule("harm", "max_harm", 1.0)],
            "inconclusive": "warn", "waivers": [{"id": "w"}]});
        assert_eq!(
            settings(&base, &head),
            [
                "inconclusive: `block` \u{2192} `warn` (looser)",
                "rule `cover`: limit: 0.9 \u{2192} 0.5 (looser)",
                "rule `gone` removed (looser)",
                "rule `harm`: limit: 0.0 \u{2192} 1.0 (looser)",
                "rule `new` added (stricter)",
                "waivers: added ([{\"id\":\"w\"}]) (looser)"
            ]
        );
        assert_eq!(settings(&head, &base)[1], "rule `cover`: limit: 0.5 \u{2192} 0.9 (stricter)");
    }

    #[test]
    fn a_second_entry_of_a_name_is_not_lost() {
        let base = json!({"rules": [{"id": "a", "limit": 0}, {"id": "b"}]});
        let head = json!({"rules": [{"id": "a", "limit": 0}, {"id": "a", "limit": 9}, {"id": "b"}]});
        assert_eq!(settings(&base, &head), ["rule `a#2` added (stricter)"]);
        let labels = |list: &[&str]| json!({"labels": list});
        assert_eq!(
            settings(&labels(&["x", "y"]), &labels(&["y", "z"])),
            ["labels `x` removed", "labels `z` added"]
        );
    }

    #[test]
    fn texts_are_compared_by_their_lines() {
        assert_eq!(texts("a\nb\nb\n", "b\nc\n").unwrap(), "2 lines removed, 1 line added");
        assert_eq!(texts("a\nb\n", "b\na\n").unwrap(), "order of lines or white space changed");
        assert_eq!(texts("a\n", "a\n"), None);
    }

    #[test]
    fn many_differences_are_counted() {
        let words = told((0..20).map(|i| format!("{i}")).collect());
        assert_eq!((words.len(), words.last().map(String::as_str)), (13, Some("and 8 more")));
    }
}
