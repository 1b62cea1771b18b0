//! The baseline file: JSON with one conversation per line, so that a diff shows which conversations changed.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Baseline, BaselineConversation, Origin, Provenance, SCHEMA};
use crate::rating::{Rating, RatingOutcome, Unjudged};
use crate::target::RiskLevel;
use crate::transcript::ConversationId;

/// Why a text is no baseline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Not JSON of this shape.
    #[error("{0}")]
    Shape(String),
    /// Another schema, or a newer major version of it.
    #[error("its schema is `{0}`, this version of vera-gate reads `{SCHEMA}`")]
    Schema(String),
    /// A conversation has another number of ratings than there are dimensions.
    #[error("conversation `{id}` has {given} ratings for {wanted} dimensions")]
    Ratings {
        /// The conversation.
        id: String,
        /// Ratings it has.
        given: usize,
        /// Ratings it needs.
        wanted: usize,
    },
    /// Without its day nobody can tell its age.
    #[error("`created`, the day it was blessed, is missing")]
    NoDay,
    /// It holds nothing.
    #[error("it holds no conversation, so nothing could be compared with it")]
    Empty,
    /// The same conversation twice.
    #[error("conversation `{0}` stands twice")]
    Duplicate(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    schema: String,
    candidate: String,
    created: Option<NaiveDate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    forced: Vec<String>,
    provenance: Provenance,
    dimensions: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: ConversationId,
    persona: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    risk_level: Option<RiskLevel>,
    user_model: String,
    run: u32,
    ratings: Vec<Word>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    modes: BTreeMap<String, BTreeSet<String>>,
}

/// A rating in few letters: the lines stay short enough for a review.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Word {
    #[serde(rename = "BP")]
    Best,
    #[serde(rename = "SUB")]
    Suboptimal,
    #[serde(rename = "HPH")]
    Harm,
    #[serde(rename = "NR")]
    NotRelevant,
    #[serde(untagged)]
    Unjudged {
        /// Why there is no rating.
        unjudged: Unjudged,
    },
}

impl From<RatingOutcome> for Word {
    fn from(outcome: RatingOutcome) -> Self {
        match outcome {
            RatingOutcome::Rated(Rating::BestPractice) => Self::Best,
            RatingOutcome::Rated(Rating::Suboptimal) => Self::Suboptimal,
            RatingOutcome::Rated(Rating::HighPotentialForHarm) => Self::Harm,
            RatingOutcome::Rated(Rating::NotRelevant) => Self::NotRelevant,
            RatingOutcome::Unjudged(unjudged) => Self::Unjudged { unjudged },
        }
    }
}

impl From<Word> for RatingOutcome {
    fn from(word: Word) -> Self {
        match word {
            Word::Best => Self::Rated(Rating::BestPractice),
            Word::Suboptimal => Self::Rated(Rating::Suboptimal),
            Word::Harm => Self::Rated(Rating::HighPotentialForHarm),
            Word::NotRelevant => Self::Rated(Rating::NotRelevant),
            Word::Unjudged { unjudged } => Self::Unjudged(unjudged),
        }
    }
}

impl Baseline {
    /// Writes the file. The same baseline gives the same bytes.
    ///
    /// # Errors
    /// When a value cannot be written as JSON, which no value read by this tool is.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let head = Head {
            schema: SCHEMA.to_owned(),
            candidate: self.candidate.clone(),
            created: self.created,
            run: self.run.clone(),
            forced: self.forced.clone(),
            provenance: self.provenance.clone(),
            dimensions: self.dimensions.clone(),
        };
        let head = serde_json::to_string_pretty(&head)?;
        let mut text = head.strip_suffix("\n}").unwrap_or(&head).to_owned();
        text.push_str(",\n  \"conversations\": [");
        for (index, conversation) in self.conversations.iter().enumerate() {
            let line = Line {
                id: conversation.id.clone(),
                persona: conversation.persona.clone(),
                risk_level: conversation.risk_level,
                user_model: conversation.user_model.clone(),
                run: conversation.run,
                ratings: self
                    .dimensions
                    .iter()
                    .map(|name| conversation.outcomes.get(name).copied())
                    .map(|outcome| outcome.unwrap_or(RatingOutcome::Unjudged(Unjudged::NotReached)).into())
                    .collect(),
                modes: conversation.modes.clone(),
            };
            text.push_str(if index == 0 { "\n    " } else { ",\n    " });
            text.push_str(&serde_json::to_string(&line)?);
        }
        text.push_str("\n  ]\n}\n");
        Ok(text)
    }

    /// Reads a baseline file.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        let shape = |error: serde_json::Error| ReadError::Shape(error.to_string());
        let mut value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(shape)?;
        let schema = value.get("schema").and_then(Value::as_str).unwrap_or_default();
        if schema != SCHEMA {
            return Err(ReadError::Schema(schema.to_owned()));
        }
        let lines = value.as_object_mut().and_then(|map| map.remove("conversations"));
        let head: Head = serde_json::from_value(value).map_err(shape)?;
        let lines: Vec<Line> = serde_json::from_value(lines.unwrap_or_default()).map_err(shape)?;
        if head.created.is_none() {
            return Err(ReadError::NoDay);
        }
        if lines.is_empty() {
            return Err(ReadError::Empty);
        }
        let wanted = head.dimensions.len();
        let mut seen = BTreeSet::new();
        let mut conversations = Vec::with_capacity(lines.len());
        for line in lines {
            let given = line.ratings.len();
            if given != wanted {
                return Err(ReadError::Ratings { id: line.id.0, given, wanted });
            }
            if !seen.insert(line.id.clone()) {
                return Err(ReadError::Duplicate(line.id.0));
            }
            conversations.push(BaselineConversation {
                id: line.id,
                persona: line.persona,
                risk_level: line.risk_level,
                user_model: line.user_model,
                run: line.run,
                outcomes: head
                    .dimensions
                    .iter()
                    .cloned()
                    .zip(line.ratings.into_iter().map(RatingOutcome::from))
                    .collect(),
                modes: line.modes,
            });
        }
        conversations.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(Self {
            origin: Origin::Blessed,
            run: head.run,
            candidate: head.candidate,
            created: head.created,
            provenance: head.provenance,
            forced: head.forced,
            dimensions: head.dimensions,
            conversations,
        })
    }
}
