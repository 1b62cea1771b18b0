//! The rules of a thresholds file as typed values.

use serde::{Deserialize, Serialize};

use crate::source::Location;
use crate::stats::{Alpha, Confidence};
use crate::target::RiskLevel;

/// Whether a broken rule stops the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// A broken rule fails the build.
    Block,
    /// A broken rule is reported.
    Warn,
}

/// What a verdict that the evidence leaves open does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnInconclusive {
    /// The build goes on.
    Warn,
    /// The build stops.
    Block,
}

/// What a rule looks at. An empty list means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Dimensions.
    pub dimensions: Vec<String>,
    /// Risk levels.
    pub risk_levels: Vec<RiskLevel>,
    /// Failure modes.
    pub labels: Vec<String>,
    /// Personas.
    pub personas: Vec<String>,
}

impl Scope {
    /// Whether the dimension is in it.
    pub fn has_dimension(&self, dimension: &str) -> bool {
        self.dimensions.is_empty() || self.dimensions.iter().any(|name| name == dimension)
    }

    /// Whether the conversation of this persona is in it. A conversation of an unknown risk level is in every scope:
    /// leaving it out could hide harm.
    pub fn has_conversation(&self, persona: &str, risk_level: Option<RiskLevel>) -> bool {
        let level = self.risk_levels.is_empty() || risk_level.is_none_or(|l| self.risk_levels.contains(&l));
        level && (self.personas.is_empty() || self.personas.iter().any(|name| name == persona))
    }

    /// Whether it is known that such a conversation belongs here or not: a scope of risk levels cannot tell of a
    /// conversation without one.
    pub fn can_place(&self, risk_level: Option<RiskLevel>) -> bool {
        self.risk_levels.is_empty() || risk_level.is_some()
    }

    /// In words, empty for everything.
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        if !self.risk_levels.is_empty() {
            let levels: Vec<&str> = self.risk_levels.iter().map(|level| level.word()).collect();
            parts.push(format!("risk level {}", levels.join(", ")));
        }
        for (what, names) in
            [("dimension", &self.dimensions), ("failure mode", &self.labels), ("persona", &self.personas)]
        {
            if !names.is_empty() {
                parts.push(format!("{what} {}", names.join(", ")));
            }
        }
        parts.join("; ")
    }
}

/// Whether the dimensions of the scope are looked at one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Each {
    /// Taken together: harmful in any dimension is harmful.
    #[default]
    Together,
    /// One by one.
    Dimension,
}

/// Standard of proof: what a limit is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standard {
    /// The observed share.
    Point,
    /// A one-sided confidence bound: passes when the share is shown to be on the right side of the limit, fails when
    /// it is shown to be on the wrong side, open in between.
    Bound {
        /// Confidence of the bound.
        confidence: Confidence,
        /// About whom it speaks.
        population: Population,
    },
}

/// About whom a bound speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Population {
    /// Users like these personas.
    #[serde(rename = "population")]
    UsersLikeThese,
    /// Exactly these personas.
    FixedPersonas,
}

/// A limit on a share of conversations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareLimit {
    /// The share, 0 to 1.
    pub limit: f64,
    /// What it is compared with.
    pub against: Standard,
}

/// A second look before a finding counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// How often the question is asked again.
    pub draws: u32,
    /// How many of the answers must say so.
    pub agree: u32,
}

/// The test of a regression rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Persona differences with flipped signs.
    SignFlip,
    /// Paired conversations.
    Mcnemar,
    /// Within personas, given the margins.
    Stratified,
    /// Without pairing.
    Fisher,
}

impl Test {
    /// The words of the thresholds file.
    pub const WORDS: [(&'static str, Self); 4] = [
        ("sign-flip", Self::SignFlip),
        ("mcnemar", Self::Mcnemar),
        ("stratified", Self::Stratified),
        ("fisher", Self::Fisher),
    ];

    /// The word of the thresholds file.
    pub fn word(self) -> &'static str {
        match self {
            Self::SignFlip => "sign-flip",
            Self::Mcnemar => "mcnemar",
            Self::Stratified => "stratified",
            Self::Fisher => "fisher",
        }
    }
}

/// The adjustment for testing several dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Correction {
    /// Holm: no p-value of any dimension rises when harm is added to another.
    #[default]
    Holm,
    /// Tarone's selection, then Holm. Finds more, and lacks that property: a dimension in which harm grows can join the
    /// family and raise the adjusted p of another.
    TaroneHolm,
    /// None.
    None,
}

/// A comparison of harm with the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegressionRule {
    /// The test.
    pub test: Test,
    /// Chance of a false alarm over all dimensions together.
    pub alpha: Alpha,
    /// The adjustment.
    pub correction: Correction,
    /// Smallest rise of the pooled rate that fails, 0 to 1.
    pub floor: f64,
    /// Exact p instead of mid-p.
    pub exactness: crate::stats::Exactness,
    /// The candidate must be shown to be less than this much worse, 0 to 1.
    pub margin: Option<f64>,
    /// Personas relevant on both sides below which finding nothing is not a pass.
    pub min_personas: u32,
    /// Whether the family has one more member: harm in any dimension.
    pub overall: bool,
}

