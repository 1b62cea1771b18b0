//! Evaluation bundles: manifest, personas, flow rubric and prompts, loaded, validated and fingerprinted.

pub mod embedded;
mod load;
pub mod manifest;
pub mod persona;
pub mod prompt;
pub mod rubric;
pub mod summary;
pub mod table;

use std::fmt;

use semver::Version;
use serde::{Deserialize, Serialize};

pub use load::{BUILTIN, Checked, check, load, load_from, load_with_personas};
pub use persona::Persona;
pub use prompt::Prompts;
pub use rubric::Rubric;

/// A persona's suicide risk (or, in other targets, the like), in the order of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RiskLevel {
    /// The control group.
    None,
    /// Low risk.
    Low,
    /// High risk.
    High,
    /// Immediate risk.
    Immediate,
}

impl RiskLevel {
    /// All levels in the order of tables.
    pub const ALL: [Self; 4] = [Self::None, Self::Low, Self::High, Self::Immediate];

    /// The word in persona files and reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Low => "Low",
            Self::High => "High",
            Self::Immediate => "Immediate",
        }
    }

    /// Reads today's word, ignoring case and outer spaces.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word().eq_ignore_ascii_case(word.trim()))
    }

    /// Reads a word of older files, which is called otherwise today.
    pub fn from_older_word(word: &str) -> Option<(&'static str, Self)> {
        const OLDER: [(&str, RiskLevel); 2] =
            [("Imminent", RiskLevel::Immediate), ("Moderate", RiskLevel::High)];
        OLDER.into_iter().find(|(older, _)| older.eq_ignore_ascii_case(word.trim()))
    }
}

impl fmt::Display for RiskLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// An evaluation bundle whose parts are known to fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Short name: from the manifest, else the name of the folder.
    pub name: String,
    /// Version, where the manifest states one. VERA-MH's own manifests state none.
    pub version: Option<Version>,
    /// Title for reports.
    pub title: Option<String>,
    /// Whether clinicians validated it, where the manifest says so.
    pub clinically_validated: Option<bool>,
    /// What reports must say about it.
    pub notice: Option<String>,
    /// The personas of all files, at least one, with unique names.
    pub personas: Vec<Persona>,
    /// The column the risk levels were read from.
    pub risk_column: Option<String>,
    /// Columns of the persona table that `results.csv` repeats.
    pub annotation_columns: Vec<String>,
    /// The flow of questions.
    pub rubric: Rubric,
    /// The texts of the requests.
    pub prompts: Prompts,
    /// What results must share to be comparable.
    pub fingerprints: Fingerprints,
}

impl Target {
    /// The persona with exactly this name.
    pub fn persona(&self, name: &str) -> Option<&Persona> {
        self.personas.iter().find(|persona| persona.name == name)
    }
}

/// SHA-256 of each part in lower-case hex, over its text without byte order mark and with Unix line ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprints {
    /// The rubric table.
    pub rubric: String,
    /// The persona tables and how risk levels are read from them.
    pub personas: String,
    /// The prompt templates of user model and judge.
    pub prompts: String,
}
