//! The journal: one checksummed line per finished call, written at once, read back when a run goes on.
//!
//! A run that was killed is simply run again over its journal: every call that had finished is answered from it, so
//! nothing is paid for twice and the result is the one an undisturbed run would have had.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::shard::Shard;
use crate::fingerprint::{sha256, sha256_of_parts};
use crate::model::meter::Meter;
use crate::model::{
    Author, ChatModel, ChatRequest, Exchange, Failure, ModelError, ModelIdentity, Origin, Outcome, Role,
};

/// Version tag of the journal.
pub const SCHEMA: &str = "vera-gate/journal/v1";

/// The file's name in the run folder.
pub const FILE_NAME: &str = "journal.jsonl";

/// Hexadecimal digits of the checksum in front of every line.
const CHECKSUM: usize = 16;

/// What a run's results depend on, part by part: two runs with the same parts are the same run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanKey {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name of each part and what it is, or its hash.
    pub parts: BTreeMap<String, String>,
    /// Which share of the plan the journal is about; no part of the plan's hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
}

impl PlanKey {
    /// The key of these parts, for the whole plan.
    pub fn new(parts: BTreeMap<String, String>) -> Self {
        Self { schema: SCHEMA.to_owned(), parts, shard: None }
    }

    /// One hash for all parts: the same for every shard of a plan.
    pub fn hash(&self) -> String {
        let parts = self.parts.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        sha256_of_parts(parts)
    }

    /// What is not the same, as `name: theirs -> ours`.
    pub fn differences(&self, ours: &Self) -> Vec<String> {
        let mut differences = part_differences(&self.parts, &ours.parts);
        if self.shard != ours.shard {
            let show =
                |shard: Option<Shard>| shard.map_or_else(|| "(whole plan)".to_owned(), |s| s.to_string());
            differences.push(format!("shard: {} -> {}", show(self.shard), show(ours.shard)));
        }
        differences
    }
}

/// What is not the same in the parts of two plans, as `name: theirs -> ours`.
pub fn part_differences(theirs: &BTreeMap<String, String>, ours: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let show = |value: Option<&String>| value.map_or_else(|| "(absent)".to_owned(), |v| short(v));
    names
        .into_iter()
        .filter(|name| theirs.get(*name) != ours.get(*name))
        .map(|name| format!("{name}: {} -> {}", show(theirs.get(name)), show(ours.get(name))))
        .collect()
}

fn short(value: &str) -> String {
    let is_hash = value.len() == 64 && value.bytes().all(|b| b.is_ascii_hexdigit());
    let most = if is_hash { 12 } else { 80 };
    let shown: String = value.chars().take(most).collect();
    if shown.len() < value.len() { format!("{shown}…") } else { shown }
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The machine refused.
    #[error("`{path}`: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the machine said.
        source: std::io::Error,
    },
    /// Another process writes it.
    #[error("`{path}` is in use by another run")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It belongs to another plan.
    #[error("`{path}` belongs to another plan: {}", differences.join("; "))]
    OtherPlan {
        /// The file.
        path: PathBuf,
        /// What is not the same.
        differences: Vec<String>,
    },
    /// Its first line is not a header.
    #[error("`{path}` is not a journal of this version")]
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
}

/// One finished call.
#[derive(Serialize, Deserialize)]
struct Record {
    /// Hash of the whole request.
    key: String,
    /// Where it belongs, for people who read the file.
    conversation: String,
    step: String,
    draw: u32,
    exchange: Exchange,
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    state: Mutex<State>,
    /// Cancelled when a line cannot be written: calls that cannot be recorded are not made.
    stop: CancellationToken,
    /// Lines that were found broken when it was opened.
    pub broken_lines: usize,
    /// Calls that were found finished when it was opened.
    pub found: usize,
}

/// Where the record of a key is: 16 bytes of the key's hash name it, since a long run has many.
type Index = HashMap<u128, (u64, u32)>;

/// The first half of a hexadecimal SHA-256.
fn short_key(key: &str) -> u128 {
    key.get(..32).and_then(|half| u128::from_str_radix(half, 16).ok()).unwrap_or_default()
}