/// What a rule checks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RuleKind {
    /// One confirmed harmful conversation is enough.
    Never {
        /// The second look.
        confirm: Option<Confirm>,
    },
    /// Most harm.
    MaxHarm(ShareLimit),
    /// Least best practice.
    MinBestPractice(ShareLimit),
    /// Harm against the baseline.
    Regression(RegressionRule),
    /// A failure mode that the baseline never showed.
    NewFailureMode {
        /// The second look.
        confirm: Option<Confirm>,
    },
    /// How far Not Relevant may move.
    MaxNotRelevantShift {
        /// Largest move, 0 to 1.
        limit: f64,
        /// A move counts only if chance explains it less often than this.
        alpha: Alpha,
    },
    /// How far the score may fall, in points.
    ScoreDrop {
        /// Points, 0 to 100.
        limit: f64,
    },
    /// Least share of planned conversations finished and judged.
    Coverage {
        /// The share, 0 to 1.
        limit: f64,
    },
    /// Most finished conversations without a verdict of the judge.
    MaxUnjudged {
        /// The share, 0 to 1.
        limit: f64,
    },
    /// Most conversations in which the user model broke its role.
    MaxRoleBreak {
        /// The share, 0 to 1.
        limit: f64,
    },
    /// Least share of relevant conversations, in each risk level.
    MinRelevant {
        /// The share, 0 to 1.
        limit: f64,
    },
}

impl RuleKind {
    /// The words of the thresholds file.
    pub const WORDS: [&'static str; 11] = [
        "never",
        "max_harm",
        "min_best_practice",
        "regression",
        "new_failure_mode",
        "max_not_relevant_shift",
        "score_drop",
        "coverage",
        "max_unjudged",
        "max_role_break",
        "min_relevant",
    ];

    /// The word of the thresholds file.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Never { .. } => "never",
            Self::MaxHarm(_) => "max_harm",
            Self::MinBestPractice(_) => "min_best_practice",
            Self::Regression(_) => "regression",
            Self::NewFailureMode { .. } => "new_failure_mode",
            Self::MaxNotRelevantShift { .. } => "max_not_relevant_shift",
            Self::ScoreDrop { .. } => "score_drop",
            Self::Coverage { .. } => "coverage",
            Self::MaxUnjudged { .. } => "max_unjudged",
            Self::MaxRoleBreak { .. } => "max_role_break",
            Self::MinRelevant { .. } => "min_relevant",
        }
    }

    /// Whether the rule is about what the candidate did; the others are about how much was measured.
    pub fn is_about_harm(&self) -> bool {
        matches!(
            self,
            Self::Never { .. }
                | Self::MaxHarm(_)
                | Self::MinBestPractice(_)
                | Self::Regression(_)
                | Self::NewFailureMode { .. }
        )
    }

    /// Whether any candidate could break the rule: a limit of 100 % harm is no limit.
    pub fn can_fail(&self) -> bool {
        match self {
            Self::MaxHarm(share) => share.limit < 1.0,
            Self::MinBestPractice(share) => share.limit > 0.0,
            kind => kind.is_about_harm(),
        }
    }

    /// Whether the rule compares with a baseline.
    pub fn needs_baseline(&self) -> bool {
        matches!(
            self,
            Self::Regression(_)
                | Self::NewFailureMode { .. }
                | Self::MaxNotRelevantShift { .. }
                | Self::ScoreDrop { .. }
        )
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Its own name.
    pub id: String,
    /// Whether it blocks.
    pub tier: Tier,
    /// What it looks at.
    pub scope: Scope,
    /// Dimensions together or one by one.
    pub each: Each,
    /// What it checks.
    pub kind: RuleKind,
    /// Where it stands.
    pub location: Location,
}

/// An exception for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiver {
    /// Id of the rule, or [`Waiver::MISSING`].
    pub rule: String,
    /// For what part of the rule.
    pub scope: Scope,
    /// Why.
    pub reason: String,
    /// Who answers for it.
    pub owner: String,
    /// The last day on which it holds.
    pub expires: chrono::NaiveDate,
    /// Where it stands.
    pub location: Location,
}

impl Waiver {
    /// In place of a rule's id: the personas of the scope may be without a conversation.
    pub const MISSING: &'static str = "missing";
    /// Days that a waiver may hold from the day on which it is read.
    pub const LONGEST: u64 = 366;

    /// Whether it still holds.
    pub fn holds(&self, today: chrono::NaiveDate) -> bool {
        today <= self.expires
    }
}

/// What the thresholds file wants of the baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BaselinePolicy {
    /// Without a usable one the verdict is inconclusive.
    pub required: bool,
    /// An older one is not usable.
    pub max_age_days: Option<u32>,
}

/// How much of the plan may be missing before nothing is decided at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MissingPolicy {
    /// Share of all planned conversations, 0 to 1.
    pub max_share: f64,
    /// Share of the planned conversations with personas at high or immediate risk, 0 to 1.
    pub max_share_high_risk: f64,
}

impl Default for MissingPolicy {
    fn default() -> Self {
        Self { max_share: 0.05, max_share_high_risk: 0.0 }
    }
}
