//! Loaded text with positions: what a diagnostic needs to show the line it is about.

pub mod commit;
pub mod files;

use std::fmt;
use std::sync::Arc;

pub use commit::{Commit, CommitReader, Entry};
pub use files::{FileSet, ReadError};

/// A text that a person wrote, with the name under which it is shown.
///
/// Cheap to clone: the text is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    inner: Arc<Inner>,
}

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    name: String,
    text: String,
    line_starts: Vec<usize>,
}

/// A place in a [`Source`]: line and column count from 1, the column in characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Location {
    /// File name as the person knows it (a path, or `builtin:...`).
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The whole line, without its line end.
    pub text: String,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl Source {
    /// Takes a text under a display name. A leading byte order mark is dropped.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { inner: Arc::new(Inner { name: name.into(), text, line_starts }) }
    }

    /// The display name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The whole text, without a byte order mark.
    pub fn text(&self) -> &str {
        &self.inner.text
    }

    /// The line with this number (from 1) without its line end; empty beyond the end.
    pub fn line(&self, number: usize) -> &str {
        let start = number.checked_sub(1).and_then(|index| self.inner.line_starts.get(index));
        let end = self.inner.line_starts.get(number).copied().unwrap_or(self.inner.text.len());
        start.and_then(|&start| self.inner.text.get(start..end)).unwrap_or("").trim_end_matches(['\n', '\r'])
    }

    /// The location of a line and column, both from 1.
    pub fn at(&self, line: usize, column: usize) -> Location {
        Location {
            file: self.inner.name.clone(),
            line,
            column: column.max(1),
            text: self.line(line).to_owned(),
        }
    }

    /// The location of a byte offset; an offset beyond the end is the end.
    pub fn at_offset(&self, offset: usize) -> Location {
        let offset = offset.min(self.inner.text.len());
        let line = self.inner.line_starts.partition_point(|&start| start <= offset);
        let start =
            line.checked_sub(1).and_then(|index| self.inner.line_starts.get(index)).copied().unwrap_or(0);
        let column = self.inner.text.get(start..offset).map_or(1, |before| before.chars().count() + 1);
        self.at(line, column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_and_in_characters() {
        let source = Source::new("a.yaml", "\u{feff}één: 1\r\ntwo: 2\n");
        assert_eq!(source.line(1), "één: 1");
        assert_eq!(source.line(2), "two: 2");
        assert_eq!(source.line(9), "");
        // "één" is five bytes and three characters: the colon is column 4.
        let colon = source.at_offset(5);
        assert_eq!((colon.line, colon.column), (1, 4));
        let two = source.at_offset(source.text().find("two").unwrap());
        assert_eq!((two.line, two.column, two.to_string()), (2, 1, "a.yaml:2:1".to_owned()));
    }
}
