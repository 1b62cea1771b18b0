//! What holds for any input: nothing panics, and no finding is lost on the way to a rating.

use proptest::prelude::*;
use vera_gate::diagnostic::Diagnostics;
use vera_gate::source::{FileSet, Source};
use vera_gate::target::manifest::Manifest;
use vera_gate::target::persona::{RiskMapping, read};
use vera_gate::target::prompt::Template;
use vera_gate::target::rubric::{
    Answered, BlankDimension, DimensionOutcome, Graph, Semantics, Severity, Transition, check_path,
    score_path,
};
use vera_gate::target::{Rubric, load};

/// Text made of what the formats give a meaning to.
fn fragments(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(words), 0..60).prop_map(|parts| parts.concat())
}

/// One answer's GOTO: so many questions on, or a terminal.
#[derive(Clone, Debug)]
enum To {
    On(usize),
    NotRelevant(usize),
    Blank,
    End,
    AssignEnd,
}

impl To {
    fn cell(&self, from: usize, count: usize) -> String {
        let later = |steps: &usize| from + 1 + steps;
        match self {
            Self::On(steps) if later(steps) < count => later(steps).to_string(),
            Self::NotRelevant(steps) if later(steps) < count => format!("NOT_RELEVANT>>{}", later(steps)),
            Self::On(_) | Self::NotRelevant(_) | Self::Blank => String::new(),
            Self::End => "END".to_owned(),
            Self::AssignEnd => "ASSIGN_END".to_owned(),
        }
    }
}

/// Rubrics of up to eight questions in three dimensions, whose answers lead forward. Many do not load: the
/// others have a question that nothing reaches, a dimension without a severity or the like.
pub(crate) fn any_rubric() -> impl Strategy<Value = String> {
    let to = prop_oneof![
        3 => Just(To::On(0)),
        1 => (0..3_usize).prop_map(To::On),
        1 => (0..2_usize).prop_map(To::NotRelevant),
        1 => Just(To::Blank),
        1 => Just(To::End),
    ];
    let yes = prop_oneof![4 => to.clone(), 1 => Just(To::AssignEnd)];
    let severity = prop::sample::select(vec!["Red", "Yellow", "Red", "Yellow", ""]);
    let question = (severity, prop::option::of((yes, to)));
    prop::collection::vec(question, 1..9).prop_map(|questions| {
        let count = questions.len();
        let rows = questions.into_iter().enumerate().map(|(id, (severity, answers))| {
            let dimension = ["A", "B", "C"][id * 3 / count];
            let (yes, no) = match answers {
                None => return format!("{id}\t{dimension}\t{severity}\tQ\t\t\n"),
                Some((yes, no)) => (yes.cell(id, count), no.cell(id, count)),
            };
            format!("{id}\t{dimension}\t{severity}\tQ\tYes\t{yes}\n\t\t\t\tNo\t{no}\n")
        });
        std::iter::once("Question ID\tDimension\tSeverity\tQuestion\tAnswer\tGOTO\n".to_owned())
            .chain(rows)
            .collect()
    })
}

/// A walk by a list of choices, each taken modulo the number of options.
fn walk(rubric: &Rubric, choices: &[usize]) -> Vec<Answered> {
    let mut path = Vec::new();
    let mut at = Some(rubric.start());
    let mut choices = choices.iter().cycle();
    while let Some(question) = at {
        let asked = &rubric.questions[question];
        let option = asked.auto.unwrap_or_else(|| choices.next().unwrap() % asked.options.len());
        path.push(Answered { question, option });
        at = rubric.next(question, option).unwrap().question();
    }
    path
}

/// Findings that no later `NOT_RELEVANT>>` of their dimension removed, as (dimension, severity).
fn standing(rubric: &Rubric, path: &[Answered]) -> Vec<(usize, Severity)> {
    let mut found: Vec<(usize, Severity)> = Vec::new();
    for step in path {
        let question = &rubric.questions[step.question];
        let option = &question.options[step.option];
        if matches!(option.then, Transition::NotRelevant(_)) {
            found.retain(|(dimension, _)| *dimension != question.dimension);
        } else if let (true, Some(severity)) = (option.is_yes(), question.severity) {
            found.push((question.dimension, severity));
        }
    }
    found
}

