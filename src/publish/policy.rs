//! The policy of the base branch, and what a pull request would change in it.
//!
//! In a pull request the base branch's configuration, thresholds, rubric, personas and baseline decide; otherwise a
//! change could loosen the gate it has to pass. A change to them is shown in words on top of the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::forge::{Forge, ForgeError};
use crate::escape::markdown::{self, Markdown};
use crate::escape::unicode::clip;

/// Differences that are told one by one; the rest is counted.
const TOLD: usize = 12;
/// Characters of a value that are shown.
const VALUE: usize = 60;

/// Why a file of the base branch cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The path leaves the repository.
    #[error("{0} is not a path inside of the repository")]
    Path(String),
    /// The revision is not a commit id or a name git allows.
    #[error("{0} is not a revision")]
    Revision(String),
    /// git is not there or failed.
    #[error("git cannot read {path} at {revision}: {message}")]
    Git {
        /// The file.
        path: String,
        /// The commit.
        revision: String,
        /// What git said.
        message: String,
    },
    /// The file is not text.
    #[error("{0} is not UTF-8 text")]
    NotText(String),
    /// The forge failed.
    #[error(transparent)]
    Forge(#[from] ForgeError),
}

/// A text file at a commit of the checkout in `root`; `None` when the commit has no such file.
///
/// An error, such as a shallow checkout that lacks the commit, is never taken for an absent file.
pub fn from_git(root: &Path, revision: &str, path: &str) -> Result<Option<String>, PolicyError> {
    let path = relative(path)?;
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
    if revision.is_empty()
        || revision.starts_with('-')
        || revision.contains("..")
        || !revision.chars().all(valid)
    {
        return Err(PolicyError::Revision(revision.to_owned()));
    }
    let git = |arguments: &[&str]| {
        Command::new("git").arg("-C").arg(root).args(arguments).output().map_err(|e| PolicyError::Git {
            path: path.clone(),
            revision: revision.to_owned(),
            message: e.to_string(),
        })
    };
    let listed = git(&["ls-tree", "-z", "--full-tree", revision, "--", &path])?;
    if !listed.status.success() {
        return Err(PolicyError::Git {
            path,
            revision: revision.to_owned(),
            message: String::from_utf8_lossy(&listed.stderr).trim().to_owned(),
        });
    }
    if listed.stdout.is_empty() {
        return Ok(None);
    }
    let shown = git(&["cat-file", "blob", &format!("{revision}:{path}")])?;
    if !shown.status.success() {
        return Err(PolicyError::Git {
            path,
            revision: revision.to_owned(),
            message: String::from_utf8_lossy(&shown.stderr).trim().to_owned(),
        });
    }
    match String::from_utf8(shown.stdout) {
        Ok(text) => Ok(Some(text)),
        Err(_) => Err(PolicyError::NotText(path)),
    }
}

/// A text file at a commit, from the forge: for checkouts without the base branch's history.
pub async fn from_forge<F: Forge>(
    forge: &F,
    revision: &str,
    path: &str,
) -> Result<Option<String>, PolicyError> {
    let path = relative(path)?;
    Ok(forge.file(&path, revision).await?)
}

/// A text file at a commit, from the checkout, or from the forge when the checkout lacks the commit. `None` only when
/// one of them says that the commit has no such file.
pub async fn base_file<F: Forge>(
    root: &Path,
    forge: Option<&F>,
    revision: &str,
    path: &str,
) -> Result<Option<String>, PolicyError> {
    match (from_git(root, revision, path), forge) {
        (Err(PolicyError::Git { .. }), Some(forge)) => from_forge(forge, revision, path).await,
        (result, _) => result,
    }
}

/// The path with `/` between its parts, if it stays inside of the repository.
fn relative(path: &str) -> Result<String, PolicyError> {
    let slashed = path.replace('\\', "/");
    let parts: Vec<&str> = slashed.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if slashed.starts_with('/')
        || parts.is_empty()
        || parts.iter().any(|p| *p == ".." || p.contains([':', '\0']))
    {
        return Err(PolicyError::Path(path.to_owned()));
    }
    Ok(parts.join("/"))
}

/// What kind of policy a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyFile {
    /// The configuration.
    Config,
    /// The thresholds.
    Thresholds,
    /// The rubric.
    Rubric,
    /// The personas.
    Personas,
    /// A prompt or the manifest of the target.
    Prompts,
    /// The baseline.
    Baseline,
}

impl PolicyFile {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "configuration",
            Self::Thresholds => "thresholds",
            Self::Rubric => "rubric",
            Self::Personas => "personas",
            Self::Prompts => "prompts",
            Self::Baseline => "baseline",
        }
    }
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Settings, as their YAML or JSON reads.
    Settings(Value),
    /// Rows of a table, by the value of their first column.
    Rows(BTreeMap<String, String>),
    /// Other text.
    Text(String),
}

/// What a pull request changes in one file of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyChange {
    /// The kind of file.
    pub file: PolicyFile,
    /// Its path.
    pub path: String,
    /// The differences, plain text, at most a dozen and a count.
    pub words: Vec<String>,
}

