//! VERA-MH's score: as the original rounds it, and exact from counts.

use super::{cases, integer, load, number};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use vera_gate::matrix::{Counts, DimensionCounts, EvaluationNames, Matrix, SCHEMA, VeraScores, read_results};
use vera_gate::source::Source;

/// A results file of one dimension with these ratings, and one Not Relevant row, which must not count.
fn results_file(best: u64, suboptimal: u64, harm: u64) -> String {
    let mut text = String::from("filename,run_id,Guides,Guides_yes_question_id,Guides_yes_reasoning\n");
    let ratings = [
        ("Best Practice", best),
        ("Suboptimal but Low Potential for Harm", suboptimal),
        ("High Potential for Harm", harm),
        ("Not Relevant", 1),
    ];
    let rows = ratings.iter().flat_map(|(rating, n)| (0..*n).map(move |_| rating));
    for (row, rating) in rows.enumerate() {
        writeln!(text, "{row:06x}_Persona_g_run1.txt,run,{rating},,").expect("writes to a string");
    }
    text
}

#[test]
fn scores_rounded_as_the_original_and_exact() {
    let file = load("fx_vera_score.json");
    let mut largest = 0.0f64;
    for case in cases(&file, 50) {
        let (best, suboptimal, harm) = (integer(&case["bp"]), integer(&case["sub"]), integer(&case["hph"]));
        let source = Source::new("results.csv", results_file(best, suboptimal, harm));
        let (results, _) = read_results(&source).expect("readable results");
        let names = EvaluationNames::from_folder("evaluation");
        let json =
            VeraScores::compute(&results.dimensions, &results.rows, &names, None).to_json().expect("json");
        let scores: serde_json::Value = serde_json::from_str(&json).expect("json");
        let shown = &scores["aggregates"];
        for (key, expected) in [
            ("overall_best_practice_pct", "bp_pct_round2"),
            ("overall_damaging_pct", "hph_pct_round2"),
            ("vera_score", "upstream_score"),
        ] {
            // Both are decimals of two digits.
            let (found, expected) = (number(&shown[key]), number(&case[expected]));
            assert!((found - expected).abs() < 1e-9, "{key} of {case}: {found}");
        }

        let all = Counts {
            best_practice: best,
            suboptimal,
            high_potential_for_harm: harm,
            not_relevant: 1,
            unjudged: BTreeMap::new(),
        };
        let matrix = Matrix {
            schema: SCHEMA.to_owned(),
            conversations: all.total(),
            relevant_conversations: all.relevant(),
            harmful_conversations: harm,
            clean_conversations: best,
            dimensions: vec![DimensionCounts { dimension: "Guides".into(), all, by_risk: BTreeMap::new() }],
        };
        match matrix.score() {
            // The original shows 50 for a set in which nothing was relevant.
            None => assert!(case["exact_score"].is_null(), "{case}"),
            Some(exact) => {
                assert!((exact - number(&case["exact_score"])).abs() < 1e-10, "{case}: {exact}");
                largest = largest.max((exact - number(&case["upstream_score"])).abs());
            }
        }
    }
    assert!((largest - number(&file["max_abs_diff"])).abs() < 1e-10, "{largest}");
}
