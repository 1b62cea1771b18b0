//! How many calls a second the whole program makes, and how much memory it needs, when no model keeps it waiting.
//!
//! `cargo bench --bench scripted_run` lets the scripted provider hold and judge 200 conversations of up to 30 messages
//! with the `run` command, then judges, gates and reports the same conversations again with the commands for that. Each
//! line is a process of its own. Peak memory is read from `/proc` while it runs (Linux; elsewhere it is 0).

use std::error::Error;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const CONVERSATIONS: u64 = 200;
/// 100 personas twice; `curtail: never`, so that every conversation is held.
const CONFIG: &str = "user: { model: scripted/person }\n\
    candidate: { model: scripted/careful }\n\
    judge: { model: scripted/rules }\n\
    sweep: { runs: 2, max_messages: 30, curtail: never }\n\
    out: runs\n";
/// Between two looks at a process; what it allocates after the last look is missed.
const LOOK: Duration = Duration::from_millis(2);

fn main() -> Result<()> {
    // `cargo test --benches` starts this too, and asks for no measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("vera-gate.yaml"), CONFIG)?;
    let mut out = io::stdout();
    writeln!(out, "| command | conversations | messages | calls | wall s | calls / s | peak MiB |")?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|")?;

    let held = measure(folder.path(), &["run"])?;
    let run = newest_run(&folder.path().join("runs"))?;
    let record: Value = serde_json::from_slice(&std::fs::read(run.join("run.json"))?)?;
    if record.get("evaluated").and_then(Value::as_u64) != Some(CONVERSATIONS) {
        return Err(
            format!("{CONVERSATIONS} conversations were to be judged, run.json says otherwise").into()
        );
    }
    let messages = messages(&run.join("conversations"))?;
    line(&mut out, "run", messages, calls(&record), &held)?;

    let run = run.to_str().ok_or("the temporary folder's name is not UTF-8")?;
    let again = folder.path().join("again");
    let again = again.to_str().ok_or("the temporary folder's name is not UTF-8")?;
    let judged = measure(folder.path(), &["judge", run, "--out", again])?;
    let record: Value =
        serde_json::from_slice(&std::fs::read(newest_run(Path::new(again))?.join("run.json"))?)?;
    line(&mut out, "judge", messages, calls(&record), &judged)?;
    for command in ["gate", "report"] {
        line(&mut out, command, messages, 0, &measure(folder.path(), &[command, run])?)?;
    }
    Ok(())
}

/// What one process took.
struct Figures {
    wall: f64,
    peak_kib: u64,
}

/// Runs the program in a folder until it ends with exit code 0.
fn measure(folder: &Path, arguments: &[&str]) -> Result<Figures> {
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_vera-gate"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut peak_kib = 0;
    let status = wait(&mut child, |pid| peak_kib = peak_kib.max(peak_of(pid)))?;
    let wall = start.elapsed().as_secs_f64();
    if !status.success() {
        return Err(format!("vera-gate {} ended with {status}", arguments.join(" ")).into());
    }
    Ok(Figures { wall, peak_kib })
}

fn wait(child: &mut Child, mut look: impl FnMut(u32)) -> Result<ExitStatus> {
    loop {
        look(child.id());
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(LOOK);
    }
}

/// The most memory that a process has had so far, in KiB.
fn peak_of(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// The folder whose name comes last: names begin with the time.
fn newest_run(folder: &Path) -> Result<PathBuf> {
    if folder.join("run.json").is_file() {
        return Ok(folder.to_owned());
    }
    let names =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    names.into_iter().max().ok_or_else(|| format!("no run in {}", folder.display()).into())
}

/// Messages in all transcripts. The first line of each is its head.
fn messages(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let text = std::fs::read_to_string(path)?;
            sum += text.lines().filter(|line| line.starts_with("{\"speaker\"")).count() as u64;
        }
    }
    Ok(sum)
}

/// Calls of all roles, from the run's own count.
fn calls(record: &Value) -> u64 {
    let usage = record.get("usage").and_then(Value::as_array);
    usage.into_iter().flatten().filter_map(|row| row.get("calls").and_then(Value::as_u64)).sum()
}

fn line(out: &mut impl io::Write, command: &str, messages: u64, calls: u64, figures: &Figures) -> Result<()> {
    let peak = figures.peak_kib as f64 / 1024.0;
    let (calls, rate) = match calls {
        0 => ("-".to_owned(), "-".to_owned()),
        calls => (calls.to_string(), format!("{:.0}", calls as f64 / figures.wall)),
    };
    let wall = figures.wall;
    writeln!(out, "| {command} | {CONVERSATIONS} | {messages} | {calls} | {wall:.2} | {rate} | {peak:.0} |")?;
    out.flush()?;
    Ok(())
}
