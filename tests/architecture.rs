//! Which module may use which, and which outside crate may appear where. The tables below are the documentation of the
//! crate's shape; a line of code that breaks one of them fails here, with its file and line.
//!
//! Tests inside the crate (`#[cfg(test)]`, files named `tests.rs`) are left out: they may reach anywhere.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "clippy.toml allows them in tests, but clippy does not see helpers of an integration test as tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each top-level module and the others it may use. What is not listed is refused, so nothing points back.
const MAY_USE: &[(&str, &[&str])] = &[
    // Leaves: they know nothing of the domain.
    ("escape", &[]),
    ("exit", &[]),
    ("fingerprint", &[]),
    ("source", &[]),
    ("stats", &[]),
    ("diagnostic", &["source"]),
    ("error", &["diagnostic", "exit"]),
    // Inputs become values.
    ("config", &["diagnostic", "source"]),
    ("target", &["config", "diagnostic", "escape", "fingerprint", "source"]),
    ("transcript", &["diagnostic", "source", "target"]),
    // Values become counts, counts become a verdict. No file, no clock, no environment.
    ("rating", &["target", "transcript"]),
    ("matrix", &["diagnostic", "rating", "source", "target", "transcript"]),
    ("baseline", &["diagnostic", "fingerprint", "matrix", "rating", "source", "target", "transcript"]),
    (
        "gate",
        &[
            "baseline",
            "config",
            "diagnostic",
            "exit",
            "matrix",
            "rating",
            "source",
            "stats",
            "target",
            "transcript",
        ],
    ),
    (
        "report",
        &[
            "baseline",
            "config",
            "diagnostic",
            "escape",
            "exit",
            "fingerprint",
            "gate",
            "matrix",
            "rating",
            "source",
            "stats",
            "target",
            "transcript",
        ],
    ),
    ("calibrate", &["diagnostic", "matrix", "rating", "source", "stats", "target"]),
    ("history", &["baseline", "fingerprint", "gate", "matrix", "rating", "stats"]),
    // The world outside: models, conversations, forges.
    ("model", &["config", "diagnostic", "escape", "fingerprint", "source", "target", "transcript"]),
    ("judge", &["config", "diagnostic", "fingerprint", "model", "rating", "source", "target", "transcript"]),
    (
        "sweep",
        &[
            "config",
            "diagnostic",
            "fingerprint",
            "gate",
            "judge",
            "model",
            "rating",
            "source",
            "stats",
            "target",
            "transcript",
        ],
    ),
    (
        "run",
        &[
            "diagnostic",
            "fingerprint",
            "gate",
            "matrix",
            "model",
            "rating",
            "source",
            "sweep",
            "target",
            "transcript",
        ],
    ),
    ("publish", &["diagnostic", "escape", "exit", "gate", "report", "source"]),
];

/// The edge may use every module.
const EDGE: &[&str] = &["cli", "main", "lib"];

