//! The one retry layer: every HTTP call of every wire goes through it.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::adapt::{self, Step};
use super::clock::Clock;
use super::context::{EventSink, ModelEvent};
use super::endpoint::Adapted;
use super::gate::{Gate, Refusal};
use super::meter::Meter;
use super::text::{Secrets, one_line};
use super::transport::{Complete, Transport};
use super::turnstile::{Pass, Turnstile};
use super::wire::{Answer, Fault, RawReply, Retry, WireCall};
use super::{Failure, ModelError, Role, Wanted};

/// Parameters that may be renamed or left out within one call before the request counts as refused.
const MOST_ADAPTATIONS: u32 = 6;
/// Shortest wait between two attempts.
const SHORTEST_WAIT: Duration = Duration::from_millis(250);

/// How often and how long a call may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Attempts after the first. Refusals of a call that was one of too many do not count, unless there are none.
    pub(crate) retries: u32,
    /// Longest wait that a server may ask for.
    pub(crate) longest_wait: Duration,
}

/// Whether the other side may get the same request twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It may.
    Harmless,
    /// It keeps the conversation itself: a second copy would be a second message.
    AddsMessage,
}

/// Where calls go, for messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) base: String,
    pub(crate) model: String,
    pub(crate) key_env: Option<String>,
}

/// Makes the calls of one role.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) role: Role,
    pub(crate) place: Place,
    pub(crate) transport: Transport,
    pub(crate) gate: Arc<Gate>,
    /// Calls of this role at the same time.
    pub(crate) slots: Arc<Turnstile>,
    /// Calls of all roles at the same time.
    pub(crate) calls: Arc<Turnstile>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) cancel: CancellationToken,
    pub(crate) clock: Clock,
    pub(crate) events: EventSink,
    pub(crate) secrets: Secrets,
    pub(crate) patience: Patience,
    pub(crate) memory: Mutex<Memory>,
}

/// What earlier calls of the role have taught.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    adapted: Adapted,
    /// No call can succeed any more, and why.
    dead: Option<(Failure, String)>,
}

/// A call that came back.
#[derive(Debug)]
pub(crate) struct Returned {
    pub(crate) answer: Answer,
    pub(crate) attempts: u32,
    pub(crate) headers: super::wire::Headers,
}

/// What one kind of call needs: how the request is made, how the reply is read.
pub(crate) struct Plan<'a> {
    pub(crate) build: &'a (dyn Fn(&Adapted) -> Result<WireCall, Fault> + Send + Sync),
    pub(crate) parse: &'a (dyn Fn(&RawReply, SystemTime) -> Result<Answer, Fault> + Send + Sync),
    pub(crate) complete: Option<Complete<'a>>,
    pub(crate) repeat: Repeat,
    /// How many messages of its conversation the call has behind it: fewer go first.
    pub(crate) behind: u32,
    /// Until when the call is wanted.
    pub(crate) wanted: Wanted,
}

/// One request and what came back.
struct Attempt {
    answer: Result<Answer, Fault>,
    raw: Option<RawReply>,
    /// The provider takes no more calls.
    refusal: Option<Refusal>,
}

