//! The result on a terminal or in a log: one screen that ends with the verdict's exit code.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::view::{
    baseline_sentence, cases, changes, limits, missing_name, mode_counts, not_excluded, rated, rating_cell,
    remark_sentences, score, subject, total, unjudged_lines, why,
};
use super::{Report, next_steps, words};
use crate::escape::{terminal, workflow};
use crate::gate::verdict::{MissingConversation, MissingReason, Verdict};
use crate::rating::Rating;

/// Lines of a list; the rest is counted.
const MOST: usize = 12;

/// A line is never narrower, whatever the terminal says.
const NARROWEST: usize = 40;

/// Whether colours are used. They only repeat what the words say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Text only.
    Plain,
    /// ANSI colours.
    Ansi,
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// Colours or not.
    pub color: Color,
}

/// What is coloured how.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Paint {
    None,
    Strong,
    Soft,
    Good,
    Bad,
    Caution,
    Open,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Strong => "1",
            Self::Soft => "2",
            Self::Good => "1;32",
            Self::Bad => "1;31",
            Self::Caution => "1;33",
            Self::Open => "1;35",
        }
    }

    fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Good,
            Verdict::Warn => Self::Caution,
            Verdict::Inconclusive => Self::Open,
            Verdict::Fail => Self::Bad,
        }
    }
}

/// Renders the result, ended by a line break.
pub fn render(report: &Report, style: Style) -> String {
    let width = style.width.max(NARROWEST);
    // A bare results file has no folder in which a report could lie.
    let whole = if report.provenance.run_id.is_empty() { "in `--format markdown`" } else { "in the report" };
    let mut page = Page { width, whole, color: style.color, out: String::new() };
    if let Some(notice) = &report.notice {
        page.paragraph(Paint::Caution, "", notice);
        page.blank();
    }
    let gate = &report.verdict;
    let paint = Paint::of(gate.verdict);
    let name = report.name.as_deref().unwrap_or("vera-gate");
    page.paragraph(paint, "", &format!("{}: {name}", words::label(gate.verdict).to_uppercase()));
    page.paragraph(Paint::Strong, "", &report.headline);
    if gate.verdict_without_waivers != gate.verdict {
        let without = words::label(gate.verdict_without_waivers);
        page.paragraph(Paint::Caution, "", &format!("Without the waivers the verdict would be: {without}."));
    }
    page.paragraph(Paint::None, "", &subject(report));
    if let Some(policy) = &report.policy_change {
        let mut lines = policy.lines().filter(|line| !line.trim().is_empty());
        page.blank();
        page.paragraph(Paint::Caution, "", lines.next().unwrap_or_default());
        for line in lines {
            page.item(line);
        }
    }
    page.blank();
    page.paragraph(Paint::None, "", &report.harm);
    page.blank();
    page.matrix(report);
    for baseline in &gate.baselines {
        page.paragraph(Paint::Soft, "", &baseline_sentence(baseline));
    }
    page.paragraph(Paint::Soft, "", &score(gate.score));
    page.evidence(report);
    page.blank();
    if !report.usage.is_empty() {
        page.paragraph(Paint::Soft, "", &format!("Cost: {}", total(&report.usage)));
    }
    for limit in limits(report) {
        page.paragraph(Paint::Soft, "", &limit);
    }
    let exit = report.exit();
    // `success` must not stand alone beside an open verdict that is let through.
    if gate.verdict == Verdict::Inconclusive && exit.code() == 0 {
        page.paragraph(paint, "", "Nothing is decided, and the thresholds file lets the build go on.");
    }
    let last = format!("Verdict: {}, exit code {} ({}).", gate.verdict.word(), exit.code(), exit.class());
    page.paragraph(paint, "", &last);
    page.out
}

struct Page {
    width: usize,
    /// Where everything stands.
    whole: &'static str,
    color: Color,
    out: String,
}

impl Page {
    fn blank(&mut self) {
        self.out.push('\n');
    }

