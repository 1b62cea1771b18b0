//! What a workflow without write access leaves for a second one that has it.
//!
//! The first stage runs on the fork's own workflow file, so its files prove nothing: the second stage believes a pull
//! request number only when the forge says that this pull request is at the commit the first stage ran for, and shows
//! the text of the first stage only as text.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::context::ActionsContext;
use super::event::WorkflowRun;
use super::forge::PullState;
use super::{Publication, Section, Word, size};
use crate::escape::markdown::{self, Markdown};
use crate::escape::unicode::clip;

/// The version of `pr.json`.
pub const SCHEMA: &str = "vera-gate/pr/v1";
const PULL_FILE: &str = "pr.json";
const COMMENT_FILE: &str = "comment.md";
/// Bytes of each file that are read.
const LONGEST: u64 = 256 * 1024;
/// Characters of the first stage's text that are shown.
const SHOWN: usize = 20_000;

/// The pull request of the first stage, by its own word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// [`SCHEMA`].
    pub schema: String,
    /// Number of the pull request.
    pub number: u64,
    /// Its commit.
    pub head_sha: String,
    /// The run of the first stage.
    pub run_id: u64,
    /// Its attempt.
    pub run_attempt: u32,
}

/// Why the files of the first stage are not used.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// A file cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// `pr.json` is not what we write.
    #[error("{PULL_FILE} is not of schema {SCHEMA}: {0}")]
    Unreadable(String),
    /// The claim is not true.
    #[error("{PULL_FILE} claims pull request {number}, but {what}: not publishing")]
    Untrue {
        /// The number it claims.
        number: u64,
        /// What speaks against it.
        what: &'static str,
    },
}

/// Writes `comment.md` and `pr.json` for the second stage. Without a pull request only the first.
pub fn write(
    folder: &Path,
    context: &ActionsContext,
    publication: &Publication,
) -> Result<(), HandoverError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| HandoverError::Io { path, source }
    };
    fs::create_dir_all(folder).map_err(io(folder))?;
    let comment = folder.join(COMMENT_FILE);
    let text = size::fit(publication, "", size::COMMENT).text;
    fs::write(&comment, text + "\n").map_err(io(&comment))?;
    if let Some(pull) = context.event.pull_request() {
        let claim = Claim {
            schema: SCHEMA.to_owned(),
            number: pull.number,
            head_sha: pull.head_sha.clone(),
            run_id: context.run_id,
            run_attempt: context.run_attempt,
        };
        let path = folder.join(PULL_FILE);
        let text =
            serde_json::to_string_pretty(&claim).map_err(|e| HandoverError::Unreadable(e.to_string()))?;
        fs::write(&path, text + "\n").map_err(io(&path))?;
    }
    Ok(())
}

/// Reads the claim of the first stage. It is not to be believed before [`Claim::verify`].
pub fn read_claim(folder: &Path) -> Result<Claim, HandoverError> {
    let text = read_limited(&folder.join(PULL_FILE))?;
    let claim: Claim = serde_json::from_str(&text).map_err(|e| HandoverError::Unreadable(e.to_string()))?;
    if claim.schema != SCHEMA {
        return Err(HandoverError::Unreadable(format!("it says {}", clip(&claim.schema, 40))));
    }
    Ok(claim)
}

impl Claim {
    /// Checks the claim against what GitHub itself says: the event of the second stage, and the pull request.
    pub fn verify(&self, run: &WorkflowRun, pull: &PullState) -> Result<(), HandoverError> {
        let untrue = |what| Err(HandoverError::Untrue { number: self.number, what });
        if run.head_sha != self.head_sha || run.id != self.run_id {
            return untrue("it names another run or commit than the one this workflow follows");
        }
        if pull.head_sha != run.head_sha {
            return untrue("that pull request is at another commit");
        }
        match (&pull.head_repository, &run.head_repository) {
            (Some(pull), Some(run)) if pull.eq_ignore_ascii_case(run) => Ok(()),
            _ => untrue("that pull request comes from another repository"),
        }
    }
}

