//! A commit read through git.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use super::{PolicyError, is_commit_id};
use crate::source::{CommitReader, Entry};

/// A commit of a checkout, read object by object. Links inside of the repository are followed, as the checkout would.
#[derive(Clone, Debug)]
pub struct GitCommit {
    root: PathBuf,
    revision: String,
}

impl GitCommit {
    /// A commit of the repository in `root`.
    ///
    /// # Errors
    /// When it is not there: a shallow checkout holds little more than the commit under test.
    pub fn open(root: &Path, revision: &str) -> Result<Self, PolicyError> {
        if !is_commit_id(revision) {
            return Err(PolicyError::Revision(revision.to_owned()));
        }
        let found = run(root, &["cat-file", "-e", &format!("{revision}^{{tree}}")], None)?;
        if found.status.success() {
            Ok(Self { root: root.to_owned(), revision: revision.to_owned() })
        } else {
            Err(PolicyError::Absent { root: root.display().to_string() })
        }
    }

    /// What stands at the path, or what it is a link to.
    fn object(&self, path: &str) -> Result<Option<Entry>, String> {
        let name = format!("{}:{path}\n", self.revision);
        let output = run(&self.root, &["cat-file", "--batch", "--follow-symlinks"], Some(name.as_bytes()))
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(stderr(&output));
        }
        let mut parts = output.stdout.splitn(2, |byte| *byte == b'\n');
        let head = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        let body = parts.next().unwrap_or_default();
        let words: Vec<&str> = head.rsplitn(3, ' ').collect();
        match words.as_slice() {
            [size, "blob", _] => {
                let size: usize = size.parse().map_err(|_no_number| format!("git answered {head:?}"))?;
                let content = body.get(..size).ok_or("git's answer is cut off")?;
                Ok(Some(Entry::File(Arc::from(content))))
            }
            [_, "tree", _] => self.names(path).map(|names| Some(Entry::Folder(names))),
            ["missing", ..] => self.nothing(path),
            [_, kind @ ("dangling" | "loop"), ..] => {
                Err(format!("`{path}` is, or leads through, a link that cannot be followed ({kind})"))
            }
            _ if head.starts_with("symlink ") => Err(format!("`{path}` is a link out of the repository")),
            _ if head.starts_with("notdir ") => Ok(None),
            _ => Err(format!("git answered {head:?} for `{path}`")),
        }
    }

    /// Nothing is there; unless another repository is, whose files this one does not hold.
    fn nothing(&self, path: &str) -> Result<Option<Entry>, String> {
        let tops: Vec<String> =
            path.match_indices('/').map(|(at, _)| path.get(..at).unwrap_or_default().to_owned()).collect();
        let mut arguments = vec!["--literal-pathspecs", "ls-tree", "-z", "--full-tree", &self.revision, "--"];
        arguments.extend(tops.iter().map(String::as_str));
        arguments.push(path);
        let listed = run(&self.root, &arguments, None).map_err(|error| error.to_string())?;
        if !listed.status.success() {
            return Err(stderr(&listed));
        }
        let submodule = listed.stdout.split(|byte| *byte == 0).any(|entry| entry.starts_with(b"160000 "));
        if submodule {
            return Err(format!(
                "`{path}` is in a submodule, whose files the commit does not hold; keep it in the repository itself"
            ));
        }
        Ok(None)
    }

    fn names(&self, path: &str) -> Result<Vec<String>, String> {
        let tree = format!("{}:{path}", self.revision);
        let listed = run(&self.root, &["ls-tree", "-z", &tree], None).map_err(|error| error.to_string())?;
        if !listed.status.success() {
            return Err(stderr(&listed));
        }
        let entries = listed.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        Ok(entries
            .filter_map(|entry| {
                let entry = String::from_utf8_lossy(entry);
                let (head, name) = entry.split_once('\t')?;
                let slash = if head.contains(" tree ") { "/" } else { "" };
                Some(format!("{name}{slash}"))
            })
            .collect())
    }
}

impl CommitReader for GitCommit {
    fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        if path.contains(['\n', '\0']) {
            return Err(format!("{path:?} is no path for git"));
        }
        self.object(path)
    }
}

/// The top of the checkout around a folder, without links; `None` outside of any.
pub fn top_of(folder: &Path) -> Option<PathBuf> {
    let top = text(folder, &["rev-parse", "--show-toplevel"])?;
    Path::new(&top).canonicalize().ok()
}

/// `owner/name` of the remote that the checkout came from.
pub fn repository_of(folder: &Path) -> Option<String> {
    repository_of_remote(&text(folder, &["remote", "get-url", "origin"])?)
}

/// The commit that a revision names.
pub fn commit_of(folder: &Path, revision: &str) -> Option<String> {
    text(folder, &["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision}^{{commit}}")])
}

/// The parents of a commit, as it names them itself: a shallow checkout knows their ids, and not the commits.
pub fn parents_of(folder: &Path, commit: &str) -> Vec<String> {
    let head = text(folder, &["cat-file", "commit", commit]).unwrap_or_default();
    let lines = head.lines().take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.strip_prefix("parent ")).map(str::to_owned).collect()
}

