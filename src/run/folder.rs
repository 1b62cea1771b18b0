//! The run folder: files that appear whole or not at all.

use std::fs;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::record::{CONFIRMATIONS_FILE, PLAN_FILE, PlanFile, RUN_FILE, RunRecord};
use crate::gate::Confirmation;
use crate::rating::Assessment;
use crate::source::Source;
use crate::sweep::scheduler::Keeper;
use crate::transcript::{ConversationId, Transcript, read_jsonl, read_text, write_jsonl, write_text};

const CONVERSATIONS: &str = "conversations";
/// Begins the temporary name of a file that is being written.
const UNFINISHED: &str = ".part-";
const RATINGS: &str = "ratings.jsonl";

/// Why a run folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The machine refused.
    #[error("`{path}`: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the machine said.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("`{path}` line {line}: {message}")]
    Content {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A newer tool wrote it.
    #[error("`{path}` has schema `{found}`, this vera-gate reads `{known}`; use the version that wrote it")]
    Schema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: String,
        /// Ours.
        known: String,
    },
}

/// A folder with the files of one run.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes the folder, with what is in it kept.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn create(path: &Path) -> Result<Self, FolderError> {
        let folder = Self { path: path.to_owned() };
        let conversations = folder.path.join(CONVERSATIONS);
        fs::create_dir_all(&conversations)
            .map_err(|source| FolderError::Io { path: conversations, source })?;
        Ok(folder)
    }

    /// An existing folder, whatever is in it.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether it holds a finished record.
    pub fn has_record(&self) -> bool {
        self.file(RUN_FILE).is_file()
    }

    /// Writes a file under a temporary name and renames it, so that a crash leaves the old one or the new one.
    ///
    /// # Errors
    /// The machine refuses; then nothing under the name has changed.
    pub fn write(&self, name: &str, text: &str) -> Result<(), FolderError> {
        self.write_with(name, |file| file.write_all(text.as_bytes()))
    }

    fn write_with(
        &self,
        name: &str,
        content: impl FnOnce(&mut BufWriter<&mut fs::File>) -> std::io::Result<()>,
    ) -> Result<(), FolderError> {
        let path = self.file(name);
        let io = |source| FolderError::Io { path: path.clone(), source };
        let folder = path.parent().unwrap_or(&self.path);
        let mut temporary = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder).map_err(io)?;
        let mut buffered = BufWriter::new(temporary.as_file_mut());
        content(&mut buffered).and_then(|()| buffered.flush()).map_err(io)?;
        drop(buffered);
        // Readable like any file the run writes; temporary files are private by default.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            temporary.as_file().set_permissions(fs::Permissions::from_mode(0o644)).map_err(io)?;
        }
        temporary.persist(&path).map_err(|error| io(error.error))?;
        Ok(())
    }

    /// Removes what a process that was killed had not finished writing. Only for the process that holds the journal.
    pub fn tidy(&self) {
        let folders = [self.path.clone(), self.file(CONVERSATIONS)];
        let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED)) {
            // One that cannot be removed is in nobody's way.
            drop(fs::remove_file(entry.path()));
        }
    }

    /// Writes a value as indented JSON with a final newline.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), FolderError> {
        self.write_with(name, |file| {
            serde_json::to_writer_pretty(&mut *file, value)?;
            file.write_all(b"\n")
        })
    }

    /// Reads a text file.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn read(&self, name: &str) -> Result<String, FolderError> {
        let path = self.file(name);
        fs::read_to_string(&path).map_err(|source| FolderError::Io { path, source })
    }

    /// Reads a JSON file and checks its schema.
    ///
    /// # Errors
    /// The machine refuses, the content is broken, or a newer tool wrote it.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str, schema: &str) -> Result<T, FolderError> {
        #[derive(serde::Deserialize)]
        struct Head {
            schema: String,
        }
        let text = self.read(name)?;
        let content = |error: serde_json::Error| FolderError::Content {
            path: self.file(name),
            line: error.line(),
            message: error.to_string(),
        };
        let head: Head = serde_json::from_str(&text).map_err(content)?;
        if head.schema != schema {
            let (found, known) = (head.schema, schema.to_owned());
            return Err(FolderError::Schema { path: self.file(name), found, known });
        }
        serde_json::from_str(&text).map_err(content)
    }

    /// Reads the record.
    ///
    /// # Errors
    /// As [`RunFolder::read_json`].
    pub fn record(&self) -> Result<RunRecord, FolderError> {
        self.read_json(RUN_FILE, super::RUN_SCHEMA)
    }

    /// Reads the plan.
    ///
    /// # Errors
    /// As [`RunFolder::read_json`].
    pub fn plan(&self) -> Result<PlanFile, FolderError> {
        self.read_json(PLAN_FILE, super::PLAN_SCHEMA)
    }

    /// Writes the evaluations, one a line, in the order given.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn write_ratings(&self, assessments: &[Assessment]) -> Result<(), FolderError> {
        self.write_with(RATINGS, |file| {
            for assessment in assessments {
                serde_json::to_writer(&mut *file, assessment)?;
                file.write_all(b"\n")?;
            }
            Ok(())
        })
    }

    /// Reads the evaluations.
    ///
    /// # Errors
    /// The machine refuses, or a line is broken.
    pub fn ratings(&self) -> Result<Vec<Assessment>, FolderError> {
        let path = self.file(RATINGS);
        let io = |source| FolderError::Io { path: path.clone(), source };
        // Line by line: of a long run the text alone would take as much room as the values.
        let mut ratings = Vec::new();
        for (index, line) in BufReader::new(fs::File::open(&path).map_err(io)?).lines().enumerate() {
            let rating = serde_json::from_str(&line.map_err(io)?).map_err(|error| FolderError::Content {
                path: path.clone(),
                line: index + 1,
                message: error.to_string(),
            })?;
            ratings.push(rating);
        }
        Ok(ratings)
    }

    /// Reads the second looks that were taken; none when the run wrote none.
    ///
    /// # Errors
    /// The machine refuses, or the file is broken.
    pub fn confirmations(&self) -> Result<Vec<Confirmation>, FolderError> {
        if !self.file(CONFIRMATIONS_FILE).exists() {
            return Ok(Vec::new());
        }
        serde_json::from_str(&self.read(CONFIRMATIONS_FILE)?).map_err(|error| FolderError::Content {
            path: self.file(CONFIRMATIONS_FILE),
            line: error.line(),
            message: error.to_string(),
        })
    }

    /// Takes over one transcript from another run folder, in both forms: as a second name of the same file where the
    /// machine allows it, or else as a copy.
    ///
    /// # Errors
    /// The machine refuses, or the other folder does not have it.
    pub fn adopt(&self, from: &Self, id: &ConversationId) -> Result<(), FolderError> {
        for form in ["jsonl", "txt"] {
            let name = format!("{CONVERSATIONS}/{id}.{form}");
            let (source, target) = (from.file(&name), self.file(&name));
            // What an earlier merge left may be the very file that is taken over, and copying it onto itself would
            // empty it.
            match fs::remove_file(&target) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(FolderError::Io { path: target, source: error });
                }
                _ => {}
            }
            // Files of a run folder are replaced, never changed, so that sharing one is safe.
            if fs::hard_link(&source, &target).is_err() {
                fs::copy(&source, &target)
                    .map_err(|error| FolderError::Io { path: source, source: error })?;
            }
        }
        Ok(())
    }

    /// Removes the transcripts, so that a folder that is written anew holds no others.
    ///
    /// # Errors
    /// The machine refuses.
    pub fn forget_transcripts(&self) -> Result<(), FolderError> {
        let path = self.file(CONVERSATIONS);
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(FolderError::Io { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Reads one transcript in the native form.
    ///
    /// # Errors
    /// The machine refuses, or the file is no whole transcript.
    pub fn transcript(&self, id: &ConversationId) -> Result<Transcript, FolderError> {
        let name = format!("{CONVERSATIONS}/{id}.jsonl");
        let source = Source::new(self.file(&name).to_string_lossy(), self.read(&name)?);
        read_jsonl(&source).map_err(|problem| FolderError::Content {
            path: self.file(&name),
            line: problem.location.map_or(1, |l| l.line),
            message: problem.message,
        })
    }

    /// Reads every transcript below a folder: native ones, or else VERA-MH's text form, ordered by name. Folders of
    /// VERA-MH runs are searched with their `conversations`.
    ///
    /// # Errors
    /// The machine refuses, or a file is no whole transcript; all problems at once in the text.
    pub fn transcripts_below(path: &Path) -> Result<Vec<Transcript>, FolderError> {
        let mut files = Vec::new();
        collect(path, &mut files)?;
        files.sort();
        let has = |wanted: &str| files.iter().any(|f| f.extension().is_some_and(|e| e == wanted));
        let wanted = if has("jsonl") { "jsonl" } else { "txt" };
        files
            .into_iter()
            .filter(|file| file.extension().is_some_and(|e| e == wanted))
            .map(|file| {
                let text = fs::read_to_string(&file)
                    .map_err(|source| FolderError::Io { path: file.clone(), source })?;
                let source = Source::new(file.to_string_lossy(), text);
                let name = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
                let read = if wanted == "jsonl" { read_jsonl(&source) } else { read_text(&source, &name) };
                read.map_err(|problem| FolderError::Content {
                    path: file,
                    line: problem.location.map_or(1, |l| l.line),
                    message: problem.message,
                })
            })
            .collect()
    }
}

/// Transcript files below a folder; journals, logs and ratings are none.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), FolderError> {
    const OTHERS: [&str; 2] = [crate::sweep::journal::FILE_NAME, RATINGS];
    let io = |source| FolderError::Io { path: path.to_owned(), source };
    for entry in fs::read_dir(path).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        let child = entry.path();
        if child.is_dir() {
            if name != "logs" && name != "evaluations" {
                collect(&child, files)?;
            }
        } else if !OTHERS.iter().any(|other| name == *other) {
            files.push(child);
        }
    }
    Ok(())
}