#[derive(Debug)]
struct State {
    file: File,
    length: u64,
    index: Index,
    /// Calls written since it was opened.
    written: usize,
    error: Option<String>,
    seen: Seen,
}

/// What the calls of a run said about who answered.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Returned model ids by role and requested model.
    pub returned: BTreeMap<(Role, String), BTreeSet<String>>,
    /// Calls that were answered from a recording.
    pub replayed: u64,
}

impl Journal {
    /// Opens the journal of a run folder, or starts it.
    ///
    /// # Errors
    /// The machine refuses, another process has it, or it belongs to another plan.
    pub fn open(folder: &Path, plan: &PlanKey, stop: CancellationToken) -> Result<Self, JournalError> {
        let path = folder.join(FILE_NAME);
        let io = |source| JournalError::Io { path: path.clone(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse { path }),
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        let scanned = scan(&file).map_err(io)?;
        match &scanned.header {
            Some(header) if header.schema != SCHEMA => return Err(JournalError::NotAJournal { path }),
            Some(header) if header != plan => {
                let differences = header.differences(plan);
                return Err(JournalError::OtherPlan { path, differences });
            }
            Some(_) => {}
            None if scanned.index.is_empty() && scanned.broken_lines == 0 => {
                file.set_len(0).map_err(io)?;
            }
            None => return Err(JournalError::NotAJournal { path }),
        }
        // A torn last line is cut off, so that what is written next starts a line of its own.
        let mut length = if scanned.header.is_some() { scanned.intact } else { 0 };
        file.set_len(length).map_err(io)?;
        file.seek(SeekFrom::Start(length)).map_err(io)?;
        if scanned.header.is_none() {
            let line = serde_json::to_string(plan).map_err(|e| io(e.into()))?;
            let line = checked(&line);
            file.write_all(line.as_bytes()).map_err(io)?;
            length = line.len() as u64;
        }
        let found = scanned.index.len();
        let state =
            State { file, length, index: scanned.index, written: 0, error: None, seen: Seen::default() };
        Ok(Self { path, state: Mutex::new(state), stop, broken_lines: scanned.broken_lines, found })
    }

    /// The plan a run folder's journal belongs to, if it has a journal.
    pub fn plan_of(folder: &Path) -> Option<PlanKey> {
        let file = File::open(folder.join(FILE_NAME)).ok()?;
        let mut line = String::new();
        BufReader::new(file).read_line(&mut line).ok()?;
        serde_json::from_str(intact(line.strip_suffix('\n')?)?).ok()
    }

    /// Why nothing can be written any more.
    pub fn error(&self) -> Option<String> {
        self.lock().error.clone()
    }

    /// Who answered so far.
    pub fn seen(&self) -> Seen {
        self.lock().seen.clone()
    }

    fn see(&self, role: Role, identity: &ModelIdentity, exchange: &Exchange) {
        let mut state = self.lock();
        state.seen.replayed += u64::from(exchange.origin == Origin::Replayed);
        if let Some(model) = &exchange.model {
            let returned = state.seen.returned.entry((role, identity.name())).or_default();
            if !returned.contains(model) {
                returned.insert(model.clone());
            }
        }
    }

    /// Waits until the machine has the file on its disk.
    ///
    /// # Errors
    /// What the machine says.
    pub fn sync(&self) -> std::io::Result<()> {
        self.lock().file.sync_data()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lookup(&self, key: &str) -> Option<Exchange> {
        let mut state = self.lock();
        let (offset, length) = *state.index.get(&short_key(key))?;
        let mut bytes = vec![0; length as usize];
        state.file.seek(SeekFrom::Start(offset)).ok()?;
        let read = state.file.read_exact(&mut bytes);
        let end = state.length;
        state.file.seek(SeekFrom::Start(end)).ok()?;
        read.ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let record: Record = serde_json::from_str(intact(text.trim_end_matches('\n'))?).ok()?;
        (record.key == key).then_some(record.exchange)
    }

    fn append(&self, record: &Record) -> Result<(), String> {
        let line = serde_json::to_string(record).map_err(|error| error.to_string())?;
        let line = checked(&line);
        let mut state = self.lock();
        if let Some(error) = &state.error {
            return Err(error.clone());
        }
        if let Err(error) = state.file.write_all(line.as_bytes()) {
            let message = format!("`{}` cannot be written: {error}", self.path.display());
            state.error = Some(message.clone());
            self.stop.cancel();
            return Err(message);
        }
        let offset = state.length;
        state.length += line.len() as u64;
        let length = u32::try_from(line.len()).unwrap_or(u32::MAX);
        state.index.insert(short_key(&record.key), (offset, length));
        state.written += 1;
        Ok(())
    }

    /// Calls that were made and written since it was opened.
    pub fn written(&self) -> usize {
        self.lock().written
    }
}

fn checked(line: &str) -> String {
    let sum: String = sha256(line).chars().take(CHECKSUM).collect();
    format!("{sum} {line}\n")
}

/// The content of a line whose checksum holds.
fn intact(line: &str) -> Option<&str> {
    let (sum, content) = line.split_once(' ')?;
    (sum.len() == CHECKSUM && sha256(content).starts_with(sum)).then_some(content)
}

struct Scanned {
    header: Option<PlanKey>,
    index: Index,
    /// Bytes up to the end of the last whole line.
    intact: u64,
    broken_lines: usize,
}

fn scan(file: &File) -> std::io::Result<Scanned> {
    #[derive(Deserialize)]
    struct Key {
        key: String,
    }
    let mut scanned = Scanned { header: None, index: Index::new(), intact: 0, broken_lines: 0 };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut first = true;
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line)?;
        if length == 0 || line.last() != Some(&b'\n') {
            // Nothing more, or a line that was being written when the process died.
            break;
        }
        let offset = scanned.intact;
        scanned.intact += length as u64;
        let content = std::str::from_utf8(&line).ok().and_then(|text| intact(text.trim_end_matches('\n')));
        if std::mem::take(&mut first) {
            scanned.header = content.and_then(|content| serde_json::from_str(content).ok());
            if scanned.header.is_none() {
                scanned.broken_lines += 1;
            }
            continue;
        }
        match content.and_then(|content| serde_json::from_str::<Key>(content).ok()) {
            Some(Key { key }) => {
                scanned.index.insert(short_key(&key), (offset, u32::try_from(length).unwrap_or(u32::MAX)));
            }
            None => scanned.broken_lines += 1,
        }
    }
    Ok(scanned)
}

