//! Measures what the sweep and the judge cost beside the waiting for models.
//!
//! `cargo run --release --example bench-sweep` runs every scenario and prints a table; names as arguments choose
//! some of them. Each scenario is a process of its own, and so is the endpoint it talks to, so that processor time
//! and memory are those of the sweep alone. Everything stays on this machine, and every process ends by itself.
//!
//! The ideal is what the endpoint's delays alone would take: the longest conversation, or all delays divided by the
//! calls allowed at once, whichever is more.

mod endpoint;
mod process;
mod scenario;

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use scenario::{Figures, SCENARIOS, Scenario};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--serve", delay, spread] => endpoint::serve(delay.parse()?, spread.parse()?),
        ["--measure", name, address] => {
            let figures = scenario::measure(named(name)?, address)?;
            writeln!(std::io::stdout(), "{}", serde_json::to_string(&figures)?)?;
            Ok(())
        }
        [] => table(&SCENARIOS.iter().collect::<Vec<_>>()),
        names => table(&names.iter().map(|name| named(name)).collect::<Result<Vec<_>>>()?),
    }
}

fn named(name: &str) -> Result<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name).ok_or_else(|| {
        let known: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        format!("no scenario `{name}`; there are {}", known.join(", ")).into()
    })
}

fn table(scenarios: &[&Scenario]) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| scenario | calls | wall s | ideal s | wall / ideal | calls / s | CPU ms / call | peak MiB | most at once |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|"
    )?;
    for scenario in scenarios {
        let figures = apart(scenario)?;
        let (ideal, over) = if figures.ideal > 0.0 {
            (format!("{:.2}", figures.ideal), format!("{:.2}", figures.wall / figures.ideal))
        } else {
            ("-".to_owned(), "-".to_owned())
        };
        writeln!(
            out,
            "| {} | {} | {:.2} | {ideal} | {over} | {:.0} | {:.3} | {:.0} | {} |",
            scenario.name,
            figures.calls,
            figures.wall,
            figures.calls as f64 / figures.wall,
            1000.0 * figures.processor / figures.calls as f64,
            figures.peak_kib as f64 / 1024.0,
            figures.most_at_once,
        )?;
        out.flush()?;
    }
    Ok(())
}

/// Runs one scenario in a process of its own, against an endpoint in another.
fn apart(scenario: &Scenario) -> Result<Figures> {
    let program = std::env::current_exe()?;
    let mut server = Command::new(&program)
        .args(["--serve", &scenario.delay_ms.to_string(), &scenario.spread.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut address = String::new();
    BufReader::new(server.stdout.take().ok_or("the endpoint has no output")?).read_line(&mut address)?;
    let measured = Command::new(&program)
        .args(["--measure", scenario.name, address.trim()])
        .stderr(Stdio::inherit())
        .output();
    // The endpoint ends when its input is closed.
    drop(server.stdin.take());
    server.wait()?;
    let measured = measured?;
    if !measured.status.success() {
        return Err(format!("{} failed: {}", scenario.name, measured.status).into());
    }
    Ok(serde_json::from_slice(&measured.stdout)?)
}