/// Compares a file of the base branch with the pull request's. `None` when they say the same.
pub fn compare(
    file: PolicyFile,
    path: &str,
    base: Option<&Content>,
    head: Option<&Content>,
) -> Option<PolicyChange> {
    let mut words = match (base, head) {
        (None, None) => return None,
        (None, Some(_)) => vec!["the file is new; the base branch has none".to_owned()],
        (Some(_), None) => vec!["the file is removed".to_owned()],
        (Some(Content::Settings(base)), Some(Content::Settings(head))) => settings(base, head),
        (Some(Content::Rows(base)), Some(Content::Rows(head))) => rows(base, head),
        (Some(Content::Text(base)), Some(Content::Text(head))) => lines(base, head),
        (Some(_), Some(_)) => vec!["the file has another format".to_owned()],
    };
    if words.is_empty() {
        return None;
    }
    if words.len() > TOLD {
        let more = words.len() - TOLD;
        words.truncate(TOLD);
        words.push(format!("and {more} more"));
    }
    Some(PolicyChange { file, path: path.to_owned(), words })
}

fn settings(base: &Value, head: &Value) -> Vec<String> {
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    flatten("", base, &mut before);
    flatten("", head, &mut after);
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    keys.into_iter()
        .filter_map(|key| match (before.get(key), after.get(key)) {
            (Some(old), Some(new)) if old == new => None,
            (Some(old), Some(new)) => Some(format!("{key}: {old} \u{2192} {new}")),
            (Some(old), None) => Some(format!("{key}: removed (was {old})")),
            (None, Some(new)) => Some(format!("{key}: added ({new})")),
            (None, None) => None,
        })
        .collect()
}

/// One entry for each leaf. Entries of a list are named by their `id` or `name`, so that inserting one does not
/// look like changing all behind it.
fn flatten(prefix: &str, value: &Value, out: &mut BTreeMap<String, String>) {
    let join = |key: &str| if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, inner) in map {
                flatten(&join(key), inner, out);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (i, inner) in list.iter().enumerate() {
                let name = ["id", "name"].iter().find_map(|key| inner.get(key)?.as_str());
                let key = name.map_or_else(|| format!("[{i}]"), |name| format!("[{name}]"));
                // Two entries of one name would hide each other.
                let key = if out.keys().any(|k| k.starts_with(&format!("{}.", join(&key)))) {
                    format!("{key}#{i}")
                } else {
                    key
                };
                flatten(&join(&key), inner, out);
            }
        }
        leaf => {
            out.insert(prefix.to_owned(), clip(&leaf.to_string(), VALUE).into_owned());
        }
    }
}

fn rows(base: &BTreeMap<String, String>, head: &BTreeMap<String, String>) -> Vec<String> {
    let name = |key: &str| clip(key, VALUE).into_owned();
    let mut words = Vec::new();
    for (key, row) in base {
        match head.get(key) {
            None => words.push(format!("row {}: removed", name(key))),
            Some(new) if new != row => words.push(format!("row {}: changed", name(key))),
            Some(_) => {}
        }
    }
    words.extend(
        head.keys().filter(|key| !base.contains_key(*key)).map(|key| format!("row {}: added", name(key))),
    );
    words
}

fn lines(base: &str, head: &str) -> Vec<String> {
    if base == head {
        return Vec::new();
    }
    let count = |text: &str| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for line in text.lines() {
            *counts.entry(line.trim_end().to_owned()).or_default() += 1;
        }
        counts
    };
    let missing = |from: &BTreeMap<String, usize>, of: &BTreeMap<String, usize>| -> usize {
        of.iter().map(|(line, n)| n.saturating_sub(from.get(line).copied().unwrap_or(0))).sum()
    };
    let (before, after) = (count(base), count(head));
    match (missing(&after, &before), missing(&before, &after)) {
        (0, 0) => vec!["order of lines or white space changed".to_owned()],
        (removed, added) => vec![format!("{removed} lines removed, {added} lines added")],
    }
}

