//! A chatbot that is a local program: one JSON object a line on its standard input, one a line on its output.
//!
//! We write `{"conversation_id", "turn", "text", "history", "system"}`; the program answers with one line:
//! `{"text": "..."}`, with `"refusal": true` when it declined, or `{"error": "..."}`. Its standard error is kept
//! for messages. A program that ends is a failure, never an answer. A line that nobody asked for would file every
//! later reply under the wrong message, so it is looked for before each message and at the end of a conversation.

use std::collections::{BTreeMap, VecDeque};
use std::process::Stdio;
use std::sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::endpoint::author_word;
use super::http_endpoint::own_replies;
use super::provider::price;
use super::text::{Hidden, Secrets, one_line};
use super::turnstile::Turnstile;
use super::wire::{Answer, text_at};
use super::{
    ChatModel, ChatRequest, Exchange, Failure, ModelContext, ModelError, ModelIdentity, Outcome, Role, Usage,
};
use crate::config::model::{CommandLifetime, CommandSettings};

/// Longest line that is read.
const LONGEST_LINE: usize = 8 * 1024 * 1024;
/// Bytes of standard error that are kept.
const KEPT_ERRORS: usize = 2048;
/// Time a program has to end after its input is closed.
const GRACE: Duration = Duration::from_secs(2);
/// Time for words that a program says unasked when it starts.
const FIRST_WORDS: Duration = Duration::from_millis(100);
/// Time to see what is waiting already.
const GLANCE: Duration = Duration::from_millis(5);
/// Least time for a surplus line at the end of a conversation with a program that goes on.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// The only name under which a shared program is known.
const SHARED: &str = "";

/// The program.
#[derive(Debug)]
pub(crate) struct CommandModel {
    identity: ModelIdentity,
    role: Role,
    settings: CommandSettings,
    environment: Hidden<Vec<(String, String)>>,
    limit: Duration,
    secrets: Secrets,
    context: ModelContext,
    slots: Arc<Turnstile>,
    processes: SyncMutex<BTreeMap<String, Arc<Mutex<Process>>>>,
    /// Messages that were answered, by conversation.
    talked: SyncMutex<BTreeMap<String, u64>>,
    /// Why conversations that were under way with a shared program are worth nothing, by conversation.
    spoiled: SyncMutex<BTreeMap<String, ModelError>>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: Arc<SyncMutex<VecDeque<u8>>>,
    /// Fills `errors` until the program's standard error is closed.
    listening: Option<JoinHandle<()>>,
    /// It timed out or broke the protocol: what it writes next belongs to an earlier message.
    broken: bool,
    /// A message was sent to it.
    spoken_to: bool,
    /// A message was sent whose answer was not read.
    owes: bool,
    /// Its slowest answer: a line behind all others comes as late.
    slowest: Duration,
    /// Conversation and step of the latest message, and the answer. Another draw of it would be a second message.
    last: Option<(String, String, Answer)>,
}

impl CommandModel {
    pub(crate) fn new(
        identity: ModelIdentity,
        role: Role,
        settings: CommandSettings,
        environment: Vec<(String, String)>,
        (limit, permits): (Duration, u32),
        secrets: Secrets,
        context: &ModelContext,
    ) -> Self {
        let permits = usize::try_from(permits).unwrap_or(1);
        Self {
            identity,
            role,
            settings,
            environment: Hidden(environment),
            limit,
            secrets,
            context: context.clone(),
            slots: Turnstile::new(permits),
            processes: SyncMutex::default(),
            talked: SyncMutex::default(),
            spoiled: SyncMutex::default(),
        }
    }

    fn error(&self, failure: Failure, message: impl std::fmt::Display) -> ModelError {
        let message = one_line(&self.secrets.redact(&message.to_string()), 500);
        ModelError { role: self.role, failure, message, attempts: 1 }
    }

