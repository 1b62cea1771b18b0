//! Bounding and redacting of text that goes into messages, logs and files.

use std::fmt;

use unicode_segmentation::UnicodeSegmentation;

/// What stands in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Cuts a text to at most `most` bytes on a grapheme boundary and marks the cut with an ellipsis, which counts.
pub fn truncate(text: &str, most: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= most {
        return text.to_owned();
    }
    let room = most.saturating_sub(MARK.len());
    let end = text
        .grapheme_indices(true)
        .map(|(start, grapheme)| start + grapheme.len())
        .take_while(|&end| end <= room)
        .last()
        .unwrap_or(0);
    let kept = text.get(..end).unwrap_or("");
    if most < MARK.len() { kept.to_owned() } else { format!("{kept}{MARK}") }
}

/// One line for a message: white space folded, control characters dropped, bounded.
pub fn one_line(text: &str, most: usize) -> String {
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let clean: String = folded.chars().filter(|c| !c.is_control()).collect();
    truncate(&clean, most)
}

/// The readable part of an HTML page: tags dropped.
pub fn without_tags(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut inside = false;
    for c in html.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => {
                inside = false;
                text.push(' ');
            }
            _ if !inside => text.push(c),
            _ => {}
        }
    }
    text
}

/// A value that debug output does not show.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Hidden<T>(pub(crate) T);

impl<T> fmt::Debug for Hidden<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// The secrets of a run, taken out of every text that leaves the model layer.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Longest first, so that a secret that contains another one goes as a whole.
    values: Vec<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.values.len())
    }
}

impl Secrets {
    /// Shorter values are everyday text; hiding them would destroy messages and hide nothing.
    const SHORTEST: usize = 4;

    /// From the values of the configured variables.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut secrets = Self::default();
        for value in values {
            secrets.add(&value);
        }
        secrets
    }

    /// Adds a value in the forms in which it can show up: as it is, JSON-escaped, and percent-encoded.
    pub fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.len() < Self::SHORTEST {
            return;
        }
        let escaped = serde_json::Value::from(value).to_string();
        let escaped = escaped.trim_matches('"').to_owned();
        let encoded = percent_encode(value);
        for form in [value.to_owned(), escaped, encoded] {
            if !self.values.contains(&form) {
                self.values.push(form);
            }
        }
        self.values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    }

    /// Takes over the secrets of another set.
    pub fn extend(&mut self, other: &Self) {
        for value in &other.values {
            self.add(value);
        }
    }

    /// A message without secrets: the configured values, and whatever looks like a provider's key.
    pub fn redact(&self, text: &str) -> String {
        redact_key_shapes(&self.redact_values(text.to_owned()))
    }

    /// A model's text without the configured values; otherwise it stays as the model wrote it.
    pub fn redact_values(&self, mut text: String) -> String {
        for value in &self.values {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), REDACTED);
            }
        }
        text
    }
}

/// Everything but unreserved characters as `%XX`.
pub fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.extend(['%', hex(byte >> 4), hex(byte & 15)]);
        }
    }
    encoded
}

fn hex(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).map_or('0', |digit| digit.to_ascii_uppercase())
}

/// Providers echo keys that we were never told, masked ones too (`sk-abc***xyz`).
fn redact_key_shapes(text: &str) -> String {
    const PREFIXES: [&str; 9] =
        ["sk-", "sk_", "xai-", "gsk_", "AIza", "ABSK", "ghp_", "github_pat_", "ya29."];
    const SHORTEST_TAIL: usize = 6;
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*' | '.' | '+' | '/' | '=');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before: Option<char> = None;
    while let Some(c) = rest.chars().next() {
        let at_word = before.is_none_or(|b| !b.is_ascii_alphanumeric() && b != '-' && b != '_');
        let tail = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)).filter(|_| at_word);
        if let Some(tail) = tail {
            let length: usize = tail.chars().take_while(|&c| is_key(c)).map(char::len_utf8).sum();
            if length >= SHORTEST_TAIL {
                out.push_str(REDACTED);
                rest = tail.get(length..).unwrap_or("");
                before = Some(']');
                continue;
            }
        }
        out.push(c);
        before = Some(c);
        rest = rest.get(c.len_utf8()..).unwrap_or("");
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// B53: every length of a cut gives text, whole graphemes of it.
    #[test]
    fn a_cut_never_splits_a_grapheme() {
        // 499 letters and a four-byte character: a cut at 500 bytes would split it.
        let text = format!("{}\u{1f9d1}\u{200d}\u{1f680}\u{c218}e\u{301}", "a".repeat(499));
        for most in 0..text.len() + 3 {
            let cut = truncate(&text, most);
            assert!(cut.len() <= most, "{most}");
            let kept = cut.strip_suffix('…').unwrap_or(&cut);
            assert!(text.starts_with(kept));
            assert!(!kept.ends_with('\u{200d}'), "a joined emoji was split at {most}");
        }
    }

    proptest! {
        #[test]
        fn cutting_stays_within_the_limit(text in "\\PC{0,200}", most in 0_usize..300) {
            let cut = truncate(&text, most);
            prop_assert!(cut.len() <= most);
            prop_assert!(cut == text || text.len() > most);
        }

        #[test]
        fn redaction_keeps_no_secret(before in "\\PC{0,20}", secret in "[A-Za-z0-9]{8,40}", after in "\\PC{0,20}") {
            let secrets = Secrets::new([secret.clone()]);
            let shown = secrets.redact(&format!("{before} {secret} {after}"));
            prop_assert!(!shown.contains(&secret));
        }
    }

    #[test]
    fn key_shapes_are_hidden_without_being_told() {
        let secrets = Secrets::default();
        assert_eq!(secrets.redact("provided: sk-abc***xyz."), "provided: [redacted]");
        assert_eq!(secrets.redact("AIzaSyA1234567890 is bad"), "[redacted] is bad");
        assert_eq!(secrets.redact("task-oriented risk-based"), "task-oriented risk-based");
    }

    #[test]
    fn escaped_and_encoded_forms_are_hidden() {
        let secrets = Secrets::new(["a\"b/c d".to_owned()]);
        for shown in ["a\"b/c d", "a\\\"b/c d", "a%22b%2Fc%20d"] {
            assert_eq!(secrets.redact(shown), REDACTED, "{shown}");
        }
    }

    #[test]
    fn a_secret_is_not_shown_by_debug() {
        assert!(!format!("{:?}", Secrets::new(["topsecret".to_owned()])).contains("topsecret"));
    }

    #[test]
    fn html_becomes_one_line() {
        let page = "<html><head><title>502 Bad Gateway</title></head>\n</html>";
        assert_eq!(one_line(&without_tags(page), 120), "502 Bad Gateway");
    }
}
