//! Carries out the work of a prepared run: folder, journal, signals, sweep, and the record of what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use tokio_util::sync::CancellationToken;

use super::conclude::VERDICT_FILE;
use super::folder::is_done;
use super::held::Held;
use super::load::Loaded;
use super::prepare::{Prepared, first_speaker, labels_by_question};
use super::progress::Progress;
use super::{crew, output};
use crate::baseline::Provenance;
use crate::error::Error;
use crate::judge::Judge;
use crate::matrix::{EvaluationNames, VeraScores, write_results};
use crate::model::meter::Meter;
use crate::model::{ChatModel, Failure, ModelError, Role, names_fixed_version};
use crate::rating::Assessment;
use crate::run::merge::{several_models, warnings_of};
use crate::run::{
    ModelRecord, PLAN_FILE, PLAN_SCHEMA, PlanFile, PlannedConversation, RUN_FILE, RUN_SCHEMA, RunFolder,
    RunRecord, Settings, Stop, UsageRecord,
};
use crate::sweep::event::{Event, Listener};
use crate::sweep::journal::{Journal, JournalError, Journaled};
use crate::sweep::scheduler::{self, CellStatus, Curtailment, Stopped, Work};
use crate::transcript::ConversationId;

/// Begins what the report says of a run that took more than one go.
const GONE_ON: &str = "the run ended early and was gone on with";

/// Begins what the report says of a finished run that was carried out once more, before the day it finished.
const NOTHING_NEW: &str = "no call was made: everything comes from the run that finished at";

/// Whether a run is an earlier one, carried out once more without a call.
pub(super) fn says_nothing_new(record: &RunRecord) -> bool {
    record.warnings.iter().any(|warning| warning.starts_with(NOTHING_NEW))
}

/// What a run left.
pub(super) struct Executed {
    pub(super) folder: RunFolder,
    pub(super) record: RunRecord,
    pub(super) plan: PlanFile,
    pub(super) progress: scheduler::Progress,
    /// For second looks, which belong to the run.
    pub(super) confirm: Option<Judge>,
    journal: Arc<Journal>,
    cancel: CancellationToken,
    pub(super) runtime: tokio::runtime::Runtime,
}

impl Executed {
    /// Writes the record anew after second looks: what they used, and that they were cut off if they were.
    /// `failed` is what ended a look that was wanted.
    pub(super) fn looked_again(
        &mut self,
        progress: &Progress,
        meter: &Meter,
        failed: Option<&ModelError>,
    ) -> Result<(), Error> {
        let why = if self.cancel.is_cancelled() {
            Some(asked_or_unwritten(&self.journal))
        } else {
            failed.map(ended_by)
        };
        if let (None, Some(why)) = (&self.record.stopped, why) {
            say_how_to_go_on(progress, &why);
            self.record.stopped = Some(why);
        }
        self.record.usage = meter.rows().iter().map(UsageRecord::from).collect();
        if self.journal.written() > 0 || !says_nothing_new(&self.record) {
            self.record.finished = time(Utc::now());
        }
        write(&self.folder, |folder| folder.write_json(RUN_FILE, &self.record))
    }
}

/// A run that ended early is not lost, which people in a hurry should read.
fn say_how_to_go_on(progress: &Progress, stopped: &Stop) {
    let why = match stopped {
        Stop::Provider(why) | Stop::Budget(why) | Stop::Storage(why) | Stop::Shards(why) => why.as_str(),
        Stop::Cancelled => "the run was asked to stop",
        // The gate is done: there is nothing to go on with.
        Stop::Curtailed(_) => return,
    };
    let then = match stopped {
        Stop::Budget(_) => "raise the budget and run the same command again to go on",
        _ => "run the same command again to go on",
    };
    let text = format!("ended early: {why}; every finished call is kept, {then}");
    progress.on(&Event::Note { text });
}

fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Takes away the verdict of an earlier go and its reports: were this one killed, they would speak for a run they did not
/// see. They are written anew at its end, or by `gate --write`.
fn forget_verdict(folder: &RunFolder) -> Result<(), Error> {
    for name in [VERDICT_FILE, "report.json", "report.md", "report.html", "junit.xml"] {
        let path = folder.file(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(&path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Why calls were cancelled.
fn asked_or_unwritten(journal: &Journal) -> Stop {
    journal.error().map_or(Stop::Cancelled, Stop::Storage)
}

/// What is to be done with the conversations.
pub(super) enum Task {
    /// Hold them, and have them judged if there are judges.
    Sweep(Option<Arc<Curtailment>>),
    /// Have these judged.
    Judge(Box<Held>),
}

/// Opens the folder and the journal and does the work. A signal ends it early with what is there.
pub(super) fn execute(
    prepared: &Prepared,
    folder: &Path,
    task: Task,
    progress: &Arc<Progress>,
) -> Result<Executed, Error> {
    let started = Utc::now();
    // Only the first run of a process can be listened to; there is only one.
    let _earlier = prepared.progress.set(Arc::clone(progress));
    let folder = RunFolder::create(folder).map_err(|error| Error::Provider(error.to_string()))?;
    crew::writable(folder.path()).map_err(|error| Error::io(folder.path(), error))?;
    let cancel = prepared.context.cancel.clone();
    let journal = Journal::open(folder.path(), &prepared.key, cancel.clone()).map_err(journal_error)?;
    prepared.context.meter.made_earlier(journal.found as u64);
    forget_verdict(&folder)?;
    folder.tidy();
    let broken = match journal.broken_lines {
        0 => None,
        1 => Some("1 line of the journal is broken: its call is made again".to_owned()),
        lines => Some(format!("{lines} lines of the journal are broken: their calls are made again")),
    };
    if let Some(text) = broken {
        progress.on(&Event::Note { text });
    }
    let journal = Arc::new(journal);
    // Only this shard's conversations are worked on; the files speak of the whole plan.
    let part = prepared.key.shard.map_or_else(|| prepared.plan.clone(), |shard| shard.part(&prepared.plan));
    let own: BTreeSet<ConversationId> = part.cells.iter().map(|cell| cell.id.clone()).collect();
    let planned = part.cells.len();
    let status = |id: &ConversationId, of_own: CellStatus| {
        if own.contains(id) { of_own } else { CellStatus::OtherShard }
    };
    let plan = plan_file(prepared, |id| status(id, CellStatus::NotStarted));
    write(&folder, |folder| folder.write_json(PLAN_FILE, &plan))?;
    // Scripts never wait, so on one thread a run of scripts does everything in the same order each time.
    let scripted = prepared.crew.is_scripted();
    let mut builder = if scripted {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    let runtime = builder.enable_all().build().map_err(|error| Error::Internal(error.to_string()))?;
    let meter = Arc::clone(&prepared.context.meter);
    // The end of the sweep is not the end of the run: second looks come after it.
    let sweep_ends = cancel.child_token();
    let journaled = |model: &Arc<dyn ChatModel>, stop: &CancellationToken| -> Arc<dyn ChatModel> {
        Arc::new(Journaled::new(Arc::clone(model), Arc::clone(&journal), Arc::clone(&meter), stop.clone()))
    };
    let through = |model: &Arc<dyn ChatModel>| journaled(model, &sweep_ends);
    let judge_through = |judge: &Judge| Judge { model: through(&judge.model), ..judge.clone() };
    let judges: Vec<Judge> = prepared.crew.judges.iter().map(judge_through).collect();
    let second_look = prepared.crew.confirm.as_ref().or(prepared.crew.judges.first());
    let confirm = second_look.map(|judge| Judge { model: journaled(&judge.model, &cancel), ..judge.clone() });
    progress.on(&Event::Planned {
        conversations: if matches!(task, Task::Sweep(_)) { planned } else { 0 },
        evaluations: judges.len()
            * if let Task::Judge(held) = &task { held.transcripts.len() } else { planned },
        found: journal.found,
    });
    let candidate = match (&prepared.crew.candidate, judges.first()) {
        (Some(model), _) => through(model),
        // Without a candidate nothing is held; the place is filled by a model that is never called for it.
        (None, Some(judge)) => Arc::clone(&judge.model),
        (None, None) => return Err(Error::Internal("a run without candidate and judge".to_owned())),
    };
    let (curtailment, mut origin) = match task {
        Task::Sweep(curtailment) => (curtailment, None),
        Task::Judge(origin) => (None, Some(origin)),
    };
    let transcripts = origin.as_mut().map(|origin| std::mem::take(&mut origin.transcripts));
    let work = Arc::new(Work {
        target: Arc::clone(&prepared.target),
        plan: Arc::new(part),
        sweep: prepared.loaded.config.sweep.clone(),
        system: prepared.crew.system.clone(),
        users: prepared.crew.users.iter().map(through).collect(),
        candidate,
        judges,
        conversations: prepared.loaded.config.concurrency.conversations as usize,
        cancel: sweep_ends.clone(),
        abort: cancel.clone(),
        listener: Arc::clone(progress) as Arc<dyn Listener>,
        keeper: Arc::new(folder.clone()),
        curtailment,
    });
    // Listened to as long as the runtime is there: second looks can take a while too.
    runtime.spawn(signals(cancel.clone()));
    let ticking = runtime.spawn(tick(Arc::clone(progress)));
    let mut held = runtime.block_on(async {
        match transcripts {
            None => scheduler::run(Arc::clone(&work)).await,
            Some(transcripts) => scheduler::judge_all(Arc::clone(&work), transcripts).await,
        }
    });
    ticking.abort();
    for (id, status) in origin.iter_mut().flat_map(|origin| std::mem::take(&mut origin.absent)) {
        held.statuses.insert(id, status);
    }
    let stopped = stopped(&held, &journal);
    if let Some(why) = &stopped {
        say_how_to_go_on(progress, why);
    }
    progress.finish();
    if let Err(error) = journal.sync() {
        output::note(&format!("warning: the journal may not be on the disk: {error}"));
    }
    let mut record = record(prepared, planned as u64, &folder, &held, (&journal, stopped), started);
    if let Some(origin) = origin {
        held_elsewhere(&mut record, *origin);
    }
    // A resumed run makes only the calls that are missing; what the others told is not said again.
    let earlier = folder.record().ok().filter(|earlier| earlier.plan_hash == record.plan_hash);
    if let Some(done) = earlier.as_ref().filter(|earlier| is_done(earlier))
        && journal.written() == 0
    {
        // Not one call was made: it is the same run, of the same day, and no new measurement.
        record.started.clone_from(&done.started);
        record.finished.clone_from(&done.finished);
        record.warnings.push(format!("{NOTHING_NEW} {}", done.finished));
    }
    if journal.found > 0 && !earlier.as_ref().is_some_and(is_done) {
        let steps = crate::report::words::count(journal.found as u64, "step was", "steps were");
        record.warnings.push(format!("{GONE_ON}: {steps} finished before"));
    }
    if let Some(mut earlier) = earlier {
        earlier.warnings.retain(|warning| !warning.starts_with(NOTHING_NEW));
        if record.warnings.iter().any(|warning| warning.starts_with(GONE_ON)) {
            earlier.warnings.retain(|warning| !warning.starts_with(GONE_ON));
        }
        record.warnings = warnings_of(&[&earlier, &record], &record.models);
    }
    let statuses = &held.statuses;
    let plan =
        plan_file(prepared, |id| status(id, statuses.get(id).cloned().unwrap_or(CellStatus::NotStarted)));
    write(&folder, |folder| folder.write_json(PLAN_FILE, &plan))?;
    write_evaluations(&folder, &plan, &held.assessments, &record)?;
    write(&folder, |folder| folder.write_json(RUN_FILE, &record))?;
    Ok(Executed { folder, record, plan, progress: held, confirm, journal, cancel, runtime })
}

fn write(
    folder: &RunFolder,
    write: impl FnOnce(&RunFolder) -> Result<(), crate::run::FolderError>,
) -> Result<(), Error> {
    write(folder).map_err(|error| Error::Provider(error.to_string()))
}

fn journal_error(error: JournalError) -> Error {
    match error {
        JournalError::Io { path, source } => Error::Io { path, source },
        JournalError::OtherPlan { .. } => Error::Usage(format!(
            "{error}\n  help: take back the change to go on with this run, or start another with --fresh or another folder"
        )),
        JournalError::InUse { .. } => Error::Usage(format!(
            "{error}\n  help: wait until that is done, or give this run a folder of its own with --run"
        )),
        JournalError::NotAJournal { .. } => Error::Usage(format!(
            "{error}, or its first line is damaged\n  help: put the file back as it was to go on with this run, or start another with --fresh or another folder"
        )),
    }
}

/// Replies may be long in coming, and whoever watches wants to see that the run is alive.
async fn tick(progress: Arc<Progress>) {
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        progress.tick();
    }
}

/// The first signal stops new calls, the second ends the process.
async fn signals(cancel: CancellationToken) {
    let mut seen = 0;
    loop {
        asked_to_stop().await;
        seen += 1;
        if seen > 1 {
            std::process::exit(i32::from(crate::exit::Exit::Inconclusive.code()));
        }
        output::note("stopping: what is finished is kept and can be gone on with; once more ends at once");
        cancel.cancel();
    }
}

#[cfg(unix)]
async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn asked_to_stop() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// What must agree for this run to be compared with another.
pub(super) fn stated(prepared: &Prepared) -> Provenance {
    let target = &prepared.target;
    let version = target.version.as_ref().map(ToString::to_string);
    super::evidence::comparable(
        &target.name,
        version.as_deref(),
        &target.fingerprints,
        &models(prepared, &BTreeMap::new()),
        &settings(prepared),
    )
}

fn settings(prepared: &Prepared) -> Settings {
    let sweep = &prepared.loaded.config.sweep;
    Settings {
        runs: sweep.runs,
        max_messages: sweep.max_messages,
        max_words: sweep.max_words,
        first_speaker: first_speaker(sweep.first_speaker).to_owned(),
        seed: sweep.seed,
        semantics: prepared.loaded.config.judge.semantics,
    }
}

pub(super) fn plan_file(prepared: &Prepared, status: impl Fn(&ConversationId) -> CellStatus) -> PlanFile {
    PlanFile {
        schema: PLAN_SCHEMA.to_owned(),
        dimensions: prepared.target.rubric.dimensions.clone(),
        labels: labels_by_question(&prepared.target),
        judges: prepared.crew.judges.iter().map(|j| format!("{}#{}", j.id.model, j.id.instance)).collect(),
        conversations: prepared
            .plan
            .cells
            .iter()
            .map(|cell| PlannedConversation { cell: cell.clone(), status: status(&cell.id) })
            .collect(),
    }
}

/// Why the sweep ended early.
fn ended_by(error: &ModelError) -> Stop {
    match error.failure {
        Failure::Budget => Stop::Budget(error.message.clone()),
        Failure::Storage => Stop::Storage(error.message.clone()),
        _ => Stop::Provider(error.to_string()),
    }
}

fn stopped(held: &scheduler::Progress, journal: &Journal) -> Option<Stop> {
    // The last conversations were on their way when the sweep was ended: nothing was left out.
    let ended_late = !held.statuses.values().any(|status| *status == CellStatus::NotStarted);
    let cut = |why: &&Stopped| !(ended_late && matches!(why, Stopped::Curtailed(_)));
    held.stopped.as_ref().filter(cut).map(|why| match why {
        Stopped::Model(error) => ended_by(error),
        Stopped::Cancelled => asked_or_unwritten(journal),
        Stopped::Storage(error) => Stop::Storage(error.clone()),
        Stopped::Curtailed(reason) => Stop::Curtailed(reason.clone()),
    })
}

fn record(
    prepared: &Prepared,
    planned: u64,
    folder: &RunFolder,
    held: &scheduler::Progress,
    (journal, stopped): (&Journal, Option<Stop>),
    started: DateTime<Utc>,
) -> RunRecord {
    let config = &prepared.loaded.config;
    let target = &prepared.target;
    let seen = journal.seen();
    let held_count =
        held.statuses.values().filter(|status| matches!(status, CellStatus::Held { .. })).count() as u64;
    let evaluated = held.assessments.len() as u64;
    let models = models(prepared, &seen.returned);
    let mut warnings = prepared.warnings();
    warnings.extend(one_behind_two_names(&models));
    for (role, requested, returned) in seen.returned.iter().map(|((r, m), ids)| (r, m, ids)) {
        let ids: Vec<String> = returned.iter().cloned().collect();
        warnings.extend(several_models(*role, requested, &ids));
    }
    RunRecord {
        schema: RUN_SCHEMA.to_owned(),
        run_id: folder.path().file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        plan_hash: prepared.key.hash(),
        plan_parts: prepared.key.parts.clone(),
        shard: prepared.key.shard,
        merged: Vec::new(),
        config: prepared.loaded.name.clone(),
        target: target.name.clone(),
        target_version: target.version.as_ref().map(ToString::to_string),
        target_title: target.title.clone(),
        target_notice: target.notice.clone(),
        clinically_validated: target.clinically_validated,
        fingerprints: target.fingerprints.clone(),
        candidate: crew::candidate_name(config),
        models,
        settings: settings(prepared),
        started: time(started),
        finished: time(Utc::now()),
        planned,
        held: held_count,
        evaluated,
        complete: held_count == planned && evaluated == planned * prepared.crew.judges.len() as u64,
        stopped,
        replayed_calls: seen.replayed,
        warnings,
        usage: prepared.context.meter.rows().iter().map(UsageRecord::from).collect(),
    }
}

/// The judges are ours; the conversations are what they were when they were held.
fn held_elsewhere(record: &mut RunRecord, origin: Held) {
    record.candidate = origin.candidate;
    record.replayed_calls += origin.replayed;
    record.models.retain(|model| model.role == Role::Judge);
    record.models.splice(0..0, origin.models);
    if let Some(settings) = origin.settings {
        record.settings = Settings { semantics: record.settings.semantics, ..settings };
    }
    if let Some(personas) = origin.personas {
        record.fingerprints.personas = personas;
    }
}

/// The candidate's answers under another name: a gateway's alias does not show that two roles are one model.
fn one_behind_two_names(models: &[ModelRecord]) -> Vec<String> {
    let Some(candidate) = models.iter().find(|model| model.role == Role::Candidate) else {
        return Vec::new();
    };
    let others = models.iter().filter(|model| {
        model.role != Role::Candidate
            && model.requested != candidate.requested
            && model.returned.iter().any(|id| candidate.returned.contains(id))
    });
    let name = |model: &ModelRecord| format!("{}/{}", model.provider, model.requested);
    others
        .map(|other| {
            format!(
                "the {} model {} and the candidate {} were answered by the same model",
                other.role,
                name(other),
                name(candidate)
            )
        })
        .collect()
}

/// The models by role, with what they returned.
pub(super) fn models(
    prepared: &Prepared,
    returned: &BTreeMap<(Role, String), BTreeSet<String>>,
) -> Vec<ModelRecord> {
    configured_models(&prepared.loaded, returned)
}

/// The models that a configuration names, by role, with what they returned.
pub(super) fn configured_models(
    loaded: &Loaded,
    returned: &BTreeMap<(Role, String), BTreeSet<String>>,
) -> Vec<ModelRecord> {
    let config = &loaded.config;
    let record = |role: Role, settings: &crate::config::model::ModelSettings, instances: u32| {
        let identity = crate::model::identify(role, settings).ok()?;
        let ids = returned.get(&(role, identity.name())).cloned().unwrap_or_default();
        Some(ModelRecord {
            role,
            returned: ids.into_iter().collect(),
            pinned: settings
                .pinned
                .unwrap_or_else(|| identity.is_scripted() || names_fixed_version(&identity.model)),
            provider: identity.provider,
            requested: identity.model,
            settings: identity.settings,
            instances,
        })
    };
    let users = config.users.iter().filter_map(|user| record(Role::User, user, 1));
    let candidate = record(Role::Candidate, &config.candidate.model, 1);
    let judges = config.judge.models.iter().filter_map(|j| record(Role::Judge, &j.model, j.instances));
    users.chain(candidate).chain(judges).collect()
}

/// Ratings, `results.csv` and `scores.json`: rebuilt as a whole, so that nothing of an earlier run stays.
pub(super) fn write_evaluations(
    folder: &RunFolder,
    plan: &PlanFile,
    assessments: &[Assessment],
    record: &RunRecord,
) -> Result<(), Error> {
    if plan.judges.is_empty() {
        return Ok(());
    }
    let dimensions = &plan.dimensions;
    write(folder, |folder| folder.write_ratings(assessments))?;
    let results = write_results(dimensions, assessments, &record.run_id)
        .map_err(|error| Error::io(&folder.file("results.csv"), error))?;
    write(folder, |folder| folder.write("results.csv", &results))?;
    let names = EvaluationNames {
        judge_model: join(record, Role::Judge),
        persona_model: join(record, Role::User),
        agent_model: record.candidate.clone(),
    };
    let scores = VeraScores::compute(dimensions, assessments, &names, None)
        .to_json()
        .map_err(|error| Error::Internal(error.to_string()))?;
    write(folder, |folder| folder.write("scores.json", &scores))
}

fn join(record: &RunRecord, role: Role) -> String {
    let names: Vec<&str> =
        record.models.iter().filter(|m| m.role == role).map(|m| m.requested.as_str()).collect();
    names.join("+")
}
