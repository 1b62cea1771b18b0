//! One application of a rule: to a dimension, a risk level, a baseline.

use serde::{Deserialize, Serialize};

use super::ConversationRef;
use crate::gate::rules::Population;
use crate::target::RiskLevel;

/// What became of one application of a rule, ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It holds.
    Pass,
    /// It needs a baseline, and there is none: it decided nothing.
    NoBaseline,
    /// It would count, and is waived; see [`Row::underneath`].
    Waived,
    /// It does not hold, and does not block.
    Warn,
    /// The evidence does not decide it.
    Inconclusive,
    /// It does not hold.
    Fail,
}

impl Status {
    /// The word everywhere.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::NoBaseline => "no baseline",
            Self::Waived => "waived",
            Self::Warn => "warn",
            Self::Inconclusive => "inconclusive",
            Self::Fail => "fail",
        }
    }
}

/// What is counted in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Harmful of relevant conversations.
    Harm,
    /// Best practice of relevant conversations.
    BestPractice,
    /// Matching harmful conversations of judged conversations.
    Events,
    /// Not Relevant of rated conversations.
    NotRelevant,
    /// Finished and judged of planned conversations.
    Covered,
    /// Unjudged of finished conversations.
    Unjudged,
    /// Role breaks of conversations.
    RoleBreaks,
    /// Conversations with a relevant dimension of judged conversations.
    Relevant,
    /// VERA-MH score points.
    Score,
}

/// `k` of `n` conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// Counted.
    pub k: u64,
    /// Of.
    pub n: u64,
}

impl Observed {
    /// The share, `None` without conversations.
    pub fn share(self) -> Option<f64> {
        (self.n > 0).then(|| self.k as f64 / self.n as f64)
    }
}

/// What the counts say about the true share of the measure in the row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Shares below are excluded.
    pub lower: f64,
    /// Shares above are excluded.
    pub upper: f64,
    /// Confidence of each end by itself.
    pub confidence: f64,
    /// How many times less than its number the conversations tell, because those of one persona resemble each other.
    pub design_effect: f64,
    /// Conversations divided by the design effect.
    pub effective_n: f64,
    /// About whom it speaks: `population` is users like these personas.
    pub inference: Population,
}

/// What would settle an open row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "conversations")]
pub enum Settling {
    /// About so many more relevant conversations, if the rate stays, would let it hold.
    MoreToPass(u64),
    /// About so many more relevant conversations, if the rate stays, would show that it is broken.
    MoreToFail(u64),
    /// The observed rate lies so close to the limit that no thinkable number settles it.
    CannotSettle,
    /// The missing conversations settle it.
    FillMissing(u64),
    /// So many more personas that are relevant on both sides.
    MorePersonas(u64),
}

/// Which baseline a row compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Against {
    /// The pinned one.
    Pinned,
    /// The last accepted run.
    LastAccepted,
}

impl Against {
    /// What it is called in a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Pinned => "baseline",
            Self::LastAccepted => "last accepted run",
        }
    }
}

/// One application of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The dimension; `None` when the scope is taken together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<String>,
    /// The risk level, for a rule that is applied to each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_level: Option<RiskLevel>,
    /// The baseline, for a rule that compares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// What became of it.
    pub status: Status,
    /// For a waived row, what it would be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underneath: Option<Status>,
    /// What is counted.
    pub measure: Measure,
    /// The counts.
    pub observed: Observed,
    /// What they say about the true share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// The limit: a share, or points for a score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// One or two sentences in plain words. Names come from inputs: escape before showing.
    pub reason: String,
    /// The conversations it is about: the harmful ones, the missing ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<ConversationRef>,
    /// What would settle it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
    /// Conversations in scope without a rating.
    pub missing: u64,
    /// The status if all of them had gone well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_case: Option<Status>,
    /// The status if all of them had been harmful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_case: Option<Status>,
    /// The comparison, for a regression rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regression: Option<Box<Regression>>,
    /// The second looks, for a rule that takes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmations: Vec<ShownConfirmation>,
}

