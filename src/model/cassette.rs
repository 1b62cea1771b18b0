//! Recording of exchanges and their replay, so that a run can be scored again without a network.
//!
//! A cassette is a file of JSON lines. Each line has the SHA-256 of everything that shaped the reply (identity of
//! the model with its settings, the whole request, which draw of it) and the exchange, redacted. Two draws of the
//! same request are two entries: a repeat is never answered from another one's reply.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::meter::Meter;
use super::text::Secrets;
use super::{ChatModel, ChatRequest, Exchange, Failure, ModelError, ModelIdentity, Origin, Role};

/// Version of the file's lines.
const SCHEMA: &str = "vera-gate/cassette/v1";

/// What a cassette is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CassetteMode {
    /// Call, and write down what comes back.
    Record,
    /// Never call: a request that was not recorded fails.
    Replay,
    /// Replay what is there, call and record the rest.
    Continue,
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn digest(text: impl AsRef<[u8]>) -> String {
    let hash = Sha256::digest(text.as_ref());
    hash.iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|nibble| char::from_digit(u32::from(nibble), 16))
        .collect()
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    schema: String,
    key: String,
    /// For the reader of the file; the key decides.
    role: Role,
    conversation: String,
    step: String,
    draw: u32,
    reply: Recorded,
}

/// What was recorded for a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Recorded {
    /// A reply.
    Exchange(Exchange),
    /// A conversation opened, with its greeting.
    Opened(Option<String>),
    /// What came out at the end of a conversation made its replies worthless.
    Spoiled(String),
}

/// A recording.
#[derive(Debug)]
pub struct Cassette {
    mode: CassetteMode,
    path: PathBuf,
    known: Mutex<BTreeMap<String, Recorded>>,
    file: Option<Mutex<File>>,
}

impl Cassette {
    /// Opens a file in a mode. Recording adds to what is there; a line that was cut at the end of a killed run is
    /// taken away.
    pub fn open(path: &Path, mode: CassetteMode) -> Result<Self, String> {
        let say = |error: &dyn std::fmt::Display| format!("cassette {}: {error}", path.display());
        // A device may have no end.
        if path.exists() && !path.is_file() {
            return Err(say(&"this is no file"));
        }
        let mut known = BTreeMap::new();
        let mut whole = 0;
        if mode == CassetteMode::Replay || path.exists() {
            let text = std::fs::read_to_string(path).map_err(|error| say(&error))?;
            for (index, line) in text.split_inclusive('\n').enumerate() {
                if !line.ends_with('\n') {
                    break;
                }
                whole += line.len();
                match serde_json::from_str::<Line>(line) {
                    _ if line.trim().is_empty() => {}
                    Ok(line) if line.schema == SCHEMA => drop(known.insert(line.key, line.reply)),
                    Ok(line) => {
                        return Err(say(&format!("line {}: unknown schema `{}`", index + 1, line.schema)));
                    }
                    Err(error) => return Err(say(&format!("line {}: {error}", index + 1))),
                }
            }
        }
        let file = match mode {
            CassetteMode::Replay => None,
            CassetteMode::Record | CassetteMode::Continue => {
                let file =
                    OpenOptions::new().create(true).append(true).open(path).map_err(|error| say(&error))?;
                file.set_len(u64::try_from(whole).unwrap_or(u64::MAX)).map_err(|error| say(&error))?;
                Some(Mutex::new(file))
            }
        };
        Ok(Self { mode, path: path.to_owned(), known: Mutex::new(known), file })
    }

    /// Its mode.
    pub fn mode(&self) -> CassetteMode {
        self.mode
    }

    /// How many replies it holds.
    pub fn len(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn find(&self, key: &str) -> Option<Recorded> {
        let replays = self.mode != CassetteMode::Record;
        replays.then(|| self.known.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()).flatten()
    }

    fn store(&self, line: &Line) -> Result<(), String> {
        if let Some(file) = &self.file {
            let mut text = serde_json::to_string(line).map_err(|error| error.to_string())?;
            text.push('\n');
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(|error| error.to_string())?;
        }
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(line.key.clone(), line.reply.clone());
        Ok(())
    }
}

/// A model behind a cassette.
#[derive(Debug)]
pub(crate) struct Recorder {
    identity: ModelIdentity,
    role: Role,
    /// Absent when only recordings are played.
    inner: Option<Arc<dyn ChatModel>>,
    cassette: Arc<Cassette>,
    secrets: Secrets,
    meter: Arc<Meter>,
}

impl Recorder {
    /// Puts a cassette before a model; without a model it only replays.
    pub(crate) fn new(
        (role, identity): (Role, ModelIdentity),
        inner: Option<Arc<dyn ChatModel>>,
        cassette: Arc<Cassette>,
        secrets: Secrets,
        meter: Arc<Meter>,
    ) -> Self {
        Self { identity, role, inner, cassette, secrets, meter }
    }

