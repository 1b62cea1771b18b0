//! The files of a commit, read one by one through whoever can read them, and kept.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::files::list_folder;

/// What stands at a path of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file with its content.
    File(Arc<[u8]>),
    /// A folder, with the names in it; those of folders end with `/`.
    Folder(Vec<String>),
}

/// Reads a commit. Paths start at the top of the repository and use `/`; the empty path is the top itself.
pub trait CommitReader: Send + Sync {
    /// What stands there; `None` when the commit has nothing of that name.
    ///
    /// # Errors
    /// When nobody can tell. That is never the same as nothing being there.
    fn entry(&self, path: &str) -> Result<Option<Entry>, String>;
}

/// The files of a repository as a commit has them, named from a folder of its checkout. A path out of the repository is
/// read from the disk, and so is what the commit is said to know nothing about.
#[derive(Clone)]
pub struct Commit {
    shared: Arc<Shared>,
    /// The folder that names start at, as a person writes it.
    folder: PathBuf,
    /// Paths from the top of the repository that are read from the disk with all below them.
    on_disk: Vec<String>,
}

type Known = BTreeMap<String, Result<Option<Entry>, String>>;

struct Shared {
    reader: Box<dyn CommitReader>,
    /// The top of the checkout, absolute.
    root: PathBuf,
    known: Mutex<Known>,
}

/// Where a named file is to be looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the commit, at this path from the top of the repository.
    Commit(String),
    /// On the disk.
    Disk(PathBuf),
}

impl Commit {
    /// The files of a commit whose repository is checked out in `root`, an absolute path without links.
    pub fn new(reader: Box<dyn CommitReader>, root: PathBuf) -> Self {
        let shared = Shared { reader, root, known: Mutex::default() };
        Self { shared: Arc::new(shared), folder: PathBuf::new(), on_disk: Vec::new() }
    }

    /// The same files, named from another folder.
    #[must_use]
    pub fn from_folder(&self, folder: &Path) -> Self {
        Self { folder: folder.to_owned(), ..self.clone() }
    }

    /// Reads a path, and all below it, from the disk from now on.
    pub fn read_from_disk(&mut self, path: String) {
        self.on_disk.push(path);
    }

    /// The folder that names start at.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The top of the checkout.
    pub fn root(&self) -> &Path {
        &self.shared.root
    }

    /// Where a named file is to be looked for.
    pub fn place(&self, name: &str) -> Place {
        let written = self.folder.join(name);
        let Some(path) = inside(&self.shared.root, &written) else { return Place::Disk(written) };
        let below = |top: &String| {
            path.strip_prefix(top.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if self.on_disk.iter().any(below) { Place::Disk(written) } else { Place::Commit(path) }
    }

    /// What the commit has at a path from the top of the repository.
    ///
    /// # Errors
    /// When nobody can tell.
    pub fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        let mut known = self.shared.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(path) {
            return found.clone();
        }
        let found = self.shared.reader.entry(path);
        known.insert(path.to_owned(), found.clone());
        found
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        match self.place(name) {
            Place::Disk(path) => path.is_file(),
            // A file that cannot be had counts as there, so that reading it says why.
            Place::Commit(path) => !matches!(self.entry(&path), Ok(None | Some(Entry::Folder(_)))),
        }
    }

    pub(super) fn bytes(&self, name: &str) -> io::Result<Vec<u8>> {
        match self.place(name) {
            Place::Disk(path) => std::fs::read(path),
            Place::Commit(path) => match self.entry(&path).map_err(io::Error::other)? {
                Some(Entry::File(bytes)) => Ok(bytes.to_vec()),
                Some(Entry::Folder(_)) => Err(io::ErrorKind::IsADirectory.into()),
                None => Err(io::ErrorKind::NotFound.into()),
            },
        }
    }

    pub(super) fn list(&self, name: &str) -> io::Result<Vec<String>> {
        match self.place(name) {
            Place::Disk(path) => list_folder(&path),
            Place::Commit(path) => match self.entry(&path).map_err(io::Error::other)? {
                Some(Entry::Folder(names)) => {
                    Ok(names.into_iter().filter(|name| !name.ends_with('/')).collect())
                }
                Some(Entry::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
                None => Err(io::ErrorKind::NotFound.into()),
            },
        }
    }
}

/// The path from the root, if a written path leads there, by its letters or by the links on the disk. Links alone must
/// not lead out of the repository: a change could add one.
fn inside(root: &Path, written: &Path) -> Option<String> {
    let absolute = std::path::absolute(written).ok()?;
    let lexical = without_dots(&absolute);
    let real = real(&lexical);
    [lexical, real].into_iter().find_map(|path| {
        let below = path.strip_prefix(root).ok()?;
        let parts: Vec<_> = below.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        Some(parts.join("/"))
    })
}

/// The path with the links of that part of it that exists worked out.
fn real(path: &Path) -> PathBuf {
    for part in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (part.canonicalize(), path.strip_prefix(part)) {
            return real.join(rest);
        }
    }
    path.to_owned()
}

fn without_dots(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

impl fmt::Debug for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Commit")
            .field("root", &self.shared.root)
            .field("folder", &self.folder)
            .field("on_disk", &self.on_disk)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Commit {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
            && (&self.folder, &self.on_disk) == (&other.folder, &other.on_disk)
    }
}

impl Eq for Commit {}

#[cfg(test)]
mod tests {
    use super::super::{FileSet, ReadError};
    use super::*;

