//! Shows what happens during a run: a bar on a terminal, a line now and then elsewhere, and JSON lines in a file.

use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::{Global, output};
use crate::error::Error;
use crate::model::Money;
use crate::model::meter::Meter;
use crate::sweep::conversation::NotHeld;
use crate::sweep::event::{Event, Listener};

/// How often a line is printed where there is no terminal.
const EVERY: Duration = Duration::from_secs(30);

/// Consumes the events of a run.
pub(super) struct Progress {
    bar: ProgressBar,
    meter: Arc<Meter>,
    state: Mutex<State>,
    events: Option<Mutex<File>>,
    lines: Lines,
}

/// Whether lines are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lines {
    /// The bar shows everything.
    Bar,
    /// There is no terminal: a line every half minute.
    Plain,
    /// Nothing.
    Quiet,
}

#[derive(Debug)]
struct State {
    conversations: usize,
    evaluations: usize,
    held: usize,
    failed: usize,
    judged: usize,
    started: Instant,
    last: Instant,
}

impl Progress {
    /// Starts showing. `events` is a file that takes every event as a line of JSON.
    pub(super) fn new(global: &Global, meter: Arc<Meter>, events: Option<&str>) -> Result<Self, Error> {
        let lines = if global.quiet {
            Lines::Quiet
        } else if std::io::stderr().is_terminal() {
            Lines::Bar
        } else {
            Lines::Plain
        };
        let bar = if lines == Lines::Bar { ProgressBar::new(0) } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} [{elapsed} < {eta}]") {
            bar.set_style(style);
        }
        let events = match events {
            Some(path) => {
                Some(Mutex::new(File::create(path).map_err(|error| Error::io(Path::new(path), error))?))
            }
            None => None,
        };
        let now = Instant::now();
        let state = State {
            conversations: 0,
            evaluations: 0,
            held: 0,
            failed: 0,
            judged: 0,
            started: now,
            last: now,
        };
        Ok(Self { bar, meter, state: Mutex::new(state), events, lines })
    }

    /// Shows where the run is, for the times in which nothing happens.
    pub(super) fn tick(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.show(&mut state);
    }

    fn show(&self, state: &mut State) {
        let status = self.status(state);
        self.bar.set_position((state.held + state.failed + state.judged) as u64);
        self.bar.set_message(status.clone());
        if self.lines == Lines::Plain && state.last.elapsed() >= EVERY {
            state.last = Instant::now();
            output::note(&status);
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn say(&self, text: &str) {
        match self.lines {
            Lines::Bar => self.bar.suspend(|| output::note(text)),
            Lines::Plain => output::note(text),
            Lines::Quiet => {}
        }
    }

    fn status(&self, state: &State) -> String {
        let (cost, unknown) = self.meter.spent();
        let requests = self.meter.requests();
        let seconds = state.started.elapsed().as_secs_f64().max(0.001);
        let cost = match unknown {
            0 => cost.to_string(),
            // What is not known is never shown as nothing.
            _ if cost == Money::ZERO => "cost not known".to_owned(),
            _ => format!("{cost} or more"),
        };
        let mut text = format!(
            "{} held, {} judged of {}, {} failed, {requests} requests ({:.1}/s), {cost}",
            state.held,
            state.judged,
            state.evaluations.max(state.conversations),
            state.failed,
            f64::from(u32::try_from(requests).unwrap_or(u32::MAX)) / seconds,
        );
        let done = state.held + state.failed + state.judged;
        let all = state.conversations + state.evaluations;
        if done > 0 && done < all {
            let left = seconds * (all - done) as f64 / done as f64;
            text.push_str(&format_left(left));
        }
        text
    }
}

fn format_left(seconds: f64) -> String {
    if seconds < 90.0 {
        format!(", about {seconds:.0} s left")
    } else {
        format!(", about {:.0} min left", seconds / 60.0)
    }
}

impl Listener for Progress {
    fn on(&self, event: &Event) {
        if let Some(file) = &self.events
            && let Ok(line) = serde_json::to_string(event)
        {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            // The event file is an extra: a full disk shows itself in the journal, which stops the run.
            let _lost = writeln!(file, "{line}");
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Planned { conversations, evaluations, found } => {
                state.conversations = *conversations;
                state.evaluations = *evaluations;
                self.bar.set_length((conversations + evaluations) as u64);
                if *found > 0 {
                    self.say(&format!(
                        "{found} finished steps are in the journal of this run and are not taken again"
                    ));
                }
            }
            Event::Held { .. } => state.held += 1,
            Event::NotHeld { conversation, why } => {
                state.failed += 1;
                // What ends the run has been said, once for all conversations that it ended.
                if !matches!(why, NotHeld::Failed { failure, .. } if failure.stops_run()) {
                    self.say(&format!("{conversation} was not held: {}", why.words()));
                }
            }
            Event::Restarted { conversation, attempt } => {
                self.say(&format!("{conversation} starts again (attempt {attempt})"));
            }
            Event::Judged { .. } => state.judged += 1,
            Event::Note { text } => self.say(text),
            Event::Stopping { why } => self.say(&format!("stopping: {why}")),
        }
        self.show(&mut state);
    }
}