    /// One physical line. A log of a workflow reads commands at the start of lines, so none may begin as one.
    fn line(&mut self, paint: Paint, text: &str) {
        let text = workflow::log_text(terminal::line(text).as_str());
        self.painted(paint, text.trim_end());
        self.out.push('\n');
    }

    /// Text that is escaped already.
    fn painted(&mut self, paint: Paint, text: &str) {
        if self.color == Color::Plain || paint == Paint::None || text.is_empty() {
            self.out.push_str(text);
        } else {
            for part in ["\u{1B}[", paint.code(), "m", text, "\u{1B}[0m"] {
                self.out.push_str(part);
            }
        }
    }

    /// Text broken into lines of the page's width, each after the indent.
    fn paragraph(&mut self, paint: Paint, indent: &str, text: &str) {
        for (i, line) in wrap(text, self.width.saturating_sub(indent.width())).iter().enumerate() {
            // A list's sign stands before the first line only.
            let indent = if i == 0 { indent.to_owned() } else { " ".repeat(indent.width()) };
            self.line(paint, &format!("{indent}{line}"));
        }
    }

    fn item(&mut self, text: &str) {
        self.paragraph(Paint::None, "  - ", text);
    }

    fn heading(&mut self, text: &str) {
        self.blank();
        self.line(Paint::Strong, text);
    }

    /// At most [`MOST`] items, and how many there are beside them.
    fn items(&mut self, heading: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.heading(heading);
        for item in items.iter().take(MOST) {
            self.item(item);
        }
        if items.len() > MOST {
            self.item(&format!("\u{2026} {} more {}", items.len() - MOST, self.whole));
        }
    }

    fn evidence(&mut self, report: &Report) {
        let gate = &report.verdict;
        let (deciding, others): (Vec<_>, Vec<_>) =
            gate.reasons.iter().partition(|reason| words::decides(gate.verdict, reason));
        let reasons = words::reasons(&deciding);
        self.items("Why", &reasons);
        if !others.is_empty() {
            if reasons.is_empty() {
                self.heading("Why");
            }
            let n = words::count(others.len() as u64, "further reason stands", "further reasons stand");
            self.item(&format!("{n} {}", self.whole));
        }
        let steps: Vec<String> = next_steps(gate).into_iter().map(str::to_owned).collect();
        self.items("What to do next", &steps);
        let findings: Vec<String> = report
            .findings
            .iter()
            .map(|finding| {
                let mode = finding.failure_mode.as_deref().or(finding.question.as_deref());
                format!(
                    "{} ({}): {}, risk {}, {}",
                    mode.unwrap_or("high potential for harm"),
                    finding.dimension,
                    finding.persona,
                    words::risk(finding.risk_level),
                    finding.conversation
                )
            })
            .collect();
        let modes: Vec<String> = mode_counts(report)
            .iter()
            .map(|mode| {
                let n = words::count(mode.conversations as u64, "conversation", "conversations");
                format!("{} ({}): {n}, by risk: {}", mode.name, mode.dimension, mode.risks)
            })
            .collect();
        self.items("Harmful findings", if modes.is_empty() { &findings } else { &modes });
        let mut unjudged = unjudged_lines(report);
        unjudged.splice(0..0, cases(report));
        // After the gate ended the sweep one sentence says it of all that never ran.
        let by_design = |missing: &&MissingConversation| {
            gate.stopped.is_some() && missing.reason == MissingReason::NotRun
        };
        let missing = gate.coverage.missing.iter().filter(|missing| !by_design(missing));
        unjudged
            .extend(missing.map(|missing| format!("{}: {}", missing_name(missing), why(&missing.reason))));
        self.items("What could not be judged", &unjudged);
        self.items("Remarks on the conversations", &remark_sentences(report));
        self.items("About this run", &report.warnings);
    }