/// Whether git keeps a path of the checkout, or anything below it.
pub fn is_tracked(root: &Path, path: &str) -> Option<bool> {
    let listed = run(root, &["--literal-pathspecs", "ls-files", "-z", "--", path], None).ok()?;
    listed.status.success().then_some(!listed.stdout.is_empty())
}

fn text(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = run(folder, arguments, None).ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn run(folder: &Path, arguments: &[&str], input: Option<&[u8]>) -> Result<Output, PolicyError> {
    let fault = |error: std::io::Error| PolicyError::Git(error.to_string());
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).env("GIT_TERMINAL_PROMPT", "0");
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(fault)?;
    if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
        // One line, which every pipe takes at once.
        pipe.write_all(input).map_err(fault)?;
    }
    child.wait_with_output().map_err(fault)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
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
    crate::publish::context::Repository::parse(&format!("{owner}/{name}"))
        .map(|repository| repository.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b82_remotes_lose_their_secrets() {
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

    fn git(folder: &Path, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn files_come_from_the_commit_and_not_from_the_working_tree() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        git(dir.path(), &["init", "-q"]);
        std::fs::create_dir(dir.path().join("conf")).unwrap();
        write("conf/t with space.yaml", "max: 0\n");
        git(dir.path(), &["add", "."]);
        git(dir.path(), &["commit", "-qm", "base"]);
        let base = git(dir.path(), &["rev-parse", "HEAD"]);
        write("conf/t with space.yaml", "max: 1\n");
        write("conf/new.yaml", "max: 1\n");

        let commit = GitCommit::open(dir.path(), &base).unwrap();
        let file = Entry::File(Arc::from(b"max: 0\n".as_slice()));
        assert_eq!(commit.entry("conf/t with space.yaml"), Ok(Some(file)));
        assert_eq!(commit.entry("conf/new.yaml"), Ok(None));
        assert_eq!(commit.entry("conf/t with space.yaml/x"), Ok(None));
        assert_eq!(commit.entry("conf"), Ok(Some(Entry::Folder(vec!["t with space.yaml".into()]))));
        assert_eq!(commit.entry(""), Ok(Some(Entry::Folder(vec!["conf/".into()]))));
        assert_eq!(is_tracked(dir.path(), "conf/t with space.yaml"), Some(true));
        assert_eq!(is_tracked(dir.path(), "conf/new.yaml"), Some(false));
        // A commit that is not there is an error, or a shallow checkout would look like a base without policy.
        let absent = GitCommit::open(dir.path(), &"e".repeat(40)).unwrap_err();
        assert!(matches!(absent, PolicyError::Absent { .. }), "{absent}");
        for revision in ["--output=x", "HEAD", "main", ""] {
            assert!(matches!(GitCommit::open(dir.path(), revision), Err(PolicyError::Revision(_))));
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_inside_and_refused_outside() {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q"]);
        std::fs::create_dir(dir.path().join("conf")).unwrap();
        std::fs::write(dir.path().join("conf/t.yaml"), "max: 0\n").unwrap();
        for (target, name) in [
            ("conf/t.yaml", "t.yaml"),
            ("conf", "c"),
            ("/etc/hostname", "out"),
            ("nowhere", "dangling"),
            ("me", "me"),
        ] {
            std::os::unix::fs::symlink(target, dir.path().join(name)).unwrap();
        }
        git(dir.path(), &["add", "."]);
        git(dir.path(), &["update-index", "--add", "--cacheinfo", &format!("160000,{},sub", "a".repeat(40))]);
        git(dir.path(), &["commit", "-qm", "base"]);
        let commit = GitCommit::open(dir.path(), &git(dir.path(), &["rev-parse", "HEAD"])).unwrap();
        for path in ["t.yaml", "c/t.yaml"] {
            assert_eq!(
                commit.entry(path),
                Ok(Some(Entry::File(Arc::from(b"max: 0\n".as_slice())))),
                "{path}"
            );
        }
        for path in ["out", "dangling", "me", "sub", "sub/t.yaml"] {
            assert!(commit.entry(path).is_err(), "{path}: {:?}", commit.entry(path));
        }
    }

    #[test]
    fn the_parents_of_a_merge_are_known_without_the_commits() {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q"]);
        git(dir.path(), &["commit", "-qm", "base", "--allow-empty"]);
        git(dir.path(), &["checkout", "-qb", "feature"]);
        git(dir.path(), &["commit", "-qm", "change", "--allow-empty"]);
        let head = git(dir.path(), &["rev-parse", "HEAD"]);
        git(dir.path(), &["checkout", "-q", "main"]);
        git(dir.path(), &["commit", "-qm", "meanwhile", "--allow-empty"]);
        let tip = git(dir.path(), &["rev-parse", "HEAD"]);
        git(dir.path(), &["merge", "-q", "--no-ff", "-m", "merge", "feature"]);
        let merge = git(dir.path(), &["rev-parse", "HEAD"]);
        assert_eq!(parents_of(dir.path(), &merge), [tip, head]);
        assert_eq!(commit_of(dir.path(), "HEAD"), Some(merge));
        assert_eq!(commit_of(dir.path(), "nowhere"), None);
    }
}