    struct Fixed;

    impl CommitReader for Fixed {
        fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
            match path {
                "t/a.tsv" => Ok(Some(Entry::File(Arc::from(b"old\n".as_slice())))),
                "t" => Ok(Some(Entry::Folder(vec!["a.tsv".into(), "deep/".into()]))),
                "lost.yaml" => Err("no answer".to_owned()),
                _ => Ok(None),
            }
        }
    }

    #[test]
    fn the_commit_hides_the_disk_and_a_fault_is_not_an_absent_file() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("t")).unwrap();
        for name in ["t/a.tsv", "t/b.tsv", "new.yaml", "lost.yaml"] {
            std::fs::write(root.join(name), "of the disk\n").unwrap();
        }
        let mut commit = Commit::new(Box::new(Fixed), root.clone()).from_folder(&root.join("t"));
        let files = FileSet::Commit(commit.clone());
        assert_eq!(files.read("a.tsv").unwrap().text(), "old\n");
        assert_eq!(files.read("../t/./a.tsv").unwrap().text(), "old\n");
        assert_eq!(files.read(&root.join("t/a.tsv").to_string_lossy()).unwrap().text(), "old\n");
        assert!(matches!(files.read("b.tsv"), Err(ReadError::NotFound { .. })));
        assert!(files.contains("a.tsv") && !files.contains("b.tsv") && !files.contains("../t"));
        assert_eq!(files.list("../t").unwrap(), ["a.tsv"]);
        assert!(files.contains("../lost.yaml"));
        assert!(files.read("../lost.yaml").unwrap_err().to_string().contains("no answer"));
        assert!(matches!(files.read("../new.yaml"), Err(ReadError::NotFound { .. })));
        commit.read_from_disk("new.yaml".to_owned());
        assert_eq!(FileSet::Commit(commit).read("../new.yaml").unwrap().text(), "of the disk\n");
        // Beside the repository the disk is all there is.
        let beside = tempfile::tempdir().unwrap();
        std::fs::write(beside.path().join("x"), "beside\n").unwrap();
        assert_eq!(files.read(&beside.path().join("x").to_string_lossy()).unwrap().text(), "beside\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_of_the_change_does_not_lead_out_of_the_commit() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let beside = tempfile::tempdir().unwrap();
        std::fs::write(beside.path().join("a.tsv"), "loose\n").unwrap();
        std::os::unix::fs::symlink(beside.path(), root.join("t")).unwrap();
        let commit = Commit::new(Box::new(Fixed), root.clone()).from_folder(&root);
        assert_eq!(FileSet::Commit(commit.clone()).read("t/a.tsv").unwrap().text(), "old\n");
        // The same folder by another name.
        std::os::unix::fs::symlink(&root, beside.path().join("again")).unwrap();
        let again = commit.from_folder(&beside.path().join("again"));
        assert_eq!(again.place("t2/a.tsv"), Place::Commit("t2/a.tsv".to_owned()));
    }
}