fn no_finding_is_lost(rubric: &Rubric, path: &[Answered]) {
    let results = score_path(rubric, path, Semantics::Native).unwrap();
    assert_eq!(results.len(), rubric.dimensions.len());
    let found = standing(rubric, path);
    for result in &results {
        let worst =
            found.iter().filter(|(dimension, _)| *dimension == result.dimension).map(|(_, s)| *s).max();
        let want = match worst {
            Some(Severity::Red) => Some(DimensionOutcome::HighPotentialForHarm),
            Some(Severity::Yellow) => Some(DimensionOutcome::Suboptimal),
            None => None,
        };
        match want {
            Some(want) => assert_eq!(result.outcome, want),
            None => assert!(!matches!(
                result.outcome,
                DimensionOutcome::HighPotentialForHarm | DimensionOutcome::Suboptimal
            )),
        }
        assert_eq!(result.findings.is_empty(), want.is_none());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn no_table_panics(text in fragments(&[
        "Question ID", "Dimension", "Severity", "Question", "Answer", "GOTO", "Auto Answer", "Label", "Name",
        "Current Risk Level", "\t", "\t", "\t", "\n", "\n", "\r\n", "\"", "\"\"", "1", "1.0", "1a", "END", "é",
        "ASSIGN_END", "NOT_RELEVANT>>", "Yes", "No", "Red", "high medium", "\u{feff}", " ", "None", "true",
    ])) {
        let source = Source::new("t.tsv", text);
        let mut problems = match Rubric::parse(&source, BlankDimension::Inherit) {
            Ok((rubric, problems)) => {
                prop_assert!(!rubric.questions.is_empty());
                problems
            }
            Err(problems) => {
                prop_assert!(problems.has_errors());
                problems
            }
        };
        read(&source, &RiskMapping::default(), &mut problems);
        prop_assert!(problems.is_empty() || !problems.to_string().is_empty());
    }

    #[test]
    fn no_template_or_manifest_panics(text in fragments(&[
        "{", "}", "{{", "}}", "Age", ".", "[", "!", ":", "é", "—", "\r\n", "\"", ",", "[", "]", "personas", "1",
        "\"personas\":", "\"risk_levels\":", "null",
    ])) {
        let source = Source::new("t", text);
        let mut problems = Diagnostics::new();
        let template = Template::parse(&source, &mut problems);
        template.check(&["Age"], &["Age"], "value", &mut problems);
        let filled = template.fill(|_| Some(""));
        prop_assert!(filled.len() <= source.text().len());
        Manifest::parse(&source, &mut problems);
        prop_assert!(problems.has_errors());
    }

    #[test]
    fn any_rubric_that_loads_can_be_walked_and_scored(
        text in any_rubric(),
        choices in prop::collection::vec(0..12_usize, 1..12),
    ) {
        let Ok((rubric, _)) = Rubric::parse(&Source::new("r.tsv", text), BlankDimension::Reject) else {
            return Err(TestCaseError::reject("does not load"));
        };
        let graph = Graph::new(&rubric);
        let path = walk(&rubric, &choices);
        prop_assert!(check_path(&rubric, &path).is_ok());
        no_finding_is_lost(&rubric, &path);
        prop_assert!(score_path(&rubric, &path, Semantics::Upstream11).is_ok());
        let calls: usize = path.iter().map(|step| rubric.questions[step.question].calls()).sum();
        prop_assert!(graph.shortest_walk().calls <= calls && calls <= graph.longest_walk().calls);
        // Whatever is certain from a question is asked later on this walk, too.
        for (at, step) in path.iter().enumerate() {
            for certain in graph.certain_from(step.question) {
                prop_assert!(path[at + 1..].iter().any(|later| later.question == certain));
            }
        }
    }

    #[test]
    fn the_built_in_rubrics_lose_no_finding(
        name in prop::sample::select(vec!["si", "hfo"]),
        choices in prop::collection::vec(0..12_usize, 1..45),
    ) {
        let (target, _) = load(name, &FileSet::memory("", Vec::<(String, String)>::new())).unwrap();
        no_finding_is_lost(&target.rubric, &walk(&target.rubric, &choices));
    }
}
