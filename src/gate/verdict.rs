//! What the gate found, as one value: the exit code, the report, the check and the comment all read this.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::rules::{OnInconclusive, Tier};
use super::stop::StopReason;
use crate::exit::Exit;
use crate::matrix::Matrix;
use crate::rating::Unjudged;
use crate::source::Location;
use crate::target::RiskLevel;
use crate::transcript::ConversationId;

mod row;

pub use row::{
    Against, Bound, Draw, Drawn, Measure, ModeMove, Observed, PersonaMove, Regression, Row, Settling, Shift,
    ShownConfirmation, Status,
};

/// Version tag of `verdict.json`.
pub const SCHEMA: &str = "vera-gate/verdict/v1";

/// The gate's answer, ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every blocking rule holds, on enough evidence.
    Pass,
    /// Nothing blocks; a person should look.
    Warn,
    /// The evidence does not decide.
    Inconclusive,
    /// A blocking rule is broken.
    Fail,
}

impl Verdict {
    /// The word everywhere.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Inconclusive => "inconclusive",
            Self::Fail => "fail",
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

/// What a reason does to the verdict, ordered from harmless to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// A reader should know it; it changes nothing.
    Note,
    /// Makes it at least a warning.
    Warns,
    /// Leaves the verdict open; the thresholds file says whether that stops the build.
    Open,
    /// Too little was measured; stops the build whatever the thresholds file says.
    Incomplete,
    /// Breaks a blocking rule.
    Fails,
}

/// What kind of reason it is. Stable: scripts and documents refer to the text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonCode {
    /// A never-rule met a harmful conversation.
    NeverEvent,
    /// A never-rule met a finding that the second look did not confirm.
    NotConfirmed,
    /// The share of harm is above its limit.
    TooMuchHarm,
    /// The share of best practice is below its limit.
    TooLittleBestPractice,
    /// Harm rose against the baseline.
    Regression,
    /// Harm where the baseline had none in the whole dimension.
    NewHarmCell,
    /// A failure mode that the baseline never showed.
    NewFailureMode,
    /// The share of Not Relevant moved.
    NotRelevantShift,
    /// The score fell.
    ScoreDrop,
    /// The sample does not decide a rule.
    EvidenceOpen,
    /// Missing or unjudged conversations decide a rule.
    MissingDecides,
    /// Not one conversation was finished.
    NothingFinished,
    /// Not one conversation was judged.
    NothingJudged,
    /// Every dimension of every judged conversation is Not Relevant.
    NothingRelevant,
    /// No rule about harm that could block came to a decision.
    NothingDecided,
    /// More planned conversations are missing than the thresholds file allows.
    TooManyMissing,
    /// A persona has no judged conversation at all.
    PersonaMissing,
    /// A conversation with a persona at high or immediate risk is missing.
    HighRiskMissing,
    /// Fewer conversations were finished and judged than the coverage rule wants.
    LowCoverage,
    /// Too many conversations without a verdict of the judge.
    TooManyUnjudged,
    /// The user model broke its role too often.
    TooManyRoleBreaks,
    /// Too few conversations were relevant.
    TooFewRelevant,
    /// There is no baseline.
    NoBaseline,
    /// The baseline was measured with something else.
    BaselineIncomparable,
    /// The baseline cannot be read.
    BaselineUnreadable,
    /// The baseline is older than the thresholds file allows.
    BaselineTooOld,
    /// The baseline was blessed against the rules.
    BaselineForced,
    /// Neither side carries fingerprints, so nobody knows whether the two results compare.
    ComparabilityUnknown,
    /// A broken rule is waived.
    Waived,
    /// A waiver's date has passed.
    WaiverExpired,
    /// The sweep stopped before its end.
    StoppedEarly,
    /// The sweep was cut off, or this is only a shard of it.
    SweepIncomplete,
    /// The rules of VERA-MH 1.1 discarded findings of high potential for harm, so that the matrix lacks them.
    DiscardedHarm,
    /// A bare results file has none of the dimensions that are known, so nobody can say what it lacks.
    TargetUnknown,
    /// A judge saw high potential for harm, and the majority of the judges did not.
    OutvotedHarm,
}

