//! JSON pointers with two additions: `-1` is the last element of an array, `*` is every element.

use serde_json::Value;

/// All values at a pointer, in order; none when nothing is there.
pub(super) fn find<'a>(root: &'a Value, pointer: &str) -> Vec<&'a Value> {
    let mut found = vec![root];
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        found = found.into_iter().flat_map(|value| step(value, &part)).collect();
    }
    found
}

fn step<'a>(value: &'a Value, part: &str) -> Vec<&'a Value> {
    match value {
        Value::Object(fields) if part == "*" => fields.values().collect(),
        Value::Object(fields) => fields.get(part).into_iter().collect(),
        Value::Array(items) if part == "*" => items.iter().collect(),
        Value::Array(items) if part == "-1" => items.last().into_iter().collect(),
        Value::Array(items) => {
            part.parse().ok().and_then(|index: usize| items.get(index)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Whether something says yes at a pointer: present, and neither null, false, zero nor empty.
pub(super) fn holds(root: &Value, pointer: &str) -> bool {
    find(root, pointer).into_iter().any(|value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Number(number) => number.as_f64().is_some_and(|n| n.abs() > 0.0),
        Value::Bool(true) => true,
    })
}

/// What stands at the pointers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Text, possibly empty.
    Text(String),
    /// Nothing at any of them.
    Nothing,
    /// Something that is no text, by its JSON type.
    NoText(&'static str),
}

/// The text at the first pointer that hits something other than null. Several texts are joined by line ends.
pub(super) fn text(root: &Value, pointers: &[String]) -> Found {
    for pointer in pointers {
        let values: Vec<&Value> = find(root, pointer).into_iter().filter(|value| !value.is_null()).collect();
        if values.is_empty() {
            continue;
        }
        let mut texts = Vec::new();
        for value in values {
            match value {
                Value::String(text) => texts.push(text.as_str()),
                Value::Array(items) => {
                    for item in items {
                        match item.as_str() {
                            Some(text) => texts.push(text),
                            None => return Found::NoText("an array of other things than text"),
                        }
                    }
                }
                Value::Number(_) => return Found::NoText("a number"),
                Value::Bool(_) => return Found::NoText("true or false"),
                Value::Object(_) => return Found::NoText("an object"),
                Value::Null => {}
            }
        }
        return Found::Text(texts.join("\n"));
    }
    Found::Nothing
}

/// Whether a text is a pointer.
pub(super) fn is_valid(pointer: &str) -> bool {
    pointer.is_empty() || pointer.starts_with('/')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_hit_what_they_name() {
        let root = json!({"messages": [{"text": "a"}, {"text": "b"}], "n": 1, "e": "", "z": null, "a/b": "slash",
            "parts": ["x", "y"], "mixed": ["x", 1], "o": {}, "ok": false});
        let read = |pointer: &str| text(&root, &[pointer.to_owned()]);
        assert_eq!(read("/messages/-1/text"), Found::Text("b".to_owned()));
        assert_eq!(read("/messages/0/text"), Found::Text("a".to_owned()));
        assert_eq!(read("/messages/*/text"), Found::Text("a\nb".to_owned()));
        assert_eq!(read("/parts"), Found::Text("x\ny".to_owned()));
        assert_eq!(read("/a~1b"), Found::Text("slash".to_owned()));
        assert_eq!(read("/e"), Found::Text(String::new()));
        assert_eq!(read("/n"), Found::NoText("a number"));
        assert_eq!(read("/ok"), Found::NoText("true or false"));
        assert_eq!(read("/o"), Found::NoText("an object"));
        assert_eq!(read("/mixed"), Found::NoText("an array of other things than text"));
        assert_eq!(read("/z"), Found::Nothing);
        assert_eq!(read("/messages/7/text"), Found::Nothing);
        let list = ["/missing".to_owned(), "/z".to_owned(), "/parts/1".to_owned()];
        assert_eq!(text(&root, &list), Found::Text("y".to_owned()));
    }

    #[test]
    fn flags_are_read_as_yes_or_no() {
        let root = json!({"a": true, "b": false, "c": "x", "d": "", "e": 0, "f": [1], "g": null});
        let yes: Vec<&str> = ["/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h"]
            .into_iter()
            .filter(|p| holds(&root, p))
            .collect();
        assert_eq!(yes, ["/a", "/c", "/f"]);
    }
}
