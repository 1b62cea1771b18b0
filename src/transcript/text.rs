//! VERA-MH's text form of a transcript, written as the original does and read from every version.

use super::{ConversationId, EndReason, Speaker, Transcript, Turn};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Source;

const END_NOTE: &str = "[CONVERSATION ENDED";

/// The parts of a transcript's file name: `{6 hex}_{Name}_{user model}[_{workflow}]_run{N}[_s{i}_{type}].txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    /// The name without `.txt`: the conversation's id.
    pub stem: String,
    /// The persona's name.
    pub persona: String,
    /// The model that played the person; may be empty.
    pub user_model: String,
    /// The repetition, 1 when the name does not say.
    pub run: u32,
}

impl FileName {
    /// Takes a file name apart. A name of another form is a persona's name as a whole.
    pub fn parse(filename: &str) -> Self {
        let stem = filename.strip_suffix(".txt").unwrap_or(filename);
        let whole =
            || Self { stem: stem.to_owned(), persona: stem.to_owned(), user_model: String::new(), run: 1 };
        let Some((head, tail)) = stem.rsplit_once("_run") else { return whole() };
        let digits: String = tail.chars().take_while(char::is_ascii_digit).collect();
        let mut parts = head.splitn(3, '_');
        match (parts.next(), parts.next(), digits.parse()) {
            (Some(_), Some(persona), Ok(run)) => Self {
                stem: stem.to_owned(),
                persona: persona.to_owned(),
                user_model: parts.next().unwrap_or("").to_owned(),
                run,
            },
            _ => whole(),
        }
    }
}

/// The name of one judge's evaluation of one transcript: `{stem of the transcript}_{judge}_i{instance}.tsv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationName {
    /// The transcript's name without its ending.
    pub stem: String,
    /// The judge model as file names write it.
    pub judge: String,
    /// Which instance of it, from 1.
    pub instance: u32,
}

impl EvaluationName {
    /// Takes the name apart; `None` when it is not of this form. The name of a judge may hold underscores, so the
    /// transcript's ends with its run, and with `_s{i}_{type}` where that follows.
    pub fn parse(filename: &str) -> Option<Self> {
        let (head, instance) = filename.strip_suffix(".tsv")?.rsplit_once("_i")?;
        let instance = instance.parse().ok()?;
        let (before, after) = head.rsplit_once("_run")?;
        let mut parts: Vec<&str> = after.split('_').collect();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(parts.first()?) {
            return None;
        }
        let is_step = |text: &str| text.strip_prefix('s').is_some_and(is_number);
        let own = if parts.len() > 3 && parts.get(1).is_some_and(|part| is_step(part)) { 3 } else { 1 };
        let judge = parts.split_off(own.min(parts.len())).join("_");
        (!judge.is_empty()).then(|| Self {
            stem: format!("{before}_run{}", parts.join("_")),
            judge,
            instance,
        })
    }
}

/// Writes the text form. Messages are written unchanged, so one that itself holds a line `chatbot: ...` is
/// ambiguous when read back; the native form is not.
pub fn write_text(transcript: &Transcript) -> String {
    if transcript.turns.is_empty() {
        return "No conversation recorded.\n".to_owned();
    }
    let last = transcript.turns.len() - 1;
    let mut text = String::new();
    for (index, turn) in transcript.turns.iter().enumerate() {
        text.push_str(turn.speaker.word());
        text.push_str(": ");
        text.push_str(&turn.text);
        text.push('\n');
        if index == last && transcript.end == EndReason::PersonaEnded {
            text.push_str("[CONVERSATION ENDED - persona signaled termination]\n");
        }
        if index < last {
            text.push('\n');
        }
    }
    text
}

/// Reads the text form: `user` or `persona` and `chatbot`, `agent` or `assistant` in any case, spaces before the
/// colon allowed; other lines belong to the last speaker.
pub fn read_text(source: &Source, filename: &str) -> Result<Transcript, Diagnostic> {
    let name = FileName::parse(filename);
    let mut turns: Vec<Turn> = Vec::new();
    let mut end = EndReason::Unknown;
    for (index, line) in source.text().lines().enumerate() {
        if line.starts_with(END_NOTE) {
            end = EndReason::PersonaEnded;
        } else if let Some((speaker, text)) = speaker_line(line) {
            turns.push(Turn { speaker, text: text.to_owned(), flags: Vec::new() });
        } else if let Some(turn) = turns.last_mut() {
            turn.text.push('\n');
            turn.text.push_str(line);
        } else if !line.trim().is_empty() {
            return Err(Diagnostic::error(Code::BadTranscript, "text before the first speaker")
                .at(source.at(index + 1, 1))
                .help("a transcript starts with `user:` or `chatbot:`"));
        }
    }
    for turn in &mut turns {
        turn.text.truncate(turn.text.trim_end_matches('\n').len());
    }
    if turns.is_empty() {
        return Err(Diagnostic::error(Code::BadTranscript, "the transcript holds no message")
            .at(source.at(1, 1))
            .help("a message is a line `user: ...` or `chatbot: ...`"));
    }
    Ok(Transcript {
        id: ConversationId(name.stem),
        persona: name.persona,
        risk_level: None,
        user_model: name.user_model,
        run: name.run,
        turns,
        end,
    })
}

