//! What the machine can do to a run: no right to write, no room, broken lines in the journal.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Place, SWEEP, endpoint, program, said, same_results};
use crate::providers::server::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_lines_are_told_and_cost_only_themselves() {
    let server = endpoint(0).await;
    let (clean, place) = (Place::new(&server, SWEEP), Place::new(&server, SWEEP));
    clean.completes(&["run", "--run", "r"]);
    place.completes(&["run", "--run", "r"]);
    let journal = place.path("r/journal.jsonl");
    let mut bytes = std::fs::read(&journal).unwrap();
    let ends: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    // A letter in the middle of line 21 is another one; the last line is torn; the result was never written.
    bytes[ends[20] - 30] ^= 1;
    bytes.truncate(ends[ends.len() - 2] + 40);
    std::fs::write(&journal, &bytes).unwrap();
    let before = server.count();
    std::fs::remove_file(place.path("r/run.json")).unwrap();
    let output = place.run(&["run", "--run", "r"]);
    assert!(said(&output).contains("1 line of the journal is broken"), "{}", said(&output));
    assert_eq!(server.count() - before, 2, "one broken line, one torn one");
    same_results(&clean.path("r"), &place.path("r"));
    // What was made again is there now, and the broken line is still told of.
    let before = server.count();
    place.completes(&["run", "--run", "r"]);
    assert_eq!(server.count(), before);
}

/// A recording that cannot be written stops the run, as a journal does: what further calls bring would be lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_that_cannot_be_written_stops_the_run() {
    let server = endpoint(0).await;
    let (clean, place) = (Place::new(&server, SWEEP), Place::new(&server, SWEEP));
    clean.completes(&["run", "--run", "r"]);
    let needed = server.count();
    // No file may have more than 4,096 blocks of 512 bytes, and the recording has all but a few of these already.
    std::fs::write(place.path("rec.jsonl"), "\n".repeat(4096 * 512 - 6000)).unwrap();
    let script = "trap '' XFSZ; ulimit -f 4096; exec \"$0\" run --run r --record rec.jsonl";
    let output =
        program(place.path("").as_path(), Path::new("sh"), &["-c", script, env!("CARGO_BIN_EXE_vera-gate")])
            .output()
            .unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(said(&output).contains("rec.jsonl cannot be written"), "{}", said(&output));
    assert_eq!(place.json("r/run.json")["stopped"]["kind"], "storage");
    let called = server.count() - needed;
    assert!(called < needed, "calls that cannot be recorded are not made: {called}");
    place.completes(&["run", "--run", "r"]);
    let device = place.run(&["run", "--run", "d", "--record", "/dev/zero"]);
    assert!(said(&device).contains("this is no file"), "{}", said(&device));
}

/// Files that may not grow beyond a size fail as a full disk does: in the middle of a line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_the_run_and_loses_nothing_finished() {
    let server = endpoint(0).await;
    let (clean, place) = (Place::new(&server, SWEEP), Place::new(&server, SWEEP));
    clean.completes(&["run", "--run", "r"]);
    let needed = server.count();
    let full = std::fs::metadata(clean.path("r/journal.jsonl")).unwrap().len();
    let start = server.count();
    // Blocks of 512 bytes; half of the journal has room. The signal would kill the process before it can speak.
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" run --run r", full / 1024);
    let output =
        program(place.path("").as_path(), Path::new("sh"), &["-c", &script, env!("CARGO_BIN_EXE_vera-gate")])
            .output()
            .unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    let text = said(&output);
    assert!(text.contains("journal.jsonl` cannot be written"), "{text}");
    assert!(text.contains("run the same command again to go on"), "{text}");
    let called = server.count() - start;
    assert!(called < needed, "calls that cannot be recorded are not made: {called}");
    place.completes(&["run", "--run", "r"]);
    // One answer could not be written; the others that were out then were lost with it.
    let calls = server.count() - start;
    assert!(calls <= needed + 64, "{calls} instead of {needed}");
    let lines = std::fs::read_to_string(place.path("r/journal.jsonl")).unwrap().lines().count();
    assert_eq!(lines, needed + 1, "a header and every call once");
    same_results(&clean.path("r"), &place.path("r"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_without_the_right_to_write_is_told_before_any_call() {
    let server = endpoint(0).await;
    let place = Place::new(&server, SWEEP);
    let Some(mut command) = without_rights(&server, &place) else { return };
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    let text = said(&output);
    assert!(text.contains("locked") && text.to_lowercase().contains("permission denied"), "{text}");
    assert_eq!(server.count(), 0);
}

/// The program as somebody who may read everything here and write nothing. Root may write everywhere, so that it has
/// to become somebody else.
fn without_rights(_server: &Server, place: &Place) -> Option<Command> {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    let locked = place.path("locked");
    std::fs::create_dir(&locked).unwrap();
    let mode =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(&locked, 0o555);
    let arguments = ["run", "--run", "locked/r"];
    if std::fs::write(locked.join("probe"), "").is_err() {
        return Some(place.command(&arguments));
    }
    mode(&place.path(""), 0o755);
    mode(&place.path("vera-gate.yaml"), 0o644);
    // The program may lie where nobody else may look.
    let copy = place.path("vera-gate");
    std::fs::copy(env!("CARGO_BIN_EXE_vera-gate"), &copy).unwrap();
    mode(&copy, 0o755);
    let nobody = |arguments: &[&str]| {
        let mut command = program(&place.path(""), &copy, arguments);
        command.uid(65534).gid(65534);
        command
    };
    let works = nobody(&["--version"]).stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    if !works {
        eprintln!("SKIPPED: root may write everywhere, and nobody else may run the program here");
        return None;
    }
    Some(nobody(&arguments))
}
