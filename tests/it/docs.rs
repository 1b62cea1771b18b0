//! Documents that repeat what the program knows say the same. `UPDATE_DOCS=1 cargo test --test it docs::` rewrites the
//! generated parts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use vera_gate::config::Config;
use vera_gate::diagnostic::Code;
use vera_gate::exit::Exit;
use vera_gate::source::Source;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("docs/{name}: {error}"))
}

/// The part of a document between `<!-- generated -->` and `<!-- end -->` is this text.
fn holds(name: &str, generated: &str) {
    const START: &str = "<!-- generated -->\n";
    const END: &str = "<!-- end -->";
    let text = read(name);
    let (before, rest) = text.split_once(START).unwrap_or_else(|| panic!("docs/{name} has no `{START}`"));
    let (inside, after) = rest.split_once(END).unwrap_or_else(|| panic!("docs/{name} has no `{END}`"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path(name), format!("{before}{START}{generated}{END}{after}")).unwrap();
        return;
    }
    assert!(
        inside == generated,
        "docs/{name} is old: run with UPDATE_DOCS=1\n--- is\n{inside}\n--- should be\n{generated}"
    );
}

/// Text in a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[test]
fn every_diagnostic_code_is_listed_with_its_meaning() {
    let mut table = "| code | what it means |\n|---|---|\n".to_owned();
    for code in Code::ALL {
        let _written = writeln!(table, "| `{code}` | {} |", cell(code.meaning()));
    }
    holds("codes.md", &table);
}

#[test]
fn every_exit_code_is_listed_with_its_meaning() {
    let mut table = "| code | class | what it means |\n|---|---|---|\n".to_owned();
    for exit in Exit::ALL {
        let _written = writeln!(table, "| {} | `{}` | {} |", exit.code(), exit.class(), exit.meaning());
    }
    holds("exit-codes.md", &table);
}

/// What a key may hold, in words.
fn allowed(key: &Value) -> Option<String> {
    if let Some(words) = key["enum"].as_array() {
        let words: Vec<String> =
            words.iter().filter(|word| !word.is_null()).map(|word| format!("`{}`", text_of(word))).collect();
        return Some(words.join(", "));
    }
    match (key.get("minimum"), key.get("maximum")) {
        (Some(least), Some(most)) => Some(format!("{} to {}", plain(least), plain(most))),
        (Some(least), None) => Some(format!("from {}", plain(least))),
        _ => None,
    }
}

fn plain(number: &Value) -> String {
    // 1e-6 is how JSON writes what people write as 0.000001.
    number.as_f64().filter(|n| n.fract() != 0.0).map_or_else(|| number.to_string(), |n| format!("{n}"))
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn rows(into: &mut String, properties: &Value) {
    into.push_str("| key | default | what |\n|---|---|---|\n");
    for (name, key) in properties.as_object().unwrap() {
        let default =
            key.get("default").map_or_else(String::new, |default| format!("`{}`", text_of(default)));
        let mut what = key["description"].as_str().unwrap().to_owned();
        // Sections of their own list their keys below.
        if let Some(allowed) = allowed(key) {
            let _written = write!(what, " Allowed: {allowed}.");
        }
        let _written = writeln!(into, "| `{name}` | {default} | {} |", cell(&what));
    }
    into.push('\n');
}

fn schema() -> Value {
    serde_json::from_str(&read("schema/config.schema.json")).unwrap()
}

#[test]
fn every_key_of_the_configuration_is_documented() {
    let schema = schema();
    let mut text = String::new();
    let sections: [(&str, &str); 15] = [
        ("The file", "/properties"),
        ("`user`, `candidate`, `judge`, `judging.confirm`: a model", "/$defs/model/properties"),
        ("`candidate`, beside the keys of a model", "/properties/candidate/anyOf/1/properties"),
        ("`judge`, beside the keys of a model", "/properties/judge/anyOf/1/properties"),
        ("`capabilities` of a model", "/$defs/model/properties/capabilities/properties"),
        ("`http` of a model", "/$defs/model/properties/http/properties"),
        ("`http.start`, `http.turn`, `http.end`: a request", "/$defs/call/properties"),
        ("`http.stream`", "/$defs/model/properties/http/properties/stream/properties"),
        ("`command` of a model", "/$defs/model/properties/command/properties"),
        ("`judging`", "/properties/judging/properties"),
        ("`sweep`", "/properties/sweep/properties"),
        ("`concurrency`", "/properties/concurrency/properties"),
        ("`budget`", "/properties/budget/properties"),
        ("`gate`", "/properties/gate/properties"),
        ("`report`", "/properties/report/properties"),
    ];
    for (title, pointer) in sections {
        let properties = schema.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}"));
        let _written = write!(text, "### {title}\n\n");
        rows(&mut text, properties);
    }
    // No section of the schema may be forgotten above.
    let listed: Vec<&str> = sections.iter().map(|(_, pointer)| *pointer).collect();
    let mut open = vec![("/properties".to_owned(), schema["properties"].clone())];
    open.push(("/$defs/model/properties".to_owned(), schema["$defs"]["model"]["properties"].clone()));
    while let Some((pointer, properties)) = open.pop() {
        assert!(listed.contains(&pointer.as_str()), "{pointer} is not documented");
        for (name, key) in properties.as_object().unwrap() {
            if let Some(inner) = key.get("properties") {
                open.push((format!("{pointer}/{name}/properties"), inner.clone()));
            }
        }
    }
    holds("configuration.md", &text);
}