fn speaker_line(line: &str) -> Option<(Speaker, &str)> {
    let (word, text) = line.split_once(':')?;
    let speaker = match word.trim_end().to_ascii_lowercase().as_str() {
        "user" | "persona" => Speaker::User,
        "chatbot" | "agent" | "assistant" => Speaker::Chatbot,
        _ => return None,
    };
    Some((speaker, text.strip_prefix(' ').unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(speaker: Speaker, text: &str) -> Turn {
        Turn { speaker, text: text.to_owned(), flags: Vec::new() }
    }

    fn transcript(turns: Vec<Turn>, end: EndReason) -> Transcript {
        Transcript {
            id: ConversationId("0a1b2c_Ana_gpt-5.2_run3".to_owned()),
            persona: "Ana".to_owned(),
            risk_level: None,
            user_model: "gpt-5.2".to_owned(),
            run: 3,
            turns,
            end,
        }
    }

    #[test]
    fn the_name_of_an_evaluation_comes_apart() {
        let parse = |name: &str| EvaluationName::parse(name).map(|n| (n.stem, n.judge, n.instance));
        let is = |stem: &str, judge: &str, instance| Some((stem.to_owned(), judge.to_owned(), instance));
        assert_eq!(parse("ab_Al_u_run2_gpt-5.4_i1.tsv"), is("ab_Al_u_run2", "gpt-5.4", 1));
        assert_eq!(parse("ab_Al_u_run12_open_ai_x_i3.tsv"), is("ab_Al_u_run12", "open_ai_x", 3));
        assert_eq!(parse("ab_Al_u_run2_s1_intro_j_i1.tsv"), is("ab_Al_u_run2_s1_intro", "j", 1));
        for other in [
            "ab_Al_u_run2.txt",
            "ab_Al_u_run2_j_i1.txt",
            "ab_Al_u_run2.tsv",
            "ab_Al_u_run2_i1.tsv",
            "ab_Al_u_runx_j_i1.tsv",
            "ab_Al_u_run2_j_ix.tsv",
            "_i1.tsv",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_written_form_is_the_originals() {
        let held = transcript(
            vec![
                turn(Speaker::User, "hi\nthere"),
                turn(Speaker::Chatbot, "hello"),
                turn(Speaker::User, "bye"),
            ],
            EndReason::PersonaEnded,
        );
        assert_eq!(
            write_text(&held),
            "user: hi\nthere\n\nchatbot: hello\n\nuser: bye\n[CONVERSATION ENDED - persona signaled termination]\n"
        );
    }

    #[test]
    fn both_forms_of_the_chatbots_side_are_read() {
        let text = "Persona : hi\n\nAGENT: one\n\nEND: this line belongs to the chatbot\n\nuser: bye\n";
        let read = read_text(&Source::new("t", text), "0a1b2c_Ana_gpt-5.2_run3.txt").unwrap();
        let speakers: Vec<_> = read.turns.iter().map(|t| (t.speaker, t.text.as_str())).collect();
        assert_eq!(
            speakers,
            [
                (Speaker::User, "hi"),
                (Speaker::Chatbot, "one\n\nEND: this line belongs to the chatbot"),
                (Speaker::User, "bye")
            ]
        );
        assert_eq!((read.persona.as_str(), read.user_model.as_str(), read.run), ("Ana", "gpt-5.2", 3));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let held = transcript(
            vec![turn(Speaker::User, "a\n\nb: c"), turn(Speaker::Chatbot, "d")],
            EndReason::Unknown,
        );
        let text = write_text(&held);
        assert_eq!(read_text(&Source::new("t", text), "0a1b2c_Ana_gpt-5.2_run3.txt").unwrap(), held);
    }

    #[test]
    fn an_empty_or_headless_file_is_no_transcript() {
        assert!(read_text(&Source::new("t", "\n"), "x.txt").is_err());
        let error = read_text(&Source::new("t", "\nsomething\nuser: hi\n"), "x.txt").unwrap_err();
        assert_eq!(error.location.unwrap().line, 2);
    }
}
