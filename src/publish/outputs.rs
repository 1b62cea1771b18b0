//! Values for later steps, through the file `GITHUB_OUTPUT`.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::escape::workflow::{InvalidName, file_entry};

/// The longest value: beyond it a step that hands the value on in an argument or a variable cannot be started.
pub const LONGEST: usize = 32 * 1024;

/// Why outputs cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A name the runner would not read.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// A text that belongs in a file.
    #[error(
        "output `{name}` has {bytes} bytes, more than {LONGEST}: write it to a file and hand on the path"
    )]
    TooLong {
        /// Its name.
        name: String,
        /// Its length.
        bytes: usize,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// Appends the outputs to the file. All are checked before any is written.
pub fn write(path: &Path, outputs: &BTreeMap<String, String>) -> Result<(), OutputError> {
    let mut text = String::new();
    for (name, value) in outputs {
        if value.len() > LONGEST {
            return Err(OutputError::TooLong { name: name.clone(), bytes: value.len() });
        }
        text.push_str(&file_entry(name, value)?);
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| OutputError::Io { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_appended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        std::fs::write(&path, "earlier=1\n").unwrap();
        write(&path, &BTreeMap::from([("verdict".into(), "fail".into())])).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "earlier=1\nverdict<<VERA_GATE_END\nfail\nVERA_GATE_END\n"
        );
    }

    #[test]
    fn a_long_value_is_refused_with_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let error = write(&path, &BTreeMap::from([("report".into(), "x".repeat(LONGEST + 1))])).unwrap_err();
        assert!(error.to_string().contains("write it to a file"), "{error}");
        assert!(!path.exists(), "nothing is written when one is refused");
    }
}