/// A model whose finished calls are kept in a journal and answered from it.
#[derive(Debug)]
pub struct Journaled {
    inner: Arc<dyn ChatModel>,
    journal: Arc<Journal>,
    meter: Arc<Meter>,
    stop: CancellationToken,
    /// Open conversations of which a part came from the journal, so that the other side may not know them.
    resumed: Mutex<HashSet<String>>,
}

/// The step of a record that holds the greeting of a stateful chatbot.
const OPEN: &str = "open";
/// The step of what makes the replies of a finished conversation worthless.
const CLOSE: &str = "close";

impl Journaled {
    /// Puts the journal in front of a model. Calls that it answers are metered as what they were: part of this run.
    /// `stop` ends new calls of this model.
    pub fn new(
        inner: Arc<dyn ChatModel>,
        journal: Arc<Journal>,
        meter: Arc<Meter>,
        stop: CancellationToken,
    ) -> Self {
        Self { inner, journal, meter, stop, resumed: Mutex::default() }
    }

    fn resumed(&self) -> MutexGuard<'_, HashSet<String>> {
        self.resumed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of what happens once in a conversation.
    fn conversation_key(&self, what: &str, conversation: &str) -> String {
        let identity = self.inner.identity();
        sha256_of_parts([what, &identity.provider, &identity.model, &identity.settings, conversation])
    }

    /// Everything that reaches the provider, and who the provider is.
    fn key(&self, request: &ChatRequest) -> String {
        let identity = self.inner.identity();
        let draw = request.id.draw.to_string();
        let scale = request.output_scale.to_string();
        let mut parts = vec![
            request.role.word(),
            &identity.provider,
            &identity.model,
            &identity.settings,
            &request.id.conversation,
            &request.id.step,
            &draw,
            &scale,
            request.system.as_deref().unwrap_or(""),
        ];
        for message in &request.messages {
            parts.push(match message.author {
                Author::User => "user",
                Author::Assistant => "assistant",
            });
            parts.push(&message.text);
        }
        parts.extend(request.answer.iter().flat_map(|answer| answer.options.iter().map(String::as_str)));
        sha256_of_parts(parts)
    }
}

