//! The parts of the configuration that say what is simulated and how much at the same time.

use super::yaml::{Section, Value};
use super::{Budget, Concurrency, Curtail, FirstSpeaker, Selection, Sweep};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};

/// VERA-MH's recommended length of a conversation.
const MAX_MESSAGES: u32 = 30;

/// Reads `sweep`.
pub(super) fn read(file: &mut Section<'_>, problems: &mut Diagnostics) -> Sweep {
    const FIRST: [(&str, FirstSpeaker); 2] =
        [("user", FirstSpeaker::User), ("chatbot", FirstSpeaker::Chatbot)];
    const CURTAIL: [(&str, Curtail); 3] =
        [("never", Curtail::Never), ("certain", Curtail::Certain), ("early-pass", Curtail::EarlyPass)];
    let mut sweep = Sweep {
        runs: 1,
        max_messages: MAX_MESSAGES,
        max_words: None,
        first_speaker: FirstSpeaker::User,
        first_message: None,
        start_prompt: None,
        select: Selection::default(),
        seed: 1,
        resamples: 2,
        restarts: 1,
        curtail: Curtail::Certain,
    };
    if !file.has("sweep") {
        return sweep;
    }
    let Some(mut section) = file.section("sweep", problems) else { return sweep };
    let s = &mut section;
    sweep.runs = s.small("runs", 1..=1000, problems).unwrap_or(sweep.runs);
    sweep.max_messages = s.small("max_messages", 2..=1000, problems).unwrap_or(sweep.max_messages);
    sweep.max_words = s.small("max_words", 1..=10_000_000, problems);
    sweep.first_speaker = s.word("first_speaker", &FIRST, problems).unwrap_or_default();
    sweep.first_message = not_blank(s, "first_message", problems);
    sweep.start_prompt = not_blank(s, "start_prompt", problems);
    sweep.seed = s.whole("seed", 0..=u64::MAX, problems).unwrap_or(sweep.seed);
    sweep.resamples = s.small("resamples", 0..=10, problems).unwrap_or(sweep.resamples);
    sweep.restarts = s.small("restarts", 0..=10, problems).unwrap_or(sweep.restarts);
    sweep.curtail = s.word("curtail", &CURTAIL, problems).unwrap_or_default();
    let select = Selection {
        names: s.texts("personas", problems).unwrap_or_default(),
        risk_levels: s.texts("risk_levels", problems).unwrap_or_default(),
        sample: s.small("sample", 1..=1_000_000, problems),
    };
    // A list that is there and empty selects nothing: taking it for "all" would run what nobody asked for.
    for (key, chosen) in [("personas", &select.names), ("risk_levels", &select.risk_levels)] {
        if let Some(node) = s.get(if key == "personas" { "personas" } else { "risk_levels" })
            && chosen.is_empty()
            && matches!(&node.value, Value::List(items) if items.is_empty())
        {
            problems.push(
                Diagnostic::error(Code::NothingSelected, format!("`sweep.{key}` selects nothing"))
                    .at(node.location.clone())
                    .help("name at least one, or remove the key to take all"),
            );
        }
    }
    sweep.select = select;
    section.finish(problems);
    sweep
}

fn not_blank(section: &mut Section<'_>, key: &'static str, problems: &mut Diagnostics) -> Option<String> {
    let text = section.text(key, problems)?;
    if text.trim().is_empty() {
        let location = section.get(key).map_or_else(|| section.location().clone(), |n| n.location.clone());
        problems.push(
            Diagnostic::error(Code::OutOfRange, format!("`{}` is blank", section.path_of(key)))
                .at(location)
                .help("give it a text, or remove the key"),
        );
        return None;
    }
    Some(text)
}

/// Reads `concurrency`.
pub(super) fn concurrency(file: &mut Section<'_>, problems: &mut Diagnostics) -> Concurrency {
    let mut concurrency = Concurrency { calls: 64, conversations: 256 };
    if let Some(mut section) = file.section("concurrency", problems) {
        concurrency.calls = section.small("calls", 1..=10_000, problems).unwrap_or(concurrency.calls);
        concurrency.conversations =
            section.small("conversations", 1..=100_000, problems).unwrap_or(concurrency.conversations);
        section.finish(problems);
    }
    concurrency
}

/// Reads `budget`.
pub(super) fn budget(file: &mut Section<'_>, problems: &mut Diagnostics) -> Budget {
    let mut budget = Budget::default();
    if let Some(mut section) = file.section("budget", problems) {
        if let Some(dollars) = section.number("dollars", 0.000_001..=10_000_000.0, problems) {
            // Kept as decimal text: money is counted in integers further on.
            budget.dollars = Some(format!("{dollars}"));
        }
        budget.tokens = section.whole("tokens", 1..=u64::MAX, problems);
        budget.calls = section.whole("calls", 1..=u64::MAX, problems);
        budget.time = section.duration("time", problems);
        section.finish(problems);
    }
    budget
}