    fn key(&self, request: &ChatRequest) -> String {
        let messages: Vec<_> = request.messages.iter().map(|m| json!([m.author, &*m.text])).collect();
        // The question's tag and the cache group do not reach the model.
        let all = json!({
            "identity": self.identity,
            "id": request.id,
            "role": request.role,
            "system": request.system.as_deref(),
            "messages": messages,
            "answer": request.answer,
            "output_scale": request.output_scale,
        });
        digest(all.to_string())
    }

    fn opening_key(&self, conversation: &str) -> String {
        digest(json!({"identity": self.identity, "open": conversation}).to_string())
    }

    fn missing(&self, what: &str) -> ModelError {
        ModelError {
            role: self.role,
            failure: Failure::NotFound,
            message: format!("{what} is not in the recording {}", self.cassette.path.display()),
            attempts: 0,
        }
    }

    fn unwritten(&self, error: &str) -> ModelError {
        ModelError {
            role: self.role,
            failure: Failure::Storage,
            message: format!("the recording {} cannot be written: {error}", self.cassette.path.display()),
            attempts: 0,
        }
    }
}

impl ChatModel for Recorder {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        Box::pin(async move {
            let key = self.key(request);
            if let Some(Recorded::Exchange(exchange)) = self.cassette.find(&key) {
                let exchange = Exchange { origin: Origin::Replayed, ..exchange };
                self.meter.record(self.role, &self.identity, &request.id, &exchange);
                return Ok(exchange);
            }
            let what = format!("{} {} draw {}", request.id.conversation, request.id.step, request.id.draw);
            let inner = self.inner.as_ref().ok_or_else(|| self.missing(&what))?;
            let exchange = inner.reply(request).await?;
            let line = Line {
                schema: SCHEMA.to_owned(),
                key,
                role: self.role,
                conversation: request.id.conversation.clone(),
                step: request.id.step.clone(),
                draw: request.id.draw,
                reply: Recorded::Exchange(exchange.clone()),
            };
            self.cassette.store(&line).map_err(|error| self.unwritten(&error))?;
            Ok(exchange)
        })
    }

    fn open<'a>(&'a self, conversation: &'a str) -> BoxFuture<'a, Result<Option<String>, ModelError>> {
        Box::pin(async move {
            let key = self.opening_key(conversation);
            let recorded = self.cassette.find(&key);
            let Some(inner) = &self.inner else {
                return match recorded {
                    Some(Recorded::Opened(greeting)) => Ok(greeting),
                    _ => Err(self.missing(&format!("the start of {conversation}"))),
                };
            };
            // A conversation that goes on after the recorded part needs its session.
            let greeting = inner.open(conversation).await?.map(|text| self.secrets.redact_values(text));
            if let Some(Recorded::Opened(greeting)) = recorded {
                return Ok(greeting);
            }
            let line = Line {
                schema: SCHEMA.to_owned(),
                key,
                role: self.role,
                conversation: conversation.to_owned(),
                step: "open".to_owned(),
                draw: 1,
                reply: Recorded::Opened(greeting.clone()),
            };
            self.cassette.store(&line).map_err(|error| self.unwritten(&error))?;
            Ok(greeting)
        })
    }

    fn opens(&self) -> bool {
        self.inner.as_ref().is_none_or(|inner| inner.opens())
    }

    fn close<'a>(&'a self, conversation: &'a str) -> BoxFuture<'a, Result<(), ModelError>> {
        Box::pin(async move {
            let key = digest(json!({"identity": self.identity, "close": conversation}).to_string());
            let Some(inner) = &self.inner else {
                return match self.cassette.find(&key) {
                    Some(Recorded::Spoiled(message)) => {
                        Err(ModelError { role: self.role, failure: Failure::Protocol, message, attempts: 0 })
                    }
                    _ => Ok(()),
                };
            };
            let Err(error) = inner.close(conversation).await else { return Ok(()) };
            let line = Line {
                schema: SCHEMA.to_owned(),
                key,
                role: self.role,
                conversation: conversation.to_owned(),
                step: "close".to_owned(),
                draw: 1,
                reply: Recorded::Spoiled(self.secrets.redact_values(error.message.clone())),
            };
            self.cassette.store(&line).map_err(|error| self.unwritten(&error))?;
            Err(error)
        })
    }
}
