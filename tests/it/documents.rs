//! What the documents say that can be checked: links, names, numbers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use vera_gate::exit::Exit;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The Markdown files of the top, of `docs` and of `fuzz`.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["", "docs", "fuzz"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 8, "{found:?}");
    found
}

#[test]
fn links_within_the_repository_lead_somewhere() {
    use pulldown_cmark::{Event, Parser, Tag};
    let mut broken = Vec::new();
    let mut followed = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for event in Parser::new(&text) {
            let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event else {
                continue;
            };
            let file = dest_url.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            if !document.parent().unwrap().join(file).exists() {
                broken.push(format!("{}: {dest_url}", document.display()));
            }
        }
    }
    assert!(followed > 0);
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The names in backticks in the first column of every table.
fn first_column(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" | ").next())
        .flat_map(|cell| cell.split(", "))
        .map(|name| name.trim_matches(['`', ' ']).to_owned())
        .collect()
}

#[test]
fn every_direct_dependency_has_its_reason() {
    let manifest = read("Cargo.toml");
    let mut wanted = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]");
        } else if let (true, Some((name, _))) = (inside, line.split_once(" = ")) {
            wanted.insert(name.to_owned());
        }
    }
    assert!(wanted.contains("tokio") && wanted.contains("proptest"));
    // The last table is about what is not here.
    let text = read("docs/dependencies.md");
    let (listed, _) = text.split_once("## Looked at").unwrap();
    assert_eq!(first_column(listed), wanted);
}

#[test]
fn the_readme_lists_the_exit_codes_of_the_program() {
    let readme = read("README.md");
    let listed: Vec<u8> = readme
        .lines()
        .skip_while(|line| !line.starts_with("| exit code"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.split('|').nth(1).unwrap().trim().parse().unwrap())
        .collect();
    assert_eq!(listed, Exit::ALL.map(Exit::code));
}

#[test]
fn the_architecture_lists_every_module() {
    let modules: BTreeSet<String> = read("src/lib.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    assert_eq!(first_column(&read("docs/architecture.md")), modules);
}

#[test]
fn the_configuration_of_the_readme_is_valid() {
    use vera_gate::config::Config;
    use vera_gate::source::Source;
    let readme = read("README.md");
    let (_, rest) =
        readme.split_once("```yaml\n# vera-gate.yaml\n").expect("the README shows a configuration");
    let (yaml, _) = rest.split_once("```").unwrap();
    let (config, warnings) = Config::parse(&Source::new("vera-gate.yaml", yaml)).unwrap();
    assert!(warnings.is_empty(), "{warnings}");
    for (role, settings) in [
        (vera_gate::model::Role::User, &config.users[0]),
        (vera_gate::model::Role::Candidate, &config.candidate.model),
        (vera_gate::model::Role::Judge, &config.judge.models[0].model),
    ] {
        vera_gate::model::identify(role, settings).unwrap();
    }
}

#[test]
fn the_readme_shows_what_the_program_prints() {
    let readme = read("README.md");
    let excerpts: Vec<&str> = readme
        .split("```text\n")
        .skip(1)
        .filter_map(|rest| rest.split_once("```"))
        .map(|(text, _)| text)
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let runs: [(&[&str], i32); 2] = [(&["run"], 0), (&["run", "--candidate", "harmful"], 1)];
    assert_eq!(excerpts.len(), runs.len());
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (excerpt, (arguments, code)) in excerpts.iter().zip(runs) {
        let mut command = assert_cmd::Command::cargo_bin("vera-gate").unwrap();
        let output = command.current_dir(folder.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        let printed = words(&String::from_utf8_lossy(&output.stdout));
        // Shortened: whole paragraphs are left out.
        for paragraph in excerpt.split("\n\n") {
            assert!(printed.contains(&words(paragraph)), "not printed:\n{paragraph}");
        }
    }
}
