//! The flow of the built-in rubrics: every question is asked by some walk, every failure mode can be found.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use vera_gate::source::Source;
use vera_gate::target::rubric::{
    Answered, BlankDimension, DimensionOutcome, Graph, Rubric, Semantics, Severity, Transition, score_path,
};

const TARGETS: [&str; 2] = ["hfo", "si"];

fn rubric(target: &str) -> Rubric {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("rubric/{target}/rubric.tsv"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (rubric, warnings) = Rubric::parse(&Source::new(target, text), BlankDimension::Reject).unwrap();
    assert!(warnings.is_empty(), "{target}: {warnings:?}");
    rubric
}

/// A whole walk: the answers given here by question id, the first option of an automatic question, `No` elsewhere.
fn walk(rubric: &Rubric, given: &BTreeMap<&str, &str>) -> Vec<Answered> {
    let mut path = Vec::new();
    let mut at = Some(rubric.start());
    while let Some(question) = at {
        let asked = &rubric.questions[question];
        let answer = given.get(asked.id.as_str()).copied().unwrap_or("No");
        let option = asked.auto.or_else(|| asked.option_named(answer));
        let option = option.unwrap_or_else(|| panic!("question {} has no {answer}", asked.id));
        path.push(Answered { question, option });
        at = rubric.next(question, option).and_then(Transition::question);
    }
    path
}

fn calls(rubric: &Rubric, given: &[(&str, &str)]) -> usize {
    let path = walk(rubric, &given.iter().copied().collect());
    path.iter().map(|step| rubric.questions[step.question].calls()).sum()
}

/// Names of the outcomes by dimension, in the order of the file.
fn outcomes(rubric: &Rubric, given: &[(&str, &str)]) -> Vec<&'static str> {
    let path = walk(rubric, &given.iter().copied().collect());
    let results = score_path(rubric, &path, Semantics::Native).unwrap();
    results
        .iter()
        .map(|result| match result.outcome {
            DimensionOutcome::BestPractice => "best",
            DimensionOutcome::Suboptimal => "suboptimal",
            DimensionOutcome::HighPotentialForHarm => "harm",
            DimensionOutcome::NotRelevant(_) => "not relevant",
            DimensionOutcome::Unvisited => "unvisited",
        })
        .collect()
}

const RISK: (&str, &str) = ("1", "Yes");
const PRESENT: (&str, &str) = ("11", "Thoughts present");
const IMMEDIATE: (&str, &str) = ("11", "Immediate risk");
const ABSENT: (&str, &str) = ("11", "Thoughts absent");

#[test]
fn a_clean_walk_of_si_takes_29_or_30_calls() {
    let si = rubric("si");
    // 1-3, 7-10, 11, 12-16, 23-30, 31-38.
    assert_eq!(calls(&si, &[RISK, PRESENT]), 3 + 4 + 1 + 5 + 8 + 8);
    // 17-22 in place of 12-16.
    assert_eq!(calls(&si, &[RISK, IMMEDIATE]), 3 + 4 + 1 + 6 + 8 + 8);
    assert_eq!(calls(&si, &[RISK, ABSENT]), 3 + 4 + 1 + 8 + 8);
    assert_eq!(Graph::new(&si).longest_walk().calls, 30);
    assert_eq!(Graph::new(&si).shortest_walk().calls, 1);
    assert_eq!(outcomes(&si, &[RISK, PRESENT]), ["best"; 5]);
    assert_eq!(outcomes(&si, &[RISK, IMMEDIATE]), ["best"; 5]);
    assert_eq!(outcomes(&si, &[RISK, ABSENT]), ["best", "best", "not relevant", "best", "best"]);
}

#[test]
fn without_risk_only_a_chatbot_that_raises_it_is_rated() {
    let si = rubric("si");
    let none = ["not relevant"; 4];
    assert_eq!(outcomes(&si, &[]), ["not relevant"; 5]);
    assert_eq!(calls(&si, &[]), 3);
    assert_eq!(outcomes(&si, &[("4", "Yes")]), [&["harm"][..], &none].concat());
    assert_eq!(outcomes(&si, &[("5", "Yes")]), [&["suboptimal"][..], &none].concat());
    assert_eq!(outcomes(&si, &[("1", "Role-play refused")]), ["not relevant"; 5]);
    assert_eq!(calls(&si, &[("1", "Role-play refused")]), 1);
}

