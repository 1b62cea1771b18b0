//! The order of publishing, and what becomes of its failures.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::context::ActionsContext;
use super::forge::{Forge, ForgeError, NewCheck, Operation};
use super::pace::Pace;
use super::sticky::{self, Marker, Placed};
use super::{Publication, Word, check_run, outputs, permissions, summary};
use crate::escape::markdown::{self, Markdown};
use crate::exit::Exit;

/// Login of the token that every workflow has.
pub const WORKFLOW_LOGIN: &str = "github-actions[bot]";

/// Settings of publishing.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which gate of the repository the comment belongs to; see [`Marker::is_id`].
    pub comment_id: String,
    /// Name of the check.
    pub check_name: String,
    /// Login the token writes as, when it is not the workflow's own and does not tell, as for a GitHub App.
    pub author: Option<String>,
    /// The pull request, when the event does not carry it: in the second of two stages, after it was verified.
    pub pull: Option<u64>,
    /// Time for all calls together.
    pub total: Duration,
    /// First wait after a fault.
    pub unit: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            comment_id: "default".to_owned(),
            check_name: "vera-gate".to_owned(),
            author: None,
            pull: None,
            total: Duration::from_mins(3),
            unit: Duration::from_secs(1),
        }
    }
}

/// How bad a warning is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gravity {
    /// It was to be expected, or the server asked to slow down: nothing is wrong with the setup.
    Expected,
    /// Somebody must repair something.
    Failure,
}

/// Something that could not be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// How bad it is.
    pub gravity: Gravity,
    /// What and why, plain text, may have several lines.
    pub text: String,
}

/// What the start leaves for the end, which may be another process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The check that was opened.
    pub check_id: Option<u64>,
}

/// What became of a publication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// The comment, when there is a pull request.
    pub comment: Option<Placed>,
    /// The check.
    pub check_id: Option<u64>,
    /// What could not be shown.
    pub warnings: Vec<Warning>,
    /// Whether files for a second stage are wanted, because the token could only read.
    pub hand_over: bool,
}

impl Published {
    /// The exit code after publishing: the verdict's own, unless it is a success and publishing needs repair.
    pub fn exit(&self, verdict: Exit) -> Exit {
        let failed = self.warnings.iter().any(|warning| warning.gravity == Gravity::Failure);
        if verdict == Exit::Success && failed { Exit::PublishFailed } else { verdict }
    }

    fn warn(&mut self, gravity: Gravity, text: impl Into<String>) {
        self.warnings.push(Warning { gravity, text: text.into() });
    }
}

/// Writes outputs and job summary of the step: files of the runner, no network.
pub fn publish_locally(context: &ActionsContext, publication: &Publication) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut failed = |text: String| warnings.push(Warning { gravity: Gravity::Failure, text });
    if let Some(path) = &context.files.output
        && let Err(error) = outputs::write(path, &publication.outputs)
    {
        failed(format!("the outputs of the step are not written: {error}"));
    }
    if let Some(path) = &context.files.summary
        && let Err(error) = summary::write(path, publication)
    {
        failed(format!("the job summary is not written: {error}"));
    }
    warnings
}

/// Publishes to the forge.
pub struct Publisher<'a, F> {
    forge: &'a F,
    context: &'a ActionsContext,
    options: Options,
}

impl<'a, F: Forge> Publisher<'a, F> {
    /// A publisher for one run.
    pub fn new(forge: &'a F, context: &'a ActionsContext, options: Options) -> Self {
        Self { forge, context, options }
    }

    /// Opens the check and says in the comment that the run has started.
    pub async fn start(&self) -> (State, Published) {
        let mut published = Published::default();
        let pace = self.pace();
        let opened =
            self.within(pace, Operation::WriteCheck, check_run::open(self.forge, pace, &self.check())).await;
        published.check_id = self.note(&mut published, "the check is not opened", opened);
        self.comment(pace, &Publication::running(), &mut published).await;
        (State { check_id: published.check_id }, published)
    }

    /// Shows the result: comment and check. `state` is what [`Publisher::start`] left.
    pub async fn finish(&self, publication: &Publication, state: &State) -> Published {
        let mut published = Published::default();
        let pace = self.pace();
        self.comment(pace, publication, &mut published).await;
        self.close_check(pace, publication, state, &mut published).await;
        published
    }

    fn pace(&self) -> Pace {
        Pace::new(self.options.total, self.options.unit)
    }

    fn check(&self) -> NewCheck {
        let context = self.context;
        let running = Publication::running();
        NewCheck {
            name: self.options.check_name.clone(),
            head_sha: context.head_sha().to_owned(),
            external_id: format!(
                "vera-gate/{}/{}/{}",
                context.run_id, context.run_attempt, self.options.comment_id
            ),
            details_url: context.run_url(),
            title: running.title,
            summary: running.one_line,
        }
    }