impl ReasonCode {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NeverEvent => "never-event",
            Self::NotConfirmed => "not-confirmed",
            Self::TooMuchHarm => "too-much-harm",
            Self::TooLittleBestPractice => "too-little-best-practice",
            Self::Regression => "regression",
            Self::NewHarmCell => "new-harm-cell",
            Self::NewFailureMode => "new-failure-mode",
            Self::NotRelevantShift => "not-relevant-shift",
            Self::ScoreDrop => "score-drop",
            Self::EvidenceOpen => "evidence-open",
            Self::MissingDecides => "missing-decides",
            Self::NothingFinished => "nothing-finished",
            Self::NothingJudged => "nothing-judged",
            Self::NothingRelevant => "nothing-relevant",
            Self::NothingDecided => "nothing-decided",
            Self::TooManyMissing => "too-many-missing",
            Self::PersonaMissing => "persona-missing",
            Self::HighRiskMissing => "high-risk-missing",
            Self::LowCoverage => "low-coverage",
            Self::TooManyUnjudged => "too-many-unjudged",
            Self::TooManyRoleBreaks => "too-many-role-breaks",
            Self::TooFewRelevant => "too-few-relevant",
            Self::NoBaseline => "no-baseline",
            Self::BaselineIncomparable => "baseline-incomparable",
            Self::BaselineUnreadable => "baseline-unreadable",
            Self::BaselineTooOld => "baseline-too-old",
            Self::BaselineForced => "baseline-forced",
            Self::ComparabilityUnknown => "comparability-unknown",
            Self::Waived => "waived",
            Self::WaiverExpired => "waiver-expired",
            Self::StoppedEarly => "stopped-early",
            Self::SweepIncomplete => "sweep-incomplete",
            Self::DiscardedHarm => "discarded-harm",
            Self::TargetUnknown => "target-unknown",
            Self::OutvotedHarm => "outvoted-harm",
        }
    }
}

/// One reason for the verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// What kind.
    pub code: ReasonCode,
    /// What it does to the verdict.
    pub weight: Weight,
    /// One or two sentences in plain words. Names come from inputs: escape before showing.
    pub text: String,
    /// The rule, if the reason comes from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The dimension, if the reason is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<String>,
    /// The conversations it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<ConversationRef>,
}

/// A conversation, planned or held, as a reader finds it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ConversationRef {
    /// Its id; `None` when it was planned and never held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ConversationId>,
    /// The persona's name.
    pub persona: String,
    /// The persona's risk level, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_level: Option<RiskLevel>,
    /// The model that played the person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_model: String,
    /// Which repetition, from 1.
    pub run: u32,
    /// The dimension that is meant, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<String>,
    /// The question that found the harm, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Its failure mode, if the rubric names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_mode: Option<String>,
}

/// Why a planned conversation gives no evidence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "detail")]
pub enum MissingReason {
    /// It gave up with this error.
    Errored(String),
    /// The user model broke its role.
    Invalid,
    /// It never ran.
    NotRun,
    /// It was held, and the judge came to no verdict in any dimension.
    Unjudged,
}

/// A planned conversation without evidence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MissingConversation {
    /// Which.
    pub conversation: ConversationRef,
    /// Why.
    pub reason: MissingReason,
}

/// How many conversations stand behind the verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageCounts {
    /// Planned; without a plan, the conversations that are there.
    pub planned: u64,
    /// Held to their end.
    pub finished: u64,
    /// With a verdict of the judge in at least one dimension.
    pub judged: u64,
    /// With at least one dimension that is not Not Relevant.
    pub relevant: u64,
}

/// One dimension's share of the evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DimensionCoverage {
    /// The dimension.
    pub dimension: String,
    /// Conversations with a rating.
    pub rated: u64,
    /// Rated and not Not Relevant.
    pub relevant: u64,
    /// Finished without a rating, by reason.
    pub unjudged: BTreeMap<Unjudged, u64>,
}

/// What happened of what was planned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Whether a plan was given. Without one nobody knows what is missing.
    pub plan_known: bool,
    /// Over all.
    pub all: CoverageCounts,
    /// Per risk level.
    pub by_risk: BTreeMap<RiskLevel, CoverageCounts>,
    /// Per dimension.
    pub dimensions: Vec<DimensionCoverage>,
    /// Conversations in which the user model broke its role, those that were not judged included.
    pub role_breaks: u64,
    /// Conversations on which the judges disagreed in at least one dimension.
    pub split_votes: u64,
    /// What is missing.
    pub missing: Vec<MissingConversation>,
}

