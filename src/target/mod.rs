//! Evaluation bundles: manifest, personas, flow rubric and prompts, loaded, validated and fingerprinted.

pub mod persona;
pub mod rubric;
pub mod table;

use std::fmt;

use serde::{Deserialize, Serialize};

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
}

impl fmt::Display for RiskLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
