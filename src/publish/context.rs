//! The GitHub Actions context, built once from the environment that the command line hands in.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use super::event::{Event, EventError};

/// Environment variables by name.
pub type Env = BTreeMap<String, String>;

/// A repository on the forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// User or organisation.
    pub owner: String,
    /// Name below it.
    pub name: String,
}

impl Repository {
    /// Reads `owner/name`, with the characters GitHub allows in them.
    pub fn parse(text: &str) -> Option<Self> {
        let (owner, name) = text.split_once('/')?;
        let valid = |part: &str| {
            !part.is_empty()
                && part != "."
                && part != ".."
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        (valid(owner) && valid(name)).then(|| Self { owner: owner.to_owned(), name: name.to_owned() })
    }
}

impl std::fmt::Display for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// Who can read a repository, and with it every comment, summary and check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Everybody.
    Public,
    /// Its members, or those of its organisation.
    Members,
    /// The event does not say.
    Unknown,
}

/// Where the runner takes what a step hands on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunnerFiles {
    /// `GITHUB_OUTPUT`.
    pub output: Option<PathBuf>,
    /// `GITHUB_STEP_SUMMARY`.
    pub summary: Option<PathBuf>,
}

/// What the process knows about the workflow it runs in. An allow-list: nothing else of the environment is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionsContext {
    /// Base of the REST interface, with the prefix of an Enterprise Server, without a slash at the end.
    pub api_url: String,
    /// Base of the web pages.
    pub server_url: String,
    /// The repository the workflow runs in.
    pub repository: Repository,
    /// Who can read the repository.
    pub audience: Audience,
    /// What started it.
    pub event: Event,
    /// `GITHUB_SHA`: for a pull request, a merge commit; see [`ActionsContext::head_sha`].
    pub sha: String,
    /// `GITHUB_REF`.
    pub git_ref: String,
    /// The run.
    pub run_id: u64,
    /// Its attempt, from 1.
    pub run_attempt: u32,
    /// Name of the workflow.
    pub workflow: String,
    /// Who started it.
    pub actor: String,
    /// Checkout of the repository.
    pub workspace: PathBuf,
    /// Output and summary files.
    pub files: RunnerFiles,
}

/// Why there is no context.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// A variable that every runner sets is not there or not usable.
    #[error("{name} is {problem}; GitHub's runner sets it")]
    Variable {
        /// Name of the variable.
        name: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The event file is not there.
    #[error("cannot read the event payload {path}: {source}")]
    Payload {
        /// Path of the file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The event file is not JSON.
    #[error("the event payload is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// The payload is not complete.
    #[error(transparent)]
    Event(#[from] EventError),
}

impl ActionsContext {
    /// Whether the environment is one of a GitHub workflow.
    pub fn is_present(env: &Env) -> bool {
        env.get("GITHUB_ACTIONS").is_some_and(|value| value == "true")
    }

    /// Reads the context, and the event payload from the file the environment names.
    pub fn load(env: &Env) -> Result<Self, ContextError> {
        let path = required(env, "GITHUB_EVENT_PATH")?;
        let payload = std::fs::read_to_string(path)
            .map_err(|source| ContextError::Payload { path: path.to_owned(), source })?;
        Self::from_env(env, &serde_json::from_str(&payload)?)
    }

    /// Reads the context from the environment and a payload.
    pub fn from_env(env: &Env, payload: &Value) -> Result<Self, ContextError> {
        let optional = |name: &str| env.get(name).cloned().unwrap_or_default();
        let number = |name: &'static str| {
            required(env, name)?
                .parse::<u64>()
                .ok()
                .ok_or(ContextError::Variable { name, problem: "not a number" })
        };
        let url = |name: &'static str, default: &str| {
            let url = env.get(name).filter(|url| !url.is_empty()).map_or(default, String::as_str);
            if url.starts_with("https://") || url.starts_with("http://") {
                Ok(url.trim_end_matches('/').to_owned())
            } else {
                Err(ContextError::Variable { name, problem: "not an http address" })
            }
        };
        let path = |name: &str| env.get(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        Ok(Self {
            api_url: url("GITHUB_API_URL", "https://api.github.com")?,
            server_url: url("GITHUB_SERVER_URL", "https://github.com")?,
            repository: Repository::parse(required(env, "GITHUB_REPOSITORY")?)
                .ok_or(ContextError::Variable { name: "GITHUB_REPOSITORY", problem: "not owner/name" })?,
            audience: match payload.pointer("/repository/private").and_then(Value::as_bool) {
                Some(false) => Audience::Public,
                Some(true) => Audience::Members,
                None => Audience::Unknown,
            },
            event: Event::read(required(env, "GITHUB_EVENT_NAME")?, payload)?,
            sha: required(env, "GITHUB_SHA")?.to_owned(),
            git_ref: optional("GITHUB_REF"),
            run_id: number("GITHUB_RUN_ID")?,
            // Old Enterprise Servers do not set the attempt.
            run_attempt: env.get("GITHUB_RUN_ATTEMPT").and_then(|n| n.parse().ok()).unwrap_or(1),
            workflow: optional("GITHUB_WORKFLOW"),
            actor: optional("GITHUB_ACTOR"),
            workspace: path("GITHUB_WORKSPACE").unwrap_or_else(|| PathBuf::from(".")),
            files: RunnerFiles { output: path("GITHUB_OUTPUT"), summary: path("GITHUB_STEP_SUMMARY") },
        })
    }

    /// The commit that people look at: a check on the merge commit of a pull request would not show there.
    pub fn head_sha(&self) -> &str {
        match &self.event {
            Event::PullRequest(pull) | Event::PullRequestTarget(pull) => &pull.head_sha,
            Event::MergeGroup { head_sha, .. } => head_sha,
            Event::WorkflowRun(run) => &run.head_sha,
            // A deleted branch pushes forty zeros.
            Event::Push { after } if !after.is_empty() && after.chars().any(|c| c != '0') => after,
            _ => &self.sha,
        }
    }

    /// The commit whose policy counts, when something is proposed to be merged.
    pub fn base_sha(&self) -> Option<&str> {
        let sha = match &self.event {
            Event::PullRequest(pull) | Event::PullRequestTarget(pull) => &pull.base_sha,
            Event::MergeGroup { base_sha, .. } => base_sha,
            _ => return None,
        };
        (!sha.is_empty()).then_some(sha)
    }

    /// Why the token can only read, where the event tells. GitHub takes write access and secrets from workflows of
    /// forks and of Dependabot.
    pub fn read_only_reason(&self) -> Option<&'static str> {
        match &self.event {
            Event::PullRequest(pull) if pull.is_fork() => Some("the pull request comes from a fork"),
            Event::PullRequest(_) | Event::Push { .. } if self.actor == "dependabot[bot]" => {
                Some("Dependabot started this workflow")
            }
            _ => None,
        }
    }

    /// Web page of this run and attempt.
    pub fn run_url(&self) -> String {
        format!(
            "{}/{}/actions/runs/{}/attempts/{}",
            self.server_url, self.repository, self.run_id, self.run_attempt
        )
    }
}

