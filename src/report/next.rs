//! What a reader does next, from the reasons of the verdict.

use crate::gate::verdict::{GateVerdict, Reason, ReasonCode, Verdict};

use super::words;

/// What to do about one group of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    ReadHarm,
    ReadOthers,
    Complete,
    Judge,
    Roles,
    Relevance,
    NotRelevant,
    Baseline,
    Decide,
    MoreEvidence,
    Target,
    Waiver,
    Look,
}

impl Step {
    fn of(reason: &Reason) -> Option<Self> {
        Some(match reason.code {
            ReasonCode::NeverEvent
            | ReasonCode::TooMuchHarm
            | ReasonCode::Regression
            | ReasonCode::NewHarmCell
            | ReasonCode::DiscardedHarm
            | ReasonCode::NewFailureMode => Self::ReadHarm,
            ReasonCode::TooLittleBestPractice | ReasonCode::ScoreDrop => Self::ReadOthers,
            ReasonCode::NothingFinished
            | ReasonCode::TooManyMissing
            | ReasonCode::PersonaMissing
            | ReasonCode::HighRiskMissing
            | ReasonCode::LowCoverage
            | ReasonCode::SweepIncomplete => Self::Complete,
            ReasonCode::NothingJudged | ReasonCode::TooManyUnjudged | ReasonCode::MissingDecides => {
                Self::Judge
            }
            ReasonCode::TooManyRoleBreaks => Self::Roles,
            ReasonCode::NothingRelevant | ReasonCode::TooFewRelevant => Self::Relevance,
            ReasonCode::NotRelevantShift => Self::NotRelevant,
            ReasonCode::NoBaseline
            | ReasonCode::BaselineIncomparable
            | ReasonCode::BaselineUnreadable
            | ReasonCode::BaselineTooOld
            | ReasonCode::BaselineForced
            | ReasonCode::ComparabilityUnknown => Self::Baseline,
            ReasonCode::NothingDecided => Self::Decide,
            ReasonCode::EvidenceOpen => Self::MoreEvidence,
            ReasonCode::WaiverExpired | ReasonCode::Waived => Self::Waiver,
            ReasonCode::NotConfirmed | ReasonCode::OutvotedHarm => Self::Look,
            ReasonCode::TargetUnknown => Self::Target,
            ReasonCode::StoppedEarly => return None,
        })
    }

    fn words(self) -> &'static str {
        match self {
            Self::ReadHarm => {
                "Have someone who knows the field read the harmful findings in their transcripts. If they are right, \
                 the chatbot must change. If they are wrong, the rubric, the judge or the rule must, in a change of \
                 its own."
            }
            Self::ReadOthers => {
                "Read some conversations of the dimension in question that fell short of best practice, and compare \
                 them with the baseline's."
            }
            Self::Complete => {
                "Find out why conversations are missing, and run the same command on the same run folder again: it \
                 goes on where it stopped."
            }
            Self::Judge => {
                "Have the conversations without a rating judged again, and read them: one of them could be harmful."
            }
            Self::Roles => {
                "Read conversations in which the user model did not play its part, and take another user model if it \
                 happens again."
            }
            Self::Relevance => {
                "Read some of the conversations that were not relevant: did the personas say what they were meant to \
                 say, and did the judge see it?"
            }
            Self::NotRelevant => {
                "Read some of the conversations that became Not Relevant. If that is meant, make a new baseline."
            }
            Self::Baseline => {
                "Make a baseline with today's rubric, personas, models and settings from a run that was looked at and \
                 accepted (`vera-gate baseline bless`)."
            }
            Self::Decide => {
                "Make a baseline (`vera-gate baseline bless`), or add a rule that needs none, such as `never` or \
                 `max_harm`."
            }
            Self::MoreEvidence => {
                "Hold more conversations, with more personas first and then more runs of each; `vera-gate plan --power` \
                 says what a sweep of a size can show."
            }
            Self::Target => "Name the target that the results were rated by, with `--target`.",
            Self::Waiver => "Look at each waiver with its owner: is its reason still true?",
            Self::Look => {
                "Read the findings that were not confirmed or outvoted: a judge that wavers may have been right once."
            }
        }
    }
}

/// The steps that follow from the reasons which make the verdict, in the order of their weight, each once. A pass asks
/// for none.
pub fn next_steps(verdict: &GateVerdict) -> Vec<&'static str> {
    const MOST: usize = 3;
    if verdict.verdict == Verdict::Pass {
        return Vec::new();
    }
    let mut steps: Vec<Step> = Vec::new();
    let deciding = verdict.reasons.iter().filter(|reason| words::decides(verdict.verdict, reason));
    for step in deciding.filter(|reason| !is_by_design(verdict, reason)).filter_map(Step::of) {
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps.into_iter().take(MOST).map(Step::words).collect()
}

/// What a sweep leaves out that the gate itself ended is no fault to look for.
fn is_by_design(verdict: &GateVerdict, reason: &Reason) -> bool {
    verdict.stopped.is_some() && Step::of(reason) == Some(Step::Complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_says_what_to_do() {
        let steps = [
            Step::ReadHarm,
            Step::ReadOthers,
            Step::Complete,
            Step::Judge,
            Step::Roles,
            Step::Relevance,
            Step::NotRelevant,
            Step::Baseline,
            Step::Decide,
            Step::MoreEvidence,
            Step::Target,
            Step::Waiver,
            Step::Look,
        ];
        for step in steps {
            let words = step.words();
            assert!(words.ends_with(['.', '?']) && words.starts_with(char::is_uppercase), "{words}");
            assert!(!words.contains("  ") && !words.to_lowercase().contains("safe"), "{words}");
        }
    }
}
