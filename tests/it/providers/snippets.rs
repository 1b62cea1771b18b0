//! Every YAML snippet of the documents is a configuration that connects.

use std::path::Path;

use vera_gate::config::Config;
use vera_gate::model::meter::Budget;
use vera_gate::model::prices::PriceTable;
use vera_gate::model::{EnvLookup, Role, connect};
use vera_gate::source::Source;

use super::context;

/// The fenced blocks of a document: first line, kind and text.
fn blocks(name: &str) -> Vec<(usize, String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let mut blocks: Vec<(usize, String, String)> = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(kind) if !inside => {
                inside = true;
                blocks.push((number + 1, kind.to_owned(), String::new()));
            }
            Some(_) => inside = false,
            None if inside => {
                let block = &mut blocks.last_mut().unwrap().2;
                block.push_str(line);
                block.push('\n');
            }
            None => {}
        }
    }
    assert!(!inside, "{name} ends inside a block");
    blocks
}

/// A snippet names some roles; the script plays the others.
fn whole(snippet: &str) -> String {
    let mut file = snippet.to_owned();
    for (role, script) in [("user", "person"), ("candidate", "careful"), ("judge", "rules")] {
        if !snippet.lines().any(|line| line.starts_with(&format!("{role}:"))) {
            file.extend([role, ": scripted/", script, "\n"]);
        }
    }
    file
}

#[tokio::test]
async fn every_snippet_is_a_configuration_that_connects() {
    let mut tried = 0;
    for name in ["providers.md", "your-chatbot.md"] {
        for (line, kind, text) in blocks(name) {
            let place = format!("{name}:{line}");
            match kind.as_str() {
                "yaml" => {
                    let source = Source::new(place.clone(), whole(&text));
                    let (config, _) = Config::parse(&source).unwrap_or_else(|problems| panic!("{problems}"));
                    let (mut context, _) = context(Budget::default());
                    context.env = EnvLookup::new(|name| {
                        let key =
                            name.ends_with("KEY") || name.ends_with("TOKEN") || name.ends_with("BEDROCK");
                        key.then(|| "value-of-a-secret".to_owned())
                    });
                    let roles = config.users.iter().map(|model| (Role::User, model));
                    let roles = roles.chain([(Role::Candidate, &config.candidate.model)]);
                    let roles =
                        roles.chain(config.judge.models.iter().map(|judge| (Role::Judge, &judge.model)));
                    for (role, settings) in roles {
                        if let Err(problems) = connect(role, settings, &context) {
                            panic!("{place}: {problems}");
                        }
                    }
                }
                "yaml prices" => drop(PriceTable::shipped_with(&Source::new(place, text)).unwrap()),
                "json" => drop(serde_json::from_str::<serde_json::Value>(&text).unwrap()),
                other => panic!("{place}: a block of kind `{other}` that nothing checks"),
            }
            tried += 1;
        }
    }
    assert!(tried >= 20, "{tried}");
}

/// The table of providers is the list that the program knows.
#[test]
fn every_provider_is_documented() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/providers.md")).unwrap();
    let table: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    for name in vera_gate::model::provider_names() {
        assert!(table.iter().any(|row| row.contains(&format!("`{name}`"))), "{name}");
    }
}