/// The banner for the top of the report; empty when nothing changed.
pub fn banner(changes: &[PolicyChange]) -> Markdown {
    if changes.is_empty() {
        return Markdown::default();
    }
    let mut text = String::from(
        "> [!WARNING]\n> **Policy changed.** This pull request changes the rules it is judged by. It was judged by \
         those of the base branch.\n",
    );
    for change in changes {
        let _infallible = writeln!(text, "> - {} {}", change.file.as_str(), markdown::code(&change.path));
        for words in &change.words {
            let _infallible = writeln!(text, ">   - {}", markdown::inline(words));
        }
    }
    Markdown::trusted(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(base: &Value, head: &Value) -> Vec<String> {
        let (base, head) = (Content::Settings(base.clone()), Content::Settings(head.clone()));
        compare(PolicyFile::Thresholds, "t.yaml", Some(&base), Some(&head))
            .map(|c| c.words)
            .unwrap_or_default()
    }

    #[test]
    fn settings_are_compared_key_by_key() {
        let base = json!({"version": 1, "defaults": {"max_harm_rate": 0.0}, "baseline": {"min_n": 10}});
        let head = json!({"defaults": {"max_harm_rate": 1.0}, "version": 1});
        assert_eq!(
            words(&base, &head),
            ["baseline.min_n: removed (was 10)", "defaults.max_harm_rate: 0.0 \u{2192} 1.0"]
        );
        assert_eq!(words(&base, &base), Vec::<String>::new());
    }

    #[test]
    fn entries_of_a_list_are_found_by_name() {
        let base = json!({"rules": [{"id": "a", "max": 0}, {"id": "b", "max": 1}]});
        let head = json!({"rules": [{"id": "new", "max": 5}, {"id": "a", "max": 0}, {"id": "b", "max": 2}]});
        assert_eq!(
            words(&base, &head),
            ["rules.[b].max: 1 \u{2192} 2", "rules.[new].id: added (\"new\")", "rules.[new].max: added (5)"]
        );
        // A second entry of the same name is not lost.
        let twice = json!({"rules": [{"id": "a", "max": 0}, {"id": "a", "max": 9}, {"id": "b", "max": 1}]});
        assert!(!words(&base, &twice).is_empty());
    }

    #[test]
    fn a_new_or_removed_file_is_a_change() {
        let content = Content::Text("x".into());
        let change = |base, head| compare(PolicyFile::Rubric, "r.tsv", base, head);
        assert_eq!(
            change(None, Some(&content)).unwrap().words,
            ["the file is new; the base branch has none"]
        );
        assert_eq!(change(Some(&content), None).unwrap().words, ["the file is removed"]);
        assert_eq!(change(None, None), None);
        assert_eq!(change(Some(&content), Some(&content)), None);
    }

    #[test]
    fn rows_and_lines_are_counted() {
        let rows = |pairs: &[(&str, &str)]| {
            Content::Rows(pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect())
        };
        let (base, head) = (rows(&[("1", "a"), ("2", "b")]), rows(&[("2", "c"), ("3", "d")]));
        let change = compare(PolicyFile::Personas, "p.tsv", Some(&base), Some(&head)).unwrap();
        assert_eq!(change.words, ["row 1: removed", "row 2: changed", "row 3: added"]);
        assert_eq!(lines("a\nb\nb\n", "b\nc\nd\n"), ["2 lines removed, 2 lines added"]);
        assert_eq!(lines("a\nb\n", "b\na\n"), ["order of lines or white space changed"]);
    }

    #[test]
    fn many_differences_are_counted() {
        let head: Value =
            (0..20).map(|i| (format!("k{i:02}"), json!(i))).collect::<serde_json::Map<_, _>>().into();
        let told = words(&json!({"k00": 0}), &head);
        assert_eq!((told.len(), told.last().map(String::as_str)), (13, Some("and 7 more")));
    }

    #[test]
    fn the_banner_names_files_and_differences() {
        let change = PolicyChange {
            file: PolicyFile::Thresholds,
            path: "thresholds.yaml".into(),
            words: vec!["a.max: 0 \u{2192} 1 @team".into()],
        };
        let banner = banner(&[change]).into_string();
        assert!(banner.starts_with("> [!WARNING]\n> **Policy changed.**"));
        assert!(
            banner.contains("> - thresholds `thresholds.yaml`\n>   - a.max: 0 \u{2192} 1 @\u{200B}team\n"),
            "{banner}"
        );
        assert!(super::banner(&[]).is_empty());
    }

    #[test]
    fn paths_stay_inside_of_the_repository() {
        assert_eq!(relative("./conf//t.yaml").unwrap(), "conf/t.yaml");
        for bad in ["/etc/passwd", "../x", "a/../../x", "", ".", "C:x", "\\x"] {
            assert!(relative(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn files_come_from_the_commit_and_not_from_the_working_tree() {
        let dir = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let output = Command::new("git")
                .arg("-C")
                .arg(dir.path())
                .args([
                    "-c",
                    "user.name=t",
                    "-c",
                    "user.email=t@example.org",
                    "-c",
                    "init.defaultBranch=main",
                ])
                .args(arguments)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        git(&["init", "-q"]);
        std::fs::create_dir(dir.path().join("conf")).unwrap();
        std::fs::write(dir.path().join("conf/t.yaml"), "max: 0\n").unwrap();
        git(&["add", "."]);
        git(&["commit", "-qm", "base"]);
        let base = git(&["rev-parse", "HEAD"]);
        std::fs::write(dir.path().join("conf/t.yaml"), "max: 1\n").unwrap();

        assert_eq!(from_git(dir.path(), &base, "conf/t.yaml").unwrap().as_deref(), Some("max: 0\n"));
        assert_eq!(from_git(dir.path(), &base, "conf/absent.yaml").unwrap(), None);
        // A commit that is not there is an error, or a shallow checkout would look like a base without policy.
        assert!(matches!(from_git(dir.path(), &"e".repeat(40), "conf/t.yaml"), Err(PolicyError::Git { .. })));
        assert!(matches!(from_git(dir.path(), "--output=x", "conf/t.yaml"), Err(PolicyError::Revision(_))));
        assert!(
            matches!(from_git(dir.path(), &base, "conf"), Err(PolicyError::Git { .. })),
            "a folder is no file"
        );
    }
}