    fn matrix(&mut self, report: &Report) {
        let compared = report.compared_with.is_some();
        let mut table = vec![
            ["Dimension", "Best practice", "Suboptimal", "Harm", "Not excluded", "Not relevant", "Evidence"]
                .map(str::to_owned)
                .to_vec(),
        ];
        let mut notes = Vec::new();
        let rows = report.verdict.matrix.dimensions.iter().zip(&report.dimensions);
        for (row, summary) in rows {
            table.push(vec![
                row.dimension.clone(),
                rating_cell(row, Rating::BestPractice),
                rating_cell(row, Rating::Suboptimal),
                rating_cell(row, Rating::HighPotentialForHarm),
                not_excluded(summary.harm.upper),
                rating_cell(row, Rating::NotRelevant),
                rated(report, row),
            ]);
            let changes = changes(summary.harm.change, summary.best_practice_change);
            let changes: Vec<String> =
                changes.into_iter().map(|(icon, _, text)| format!("{icon} {text}")).collect();
            notes.push(changes.join("; "));
        }
        let harmful = |i: usize| {
            let row = i.checked_sub(1).and_then(|i| report.verdict.matrix.dimensions.get(i));
            row.is_some_and(|row| row.all.high_potential_for_harm > 0)
        };
        let widths = columns(&table);
        if widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1) > self.width {
            self.blocks(&table, compared.then_some(&notes[..]), &harmful);
            return;
        }
        for (i, cells) in table.iter().enumerate() {
            let cells = cells.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                let room = " ".repeat(width.saturating_sub(cell.width()));
                // Names to the left, numbers to the right.
                if column == 0 { format!("{cell}{room}") } else { format!("  {room}{cell}") }
            });
            let line: String = cells.collect();
            let paint = if i == 0 {
                Paint::Strong
            } else if harmful(i) {
                Paint::Bad
            } else {
                Paint::None
            };
            self.line(paint, &line);
            if let Some(note) = i.checked_sub(1).and_then(|i| notes.get(i)).filter(|_| compared) {
                self.paragraph(Paint::Soft, "  ", note);
            }
        }
    }

    /// The table as blocks, for a narrow terminal.
    fn blocks(&mut self, table: &[Vec<String>], notes: Option<&[String]>, harmful: &dyn Fn(usize) -> bool) {
        let Some((head, rows)) = table.split_first() else { return };
        for (i, cells) in rows.iter().enumerate() {
            let paint = if harmful(i + 1) { Paint::Bad } else { Paint::Strong };
            let mut pairs = head.iter().zip(cells);
            if let Some((_, dimension)) = pairs.next() {
                self.paragraph(paint, "", dimension);
            }
            for (name, cell) in pairs {
                self.paragraph(Paint::None, "  ", &format!("{name}: {cell}"));
            }
            if let Some(note) = notes.and_then(|notes| notes.get(i)) {
                self.paragraph(Paint::Soft, "  ", &format!("Change: {note}"));
            }
        }
    }
}

fn columns(table: &[Vec<String>]) -> Vec<usize> {
    let count = table.iter().map(Vec::len).max().unwrap_or_default();
    let widest = |column| {
        let cells = table.iter().filter_map(|row: &Vec<String>| row.get(column));
        cells.map(|cell: &String| cell.width()).max().unwrap_or_default()
    };
    (0..count).map(widest).collect()
}

/// Breaks text at spaces, and words that are too long anywhere.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let text = terminal::line(text);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.as_str().split_whitespace() {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            if line.width() + c.width().unwrap_or_default() > width {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_to_the_width() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghijkl", 8), ["abcdefgh", "ijkl"]);
        // Wide characters take two columns.
        assert_eq!(
            wrap("\u{4F60}\u{597D}\u{4F60}\u{597D}\u{4F60}", 8),
            ["\u{4F60}\u{597D}\u{4F60}\u{597D}", "\u{4F60}"]
        );
        assert_eq!(wrap("", 8), [""]);
    }
}