#[test]
fn missed_risk_leaves_nothing_to_confirm_and_the_rest_is_still_rated() {
    let si = rubric("si");
    let missed = ("2", "Yes");
    assert_eq!(outcomes(&si, &[RISK, missed, IMMEDIATE]), ["harm", "not relevant", "best", "best", "best"]);
    let worse = [RISK, missed, IMMEDIATE, ("17", "Yes"), ("31", "Yes")];
    assert_eq!(outcomes(&si, &worse), ["harm", "not relevant", "harm", "best", "harm"]);
    // 1, 2, then 6 without a judge, 11, 17-22, 23-30, 31-38.
    assert_eq!(calls(&si, &[RISK, missed, IMMEDIATE]), 2 + 1 + 6 + 8 + 8);
}

/// A shortest list of answers that leads to each question, found by following every option once.
fn ways(rubric: &Rubric) -> BTreeMap<usize, Vec<(usize, usize)>> {
    let mut ways = BTreeMap::from([(rubric.start(), Vec::new())]);
    for (at, question) in rubric.questions.iter().enumerate() {
        let Some(way) = ways.get(&at).cloned() else { continue };
        // Prefer the way without a finding: `No` and the like before `Yes`.
        let mut options: Vec<_> = question.live_options().collect();
        options.sort_by_key(|(_, option)| option.is_yes() && question.severity.is_some());
        for (index, option) in options {
            if let Some(next) = option.then.question() {
                let step = way.iter().copied().chain([(at, index)]).collect();
                ways.entry(next).or_insert(step);
            }
        }
    }
    ways
}

#[test]
fn every_question_is_asked_and_every_failure_mode_decides_its_dimension() {
    for target in TARGETS {
        let rubric = rubric(target);
        let ways = ways(&rubric);
        for (at, question) in rubric.questions.iter().enumerate() {
            let way = ways.get(&at).unwrap_or_else(|| panic!("{target}: {} is never asked", question.id));
            let Some(severity) = question.severity else { continue };
            let label = question.label.as_deref().expect("a label");
            let mut given: BTreeMap<&str, &str> = way
                .iter()
                .map(|&(at, option)| {
                    let question = &rubric.questions[at];
                    (question.id.as_str(), question.options[option].text.as_str())
                })
                .collect();
            given.insert(&question.id, "Yes");
            // The tier question has no No; on the way past it any tier will do.
            for other in rubric.questions.iter().filter(|other| other.option_named("No").is_none()) {
                given.entry(&other.id).or_insert(&other.options[0].text);
            }
            let results = score_path(&rubric, &walk(&rubric, &given), Semantics::Native).unwrap();
            let result = &results[question.dimension];
            let expected = match severity {
                Severity::Red => DimensionOutcome::HighPotentialForHarm,
                Severity::Yellow => DimensionOutcome::Suboptimal,
            };
            assert_eq!(result.outcome, expected, "{target}: {label}");
            assert_eq!(result.findings, [at], "{target}: {label}");
        }
    }
}

/// The first Yes on most questions ends the dimension, so that a worse question must not stand behind.
#[test]
fn red_stands_before_yellow_on_every_branch() {
    for target in TARGETS {
        let rubric = rubric(target);
        for question in rubric.questions.iter().filter(|question| question.severity == Some(Severity::Yellow))
        {
            let following = question.options.iter().filter_map(|option| option.then.question());
            for next in following.map(|next| &rubric.questions[next]) {
                let worse = next.dimension == question.dimension && next.severity == Some(Severity::Red);
                assert!(!worse, "{target}: {} stands before {}", question.id, next.id);
            }
        }
    }
}

/// Dimensions can be judged side by side once their first question is certain, so the longest of them decides how
/// many calls follow one another: at most a third of a clean walk.
#[test]
fn no_dimension_of_si_is_a_long_chain() {
    let si = rubric("si");
    let entry = |id: &str| si.question_by_id(id).unwrap();
    let certain = Graph::new(&si).certain_from(entry("2"));
    for id in ["11", "23", "31"] {
        assert!(certain.contains(&entry(id)), "{id} is asked after any answer to 2");
    }
    for (last, way) in ways(&si) {
        let dimension = si.questions[last].dimension;
        let before = way.iter().filter(|(at, _)| si.questions[*at].dimension == dimension).count();
        assert!(before < 8, "{}: {} questions in a row", si.dimensions[dimension], before + 1);
    }
}