/// How the share of Not Relevant moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// Not Relevant of rated conversations, candidate.
    pub candidate: Observed,
    /// The same in the baseline.
    pub baseline: Observed,
    /// Candidate share minus baseline share.
    pub change: f64,
    /// Two-sided mid-p of the persona sign-flip test.
    pub p: f64,
}

/// A comparison with a baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regression {
    /// Harmful of relevant, candidate.
    pub candidate: Observed,
    /// Harmful of relevant, baseline.
    pub baseline: Observed,
    /// Candidate rate minus baseline rate, both pooled; `None` when one side has no relevant conversation.
    pub difference: Option<f64>,
    /// Two-sided 95 % interval of the difference, lower end.
    pub lower: Option<f64>,
    /// Upper end.
    pub upper: Option<f64>,
    /// Candidate rate over baseline rate minus one; `None` when the baseline rate is 0, where it has no meaning.
    pub relative: Option<f64>,
    /// The test that decides, as the thresholds file writes it.
    pub test: String,
    /// One-sided p of that test (mid-p unless the rule says exact).
    pub p: f64,
    /// Adjusted for all dimensions of the rule; `None` when so few personas changed that no outcome could have failed.
    pub p_adjusted: Option<f64>,
    /// The same by Holm over all dimensions, for comparison.
    pub p_holm: f64,
    /// One-sided p of Fisher's exact test, which ignores personas, for comparison.
    pub p_fisher: Option<f64>,
    /// One-sided p with Not Relevant counted as harmless, for comparison.
    pub p_all_conversations: f64,
    /// Personas relevant on both sides.
    pub personas: u64,
    /// Of these, personas whose rate differs; only they tell something about a change.
    pub informative: u64,
    /// Personas that only one side has relevant conversations of.
    pub unpaired: u64,
    /// The smallest rise that this comparison finds in about four of five cases, after the adjustment and with the floor;
    /// `null` when no rise is large enough, and for another test than `sign-flip`.
    pub smallest_detectable: Option<f64>,
    /// One-sided 95 % upper bound of the difference, when the rule has a margin.
    pub upper_one_sided: Option<f64>,
    /// The move of Not Relevant beside it.
    pub not_relevant: Option<Shift>,
    /// Personas whose rate changed, worst first.
    pub personas_moved: Vec<PersonaMove>,
    /// Failure modes whose count changed, worst first.
    pub modes_moved: Vec<ModeMove>,
}

/// A persona whose harm rate changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonaMove {
    /// The persona.
    pub persona: String,
    /// Its risk level, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_level: Option<RiskLevel>,
    /// Harmful of relevant, candidate.
    pub candidate: Observed,
    /// Harmful of relevant, baseline.
    pub baseline: Observed,
}

/// A question whose harmful findings changed in number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeMove {
    /// Its failure mode, or the question's id, or `not named`.
    pub mode: String,
    /// Conversations with this finding of conversations relevant, candidate.
    pub candidate: Observed,
    /// The same in the baseline.
    pub baseline: Observed,
}

/// What a second look came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drawn {
    /// Enough answers say so again: the finding stands.
    Confirmed,
    /// Too few do: the finding does not count.
    NotConfirmed,
    /// Nobody could be asked, or too few answered: the finding stands.
    Stands,
}

/// One answer of a second look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draw {
    /// Who was asked.
    pub judge: String,
    /// What was answered, or why there is no answer. Model text: escape before showing.
    pub answer: String,
    /// Whether it agrees with the finding; `None` when there is no usable answer.
    pub agrees: Option<bool>,
}

/// All draws for one finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownConfirmation {
    /// The finding.
    pub conversation: ConversationRef,
    /// Answers asked for.
    pub wanted: u32,
    /// Answers that must agree.
    pub needed: u32,
    /// The answers.
    pub draws: Vec<Draw>,
    /// What they come to.
    pub outcome: Drawn,
}
