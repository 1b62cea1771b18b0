//! XML 1.0: `junit.xml`.

use super::unicode::{Lines, plain};

super::escaped_text! {
    /// XML text in which everything foreign is disarmed.
    Xml
}

/// Only the characters that XML 1.0 allows, for a writer that escapes by itself.
pub fn characters(text: &str) -> String {
    // `plain` already turned controls, U+FFFE and U+FFFF into something visible; a Rust string has no surrogates.
    plain(text, Lines::Keep)
}

/// Text of an element, or of an attribute in double quotes.
///
/// `>` is escaped too, so `]]>` cannot stand in it; line breaks and tabs are references, because a reader would turn
/// them into spaces in an attribute.
pub fn text(text: &str) -> Xml {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in characters(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            _ => out.push(c),
        }
    }
    Xml(out)
}

/// Whether XML 1.0 (section 2.2, `Char`) allows the character.
pub fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scalar_value_becomes_allowed_text() {
        let all: String = ('\0'..=char::MAX).collect();
        assert!(characters(&all).chars().all(is_allowed));
    }

    #[test]
    fn signs_become_references() {
        assert_eq!(
            text("a ]]> & <b> \u{1B}\u{FFFE}\n").as_str(),
            "a ]]&gt; &amp; &lt;b&gt; \u{241B}\u{FFFD}&#10;"
        );
    }
}
