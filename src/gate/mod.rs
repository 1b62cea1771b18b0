//! The gate: rules, comparison with a baseline, verdict. Pure: values in, one value out.
//!
//! | module | does |
//! |---|---|
//! | [`thresholds`] | reads the thresholds file, every problem at once |
//! | [`rules`] | the rules as typed values |
//! | [`input`] | everything a verdict is computed from |
//! | [`verdict`] | the verdict: what the exit code, report, check and comment read |
//! | [`stop`] | may the sweep stop |
//! | [`power`] | what a planned sweep can detect and certify |
//!
//! Three things hold for every input, and are tested as properties. A harmless conversation that turns harmful never
//! improves the verdict. Order never matters. Losing data never turns an inconclusive verdict into a pass.

mod check;
mod coverage;
mod decide;
mod evidence;
pub mod input;
pub mod power;
pub mod rules;
pub mod stop;
pub mod thresholds;
pub mod verdict;
mod waive;
mod words;

pub use input::{BaselineState, CellStatus, Confirmation, GateInput, PendingConfirmation, PlannedCell};
pub use power::{PowerInput, PowerReport, power_report};
pub use stop::{EarlyPass, StopReason, can_stop};
pub use thresholds::{Known, Thresholds};
pub use verdict::{GateVerdict, Verdict};

use check::Context;
use decide::Gated;
use evidence::Evidence;
use verdict::{Against, MissingReason, Reason, ReasonCode, ShownBaseline, ShownPolicy, Weight};

use crate::matrix::Matrix;

/// Applies the thresholds to the evidence.
pub fn evaluate(input: &GateInput<'_>) -> GateVerdict {
    let (context, baselines, mut reasons) = prepare(input);
    let matrix = Matrix::count(input.dimensions, input.conversations);
    let coverage = coverage::coverage(input, &context.candidate, &matrix);
    let rules = &input.thresholds.rules;
    let outcomes = rules
        .iter()
        .map(|rule| {
            let mut outcomes = check::rule(&context, rule);
            check::say_what_settles(&context, rule, &mut outcomes);
            (rule, outcomes)
        })
        .collect();
    let applied = decide::apply(&context, outcomes);
    reasons.extend(coverage::gaps(input, &context.candidate, &coverage));
    reasons.extend(coverage::unknown_personas(input, &context.candidate));
    // That nothing at all was relevant is said already.
    let said = applied.gated == Gated::NoEvidence && coverage.all.relevant == 0;
    let gap = applied.gated.gap().filter(|_| !input.thresholds.advisory_only && !said);
    let (waived, gap) = if applied.gated == Gated::Waived { (gap, None) } else { (None, gap) };
    reasons.extend(gap);
    if let Some(stop) = input.stopped {
        let saved = not_run(input);
        // After an early pass what never ran counts as not planned.
        let planned = coverage.all.planned.max(coverage.all.finished + saved);
        let text = format!(
            "The sweep stopped early and saved {}. {}",
            words::of_the(saved, planned, "planned conversation"),
            stop.words()
        );
        reasons.push(decide::note(ReasonCode::StoppedEarly, Weight::Note, text));
    }
    let without_waivers: Vec<Reason> = reasons.iter().chain(&applied.unwaived).cloned().collect();
    reasons.extend(waived);
    reasons.extend(applied.reasons);
    // Worst first; within a weight the order of the file.
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.weight));
    let verdict = decide::verdict(&reasons);
    let mut cases = applied.cases;
    if context.is_whole() {
        // With nothing missing there is one way only.
        (cases.best, cases.worst) = (verdict, verdict);
    }
    let policy = ShownPolicy {
        name: input.thresholds.name.clone(),
        file: input.thresholds.file.clone(),
        inconclusive: input.thresholds.inconclusive,
        advisory_only: input.thresholds.advisory_only,
    };
    GateVerdict {
        schema: verdict::SCHEMA.to_owned(),
        tool_version: input.tool_version.to_string(),
        verdict,
        verdict_without_waivers: decide::verdict(&without_waivers),
        exit_code: verdict::exit_of(verdict, &reasons, policy.inconclusive).code(),
        reasons,
        rules: applied.rules,
        cases,
        coverage,
        score: matrix.score(),
        matrix,
        baselines,
        waivers: applied.waivers,
        stopped: input.stopped.cloned(),
        policy,
    }
}

/// The verdict on a matrix that is not the whole: of a sweep that was cut off or is only a part of a plan, or one that
/// lacks what was found. Harm that is in it is harm, and everything else stays open, whatever share of missing
/// conversations the thresholds file tolerates.
#[must_use]
pub fn left_open(verdict: GateVerdict, code: ReasonCode, why: &str) -> GateVerdict {
    with_reason(verdict, code, Weight::Incomplete, why)
}

/// The verdict with one more reason, which the evidence of the single judges gives. It can only get worse.
#[must_use]
pub fn with_reason(mut verdict: GateVerdict, code: ReasonCode, weight: Weight, why: &str) -> GateVerdict {
    verdict.reasons.push(decide::note(code, weight, why.to_owned()));
    verdict.reasons.sort_by_key(|reason| std::cmp::Reverse(reason.weight));
    verdict.verdict = decide::verdict(&verdict.reasons);
    verdict.verdict_without_waivers = verdict.verdict_without_waivers.max(verdict.verdict);
    verdict.exit_code =
        verdict::exit_of(verdict.verdict, &verdict.reasons, verdict.policy.inconclusive).code();
    verdict
}

/// The second looks that rules with `confirm` want before they count a finding, ordered, each once.
pub fn pending_confirmations(input: &GateInput<'_>) -> Vec<PendingConfirmation> {
    let (context, _, _) = prepare(input);
    let mut pending: Vec<PendingConfirmation> = Vec::new();
    for wanted in input.thresholds.rules.iter().flat_map(|rule| check::pending(&context, rule)) {
        let same = |p: &&mut PendingConfirmation| {
            p.conversation == wanted.conversation && p.question == wanted.question
        };
        match pending.iter_mut().find(same) {
            // Two rules may want the same second look; the larger number of draws serves both.
            Some(earlier) => earlier.draws = earlier.draws.max(wanted.draws),
            None => pending.push(wanted),
        }
    }
    pending.sort();
    pending
}

/// Planned conversations that never ran.
fn not_run(input: &GateInput<'_>) -> u64 {
    let cells = input.plan.unwrap_or_default().iter();
    cells.filter(|cell| cell.status == CellStatus::Missing).count() as u64
}

fn prepare<'a>(input: &'a GateInput<'a>) -> (Context<'a>, Vec<ShownBaseline>, Vec<Reason>) {
    let mut candidate = Evidence::of_candidate(
        input.dimensions,
        input.labels,
        input.conversations,
        input.plan,
        input.role_breaks,
    );
    if matches!(input.stopped, Some(StopReason::EarlyPass)) {
        candidate.talks.retain(|talk| talk.gone != Some(MissingReason::NotRun));
    }
    let mut rivals = Vec::new();
    let mut baselines = Vec::new();
    let mut reasons = Vec::new();
    for (against, state) in [(Against::Pinned, input.baseline), (Against::LastAccepted, input.last_accepted)]
    {
        // Without a last accepted run there is nothing to say; without a pinned baseline there is.
        if against == Against::LastAccepted && matches!(state, BaselineState::None) {
            continue;
        }
        let (rival, shown, because) = decide::rival(input, against, state);
        rivals.push(rival);
        baselines.push(shown);
        reasons.extend(because);
    }
    (Context { input, candidate, rivals }, baselines, reasons)
}
