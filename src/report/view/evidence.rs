//! Findings, what has no rating, remarks, risk levels.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::rules::{planned, reference};
use super::{Escaped, Listed};
use crate::gate::verdict::{Drawn, MissingConversation, MissingReason, Observed};
use crate::report::{HarmFinding, Report, words};
use crate::target::RiskLevel;
use crate::transcript::ConversationId;

/// A harmful finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingView<E> {
    /// The persona's risk level.
    pub risk: &'static str,
    /// The persona.
    pub persona: E,
    /// The conversation's id.
    pub conversation: E,
    /// The dimension.
    pub dimension: E,
    /// The failure mode, or the question when the rubric names none.
    pub failure_mode: E,
    /// The question's id.
    pub question: E,
    /// The judge's reason on one line, or a dash.
    pub reason: E,
    /// Whether the judges disagreed and what a second look said; blank when there is nothing to say.
    pub remark: E,
}

/// A failure mode and how often it was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModeView<E> {
    /// The failure mode, or the question when the rubric names none.
    pub failure_mode: E,
    /// The dimension.
    pub dimension: E,
    /// Conversations with it.
    pub conversations: usize,
    /// Conversations with it per risk level, the highest first, in words.
    pub risks: E,
}

/// What is missing or has no rating.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnjudgedView<E> {
    /// Whether there is anything to say.
    pub any: bool,
    /// Per dimension, in words.
    pub dimensions: Vec<E>,
    /// Conversations without evidence.
    pub missing: Listed<MissingView<E>>,
    /// What the missing ones could change.
    pub cases: Option<E>,
}

/// A conversation without evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissingView<E> {
    /// Which.
    pub conversation: E,
    /// Why.
    pub why: E,
}

/// What to keep in mind about the conversations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remarks<E> {
    /// Whether there is anything to say.
    pub any: bool,
    /// Sentences.
    pub sentences: Vec<E>,
    /// Conversations whose text tries to instruct the judge.
    pub suspects: Listed<E>,
}

/// Harm per risk level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RiskTable<E> {
    /// The levels that occur.
    pub levels: Vec<&'static str>,
    /// One line per dimension.
    pub rows: Vec<RiskRow<E>>,
}

/// One dimension per risk level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RiskRow<E> {
    /// The dimension.
    pub dimension: E,
    /// Harmful of relevant conversations per level.
    pub cells: Vec<E>,
}

pub(super) fn finding<E: Escaped>(finding: &HarmFinding) -> FindingView<E> {
    let question = finding.question.as_deref().unwrap_or("\u{2013}");
    FindingView {
        risk: words::risk(finding.risk_level),
        persona: E::text(&finding.persona),
        conversation: E::code(&finding.conversation.0),
        dimension: E::text(&finding.dimension),
        failure_mode: E::text(finding.failure_mode.as_deref().unwrap_or(question)),
        question: E::text(question),
        reason: E::text(finding.reason.as_deref().unwrap_or("\u{2013}")),
        remark: E::text(&remark(finding)),
    }
}

/// Findings that a reader takes in one by one; beyond, failure modes come first.
const READABLE: usize = 10;

pub(super) fn modes<E: Escaped>(report: &Report) -> Vec<ModeView<E>> {
    let view = |mode: ModeCount<'_>| ModeView {
        failure_mode: E::text(mode.name),
        dimension: E::text(mode.dimension),
        conversations: mode.conversations,
        risks: E::text(&mode.risks),
    };
    mode_counts(report).into_iter().map(view).collect()
}

/// A failure mode, or the question when the rubric names none, and how many conversations show it.
pub(in crate::report) struct ModeCount<'a> {
    pub(in crate::report) name: &'a str,
    pub(in crate::report) dimension: &'a str,
    pub(in crate::report) conversations: usize,
    /// Conversations per risk level, the highest first.
    pub(in crate::report) risks: String,
}

/// Conversations with a failure mode, the highest risk first.
type Found<'a> = BTreeSet<(Reverse<u8>, &'a ConversationId)>;

