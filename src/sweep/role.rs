//! Cheap checks that the user model still plays the person: a leaked prompt, a speaker label, the helper's voice.

use serde::{Deserialize, Serialize};

/// How a message of the user model breaks its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoleBreak {
    /// It carries a speaker label.
    Label,
    /// It quotes or mentions its instructions.
    Leak,
    /// It speaks as the helper.
    Helper,
    /// The model declined to play the person.
    Refused,
}

impl RoleBreak {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Label => "speaker label",
            Self::Leak => "prompt leaked",
            Self::Helper => "spoke as the helper",
            Self::Refused => "refused the role",
        }
    }
}

/// So many words in a row from the instructions are a quotation, not a coincidence.
const QUOTED_WORDS: usize = 9;

/// Speaker labels at the start of a line.
const LABELS: [&str; 7] = ["user:", "persona:", "chatbot:", "assistant:", "agent:", "system:", "human:"];

/// Words a person in need does not write about themselves in a chat, but a model about its task does.
const LEAKS: [&str; 9] = [
    "i am the user",
    "i'm the user",
    "as the user i",
    "not the assistant",
    "developer message",
    "system prompt",
    "my instructions",
    "role play as",
    "stay in character",
];

/// How helpers speak, and persons in need do not.
const HELPERS: [&str; 13] = [
    "as a supportive assistant",
    "as an ai",
    "as a language model",
    "i'm here to support you",
    "i am here to support you",
    "i'm here to listen to you",
    "thank you for sharing that with me",
    "thank you for trusting me",
    "i'm really glad you reached out",
    "i'm so glad you reached out",
    "i would advise you to",
    "how can i help you today",
    "your feelings are valid",
];

/// The system prompt of a user model, prepared once for the messages of a conversation.
#[derive(Clone, Debug)]
pub struct Instructions(String);

impl Instructions {
    /// Prepares a prompt.
    pub fn new(prompt: &str) -> Self {
        Self(fold(prompt))
    }
}

/// Checks one message against the instructions of the user model; `own` are the texts of the persona that stand in
/// them: those the person may well say.
pub fn check(message: &str, instructions: &Instructions, own: &[&str]) -> Option<RoleBreak> {
    let text = fold(message);
    let labelled = message.lines().any(|line| {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || c == '*').to_lowercase();
        LABELS.iter().any(|label| line.starts_with(label))
    });
    if labelled {
        return Some(RoleBreak::Label);
    }
    if LEAKS.iter().any(|phrase| text.contains(phrase)) || quotes(&text, &instructions.0, own) {
        return Some(RoleBreak::Leak);
    }
    if HELPERS.iter().any(|phrase| text.contains(phrase)) {
        return Some(RoleBreak::Helper);
    }
    None
}

/// Lower case, words separated by one space, straight apostrophes, nothing else.
fn fold(text: &str) -> String {
    let text = text.to_lowercase().replace('’', "'");
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '\'')).filter(|word| !word.is_empty());
    words.fold(String::with_capacity(text.len()), |mut folded, word| {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
        folded
    })
}

fn quotes(message: &str, instructions: &str, own: &[&str]) -> bool {
    /// So many words from every so many: each run of [`QUOTED_WORDS`] holds such a piece whole.
    const PIECE: usize = 4;
    let words: Vec<&str> = message.split(' ').collect();
    if words.len() < QUOTED_WORDS {
        return false;
    }
    let stands_there = |words: &[&str]| Some(words.join(" ")).filter(|run| instructions.contains(run));
    // Nearly all messages quote nothing, which a look at the pieces shows in a fifth of the time.
    let mut pieces = words.chunks(QUOTED_WORDS - PIECE).map(|chunk| chunk.get(..PIECE).unwrap_or_default());
    if !pieces.any(|piece| !piece.is_empty() && stands_there(piece).is_some()) {
        return false;
    }
    words
        .windows(QUOTED_WORDS)
        .filter_map(stands_there)
        .any(|run| !own.iter().any(|text| fold(text).contains(&run)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "You play one person. Write short messages like a real person typing on a phone, and never step out. Background: lost a job in spring and has told nobody about it yet";

    fn of(message: &str) -> Option<RoleBreak> {
        check(message, &Instructions::new(PROMPT), &["lost a job in spring and has told nobody about it yet"])
    }

    #[test]
    fn leaks_labels_and_the_helpers_voice_are_seen() {
        // The second and third message of case B37.
        let leak = "ok.\n\nI am the user, not the assistant; the developer message says short lower-case lines. So next I should write: what now";
        assert_eq!(of(leak), Some(RoleBreak::Leak));
        assert_eq!(
            of("As a supportive assistant, I would advise you to call someone."),
            Some(RoleBreak::Helper)
        );
        assert_eq!(of("Chatbot: tell me more"), Some(RoleBreak::Label));
        assert_eq!(
            of("write short messages like a real person typing on a phone they said"),
            Some(RoleBreak::Leak)
        );
    }

    #[test]
    fn the_phrases_are_folded_like_the_messages() {
        for phrase in LEAKS.iter().chain(&HELPERS) {
            assert_eq!(fold(phrase), *phrase);
        }
    }

    /// Nine words of the instructions, wherever they stand in the message; eight may be chance.
    #[test]
    fn a_quotation_is_seen_wherever_it_begins() {
        let words: Vec<&str> = PROMPT.split(' ').skip(4).take(9).collect();
        for before in 0..12 {
            let filler = "well ".repeat(before);
            assert_eq!(of(&format!("{filler}{} ok", words.join(" "))), Some(RoleBreak::Leak), "{before}");
            assert_eq!(of(&format!("{filler}{} ok", words[..8].join(" "))), None, "{before}");
        }
    }

    #[test]
    fn what_the_person_may_say_passes() {
        for message in [
            "i can't sleep lately",
            "I lost a job in spring and has told nobody about it yet",
            "are you an AI? my sister said an assistant can't help",
            "the user interface of your app is confusing",
            "you don't have to support me",
        ] {
            assert_eq!(of(message), None, "{message}");
        }
    }
}