impl Caller {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, failure: Failure, message: &str, attempts: u32) -> ModelError {
        let message = self.secrets.redact(message);
        let place = &self.place;
        let message = match failure {
            Failure::Auth => match &place.key_env {
                Some(name) => format!("{message} (key from {name}, at {})", place.base),
                None => format!("{message} (no key is configured, at {})", place.base),
            },
            Failure::Quota => match &place.key_env {
                Some(name) => format!("the account of {name} has no money or quota left: {message}"),
                None => format!("the account has no money or quota left: {message}"),
            },
            Failure::NotFound => format!("{message} (model `{}` at {})", place.model, place.base),
            _ => message,
        };
        ModelError { role: self.role, failure, message: one_line(&message, 500), attempts }
    }

    /// Makes one call: waits its turn, sends, reads, and tries again where that can help.
    pub(crate) async fn call(&self, plan: &Plan<'_>) -> Result<Returned, ModelError> {
        tokio::select! {
            () = self.cancel.cancelled() => Err(self.error(Failure::Cancelled, "the run was asked to stop", 0)),
            result = self.attempts(plan) => result,
        }
    }

    async fn attempts(&self, plan: &Plan<'_>) -> Result<Returned, ModelError> {
        let (mut attempts, mut failed, mut crowded, mut adaptations) = (0_u32, 0_u32, 0_u32, 0_u32);
        loop {
            if let Some((failure, message)) = self.memory().dead.clone() {
                return Err(self.error(failure, &message, attempts));
            }
            let adapted = self.memory().adapted.clone();
            let call = (plan.build)(&adapted)
                .map_err(|fault| self.error(fault.failure, &fault.message, attempts))?;
            let attempt = self.attempt(&call, plan, attempts).await?;
            let (fault, raw) = match attempt.answer {
                Ok(answer) => {
                    self.gate.succeeded();
                    let headers = attempt.raw.map(|raw| raw.headers).unwrap_or_default();
                    return Ok(Returned { answer, attempts: attempts + 1, headers });
                }
                Err(fault) => (fault, attempt.raw),
            };
            attempts += 1;
            if let Some(refusal) = &fault.refused_form
                && self.patience.retries > 0
                && adaptations < MOST_ADAPTATIONS
                && self.adapt(refusal, &call, &adapted)
            {
                adaptations += 1;
                continue;
            }
            let fault = Self::weigh(fault, raw.is_some(), plan.repeat);
            let most = match fault.retry {
                Retry::Never => 0,
                Retry::Allowed => self.patience.retries,
                Retry::Once => self.patience.retries.min(1),
            };
            let wait = wait_before(&fault, failed + crowded + 1);
            if fault.failure == Failure::Rate || fault.hint.after.is_some() {
                let now = self.clock.now();
                self.gate.hold(now.checked_add(wait).unwrap_or(now));
            }
            if most > 0 && attempt.refusal == Some(Refusal::InACrowd) {
                // Fewer go out from now on: that there were too many is no fault of this call.
                crowded += 1;
            } else if failed >= most {
                return Err(self.give_up(&fault, attempts));
            } else {
                failed += 1;
            }
            if wait > self.patience.longest_wait {
                let asked = fault.hint.after.unwrap_or(wait);
                let message = format!("{}; {}", fault.message, too_long(asked));
                return Err(self.give_up(&Fault { message, ..fault }, attempts));
            }
            if self.meter.time_left().is_some_and(|left| wait >= left) {
                let message = format!("{}; no time is left for another attempt", fault.message);
                return Err(self.error(Failure::Budget, &message, attempts));
            }
            self.events.send(ModelEvent::Retry {
                role: self.role,
                failure: fault.failure,
                message: one_line(&self.secrets.redact(&fault.message), 200),
                wait,
            });
            tokio::select! {
                () = self.clock.sleep(wait) => {}
                () = plan.wanted.over() => return Err(self.unwanted(attempts)),
            }
        }
    }

    /// A call that nobody needs any more does not go out.
    fn unwanted(&self, attempts: u32) -> ModelError {
        self.error(Failure::Cancelled, "not needed any more", attempts)
    }

    /// The permits of one request, in its turn.
    async fn permits(&self, plan: &Plan<'_>, attempts: u32) -> Result<(Pass, Pass, Pass), ModelError> {
        loop {
            // A wait holds no permit: it must not keep calls to other providers from going out.
            if let Some(left) = self.gate.held(self.clock.now()) {
                self.wait_for_gate(left, attempts).await?;
                continue;
            }
            let permits = (
                self.slots.enter(self.role, plan.behind).await,
                self.gate.place(self.role, plan.behind).await,
                self.calls.enter(self.role, plan.behind).await,
            );
            if self.gate.held(self.clock.now()).is_none() {
                return Ok(permits);
            }
        }
    }

    /// One request in its turn.
    async fn attempt(&self, call: &WireCall, plan: &Plan<'_>, attempts: u32) -> Result<Attempt, ModelError> {
        let (_slot, place, _call) = tokio::select! {
            biased;
            () = plan.wanted.over() => return Err(self.unwanted(attempts)),
            permits = self.permits(plan, attempts) => permits?,
        };
        let entered = self.gate.enter(place);
        if let Some(last) = self.gate.broken(self.clock.now()) {
            let message = format!("not called, because the last calls in a row failed: {last}");
            return Err(self.error(Failure::Overload, &message, attempts));
        }
        // Another worker may have learned in the meantime that no call can succeed.
        if let Some((failure, message)) = self.memory().dead.clone() {
            return Err(self.error(failure, &message, attempts));
        }
        let ticket =
            self.meter.admit(self.role).map_err(|message| self.error(Failure::Budget, &message, attempts))?;
        let sending = self.transport.send(call, &self.secrets, plan.complete);
        let sent = match self.meter.time_left() {
            None => sending.await,
            Some(left) => match timeout(left, sending).await {
                Ok(sent) => sent,
                Err(_) => {
                    let message = "the run's time was used up while a reply was awaited";
                    return Err(self.error(Failure::Budget, message, attempts + 1));
                }
            },
        };
        drop(ticket);
        let (answer, raw) = match sent {
            Ok(raw) => ((plan.parse)(&raw, self.clock.wall()), Some(raw)),
            Err(fault) => (Err(fault), None),
        };
        let refused =
            answer.as_ref().is_err_and(|fault| matches!(fault.failure, Failure::Rate | Failure::Overload));
        let refusal = refused.then(|| self.gate.narrow(&entered));
        Ok(Attempt { answer, raw, refusal })
    }

    async fn wait_for_gate(&self, left: Duration, attempts: u32) -> Result<(), ModelError> {
        if left > self.patience.longest_wait {
            return Err(self.error(Failure::Rate, &too_long(left), attempts));
        }
        if self.meter.time_left().is_some_and(|budget| left >= budget) {
            let message = "no time is left to wait for the provider's rate limit";
            return Err(self.error(Failure::Budget, message, attempts));
        }
        // Workers that waited together do not leave together.
        self.clock.sleep(left + jitter(SHORTEST_WAIT)).await;
        Ok(())
    }

    /// A message that a stateful chatbot may have taken is not sent again: the conversation starts anew.
    fn weigh(fault: Fault, answered: bool, repeat: Repeat) -> Fault {
        let taken = match fault.failure {
            Failure::Rate | Failure::Overload => !answered,
            Failure::Server | Failure::Timeout | Failure::Transport | Failure::Protocol => !fault.unsent,
            _ => false,
        };
        if repeat == Repeat::AddsMessage && taken {
            let message = format!("the chatbot may have taken the message: {}", fault.message);
            return Fault::new(Failure::Restart, message);
        }
        fault
    }

    fn give_up(&self, fault: &Fault, attempts: u32) -> ModelError {
        if fault.failure.stops_run() {
            self.memory().dead.get_or_insert_with(|| (fault.failure, fault.message.clone()));
        } else if fault.retry == Retry::Allowed {
            self.gate.failed(self.clock.now(), &one_line(&self.secrets.redact(&fault.message), 200));
        }
        let mut message = fault.message.clone();
        if fault.refused_form.as_deref().is_some_and(adapt::names_schema) {
            message.push_str(
                "; the schema is never dropped: for strict text answers set capabilities.schema to false",
            );
        }
        self.error(fault.failure, &message, attempts)
    }

    /// Changes what is sent; whether another try with the change makes sense.
    fn adapt(&self, refusal: &str, call: &WireCall, sent_with: &Adapted) -> bool {
        let Some(step) = adapt::step(refusal, &call.sent, sent_with) else { return false };
        let mut memory = self.memory();
        if memory.adapted != *sent_with {
            // Another worker has met the same refusal.
            return true;
        }
        let parameter = match step {
            Step::Renamed(field) => {
                memory.adapted.max_field = Some(field);
                None
            }
            Step::LeftOut(param) => {
                memory.adapted.left_out.insert(param);
                Some(param.word())
            }
        };
        drop(memory);
        let because = one_line(&self.secrets.redact(refusal), 200);
        if let Some(parameter) = parameter {
            self.events.send(ModelEvent::NotSent { role: self.role, parameter, because });
        }
        true
    }
}

fn too_long(wait: Duration) -> String {
    format!("the rate limit clears in {:.0} s, which is too long to wait", wait.as_secs_f64())
}

/// The server's hint and a little more, or exponential backoff with full jitter; overload waits longer.
fn wait_before(fault: &Fault, failed: u32) -> Duration {
    if let Some(after) = fault.hint.after {
        let after = after.max(SHORTEST_WAIT);
        return after.saturating_add(jitter(after.mul_f64(0.1).min(Duration::from_secs(2))));
    }
    let (first, most) = match fault.failure {
        Failure::Overload => (2.0, 60.0),
        _ => (1.0, 30.0),
    };
    let doublings = i32::try_from(failed.saturating_sub(1).min(16)).unwrap_or(16);
    let ceiling = f64::min(first * 2.0_f64.powi(doublings), most);
    jitter(Duration::from_secs_f64(ceiling)).max(SHORTEST_WAIT)
}

/// A random part of a duration.
fn jitter(most: Duration) -> Duration {
    // The standard library's hasher is seeded from the system's randomness, which is all that is needed here.
    let bits = RandomState::new().hash_one(0_u8) >> 11;
    most.mul_f64(bits as f64 / (1_u64 << 53) as f64)
}
