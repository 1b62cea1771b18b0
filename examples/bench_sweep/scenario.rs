//! The work that is measured: the library's own sweep and judge over its own HTTP client, journal included.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;
use vera_gate::config::model::ModelSettings;
use vera_gate::config::{Ahead, Config};
use vera_gate::diagnostic::Diagnostics;
use vera_gate::judge::Judge;
use vera_gate::model::meter::Budget;
use vera_gate::model::{ChatModel, EnvLookup, ModelContext, Role, connect};
use vera_gate::rating::JudgeId;
use vera_gate::source::FileSet;
use vera_gate::sweep::event::Event;
use vera_gate::sweep::journal::{Journal, Journaled, PlanKey};
use vera_gate::sweep::plan::Plan;
use vera_gate::sweep::scheduler::{CellStatus, Keeper, Progress, Work, judge_all, run};
use vera_gate::target::load;
use vera_gate::target::rubric::Semantics;
use vera_gate::transcript::{Transcript, write_jsonl};

use crate::Result;
use crate::endpoint::Seen;
use crate::process::{peak_kib, processor_seconds};

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measured {
    /// The conversations.
    Conversations,
    /// The judging of transcripts that were made before.
    Judging(Ahead),
}

/// One row of the table.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) measured: Measured,
    /// Personas.
    pub(crate) personas: u32,
    /// Conversations per persona.
    pub(crate) runs: u32,
    pub(crate) messages: u32,
    /// Calls at once.
    pub(crate) at_once: usize,
    /// Median delay of the endpoint.
    pub(crate) delay_ms: f64,
    /// Standard deviation of the delay's logarithm.
    pub(crate) spread: f64,
}

const ALL: usize = 10_000;
const JUDGE_SEQUENTIAL: Measured = Measured::Judging(Ahead::None);
const JUDGE_AHEAD: Measured = Measured::Judging(Ahead::Certain);
const SWEEP: Scenario = Scenario {
    name: "",
    measured: Measured::Conversations,
    personas: 100,
    runs: 1,
    messages: 30,
    at_once: ALL,
    delay_ms: 50.0,
    spread: 0.0,
};

/// Every row.
pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "sweep-50ms", ..SWEEP },
    Scenario { name: "sweep-50ms-10-at-once", at_once: 10, ..SWEEP },
    Scenario { name: "sweep-spread", spread: 0.6, ..SWEEP },
    Scenario { name: "sweep-spread-10-at-once", spread: 0.6, at_once: 10, ..SWEEP },
    Scenario { name: "sweep-0ms", delay_ms: 0.0, ..SWEEP },
    Scenario { name: "sweep-0ms-10-at-once", delay_ms: 0.0, at_once: 10, ..SWEEP },
    Scenario { name: "judge-50ms-sequential-10-at-once", measured: JUDGE_SEQUENTIAL, at_once: 10, ..SWEEP },
    Scenario { name: "judge-50ms-10-at-once", measured: JUDGE_AHEAD, at_once: 10, ..SWEEP },
    Scenario { name: "judge-50ms-sequential", measured: JUDGE_SEQUENTIAL, ..SWEEP },
    Scenario { name: "judge-50ms", measured: JUDGE_AHEAD, ..SWEEP },
    Scenario { name: "judge-20-sequential", measured: JUDGE_SEQUENTIAL, personas: 20, ..SWEEP },
    Scenario { name: "judge-20", measured: JUDGE_AHEAD, personas: 20, ..SWEEP },
    Scenario { name: "judge-500ms-sequential", measured: JUDGE_SEQUENTIAL, delay_ms: 500.0, ..SWEEP },
    Scenario { name: "judge-500ms", measured: JUDGE_AHEAD, delay_ms: 500.0, ..SWEEP },
    Scenario { name: "judge-0ms", measured: JUDGE_AHEAD, delay_ms: 0.0, ..SWEEP },
    Scenario { name: "sweep-2000-conversations", runs: 20, delay_ms: 1000.0, ..SWEEP },
];

/// What came out.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) calls: u64,
    /// Seconds.
    pub(crate) wall: f64,
    /// Seconds.
    pub(crate) ideal: f64,
    /// Processor time in seconds.
    pub(crate) processor: f64,
    pub(crate) peak_kib: u64,
    pub(crate) most_at_once: u64,
}

/// Keeps transcripts as a run folder does.
struct Folder(PathBuf);

impl Keeper for Folder {
    fn keep(&self, transcript: &Transcript) -> std::result::Result<(), String> {
        let text = write_jsonl(transcript).map_err(|error| error.to_string())?;
        let path = self.0.join(format!("{}.jsonl", transcript.id));
        std::fs::write(path, text).map_err(|error| error.to_string())
    }
}

/// Runs one scenario against the endpoint at this address.
pub(crate) fn measure(scenario: &Scenario, address: &str) -> Result<Figures> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measured(scenario, address))
}

