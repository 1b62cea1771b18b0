//! Refusing to run with secrets on files that a stranger wrote.
//!
//! `pull_request_target` and `workflow_run` give a workflow secrets and a token that can write, while the change
//! under review may come from a fork. If such a workflow checks that change out, the stranger's configuration decides
//! where the secrets go. So there, files count only when the checkout is the commit the event itself names as
//! trusted.

use std::path::Path;
use std::process::Command;

use super::context::ActionsContext;
use super::event::Event;

/// The checkout a file is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checkout {
    /// A git working tree at this commit.
    Commit(String),
    /// No git working tree, or git cannot tell: files of unknown origin, an unpacked artifact among them.
    Unknown,
}

/// What the person who wrote the workflow accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PwnRisk {
    /// Nothing: the default.
    #[default]
    Refused,
    /// `i-accept-pwn-risk: true`: strangers can read the secrets.
    Accepted,
}

/// Why the run is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "refusing to run: the `{event}` event gives this workflow secrets, and {what}. Whoever opened the pull request \
     would decide what is done with the secrets. Use `pull_request` for the first stage and `workflow_run` on the base \
     branch for the second (docs/github.md, \"Pull requests from forks\"); or, if you accept that strangers can read \
     your secrets, set `i-accept-pwn-risk: true`"
)]
pub struct UntrustedCheckout {
    event: String,
    what: String,
}

/// Refuses configuration, thresholds, rubric, personas and commands from an untrusted checkout.
///
/// To be called before a secret is read and before a provider is called.
pub fn check(context: &ActionsContext, checkout: &Checkout, risk: PwnRisk) -> Result<(), UntrustedCheckout> {
    if risk == PwnRisk::Accepted {
        return Ok(());
    }
    let foreign = match &context.event {
        Event::PullRequestTarget(pull) => pull.is_fork(),
        Event::WorkflowRun(run) => !run
            .head_repository
            .as_ref()
            .is_some_and(|r| r.eq_ignore_ascii_case(&context.repository.to_string())),
        _ => return Ok(()),
    };
    if !foreign {
        return Ok(());
    }
    let trusted = [Some(context.sha.as_str()), context.base_sha()];
    let what = match checkout {
        Checkout::Commit(commit) if trusted.contains(&Some(commit.as_str())) => return Ok(()),
        Checkout::Commit(commit) if commit == context.head_sha() => {
            "the files are those of a fork's pull request".to_owned()
        }
        Checkout::Commit(commit) => format!(
            "the files are at commit {}, which is neither {} nor the base of the pull request",
            crate::escape::unicode::clip(commit, 12),
            crate::escape::unicode::clip(&context.sha, 12)
        ),
        Checkout::Unknown => "the files are not in a checkout whose commit is known".to_owned(),
    };
    Err(UntrustedCheckout { event: context.event.name().to_owned(), what })
}

/// The checkout that a folder belongs to.
pub fn checkout_of(folder: &Path) -> Checkout {
    let output = Command::new("git").arg("-C").arg(folder).args(["rev-parse", "--verify", "HEAD"]).output();
    match output {
        Ok(output) if output.status.success() => {
            let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if commit.is_empty() { Checkout::Unknown } else { Checkout::Commit(commit) }
        }
        _ => Checkout::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::publish::context::tests::env;

    const HEAD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const BASE: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const SHA: &str = "3333333333333333333333333333333333333333";

    fn context(event: &str, head_repo: &str) -> ActionsContext {
        let payload = json!({
            "pull_request": {"number": 7, "head": {"sha": HEAD, "repo": {"full_name": head_repo}},
                "base": {"sha": BASE, "repo": {"full_name": "acme/bot"}}},
            "workflow_run": {"id": 1, "head_sha": HEAD, "event": "pull_request",
                "head_repository": {"full_name": head_repo}},
        });
        ActionsContext::from_env(&env(event), &payload).unwrap()
    }

    fn commit(sha: &str) -> Checkout {
        Checkout::Commit(sha.to_owned())
    }

    #[test]
    fn a_forks_checkout_with_secrets_is_refused() {
        for event in ["pull_request_target", "workflow_run"] {
            let context = context(event, "someone/bot");
            let error = check(&context, &commit(HEAD), PwnRisk::Refused).unwrap_err().to_string();
            assert!(error.contains(event) && error.contains("i-accept-pwn-risk: true"), "{error}");
            // The merge commit of the pull request holds the stranger's files too.
            assert!(check(&context, &commit(&"c".repeat(40)), PwnRisk::Refused).is_err());
            assert!(check(&context, &Checkout::Unknown, PwnRisk::Refused).is_err());
            assert!(check(&context, &commit(HEAD), PwnRisk::Accepted).is_ok());
        }
    }

    #[test]
    fn the_base_branch_is_trusted() {
        let target = context("pull_request_target", "someone/bot");
        assert!(check(&target, &commit(SHA), PwnRisk::Refused).is_ok());
        assert!(check(&target, &commit(BASE), PwnRisk::Refused).is_ok());
        assert!(check(&context("workflow_run", "someone/bot"), &commit(SHA), PwnRisk::Refused).is_ok());
    }

    #[test]
    fn events_without_secrets_and_own_branches_are_not_refused() {
        assert!(check(&context("pull_request", "someone/bot"), &commit(HEAD), PwnRisk::Refused).is_ok());
        assert!(check(&context("pull_request_target", "acme/bot"), &commit(HEAD), PwnRisk::Refused).is_ok());
        assert!(check(&context("workflow_run", "acme/bot"), &Checkout::Unknown, PwnRisk::Refused).is_ok());
    }

    #[test]
    fn a_folder_outside_of_git_is_unknown() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(checkout_of(&dir.path().join("absent")), Checkout::Unknown);
    }
}
