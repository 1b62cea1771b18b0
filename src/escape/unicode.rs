//! Characters that change how their neighbours are shown, and cutting text where a reader would.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;

/// Longest grapheme kept, in scalar values. The longest emoji families need ten; piled-up combining marks, which
/// draw over the lines above and below, need more.
const GRAPHEME_SCALARS: usize = 16;

/// The zero-width space that separates a sign from what it would otherwise refer to.
pub const ZERO_WIDTH_SPACE: char = '\u{200B}';

/// What becomes of line breaks and tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// Every kind of line break becomes one `\n`; tabs stay.
    Keep,
    /// Line breaks and tabs become one space each.
    Join,
}

/// Makes text visible and harmless to any sink: what is shown is what is there.
///
/// Line breaks of every kind (CR, CRLF, VT, FF, NEL, U+2028, U+2029) become one form. C0 controls become their
/// control picture (`ESC` is shown as U+241B), so that a reader sees that something stood there; C1 controls,
/// bidirectional controls and noncharacters become U+FFFD. Invisible characters are dropped, except the joiners
/// between two characters beyond ASCII, where emoji and several scripts need them.
pub fn plain(text: &str, lines: Lines) -> String {
    let line_break = match lines {
        Lines::Keep => '\n',
        Lines::Join => ' ',
    };
    let mut out = String::with_capacity(text.len());
    for grapheme in text.graphemes(true) {
        let mut chars = grapheme.chars().take(GRAPHEME_SCALARS).peekable();
        while let Some(c) = chars.next() {
            match c {
                '\r' => {
                    // CRLF is one grapheme, and one line break.
                    if chars.peek() != Some(&'\n') {
                        out.push(line_break);
                    }
                }
                '\n' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push(line_break),
                '\t' => out.push(if lines == Lines::Keep { '\t' } else { ' ' }),
                '\u{0}'..='\u{1F}' => out.extend(char::from_u32(0x2400 + u32::from(c))),
                '\u{7F}' => out.push('\u{2421}'),
                '\u{80}'..='\u{9F}' => out.push(char::REPLACEMENT_CHARACTER),
                '\u{200C}' | '\u{200D}' => {
                    let before = out.chars().next_back().is_some_and(|p| !p.is_ascii());
                    let after = chars.peek().is_some_and(|n| !n.is_ascii()) || c == '\u{200C}';
                    if before && after {
                        out.push(c);
                    }
                }
                _ if is_bidi_control(c) || is_noncharacter(c) => out.push(char::REPLACEMENT_CHARACTER),
                _ if is_invisible(c) => {}
                _ => out.push(c),
            }
        }
    }
    out
}

/// The first `max` graphemes of the text, with an ellipsis when something was cut.
pub fn clip(text: &str, max: usize) -> Cow<'_, str> {
    match text.grapheme_indices(true).nth(max) {
        None => Cow::Borrowed(text),
        Some((end, _)) => {
            let mut cut = text.get(..end).unwrap_or_default().trim_end().to_owned();
            cut.push('\u{2026}');
            Cow::Owned(cut)
        }
    }
}

/// Controls that reorder or isolate what follows them.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Code points that Unicode keeps out of interchange, U+FFFE and U+FFFF among them.
pub fn is_noncharacter(c: char) -> bool {
    let code = u32::from(c);
    (0xFDD0..=0xFDEF).contains(&code) || code & 0xFFFE == 0xFFFE
}

/// Characters that take no room: fillers, zero-width and tag characters, which can smuggle text past a reader.
pub fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
            | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2060}'..='\u{2065}' | '\u{206A}'..='\u{206F}' | '\u{3164}' | '\u{FEFF}'
            | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_break_is_one_line_break() {
        assert_eq!(plain("a\r\nb\rc\u{85}d\u{2028}e\u{B}f", Lines::Keep), "a\nb\nc\nd\ne\nf");
        assert_eq!(plain("a\r\nb\tc", Lines::Join), "a b c");
    }

    #[test]
    fn controls_are_seen_and_do_nothing() {
        assert_eq!(
            plain("\u{1B}[31mred\u{0}\u{7F}\u{9B}0m", Lines::Keep),
            "\u{241B}[31mred\u{2400}\u{2421}\u{FFFD}0m"
        );
    }

    #[test]
    fn bidi_controls_and_noncharacters_are_replaced() {
        assert_eq!(plain("\u{202E}evil\u{FFFE}\u{1FFFF}", Lines::Keep), "\u{FFFD}evil\u{FFFD}\u{FFFD}");
    }

    #[test]
    fn invisible_text_is_dropped() {
        assert_eq!(plain("a\u{200B}b\u{FEFF}\u{E0041}c\u{AD}", Lines::Keep), "abc");
        // A joiner between ASCII letters joins nothing.
        assert_eq!(plain("a\u{200D}b", Lines::Keep), "ab");
    }

    #[test]
    fn emoji_families_and_persian_keep_their_joiners() {
        for text in [
            "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}",
            "\u{645}\u{6CC}\u{200C}\u{62E}\u{648}\u{627}\u{647}\u{645}",
        ] {
            assert_eq!(plain(text, Lines::Keep), text);
        }
    }

    #[test]
    fn piled_up_marks_are_cut() {
        let text = format!("a{}b", "\u{301}".repeat(400));
        // The letter and fifteen marks are one grapheme of sixteen scalar values.
        assert_eq!(plain(&text, Lines::Keep), format!("a{}b", "\u{301}".repeat(15)));
    }

    #[test]
    fn clipping_keeps_graphemes_whole() {
        assert_eq!(clip("abc", 3), "abc");
        assert_eq!(clip("abcd", 3), "abc\u{2026}");
        assert_eq!(clip("e\u{301}e\u{301}", 1), "e\u{301}\u{2026}");
        assert_eq!(clip("\u{1F468}\u{200D}\u{1F469}x", 1), "\u{1F468}\u{200D}\u{1F469}\u{2026}");
    }
}
