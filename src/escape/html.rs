//! HTML: the stand-alone report.
//!
//! Foreign text only ever goes between tags, into double-quoted attributes, or, as JSON, into a data element. It
//! never becomes a tag name, an attribute name, a style or a script.

use std::fmt::Write as _;

use super::unicode::{Lines, plain};

super::escaped_text! {
    /// HTML in which everything foreign is disarmed.
    Html
}

/// Text between two tags, line breaks kept.
pub fn text(text: &str) -> Html {
    Html(entities(&plain(text, Lines::Keep)))
}

/// Text of an attribute, which the template must put in double quotes.
pub fn attribute(text: &str) -> Html {
    Html(entities(&plain(text, Lines::Join)))
}

/// An address for `href`: `http`, `https` or a fragment of this page; nothing else is a link.
pub fn address(url: &str) -> Option<Html> {
    let lower = url.trim_start().to_ascii_lowercase();
    let known = lower.starts_with("https://") || lower.starts_with("http://") || lower.starts_with('#');
    known.then(|| attribute(url.trim()))
}

/// JSON for a `<script type="application/json">` element. The text must already be JSON.
///
/// Inside a script entities are not read, so the signs that could end it are written as JSON escapes, which are
/// the same value to a JSON reader.
pub fn json(json: &str) -> Html {
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a String cannot fail.
                let _infallible = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    Html(out)
}

fn entities(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '`' => out.push_str("&#96;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_become_entities() {
        assert_eq!(text("<b a='x'>&\"`\nz").as_str(), "&lt;b a=&#39;x&#39;&gt;&amp;&quot;&#96;\nz");
        assert_eq!(attribute("a\nb").as_str(), "a b");
    }

    #[test]
    fn only_web_addresses_are_links() {
        assert_eq!(address("https://x/?a=\"&b").unwrap().as_str(), "https://x/?a=&quot;&amp;b");
        assert_eq!(address("#c-1").unwrap().as_str(), "#c-1");
        for bad in ["javascript:x", " JavaScript:x", "data:text/html,x", "//evil", "vbscript:x", ""] {
            assert_eq!(address(bad), None, "{bad}");
        }
    }

    #[test]
    fn json_cannot_end_its_element() {
        let value = serde_json::json!({"a": "</script><!--\u{2028}&"});
        let out = json(&value.to_string());
        assert!(!out.as_str().contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<serde_json::Value>(out.as_str()).unwrap(), value);
    }
}
