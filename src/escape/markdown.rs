//! GitHub-flavoured Markdown: comment, check, job summary and `report.md`.
//!
//! GitHub looks for mentions, issue references, commit hashes and bare links in the *rendered* text, after
//! backslashes and entities are gone. So those are disarmed by a zero-width space behind their sign, and only
//! Markdown's own signs by a backslash or an entity. Inside code GitHub looks for nothing, and nothing is changed
//! there except the opening of an HTML comment, which could look like our own marker.

use std::fmt::Write as _;

use super::unicode::{Lines, ZERO_WIDTH_SPACE, plain};

super::escaped_text! {
    /// Markdown in which everything foreign is disarmed.
    Markdown
}

impl Markdown {
    /// A link whose label is foreign text. The address must be `http` or `https`, else only the label is shown.
    pub fn link(label: &str, address: &str) -> Self {
        let label = inline(label);
        if !(address.starts_with("https://") || address.starts_with("http://")) {
            return label;
        }
        let mut target = String::with_capacity(address.len());
        for byte in address.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~:/?#@!$&'*+,;=%".contains(&byte) {
                target.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _infallible = write!(target, "%{byte:02X}");
            }
        }
        Self(format!("[{label}]({target})"))
    }
}

/// How Markdown's own signs are disarmed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// A backslash: keeps the source readable.
    Backslash,
    /// An entity: also right where Markdown is not read, inside of HTML elements.
    Entity,
}

/// One line of text in a paragraph or list item.
pub fn inline(text: &str) -> Markdown {
    Markdown(escape(text, Style::Backslash))
}

/// Text in a table cell. The row's writer must leave a space before the next `|`.
pub fn cell(text: &str) -> Markdown {
    inline(text)
}

/// Text between HTML tags that stand in Markdown, such as `<summary>`, or in a double-quoted attribute there.
pub fn element(text: &str) -> Markdown {
    Markdown(escape(text, Style::Entity))
}

/// Code in a paragraph. The text is shown as it is, line breaks as spaces.
pub fn code(text: &str) -> Markdown {
    Markdown(code_span(&code_text(text, Lines::Join)))
}

/// Code in a table cell.
pub fn code_cell(text: &str) -> Markdown {
    // A table is cut into cells before code is looked for, so the bar needs its backslash even here.
    Markdown(code_span(&code_text(text, Lines::Join)).replace('|', "\\|"))
}

/// A fenced block, whose fence is longer than any run of the same sign inside. Ends with a line break.
pub fn code_block(text: &str) -> Markdown {
    let text = code_text(text, Lines::Keep);
    let fence = "`".repeat(longest_run(&text, '`').max(2) + 1);
    let text = text.trim_end_matches('\n');
    Markdown(format!("{fence}text\n{text}\n{fence}\n"))
}

fn code_text(text: &str, lines: Lines) -> String {
    plain(text, lines).replace("<!--", "<\u{200B}!--")
}

fn code_span(text: &str) -> String {
    let fence = "`".repeat(longest_run(text, '`') + 1);
    let blank = text.chars().all(|c| c == ' ');
    let padded = text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']);
    match (text.is_empty(), padded && !blank) {
        (true, _) => format!("{fence} {fence}"),
        (_, true) => format!("{fence} {text} {fence}"),
        (_, false) => format!("{fence}{text}{fence}"),
    }
}