/// What to publish of a first stage that ran without secrets: its text, shown as text. It says nothing about a verdict.
pub fn unverified(folder: &Path) -> Result<Publication, HandoverError> {
    let text = read_limited(&folder.join(COMMENT_FILE))?;
    let mut publication = Publication::short(
        Word::Inconclusive,
        "The run on the fork had no secrets, and its files could have been made by anyone. This is what it wrote; no \
         verdict follows from it.",
    );
    "Unverified result of a fork".clone_into(&mut publication.title);
    publication.sections.push(Section {
        name: "text of the fork's run".to_owned(),
        markdown: Markdown::trusted(format!(
            "<details><summary>Text of the fork's run</summary>\n\n{}\n</details>",
            markdown::code_block(&clip(&text, SHOWN))
        )),
        shorter: None,
        priority: 0,
    });
    Ok(publication)
}

fn read_limited(path: &Path) -> Result<String, HandoverError> {
    let io = |source| HandoverError::Io { path: path.to_owned(), source };
    // An unpacked artifact can hold a link to any file of the machine.
    if !fs::symlink_metadata(path).map_err(io)?.is_file() {
        return Err(io(io::Error::other("it is not a plain file")));
    }
    let mut text = String::new();
    let read = fs::File::open(path).map_err(io)?.take(LONGEST + 1).read_to_string(&mut text).map_err(io)?;
    if read as u64 > LONGEST {
        return Err(io(io::Error::other(format!("it is longer than {LONGEST} bytes"))));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::publish::context::tests::env;

    fn context() -> ActionsContext {
        let payload = json!({"pull_request": {"number": 7, "head": {"sha": "aa", "repo": {"full_name": "x/bot"}},
            "base": {"sha": "bb", "repo": {"full_name": "acme/bot"}}}});
        ActionsContext::from_env(&env("pull_request"), &payload).unwrap()
    }

    fn run(head_sha: &str, id: u64) -> WorkflowRun {
        WorkflowRun {
            id,
            head_sha: head_sha.into(),
            head_branch: "feat".into(),
            head_repository: Some("x/bot".into()),
            event: "pull_request".into(),
            conclusion: Some("success".into()),
            pull_requests: Vec::new(),
        }
    }

    fn pull(head_sha: &str, repository: &str) -> PullState {
        PullState { head_sha: head_sha.into(), head_repository: Some(repository.into()) }
    }

    #[test]
    fn a_claim_is_believed_only_with_the_forges_word() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &context(), &Publication::running()).unwrap();
        let claim = read_claim(dir.path()).unwrap();
        assert_eq!((claim.number, claim.run_id, claim.run_attempt), (7, 900, 2));
        claim.verify(&run("aa", 900), &pull("aa", "X/bot")).unwrap();
        assert!(claim.verify(&run("zz", 900), &pull("zz", "x/bot")).is_err(), "another commit");
        assert!(claim.verify(&run("aa", 901), &pull("aa", "x/bot")).is_err(), "another run");
        assert!(
            claim.verify(&run("aa", 900), &pull("cc", "x/bot")).is_err(),
            "another person's pull request"
        );
        assert!(claim.verify(&run("aa", 900), &pull("aa", "y/bot")).is_err(), "another repository");
    }

    #[test]
    fn the_text_of_a_fork_is_only_text() {
        let dir = tempfile::tempdir().unwrap();
        let text = "## \u{2705} Pass\n```\n</details>\n@acme/all <!-- vera-gate:default -->\n";
        fs::write(dir.path().join(COMMENT_FILE), text).unwrap();
        let publication = unverified(dir.path()).unwrap();
        assert_eq!(publication.word, Word::Inconclusive);
        let markdown = publication.sections[0].markdown.as_str();
        assert!(
            markdown.contains("\n````text\n## \u{2705} Pass\n```\n</details>\n@acme/all <\u{200B}!-- vera"),
            "{markdown}"
        );
    }

    #[test]
    fn strange_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read_claim(dir.path()).is_err());
        fs::write(
            dir.path().join(PULL_FILE),
            r#"{"schema":"other/v1","number":1,"head_sha":"a","run_id":1,"run_attempt":1}"#,
        )
        .unwrap();
        assert!(read_claim(dir.path()).unwrap_err().to_string().contains("other/v1"));
        fs::write(dir.path().join(COMMENT_FILE), "x".repeat(300_000)).unwrap();
        assert!(unverified(dir.path()).is_err());
    }
}
