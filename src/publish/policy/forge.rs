//! A commit read through the forge, for checkouts that do not hold it.

use std::time::Duration;

use tokio::runtime::Runtime;

use super::{PolicyError, is_commit_id};
use crate::publish::forge::{Forge, ForgeError};
use crate::source::{CommitReader, Entry};

/// How often a call is made that gets no answer.
const ATTEMPTS: u32 = 3;

/// A commit that the forge shows. Calls are made one by one, on a thread of their own: a reader may be in the middle of
/// other work that waits.
pub struct ForgeCommit<F> {
    forge: F,
    revision: String,
    /// Between two attempts.
    pause: Duration,
    /// Where the forge lives; only [`Drop`] takes it away.
    runtime: Option<Runtime>,
}

impl<F: Forge + Send> ForgeCommit<F> {
    /// A commit of the forge's repository. `connect` is called where a client may start its background work.
    ///
    /// # Errors
    /// When it is not shown. "Not found" is also what a token hears that may not read: so the commit itself must be seen
    /// before any file of it is believed to be absent.
    pub fn open(
        connect: impl FnOnce() -> Result<F, String>,
        revision: &str,
        pause: Duration,
    ) -> Result<Self, PolicyError> {
        if !is_commit_id(revision) {
            return Err(PolicyError::Revision(revision.to_owned()));
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| PolicyError::Forge(format!("no runtime: {error}")))?;
        let forge = {
            let _inside = runtime.enter();
            connect()
        };
        let forge = forge.map_err(PolicyError::Forge)?;
        let commit = Self { forge, revision: revision.to_owned(), pause, runtime: Some(runtime) };
        match commit.entry("") {
            Ok(Some(Entry::Folder(_))) => Ok(commit),
            Ok(_) => Err(PolicyError::Forge("the server does not show it to the token".to_owned())),
            Err(message) => Err(PolicyError::Forge(message)),
        }
    }

    async fn ask(&self, path: &str) -> Result<Option<Entry>, ForgeError> {
        let mut attempt = 1;
        loop {
            match self.forge.entry(path, &self.revision).await {
                Err(ForgeError::Unavailable { .. }) if attempt < ATTEMPTS => {
                    tokio::time::sleep(self.pause * attempt).await;
                    attempt += 1;
                }
                result => return result,
            }
        }
    }
}

impl<F: Forge + Send> CommitReader for ForgeCommit<F> {
    fn entry(&self, path: &str) -> Result<Option<Entry>, String> {
        let Some(runtime) = &self.runtime else { return Err("the connection is closed".to_owned()) };
        let work = || runtime.block_on(self.ask(path)).map_err(|error| error.to_string());
        std::thread::scope(|scope| {
            scope.spawn(work).join().unwrap_or_else(|_| Err("the call failed".to_owned()))
        })
    }
}

impl<F> Drop for ForgeCommit<F> {
    fn drop(&mut self) {
        // The last owner may stand in other work that waits, where a runtime must not be waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
