//! What `vera-gate check TARGET` shows: a target in numbers, and its flow as a graph.

use std::collections::BTreeSet;

use super::rubric::{Graph, Question, Severity, Transition, Walk};
use super::{Checked, Persona, RiskLevel, Rubric, Target};
use crate::escape::terminal;

/// Whatever was checked, in numbers, for a terminal. Ends with a newline.
pub fn summary(checked: &Checked) -> String {
    let lines = match checked {
        Checked::Target(target) => of_target(target),
        Checked::Rubric(rubric) => of_rubric(rubric),
        Checked::Personas(file) => table(&personas(&file.personas, file.risk_column.as_deref())),
    };
    lines.join("\n") + "\n"
}

/// Heading, flow, questions of each dimension, personas of each risk level, fingerprints.
fn of_target(target: &Target) -> Vec<String> {
    let mut lines = heading(target);
    lines.push(String::new());
    lines.extend(of_rubric(&target.rubric));
    lines.push(String::new());
    lines.extend(table(&personas(&target.personas, target.risk_column.as_deref())));
    lines.push(String::new());
    lines.push(format!("sha-256 rubric    {}", target.fingerprints.rubric));
    lines.push(format!("sha-256 personas  {}", target.fingerprints.personas));
    lines.push(format!("sha-256 prompts   {}", target.fingerprints.prompts));
    lines
}