    fn name<'a>(&self, conversation: &'a str) -> &'a str {
        match self.settings.lifetime {
            CommandLifetime::PerConversation => conversation,
            CommandLifetime::Shared => SHARED,
        }
    }

    fn find(&self, name: &str) -> Option<Arc<Mutex<Process>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn forget(&self, name: &str) -> Option<Arc<Mutex<Process>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).remove(name)
    }

    fn spawn(&self, name: &str) -> Result<Arc<Mutex<Process>>, ModelError> {
        let Some((program, arguments)) = self.settings.argv.split_first() else {
            return Err(self.error(Failure::NotFound, "no program is named"));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // What programs need to start at all; everything else must be listed.
        for plain in ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "TEMP"] {
            if let Some(value) = self.context.env.get(plain) {
                command.env(plain, value);
            }
        }
        command.envs(self.environment.0.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        if let Some(directory) = &self.settings.directory {
            command.current_dir(self.context.base.join(directory));
        }
        let failed = |error: std::io::Error| {
            self.error(Failure::NotFound, format!("`{program}` cannot be started: {error}"))
        };
        let mut child = command.spawn().map_err(failed)?;
        let errors = Arc::new(SyncMutex::new(VecDeque::new()));
        let stderr = child.stderr.take();
        let listening = stderr.map(|stderr| tokio::spawn(keep_errors(stderr, Arc::clone(&errors))));
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = pipes else {
            return Err(self.error(Failure::Exited, "the program has no input or output"));
        };
        let process = Process {
            child,
            input: Some(input),
            output: BufReader::new(output),
            errors,
            listening,
            broken: false,
            spoken_to: false,
            owes: false,
            slowest: Duration::ZERO,
            last: None,
        };
        let process = Arc::new(Mutex::new(process));
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_owned(), Arc::clone(&process));
        Ok(process)
    }

    fn talked(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.talked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process for a message. One that is gone in the middle of a conversation took the conversation with it,
    /// and a conversation of an earlier run is known to none.
    fn process(&self, request: &ChatRequest) -> Result<Arc<Mutex<Process>>, ModelError> {
        let known = self.talked().get(&request.id.conversation).copied().unwrap_or(0);
        if own_replies(request) > known {
            let error =
                self.error(Failure::Restart, "the program does not know this conversation, or has ended");
            return Err(ModelError { attempts: 0, ..error });
        }
        let name = self.name(&request.id.conversation);
        self.find(name).map_or_else(|| self.spawn(name), Ok)
    }

    async fn exchange(&self, request: &ChatRequest) -> Result<Answer, ModelError> {
        let messages: Vec<Value> = request
            .messages
            .iter()
            .map(|message| json!({"role": author_word(message.author), "content": &*message.text}))
            .collect();
        let earlier = messages.len().saturating_sub(1);
        let line = json!({
            "conversation_id": request.id.conversation,
            "turn": earlier / 2 + 1,
            "text": request.messages.last().map(|message| &*message.text),
            "history": messages.iter().take(earlier).collect::<Vec<_>>(),
            "system": request.system.as_deref(),
        });
        let process = self.process(request)?;
        let mut process = process.lock().await;
        if let Some((conversation, step, answer)) = &process.last
            && request.id.draw > 1
            && *conversation == request.id.conversation
            && *step == request.id.step
        {
            return Ok(answer.clone());
        }
        let result = if process.broken || process.owes {
            Err(self.error(Failure::Restart, "the program did not answer an earlier message"))
        } else if let Some(unasked) = process.first_unasked().await {
            Err(self.spoil(&unasked))
        } else {
            match timeout(self.limit, process.talk(&line.to_string())).await {
                Ok(Ok(Some(reply))) => self.read(&reply, &request.id.conversation),
                Ok(Ok(None)) => Err(self.exited(&mut process, "closed its output").await),
                Ok(Err(error)) => Err(self.exited(&mut process, &error.to_string()).await),
                Err(_) => {
                    let message = format!("the program gave no answer within {} s", self.limit.as_secs_f64());
                    Err(self.error(Failure::Timeout, message))
                }
            }
        };
        if let Ok(answer) = &result {
            *self.talked().entry(request.id.conversation.clone()).or_default() += 1;
            process.last = Some((request.id.conversation.clone(), request.id.step.clone(), answer.clone()));
        }
        if result.as_ref().is_err_and(|error| error.failure != Failure::Server) {
            self.give_up(&mut process, &request.id.conversation);
        }
        result
    }

    /// Ends a process that cannot be believed any more, with the conversations that it knew.
    fn give_up(&self, process: &mut Process, conversation: &str) {
        process.broken = true;
        // Already ended is as good as killed.
        drop(process.child.start_kill());
        self.forget(self.name(conversation));
        match self.settings.lifetime {
            CommandLifetime::PerConversation => drop(self.talked().remove(conversation)),
            CommandLifetime::Shared => {
                let lost = self.error(
                    Failure::Restart,
                    "the program ended before it was seen that its answers were in order",
                );
                let told = std::mem::take(&mut *self.talked());
                let mut spoiled = self.spoiled();
                for other in told.into_keys() {
                    spoiled.entry(other).or_insert_with(|| lost.clone());
                }
            }
        }
    }

    /// Whatever the program said since it started may be an answer to something else: it counts for nobody who is
    /// under way.
    fn spoil(&self, line: &str) -> ModelError {
        let error = self.surplus(line);
        if self.settings.lifetime == CommandLifetime::Shared {
            let told = self.talked().keys().cloned().collect::<Vec<_>>();
            self.spoiled().extend(told.into_iter().map(|conversation| (conversation, error.clone())));
        }
        error
    }

    fn spoiled(&self) -> MutexGuard<'_, BTreeMap<String, ModelError>> {
        self.spoiled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn surplus(&self, line: &str) -> ModelError {
        let shown = one_line(line, 120);
        self.error(
            Failure::Protocol,
            format!(
                "the program wrote a line that nobody asked for: {shown}; it must write one line for each message and logs to standard error"
            ),
        )
    }

    async fn exited(&self, process: &mut Process, what: &str) -> ModelError {
        let status = timeout(GRACE, process.child.wait()).await;
        let status = match status {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "still running".to_owned(),
        };
        // Its last words may still be on their way; a child of its own may hold the line open.
        if let Some(listening) = process.listening.take() {
            drop(timeout(GRACE, listening).await);
        }
        let kept: Vec<u8> =
            process.errors.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let said = one_line(&String::from_utf8_lossy(&kept), 300);
        let said =
            if said.is_empty() { String::new() } else { format!("; its standard error ends with: {said}") };
        self.error(Failure::Exited, format!("the program {what} ({status}){said}"))
    }

    fn read(&self, line: &str, conversation: &str) -> Result<Answer, ModelError> {
        let value: Value = serde_json::from_str(line).map_err(|error| {
            let shown = one_line(line, 120);
            self.error(
                Failure::Protocol,
                format!("a line that is no JSON ({error}): {shown}; logs belong on standard error"),
            )
        })?;
        if let Some(other) = text_at(&value, "/conversation_id").filter(|id| *id != conversation) {
            let other = one_line(other, 80);
            return Err(self.error(
                Failure::Protocol,
                format!("the program answered for conversation `{other}` instead of `{conversation}`"),
            ));
        }
        if let Some(error) = value.get("error").filter(|error| !error.is_null()) {
            let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
            return Err(self.error(Failure::Server, format!("the program reports an error: {text}")));
        }
        let text = text_at(&value, "/text")
            .ok_or_else(|| self.error(Failure::Protocol, "the program's line has no `text`"))?;
        let mut answer = Answer::finished(text.to_owned(), None, None);
        if value.get("refusal").and_then(Value::as_bool) == Some(true) {
            answer.outcome = Outcome::Refusal;
        }
        let count = |name: &str| value.pointer(&format!("/usage/{name}")).and_then(Value::as_u64);
        if let (Some(input), Some(output)) = (count("input"), count("output")) {
            answer.usage = Some(Usage { input, output, ..Usage::default() });
        }
        answer.model = text_at(&value, "/model").map(str::to_owned);
        Ok(answer)
    }
}

