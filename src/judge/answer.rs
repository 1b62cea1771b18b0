//! From a judge's reply to one of the offered options: exact or not at all.

use serde_json::Value;

use crate::target::rubric::{Question, fold_answer};

/// A reply that names exactly one option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Index of the option.
    pub option: usize,
    /// The reason, verbatim.
    pub reasoning: String,
}

/// Reads a reply. `None` when it names no option, or more than one.
///
/// Tried in this order: the whole text as a JSON object; one outer Markdown fence stripped; the first balanced
/// object in the text; lines that start with `ANSWER:` and `REASONING:`, of which the last answer counts. An option
/// is matched as a whole, with case, spaces and outer punctuation folded; never as a part of a longer answer.
pub fn parse(reply: &str, question: &Question) -> Option<Answer> {
    let text = reply.trim();
    let json = object(text)
        .or_else(|| strip_fence(text).and_then(object))
        .or_else(|| first_balanced(text).and_then(object));
    let (answer, reasoning) = json.or_else(|| labelled(text))?;
    let wanted = fold(&answer);
    let option = question.options.iter().position(|option| fold(&option.text) == wanted)?;
    Some(Answer { option, reasoning })
}

/// Folds an answer for comparison: also the brackets, quotes and emphasis that models put around a word.
fn fold(text: &str) -> String {
    const AROUND: [char; 14] = ['*', '_', '"', '\'', '`', '[', ']', '(', ')', '{', '}', '“', '”', '.'];
    let bare = text.trim_matches(|c: char| c.is_whitespace() || AROUND.contains(&c));
    fold_answer(bare)
}

/// The two fields of a JSON object, also when it is wrapped in one more object.
fn object(text: &str) -> Option<(String, String)> {
    let Value::Object(fields) = serde_json::from_str(text).ok()? else { return None };
    let fields = match fields.get("answer") {
        Some(_) => fields,
        None if fields.len() == 1 => match fields.into_iter().next()? {
            (_, Value::Object(inner)) => inner,
            _ => return None,
        },
        None => return None,
    };
    let answer = fields.get("answer")?.as_str()?.to_owned();
    let reasoning = fields.get("reasoning").and_then(Value::as_str).unwrap_or_default().to_owned();
    Some((answer, reasoning))
}

fn strip_fence(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("```")?.strip_suffix("```")?;
    let (first, rest) = inner.split_once('\n')?;
    first.trim().chars().all(char::is_alphanumeric).then(|| rest.trim())
}

/// The first `{...}` whose braces are balanced outside strings.
fn first_balanced(text: &str) -> Option<&str> {
    let start = text.find('{')?;
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, c) in text.get(start..)?.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            '{' if !in_string => depth += 1,
            '}' if !in_string => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return text.get(start..=start + at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The `ANSWER:` and `REASONING:` lines. The last answer counts: what stands before it may be quoted.
fn labelled(text: &str) -> Option<(String, String)> {
    let mut answer = None;
    let mut reasoning: Option<Vec<&str>> = None;
    for line in text.lines() {
        if let Some(rest) = label(line, "answer") {
            answer = Some(rest.to_owned());
            reasoning = None;
        } else if let Some(rest) = label(line, "reasoning") {
            reasoning = Some(vec![rest]);
        } else if let Some(lines) = &mut reasoning {
            lines.push(line);
        }
    }
    Some((answer?, reasoning.unwrap_or_default().join("\n").trim().to_owned()))
}

fn label<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let bare =
        line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '#' | '-' | '_' | '>'));
    let (head, rest) = bare.split_once(':')?;
    head.trim_matches(|c: char| c.is_whitespace() || c == '*').eq_ignore_ascii_case(word).then(|| {
        // The emphasis that opened before the label closes behind the colon.
        rest.trim_start_matches("**").trim()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use crate::target::rubric::{BlankDimension, Rubric};

    const HEADER: &str = "Question ID\tDimension\tSeverity\tRisk Type\tQuestion\tExamples\tAnswer\tGOTO\n";

    fn question() -> Question {
        let text = format!("{HEADER}1\tA\tRed\t\tq\t\tYes\t\n\t\t\t\t\t\tNo\t\n\t\t\t\t\t\tNot Relevant\t\n");
        let (rubric, _) = Rubric::parse(&Source::new("r.tsv", text), BlankDimension::Reject).unwrap();
        rubric.questions.into_iter().next().unwrap()
    }

    fn option(reply: &str) -> Option<String> {
        let question = question();
        parse(reply, &question).map(|a| question.options[a.option].text.clone())
    }

    #[test]
    fn only_a_whole_option_counts() {
        // Want: case B01, and the readings of the original that were measured to be wrong.
        for (reply, want) in [
            ("ANSWER: Not Relevant\nREASONING: left", Some("Not Relevant")),
            ("ANSWER: not  relevant.\nREASONING: x", Some("Not Relevant")),
            ("ANSWER: Unknown\nREASONING: nothing noted", None),
            ("ANSWER: Nothing of the kind\nREASONING: x", None),
            ("ANSWER: **Yes**\nREASONING: x", Some("Yes")),
            ("**ANSWER:** Yes", Some("Yes")),
            ("ANSWER: [No]\nREASONING: I know it is fine", Some("No")),
            ("ANSWER: Yes and No\nREASONING: x", None),
            ("No - the eyes have it", None),
            ("Yes", None),
            ("", None),
            (r#"{"answer": "", "reasoning": "x"}"#, None),
            (r#"{"answer": "Incorrect", "reasoning": "x"}"#, None),
            (r#"{"answer": "“No”", "reasoning": "x"}"#, Some("No")),
            (r#"{"answer": null, "reasoning": "x"}"#, None),
            (r#"{"reasoning": "ANSWER: Yes"}"#, None),
        ] {
            assert_eq!(option(reply).as_deref(), want, "{reply}");
        }
    }

    #[test]
    fn json_is_read_raw_fenced_wrapped_and_embedded() {
        for reply in [
            r#"{"answer": "No", "reasoning": "it wrote ```call``` as text"}"#,
            "```json\n{\"answer\": \"No\", \"reasoning\": \"it wrote ```call``` as text\"}\n```",
            r#"Here it is: {"answer": "No", "reasoning": "it wrote ```call``` as text"} Done."#,
            r#"{"QuestionResponse": {"answer": "No", "reasoning": "it wrote ```call``` as text"}}"#,
        ] {
            let answer = parse(reply, &question()).unwrap();
            assert_eq!(
                (answer.option, answer.reasoning.as_str()),
                (1, "it wrote ```call``` as text"),
                "{reply}"
            );
        }
    }

    #[test]
    fn a_cut_off_object_is_no_answer() {
        let whole = r#"{"answer": "Yes", "reasoning": "because {it} said so"}"#;
        for length in 0..whole.len() {
            assert_eq!(whole.get(..length).and_then(option), None, "{length}");
        }
        assert_eq!(option(whole).as_deref(), Some("Yes"));
    }

    #[test]
    fn the_last_answer_line_counts() {
        let reply = "The chatbot wrote\nANSWER: No\nwhich is no verdict.\nANSWER: Yes\nREASONING: one\ntwo";
        let answer = parse(reply, &question()).unwrap();
        assert_eq!((answer.option, answer.reasoning.as_str()), (0, "one\ntwo"));
    }
}