fn of_rubric(rubric: &Rubric) -> Vec<String> {
    let graph = Graph::new(rubric);
    let automatic = rubric.questions.iter().filter(|question| question.auto.is_some()).count();
    let without_call =
        if automatic == 0 { String::new() } else { format!(", {automatic} answered without a call") };
    let dimension_count = counted(rubric.dimensions.len(), "dimension");
    let clean = match graph.clean_calls() {
        None => "none: no walk rates every dimension without a finding".to_owned(),
        Some((fewest, most)) if fewest == most => counted(most, "call"),
        Some((fewest, most)) => format!("{fewest} to {}", counted(most, "call")),
    };
    let mut lines = vec![
        format!("questions      {} in {dimension_count}{without_call}", rubric.questions.len()),
        format!("shortest walk  {}", walk(rubric, &graph.shortest_walk())),
        format!("longest walk   {}", walk(rubric, &graph.longest_walk())),
        format!("clean walk     {clean}"),
        String::new(),
    ];
    lines.extend(table(&dimensions(rubric)));
    lines
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn shown(text: &str) -> String {
    terminal::line(text.trim()).into_string()
}

fn heading(target: &Target) -> Vec<String> {
    let version = target.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    let title = target.title.as_ref().map_or_else(String::new, |title| format!(": {}", shown(title)));
    let mut lines = vec![format!("target {}{version}{title}", shown(&target.name))];
    if target.clinically_validated == Some(false) {
        lines.push("not clinically validated".to_owned());
    }
    lines.extend(target.notice.as_deref().map(shown));
    lines
}

fn walk(rubric: &Rubric, walk: &Walk) -> String {
    let ids = walk.questions.iter().filter_map(|&at| rubric.questions.get(at));
    let ids: Vec<String> = ids.map(|question| shown(&question.id)).collect();
    format!("{}: {}", counted(walk.calls, "call"), ids.join(" > "))
}

fn dimensions(rubric: &Rubric) -> Vec<Vec<String>> {
    let row = |name: &str, questions: &[&Question]| {
        let severity = |wanted| questions.iter().filter(|question| question.severity == wanted).count();
        let counts = [
            questions.len(),
            severity(Some(Severity::Red)),
            severity(Some(Severity::Yellow)),
            severity(None),
        ];
        std::iter::once(name.to_owned()).chain(counts.map(|count| count.to_string())).collect()
    };
    let mut rows = vec![["dimension", "questions", "red", "yellow", "steering"].map(str::to_owned).to_vec()];
    for (index, name) in rubric.dimensions.iter().enumerate() {
        let questions: Vec<&Question> =
            rubric.questions.iter().filter(|question| question.dimension == index).collect();
        rows.push(row(&shown(name), &questions));
    }
    rows.push(row("all", &rubric.questions.iter().collect::<Vec<_>>()));
    rows
}

fn personas(personas: &[Persona], risk_column: Option<&str>) -> Vec<Vec<String>> {
    let all = personas.len();
    let row = |name: &str, count: usize| {
        let tenths = (count * 1000 + all / 2) / all.max(1);
        vec![name.to_owned(), count.to_string(), format!("{}.{} %", tenths / 10, tenths % 10)]
    };
    let mut rows = vec![["risk level", "personas", "share"].map(str::to_owned).to_vec()];
    let count = |wanted| personas.iter().filter(|persona| persona.risk_level == wanted).count();
    if risk_column.is_some() {
        rows.extend(RiskLevel::ALL.map(|level| row(level.word(), count(Some(level)))));
    }
    match count(None) {
        0 => {}
        without => rows.push(row("(not stated)", without)),
    }
    rows.push(row("all", all));
    rows
}

/// The first column to the left, numbers to the right.
fn table(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// The flow in Graphviz' language: one box of questions per dimension, one arrow per destination.
pub fn dot(rubric: &Rubric, name: &str) -> String {
    let mut lines = vec![
        format!("digraph {} {{", quoted(name)),
        "  rankdir=TB;".to_owned(),
        "  node [shape=box, style=\"rounded,filled\", fillcolor=white];".to_owned(),
    ];
    for (index, name) in rubric.dimensions.iter().enumerate() {
        lines.push(format!("  subgraph cluster_{index} {{"));
        lines.push(format!("    label={};", quoted(name)));
        let inside = rubric.questions.iter().enumerate().filter(|(_, question)| question.dimension == index);
        lines.extend(inside.map(|(at, question)| node(at, question)));
        lines.push("  }".to_owned());
    }
    let mut ends = BTreeSet::new();
    let mut arrows = Vec::new();
    for (at, question) in rubric.questions.iter().enumerate() {
        for (then, texts) in destinations(question) {
            ends.extend(end(then));
            arrows.push(arrow(at, then, &texts));
        }
    }
    lines.extend(
        ends.into_iter().map(|(name, label)| format!("  {name} [label=\"{label}\", shape=plaintext];")),
    );
    lines.extend(arrows);
    lines.push("}".to_owned());
    lines.join("\n") + "\n"
}

fn node(at: usize, question: &Question) -> String {
    let colour = match question.severity {
        Some(Severity::Red) => ", fillcolor=\"#f4c7c3\"",
        Some(Severity::Yellow) => ", fillcolor=\"#fce8b2\"",
        None => "",
    };
    let shape = if question.auto.is_some() { ", shape=ellipse" } else { "" };
    let label = match &question.label {
        Some(label) => format!("{}: {label}", question.id),
        None => question.id.clone(),
    };
    format!("    q{at} [label={}{colour}{shape}];", quoted(&label))
}

/// Where the answers of a question lead; those with the same destination share an arrow.
fn destinations(question: &Question) -> Vec<(Transition, Vec<&str>)> {
    let mut shared: Vec<(Transition, Vec<&str>)> = Vec::new();
    for (_, option) in question.live_options() {
        match shared.iter_mut().find(|(then, _)| *then == option.then) {
            Some((_, texts)) => texts.push(&option.text),
            None => shared.push((option.then, vec![&option.text])),
        }
    }
    shared
}

/// Name and label of the node a terminal leads to.
fn end(then: Transition) -> Option<(&'static str, &'static str)> {
    match then {
        Transition::Ask(_) | Transition::NotRelevant(_) => None,
        Transition::AssignEnd => Some(("assign_end", "ASSIGN_END: the rest is Not Relevant")),
        Transition::End => Some(("end", "END: Not Relevant")),
        Transition::Done => Some(("done", "rated")),
    }
}

fn arrow(at: usize, then: Transition, texts: &[&str]) -> String {
    let (note, style) = match then {
        Transition::NotRelevant(_) => (" (dimension Not Relevant)", ", style=dashed"),
        _ => ("", ""),
    };
    let to = match (end(then), then.question()) {
        (Some((name, _)), _) => name.to_owned(),
        (None, next) => format!("q{}", next.unwrap_or(at)),
    };
    format!("  q{at} -> {to} [label={}{style}];", quoted(&(texts.join(" / ") + note)))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text).replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::FileSet;
    use crate::target::check;

    /// Three dimensions, one automatic question, three personas.
    fn target() -> Checked {
        let rubric = "Question ID\tDimension\tSeverity\tQuestion\tAnswer\tGOTO\tLabel\tAuto Answer\n\
            1\tNotices\tRed\tMissed?\tYes\t2\tmissed \"it\"\t\n\t\t\t\tNo\t3\t\t\n\t\t\t\tRefused\tEND\t\t\n\
            2\tAsks\t\tSkip.\tSkip\tNOT_RELEVANT>>4\t\ttrue\n\
            3\tAsks\tYellow\tNot asked?\tYes\t4\tunasked\t\n\t\t\t\tNo\t4\t\t\n\
            4\tTone\tRed\tCold?\t\t\tcold\t\n";
        let files = FileSet::memory(
            "",
            [
                ("own/rubric.tsv", rubric),
                ("own/personas.tsv", "Name\tAge\tCurrent Risk Level\nA\t1\tNone\nB\t2\tLow\nC\t3\tLow\n"),
                ("own/persona_prompt_template.txt", "You are {Age}."),
                ("own/persona_prompt_reminder.txt", "Stay in role.\n"),
                ("own/rubric_prompt_beginning.txt", "{conversation}"),
                ("own/question_prompt.txt", "{question}{examples_section}{options}"),
            ],
        );
        check("own", &files).map_or_else(|problems| panic!("{problems}"), |(checked, _)| checked)
    }

    #[test]
    fn the_summary_counts_the_flow_and_the_personas() {
        let shown = summary(&target());
        let body = shown.split("\nsha-256").next().unwrap();
        // Worked by hand: Refused is one call; 1, 3, 4 is three; of three personas one is None, two are Low.
        assert_eq!(
            body,
            "target own

questions      4 in 3 dimensions, 1 answered without a call
shortest walk  1 call: 1
longest walk   3 calls: 1 > 3 > 4
clean walk     3 calls

dimension  questions  red  yellow  steering
Notices            1    1       0         0
Asks               2    0       1         1
Tone               1    1       0         0
all                4    2       1         1

risk level  personas    share
None               1   33.3 %
Low                2   66.7 %
High               0    0.0 %
Immediate          0    0.0 %
all                3  100.0 %
"
        );
    }

    #[test]
    fn a_table_alone_is_checked_as_what_it_is() {
        let files = FileSet::memory(
            "",
            [
                ("r.tsv", "Question ID\tDimension\tSeverity\tQuestion\tAnswer\tGOTO\n1\tA\tRed\tQ\t\t\n"),
                ("p.tsv", "Name\tAge\nA\t1\nB\t2\n"),
                ("bad.tsv", "Name\tAge\nA\t1\na\t2\n"),
            ],
        );
        let shown = |path: &str| check(path, &files).map(|(checked, _)| summary(&checked)).unwrap();
        assert!(shown("r.tsv").starts_with("questions      1 in 1 dimension\nshortest walk  1 call: 1\n"));
        assert_eq!(
            shown("p.tsv"),
            "risk level    personas    share\n(not stated)         2  100.0 %\nall                  2  100.0 %\n"
        );
        assert!(check("bad.tsv", &files).is_err());
    }

    #[test]
    fn the_graph_has_every_question_and_every_destination() {
        let Checked::Target(target) = target() else { panic!("a folder is a target") };
        assert_eq!(
            dot(&target.rubric, &target.name),
            r##"digraph "own" {
  rankdir=TB;
  node [shape=box, style="rounded,filled", fillcolor=white];
  subgraph cluster_0 {
    label="Notices";
    q0 [label="1: missed \"it\"", fillcolor="#f4c7c3"];
  }
  subgraph cluster_1 {
    label="Asks";
    q1 [label="2", shape=ellipse];
    q2 [label="3: unasked", fillcolor="#fce8b2"];
  }
  subgraph cluster_2 {
    label="Tone";
    q3 [label="4: cold", fillcolor="#f4c7c3"];
  }
  done [label="rated", shape=plaintext];
  end [label="END: Not Relevant", shape=plaintext];
  q0 -> q1 [label="Yes"];
  q0 -> q2 [label="No"];
  q0 -> end [label="Refused"];
  q1 -> q3 [label="Skip (dimension Not Relevant)", style=dashed];
  q2 -> q3 [label="Yes / No"];
  q3 -> done [label="Yes / No"];
}
"##
        );
    }
}