fn required<'a>(env: &'a Env, name: &'static str) -> Result<&'a str, ContextError> {
    match env.get(name) {
        Some(value) if !value.is_empty() => Ok(value),
        _ => Err(ContextError::Variable { name, problem: "not set" }),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// An environment as the runner makes it.
    pub(crate) fn env(event: &str) -> Env {
        [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_REPOSITORY", "acme/bot"),
            ("GITHUB_EVENT_NAME", event),
            ("GITHUB_SHA", "3333333333333333333333333333333333333333"),
            ("GITHUB_REF", "refs/pull/7/merge"),
            ("GITHUB_RUN_ID", "900"),
            ("GITHUB_RUN_ATTEMPT", "2"),
            ("GITHUB_ACTOR", "dev"),
            ("SECRET_TOKEN", "never kept"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    fn pull_request(head_repo: &str) -> Value {
        json!({"pull_request": {"number": 7, "head": {"sha": "aa", "repo": {"full_name": head_repo}},
            "base": {"sha": "bb", "ref": "main", "repo": {"full_name": "acme/bot"}}}})
    }

    #[test]
    fn the_head_is_the_reviewed_commit() {
        let context = |event: &str, payload: Value| ActionsContext::from_env(&env(event), &payload).unwrap();
        assert_eq!(context("pull_request", pull_request("acme/bot")).head_sha(), "aa");
        assert_eq!(context("pull_request", pull_request("acme/bot")).base_sha(), Some("bb"));
        let run = json!({"workflow_run": {"id": 5, "head_sha": "cc", "event": "pull_request"}});
        assert_eq!(context("workflow_run", run).head_sha(), "cc");
        let group = json!({"merge_group": {"head_sha": "dd", "base_sha": "ee"}});
        assert_eq!(context("merge_group", group).base_sha(), Some("ee"));
        assert_eq!(context("push", json!({"after": "ff"})).head_sha(), "ff");
        assert_eq!(
            context("push", json!({"after": "00000"})).head_sha(),
            "3333333333333333333333333333333333333333"
        );
        assert_eq!(context("schedule", json!({})).base_sha(), None);
    }

    #[test]
    fn read_only_tokens_are_foreseen() {
        let reason = |event: &str, repo: &str, actor: &str| {
            let mut env = env(event);
            env.insert("GITHUB_ACTOR".into(), actor.into());
            ActionsContext::from_env(&env, &pull_request(repo)).unwrap().read_only_reason()
        };
        assert!(reason("pull_request", "someone/bot", "dev").is_some());
        assert!(reason("pull_request", "acme/bot", "dependabot[bot]").is_some());
        assert_eq!(reason("pull_request", "acme/bot", "dev"), None);
        assert_eq!(reason("pull_request_target", "someone/bot", "dev"), None);
    }

    #[test]
    fn enterprise_servers_keep_their_prefix() {
        let mut env = env("schedule");
        env.insert("GITHUB_API_URL".into(), "https://ghe.example/api/v3/".into());
        env.insert("GITHUB_SERVER_URL".into(), "https://ghe.example".into());
        let context = ActionsContext::from_env(&env, &json!({})).unwrap();
        assert_eq!(context.api_url, "https://ghe.example/api/v3");
        assert_eq!(context.run_url(), "https://ghe.example/acme/bot/actions/runs/900/attempts/2");
    }

    #[test]
    fn nothing_of_the_environment_is_kept_by_accident() {
        let context = ActionsContext::from_env(&env("schedule"), &json!({})).unwrap();
        assert!(!format!("{context:?}").contains("never kept"));
    }

    #[test]
    fn broken_variables_are_named() {
        for (name, value) in
            [("GITHUB_REPOSITORY", "../x"), ("GITHUB_RUN_ID", "x"), ("GITHUB_API_URL", "ftp://x")]
        {
            let mut env = env("schedule");
            env.insert(name.to_owned(), value.to_owned());
            let error = ActionsContext::from_env(&env, &json!({})).unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
        }
    }
}
