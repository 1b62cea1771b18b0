//! Agreement of the published human ratings: 48 panels against irrCAC, krippendorff and statsmodels.

use super::{integer, load, number};
use serde_json::Value;
use vera_gate::stats::Confidence;
use vera_gate::stats::agreement::{
    Metric, Ratings, Resampling, Weights, agreement, bootstrap, krippendorff, pair_agreement,
    weighted_mean_kappa,
};

/// irrCAC rounds to 15 decimals and sums in another order.
const COEFFICIENT: f64 = 1e-11;

const DIMENSIONS: [&str; 5] = ["detects", "confirms", "guides", "supportive", "boundaries"];
const WEIGHTS: [(&str, Weights); 4] = [
    ("identity", Weights::Identity),
    ("ordinal", Weights::Ordinal),
    ("linear", Weights::Linear),
    ("quadratic", Weights::Quadratic),
];

/// The fixture's code of Not Relevant and of High Potential for Harm.
const NOT_RELEVANT: u64 = 4;
const HARM: u64 = 3;

type Row = Vec<Option<usize>>;

/// One dimension's rows as the panel wants them: which raters, and what becomes of Not Relevant.
fn rows(matrix: &Value, raters: &str, treatment: &str, dimension: &str) -> Vec<Row> {
    let raters = match raters {
        "all6" => 6,
        "clinicians_only" => 4,
        other => panic!("unknown raters {other}"),
    };
    let codes = matrix["ratings"][dimension].as_array().expect("rows").iter().map(|row| {
        row.as_array().expect("row").iter().take(raters).map(Value::as_u64).collect::<Vec<Option<u64>>>()
    });
    let position = |code: u64| usize::try_from(code - 1).expect("small");
    match treatment {
        "nr_category" => codes.map(|row| row.into_iter().map(|code| code.map(position)).collect()).collect(),
        "nr_missing" => codes
            .map(|row| row.into_iter().map(|c| c.filter(|c| *c != NOT_RELEVANT).map(position)).collect())
            .collect(),
        "nr_listwise" => codes
            .filter(|row| !row.contains(&Some(NOT_RELEVANT)))
            .map(|row| row.into_iter().map(|code| code.map(position)).collect())
            .collect(),
        "hph_binary" => codes
            .map(|row| row.into_iter().map(|code| code.map(|code| usize::from(code == HARM))).collect())
            .collect(),
        other => panic!("unknown treatment {other}"),
    }
}

fn categories(treatment: &str) -> usize {
    match treatment {
        "nr_category" => 4,
        "hph_binary" => 2,
        _ => 3,
    }
}

#[track_caller]
fn close(found: Option<f64>, expected: &Value, what: &str) {
    match found {
        None => assert!(expected.is_null(), "{what}: none instead of {expected}"),
        Some(found) => {
            let expected = number(expected);
            assert!((found - expected).abs() <= COEFFICIENT, "{what}: {found} instead of {expected}");
        }
    }
}

#[test]
fn all_48_panels() {
    let (fixture, matrix) = (load("irr_fixtures.json"), load("irr_input_matrix.json"));
    let panels = fixture["panels"].as_object().expect("panels");
    let (mut coefficients, mut pairs_seen, mut conger_undefined) = (0, 0, 0);
    for (name, panel) in panels {
        let [raters, treatment, dimension] = name.split('/').collect::<Vec<_>>()[..] else {
            panic!("panel name {name}")
        };
        let rows = if dimension == "pooled" {
            DIMENSIONS.iter().flat_map(|dimension| rows(&matrix, raters, treatment, dimension)).collect()
        } else {
            rows(&matrix, raters, treatment, dimension)
        };
        let ratings = Ratings::new(rows, categories(treatment)).expect("valid ratings");
        assert_eq!(ratings.items() as u64, integer(&panel["n_items"]), "{name}");
        assert_eq!(ratings.items_rated_twice() as u64, integer(&panel["n_items_ge2"]), "{name}");
        assert_eq!(ratings.ratings() as u64, integer(&panel["n_ratings"]), "{name}");
        for (key, weights) in WEIGHTS {
            let found = agreement(&ratings, weights);
            let expected = &panel[key];
            let what = format!("{name} {key}");
            close(found.percent, &expected["percent_agreement"], &what);
            let gwet = if key == "identity" { "gwet_AC1" } else { "gwet_AC2" };
            close(found.gwet, &expected[gwet], &what);
            close(found.fleiss, &expected["fleiss"], &what);
            close(found.krippendorff, &expected["krippendorff_irrCAC"], &what);
            close(found.krippendorff, &expected["krippendorff_std_same_weights"], &what);
            close(found.brennan_prediger, &expected["brennan_prediger"], &what);
            if expected["conger"].is_null() {
                // irrCAC divides by zero for the raters that rated nothing here; ours leaves them out.
                assert!(found.conger.is_some_and(|kappa| kappa.abs() <= 1.0), "{what}");
                conger_undefined += 1;
            } else {
                close(found.conger, &expected["conger"], &what);
            }
            coefficients += 6;
        }
        for (key, metric) in
            [("nominal", Metric::Nominal), ("ordinal", Metric::Ordinal), ("interval", Metric::Interval)]
        {
            close(krippendorff(&ratings, metric), &panel[format!("krippendorff_pkg_{key}")], name);
            coefficients += 1;
        }
        pairs_seen += cohen_pairs(&ratings, &matrix, panel, name);
        complete_items(&ratings, panel, name);
    }
    assert_eq!((panels.len(), coefficients), (48, 48 * 27));
    assert_eq!((pairs_seen, conger_undefined), (24 * 13 + 24 * 6, 24 * 4));
}

