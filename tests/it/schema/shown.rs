//! What `calibrate` and `history` print as JSON, held against its schemas, open and closed.

use serde::Serialize;
use serde_json::Value;
use vera_gate::baseline::Provenance;
use vera_gate::calibrate::{calibrate, judge, read_ratings};
use vera_gate::history::{Direction, PastRun, Standing, history};
use vera_gate::matrix::{collapse, read_results};
use vera_gate::source::Source;
use vera_gate::stats::Confidence;
use vera_gate::stats::agreement::Resampling;
use vera_gate::stats::trend::EwmaRule;
use vera_gate::target::Fingerprints;

use super::written::{bites, closed};
use super::{faults, root, schema, validator};

fn holds(name: &str, value: &impl Serialize) -> Value {
    let written = serde_json::to_value(value).unwrap();
    for schema in [schema(name), closed(&schema(name))] {
        let faults = faults(&validator(&schema), &written);
        assert!(faults.is_empty(), "{name}:\n{faults}\n{written:#}");
    }
    bites(name, &written);
    written
}

/// Every place of a document that holds something else than nothing, as `runs[].harm[].trend`.
fn filled(value: &Value, path: &str, into: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                filled(value, &format!("{path}.{key}"), into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| filled(item, &format!("{path}[]"), into)),
        Value::Null => {}
        _ => {
            into.insert(path.to_owned());
        }
    }
}

#[test]
fn a_calibration_validates_with_judges_and_without() {
    let read = |name: &str| {
        let path = root().join("tests/fixtures/calibrate").join(name);
        Source::new(name, std::fs::read_to_string(path).unwrap())
    };
    let (ratings, _) =
        read_ratings(&read("ratings.csv"), &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let resampling = Resampling { resamples: 100, seed: 1, confidence: Confidence::P95 };
    let mut found = calibrate(&ratings, resampling);
    holds("calibration", &found);
    let (results, _) = read_results(&read("results.csv")).unwrap_or_else(|problems| panic!("{problems}"));
    found.judges = judge::compare(&ratings, &results.dimensions, &results.rows, resampling)
        .unwrap_or_else(|problems| panic!("{problems}"));
    let written = holds("calibration", &found);
    let mut places = std::collections::BTreeSet::new();
    filled(&written, "", &mut places);
    for place in [".judges[].majority[].harm.sensitivity.k", ".humans.pooled.alpha.value", ".raters[].group"]
    {
        assert!(places.contains(place), "{place} is never filled: {places:?}");
    }
}

#[test]
fn a_history_validates_with_a_trend_and_without() {
    let run = |index: usize, harmful: usize, day: Option<&str>| {
        let rows = (0..20).map(|i| {
            let rating = if i < harmful { "High Potential for Harm" } else { "Best Practice" };
            format!("{index:03x}{i:03x}_P{i}_m_run1.txt,{rating},Not Relevant\n")
        });
        let text = format!("filename,A,B\n{}", rows.collect::<String>());
        let (results, _) = read_results(&Source::new("r.csv", text)).unwrap_or_else(|p| panic!("{p}"));
        let print = |text: &str| text.repeat(64);
        let fingerprints = Fingerprints { rubric: print("a"), personas: print("b"), prompts: print("c") };
        let provenance = Provenance { fingerprints: Some(fingerprints), ..Provenance::default() };
        let mut run = PastRun::new(
            &format!("r{index}"),
            "bot",
            provenance,
            &results.dimensions,
            &collapse(&results.rows),
        );
        run.made = day.map(str::to_owned);
        run.standing = Standing::Accepted;
        run.verdict = Some(vera_gate::gate::Verdict::Pass);
        run
    };
    let mut runs: Vec<PastRun> = (0..7).map(|i| run(i, if i < 5 { 1 } else { 12 }, None)).collect();
    let rule = EwmaRule::default();
    let found = history(runs.clone(), rule);
    let last = found.runs.last().unwrap();
    assert!(last.harm.iter().any(|h| h.trend.is_some_and(|point| point.drift == Direction::Worse)));
    assert!(!found.warnings.is_empty() && !found.notes.is_empty());
    holds("history", &found);
    runs[1].provenance.settings.insert("judges".to_owned(), "another".to_owned());
    runs[0].provenance.settings.insert("judges".to_owned(), "one".to_owned());
    let found = history(runs, rule);
    assert!(found.runs.iter().any(|run| !run.changed.is_empty()));
    holds("history", &found);
    holds("history", &history(Vec::new(), rule));
}