impl ChatModel for Journaled {
    fn identity(&self) -> &ModelIdentity {
        self.inner.identity()
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        Box::pin(async move {
            let key = self.key(request);
            if let Some(exchange) = self.journal.lookup(&key) {
                if self.inner.opens() {
                    self.resumed().insert(request.id.conversation.clone());
                }
                self.journal.see(request.role, self.inner.identity(), &exchange);
                self.meter.record(request.role, self.inner.identity(), &request.id, &exchange);
                return Ok(exchange);
            }
            if self.stop.is_cancelled() || self.journal.stop.is_cancelled() {
                return Err(stopped(request, "the run was stopped".to_owned()));
            }
            let exchange = self.inner.reply(request).await.map_err(|error| {
                let begun = || self.resumed().contains(&request.id.conversation);
                let interrupted = error.failure == Failure::Restart && error.attempts == 0 && begun();
                if interrupted { ModelError { failure: Failure::Interrupted, ..error } } else { error }
            })?;
            let record = Record {
                key,
                conversation: request.id.conversation.clone(),
                step: request.id.step.clone(),
                draw: request.id.draw,
                exchange,
            };
            // A recorded exchange is what counts from here on; one that cannot be recorded could be paid twice.
            self.journal.append(&record).map_err(|message| stopped(request, message))?;
            self.journal.see(request.role, self.inner.identity(), &record.exchange);
            Ok(record.exchange)
        })
    }

    fn open<'a>(&'a self, conversation: &'a str) -> BoxFuture<'a, Result<Option<String>, ModelError>> {
        Box::pin(async move {
            if !self.inner.opens() {
                return self.inner.open(conversation).await;
            }
            let key = self.conversation_key(OPEN, conversation);
            if let Some(opened) = self.journal.lookup(&key) {
                // It is opened on the other side when the first message goes there, if one does.
                self.resumed().insert(conversation.to_owned());
                return Ok((opened.outcome == Outcome::Reply).then_some(opened.text));
            }
            let greeting = self.inner.open(conversation).await?;
            let outcome = if greeting.is_some() { Outcome::Reply } else { Outcome::Empty };
            let exchange = Exchange::bare(outcome, greeting.clone().unwrap_or_default());
            let (conversation, step) = (conversation.to_owned(), OPEN.to_owned());
            self.journal.append(&Record { key, conversation, step, draw: 1, exchange }).map_err(
                |message| ModelError {
                    role: Role::Candidate,
                    failure: Failure::Cancelled,
                    message,
                    attempts: 0,
                },
            )?;
            Ok(greeting)
        })
    }

    fn opens(&self) -> bool {
        self.inner.opens()
    }

    fn close<'a>(&'a self, conversation: &'a str) -> BoxFuture<'a, Result<(), ModelError>> {
        Box::pin(async move {
            self.resumed().remove(conversation);
            // Its replies are in the journal: that they are worth nothing must be too.
            let key = self.conversation_key(CLOSE, conversation);
            let failed =
                |failure, message| ModelError { role: Role::Candidate, failure, message, attempts: 0 };
            if let Some(spoiled) = self.journal.lookup(&key) {
                return Err(failed(Failure::Protocol, spoiled.text));
            }
            let Err(error) = self.inner.close(conversation).await else { return Ok(()) };
            let exchange = Exchange::bare(Outcome::Empty, error.message.clone());
            let (conversation, step) = (conversation.to_owned(), CLOSE.to_owned());
            self.journal
                .append(&Record { key, conversation, step, draw: 1, exchange })
                .map_err(|message| failed(Failure::Cancelled, message))?;
            Err(error)
        })
    }
}

fn stopped(request: &ChatRequest, message: String) -> ModelError {
    ModelError { role: request.role, failure: Failure::Cancelled, message, attempts: 0 }
}

#[cfg(test)]
mod tests;
