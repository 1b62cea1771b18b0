//! A forge that is a folder: shows what would be published, where there is no forge or nothing shall be written to it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use super::forge::{
    CheckOutput, CheckState, Comment, Conclusion, Forge, ForgeError, NewCheck, Operation, PullState,
};
use crate::source::Entry;

/// Author of the comment in the folder.
const AUTHOR: &str = "vera-gate";
/// Id of the only comment, and of the only check.
const ONLY: u64 = 1;
const COMMENT_FILE: &str = "comment.md";

/// Writes `comment.md` and `check.json` into a folder.
pub struct Preview {
    folder: PathBuf,
    head_sha: String,
    check: Mutex<Option<NewCheck>>,
}

impl Preview {
    /// A preview in the folder, which is made when it is not there, for the given commit.
    pub fn new(folder: &Path, head_sha: impl Into<String>) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self { folder: folder.to_owned(), head_sha: head_sha.into(), check: Mutex::new(None) })
    }

    fn comment_file(&self) -> PathBuf {
        self.folder.join(COMMENT_FILE)
    }

    fn write(&self, operation: Operation, name: &str, text: &str) -> Result<(), ForgeError> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(|e| ForgeError::Refused {
            operation,
            status: 0,
            message: format!("{}: {e}", path.display()),
        })
    }

    fn write_comment(&self, body: &str) -> Result<Comment, ForgeError> {
        self.write(Operation::WriteComment, COMMENT_FILE, body)?;
        Ok(Comment { id: ONLY, author: Some(AUTHOR.to_owned()), body: body.to_owned() })
    }
}

impl Forge for Preview {
    async fn login(&self) -> Result<Option<String>, ForgeError> {
        Ok(Some(AUTHOR.to_owned()))
    }

    async fn pull(&self, _number: u64) -> Result<PullState, ForgeError> {
        Ok(PullState { head_sha: self.head_sha.clone(), head_repository: None })
    }

    async fn comments(&self, _pull: u64, _page: u32) -> Result<(Vec<Comment>, bool), ForgeError> {
        match fs::read_to_string(self.comment_file()) {
            Ok(body) => Ok((vec![Comment { id: ONLY, author: Some(AUTHOR.to_owned()), body }], false)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((Vec::new(), false)),
            Err(error) => {
                Err(ForgeError::Unreadable { operation: Operation::ListComments, message: error.to_string() })
            }
        }
    }

    async fn create_comment(&self, _pull: u64, body: &str) -> Result<Comment, ForgeError> {
        self.write_comment(body)
    }

    async fn update_comment(&self, _id: u64, body: &str) -> Result<Comment, ForgeError> {
        self.write_comment(body)
    }

    async fn delete_comment(&self, _id: u64) -> Result<(), ForgeError> {
        fs::remove_file(self.comment_file()).map_err(|_gone| ForgeError::NotFound(Operation::WriteComment))
    }

    async fn checks(&self, _sha: &str, _name: &str) -> Result<Vec<CheckState>, ForgeError> {
        Ok(Vec::new())
    }

    async fn create_check(&self, check: &NewCheck) -> Result<CheckState, ForgeError> {
        *self.check.lock().unwrap_or_else(PoisonError::into_inner) = Some(check.clone());
        Ok(CheckState { id: ONLY, external_id: Some(check.external_id.clone()), completed: false })
    }

    async fn complete_check(
        &self,
        id: u64,
        conclusion: Conclusion,
        output: &CheckOutput,
    ) -> Result<CheckState, ForgeError> {
        let check = self.check.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let annotations: Vec<_> = output
            .annotations
            .iter()
            .map(|a| json!({"path": a.path, "line": a.line, "level": a.level.as_str(), "title": a.title, "message": a.message}))
            .collect();
        let text = format!(
            "{:#}\n",
            json!({
                "name": check.as_ref().map(|check| &check.name),
                "head_sha": check.as_ref().map(|check| &check.head_sha),
                "conclusion": conclusion,
                "title": output.title,
                "summary": output.summary,
                "annotations": annotations,
            })
        );
        self.write(Operation::WriteCheck, "check.json", &text)?;
        Ok(CheckState { id, external_id: check.map(|check| check.external_id), completed: true })
    }

    async fn entry(&self, path: &str, _revision: &str) -> Result<Option<Entry>, ForgeError> {
        Err(ForgeError::Refused {
            operation: Operation::ReadFile,
            status: 0,
            message: format!("a folder has no commits to read {path} from"),
        })
    }
}
