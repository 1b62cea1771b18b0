//! What started the workflow, read from GitHub's event payload.
//!
//! Payloads are read leniently as plain JSON: their shape depends on the event, on the server's version, and for
//! some deliveries on the trigger of the trigger, so a strict model would refuse valid ones.

use serde_json::Value;

/// The pull request an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// The commit under review. Not the merge commit that `GITHUB_SHA` names.
    pub head_sha: String,
    /// The branch under review.
    pub head_ref: String,
    /// `owner/name` the branch lives in; `None` when that repository was deleted.
    pub head_repository: Option<String>,
    /// The commit of the base branch.
    pub base_sha: String,
    /// The base branch.
    pub base_ref: String,
    /// `owner/name` of the base.
    pub base_repository: Option<String>,
    /// Who opened it.
    pub author: Option<String>,
    /// Names of its labels.
    pub labels: Vec<String>,
}

impl PullRequest {
    /// Whether the branch lives in another repository. A deleted or unknown one counts as another.
    pub fn is_fork(&self) -> bool {
        match (&self.head_repository, &self.base_repository) {
            (Some(head), Some(base)) => !head.eq_ignore_ascii_case(base),
            _ => true,
        }
    }

    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            number: value.get("number")?.as_u64()?,
            head_sha: text(value, "/head/sha")?,
            head_ref: text(value, "/head/ref").unwrap_or_default(),
            head_repository: text(value, "/head/repo/full_name"),
            base_sha: text(value, "/base/sha").unwrap_or_default(),
            base_ref: text(value, "/base/ref").unwrap_or_default(),
            base_repository: text(value, "/base/repo/full_name"),
            author: text(value, "/user/login"),
            labels: value
                .get("labels")
                .and_then(Value::as_array)
                .map(|labels| labels.iter().filter_map(|label| text(label, "/name")).collect())
                .unwrap_or_default(),
        })
    }
}

/// The workflow run that a `workflow_run` event follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRun {
    /// Its run id, under which its artifacts stand.
    pub id: u64,
    /// The commit it ran for.
    pub head_sha: String,
    /// The branch it ran for.
    pub head_branch: String,
    /// `owner/name` that commit came from.
    pub head_repository: Option<String>,
    /// What had started it, such as `pull_request`.
    pub event: String,
    /// Whether it succeeded, failed, or was cancelled.
    pub conclusion: Option<String>,
    /// Its pull requests. GitHub leaves this empty for forks.
    pub pull_requests: Vec<u64>,
}

/// What started the workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A pull request, in its own context.
    PullRequest(PullRequest),
    /// A pull request, in the context of the base branch, with secrets.
    PullRequestTarget(PullRequest),
    /// A merge queue asks for its checks.
    MergeGroup {
        /// The commit the queue would merge.
        head_sha: String,
        /// The commit it builds on.
        base_sha: String,
        /// The branch it would land on.
        base_ref: String,
    },
    /// Commits arrived on a branch or a tag.
    Push {
        /// The newest of them.
        after: String,
    },
    /// The clock.
    Schedule,
    /// A person, by hand.
    WorkflowDispatch,
    /// A release.
    Release {
        /// Its tag.
        tag: String,
    },
    /// Another workflow ended. Runs with secrets, in the context of the default branch.
    WorkflowRun(WorkflowRun),
    /// An event we have no rule for; treated as a push.
    Other(String),
}

/// A payload without the fields its event must have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the payload of the `{event}` event lacks {missing}")]
pub struct EventError {
    /// Name of the event.
    pub event: String,
    /// What it lacks.
    pub missing: &'static str,
}