impl Keeper for RunFolder {
    fn keep(&self, transcript: &Transcript) -> Result<(), String> {
        let native = write_jsonl(transcript).map_err(|error| error.to_string())?;
        let name = format!("{CONVERSATIONS}/{}", transcript.id);
        self.write(&format!("{name}.txt"), &write_text(transcript)).map_err(|error| error.to_string())?;
        self.write(&format!("{name}.jsonl"), &native).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{EndReason, Speaker, Turn};

    fn transcript(id: &str) -> Transcript {
        Transcript {
            id: ConversationId(id.to_owned()),
            persona: "Ana".to_owned(),
            risk_level: None,
            user_model: "m".to_owned(),
            run: 1,
            turns: vec![Turn { speaker: Speaker::User, text: "hi".to_owned(), flags: Vec::new() }],
            end: EndReason::TurnLimit,
        }
    }

    #[test]
    fn transcripts_are_kept_in_both_forms_and_read_back() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(&place.path().join("run")).unwrap();
        folder.keep(&transcript("b_Ana_m_run1")).unwrap();
        folder.keep(&transcript("a_Ana_m_run1")).unwrap();
        let read = RunFolder::transcripts_below(folder.path()).unwrap();
        let ids: Vec<&str> = read.iter().map(|t| t.id.0.as_str()).collect();
        assert_eq!(ids, ["a_Ana_m_run1", "b_Ana_m_run1"]);
        assert_eq!(folder.transcript(&read[0].id).unwrap(), read[0]);
        assert!(folder.file("conversations/a_Ana_m_run1.txt").is_file());
    }

    #[test]
    fn a_refused_write_leaves_the_old_file() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(place.path()).unwrap();
        folder.write("report.md", "old").unwrap();
        fs::create_dir(folder.file("taken")).unwrap();
        assert!(folder.write("taken", "new").is_err(), "a folder is in the way");
        assert_eq!(folder.read("report.md").unwrap(), "old");
        let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".part-")), "{left:?}");
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(place.path()).unwrap();
        folder.write(RUN_FILE, "{\"schema\": \"vera-gate/run/v2\"}").unwrap();
        assert!(matches!(folder.record(), Err(FolderError::Schema { .. })));
    }
}