/// The defaults that the schema states are those of the parser.
#[test]
fn stated_defaults_are_the_effective_ones() {
    let text = "user: scripted/user\ncandidate: scripted/careful\njudge: scripted/judge\n";
    let (config, _) = Config::parse(&Source::new("c.yaml", text)).unwrap();
    let effective: BTreeMap<String, Value> =
        config.entries().into_iter().map(|entry| (entry.key, entry.value)).collect();
    let schema = schema();
    let mut compared = 0;
    let mut compare = |key: String, stated: &Value| {
        let found = effective.get(&key).unwrap_or_else(|| panic!("`{key}` has no effective value"));
        assert_eq!(found, stated, "{key}");
        compared += 1;
    };
    for (name, key) in schema["properties"].as_object().unwrap() {
        if let Some(stated) = key.get("default") {
            compare(name.clone(), stated);
        }
        for (inner, key) in key.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let Some(stated) = key.get("default") {
                compare(format!("{name}.{inner}"), stated);
            }
        }
    }
    compare(
        "judge.instances".to_owned(),
        &schema["properties"]["judge"]["anyOf"][1]["properties"]["instances"]["default"],
    );
    assert!(compared >= 14, "{compared}");
    // And nothing has a default that is not stated.
    for (key, value) in &effective {
        let pointer = format!("/properties/{}", key.replace('.', "/properties/"));
        let stated = schema.pointer(&pointer).and_then(|key| key.get("default"));
        let given =
            ["user.model", "candidate.model", "judge.model", "judge.instances"].contains(&key.as_str());
        assert!(given || stated == Some(value), "{key}: {value} is not the stated default {stated:?}");
    }
}

/// Every environment variable that changes the configuration is documented, and none that does not exist.
#[test]
fn every_environment_variable_is_documented() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_vera-gate")).args(["config", "show", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let document = read("configuration.md");
    let names = |text: &str| -> std::collections::BTreeSet<String> {
        text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'))
            .filter(|word| word.strip_prefix("VERA_GATE_").is_some_and(|name| !name.is_empty()))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(names(&document), names(&help));
    assert!(names(&help).len() >= 12);
    for flag in help.split_whitespace().filter(|word| word.starts_with("--")) {
        let flag: String = flag.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        let ours = ["--origin", "--format", "--help", "--version", "--quiet", "--verbose", "--color"];
        assert!(
            ours.contains(&flag.as_str()) || document.contains(&format!("`{flag}`")),
            "{flag} is not documented"
        );
    }
}
