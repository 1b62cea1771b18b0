//! Where a result comes from: an allow-list, so that no address with a token, home path or variable can slip in.

use std::collections::BTreeMap;

use serde::Serialize;

use super::context::ActionsContext;

/// What a report may say about its origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// `owner/name`.
    pub repository: Option<String>,
    /// The reviewed commit.
    pub commit: Option<String>,
    /// Branch, tag or pull request.
    pub git_ref: Option<String>,
    /// Workflow run.
    pub run_id: Option<u64>,
    /// Its attempt.
    pub run_attempt: Option<u32>,
    /// Version of this program.
    pub tool_version: String,
    /// SHA-256 of rubric, personas, prompts, configuration, by name.
    pub hashes: BTreeMap<String, String>,
}

impl Provenance {
    /// The part that a workflow knows.
    pub fn of_workflow(context: &ActionsContext) -> Self {
        Self {
            repository: Some(context.repository.to_string()),
            commit: Some(context.head_sha().to_owned()),
            git_ref: (!context.git_ref.is_empty()).then(|| context.git_ref.clone()),
            run_id: Some(context.run_id),
            run_attempt: Some(context.run_attempt),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            hashes: BTreeMap::new(),
        }
    }
}

/// `owner/name` of a git remote. User, password and host are not part of it.
pub fn repository_of_remote(remote: &str) -> Option<String> {
    let remote = remote.trim().trim_end_matches('/');
    let path = match remote.split_once("://") {
        Some(("http" | "https" | "ssh" | "git", rest)) => rest.split_once('/')?.1,
        Some(_) => return None,
        // The short form of ssh: `user@host:path`. A path of this machine is nobody's business.
        None => remote.split_once(':').filter(|(host, _)| host.contains('@'))?.1,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = path.strip_suffix(".git").unwrap_or(path).trim_matches('/');
    let mut parts = path.rsplit('/');
    let (name, owner) = (parts.next()?, parts.next()?);
    super::context::Repository::parse(&format!("{owner}/{name}")).map(|repository| repository.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_lose_their_secrets() {
        for (remote, want) in [
            ("https://user:ghp_FAKE@github.com/acme/bot.git", Some("acme/bot")),
            ("https://github.com/acme/bot", Some("acme/bot")),
            ("git@github.com:acme/bot.git", Some("acme/bot")),
            ("ssh://git@ghe.example:22/acme/bot.git/", Some("acme/bot")),
            (
                "https://x-access-token:ghp_FAKE@github.com/acme/bot.git?token=ghp_FAKE#ghp_FAKE",
                Some("acme/bot"),
            ),
            ("/home/someone/bot.git", None),
            ("C:/Users/someone/bot", None),
            ("file:///home/someone/bot", None),
            ("https://github.com", None),
            ("", None),
        ] {
            assert_eq!(repository_of_remote(remote).as_deref(), want, "{remote}");
        }
    }
}
