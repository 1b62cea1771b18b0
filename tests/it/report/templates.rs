//! A team's own templates, and the document that describes them.

use std::collections::BTreeMap;

use vera_gate::escape::markdown::Markdown;
use vera_gate::report::templates::TemplateFault;
use vera_gate::report::view::View;
use vera_gate::report::{Templates, markdown};

use super::fixture;

fn own(templates: &[(&str, &str)]) -> Templates {
    let texts: BTreeMap<String, String> =
        templates.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Templates::with_own(&texts).unwrap()
}

#[test]
fn a_template_of_the_teams_own_replaces_its_section_and_nothing_else() {
    let templates = own(&[("cost", "### What it cost us\n\n{{cost.total}}")]);
    let page = markdown::document(&fixture::fail(), &templates);
    let builtin = markdown::document(&fixture::fail(), &Templates::builtin());
    let (before, rest) = builtin.split_once("<details><summary>Cost</summary>").unwrap();
    let after = rest.split_once("</details>").unwrap().1;
    let cost = "### What it cost us\n\n420 calls, 5,182,000 tokens, cost at least \u{200B}\\$\u{200B}4.21 (the price of \
                150 calls is not known).";
    assert_eq!(page, format!("{before}{cost}{after}"));
}

#[test]
fn a_template_that_fails_is_told_and_hides_nothing() {
    let rendered = markdown::render(
        &fixture::fail(),
        &own(&[("findings", "{{#each findings.items}}{{naem}}{{/each}}")]),
    );
    assert!(matches!(&rendered.faults[..], [TemplateFault::Failed { name, .. }] if name == "findings"));
    assert!(rendered.sections.iter().any(|section| section.markdown.as_str().contains("no-crisis-line")));
}

#[test]
fn the_document_names_every_section_and_field() {
    let document = include_str!("../../../docs/report.md");
    for name in Templates::section_names() {
        assert!(document.contains(&format!("| `{name}` |")), "section `{name}`");
    }
    let view: View<Markdown> = View::of(&fixture::fail(), 60);
    let mut unnamed = Vec::new();
    fields(&serde_json::to_value(&view).unwrap(), &mut |name| {
        if !document.contains(&format!("`{name}`")) {
            unnamed.push(name.to_owned());
        }
    });
    assert_eq!(unnamed, Vec::<String>::new());
}

fn fields(value: &serde_json::Value, see: &mut impl FnMut(&str)) {
    match value {
        serde_json::Value::Object(object) => {
            for (name, value) in object {
                see(name);
                fields(value, see);
            }
        }
        serde_json::Value::Array(items) => {
            for item in items {
                fields(item, see);
            }
        }
        _ => {}
    }
}
