//! Phrase matching over plain text: sentences, words, and a small pattern language.
//!
//! Words are compared in lower case without apostrophes, so `I'm` is `im`. A pattern is a list of words:
//! `a|b` is either word, `suicid*` is a beginning, `..` skips up to four words and `...` up to ten, none
//! of them a negation.

use std::collections::HashMap;
use std::ops::Range;

/// A sentence of a message.
#[derive(Clone, Debug)]
pub(super) struct Sentence {
    /// Its bytes in the original text, trimmed.
    pub(super) bytes: Range<usize>,
    /// Its words in [`Prose::words`].
    words: Range<usize>,
    /// Whether it ends in a question mark.
    pub(super) question: bool,
}

/// A message cut into sentences and words.
#[derive(Clone, Debug, Default)]
pub(super) struct Prose {
    folded: String,
    words: Vec<Range<usize>>,
    /// The sentences in order.
    pub(super) sentences: Vec<Sentence>,
}

/// Verbs that people contract with `not`.
const CONTRACTIONS: &[(&str, &str)] = &[
    ("do", "dont"),
    ("does", "doesnt"),
    ("did", "didnt"),
    ("is", "isnt"),
    ("was", "wasnt"),
    ("were", "werent"),
    ("can", "cant"),
    ("could", "couldnt"),
    ("will", "wont"),
    ("would", "wouldnt"),
    ("should", "shouldnt"),
];

impl Prose {
    /// Cuts a text.
    pub(super) fn new(text: &str) -> Self {
        let mut prose = Self { folded: String::with_capacity(text.len()), ..Self::default() };
        let mut word_start: Option<usize> = None;
        let mut first_word = 0;
        let mut first_byte = 0;
        for (at, c) in text.char_indices() {
            if c.is_alphanumeric() {
                word_start.get_or_insert(prose.folded.len());
                prose.folded.extend(c.to_lowercase());
                continue;
            }
            if matches!(c, '\'' | '’' | 'ʼ') && word_start.is_some() {
                continue;
            }
            if let Some(start) = word_start.take() {
                prose.end_word(start, first_word);
            }
            prose.folded.push(' ');
            if matches!(c, '.' | '!' | '?' | '\n' | ';') {
                prose.end_sentence(text, first_byte..at + c.len_utf8(), first_word);
                first_word = prose.words.len();
                first_byte = at + c.len_utf8();
            }
        }
        if let Some(start) = word_start {
            prose.end_word(start, first_word);
        }
        prose.end_sentence(text, first_byte..text.len(), first_word);
        prose
    }

    /// Ends a word. `do not` and `cannot` become `dont` and `cant`, so that patterns know one form.
    fn end_word(&mut self, start: usize, first_word: usize) {
        let word = self.folded.get(start..).unwrap_or_default();
        let before = (self.words.len() > first_word).then(|| self.words.last().cloned()).flatten();
        let contracted = match (before.as_ref().and_then(|range| self.folded.get(range.clone())), word) {
            (_, "cannot") => Some((start, "cant")),
            (Some(verb), "not") => {
                let short = CONTRACTIONS.iter().find(|(long, _)| *long == verb).map(|(_, short)| *short);
                short.zip(before).map(|(short, range)| (range.start, short))
            }
            _ => None,
        };
        match contracted {
            Some((from, short)) => {
                if from < start {
                    self.words.pop();
                }
                self.folded.truncate(from);
                self.folded.push_str(short);
                self.words.push(from..self.folded.len());
            }
            None => self.words.push(start..self.folded.len()),
        }
    }

    fn end_sentence(&mut self, text: &str, bytes: Range<usize>, first_word: usize) {
        if self.words.len() == first_word {
            return;
        }
        let raw = text.get(bytes.clone()).unwrap_or_default();
        let start = bytes.start + (raw.len() - raw.trim_start().len());
        let end = bytes.start + raw.trim_end().len();
        self.sentences.push(Sentence {
            bytes: start..end,
            words: first_word..self.words.len(),
            question: raw.trim_end().ends_with('?'),
        });
    }

    /// Number of words.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The words of a sentence.
    pub(super) fn words_of<'a>(&'a self, sentence: &Sentence) -> Vec<&'a str> {
        self.words
            .get(sentence.words.clone())
            .unwrap_or_default()
            .iter()
            .map(|range| self.folded.get(range.clone()).unwrap_or_default())
            .collect()
    }
}

/// Words that turn the phrase behind them around.
pub(super) const NEGATORS: &[&str] = &[
    "not", "no", "never", "dont", "doesnt", "didnt", "isnt", "arent", "wasnt", "wont", "wouldnt", "cant",
    "cannot", "couldnt", "shouldnt", "nobody", "nothing", "none", "without", "nor", "neither", "hardly",
];

#[derive(Debug)]
enum Piece {
    /// Any number of words from 0 to this.
    Gap(usize),
    /// One of these words; a trailing `*` stands for any ending.
    Word(Vec<String>),
}

