//! The job summary, through the file `GITHUB_STEP_SUMMARY`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use super::Publication;
use super::size::{self, Budget};

/// Appends the publication to the summary of the step. Returns the names of sections that were cut for size.
///
/// GitHub drops a summary that is over its limit as a whole, so what other commands of the step wrote counts too.
pub fn write(path: &Path, publication: &Publication) -> std::io::Result<Vec<String>> {
    let there = match std::fs::metadata(path) {
        Ok(metadata) => usize::try_from(metadata.len()).unwrap_or(usize::MAX),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    let left = size::JOB_SUMMARY.bytes.saturating_sub(there);
    let fitted = size::fit(publication, "", Budget { characters: left, bytes: left });
    if fitted.text.len() > left {
        return Err(std::io::Error::other("the job summary is already full"));
    }
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(fitted.text.as_bytes())?;
    file.write_all(b"\n")?;
    Ok(fitted.reduced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape::markdown::Markdown;
    use crate::publish::{Section, Word};

    #[test]
    fn the_step_stays_under_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary");
        std::fs::write(&path, "x".repeat(990_000)).unwrap();
        let mut publication = Publication::short(Word::Fail, "One harm.");
        publication.sections.push(Section {
            name: "details".into(),
            markdown: Markdown::trusted("y".repeat(20_000)),
            shorter: None,
            priority: 1,
        });
        assert_eq!(write(&path, &publication).unwrap(), ["details"]);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.len() < 1_000_000 && text.contains("One harm."));
    }

    #[test]
    fn a_full_summary_is_not_overfilled() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("summary");
        std::fs::write(&path, "x".repeat(1_000_000)).unwrap();
        assert!(write(&path, &Publication::did_not_finish()).is_err());
    }
}
