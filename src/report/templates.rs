//! The Markdown templates, and a team's own in their place.
//!
//! Templates see a [`View`](super::view::View): every text in it is escaped already, so the engine escapes nothing.
//! A template that fails never hides a result: the built-in one is used in its place, and the fault is reported.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use handlebars::Handlebars;
use handlebars::template::Template;
use serde::Serialize;

use crate::diagnostic::did_you_mean;

macro_rules! builtin {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../templates/report/", $name, ".md.hbs")))),+]
    };
}

/// Templates that a team may replace, by the name of their section.
const SECTIONS: &[(&str, &str)] = builtin![
    "policy",
    "matrix",
    "reasons",
    "rules",
    "findings",
    "unjudged",
    "remarks",
    "warnings",
    "regressions",
    "risk",
    "coverage",
    "cost",
    "provenance",
];

/// Templates that stay as they are: the verdict with its notices, and what the report is not.
const FIXED: &[(&str, &str)] = builtin!["heading", "limits"];

const PAGE: (&str, &str) = ("page", include_str!("../../templates/report/page.html.hbs"));

/// What a template's file is called.
pub const SUFFIX: &str = ".md.hbs";

/// A template of a team's own that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    /// No section has this name.
    #[error("there is no section `{name}`: {help}")]
    UnknownName {
        /// The name given.
        name: String,
        /// The nearest name.
        help: String,
    },
    /// It is there for the verdict and the limits, which no template may change.
    #[error("the template `{0}` cannot be replaced: it holds what every report must say")]
    Fixed(String),
    /// It is no template.
    #[error("the template `{name}` cannot be read: {fault}")]
    Syntax {
        /// Its name.
        name: String,
        /// Why.
        fault: String,
    },
    /// It failed while a report was written.
    #[error("the template `{name}` failed, the built-in one was used: {fault}")]
    Failed {
        /// Its name.
        name: String,
        /// Why.
        fault: String,
    },
}

/// The built-in templates, compiled once.
#[expect(clippy::panic, reason = "the templates are part of the program; a test renders every one")]
static BUILTIN: LazyLock<Handlebars<'static>> = LazyLock::new(|| {
    let mut builtin = engine();
    for (name, text) in SECTIONS.iter().chain(FIXED).chain([&PAGE]) {
        match Template::compile(text) {
            Ok(template) => builtin.register_template(name, template),
            Err(fault) => panic!("built-in template {name}: {fault}"),
        }
    }
    builtin
});

/// Compiled templates.
#[derive(Debug)]
pub struct Templates {
    own: Handlebars<'static>,
}

impl Default for Templates {
    fn default() -> Self {
        Self::builtin()
    }
}

fn engine() -> Handlebars<'static> {
    let mut engine = Handlebars::new();
    engine.register_escape_fn(handlebars::no_escape);
    // A field that does not exist is a fault, not a gap in the report.
    engine.set_strict_mode(true);
    engine
}

impl Templates {
    /// The built-in templates.
    pub fn builtin() -> Self {
        Self { own: engine() }
    }

    /// The built-in templates with a team's own in their place, by section name (the file's name without
    /// [`SUFFIX`]).
    ///
    /// # Errors
    /// Every template that cannot be used.
    pub fn with_own(own: &BTreeMap<String, String>) -> Result<Self, Vec<TemplateFault>> {
        let mut templates = Self::builtin();
        let mut faults = Vec::new();
        for (name, text) in own {
            if FIXED.iter().any(|(fixed, _)| fixed == name) {
                faults.push(TemplateFault::Fixed(name.clone()));
            } else if !SECTIONS.iter().any(|(section, _)| section == name) {
                let help = did_you_mean(name, SECTIONS.iter().map(|(section, _)| *section));
                faults.push(TemplateFault::UnknownName { name: name.clone(), help });
            } else {
                match Template::compile(text) {
                    Ok(template) => templates.own.register_template(name, template),
                    Err(fault) => {
                        faults.push(TemplateFault::Syntax { name: name.clone(), fault: fault.to_string() });
                    }
                }
            }
        }
        if faults.is_empty() { Ok(templates) } else { Err(faults) }
    }

    /// Names of the sections that a team may replace.
    pub fn section_names() -> impl Iterator<Item = &'static str> {
        SECTIONS.iter().map(|(name, _)| *name)
    }

    /// Renders a section. The second value says what became of a team's own template that failed.
    pub(super) fn render(&self, name: &str, view: &impl Serialize) -> (String, Option<TemplateFault>) {
        let mut fault = None;
        if self.own.has_template(name) {
            match self.own.render(name, view) {
                Ok(text) => return (text, None),
                Err(error) => {
                    fault = Some(TemplateFault::Failed { name: name.to_owned(), fault: error.to_string() });
                }
            }
        }
        (render_builtin(name, view), fault)
    }
}

/// Renders a built-in template.
#[expect(clippy::panic, reason = "the templates are part of the program; a test renders every one")]
pub(super) fn render_builtin(name: &str, view: &impl Serialize) -> String {
    match BUILTIN.render(name, view) {
        Ok(text) => text,
        Err(fault) => panic!("built-in template {name}: {fault}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(name: &str, text: &str) -> Result<Templates, Vec<TemplateFault>> {
        Templates::with_own(&BTreeMap::from([(name.to_owned(), text.to_owned())]))
    }

    #[test]
    fn a_template_replaces_its_section_only() {
        let templates = own("cost", "Cost: {{cost.total}}").unwrap();
        let view = serde_json::json!({"cost": {"total": "$1.00"}});
        assert_eq!(templates.render("cost", &view), ("Cost: $1.00".to_owned(), None));
    }

    #[test]
    fn wrong_names_and_broken_templates_are_told() {
        let fault = own("provenence", "x").unwrap_err().remove(0);
        assert!(fault.to_string().contains("did you mean `provenance`?"), "{fault}");
        assert_eq!(own("heading", "all is well").unwrap_err(), [TemplateFault::Fixed("heading".into())]);
        assert!(matches!(own("cost", "{{#if}").unwrap_err()[..], [TemplateFault::Syntax { .. }]));
    }

    #[test]
    fn a_template_that_fails_does_not_hide_its_section() {
        let templates = own("risk", "{{no.such.field}}").unwrap();
        let view = serde_json::json!({"risk": {"levels": ["High"], "rows": []}});
        let (text, fault) = templates.render("risk", &view);
        assert!(text.contains("Harm by the persona's risk level"), "{text}");
        assert!(matches!(fault, Some(TemplateFault::Failed { name, .. }) if name == "risk"));
    }
}
