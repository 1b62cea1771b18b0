//! The built-in targets, compiled into the binary. A test holds this list against the folders.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::source::FileSet;

macro_rules! embedded {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path)))),+]
    };
}

/// Every embedded file: its path from the root of the project, and its text.
pub const FILES: &[(&str, &str)] = embedded![
    "personas/hfo.tsv",
    "personas/si-youth.tsv",
    "personas/si.tsv",
    "rubric/hfo/manifest.json",
    "rubric/hfo/rubric.tsv",
    "rubric/si/manifest.json",
    "rubric/si/rubric.tsv",
    "templates/prompts/hfo_persona_context.txt",
    "templates/prompts/judge_system.txt",
    "templates/prompts/question.txt",
    "templates/prompts/si_persona_context.txt",
    "templates/prompts/user_reminder.txt",
    "templates/prompts/user_system.txt",
];

/// Name and manifest of every built-in target.
pub const TARGETS: [(&str, &str); 2] =
    [("si", "rubric/si/manifest.json"), ("hfo", "rubric/hfo/manifest.json")];

/// The failure modes of all built-in targets. A thresholds file for several targets may name any of them.
pub fn labels() -> &'static BTreeSet<String> {
    static LABELS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let loaded = TARGETS.iter().filter_map(|(name, _)| super::load(name, &files()).ok());
        loaded.flat_map(|(target, _)| target.rubric.questions).filter_map(|question| question.label).collect()
    });
    &LABELS
}

/// The embedded files as a set, shown with `builtin:` in front of their paths.
pub fn files() -> FileSet {
    FileSet::memory("builtin:", FILES.iter().copied())
}
