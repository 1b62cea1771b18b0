//! One run's publishing, across the processes of a workflow: a start, the gate, and an end that comes whatever
//! happened to the gate.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::context::ActionsContext;
use super::event::Event;
use super::forge::Forge;
use super::handover;
use super::publisher::{Gravity, Options, Published, Publisher, State, Warning, publish_locally};
use super::{Publication, Word};
use crate::exit::Exit;

/// Name of the file in the run folder that the start leaves for the end.
const STATE_FILE: &str = "publish-state.json";
/// Version tag of that file.
const SCHEMA: &str = "vera-gate/publish-state/v1";

#[derive(Serialize, Deserialize)]
struct StateFile {
    schema: String,
    run_id: u64,
    run_attempt: u32,
    #[serde(flatten)]
    state: State,
}

/// Leaves the state in the run folder.
pub fn save(folder: &Path, context: &ActionsContext, state: &State) -> io::Result<()> {
    let file = StateFile {
        schema: SCHEMA.to_owned(),
        run_id: context.run_id,
        run_attempt: context.run_attempt,
        state: state.clone(),
    };
    fs::create_dir_all(folder)?;
    fs::write(folder.join(STATE_FILE), serde_json::to_string(&file).map_err(io::Error::other)? + "\n")
}

/// Reads the state of this run and attempt. One of another run, or an unreadable one, is none: the check is then found
/// by its id.
pub fn load(folder: &Path, context: &ActionsContext) -> State {
    let read = fs::read_to_string(folder.join(STATE_FILE)).ok();
    read.and_then(|text| serde_json::from_str::<StateFile>(&text).ok())
        .filter(|file| {
            file.schema == SCHEMA && (file.run_id, file.run_attempt) == (context.run_id, context.run_attempt)
        })
        .map(|file| file.state)
        .unwrap_or_default()
}

/// What to publish for a gate that ended with `exit` and left `found`, or nothing.
///
/// A result counts only when it says what the exit code says. A gate that died next to the result of an earlier run
/// in the same folder has none.
pub fn settle(exit: Exit, found: Option<Publication>) -> Publication {
    let agrees = |publication: &Publication| {
        let verdict = !matches!(publication.word, Word::Running | Word::DidNotFinish);
        verdict
            && match exit {
                Exit::Success | Exit::PublishFailed => publication.exit == Exit::Success,
                // A provider that gave up leaves what was found until then.
                Exit::Provider => {
                    matches!(publication.exit, Exit::GateFailed | Exit::Inconclusive | Exit::Provider)
                }
                Exit::Internal => false,
                other => publication.exit == other,
            }
    };
    match (found.filter(agrees), exit) {
        (Some(publication), _) => publication,
        (None, Exit::Usage) => Publication::invalid(
            "The configuration or another input was refused, and nothing was measured. The log of the step says why.",
        ),
        (None, _) => Publication::did_not_finish(),
    }
}

/// The exit code of the whole: that of the gate, and never a success without a publication that says so.
pub fn exit_of(gate: Exit, publication: &Publication) -> Exit {
    match (gate, publication.exit) {
        (Exit::Success, Exit::Success) => Exit::Success,
        (Exit::Success, _) => Exit::Internal,
        (other, _) => other,
    }
}

/// Adds what the publication cannot know: how the command ended, and where its files are.
pub fn add_outputs(publication: &mut Publication, exit: Exit, folder: &Path) {
    let mut add = |name: &str, value: String| {
        publication.outputs.insert(name.to_owned(), value);
    };
    add("exit-class", exit.class().to_owned());
    add("run-folder", folder.display().to_string());
    let report = folder.join("report.md");
    if report.is_file() {
        add("report", report.display().to_string());
    }
}

