//! The native form of a transcript: a header line, a line per message, an end line.
//!
//! A file without its end line was cut off and is refused: half a conversation is not a conversation.

use serde::{Deserialize, Serialize};

use super::{ConversationId, EndReason, SCHEMA, Transcript, Turn};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Source;
use crate::target::RiskLevel;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    schema: String,
    id: ConversationId,
    persona: String,
    risk_level: Option<RiskLevel>,
    user_model: String,
    run: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    end: EndReason,
    messages: usize,
}

/// Writes the native form.
pub fn write_jsonl(transcript: &Transcript) -> Result<String, serde_json::Error> {
    let header = Header {
        schema: SCHEMA.to_owned(),
        id: transcript.id.clone(),
        persona: transcript.persona.clone(),
        risk_level: transcript.risk_level,
        user_model: transcript.user_model.clone(),
        run: transcript.run,
    };
    let mut text = serde_json::to_string(&header)?;
    text.push('\n');
    for turn in &transcript.turns {
        text.push_str(&serde_json::to_string(turn)?);
        text.push('\n');
    }
    text.push_str(&serde_json::to_string(&End { end: transcript.end, messages: transcript.turns.len() })?);
    text.push('\n');
    Ok(text)
}

/// Reads the native form.
pub fn read_jsonl(source: &Source) -> Result<Transcript, Diagnostic> {
    let bad = |line: usize, message: String| {
        Diagnostic::error(Code::BadTranscript, message)
            .at(source.at(line, 1))
            .help("the file is written by `vera-gate simulate`; make it again")
    };
    let lines: Vec<&str> = source.text().lines().collect();
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
        return Err(bad(1, "the transcript is empty".to_owned()));
    };
    let header: Header = serde_json::from_str(first).map_err(|error| bad(1, error.to_string()))?;
    if header.schema != SCHEMA {
        return Err(Diagnostic::error(
            Code::UnsupportedVersion,
            format!("schema `{}` is not `{SCHEMA}`", header.schema),
        )
        .at(source.at(1, 1))
        .help("a newer vera-gate wrote this file; use that one to read it"));
    }
    let end: End = serde_json::from_str(last)
        .map_err(|_error| bad(lines.len(), "the transcript was cut off before its end line".to_owned()))?;
    let mut turns = Vec::with_capacity(end.messages);
    for (index, line) in lines.iter().enumerate().take(lines.len() - 1).skip(1) {
        let turn: Turn = serde_json::from_str(line).map_err(|error| bad(index + 1, error.to_string()))?;
        turns.push(turn);
    }
    if turns.len() != end.messages || turns.is_empty() {
        return Err(bad(
            lines.len(),
            format!("{} messages, the end line says {}", turns.len(), end.messages),
        ));
    }
    Ok(Transcript {
        id: header.id,
        persona: header.persona,
        risk_level: header.risk_level,
        user_model: header.user_model,
        run: header.run,
        turns,
        end: end.end,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Speaker, TurnFlag};

    fn held() -> Transcript {
        Transcript {
            id: ConversationId("0a1b2c_Ana_m_run1".to_owned()),
            persona: "Ana".to_owned(),
            risk_level: Some(RiskLevel::None),
            user_model: "m".to_owned(),
            run: 1,
            turns: vec![
                Turn { speaker: Speaker::User, text: "hi\nchatbot: fake".to_owned(), flags: Vec::new() },
                Turn {
                    speaker: Speaker::Chatbot,
                    text: "\u{2028}x".to_owned(),
                    flags: vec![TurnFlag::Truncated],
                },
            ],
            end: EndReason::TurnLimit,
        }
    }

    #[test]
    fn what_is_written_is_read_back_even_with_forged_speakers() {
        let text = write_jsonl(&held()).unwrap();
        assert_eq!(read_jsonl(&Source::new("t.jsonl", text)).unwrap(), held());
    }

    #[test]
    fn a_cut_file_is_refused_at_every_line() {
        let text = write_jsonl(&held()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for kept in 0..lines.len() {
            let cut = lines[..kept].join("\n");
            assert!(read_jsonl(&Source::new("t.jsonl", cut)).is_err(), "{kept} lines");
        }
    }

    #[test]
    fn a_newer_schema_is_refused_with_its_name() {
        let text = write_jsonl(&held()).unwrap().replace("transcript/v1", "transcript/v2");
        assert_eq!(read_jsonl(&Source::new("t", text)).unwrap_err().code, Code::UnsupportedVersion);
    }
}