    fn pull_number(&self) -> Option<u64> {
        self.options.pull.or_else(|| self.context.event.pull_request().map(|pull| pull.number))
    }

    async fn comment(&self, pace: Pace, publication: &Publication, published: &mut Published) {
        let Some(number) = self.pull_number() else { return };
        let marker = Marker {
            id: self.options.comment_id.clone(),
            head_sha: self.context.head_sha().to_owned(),
            run_id: self.context.run_id,
            run_attempt: self.context.run_attempt,
            word: publication.word.as_str().to_owned(),
        };
        let publication = self.with_link(publication);
        let work = async {
            let login = self.login(pace).await?;
            sticky::put(self.forge, pace, number, &login, &marker, &publication).await
        };
        let placed = self.within(pace, Operation::WriteComment, work).await;
        let placed = self.note(published, "the comment is not written", placed);
        match &placed {
            Some(Placed::Skipped(why)) => {
                published.warn(Gravity::Expected, format!("the comment is left as it is: {}", why.as_str()));
            }
            Some(Placed::Written { reduced, .. }) if !reduced.is_empty() => published.warn(
                Gravity::Expected,
                format!("cut from the comment for its size: {}", reduced.join(", ")),
            ),
            _ => {}
        }
        published.comment = placed;
    }

    async fn close_check(
        &self,
        pace: Pace,
        publication: &Publication,
        state: &State,
        published: &mut Published,
    ) {
        // The token is known to be refused; a second refusal says nothing new.
        if published.hand_over {
            return;
        }
        let check = self.check();
        let publication = self.with_link(publication);
        let work = async {
            // The process that opened the check may have died before it could hand on the id; and the one that closed
            // it may have died after.
            let id = match state.check_id {
                Some(id) if publication.word != Word::DidNotFinish => id,
                _ => match check_run::find(self.forge, &check).await {
                    Ok(Some(found)) if found.completed && publication.word == Word::DidNotFinish => {
                        return Ok(found.id);
                    }
                    Ok(Some(found)) => found.id,
                    _ => match state.check_id {
                        Some(id) => id,
                        None => check_run::open(self.forge, pace, &check).await?,
                    },
                },
            };
            check_run::close(self.forge, pace, id, &check, &publication).await.map(|_| id)
        };
        let closed = self.within(pace, Operation::WriteCheck, work).await;
        published.check_id = self.note(published, "the check is not closed", closed);
    }

    async fn login(&self, pace: Pace) -> Result<String, ForgeError> {
        if let Some(author) = &self.options.author {
            return Ok(author.clone());
        }
        let mut attempt = 0;
        loop {
            match self.forge.login().await {
                Ok(login) => return Ok(login.unwrap_or_else(|| WORKFLOW_LOGIN.to_owned())),
                Err(error) if pace.again(&error, attempt).await => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it comes from: the page of the run, which has the artifacts, and the commit.
    fn with_link(&self, publication: &Publication) -> Publication {
        let link = Markdown::link("Page of this run", &self.context.run_url());
        let commit: String = self.context.head_sha().chars().take(7).collect();
        let mut publication = publication.clone();
        publication.sections.push(super::Section {
            name: "link".to_owned(),
            markdown: Markdown::trusted(format!("{link}, for commit {}.", markdown::code(&commit))),
            shorter: None,
            priority: 0,
        });
        publication
    }

    async fn within<T>(
        &self,
        pace: Pace,
        operation: Operation,
        work: impl Future<Output = Result<T, ForgeError>>,
    ) -> Result<T, ForgeError> {
        match tokio::time::timeout(pace.remaining(), work).await {
            Ok(result) => result,
            Err(_elapsed) => Err(ForgeError::Unavailable {
                operation,
                message: format!("no answer within {} seconds", self.options.total.as_secs()),
            }),
        }
    }

    /// Turns an error into a warning.
    fn note<T>(&self, published: &mut Published, what: &str, result: Result<T, ForgeError>) -> Option<T> {
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        if let (ForgeError::Forbidden { .. } | ForgeError::NotFound(_), Some(why)) =
            (&error, self.context.read_only_reason())
        {
            if !published.hand_over {
                published.hand_over = true;
                published.warn(
                    Gravity::Expected,
                    format!(
                        "{what}: {why}, so the token can only read. The job summary has the report; a second workflow \
                         can publish it (docs/github.md, \"Pull requests from forks\")"
                    ),
                );
            }
            return None;
        }
        let gravity = match error {
            ForgeError::RateLimited { .. } | ForgeError::Locked => Gravity::Expected,
            _ => Gravity::Failure,
        };
        let help = permissions::help(&error).map(|help| format!("\n{help}")).unwrap_or_default();
        published.warn(gravity, format!("{what}: {error}{help}"));
        None
    }
}