impl Process {
    /// Something the program wrote before it is asked.
    async fn first_unasked(&mut self) -> Option<String> {
        let patience = if self.spoken_to { GLANCE } else { FIRST_WORDS };
        self.unasked(patience).await
    }

    /// Something the program wrote without being asked, if it does so in this time. Its end is none.
    async fn unasked(&mut self, patience: Duration) -> Option<String> {
        let look = async {
            loop {
                let bytes = self.output.fill_buf().await.ok()?;
                let shown = String::from_utf8_lossy(bytes).trim_start().to_owned();
                if !shown.is_empty() {
                    return Some(shown.lines().next().unwrap_or_default().to_owned());
                }
                let blank = bytes.len();
                if blank == 0 {
                    return None;
                }
                self.output.consume(blank);
            }
        };
        timeout(patience, look).await.ok().flatten()
    }

    async fn talk(&mut self, line: &str) -> std::io::Result<Option<String>> {
        let asked = Instant::now();
        self.spoken_to = true;
        self.owes = true;
        let answer = self.ask(line).await;
        self.owes = false;
        self.slowest = self.slowest.max(asked.elapsed());
        answer
    }

    async fn ask(&mut self, line: &str) -> std::io::Result<Option<String>> {
        if let Some(input) = &mut self.input {
            input.write_all(line.as_bytes()).await?;
            input.write_all(b"\n").await?;
            input.flush().await?;
        }
        loop {
            let mut bytes = Vec::new();
            let most = u64::try_from(LONGEST_LINE).unwrap_or(u64::MAX);
            let read = (&mut self.output).take(most).read_until(b'\n', &mut bytes).await?;
            if read == 0 || (!bytes.ends_with(b"\n") && read < LONGEST_LINE) {
                // An unfinished line is what a program leaves behind that died while it wrote.
                return Ok(None);
            }
            if !bytes.ends_with(b"\n") {
                return Err(std::io::Error::other("wrote a line of more than 8 MiB"));
            }
            let text =
                String::from_utf8(bytes).map_err(|error| std::io::Error::other(format!("wrote {error}")))?;
            if !text.trim().is_empty() {
                return Ok(Some(text));
            }
        }
    }
}