/// What missing conversations leave open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cases {
    /// The verdict if every missing conversation had gone well (and in the baseline badly).
    pub best: Verdict,
    /// The verdict if every missing conversation had been harmful (and in the baseline harmless).
    pub worst: Verdict,
    /// The conversations between the two, when they differ.
    pub deciding: Vec<ConversationRef>,
}

/// One rule and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleResult {
    /// The rule's name.
    pub id: String,
    /// Its kind as the thresholds file writes it.
    pub kind: String,
    /// Whether it blocks.
    pub tier: Tier,
    /// Where it stands.
    pub location: Location,
    /// What it looks at, in words; empty for everything.
    pub scope: String,
    /// The worst status of its rows.
    pub status: Status,
    /// One row per dimension, risk level or baseline it was applied to.
    pub rows: Vec<Row>,
}

/// A waiver and whether it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownWaiver {
    /// The rule it waives.
    pub rule: String,
    /// For what part of it, in words; empty for all.
    pub scope: String,
    /// Why.
    pub reason: String,
    /// Who answers for it.
    pub owner: String,
    /// The last day on which it holds, `YYYY-MM-DD`.
    pub expires: String,
    /// Whether it still holds.
    pub holds: bool,
    /// Rows it covers, as `dimension` or the rule's id, that would otherwise count.
    pub covers: Vec<String>,
    /// Where it stands.
    pub location: Location,
}

/// A baseline as the verdict saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownBaseline {
    /// Which of the two.
    pub against: Against,
    /// `none`, `usable` or `unusable`.
    pub state: BaselineWord,
    /// What it is called: a path or a reference.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The day it was blessed, `YYYY-MM-DD`, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Its age in days, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_days: Option<i64>,
    /// Conversations in it.
    pub conversations: u64,
    /// Why it is not usable, or what to keep in mind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// State of a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaselineWord {
    /// There is none.
    None,
    /// It was compared with.
    Usable,
    /// It was refused.
    Unusable,
}

/// The thresholds file as the verdict saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownPolicy {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// What an open verdict does.
    pub inconclusive: OnInconclusive,
    /// Whether it says that nothing blocks.
    pub advisory_only: bool,
}

/// The whole outcome of the gate: the content of `verdict.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateVerdict {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the tool.
    pub tool_version: String,
    /// The answer.
    pub verdict: Verdict,
    /// What the answer would be without the waivers.
    pub verdict_without_waivers: Verdict,
    /// The exit code that follows, see [`Self::exit`].
    pub exit_code: u8,
    /// Why, worst first.
    pub reasons: Vec<Reason>,
    /// The rules in the order of the file.
    pub rules: Vec<RuleResult>,
    /// What missing conversations leave open.
    pub cases: Cases,
    /// What stands behind it.
    pub coverage: Coverage,
    /// The counts.
    pub matrix: Matrix,
    /// VERA-MH's score, exact, 0 to 100; `None` when nothing was relevant. Shown, never blocking.
    pub score: Option<f64>,
    /// The baselines.
    pub baselines: Vec<ShownBaseline>,
    /// The waivers.
    pub waivers: Vec<ShownWaiver>,
    /// Why the sweep stopped before its end, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StopReason>,
    /// The thresholds file.
    pub policy: ShownPolicy,
}

impl GateVerdict {
    /// The exit code: 1 for a fail; 3 for an inconclusive that blocks, by the thresholds file or because too little
    /// was measured; else 0. The word stays `inconclusive` when the thresholds file lets it go on.
    pub fn exit(&self) -> Exit {
        exit_of(self.verdict, &self.reasons, self.policy.inconclusive)
    }

    /// Whether too little was measured for any verdict, whatever the thresholds file says.
    pub fn is_incomplete(&self) -> bool {
        self.reasons.iter().any(|reason| reason.weight == Weight::Incomplete)
    }
}

/// [`GateVerdict::exit`] before the value exists.
pub(super) fn exit_of(verdict: Verdict, reasons: &[Reason], policy: OnInconclusive) -> Exit {
    match verdict {
        Verdict::Fail => Exit::GateFailed,
        Verdict::Inconclusive
            if policy == OnInconclusive::Block
                || reasons.iter().any(|reason| reason.weight == Weight::Incomplete) =>
        {
            Exit::Inconclusive
        }
        Verdict::Inconclusive | Verdict::Warn | Verdict::Pass => Exit::Success,
    }
}
