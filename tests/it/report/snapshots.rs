//! Every rendering of every fixture, to be read by a person when it changes.

use vera_gate::report::terminal::{Color, Style};
use vera_gate::report::{Templates, html, json, junit, markdown, terminal};

use super::fixture;

macro_rules! snapshot {
    ($kind:literal, $name:expr, $text:expr) => {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(format!("report_{}_{}", $name, $kind), $text);
        });
    };
}

#[test]
fn markdown_pages() {
    for (name, report) in fixture::all() {
        snapshot!("markdown", name, markdown::document(&report, &Templates::builtin()));
    }
}

#[test]
fn terminal_pages() {
    for (name, report) in fixture::all() {
        snapshot!("terminal", name, terminal::render(&report, Style { width: 120, color: Color::Plain }));
    }
    snapshot!("narrow", "fail", terminal::render(&fixture::fail(), Style { width: 60, color: Color::Plain }));
    let coloured = terminal::render(&fixture::fail(), Style { width: 120, color: Color::Ansi });
    snapshot!("colour", "fail", coloured.replace('\u{1B}', "ESC"));
}

#[test]
fn html_pages() {
    for (name, report) in fixture::all() {
        // The style sheet is the same on every page.
        let page = html::render(&report);
        let (head, rest) = page.split_once("<style>").unwrap();
        let (_, body) = rest.split_once("</style>").unwrap();
        snapshot!("html", name, format!("{head}<style></style>{body}"));
    }
}

#[test]
fn junit_files() {
    for (name, report) in fixture::all() {
        snapshot!("junit", name, junit::render(&report).unwrap());
    }
}

#[test]
fn json_files() {
    snapshot!("json", "fail", json::render(&fixture::fail()).unwrap());
    snapshot!("json", "inconclusive", json::render(&fixture::inconclusive()).unwrap());
}