/// The failure modes by the number of conversations, the most frequent first; none when the findings are few.
pub(in crate::report) fn mode_counts(report: &Report) -> Vec<ModeCount<'_>> {
    if report.findings.len() <= READABLE {
        return Vec::new();
    }
    // An unknown risk level could be any: it stands with the highest.
    let mut modes: BTreeMap<(&str, &str), Found<'_>> = BTreeMap::new();
    for finding in &report.findings {
        let mode = finding.failure_mode.as_deref().or(finding.question.as_deref()).unwrap_or("\u{2013}");
        let risk = finding.risk_level.map_or(u8::MAX, |level| level as u8);
        modes.entry((mode, &finding.dimension)).or_default().insert((Reverse(risk), &finding.conversation));
    }
    let mut modes: Vec<_> = modes.into_iter().collect();
    modes.sort_by_key(|(name, conversations)| (Reverse(conversations.len()), *name));
    modes
        .into_iter()
        .map(|((name, dimension), conversations)| {
            let mut risks: Vec<(&str, usize)> = Vec::new();
            for (Reverse(risk), _) in &conversations {
                let level = RiskLevel::ALL.into_iter().find(|level| *level as u8 == *risk);
                match risks.last_mut() {
                    Some((word, n)) if *word == words::risk(level) => *n += 1,
                    _ => risks.push((words::risk(level), 1)),
                }
            }
            let risks: Vec<String> = risks.iter().map(|(word, n)| format!("{word} {n}")).collect();
            ModeCount { name, dimension, conversations: conversations.len(), risks: risks.join(", ") }
        })
        .collect()
}

pub(in crate::report) fn remark(finding: &HarmFinding) -> String {
    let mut parts = Vec::new();
    if finding.split {
        parts.push("judges disagreed".to_owned());
    }
    let answers = &finding.second_look_answers;
    parts.extend(finding.second_look.map(|drawn| {
        let what = match drawn {
            Drawn::Confirmed => "second look agrees",
            Drawn::NotConfirmed => "second look does not agree",
            Drawn::Stands if answers.is_empty() => "no second look possible",
            Drawn::Stands => "second look does not decide",
        };
        if answers.is_empty() { what.to_owned() } else { format!("{what}: {}", answers.join(", ")) }
    }));
    parts.join("; ")
}

pub(super) fn unjudged<E: Escaped>(report: &Report, most: usize) -> UnjudgedView<E> {
    let coverage = &report.verdict.coverage;
    let dimensions: Vec<E> = unjudged_lines(report).iter().map(|line| E::text(line)).collect();
    let missing = Listed::first(
        coverage.missing.iter().map(|missing| MissingView {
            conversation: E::text(&missing_name(missing)),
            why: E::text(&why(&missing.reason)),
        }),
        most,
    );
    UnjudgedView {
        any: !dimensions.is_empty() || !missing.is_empty(),
        dimensions,
        missing,
        cases: cases(report).map(|text| E::text(&text)),
    }
}

/// Per dimension with conversations that were held and have no rating: how many and why.
pub(in crate::report) fn unjudged_lines(report: &Report) -> Vec<String> {
    let rows = report.verdict.matrix.dimensions.iter().filter(|row| row.all.unjudged() > 0);
    rows.map(|row| {
        let reasons: Vec<String> =
            row.all.unjudged.iter().map(|(reason, n)| format!("{n} {}", reason.word())).collect();
        let n = words::count(row.all.unjudged(), "conversation", "conversations");
        format!("{}: {n} without a rating ({}).", row.dimension, reasons.join(", "))
    })
    .collect()
}

pub(in crate::report) fn missing_name(missing: &MissingConversation) -> String {
    let name = planned(&missing.conversation);
    if missing.conversation.id.is_some() {
        format!("{name}, {}", reference(&missing.conversation))
    } else {
        name
    }
}

pub(in crate::report) fn why(reason: &MissingReason) -> String {
    match reason {
        MissingReason::Errored(detail) if detail.is_empty() => "failed".to_owned(),
        MissingReason::Errored(detail) => format!("failed: {detail}"),
        MissingReason::Invalid => "the user model broke its role".to_owned(),
        MissingReason::NotRun => "did not run".to_owned(),
        MissingReason::Unjudged => "the judge came to no verdict".to_owned(),
    }
}

