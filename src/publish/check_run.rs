//! The check on the reviewed commit: opened before the work, and closed whatever happens.

use super::Publication;
use super::annotations;
use super::forge::{CheckOutput, CheckState, Forge, ForgeError, NewCheck};
use super::pace::Pace;
use super::size;

const SMALLEST: usize = 1000;

/// Opens a check in progress, and returns its id.
///
/// When the answer to the call is lost, the check is looked for by our own id before another one is opened.
pub async fn open<F: Forge>(forge: &F, pace: Pace, check: &NewCheck) -> Result<u64, ForgeError> {
    let mut attempt = 0;
    let mut look_first = false;
    loop {
        let found = if look_first { find(forge, check).await } else { Ok(None) };
        let result = match found {
            Ok(Some(found)) => return Ok(found.id),
            Ok(None) => forge.create_check(check).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(state) => return Ok(state.id),
            Err(error) if pace.again(&error, attempt).await => {
                look_first = look_first || matches!(error, ForgeError::Unavailable { .. });
            }
            Err(error) => return Err(error),
        }
        attempt += 1;
    }
}

/// The check of this run and attempt, when it was opened before.
pub async fn find<F: Forge>(forge: &F, check: &NewCheck) -> Result<Option<CheckState>, ForgeError> {
    let checks = forge.checks(&check.head_sha, &check.name).await?;
    Ok(checks.into_iter().find(|c| c.external_id.as_deref() == Some(&check.external_id)))
}

/// Closes the check with the publication's verdict. Returns the names of sections that were cut for size.
///
/// Annotations are added by each call, so a call whose answer was lost is only repeated when the check is still open.
pub async fn close<F: Forge>(
    forge: &F,
    pace: Pace,
    id: u64,
    check: &NewCheck,
    publication: &Publication,
) -> Result<Vec<String>, ForgeError> {
    let mut budget = size::CHECK_SUMMARY;
    let mut attempt = 0;
    let mut look_first = false;
    loop {
        let fitted = size::fit(publication, "", budget);
        let output = CheckOutput {
            title: crate::escape::unicode::clip(&publication.title, 200).into_owned(),
            summary: fitted.text,
            annotations: annotations::for_check(&publication.annotations),
        };
        let conclusion = publication.conclusion();
        let open = if look_first { is_open(forge, id, check).await } else { Ok(true) };
        let result = match open {
            Ok(false) => return Ok(fitted.reduced),
            Ok(true) => forge.complete_check(id, conclusion, &output).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(_) => return Ok(fitted.reduced),
            Err(ForgeError::TooLong(_)) if budget.characters / 2 >= SMALLEST => {
                budget = budget.half_of(&output.summary);
                continue;
            }
            Err(error) if pace.again(&error, attempt).await => {
                look_first = look_first || matches!(error, ForgeError::Unavailable { .. });
            }
            Err(error) => return Err(error),
        }
        attempt += 1;
    }
}

async fn is_open<F: Forge>(forge: &F, id: u64, check: &NewCheck) -> Result<bool, ForgeError> {
    let checks = forge.checks(&check.head_sha, &check.name).await?;
    Ok(!checks.iter().any(|c| c.id == id && c.completed))
}
