//! Markdown: comment, check, job summary, `report.md`.

use super::size::{self, Budget, Fitted, Parts, Section};
use super::templates::{TemplateFault, Templates};
use super::view::{self, View};
use super::{Report, templates, words};
use crate::escape::markdown::{self, Markdown};
use crate::escape::unicode::clip;

/// Items of a list in the whole form of a section. `report.html` has all of them.
const MOST: usize = 60;

/// Items of a list in the shorter form.
const FEW: usize = 8;

/// Graphemes of a foreign name or sentence in the short heading.
const SHORT: usize = 200;

/// The name of each section for readers, its template and its priority, in the order of the page. The highest number
/// is left out first.
const ORDER: [(&str, &str, u8); 14] = [
    ("changed policy", "policy", 1),
    ("result", "matrix", 0),
    ("why", "reasons", 2),
    ("harmful findings", "findings", 4),
    ("rules", "rules", 3),
    ("what could not be judged", "unjudged", 5),
    ("remarks on the conversations", "remarks", 6),
    ("about this run", "warnings", 6),
    ("comparison with the baseline", "regressions", 7),
    ("harm by risk level", "risk", 9),
    ("coverage", "coverage", 8),
    ("cost", "cost", 11),
    ("provenance", "provenance", 10),
    ("limits", "limits", 1),
];

/// A report in parts, each of them valid Markdown by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Notices, verdict, one sentence.
    pub heading: Markdown,
    /// Notice and verdict in a few hundred characters.
    pub short_heading: Markdown,
    /// The rest in its order; sections without content are absent.
    pub sections: Vec<Section>,
    /// Where the full report is, as the end of a sentence.
    pub full_report: Markdown,
    /// Templates of the team's own that failed; the built-in ones stand in their place.
    pub faults: Vec<TemplateFault>,
}

impl Rendered {
    /// The parts within a budget, with a marker or nothing at the end.
    pub fn fit(&self, tail: &str, budget: Budget) -> Fitted {
        let Self { heading, short_heading, sections, full_report, faults: _ } = self;
        size::fit(Parts { heading, short_heading, sections, full_report, tail }, budget)
    }
}

/// Renders the report in parts.
pub fn render(report: &Report, templates: &Templates) -> Rendered {
    let whole: View<Markdown> = View::of(report, MOST);
    let few: View<Markdown> = View::of(report, FEW);
    let mut faults = Vec::new();
    let mut sections = Vec::new();
    for (name, template, priority) in ORDER {
        if !has_content(template, &whole) {
            continue;
        }
        let (text, fault) = templates.render(template, &whole);
        let shorter = templates.render(template, &few).0;
        faults.extend(fault);
        let trusted = |text: String| Markdown::trusted(text.trim().to_owned());
        sections.push(Section {
            name: name.to_owned(),
            shorter: (shorter.len() < text.len()).then(|| trusted(shorter)),
            markdown: trusted(text),
            priority,
        });
    }
    let heading = templates::render_builtin("heading", &whole);
    Rendered {
        heading: Markdown::trusted(heading.trim().to_owned()),
        short_heading: short_heading(report, &whole),
        sections,
        full_report: view::full_report(report),
        faults,
    }
}

/// `report.md`: everything, ended by a line break.
pub fn document(report: &Report, templates: &Templates) -> String {
    let mut text = render(report, templates).fit("", Budget::NONE).text;
    text.push('\n');
    text
}

/// Whether a section has anything to show: sections appear only with content.
fn has_content(template: &str, view: &View<Markdown>) -> bool {
    match template {
        "policy" => !view.policy_change.is_empty(),
        "reasons" => !view.reasons.is_empty() || !view.other_reasons.is_empty() || !view.waivers.is_empty(),
        "rules" => !view.broken.is_empty() || !view.holding.is_empty(),
        "findings" => !view.findings.is_empty(),
        "unjudged" => view.unjudged.any,
        "remarks" => view.remarks.any,
        "warnings" => !view.warnings.is_empty(),
        "regressions" => !view.regressions.is_empty(),
        "risk" => !view.risk.levels.is_empty(),
        "cost" => !view.cost.rows.is_empty(),
        _ => true,
    }
}

fn short_heading(report: &Report, view: &View<Markdown>) -> Markdown {
    let verdict = report.verdict.verdict;
    let notice = match &report.notice {
        Some(notice) => format!("> [!WARNING]\n> **{}**\n\n", markdown::inline(&clip(notice, SHORT))),
        None => String::new(),
    };
    let policy = match report.policy_change.as_deref().and_then(|words| words.lines().next()) {
        Some(words) => format!("\n\n> [!WARNING]\n> **{}**", markdown::inline(&clip(words, SHORT))),
        None => String::new(),
    };
    let name = report.name.as_deref().unwrap_or("vera-gate");
    Markdown::trusted(format!(
        "{notice}## {} {}\n\n> [!{}]\n> **{}**{policy}",
        words::icon(verdict),
        markdown::inline(&format!("{}: {}", clip(name, SHORT / 4), words::label(verdict))),
        view.verdict.alert,
        markdown::inline(&clip(&report.headline, SHORT)),
    ))
}