/// Takes the pull request from the first of two stages into the options, when the forge confirms it.
pub async fn take_over<F: Forge>(
    forge: &F,
    context: &ActionsContext,
    folder: &Path,
    options: &mut Options,
) -> Result<(), String> {
    let Event::WorkflowRun(run) = &context.event else {
        return Err(format!("a hand-over is for `workflow_run` and not for `{}`", context.event.name()));
    };
    let claim = handover::read_claim(folder).map_err(|e| e.to_string())?;
    let pull = forge.pull(claim.number).await.map_err(|e| e.to_string())?;
    claim.verify(run, &pull).map_err(|e| e.to_string())?;
    options.pull = Some(claim.number);
    Ok(())
}

/// Publishes the end of a run: comment, check, outputs, summary, and files for a second stage where they are needed.
/// Without a forge only what needs none.
pub async fn finish<F: Forge>(
    forge: Option<&F>,
    context: &ActionsContext,
    options: &Options,
    folder: &Path,
    publication: &Publication,
) -> Published {
    let mut published = match forge {
        Some(forge) => {
            let publisher = Publisher::new(forge, context, options.clone());
            publisher.finish(publication, &load(folder, context)).await
        }
        None => Published::default(),
    };
    published.warnings.extend(publish_locally(context, publication));
    if published.hand_over
        && let Err(error) = handover::write(folder, context, publication)
    {
        let text = format!("the files for a second stage are not written: {error}");
        published.warnings.push(Warning { gravity: Gravity::Failure, text });
    }
    published
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::publish::context::tests::env;

    fn context() -> ActionsContext {
        ActionsContext::from_env(&env("schedule"), &json!({})).unwrap()
    }

    fn word(exit: Exit, found: Word) -> Word {
        settle(exit, Some(Publication::short(found, "x"))).word
    }

    #[test]
    fn a_result_counts_only_with_its_exit_code() {
        assert_eq!(word(Exit::Success, Word::Pass), Word::Pass);
        assert_eq!(word(Exit::Success, Word::Warn), Word::Warn);
        assert_eq!(word(Exit::GateFailed, Word::Fail), Word::Fail);
        assert_eq!(word(Exit::Inconclusive, Word::Inconclusive), Word::Inconclusive);
        // An earlier pass in the folder does not speak for a gate that died, failed or was refused.
        for exit in [Exit::GateFailed, Exit::Inconclusive, Exit::Provider, Exit::Internal] {
            assert_eq!(word(exit, Word::Pass), Word::DidNotFinish, "{exit:?}");
        }
        assert_eq!(word(Exit::Usage, Word::Pass), Word::Invalid);
        assert_eq!(word(Exit::Provider, Word::Fail), Word::Fail);
        assert_eq!(settle(Exit::Success, None).word, Word::DidNotFinish);
        // A thresholds file can let an inconclusive result go on; then result and exit code say so together.
        let lenient = Publication { exit: Exit::Success, ..Publication::short(Word::Inconclusive, "x") };
        assert_eq!(settle(Exit::Success, Some(lenient.clone())).word, Word::Inconclusive);
        assert_eq!(settle(Exit::Inconclusive, Some(lenient)).word, Word::DidNotFinish);
    }

    #[test]
    fn there_is_no_success_without_a_pass() {
        for found in [Word::Fail, Word::Inconclusive, Word::Invalid, Word::DidNotFinish, Word::Running] {
            assert_ne!(exit_of(Exit::Success, &Publication::short(found, "x")), Exit::Success, "{found:?}");
        }
        for exit in Exit::ALL {
            let publication = settle(exit, None);
            assert_ne!(exit_of(exit, &publication), Exit::Success, "{exit:?}");
        }
        assert_eq!(exit_of(Exit::GateFailed, &Publication::short(Word::Fail, "x")), Exit::GateFailed);
    }

    #[test]
    fn a_state_is_only_for_its_own_attempt() {
        let dir = tempfile::tempdir().unwrap();
        let state = State { check_id: Some(5) };
        save(dir.path(), &context(), &state).unwrap();
        assert_eq!(load(dir.path(), &context()), state);
        let mut next = context();
        next.run_attempt += 1;
        assert_eq!(load(dir.path(), &next), State::default());
        fs::write(dir.path().join(STATE_FILE), "broken").unwrap();
        assert_eq!(load(dir.path(), &context()), State::default());
    }
}
