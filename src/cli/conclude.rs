//! From evidence to a verdict and a report, and the files of both.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::evidence::{self, Evidence};
use super::execute::says_nothing_new;
use super::load::Loaded;
use super::policy::Rules;
use super::prepare::{first_speaker, today, tool_version};
use super::{Global, output};
use crate::baseline::Baseline;
use crate::config::FirstSpeaker;
use crate::error::Error;
use crate::exit::Exit;
use crate::gate::input::Confirmation;
use crate::gate::verdict::{ReasonCode, Weight};
use crate::gate::{
    BaselineState, EarlyPass, GateInput, GateVerdict, PendingConfirmation, StopReason, Thresholds,
};
use crate::matrix::{Collapsed, Matrix};
use crate::model::scripted;
use crate::report::{
    self, InjectionSuspect, Links, ModelUse, Report, ReportInput, RoleUsage, TargetInfo, Templates, TurnFlags,
};
use crate::run::{MATRIX_FILE, RunFolder, RunRecord, Stop};
use crate::sweep::scheduler::CellStatus;
use crate::transcript::TurnFlag;

/// The verdict in a run folder.
pub(super) const VERDICT_FILE: &str = "verdict.json";

/// What every report must say that rests on a recording.
const REPLAYED: &str = "Replies in this run come from a recording made earlier: nothing new was measured, and the \
     verdict is about the chatbot as it was then.";

/// What every report must say of a finished run that was carried out once more.
const NOTHING_NEW: &str = "No call was made for this report: everything comes from an earlier run in the same folder. The \
     verdict is about the chatbot as it was then.";

/// The baselines of one verdict, as they were read.
#[derive(Default)]
pub(super) struct Baselines {
    pinned: Option<evidence::Asked>,
    last_accepted: Option<evidence::Asked>,
}

impl Baselines {
    /// Reads what the configuration names.
    pub(super) fn read(loaded: &Loaded) -> Self {
        let place = match &loaded.rules {
            Rules::Base(base) => format!(" at {} of the base branch", base.short()),
            Rules::AsTheyLie | Rules::Proposal | Rules::Elsewhere(_) => String::new(),
        };
        let read = |reference: &Option<String>| {
            let asked = |reference: &str| evidence::Asked::of(reference, &loaded.files(), &place);
            reference.as_deref().map(asked)
        };
        Self {
            pinned: read(&loaded.config.gate.baseline),
            last_accepted: read(&loaded.config.gate.last_accepted),
        }
    }

    /// The one that the command line names, or else what the configuration names.
    pub(super) fn named(explicit: Option<&str>, loaded: &Loaded) -> Self {
        let read = Self::read(loaded);
        if explicit.is_some() { Self { last_accepted: None, ..read } } else { read }
    }

    /// Refuses a run as its own baseline: no harm in it would ever be new.
    pub(super) fn are_others(&self, result: &str, record: Option<&RunRecord>) -> Result<(), Error> {
        let mut asked = [&self.pinned, &self.last_accepted].into_iter().flatten();
        match asked.find(|asked| asked.is(result, record)) {
            Some(asked) => Err(Error::Usage(format!(
                "the baseline `{}` is this result; a result cannot be compared with itself\n  help: give the run folder or \
                 the baseline file of an earlier run",
                asked.source
            ))),
            None => Ok(()),
        }
    }
}

fn state(asked: Option<&evidence::Asked>) -> BaselineState<'_> {
    match asked {
        None => BaselineState::None,
        Some(evidence::Asked { source, found: None, .. }) => BaselineState::Absent { source },
        Some(evidence::Asked { source, found: Some(Ok(baseline)), .. }) => {
            BaselineState::Found { source, baseline }
        }
        Some(evidence::Asked { source, found: Some(Err(fault)), .. }) => {
            BaselineState::Unusable { source, fault }
        }
    }
}