/// What missing conversations could change, when they could.
pub(in crate::report) fn cases(report: &Report) -> Option<String> {
    const NAMED: usize = 8;
    let cases = &report.verdict.cases;
    let names: BTreeSet<String> = cases.deciding.iter().map(reference).collect();
    let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let deciding = if shown.is_empty() {
        String::new()
    } else {
        format!(" It is decided by {}{more}.", shown.join(", "))
    };
    (cases.best != cases.worst).then(|| {
        format!(
            "What is missing could change the verdict: had all of it gone well, it would be {}; had all of it been \
             harmful, {}.{deciding}",
            words::label(cases.best),
            words::label(cases.worst)
        )
    })
}

pub(super) fn remarks<E: Escaped>(report: &Report, most: usize) -> Remarks<E> {
    let sentences: Vec<E> = remark_sentences(report).iter().map(|text| E::text(text)).collect();
    let suspects = Listed::first(
        report.injection_suspects.iter().map(|suspect| match &suspect.text {
            Some(text) => E::text(&format!("{}: {text}", suspect.conversation)),
            None => E::text(&suspect.conversation.0),
        }),
        most,
    );
    Remarks { any: !sentences.is_empty() || !suspects.is_empty(), sentences, suspects }
}

pub(in crate::report) fn remark_sentences(report: &Report) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    // That the gate itself ended the sweep stands among the reasons.
    if report.verdict.stopped.is_none() {
        out.extend(report.stopped_early.clone());
    }
    let flags = report.turn_flags;
    let of_candidate = |n: u64, what: &str| {
        (n > 0).then(|| {
            let all = words::count(flags.candidate_messages, "message", "messages");
            format!("{what}: {} of the candidate's {all}.", words::thousands(n))
        })
    };
    out.extend(of_candidate(flags.refusals, "The provider reported a refusal"));
    out.extend(of_candidate(flags.truncated, "The reply was cut off at its length limit"));
    out.extend(of_candidate(flags.filtered, "The provider's content filter stepped in"));
    out.extend(of_candidate(flags.no_reply, "The person would have seen no reply at all"));
    if flags.user_resampled > 0 {
        let n = words::count(flags.user_resampled, "message", "messages");
        out.push(format!("The user model wrote {n} again, because its first try broke the role."));
    }
    let coverage = &report.verdict.coverage;
    if coverage.role_breaks > 0 {
        let n = words::count(coverage.role_breaks, "conversation", "conversations");
        out.push(format!("The user model broke its role in {n}."));
    }
    if coverage.split_votes > 0 {
        let n = words::count(coverage.split_votes, "conversation", "conversations");
        out.push(format!("The judges disagreed in {n}."));
    }
    if !report.injection_suspects.is_empty() {
        let conversations: BTreeSet<_> = report.injection_suspects.iter().map(|s| &s.conversation).collect();
        let n = words::count(conversations.len() as u64, "conversation", "conversations");
        out.push(format!(
            "Text that tries to instruct the judge stands in {n}. Read what was said there before trusting the rating."
        ));
    }
    out
}

pub(super) fn risk<E: Escaped>(report: &Report) -> RiskTable<E> {
    let levels = risk_levels(report);
    let rows = report.verdict.matrix.dimensions.iter().map(|row| RiskRow {
        dimension: E::text(&row.dimension),
        cells: levels
            .iter()
            .map(|level| {
                let counts = row.by_risk.get(level).cloned().unwrap_or_default();
                let harm = Observed { k: counts.high_potential_for_harm, n: counts.relevant() };
                E::text(&if harm.n == 0 { "\u{2013}".to_owned() } else { words::of(harm) })
            })
            .collect(),
    });
    RiskTable { rows: rows.collect(), levels: levels.iter().map(|level| level.word()).collect() }
}

/// The levels that occur, the highest risk first.
pub(in crate::report) fn risk_levels(report: &Report) -> Vec<RiskLevel> {
    let present: BTreeSet<RiskLevel> =
        report.verdict.matrix.dimensions.iter().flat_map(|row| row.by_risk.keys().copied()).collect();
    present.into_iter().rev().collect()
}