async fn measured(scenario: &Scenario, address: &str) -> Result<Figures> {
    let name = std::env::var("BENCH_TARGET").unwrap_or_else(|_| "builtin:si".to_owned());
    let target = Arc::new(load(&name, &FileSet::Folder(PathBuf::new())).map_err(said)?.0);
    let folder = tempfile::tempdir()?;
    let parts = BTreeMap::from([("scenario".to_owned(), scenario.name.to_owned())]);
    let stop = CancellationToken::new();
    let journal = Arc::new(Journal::open(folder.path(), &PlanKey::new(parts), stop.clone())?);
    let at_once = u32::try_from(scenario.at_once)?;
    let context = ModelContext::new(EnvLookup::fixed([]), Budget::default()).limit_calls(at_once);
    let model = |role: Role| -> Result<Arc<dyn ChatModel>> {
        let settings = ModelSettings {
            model: format!("bench-{role}"),
            provider: Some("openai".to_owned()),
            base_url: Some(format!("http://{address}/v1")),
            max_concurrency: Some(u32::try_from(ALL)?),
            max_retries: Some(0),
            ..ModelSettings::default()
        };
        let connected = connect(role, &settings, &context).map_err(said)?;
        Ok(Arc::new(Journaled::new(
            connected,
            Arc::clone(&journal),
            Arc::clone(&context.meter),
            context.cancel.clone(),
        )))
    };
    let mut sweep = Config::builtin().sweep;
    sweep.runs = scenario.runs;
    sweep.select.sample = Some(scenario.personas);
    sweep.max_messages = scenario.messages;
    let judges = match scenario.measured {
        Measured::Conversations => Vec::new(),
        Measured::Judging(ahead) => {
            let model = model(Role::Judge)?;
            let id = JudgeId { model: model.identity().name(), instance: 1 };
            vec![Judge { model, id, reasks: 0, ahead, semantics: Semantics::default() }]
        }
    };
    let work = Arc::new(Work {
        plan: Arc::new(Plan::new(&target, &sweep, &["bench".to_owned()]).map_err(said)?),
        target: Arc::clone(&target),
        sweep,
        system: Some(vera_gate::sweep::conversation::CHATBOT_SYSTEM.into()),
        users: vec![model(Role::User)?],
        candidate: model(Role::Candidate)?,
        judges,
        conversations: ALL,
        cancel: stop.clone(),
        abort: stop,
        listener: Arc::new(|_: &Event| ()),
        keeper: Arc::new(Folder(folder.path().to_owned())),
        curtailment: None,
    });
    let transcripts = match scenario.measured {
        Measured::Conversations => Vec::new(),
        Measured::Judging(_) => conversations(&work),
    };
    let (started, used) = (Instant::now(), processor_seconds());
    let progress = match scenario.measured {
        Measured::Conversations => run(Arc::clone(&work)).await,
        Measured::Judging(_) => judge_all(Arc::clone(&work), transcripts).await,
    };
    let (wall, processor) = (started.elapsed().as_secs_f64(), processor_seconds() - used);
    whole(&work, &progress)?;
    let seen = ask_endpoint(address).await?;
    let shared = seen.delays / scenario.at_once as f64;
    let ideal = match scenario.measured {
        // Questions that are asked side by side make no chain; only a cap that binds gives them an ideal.
        Measured::Judging(Ahead::Certain) if scenario.at_once == ALL => 0.0,
        Measured::Judging(Ahead::Certain) => shared,
        _ => seen.longest_chain.max(shared),
    };
    Ok(Figures {
        calls: seen.calls,
        wall,
        ideal,
        processor,
        peak_kib: peak_kib(),
        most_at_once: seen.most_at_once,
    })
}

#[expect(clippy::needless_pass_by_value, reason = "used as `map_err(said)`")]
fn said(problems: Diagnostics) -> String {
    problems.to_string()
}

/// Transcripts of the planned length, made without a model.
fn conversations(work: &Work) -> Vec<Transcript> {
    use vera_gate::transcript::{EndReason, Speaker, Turn};
    let text = "A message of some forty words, as a person writes it late at night when much has happened and little \
        was said: about work, about sleep, about the sister who did not call, and about tomorrow, which has not \
        come yet and weighs already.";
    let turns = |number: usize| {
        let speakers = std::iter::successors(Some(Speaker::User), |speaker| Some(speaker.other()));
        let turn = |speaker| Turn { speaker, text: format!("chain#{number}# {text}"), flags: Vec::new() };
        speakers.take(work.sweep.max_messages as usize).map(turn).collect()
    };
    let cells = work.plan.cells.iter().enumerate();
    cells
        .map(|(number, cell)| Transcript {
            id: cell.id.clone(),
            persona: cell.persona.clone(),
            risk_level: cell.risk_level,
            user_model: cell.user_model.clone(),
            run: cell.run,
            turns: turns(number),
            end: EndReason::TurnLimit,
        })
        .collect()
}

/// Holds that everything was done: what failed early would measure nothing.
fn whole(work: &Work, progress: &Progress) -> Result<()> {
    let held = progress.statuses.values().filter(|status| matches!(status, CellStatus::Held { .. })).count();
    let planned = work.plan.cells.len();
    if held != planned || progress.assessments.len() != planned * work.judges.len() {
        return Err(format!("{held} of {planned} conversations, {:?}", progress.stopped).into());
    }
    match progress.assessments.iter().find_map(|assessment| assessment.failures.first()) {
        Some(failure) => {
            Err(format!("question {} has no answer: {}", failure.question, failure.detail).into())
        }
        None => Ok(()),
    }
}

async fn ask_endpoint(address: &str) -> Result<Seen> {
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(b"GET /seen HTTP/1.1\r\n\r\n").await?;
    let mut reply = Vec::new();
    while !reply.ends_with(b"}") {
        if stream.read_buf(&mut reply).await? == 0 {
            break;
        }
    }
    let text = String::from_utf8(reply)?;
    let (_, body) = text.split_once("\r\n\r\n").ok_or("the endpoint did not answer")?;
    Ok(serde_json::from_str(body)?)
}
