//! The judge: one stateless question per request, the walk over the rubric in code.
//!
//! Questions are independent given the transcript, so those that the walk is certain to reach may be asked before it
//! comes to them; the walk is then replayed over the answers. A question without a usable answer leaves its
//! dimension unjudged, never rated.

mod answer;
mod ask;
mod prompt;
mod walk;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use answer::{Answer, parse};

use crate::config::Ahead;
use crate::model::{ChatModel, ModelError, Wanted};
use crate::rating::{
    AnswerOrigin, Assessment, DimensionOutcome, Finding, JudgeId, Rating, RatingOutcome, RolePlay, Step,
    Unjudged,
};
use crate::target::Target;
use crate::target::rubric::{self, AnswerOption, Graph, Semantics, Transition};
use crate::transcript::Transcript;

/// One judge and how it works.
#[derive(Clone, Debug)]
pub struct Judge {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// Its name in results and which of its repetitions this is.
    pub id: JudgeId,
    /// How often a question is asked again after a reply that names no option.
    pub reasks: u32,
    /// Which questions are asked early.
    pub ahead: Ahead,
    /// Whose rules decide where the original's are in doubt.
    pub semantics: Semantics,
}

impl Judge {
    /// Walks the rubric over one transcript.
    ///
    /// # Errors
    /// Only a failure that stops the whole run; every other failure is part of the assessment.
    pub async fn evaluate(
        &self,
        target: &Target,
        graph: &Graph<'_>,
        transcript: &Transcript,
    ) -> Result<Assessment, ModelError> {
        let case = prompt::Case::new(&target.prompts, transcript, &self.id.model);
        let walked = walk::walk(self, target, graph, &case, &transcript.id.0).await?;
        Ok(assess(self, target, transcript, walked, case.suspects))
    }

    /// Asks one question again, as a second look at a finding.
    ///
    /// # Errors
    /// Only a failure that stops the whole run.
    pub async fn confirm(
        &self,
        target: &Target,
        transcript: &Transcript,
        question: &str,
        draws: u32,
    ) -> Result<Vec<SecondLook>, ModelError> {
        let case = prompt::Case::new(&target.prompts, transcript, &self.id.model);
        let Some(index) = target.rubric.question_by_id(question) else { return Ok(Vec::new()) };
        let option = |option: usize| target.rubric.questions.get(index).and_then(|q| q.options.get(option));
        let mut looks = Vec::new();
        for draw in 1..=draws {
            let step = format!("confirm-{draw}-{question}");
            let look =
                match ask::ask(self, target, &case, &transcript.id.0, index, &step, &Wanted::Always).await? {
                    Ok(asked) => SecondLook {
                        answer: option(asked.answer.option).map_or_else(String::new, |o| o.text.clone()),
                        agrees: option(asked.answer.option).map(AnswerOption::is_yes),
                    },
                    Err(failure) => SecondLook { answer: failure.reason.word().to_owned(), agrees: None },
                };
            looks.push(look);
        }
        Ok(looks)
    }
}

/// One answer of a second look at a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondLook {
    /// The chosen option, or why there is no answer.
    pub answer: String,
    /// Whether it is the finding again; `None` when there is no usable answer.
    pub agrees: Option<bool>,
}

/// Turns a walk into ratings with their path and evidence.
fn assess(
    judge: &Judge,
    target: &Target,
    transcript: &Transcript,
    walked: walk::Walked,
    injection_suspects: Vec<String>,
) -> Assessment {
    let rubric = &target.rubric;
    let reason_of = |question: usize| {
        walked.steps.iter().find(|s| s.question == question).map(|s| s.reasoning.clone()).unwrap_or_default()
    };
    let first_reason = walked.failures.first().map_or(Unjudged::NotReached, |f| f.reason);
    let path: Vec<rubric::Answered> = walked
        .steps
        .iter()
        .map(|step| rubric::Answered { question: step.question, option: step.option })
        .collect();
    let end = walked.end.unwrap_or(Transition::Done);
    let evidence = |findings: &[usize]| -> Vec<Finding> {
        let found = findings.iter().filter_map(|&index| {
            let question = rubric.questions.get(index)?;
            Some(Finding {
                question: question.id.clone(),
                label: question.label.clone(),
                severity: question.severity,
                reasoning: reason_of(index),
            })
        });
        found.collect()
    };
    let results = rubric::score_answers(rubric, &path, end, judge.semantics);
    let is_harm =
        |result: &&rubric::DimensionResult| result.outcome == rubric::DimensionOutcome::HighPotentialForHarm;
    let kept: BTreeSet<usize> = results.iter().filter(is_harm).map(|result| result.dimension).collect();
    let discarded = rubric::score_answers(rubric, &path, end, Semantics::Native)
        .iter()
        .filter(|result| is_harm(result) && !kept.contains(&result.dimension))
        .flat_map(|result| evidence(&result.findings))
        .collect();
    let dimensions = results
        .into_iter()
        .map(|result| {
            let rated = match result.outcome {
                rubric::DimensionOutcome::BestPractice => Some(Rating::BestPractice),
                rubric::DimensionOutcome::Suboptimal => Some(Rating::Suboptimal),
                rubric::DimensionOutcome::HighPotentialForHarm => Some(Rating::HighPotentialForHarm),
                rubric::DimensionOutcome::NotRelevant(_) => Some(Rating::NotRelevant),
                rubric::DimensionOutcome::Unvisited => None,
            };
            let open = walked.open.get(&result.dimension);
            let outcome = match (rated, open) {
                // Harm that was found stays found: a later failed question cannot take it back.
                (Some(Rating::HighPotentialForHarm), _) => RatingOutcome::Rated(Rating::HighPotentialForHarm),
                (_, Some(reason)) => RatingOutcome::Unjudged(*reason),
                (Some(rating), None) => RatingOutcome::Rated(rating),
                (None, None) if walked.end.is_none() => RatingOutcome::Unjudged(first_reason),
                (None, None) => RatingOutcome::Unjudged(Unjudged::NotReached),
            };
            let mut findings = evidence(&result.findings);
            findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
            DimensionOutcome {
                dimension: rubric.dimensions.get(result.dimension).cloned().unwrap_or_default(),
                outcome,
                findings,
            }
        })
        .collect();
    let refused = matches!(walked.end, Some(Transition::End)) && walked.refusal_ended;
    Assessment {
        conversation: transcript.id.clone(),
        persona: transcript.persona.clone(),
        risk_level: transcript.risk_level,
        user_model: transcript.user_model.clone(),
        run: transcript.run,
        judge: judge.id.clone(),
        dimensions,
        path: walked
            .steps
            .iter()
            .filter_map(|step| {
                let question = rubric.questions.get(step.question)?;
                Some(Step {
                    question: question.id.clone(),
                    dimension: rubric.dimension_of(step.question).to_owned(),
                    answer: question.options.get(step.option)?.text.clone(),
                    reasoning: step.reasoning.clone(),
                    origin: if step.draws == 0 { AnswerOrigin::Automatic } else { AnswerOrigin::Asked },
                    draws: step.draws,
                })
            })
            .collect(),
        role_play: if refused { RolePlay::Refused } else { RolePlay::Kept },
        discarded,
        failures: walked.failures,
        injection_suspects,
    }
}

#[cfg(test)]
mod tests;
