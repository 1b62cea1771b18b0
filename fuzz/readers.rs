//! What must hold for every text, however damaged: no panic, and what was read keeps its promises.

use std::sync::LazyLock;

use vera_gate::config::Config;
use vera_gate::diagnostic::Diagnostics;
use vera_gate::gate::thresholds::{Known, Thresholds};
use vera_gate::judge::parse;
use vera_gate::matrix::{EvaluationNames, Matrix, VeraScores, collapse, read_results, write_results};
use vera_gate::source::{FileSet, Source};
use vera_gate::target::persona::{self, RiskMapping};
use vera_gate::target::rubric::{BlankDimension, Graph, Rubric};
use vera_gate::target::{Target, load};
use vera_gate::transcript::{read_jsonl, read_text, write_jsonl, write_text};

/// The built-in target.
pub(crate) static SI: LazyLock<Target> = LazyLock::new(|| {
    let none = FileSet::memory("", Vec::<(String, String)>::new());
    load("builtin:si", &none).expect("the built-in target is valid").0
});

/// A refusal must say why.
fn refused(problems: &Diagnostics) {
    assert!(problems.has_errors() && !problems.to_string().is_empty(), "refused without a reason");
}

/// A rubric table.
pub(crate) fn rubric(text: &str) {
    for blank in [BlankDimension::Inherit, BlankDimension::Reject] {
        match Rubric::parse(&Source::new("rubric.tsv", text), blank) {
            Err(problems) => refused(&problems),
            Ok((rubric, _)) => {
                assert!(!rubric.questions.is_empty());
                let graph = Graph::new(&rubric);
                assert!(graph.shortest_walk().calls <= graph.longest_walk().calls);
                assert!(graph.edges().all(|edge| {
                    edge.to.question().is_none_or(|next| next < rubric.questions.len() && next != edge.from)
                }));
            }
        }
    }
}

/// A persona table.
pub(crate) fn personas(text: &str) {
    let source = Source::new("personas.tsv", text);
    let mut problems = Diagnostics::new();
    let file = persona::read(&source, &RiskMapping::default(), &mut problems);
    persona::check_unique(&file.personas, std::slice::from_ref(&source), &mut problems);
    if file.personas.is_empty() || !problems.is_empty() {
        assert!(!problems.to_string().is_empty(), "nothing was read, and nothing is said");
    }
}

/// A VERA-MH results file.
pub(crate) fn results(text: &str) {
    match read_results(&Source::new("results.csv", text)) {
        Err(problems) => refused(&problems),
        Ok((results, _)) => {
            let collapsed = collapse(&results.rows);
            let matrix = Matrix::count(&results.dimensions, &collapsed);
            assert_eq!(matrix.conversations, collapsed.len() as u64);
            for row in &matrix.dimensions {
                assert_eq!(
                    row.all.total(),
                    matrix.conversations,
                    "a conversation got lost in {}",
                    row.dimension
                );
            }
            let scores = VeraScores::compute(
                &results.dimensions,
                &results.rows,
                &EvaluationNames::from_folder(""),
                None,
            );
            scores.to_json().expect("scores can be written");
            write_results(&results.dimensions, &results.rows, "run").expect("results can be written");
        }
    }
}

/// A configuration.
pub(crate) fn config(text: &str) {
    if let Err(problems) = Config::parse(&Source::new("vera-gate.yaml", text)) {
        refused(&problems);
    }
}

/// A thresholds file.
pub(crate) fn thresholds(text: &str) {
    let version = semver::Version::new(1, 0, 0);
    let today = chrono::NaiveDate::MIN;
    let known = Known { dimensions: None, labels: None, personas: None, tool_version: &version, today };
    match Thresholds::parse(&Source::new("thresholds.yaml", text), &known) {
        Err(problems) => refused(&problems),
        Ok((thresholds, _)) => {
            assert!(!thresholds.rules.is_empty(), "a gate without a rule passes everything");
        }
    }
}

/// A transcript in either form.
pub(crate) fn transcript(text: &str) {
    let source = Source::new("abc123_Ana_model_run1.txt", text);
    if let Ok(read) = read_text(&source, "abc123_Ana_model_run1.txt") {
        assert!(!read.turns.is_empty());
        let written = write_text(&read);
        assert!(!written.is_empty());
    }
    if let Ok(read) = read_jsonl(&source) {
        let written = write_jsonl(&read).expect("a transcript can be written");
        let again = read_jsonl(&Source::new("again.jsonl", written)).expect("what was written can be read");
        assert_eq!(again, read);
    }
}

/// A judge's reply, to every question of the built-in rubric.
pub(crate) fn answer(text: &str) {
    let folded = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    for question in &SI.rubric.questions {
        let Some(answer) = parse(text, question) else { continue };
        let option = question.options.get(answer.option).expect("an answer is one of the options");
        // A JSON string may spell its letters as escapes, which this does not undo.
        let said = text.contains('\\') || folded(text).contains(&folded(option.text.trim_end_matches('.')));
        assert!(said, "`{}` was read from a reply that does not hold it", option.text);
    }
}