async fn keep_errors(mut stderr: ChildStderr, kept: Arc<SyncMutex<VecDeque<u8>>>) {
    let mut buffer = [0_u8; 1024];
    while let Ok(read) = stderr.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(buffer.iter().take(read));
        while kept.len() > KEPT_ERRORS {
            kept.pop_front();
        }
    }
}

impl ChatModel for CommandModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        Box::pin(async move {
            let work = async {
                let behind = request.behind();
                let _slot = self.slots.enter(self.role, behind).await;
                let _call = self.context.calls.enter(self.role, behind).await;
                if request.wanted.is_over() {
                    return Err(self.error(Failure::Cancelled, "not needed any more".to_owned()));
                }
                let _ticket = self
                    .context
                    .meter
                    .admit(self.role)
                    .map_err(|message| self.error(Failure::Budget, message))?;
                self.exchange(request).await
            };
            let time_is_up = async {
                match self.context.meter.time_left() {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            let answer = tokio::select! {
                () = time_is_up => Err(self.error(Failure::Budget, "the run's time is used up")),
                () = self.context.cancel.cancelled() => Err(self.error(Failure::Cancelled, "the run was asked to stop")),
                answer = work => answer,
            }?;
            let names = [answer.model.as_deref(), Some(self.identity.model.as_str()), None];
            let cost = price(&self.context.prices, &self.identity.provider, names, answer.usage.as_ref());
            let exchange = answer.into_exchange(cost, 1, &self.secrets);
            self.context.meter.record(self.role, &self.identity, &request.id, &exchange);
            Ok(exchange)
        })
    }

    fn open<'a>(&'a self, conversation: &'a str) -> BoxFuture<'a, Result<Option<String>, ModelError>> {
        Box::pin(async move {
            self.talked().remove(conversation);
            self.spoiled().remove(conversation);
            if self.settings.lifetime == CommandLifetime::PerConversation {
                // Dropping the earlier process ends it.
                drop(self.forget(conversation));
                self.spawn(conversation)?;
            }
            Ok(None)
        })
    }

    fn opens(&self) -> bool {
        true
    }

    fn close<'a>(&'a self, conversation: &'a str) -> BoxFuture<'a, Result<(), ModelError>> {
        Box::pin(async move {
            let talked = self.talked().remove(conversation);
            if let Some(error) = self.spoiled().remove(conversation) {
                return Err(error);
            }
            let shared = self.settings.lifetime == CommandLifetime::Shared;
            let name = self.name(conversation);
            let process = if shared { self.find(name) } else { self.forget(name) };
            let Some(process) = process else { return Ok(()) };
            let mut process = process.lock().await;
            // An answer that was not waited for is late, not surplus.
            let in_order = talked.is_some() && !process.owes && !process.broken;
            let slow = process.slowest.saturating_mul(2);
            let patience = if shared {
                slow.max(LAST_WORDS)
            } else {
                // The end of its input tells a well-behaved program to end; the others are killed on drop.
                drop(process.input.take());
                slow.max(GRACE)
            };
            let unasked =
                if in_order { process.unasked(patience.min(self.limit.max(GRACE))).await } else { None };
            if let Some(line) = unasked {
                let error = self.spoil(&line);
                self.give_up(&mut process, conversation);
                return Err(error);
            }
            if !shared {
                drop(timeout(GRACE, process.child.wait()).await);
            }
            Ok(())
        })
    }
}