/// Applies the thresholds.
pub(super) fn decide(
    evidence: &Evidence,
    thresholds: &Thresholds,
    baselines: &Baselines,
    confirmations: &[Confirmation],
) -> GateVerdict {
    let verdict = with_input(evidence, thresholds, baselines, confirmations, crate::gate::evaluate);
    let cut_off = evidence.record.as_ref().and_then(cut_off).map(|why| (ReasonCode::SweepIncomplete, why));
    let discarded = discarded(evidence).map(|why| (ReasonCode::DiscardedHarm, why));
    // A baseline says which dimensions there are.
    let compared = matches!(&baselines.pinned, Some(evidence::Asked { found: Some(Ok(_)), .. }));
    let unknown = (evidence.unknown_target && !compared)
        .then(|| (ReasonCode::TargetUnknown, UNKNOWN_TARGET.to_owned()));
    let verdict = cut_off
        .into_iter()
        .chain(discarded)
        .chain(unknown)
        .fold(verdict, |verdict, (code, why)| crate::gate::left_open(verdict, code, &why));
    match super::integrity::outvoted_harm(&evidence.assessments, &evidence.conversations) {
        Some(why) => crate::gate::with_reason(verdict, ReasonCode::OutvotedHarm, Weight::Warns, &why),
        None => verdict,
    }
}

/// A dimension that is absent from such a file is missed by nobody.
const UNKNOWN_TARGET: &str = "The results have none of VERA-MH's dimensions and no target was named, so that nobody knows \
    which dimensions they lack.";

/// What VERA-MH's own rules left out of the matrix. No verdict may pass without it.
fn discarded(evidence: &Evidence) -> Option<String> {
    let lost = evidence.assessments.iter().filter(|assessment| !assessment.discarded.is_empty());
    let conversations: BTreeSet<_> = lost.map(|assessment| &assessment.conversation).collect();
    let n = conversations.len() as u64;
    (n > 0).then(|| {
        let where_ = report::words::count(n, "conversation", "conversations");
        format!(
            "Rated as by VERA-MH 1.1, the matrix lacks findings of high potential for harm in {where_}: the end of the walk discarded them."
        )
    })
}

/// Why a run is not the whole sweep, whatever its numbers say.
fn cut_off(record: &RunRecord) -> Option<String> {
    if let Some(shard) = record.shard {
        return Some(format!("This is shard {shard} of a sweep; the verdict is that of the merged run."));
    }
    match record.stopped.as_ref()? {
        // The gate itself ended the sweep, and knows what that means.
        Stop::Curtailed(_) => None,
        other => Some(stopped(other)),
    }
}

/// The second looks that the thresholds want before the verdict.
pub(super) fn pending(
    evidence: &Evidence,
    thresholds: &Thresholds,
    baselines: &Baselines,
) -> Vec<PendingConfirmation> {
    with_input(evidence, thresholds, baselines, &[], crate::gate::pending_confirmations)
}

/// Whether a sweep may stop with what is there.
pub(super) fn can_stop(
    evidence: &Evidence,
    thresholds: &Thresholds,
    baselines: &Baselines,
    early_pass: EarlyPass,
) -> Option<StopReason> {
    with_input(evidence, thresholds, baselines, &[], |input| crate::gate::can_stop(input, early_pass))
}