fn fits(alternative: &str, word: &str) -> bool {
    match alternative.strip_suffix('*') {
        Some(beginning) => word.starts_with(beginning),
        None => alternative == word,
    }
}

fn end_of(pieces: &[Piece], words: &[&str], at: usize) -> Option<usize> {
    match pieces.split_first() {
        None => Some(at),
        Some((Piece::Word(alternatives), rest)) => {
            let word = words.get(at)?;
            if alternatives.iter().any(|a| fits(a, word)) { end_of(rest, words, at + 1) } else { None }
        }
        // A negation inside the gap would turn the meaning round.
        Some((Piece::Gap(most), rest)) => (0..=*most)
            .take_while(|skip| {
                *skip == 0 || words.get(at + skip - 1).is_some_and(|word| !NEGATORS.contains(word))
            })
            .find_map(|skip| end_of(rest, words, at + skip)),
    }
}

/// A set of patterns, each of which stands for a value.
#[derive(Debug)]
pub(super) struct Lexicon<T> {
    patterns: Vec<(T, Vec<Piece>)>,
    by_word: HashMap<String, Vec<usize>>,
    by_beginning: Vec<(String, usize)>,
}

impl<T: Copy> Lexicon<T> {
    /// Compiles the patterns, kept apart by `/` in each text.
    pub(super) fn new(table: impl IntoIterator<Item = (T, String)>) -> Self {
        let mut lexicon = Self { patterns: Vec::new(), by_word: HashMap::new(), by_beginning: Vec::new() };
        for (value, texts) in table {
            for text in texts.split('/').map(str::trim).filter(|t| !t.is_empty()) {
                let pieces: Vec<Piece> = text
                    .split_whitespace()
                    .map(|piece| match piece {
                        ".." => Piece::Gap(4),
                        "..." => Piece::Gap(10),
                        words => Piece::Word(words.split('|').map(str::to_owned).collect()),
                    })
                    .collect();
                let index = lexicon.patterns.len();
                if let Some(Piece::Word(alternatives)) = pieces.first() {
                    for alternative in alternatives {
                        match alternative.strip_suffix('*') {
                            Some(beginning) => lexicon.by_beginning.push((beginning.to_owned(), index)),
                            None => lexicon.by_word.entry(alternative.clone()).or_default().push(index),
                        }
                    }
                }
                lexicon.patterns.push((value, pieces));
            }
        }
        lexicon
    }

    /// Calls `found` with the value and the first word of every pattern that fits.
    pub(super) fn search(&self, words: &[&str], mut found: impl FnMut(T, usize)) {
        for (at, word) in words.iter().enumerate() {
            let exact = self.by_word.get(*word).into_iter().flatten().copied();
            let begun = self
                .by_beginning
                .iter()
                .filter(|(b, _)| word.starts_with(b.as_str()))
                .map(|(_, index)| *index);
            for index in exact.chain(begun) {
                if let Some((value, pieces)) = self.patterns.get(index)
                    && end_of(pieces, words, at).is_some()
                {
                    found(*value, at);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(pattern: &str, text: &str) -> usize {
        let lexicon = Lexicon::new([((), pattern.to_owned())]);
        let prose = Prose::new(text);
        let mut count = 0;
        for sentence in &prose.sentences {
            lexicon.search(&prose.words_of(sentence), |(), _| count += 1);
        }
        count
    }

    #[test]
    fn patterns_match_whole_words() {
        assert_eq!(hits("want to die", "I want to die."), 1);
        assert_eq!(hits("want to die", "I want to diet."), 0);
        assert_eq!(hits("im", "I’m here, I'm there"), 2);
        assert_eq!(hits("suicid*", "Suicidal? Suicide!"), 2);
    }

    #[test]
    fn long_and_short_negations_are_one() {
        assert_eq!(hits("i dont know", "I do not know. I don't know."), 2);
        assert_eq!(hits("cant", "I cannot, can not and can't."), 3);
        assert_eq!(hits("dont", "What do? Not this."), 0);
    }

    #[test]
    fn gaps_stay_inside_the_sentence() {
        assert_eq!(hits("talk .. friend", "Talk to an old friend."), 1);
        assert_eq!(hits("talk .. friend", "Talk. My friend left."), 0);
        assert_eq!(hits("a .. b", "a 1 2 3 4 5 b"), 0);
        assert_eq!(hits("a ... b", "a 1 2 3 4 5 b"), 1);
        assert_eq!(hits("a .. b", "a is never b"), 0);
    }

    #[test]
    fn sentences_keep_their_place_in_the_text() {
        let text = "Ähm, so what?  Fine\nDone";
        let prose = Prose::new(text);
        let parts: Vec<&str> = prose.sentences.iter().filter_map(|s| text.get(s.bytes.clone())).collect();
        assert_eq!(parts, ["Ähm, so what?", "Fine", "Done"]);
        assert_eq!(prose.sentences.iter().map(|s| s.question).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(prose.len(), 5);
    }
}