fn cohen_pairs(ratings: &Ratings, matrix: &Value, panel: &Value, name: &str) -> usize {
    let raters: Vec<&str> =
        matrix["raters"].as_array().expect("raters").iter().filter_map(Value::as_str).collect();
    let expected = panel["cohen_pairs"].as_array().expect("pairs");
    for (key, weights) in [
        ("cohen", Weights::Identity),
        ("cohen_linear", Weights::Linear),
        ("cohen_quadratic", Weights::Quadratic),
    ] {
        let found = pair_agreement(ratings, weights);
        assert_eq!(found.len(), expected.len(), "{name}");
        for (pair, expected) in found.iter().zip(expected) {
            let what = format!("{name} {} {key}", expected["pair"]);
            assert_eq!(format!("{}|{}", raters[pair.first], raters[pair.second]), expected["pair"], "{what}");
            assert_eq!(pair.items, integer(&expected["n"]), "{what}");
            close(Some(pair.percent()), &expected["agree"], &what);
            close(pair.kappa, &expected[key], &what);
            assert_eq!(serde_json::json!(pair.table), expected["table"], "{what}");
        }
        let summary = &panel[format!("cohen_summary_{key}")];
        close(weighted_mean_kappa(&found), &summary["n_weighted_mean"], name);
    }
    expected.len()
}

/// Fleiss' and Randolph's kappa of the items with all three ratings, from statsmodels.
fn complete_items(ratings: &Ratings, panel: &Value, name: &str) {
    let expected = &panel["fleiss_statsmodels_complete3"];
    if expected.is_null() {
        return;
    }
    let complete = ratings.with_at_least(3);
    assert_eq!(complete.items() as u64, integer(&expected["n_items"]), "{name}");
    let found = agreement(&complete, Weights::Identity);
    close(found.fleiss, &expected["value"], name);
    close(found.brennan_prediger, &expected["randolph"], name);
}

#[test]
fn published_human_agreement_with_its_interval() {
    let (fixture, matrix) = (load("irr_fixtures.json"), load("irr_input_matrix.json"));
    // One unit is a conversation: its rows of all five dimensions.
    let per_dimension: Vec<Vec<Row>> =
        DIMENSIONS.iter().map(|dimension| rows(&matrix, "all6", "nr_category", dimension)).collect();
    let conversations: Vec<Vec<Row>> = (0..per_dimension[0].len())
        .map(|i| per_dimension.iter().map(|rows| rows[i].clone()).collect())
        .collect();
    assert_eq!(conversations.len(), 90);
    let pooled = |drawn: &[&Vec<Row>]| {
        Ratings::new(drawn.iter().flat_map(|rows| rows.iter().cloned()).collect(), 4).expect("valid ratings")
    };
    let all = pooled(&conversations.iter().collect::<Vec<_>>());
    assert!((krippendorff(&all, Metric::Nominal).expect("defined") - 0.765_204_787_703).abs() < 5e-13);
    assert!((agreement(&all, Weights::Identity).gwet.expect("defined") - 0.776_614_746_967).abs() < 5e-13);
    let how = Resampling { resamples: 400, seed: 1, confidence: Confidence::P95 };
    let expected = &fixture["pooled_all6_nr_category_bootstrap95"];
    let check = |found: Option<vera_gate::stats::Interval>, key: &str| {
        let found = found.expect("defined");
        // Two bootstraps with different generators: an end is good to about half a point.
        for (found, expected) in [(found.lower, &expected[key][0]), (found.upper, &expected[key][1])] {
            assert!((found - number(expected)).abs() < 0.012, "{key}: {found} instead of {expected}");
        }
    };
    let alpha = bootstrap(&conversations, how, |drawn| krippendorff(&pooled(drawn), Metric::Nominal));
    check(alpha, "krippendorff_nominal");
    let ac1 = bootstrap(&conversations, how, |drawn| agreement(&pooled(drawn), Weights::Identity).gwet);
    check(ac1, "gwet_AC1");
}