fn with_input<T>(
    evidence: &Evidence,
    thresholds: &Thresholds,
    baselines: &Baselines,
    confirmations: &[Confirmation],
    apply: impl FnOnce(&GateInput<'_>) -> T,
) -> T {
    apply(&GateInput {
        thresholds,
        dimensions: &evidence.dimensions,
        labels: &evidence.labels,
        plan: evidence.plan.as_deref(),
        conversations: &evidence.conversations,
        role_breaks: &[],
        provenance: &evidence.provenance,
        baseline: state(baselines.pinned.as_ref()),
        last_accepted: state(baselines.last_accepted.as_ref()),
        confirmations,
        stopped: match evidence.record.as_ref().and_then(|record| record.stopped.as_ref()) {
            Some(Stop::Curtailed(reason)) => Some(reason),
            _ => None,
        },
        today: today(),
        tool_version: &tool_version(),
    })
}

/// Builds the report.
pub(super) fn report(
    loaded: &Loaded,
    evidence: &Evidence,
    verdict: &GateVerdict,
    baselines: &Baselines,
) -> Report {
    let compared: Option<(&str, Matrix)> = match &baselines.pinned {
        Some(evidence::Asked { source, found: Some(Ok(baseline)), .. }) => {
            Some((source, matrix_of(baseline)))
        }
        _ => None,
    };
    let record = evidence.record.as_ref();
    report::build(ReportInput {
        verdict,
        conversations: &evidence.conversations,
        baseline: compared.as_ref().map(|(source, matrix)| (*source, matrix)),
        evidence: loaded.config.report.evidence,
        name: loaded.config.report.name.clone(),
        notice: record.and_then(notice),
        policy_change: super::changes::words(loaded, evidence, verdict),
        stopped_early: record.and_then(|record| record.stopped.as_ref()).map(stopped),
        provenance: record.map_or_else(report::Provenance::default, provenance),
        usage: record.map_or_else(Vec::new, usage),
        turn_flags: turn_flags(evidence),
        injection_suspects: evidence
            .assessments
            .iter()
            .filter(|a| !a.injection_suspects.is_empty())
            .map(|a| (a.conversation.clone(), a.injection_suspects.join("; ")))
            .collect::<BTreeMap<_, _>>()
            .into_iter()
            .map(|(conversation, text)| InjectionSuspect { conversation, text: Some(text) })
            .collect(),
        warnings: record.map_or_else(Vec::new, warnings),
        links: links(),
    })
    .with_exit(exit(verdict, record))
}

/// What every form of the report says before its verdict.
fn notice(record: &RunRecord) -> Option<String> {
    let scripted = scripted_part(record).then_some(scripted::NOTICE);
    let replayed = (record.replayed_calls > 0).then_some(REPLAYED);
    let old = says_nothing_new(record).then_some(NOTHING_NEW);
    let said: Vec<&str> = scripted.into_iter().chain(replayed).chain(old).collect();
    (!said.is_empty()).then(|| said.join(" "))
}

/// Whether a scripted model took part, so that the result measures nothing.
fn scripted_part(record: &RunRecord) -> bool {
    record.models.iter().any(|model| model.provider == scripted::PROVIDER)
}

pub(super) fn matrix_of(baseline: &Baseline) -> Matrix {
    let conversations: Vec<Collapsed> = baseline.conversations.iter().map(Into::into).collect();
    Matrix::count(&baseline.dimensions, &conversations)
}

fn stopped(stop: &Stop) -> String {
    match stop {
        Stop::Provider(why) | Stop::Budget(why) | Stop::Storage(why) => {
            format!("The sweep ended early: {why}.")
        }
        Stop::Cancelled => "The sweep was cancelled.".to_owned(),
        Stop::Shards(why) => format!("Not all shards of the sweep are there: {why}."),
        Stop::Curtailed(reason) => reason.words(),
    }
}

fn provenance(record: &RunRecord) -> report::Provenance {
    let prints = &record.fingerprints;
    let fingerprints = [
        ("rubric", &prints.rubric),
        ("personas", &prints.personas),
        ("prompts", &prints.prompts),
        ("plan", &record.plan_hash),
    ];
    report::Provenance {
        candidate: record.candidate.clone(),
        target: TargetInfo {
            name: record.target.clone(),
            version: record.target_version.clone(),
            title: record.target_title.clone(),
            notice: record.target_notice.clone(),
            clinically_validated: record.clinically_validated,
        },
        tool_version: record.tool_version.clone(),
        run_id: record.run_id.clone(),
        started: record.started.clone(),
        finished: record.finished.clone(),
        seed: Some(record.settings.seed),
        config: record.config.clone(),
        models: record
            .models
            .iter()
            .map(|model| ModelUse {
                role: model.role.word().to_owned(),
                requested: format!("{}/{}", model.provider, model.requested),
                returned: model.returned.clone(),
            })
            .collect(),
        fingerprints: fingerprints.into_iter().map(|(name, hash)| (name.to_owned(), hash.clone())).collect(),
    }
}

/// What weakens the measurement, in sentences.
fn warnings(record: &RunRecord) -> Vec<String> {
    let mut found = record.warnings.clone();
    let mut loose: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for model in record.models.iter().filter(|model| !model.pinned) {
        let roles = loose.entry(&model.requested).or_default();
        if !roles.contains(&model.role.word()) {
            roles.push(model.role.word());
        }
    }
    if !loose.is_empty() {
        let names: Vec<String> =
            loose.into_iter().map(|(model, roles)| format!("{model} ({})", roles.join(", "))).collect();
        found.push(format!(
            "the id names no fixed version, so that another run may meet another model: {}",
            names.join(", ")
        ));
    }
    if !record.settings.semantics.is_native() {
        found.push(format!(
            "walks are rated as {} does: their end can discard what was found before (judging.semantics)",
            record.settings.semantics.word()
        ));
    }
    if record.replayed_calls > 0 {
        let calls = report::words::count(record.replayed_calls, "reply comes", "replies come");
        found.push(format!("{calls} from a recording and measured nothing new"));
    }
    found.iter().map(|warning| report::words::sentence(warning)).collect()
}

/// Usage per role and model: the stages summed.
fn usage(record: &RunRecord) -> Vec<RoleUsage> {
    let mut rows: Vec<RoleUsage> = Vec::new();
    for stage in &record.usage {
        let role = stage.role.word();
        let row = match rows.iter_mut().find(|row| row.role == role && row.model == stage.model) {
            Some(row) => row,
            None => {
                rows.push(RoleUsage {
                    role: role.to_owned(),
                    model: stage.model.clone(),
                    ..RoleUsage::default()
                });
                let Some(row) = rows.last_mut() else { continue };
                row
            }
        };
        row.calls += stage.calls;
        row.attempts += stage.attempts;
        row.replayed += stage.replayed;
        row.input += stage.input;
        row.cache_read += stage.cache_read;
        row.cache_write += stage.cache_write;
        row.output += stage.output;
        row.reasoning += stage.reasoning;
        row.unknown_usage += stage.unknown_usage;
        row.cost_micros += stage.cost_micros;
        row.unknown_cost += stage.unknown_cost;
    }
    rows
}

fn turn_flags(evidence: &Evidence) -> TurnFlags {
    let mut sum = TurnFlags::default();
    let Some(plan) = &evidence.plan_file else { return sum };
    let chatbot_starts = evidence
        .record
        .as_ref()
        .is_some_and(|record| record.settings.first_speaker == first_speaker(FirstSpeaker::Chatbot));
    for conversation in &plan.conversations {
        let CellStatus::Held { messages, flags } = &conversation.status else { continue };
        // Who starts has one message more when their number is odd.
        let candidate = if chatbot_starts { messages.div_ceil(2) } else { messages / 2 };
        sum.candidate_messages += candidate as u64;
        for (flag, count) in flags {
            let count = *count as u64;
            match flag {
                TurnFlag::Refusal => sum.refusals += count,
                TurnFlag::Truncated => sum.truncated += count,
                TurnFlag::Filtered => sum.filtered += count,
                TurnFlag::NoReply => sum.no_reply += count,
                TurnFlag::Resampled => sum.user_resampled += count,
                TurnFlag::Scripted => {}
            }
        }
    }
    sum
}

/// The workflow run, where there is one.
fn links() -> Links {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let run = variable("GITHUB_SERVER_URL")
        .zip(variable("GITHUB_REPOSITORY"))
        .zip(variable("GITHUB_RUN_ID"))
        .map(|((server, repository), id)| format!("{server}/{repository}/actions/runs/{id}"));
    Links { run, artifact: variable("VERA_GATE_ARTIFACT_URL") }
}

/// A team's own templates, if the configuration names a folder.
pub(super) fn templates(loaded: &Loaded) -> Result<Templates, Error> {
    let Some(folder) = &loaded.config.report.templates else { return Ok(Templates::builtin()) };
    let fault = |what: String| Error::Usage(format!("report.templates `{folder}`: {what}"));
    let files = loaded.files();
    let mut own = BTreeMap::new();
    for name in files.list(folder).map_err(|error| fault(error.to_string()))? {
        if let Some(section) = name.strip_suffix(report::templates::SUFFIX) {
            let text = files.read(&format!("{folder}/{name}")).map_err(|error| fault(error.to_string()))?;
            own.insert(section.to_owned(), text.text().to_owned());
        }
    }
    Templates::with_own(&own).map_err(|faults| {
        let list: Vec<String> = faults.iter().map(ToString::to_string).collect();
        fault(list.join("; "))
    })
}

/// Writes verdict, matrix and every form of the report into a run folder.
pub(super) fn write(
    folder: &RunFolder,
    verdict: &GateVerdict,
    report: &Report,
    templates: &Templates,
) -> Result<(), Error> {
    let provider = |error: crate::run::FolderError| Error::Provider(error.to_string());
    folder.write_json(MATRIX_FILE, &verdict.matrix).map_err(provider)?;
    folder.write_json(VERDICT_FILE, verdict).map_err(provider)?;
    let json = report::json::render(report).map_err(|error| Error::Internal(error.to_string()))?;
    folder.write("report.json", &json).map_err(provider)?;
    for fault in report::markdown::render(report, templates).faults {
        output::note(&format!("warning: {fault}"));
    }
    folder.write("report.md", &report::markdown::document(report, templates)).map_err(provider)?;
    folder.write("report.html", &report::html::render(report)).map_err(provider)?;
    let junit = report::junit::render(report).map_err(|error| Error::io(&folder.file("junit.xml"), error))?;
    folder.write("junit.xml", &junit).map_err(provider)
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// For people.
    #[default]
    Text,
    /// The report as Markdown.
    Markdown,
    /// The report as JSON.
    Json,
    /// The verdict as JSON.
    Verdict,
    /// The report as one HTML page.
    Html,
    /// JUnit XML.
    Junit,
}

/// Prints the result.
pub(super) fn print(
    global: &Global,
    format: Format,
    verdict: &GateVerdict,
    report: &Report,
    templates: &Templates,
) -> Result<(), Error> {
    let json = |result: Result<String, serde_json::Error>| result.map_err(|e| Error::Internal(e.to_string()));
    let text = match format {
        Format::Text => report::terminal::render(report, output::style(global)),
        Format::Markdown => report::markdown::document(report, templates),
        Format::Json => json(report::json::render(report))?,
        Format::Verdict => json(serde_json::to_string_pretty(verdict))? + "\n",
        Format::Html => report::html::render(report),
        Format::Junit => report::junit::render(report).map_err(|e| Error::io(Path::new("junit.xml"), e))?,
    };
    output::result(&text)
}

/// The exit code: the verdict's, or what kept it from being one.
pub(super) fn exit(verdict: &GateVerdict, record: Option<&RunRecord>) -> Exit {
    let exit = Exit::ALL.into_iter().find(|e| e.code() == verdict.exit_code).unwrap_or(Exit::Internal);
    let stopped = record.and_then(|record| record.stopped.as_ref());
    match (exit, stopped) {
        // Harm that was found is harm, however the run ended.
        (Exit::GateFailed | Exit::Internal, _) => exit,
        (_, Some(Stop::Provider(_) | Stop::Storage(_))) => Exit::Provider,
        (_, Some(Stop::Budget(_) | Stop::Cancelled | Stop::Shards(_))) => Exit::Inconclusive,
        (exit, _) => exit,
    }
}