/// Outside crates and parts of the standard library, and the files (by the start of their path below `src`) that may
/// name them.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("octocrab::", &["publish/github"]),
    ("reqwest::", &["model/"]),
    ("tokio::", &["cli/", "judge/", "model/", "publish/", "sweep/"]),
    ("tokio_util::", &["cli/", "judge/", "model/", "publish/", "sweep/"]),
    ("futures::", &["cli/", "judge/", "model/", "publish/", "sweep/"]),
    ("async fn", &["cli/", "judge/", "model/", "publish/", "sweep/"]),
    (".await", &["cli/", "judge/", "model/", "publish/", "sweep/"]),
    ("handlebars::", &["model/http_endpoint/templates.rs", "report/"]),
    // People's YAML goes through `config/yaml.rs`, which knows lines; our own tables need no lines.
    ("saphyr::", &["config/yaml/node.rs"]),
    ("serde_yaml::", &["model/capabilities.rs", "model/prices.rs", "model/profiles.rs"]),
    ("clap::", &["cli/"]),
    ("indicatif::", &["cli/"]),
    ("tracing_subscriber::", &["cli/"]),
    ("csv::", &["baseline", "calibrate/", "cli/history.rs", "matrix/"]),
    ("quick_xml::", &["report/"]),
    ("rand::", &["model/scripted/", "stats/", "sweep/"]),
    // The environment, at the edge only. The connector reads the variables that the configuration names.
    ("std::env", &["cli/", "model/connect", "model/transport.rs", "publish/context.rs"]),
    (
        "std::fs",
        &["cli/", "model/cassette.rs", "model/transport.rs", "publish/", "run/", "source/", "sweep/"],
    ),
    // Other programs: the candidate's own, and git, which knows the base branch.
    (
        "std::process",
        &["cli/", "exit.rs", "main.rs", "model/command.rs", "publish/policy/git.rs", "publish/trust.rs"],
    ),
    ("std::net", &["model/", "publish/"]),
    ("Utc::now", &["cli/", "model/", "publish/", "sweep/"]),
    ("Local::now", &["cli/"]),
    ("Instant::now", &["cli/", "model/", "publish/", "sweep/"]),
    ("SystemTime::now", &["cli/", "model/", "publish/", "sweep/"]),
];

/// Lines a Rust file may have.
const LONGEST_FILE: usize = 600;

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every Rust file below `src` by its path with `/`, and its text.
fn files() -> BTreeMap<String, String> {
    files_below(&src())
}

fn files_below(root: &Path) -> BTreeMap<String, String> {
    fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, into);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                into.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    walk(root, &mut paths);
    paths
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

/// Files that hold nothing but tests of the crate.
fn is_test_file(name: &str) -> bool {
    name.ends_with("/tests.rs") || name.contains("/tests/")
}

/// The code alone: comments, the content of strings and modules under `#[cfg(test)]` become blanks; lines stay.
fn code_of(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let mut code = String::with_capacity(text.len());
    let mut index = 0;
    let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
    while index < chars.len() {
        let c = at(index);
        let word_before = index > 0 && (chars[index - 1].is_alphanumeric() || chars[index - 1] == '_');
        // The end of what is blanked out, from `index`; nothing when the character is code.
        let end = if c == '/' && at(index + 1) == '/' {
            (index..chars.len()).find(|&i| chars[i] == '\n').unwrap_or(chars.len())
        } else if c == '/' && at(index + 1) == '*' {
            let mut depth = 0;
            let mut i = index;
            loop {
                match (at(i), at(i + 1)) {
                    ('/', '*') => (depth, i) = (depth + 1, i + 2),
                    ('*', '/') => (depth, i) = (depth - 1, i + 2),
                    _ => i += 1,
                }
                if depth == 0 || i >= chars.len() {
                    break i.min(chars.len());
                }
            }
        } else if c == '"' {
            let mut i = index + 1;
            while i < chars.len() && chars[i] != '"' {
                i += if chars[i] == '\\' { 2 } else { 1 };
            }
            (i + 1).min(chars.len())
        } else if c == 'r' && !word_before && (at(index + 1) == '"' || at(index + 1) == '#') {
            let hashes = (index + 1..chars.len()).take_while(|&i| at(i) == '#').count();
            if at(index + 1 + hashes) == '"' {
                let mut i = index + 2 + hashes;
                while i < chars.len()
                    && !(chars[i] == '"' && (1..=hashes).all(|offset| at(i + offset) == '#'))
                {
                    i += 1;
                }
                (i + 1 + hashes).min(chars.len())
            } else {
                index
            }
        } else if c == '\'' && (at(index + 1) == '\\' || at(index + 2) == '\'') {
            let mut i = index + if at(index + 1) == '\\' { 3 } else { 2 };
            while i < chars.len() && chars[i] != '\'' {
                i += 1;
            }
            (i + 1).min(chars.len())
        } else {
            index
        };
        if end > index {
            code.extend(chars[index..end].iter().map(|&c| blank(c)));
            index = end;
        } else {
            code.push(c);
            index += 1;
        }
    }
    without_tests(&code)
}

