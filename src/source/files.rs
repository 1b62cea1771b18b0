//! Sets of named files: a folder on disk, or texts in memory such as those the binary carries.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use super::Source;
use super::commit::Commit;

/// Where named files come from. Paths inside a set are relative and use `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileSet {
    /// The files below a folder; a path with `..` reaches beside it.
    Folder(PathBuf),
    /// Texts held in memory.
    Memory(Memory),
    /// The files below a folder as a commit has them.
    Commit(Commit),
}

/// Texts in memory, each under a path from their common root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    label: String,
    files: Arc<BTreeMap<String, Cow<'static, str>>>,
}

/// Why a file of a set could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// There is none of that name.
    #[error("`{name}` does not exist")]
    NotFound {
        /// Name as a person knows it.
        name: String,
    },
    /// It is not UTF-8.
    #[error("`{name}` is not UTF-8 text (byte {offset})")]
    NotText {
        /// Name as a person knows it.
        name: String,
        /// First byte that is not UTF-8.
        offset: usize,
    },
    /// The machine refused.
    #[error("`{name}` cannot be read: {source}")]
    Io {
        /// Name as a person knows it.
        name: String,
        /// What the machine said.
        source: io::Error,
    },
}

impl FileSet {
    /// Texts in memory, shown as `label` followed by their path.
    pub fn memory<P, T>(label: impl Into<String>, files: impl IntoIterator<Item = (P, T)>) -> Self
    where
        P: Into<String>,
        T: Into<Cow<'static, str>>,
    {
        let files = files.into_iter().map(|(path, text)| (path.into(), text.into())).collect();
        Self::Memory(Memory { label: label.into(), files: Arc::new(files) })
    }

    /// Reads a file as text. A leading byte order mark is dropped.
    ///
    /// # Errors
    /// When there is no such file, it cannot be read, or it is not UTF-8.
    pub fn read(&self, path: &str) -> Result<Source, ReadError> {
        let name = self.name_of(path);
        let bytes = self.bytes(path)?;
        match String::from_utf8(bytes.into_owned()) {
            Ok(text) => Ok(Source::new(name, text)),
            Err(error) => Err(ReadError::NotText { name, offset: error.utf8_error().valid_up_to() }),
        }
    }

    /// Whether there is a file of this name.
    pub fn contains(&self, path: &str) -> bool {
        match self {
            Self::Folder(root) => root.join(path).is_file(),
            Self::Memory(memory) => memory.files.contains_key(&join("", path)),
            Self::Commit(commit) => commit.contains(path),
        }
    }

    /// How a file of the set is shown to a person.
    pub fn name_of(&self, path: &str) -> String {
        match self {
            Self::Folder(root) if Path::new(path).is_absolute() => join(&root.to_string_lossy(), path),
            Self::Folder(root) => join(&root.to_string_lossy().replace('\\', "/"), path),
            Self::Memory(memory) => format!("{}{}", memory.label, join("", path)),
            Self::Commit(commit) => Self::Folder(commit.folder().to_owned()).name_of(path),
        }
    }

    /// Names of the files in a folder, sorted; those of folders in it are left out.
    ///
    /// # Errors
    /// When there is no such folder or it cannot be read.
    pub fn list(&self, path: &str) -> Result<Vec<String>, ReadError> {
        let name = || self.name_of(path);
        let mut names = match self {
            Self::Folder(root) => list_folder(&root.join(path)).map_err(|source| io_error(name(), source))?,
            Self::Memory(memory) => {
                let folder = join("", path);
                let inside = memory.files.keys().filter(|file| folder_of(file) == folder);
                inside.map(|file| file.rsplit('/').next().unwrap_or(file).to_owned()).collect()
            }
            Self::Commit(commit) => commit.list(path).map_err(|source| io_error(name(), source))?,
        };
        names.sort();
        Ok(names)
    }

    fn bytes(&self, path: &str) -> Result<Cow<'_, [u8]>, ReadError> {
        let name = || self.name_of(path);
        match self {
            Self::Folder(root) => {
                std::fs::read(root.join(path)).map(Cow::Owned).map_err(|source| io_error(name(), source))
            }
            Self::Commit(commit) => {
                commit.bytes(path).map(Cow::Owned).map_err(|source| io_error(name(), source))
            }
            Self::Memory(memory) => memory
                .files
                .get(&join("", path))
                .map(|text| Cow::Borrowed(text.as_bytes()))
                .ok_or_else(|| ReadError::NotFound { name: name() }),
        }
    }
}

fn io_error(name: String, source: io::Error) -> ReadError {
    match source.kind() {
        io::ErrorKind::NotFound => ReadError::NotFound { name },
        _ => ReadError::Io { name, source },
    }
}

/// Names of the plain files in a folder of the disk.
pub(super) fn list_folder(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// The path of a file named relative to a folder, with `.` and `..` worked out as far as they go. An absolute path
/// stays.
pub fn join(folder: &str, path: &str) -> String {
    if path.starts_with('/') || Path::new(path).is_absolute() {
        return path.to_owned();
    }
    let root = if folder.starts_with('/') { "/" } else { "" };
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if root == "/" => {}
            part => parts.push(part),
        }
    }
    format!("{root}{}", parts.join("/"))
}

/// The folder of a path; empty at the root of a set.
pub fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_worked_out_lexically() {
        assert_eq!(join("rubric/si", "../../personas/si.tsv"), "personas/si.tsv");
        assert_eq!(join("", "./a//b.txt"), "a/b.txt");
        assert_eq!(join("a", "../../b"), "../b");
        assert_eq!(join("../x", "../../b"), "../../b");
        assert_eq!(join("/srv/t", "../u/m.json"), "/srv/u/m.json");
        assert_eq!(join("/srv", "../../m"), "/m");
        assert_eq!(join("a", "/etc/x"), "/etc/x");
        assert_eq!(folder_of("a/b/c.json"), "a/b");
        assert_eq!(folder_of("c.json"), "");
    }

    #[test]
    fn memory_and_folder_give_the_same_texts() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("t")).unwrap();
        std::fs::write(folder.path().join("t/a.tsv"), "\u{feff}x\n").unwrap();
        std::fs::write(folder.path().join("bad"), b"ab\xff").unwrap();
        let disk = FileSet::Folder(folder.path().join("t"));
        let memory = FileSet::memory("builtin:", [("t/a.tsv", "\u{feff}x\n")]);
        assert_eq!(disk.read("a.tsv").unwrap().text(), "x\n");
        assert_eq!(disk.read("../t/a.tsv").unwrap().text(), "x\n");
        assert!(disk.contains("a.tsv") && !disk.contains("b.tsv"));
        let source = memory.read("t/./x/../a.tsv").unwrap();
        assert_eq!((source.name(), source.text()), ("builtin:t/a.tsv", "x\n"));
        assert!(matches!(memory.read("t/b.tsv"), Err(ReadError::NotFound { .. })));
        assert!(matches!(disk.read("b.tsv"), Err(ReadError::NotFound { .. })));
        assert!(matches!(disk.read("../bad"), Err(ReadError::NotText { offset: 2, .. })));
        assert!(matches!(disk.read("../t"), Err(ReadError::Io { .. })));
        assert!(disk.name_of("../b").ends_with("/b"));
    }
}