fn longest_run(text: &str, sign: char) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == sign { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

fn escape(text: &str, style: Style) -> String {
    let text = plain(text, Lines::Join);
    let chars: Vec<char> = text.trim().chars().collect();
    let hashes = long_hex_runs(&chars);
    let list_number = chars.iter().take_while(|c| c.is_ascii_digit()).count();
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    for (i, &c) in chars.iter().enumerate() {
        let at = |offset: usize| chars.get(i + offset).copied();
        let before = i.checked_sub(1).and_then(|p| chars.get(p)).copied();
        // Positions that only mean something at the start of a line.
        let starts_block = matches!(c, '+' | '-' | '=') && i == 0
            || matches!(c, '.' | ')') && i == list_number && list_number > 0;
        match c {
            '&' => {
                out.push_str("&amp;");
                if at(1).is_some_and(|n| n == '#' || n.is_ascii_alphanumeric()) {
                    out.push(ZERO_WIDTH_SPACE);
                }
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '$' => {
                // Mathematics opens after a space and closes before one; neither side is one now.
                out.push(ZERO_WIDTH_SPACE);
                sign(&mut out, c, style);
                out.push(ZERO_WIDTH_SPACE);
            }
            '_' if before.is_some_and(char::is_alphanumeric) && at(1).is_some_and(char::is_alphanumeric) => {
                out.push(c);
            }
            '\\' | '`' | '*' | '_' | '[' | ']' | '~' | '|' | '#' | '^' => sign(&mut out, c, style),
            '"' | '\'' if style == Style::Entity => sign(&mut out, c, style),
            '.' if www_before(&chars, i) => {
                out.push(ZERO_WIDTH_SPACE);
                out.push(c);
            }
            _ if starts_block => sign(&mut out, c, style),
            _ => out.push(c),
        }
        if breaks_after(&chars, i) || hashes.contains(&i) {
            out.push(ZERO_WIDTH_SPACE);
        }
    }
    out
}

fn sign(out: &mut String, c: char, style: Style) {
    match style {
        Style::Backslash => {
            out.push('\\');
            out.push(c);
        }
        Style::Entity => {
            let _infallible = write!(out, "&#{};", u32::from(c));
        }
    }
}

/// Whether the sign at `i` would start a mention, a reference, a link or an emoji name with what follows it.
fn breaks_after(chars: &[char], i: usize) -> bool {
    let rest = chars.get(i + 1..).unwrap_or_default();
    let next = rest.first().copied();
    match chars.get(i) {
        Some('@') => next.is_some_and(|n| !n.is_whitespace()),
        Some('#') => next.is_some_and(|n| n.is_ascii_digit()),
        Some(':') => {
            rest.starts_with(&['/', '/'])
                || word_before(chars, i, &["mailto", "xmpp"])
                || emoji_name_length(rest).is_some()
        }
        Some('-') => {
            word_before(chars, i, &["gh"]) && next.is_some_and(|n| n.is_ascii_digit())
                || word_before(chars, i, &["ghsa", "cve"])
        }
        _ => false,
    }
}

fn www_before(chars: &[char], i: usize) -> bool {
    word_before(chars, i, &["www"]) && chars.get(i + 1).is_some_and(|n| !n.is_whitespace())
}

/// Whether one of the words (lower case) ends right before `i`, in any case.
fn word_before(chars: &[char], i: usize, words: &[&str]) -> bool {
    words.iter().any(|word| {
        let start = i.checked_sub(word.len());
        let found = start.and_then(|start| chars.get(start..i)).unwrap_or_default();
        !found.is_empty() && found.iter().map(char::to_ascii_lowercase).eq(word.chars())
    })
}

/// Length of `name` in `:name:`, when the characters behind a colon are one.
fn emoji_name_length(rest: &[char]) -> Option<usize> {
    let length =
        rest.iter().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-')).count();
    (length > 0 && rest.get(length) == Some(&':')).then_some(length)
}

/// Positions after which a run of at least seven hexadecimal digits is interrupted: GitHub links such a word when a
/// commit starts with it.
fn long_hex_runs(chars: &[char]) -> Vec<usize> {
    const LONGEST_UNLINKED: usize = 6;
    let mut breaks = Vec::new();
    let mut start = 0;
    while start < chars.len() {
        let run = chars.iter().skip(start).take_while(|c| c.is_ascii_hexdigit()).count();
        let inside_word =
            start.checked_sub(1).and_then(|p| chars.get(p)).is_some_and(|c| c.is_alphanumeric())
                || chars.get(start + run).is_some_and(|c| c.is_alphanumeric());
        if run > LONGEST_UNLINKED && !inside_word {
            breaks.extend((start..start + run - 1).skip(LONGEST_UNLINKED - 1).step_by(LONGEST_UNLINKED));
        }
        start += run + 1;
    }
    breaks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_and_references_are_separated_from_their_sign() {
        assert_eq!(inline("cc @octocat").as_str(), "cc @\u{200B}octocat");
        assert_eq!(inline("&#64;octocat").as_str(), "&amp;\u{200B}\\#\u{200B}64;octocat");
        assert_eq!(inline("&commat;hubot").as_str(), "&amp;\u{200B}commat;hubot");
        assert_eq!(inline("fixes #1, GH-3").as_str(), "fixes \\#\u{200B}1, GH-\u{200B}3");
        assert_eq!(
            inline("https://evil.example/x www.x.org").as_str(),
            "https:\u{200B}//evil.example/x www\u{200B}.x.org"
        );
        // 40 digits: no piece is longer than six.
        let pieces = inline(&"a".repeat(40)).into_string();
        assert!(pieces.split('\u{200B}').all(|piece| piece.len() <= 6), "{pieces}");
        assert_eq!(inline("0123456 012345").as_str(), "012345\u{200B}6 012345");
        assert_eq!(inline(":+1: 12:30").as_str(), ":\u{200B}+1: 12:30");
    }

    #[test]
    fn markdown_signs_are_text() {
        assert_eq!(inline("a | b").as_str(), "a \\| b");
        assert_eq!(inline("# x").as_str(), "\\# x");
        assert_eq!(inline("- x").as_str(), "\\- x");
        assert_eq!(inline("12. x").as_str(), "12\\. x");
        assert_eq!(inline("C:\\Users\\x").as_str(), "C:\\\\Users\\\\x");
        assert_eq!(inline("snake_case _x_").as_str(), "snake_case \\_x\\_");
        assert_eq!(inline("<!-- m -->").as_str(), "&lt;!-- m --&gt;");
        assert_eq!(inline("a\n\nb\r\n").as_str(), "a  b");
    }

    #[test]
    fn elements_use_entities_only() {
        assert_eq!(element("*a* \"b\" | <c>").as_str(), "&#42;a&#42; &#34;b&#34; &#124; &lt;c&gt;");
    }

    #[test]
    fn code_keeps_the_text() {
        assert_eq!(code("C:\\x").as_str(), "`C:\\x`");
        assert_eq!(code("a`b``c").as_str(), "```a`b``c```");
        assert_eq!(code("`").as_str(), "`` ` ``");
        assert_eq!(code("").as_str(), "` `");
        assert_eq!(code_cell("a|b").as_str(), "`a\\|b`");
        assert_eq!(code_block("```\nend").as_str(), "````text\n```\nend\n````\n");
        assert_eq!(code_block("x\n").as_str(), "```text\nx\n```\n");
        assert_eq!(
            code_block("<!-- vera-gate:v1:x -->").as_str(),
            "```text\n<\u{200B}!-- vera-gate:v1:x -->\n```\n"
        );
    }

    #[test]
    fn links_only_go_to_the_web() {
        assert_eq!(
            Markdown::link("run [1]", "https://x.example/a b)(").as_str(),
            "[run \\[1\\]](https://x.example/a%20b%29%28)"
        );
        assert_eq!(Markdown::link("run", "javascript:alert(1)").as_str(), "run");
    }
}