/// Blanks the item after each `#[cfg(test)]`: a module with its body, or whatever ends at `;`.
fn without_tests(code: &str) -> String {
    let mut chars: Vec<char> = code.chars().collect();
    let mark: Vec<char> = "#[cfg(test)]".chars().collect();
    let mut index = 0;
    while index + mark.len() <= chars.len() {
        if chars[index..index + mark.len()] != mark[..] {
            index += 1;
            continue;
        }
        let mut depth = 0;
        let mut end = index + mark.len();
        while end < chars.len() {
            match chars[end] {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            end += 1;
            if depth == 0 && matches!(chars[end - 1], '}' | ';') {
                break;
            }
        }
        for c in &mut chars[index..end] {
            if *c != '\n' {
                *c = ' ';
            }
        }
        index = end;
    }
    chars.into_iter().collect()
}

/// How deep the module of a file lies: `a.rs` and `a/mod.rs` 1, `a/b.rs` 2. `lib.rs` and `main.rs` are the root.
fn depth(name: &str) -> usize {
    match name {
        "lib.rs" | "main.rs" => 0,
        _ => name.split('/').count() - usize::from(name.ends_with("/mod.rs")),
    }
}

/// The top-level module of a file.
fn module_of(name: &str) -> &str {
    name.split(['/', '.']).next().unwrap()
}

/// Top-level modules that a code names, with the line.
fn uses(name: &str, code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut starts = vec!["crate::".to_owned(), "vera_gate::".to_owned()];
    if depth(name) > 0 {
        starts.push("super::".repeat(depth(name)));
    }
    for start in starts {
        for (offset, _) in code.match_indices(&start) {
            let before = code[..offset].chars().next_back().unwrap_or(' ');
            // `$crate::`, `my_crate::`, or one more `super::` in front, which is counted where it starts.
            if before.is_alphanumeric() || before == '_' || before == ':' {
                continue;
            }
            let line = code[..offset].matches('\n').count() + 1;
            let rest = &code[offset + start.len()..];
            found.extend(first_names(rest).into_iter().map(|module| (line, module)));
        }
    }
    found
}

/// The first name of a path, or of each path in a group: `{a::b, c}` gives `a` and `c`.
fn first_names(rest: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = rest.strip_prefix('{') else { return vec![word(rest)] };
    let mut names = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (index, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(word(&group[start..index]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(word(&group[start..index]));
                start = index + 1;
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// What a file breaks of [`MAY_USE`].
fn wrong_uses(name: &str, code: &str, modules: &BTreeSet<String>) -> Vec<String> {
    let module = module_of(name);
    if EDGE.contains(&module) {
        return Vec::new();
    }
    let Some((_, allowed)) = MAY_USE.iter().find(|(listed, _)| *listed == module) else {
        return vec![format!("src/{name}: module `{module}` is not in the table MAY_USE")];
    };
    let wrong = |used: &str| used != module && modules.contains(used) && !allowed.contains(&used);
    uses(name, code)
        .into_iter()
        .filter(|(_, used)| wrong(used))
        .map(|(line, used)| format!("src/{name}:{line}: `{module}` may not use `{used}`"))
        .collect()
}

/// What a file breaks of [`ONLY_IN`].
fn wrong_crates(name: &str, code: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (text, places) in ONLY_IN {
        if places.iter().any(|place| name.starts_with(place)) {
            continue;
        }
        for (offset, _) in code.match_indices(text) {
            let before = code[..offset].chars().next_back().unwrap_or(' ');
            if text.starts_with('.') || !(before.is_alphanumeric() || before == '_') {
                let line = code[..offset].matches('\n').count() + 1;
                wrong.push(format!("src/{name}:{line}: `{text}` belongs in {}", places.join(", ")));
            }
        }
    }
    wrong
}

fn modules(files: &BTreeMap<String, String>) -> BTreeSet<String> {
    files.keys().map(|name| module_of(name).to_owned()).collect()
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let files = files();
    let modules = modules(&files);
    let mut wrong = Vec::new();
    for (name, text) in files.iter().filter(|(name, _)| !is_test_file(name)) {
        let code = code_of(text);
        wrong.extend(wrong_uses(name, &code, &modules));
        wrong.extend(wrong_crates(name, &code));
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn files_stay_short() {
    let long: Vec<String> = ["src", "tests", "benches", "examples"]
        .iter()
        .flat_map(|folder| {
            let files = files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
            files.into_iter().map(move |(name, text)| (format!("{folder}/{name}"), text.lines().count()))
        })
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(name, lines)| format!("{name}: {lines} lines, at most {LONGEST_FILE}"))
        .collect();
    assert!(long.is_empty(), "\n{}\n", long.join("\n"));
}

#[test]
fn the_table_has_no_circle_and_names_only_modules() {
    let modules = modules(&files());
    let mut settled: BTreeSet<&str> = BTreeSet::new();
    for (module, allowed) in MAY_USE {
        assert!(modules.contains(*module), "there is no module `{module}`");
        assert!(allowed.is_sorted(), "`{module}`: keep the list sorted");
    }
    // Whoever uses only settled modules is settled; what is left at the end uses each other in a circle.
    while let Some((module, _)) = MAY_USE.iter().find(|(module, allowed)| {
        !settled.contains(module) && allowed.iter().all(|used| settled.contains(used))
    }) {
        settled.insert(module);
    }
    let left: Vec<&str> = MAY_USE.iter().map(|(m, _)| *m).filter(|m| !settled.contains(m)).collect();
    assert!(left.is_empty(), "modules in a circle: {left:?}");
}

#[test]
fn the_scanner_finds_what_it_looks_for() {
    let modules: BTreeSet<String> = ["gate", "report", "matrix", "stats", "config"].map(str::to_owned).into();
    let wrong = |name: &str, text: &str| wrong_uses(name, &code_of(text), &modules);
    assert_eq!(
        wrong("matrix/mod.rs", "use x;\nuse crate::gate::Verdict;\n"),
        ["src/matrix/mod.rs:2: `matrix` may not use `gate`"]
    );
    assert_eq!(wrong("matrix/mod.rs", "use crate::{rating::{self, X},\n gate::Y};\n").len(), 1);
    assert_eq!(wrong("matrix/a.rs", "fn f() { super::super::report::f() }").len(), 1);
    assert_eq!(wrong("matrix/a.rs", "fn f() { super::report::f() }").len(), 0, "a module of its own");
    assert_eq!(wrong("newcomer.rs", "").len(), 1, "a module that nobody placed");
    for harmless in [
        "// crate::gate\n",
        "/* crate::gate /* nested */ crate::gate */\n",
        "const A: &str = \"crate::gate\";\n",
        "const A: &str = r#\"crate::gate \"quoted\" \"#;\n",
        "const A: (char, &str) = ('\"', \"crate::gate\");\n",
        "#[cfg(test)]\nmod tests { fn f() { let _ = crate::gate::X { a: 1 }; } }\n",
        "#[cfg(test)]\nuse crate::gate::X;\nfn f<'a>(x: &'a str) {}\n",
    ] {
        assert_eq!(wrong("matrix/a.rs", harmless), [""; 0], "{harmless}");
    }
    let after = "#[cfg(test)]\nmod tests { fn f() {} }\nfn g() { crate::gate::f() }\n";
    assert_eq!(wrong("matrix/a.rs", after), ["src/matrix/a.rs:3: `matrix` may not use `gate`"]);

    assert_eq!(wrong_crates("stats/a.rs", "use std::fs;\n").len(), 1);
    assert_eq!(wrong_crates("source/files.rs", "use std::fs;\n").len(), 0);
    assert_eq!(wrong_crates("publish/github.rs", "use octocrab::Octocrab;\n").len(), 0);
    assert_eq!(wrong_crates("gate/a.rs", "let day = chrono::Utc::now();\n").len(), 1);
}
