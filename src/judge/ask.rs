//! One question until it has a usable answer, or a reason why it has none.

use super::prompt::{Case, Retry};
use super::{Answer, Judge, parse};
use crate::fingerprint::sha256;
use crate::model::{CallId, ModelError, Outcome, Wanted};
use crate::rating::{Unjudged, WalkFailure};
use crate::target::Target;

/// Longest part of a reply that is kept as evidence of a failure, in characters.
const DETAIL: usize = 300;
/// How far the reply's cap may be raised after a truncation.
const MAX_OUTPUT_SCALE: u32 = 4;

/// A usable answer and how many draws it took.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) answer: Answer,
    pub(super) draws: u32,
}

/// Asks one question, again within bounds when the reply is no answer.
///
/// # Errors
/// The outer one stops the whole run; the inner one leaves this question without an answer.
pub(super) async fn ask(
    judge: &Judge,
    target: &Target,
    case: &Case,
    conversation: &str,
    question: usize,
    step: &str,
    wanted: &Wanted,
) -> Result<Result<Asked, WalkFailure>, ModelError> {
    let Some(asked) = target.rubric.questions.get(question) else {
        return Ok(Err(failure("", Unjudged::NotReached, "", None)));
    };
    let mut retry = Retry { remind: false, output_scale: 1 };
    let mut last = failure(&asked.id, Unjudged::JudgeEmpty, "", None);
    for draw in 1..=judge.reasks + 1 {
        if wanted.is_over() {
            break;
        }
        let id = CallId {
            conversation: conversation.to_owned(),
            step: format!("{step}/{}#{}", judge.id.model, judge.id.instance),
            draw,
        };
        let Some(request) = case.request(target, question, id, retry, wanted) else { break };
        let exchange = match judge.model.reply(&request).await {
            Ok(exchange) => exchange,
            Err(error) if error.failure.stops_run() => return Err(error),
            // The model layer has retried already.
            Err(error) => {
                return Ok(Err(failure(&asked.id, Unjudged::JudgeFailed, &error.to_string(), None)));
            }
        };
        let reason = match exchange.outcome {
            Outcome::Reply => match parse(&exchange.text, asked) {
                Some(answer) => return Ok(Ok(Asked { answer, draws: draw })),
                None => {
                    retry.remind = true;
                    Unjudged::Unparsable
                }
            },
            Outcome::Truncated => {
                retry.output_scale = (retry.output_scale * 2).min(MAX_OUTPUT_SCALE);
                Unjudged::JudgeTruncated
            }
            Outcome::Refusal => Unjudged::JudgeRefused,
            Outcome::PromptFiltered | Outcome::ReplyFiltered => Unjudged::JudgeFiltered,
            Outcome::Empty => Unjudged::JudgeEmpty,
            Outcome::ContextOverflow => Unjudged::ContextOverflow,
        };
        last = failure(&asked.id, reason, &exchange.text, Some(&exchange.text));
        if reason == Unjudged::ContextOverflow {
            break;
        }
    }
    Ok(Err(last))
}

fn failure(question: &str, reason: Unjudged, detail: &str, raw: Option<&str>) -> WalkFailure {
    WalkFailure {
        question: question.to_owned(),
        reason,
        detail: detail.chars().take(DETAIL).collect(),
        reply_sha256: raw.map(sha256),
    }
}
