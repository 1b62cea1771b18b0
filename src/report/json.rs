//! The report as JSON, and back.

use serde::Deserialize;

use super::{Report, SCHEMA};

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Another kind of file, or one of a version this program does not know.
    #[error("this is `{found}`, this program reads `{SCHEMA}`")]
    Schema {
        /// What it says it is.
        found: String,
    },
    /// Not a report.
    #[error("this is no report: {0}")]
    Syntax(#[from] serde_json::Error),
}

/// The report as JSON, ended by a line break. The same report gives the same bytes.
///
/// # Errors
/// Only when a number is not finite, which no count and no bound is.
pub fn render(report: &Report) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    Ok(text)
}

/// Reads a report that [`render`] wrote.
///
/// # Errors
/// [`ReadError`].
pub fn read(text: &str) -> Result<Report, ReadError> {
    #[derive(Deserialize)]
    struct Tag {
        schema: Option<String>,
    }
    // The tag comes first: a newer version is told by its tag, not by the first field it renamed.
    let found =
        serde_json::from_str::<Tag>(text)?.schema.unwrap_or_else(|| "a file without `schema`".to_owned());
    if found != SCHEMA {
        return Err(ReadError::Schema { found });
    }
    Ok(serde_json::from_str(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_version_is_told_by_its_tag() {
        let error = read(r#"{"schema": "vera-gate/report/v2", "verdict": 3}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "this is `vera-gate/report/v2`, this program reads `vera-gate/report/v1`"
        );
        assert!(matches!(read("{}").unwrap_err(), ReadError::Schema { .. }));
        assert!(matches!(read("[").unwrap_err(), ReadError::Syntax(_)));
    }
}
