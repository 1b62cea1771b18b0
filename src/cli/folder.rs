//! The folder of a run: a new one, or one to go on with.

use std::path::{Path, PathBuf};

use chrono::Utc;

use super::prepare::Prepared;
use super::trust::not_of_the_repository;
use super::{Global, output};
use crate::error::Error;
use crate::run::{RunFolder, RunRecord, Stop};
use crate::sweep::journal::{Journal, PlanKey};

/// The folder of a run: an explicit one, an unfinished one of the same plan, or a new one.
pub(super) fn choose_folder(
    prepared: &Prepared,
    explicit: Option<&str>,
    fresh: bool,
    global: &Global,
) -> Result<(PathBuf, Found), Error> {
    let (path, found) = find_folder(prepared, explicit, fresh, global)?;
    if found == Found::Earlier {
        not_of_the_repository(&path)?;
    }
    Ok((path, found))
}

fn find_folder(
    prepared: &Prepared,
    explicit: Option<&str>,
    fresh: bool,
    global: &Global,
) -> Result<(PathBuf, Found), Error> {
    let hash: String = prepared.key.hash().chars().take(8).collect();
    // An unset variable of a script is no folder.
    if let Some(path) = explicit.filter(|path| !path.trim().is_empty()) {
        let path = PathBuf::from(path);
        let found = if Journal::plan_of(&path).is_some() { Found::Earlier } else { Found::New };
        if found == Found::New && RunFolder::at(&path).has_record() {
            return Err(Error::Usage(format!(
                "`{}` holds a result without a journal, such as a merged run; it would be overwritten, so give another folder",
                path.display()
            )));
        }
        if fresh && found == Found::Earlier {
            return Err(Error::Usage(format!(
                "`{}` holds a run already; --fresh starts a new folder, so give another one",
                path.display()
            )));
        }
        return Ok((path, found));
    }
    let out = prepared.loaded.base.join(&prepared.loaded.config.out);
    if !fresh {
        // One that a later run of the same plan passed over is history: the chatbot may have changed since.
        if let Some((path, _, true)) = earlier(&out).find(|(_, plan, _)| *plan == prepared.key) {
            return Ok((path, Found::Earlier));
        }
        // Whoever meant to go on should know why this is another run, and pays anew.
        if let Some((path, plan, _)) = earlier(&out).find(|(_, plan, open)| *open && *plan != prepared.key)
            && plan.shard == prepared.key.shard
            && !global.quiet
        {
            output::note(&format!(
                "the unfinished run in {} is not gone on with, because it belongs to another plan: {}",
                path.display(),
                plan.differences(&prepared.key).join("; ")
            ));
        }
    }
    // Shards that start together on one disk get folders of their own.
    let shard = prepared.key.shard.map_or_else(String::new, |s| format!("-{}of{}", s.number(), s.of()));
    Ok((new_folder(&out, &format!("{hash}{shard}")), Found::New))
}

/// A folder for a run that starts now, not there yet.
pub(super) fn new_folder(out: &Path, name: &str) -> PathBuf {
    let stamp = Utc::now().format("%Y%m%dT%H%M%SZ");
    let mut path = out.join(format!("{stamp}-{name}"));
    let mut number = 2;
    while path.exists() {
        path = out.join(format!("{stamp}-{name}-{number}"));
        number += 1;
    }
    path
}

/// Whether a run folder was there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It was.
    Earlier,
    /// It was not.
    New,
}

/// Whether there is nothing to go on with.
pub(super) fn is_done(record: &RunRecord) -> bool {
    match &record.stopped {
        None => record.complete,
        Some(why) => matches!(why, Stop::Curtailed(_)),
    }
}

/// The folders whose journal has a plan, each with whether there is something to go on with, the newest first.
fn earlier(out: &Path) -> impl Iterator<Item = (PathBuf, PlanKey, bool)> {
    let entries = std::fs::read_dir(out).into_iter().flatten().filter_map(Result::ok);
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    folders.into_iter().rev().filter_map(|path| {
        let plan = Journal::plan_of(&path)?;
        let open = !RunFolder::at(&path).record().is_ok_and(|record| is_done(&record));
        Some((path, plan, open))
    })
}
