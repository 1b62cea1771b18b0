//! Taking the words of a conversation out of a judge's reason.
//!
//! A judge quotes what it rests on, and a public comment must not repeat what a person in crisis is made to say or
//! what a chatbot answered. What stands in quotation marks, in code, behind `>` or behind a speaker's name goes. A
//! mark that is never closed takes everything behind it along: rather too little is shown than too much. Words that a
//! judge repeats without any mark cannot be told from its own; where that matters the evidence level is `none`.

use crate::escape::unicode::{Lines, clip, plain};

/// What stands where a quote was.
pub const REMOVED: &str = "[\u{2026}]";

/// Graphemes of a reason in a table.
pub const ONE_LINE: usize = 240;

/// The reason on one line, with quotes taken out, cut to [`ONE_LINE`].
pub fn without_quotes(reason: &str) -> String {
    let own_lines: Vec<&str> = reason.lines().filter(|line| !is_transcript_line(line)).collect();
    let text = plain(&own_lines.join("\n"), Lines::Join);
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        match closing(&chars, at) {
            Some(end) => {
                out.push_str(REMOVED);
                at = end + 1;
            }
            None => {
                out.push(c);
                at += 1;
            }
        }
    }
    one_line(&out)
}

/// The text on one line, single-spaced, cut to [`ONE_LINE`].
pub fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    clip(&words.join(" "), ONE_LINE).into_owned()
}

/// A line that repeats the transcript: quoted as in a mail, or with a speaker's name in front.
fn is_transcript_line(line: &str) -> bool {
    const SPEAKERS: [&str; 8] = ["user", "chatbot", "agent", "assistant", "bot", "persona", "ai", "human"];
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || "*_-".contains(c));
    if line.starts_with('>') {
        return true;
    }
    let Some((name, said)) = line.split_once(':') else { return false };
    let name = name.trim_matches(|c: char| c.is_whitespace() || "*_[]()0123456789.".contains(c));
    !said.trim().is_empty() && SPEAKERS.iter().any(|speaker| name.eq_ignore_ascii_case(speaker))
}

/// When a quote opens at `at`: the position of its last character, the end of the text when it never closes.
fn closing(chars: &[char], at: usize) -> Option<usize> {
    let end = match chars.get(at)? {
        '"' | '\u{FF02}' => find(chars, at, |c, _| matches!(c, '"' | '\u{FF02}')),
        '`' => find(chars, at, |c, _| c == '`'),
        '\u{AB}' => find(chars, at, |c, _| c == '\u{BB}'),
        '\u{BB}' => find(chars, at, |c, _| matches!(c, '\u{AB}' | '\u{BB}')),
        '\u{201C}' | '\u{201D}' | '\u{201E}' | '\u{201F}' => {
            find(chars, at, |c, _| matches!(c, '\u{201C}' | '\u{201D}' | '"'))
        }
        '\u{300C}' => find(chars, at, |c, _| c == '\u{300D}'),
        '\u{300E}' => find(chars, at, |c, _| c == '\u{300F}'),
        '\'' | '\u{2018}' | '\u{201A}' | '\u{2039}' if opens_single(chars, at) => single_end(chars, at),
        _ => return None,
    };
    Some(end.unwrap_or(chars.len()))
}

fn find(chars: &[char], at: usize, closes: impl Fn(char, usize) -> bool) -> Option<usize> {
    (at + 1..chars.len()).find(|&i| chars.get(i).is_some_and(|&c| closes(c, i)))
}

/// A single mark opens a quote at the start of a word; inside one it is an apostrophe.
fn opens_single(chars: &[char], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|i| chars.get(i));
    let after = chars.get(at + 1);
    before.is_none_or(|c| !c.is_alphanumeric()) && after.is_some_and(|c| !c.is_whitespace())
}

/// The end of a quote in single marks. A possessive (`the users' words`) looks like the end of one: when there are
/// more ends than beginnings, the last of them is taken.
fn single_end(chars: &[char], at: usize) -> Option<usize> {
    let is_end = |i: usize| {
        let inside = i.checked_sub(1).and_then(|p| chars.get(p)).is_some_and(|c| !c.is_whitespace());
        let outside = chars.get(i + 1).is_none_or(|c| !c.is_alphanumeric());
        matches!(chars.get(i), Some('\'' | '\u{2019}' | '\u{203A}')) && inside && outside
    };
    let ends: Vec<usize> = (at + 1..chars.len()).filter(|&i| is_end(i)).collect();
    let later_opens = (at + 1..chars.len())
        .filter(|&i| matches!(chars.get(i), Some('\'' | '\u{2018}' | '\u{201A}' | '\u{2039}')))
        .filter(|&i| opens_single(chars, i) && !is_end(i))
        .count();
    if ends.len() > later_opens + 1 { ends.last().copied() } else { ends.first().copied() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_go_and_the_judges_words_stay() {
        for (reason, want) in [
            ("The chatbot said \"SECRET words\" and left.", "The chatbot said [\u{2026}] and left."),
            ("It said \u{201C}SECRET\u{201D} twice.", "It said [\u{2026}] twice."),
            (
                "German \u{201E}SECRET\u{201C}, French \u{AB} SECRET \u{BB}.",
                "German [\u{2026}], French [\u{2026}].",
            ),
            ("It said 'SECRET' and 'SECRET too'.", "It said [\u{2026}] and [\u{2026}]."),
            ("It said \u{2018}SECRET don\u{2019}t\u{2019} once.", "It said [\u{2026}] once."),
            ("It doesn't name a crisis line.", "It doesn't name a crisis line."),
            (
                "The user\u{2019}s plan isn\u{2019}t asked about.",
                "The user\u{2019}s plan isn\u{2019}t asked about.",
            ),
            ("Wrote `SECRET` in code.", "Wrote [\u{2026}] in code."),
            ("\u{300C}SECRET\u{300D} was said.", "[\u{2026}] was said."),
        ] {
            assert_eq!(without_quotes(reason), want);
        }
    }

    #[test]
    fn what_is_never_closed_takes_the_rest_along() {
        assert_eq!(without_quotes("It said \"SECRET and more"), "It said [\u{2026}]");
        assert_eq!(without_quotes("A \"SECRET\" and \"SECRET"), "A [\u{2026}] and [\u{2026}]");
        assert_eq!(without_quotes("It said 'SECRET and more"), "It said [\u{2026}]");
        assert_eq!(without_quotes("It said 'SECRET users' SECRET' here."), "It said [\u{2026}] here.");
    }

    #[test]
    fn lines_of_the_transcript_go() {
        let reason =
            "No help was offered.\n> SECRET\nUser: SECRET\n**Chatbot:** SECRET\n[3] agent: SECRET\nSo: harm.";
        assert_eq!(without_quotes(reason), "No help was offered. So: harm.");
    }

    #[test]
    fn a_reason_is_one_short_line() {
        let shown = without_quotes(&"word \n".repeat(500));
        assert!(!shown.contains('\n') && shown.chars().count() <= ONE_LINE + 1);
    }
}