impl Event {
    /// Reads the payload of the named event.
    pub fn read(name: &str, payload: &Value) -> Result<Self, EventError> {
        let lacks = |missing| EventError { event: name.to_owned(), missing };
        let pull = || {
            let mut pull = payload
                .get("pull_request")
                .and_then(PullRequest::read)
                .ok_or_else(|| lacks("a pull request with number and head commit"))?;
            if pull.base_repository.is_none() {
                pull.base_repository = text(payload, "/repository/full_name");
            }
            Ok(pull)
        };
        Ok(match name {
            "pull_request" => Self::PullRequest(pull()?),
            "pull_request_target" => Self::PullRequestTarget(pull()?),
            "merge_group" => Self::MergeGroup {
                head_sha: text(payload, "/merge_group/head_sha").ok_or_else(|| lacks("the head commit"))?,
                base_sha: text(payload, "/merge_group/base_sha").ok_or_else(|| lacks("the base commit"))?,
                base_ref: text(payload, "/merge_group/base_ref").unwrap_or_default(),
            },
            "push" => Self::Push { after: text(payload, "/after").unwrap_or_default() },
            "schedule" => Self::Schedule,
            "workflow_dispatch" => Self::WorkflowDispatch,
            "release" => {
                Self::Release { tag: text(payload, "/release/tag_name").ok_or_else(|| lacks("the tag"))? }
            }
            "workflow_run" => Self::WorkflowRun(WorkflowRun {
                id: payload
                    .pointer("/workflow_run/id")
                    .and_then(Value::as_u64)
                    .ok_or_else(|| lacks("the run id"))?,
                head_sha: text(payload, "/workflow_run/head_sha").ok_or_else(|| lacks("the head commit"))?,
                head_branch: text(payload, "/workflow_run/head_branch").unwrap_or_default(),
                head_repository: text(payload, "/workflow_run/head_repository/full_name"),
                event: text(payload, "/workflow_run/event").unwrap_or_default(),
                conclusion: text(payload, "/workflow_run/conclusion"),
                pull_requests: payload
                    .pointer("/workflow_run/pull_requests")
                    .and_then(Value::as_array)
                    .map(|pulls| pulls.iter().filter_map(|p| p.get("number")?.as_u64()).collect())
                    .unwrap_or_default(),
            }),
            other => Self::Other(other.to_owned()),
        })
    }

    /// The pull request, where the event carries one.
    pub fn pull_request(&self) -> Option<&PullRequest> {
        match self {
            Self::PullRequest(pull) | Self::PullRequestTarget(pull) => Some(pull),
            _ => None,
        }
    }

    /// GitHub's name of the event.
    pub fn name(&self) -> &str {
        match self {
            Self::PullRequest(_) => "pull_request",
            Self::PullRequestTarget(_) => "pull_request_target",
            Self::MergeGroup { .. } => "merge_group",
            Self::Push { .. } => "push",
            Self::Schedule => "schedule",
            Self::WorkflowDispatch => "workflow_dispatch",
            Self::Release { .. } => "release",
            Self::WorkflowRun(_) => "workflow_run",
            Self::Other(name) => name,
        }
    }
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pull(head_repo: &Value) -> Value {
        json!({"pull_request": {"number": 7, "head": {"sha": "aa", "ref": "feat", "repo": head_repo},
            "base": {"sha": "bb", "ref": "main", "repo": {"full_name": "acme/bot"}},
            "user": {"login": "dev"}, "labels": [{"name": "safety"}]},
            "repository": {"full_name": "acme/bot"}})
    }

    #[test]
    fn forks_are_another_repository_or_none() {
        let fork = |repo: Value| {
            Event::read("pull_request", &pull(&repo)).unwrap().pull_request().unwrap().is_fork()
        };
        assert!(fork(json!({"full_name": "someone/bot", "fork": true})));
        assert!(!fork(json!({"full_name": "Acme/Bot"})), "GitHub's names ignore case");
        assert!(fork(Value::Null), "the fork was deleted");
        // A repository that is itself a fork of something is no fork of itself.
        assert!(!fork(json!({"full_name": "acme/bot", "fork": true})));
    }

    #[test]
    fn labels_and_author_are_read() {
        let event = Event::read("pull_request_target", &pull(&Value::Null)).unwrap();
        let pull = event.pull_request().unwrap();
        assert_eq!((pull.labels.clone(), pull.author.as_deref()), (vec!["safety".to_owned()], Some("dev")));
    }

    #[test]
    fn a_merge_group_has_commits_and_no_pull_request() {
        let payload =
            json!({"merge_group": {"head_sha": "h", "base_sha": "b", "base_ref": "refs/heads/main"}});
        let event = Event::read("merge_group", &payload).unwrap();
        assert_eq!(
            event,
            Event::MergeGroup {
                head_sha: "h".into(),
                base_sha: "b".into(),
                base_ref: "refs/heads/main".into()
            }
        );
        assert_eq!(event.pull_request(), None);
    }

    #[test]
    fn a_payload_without_its_fields_is_an_error() {
        let error = Event::read("pull_request", &json!({})).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the payload of the `pull_request` event lacks a pull request with number and head commit"
        );
        assert!(Event::read("workflow_run", &json!({"workflow_run": {"id": 1}})).is_err());
        assert_eq!(Event::read("issue_comment", &json!({})).unwrap().name(), "issue_comment");
    }
}
