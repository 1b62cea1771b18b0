//! Every statistics fixture against the library, at the tolerance its reference states.
//!
//! The fixtures come from scipy, statsmodels, irrCAC, krippendorff and exact rationals. Each test asserts how many cases
//! it ran, so that an empty or shortened file fails.

use serde_json::Value;
use std::path::Path;
use vera_gate::stats::cluster::{DesignEffectRule, Inference, clustered};
use vera_gate::stats::exact::{ExactTest, cmh, fisher, mcnemar, stratified};
use vera_gate::stats::interval::{clopper_pearson, jeffreys, newcombe, wilson};
use vera_gate::stats::multiplicity::{
    Hypothesis, benjamini_hochberg, bonferroni, hochberg, holm, tarone_holm,
};
use vera_gate::stats::sequential::e_values;
use vera_gate::stats::sign_flip::{PersonaCounts, PersonaDelta, sign_flip, smallest_attainable};
use vera_gate::stats::{Alpha, Confidence, Count, Interval, Sides};

mod irr;
mod vera_score;

/// Exact tests and multiplicity: checked against exact rationals.
const EXACT: f64 = 1e-12;
/// Beta and normal quantiles.
const QUANTILE: f64 = 1e-10;

fn load(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stats").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The cases of a file, at least and at most as many as it is known to hold.
fn cases(file: &Value, expected: usize) -> &[Value] {
    let cases = file["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), expected, "number of cases");
    cases
}

fn integer(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a count: {value}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("list").iter().map(number).collect()
}

fn count(k: &Value, n: &Value) -> Count {
    Count::new(integer(k), integer(n)).expect("valid count")
}

/// Relative comparison; values that are zero must be zero up to the tolerance.
#[track_caller]
fn close(actual: f64, expected: &Value, tolerance: f64, what: &str) {
    let expected = number(expected);
    let scale = expected.abs().max(f64::MIN_POSITIVE);
    let within =
        (actual - expected).abs() <= tolerance * scale || (expected == 0.0 && actual.abs() <= tolerance);
    assert!(within, "{what}: {actual:e} instead of {expected:e}");
}

#[track_caller]
fn close_list(actual: &[f64], expected: &Value, tolerance: f64, what: &str) {
    let expected = expected.as_array().expect("list");
    assert_eq!(actual.len(), expected.len(), "{what}");
    for (actual, expected) in actual.iter().zip(expected) {
        close(*actual, expected, tolerance, what);
    }
}

/// One-sided 95 % bounds or a two-sided interval, `null` where nothing is defined.
#[track_caller]
fn close_interval(actual: Option<Interval>, lower: &Value, upper: &Value, what: &str) {
    match actual {
        None => assert!(lower.is_null() && upper.is_null(), "{what}: {lower} {upper}"),
        Some(interval) => {
            close(interval.lower, lower, QUANTILE, what);
            close(interval.upper, upper, QUANTILE, what);
        }
    }
}

type Method = fn(Count, Sides, Confidence) -> Option<Interval>;

#[test]
fn proportion_intervals() {
    let file = load("fx_proportion_ci.json");
    let mut compared = 0;
    for case in cases(&file, 53) {
        let count = count(&case["k"], &case["n"]);
        let methods: [(&str, Method); 3] = [
            ("wilson", |c, s, p| wilson(c, s, p)),
            ("clopper_pearson", |c, s, p| clopper_pearson(c, s, p)),
            ("jeffreys", |c, s, p| jeffreys(c, s, p)),
        ];
        for (name, method) in methods {
            let expected = &case[name];
            let what = format!("{name} {count:?}");
            let two = &expected["two_sided95"];
            close_interval(method(count, Sides::Both, Confidence::P95), &two[0], &two[1], &what);
            close_interval(
                method(count, Sides::Each, Confidence::P95),
                &expected["one_sided95_lower"],
                &expected["one_sided95_upper"],
                &what,
            );
            if let Some(wide) = expected.get("two_sided99") {
                let p99 = Confidence::new(0.99).expect("valid");
                close_interval(method(count, Sides::Both, p99), &wide[0], &wide[1], &what);
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 53 * 3);
}

#[test]
fn newcombe_differences() {
    let file = load("fx_newcombe.json");
    for case in cases(&file, 46) {
        let candidate = count(&case["x_cand"], &case["n_cand"]);
        let baseline = count(&case["x_base"], &case["n_base"]);
        let p90 = Confidence::new(0.9).expect("valid");
        for (key, confidence) in [("ci95", Confidence::P95), ("ci90", p90)] {
            let expected = &case[key];
            let found = newcombe(candidate, baseline, Sides::Both, confidence);
            close_interval(found, &expected[0], &expected[1], &format!("{key} {candidate:?} {baseline:?}"));
        }
    }
}

#[test]
fn cluster_adjusted_bounds() {
    let file = load("fx_cluster_cp.json");
    let mut undefined = 0;
    for case in cases(&file, 42) {
        let k = case["k"].as_array().expect("k");
        let n = case["n"].as_array().expect("n");
        let personas: Vec<Count> = k.iter().zip(n).map(|(k, n)| count(k, n)).collect();
        let rule = DesignEffectRule::new(number(&case["icc0"]), integer(&case["kmin"])).expect("valid rule");
        let Some(found) = clustered(&personas, Inference::UsersLikeThese(rule)) else {
            assert!(case["out"].is_null());
            undefined += 1;
            continue;
        };
        let out = &case["out"];
        close(found.pooled.successes() as f64, &out["k_total"], EXACT, "harms");
        close(found.pooled.total() as f64, &out["n_total"], EXACT, "conversations");
        assert_eq!(found.personas as u64, integer(&out["personas"]));
        close(found.pooled.rate().expect("conversations"), &out["rate"], EXACT, "rate");
        close(found.mean_cluster_size, &out["m_bar"], EXACT, "mean cluster size");
        close(found.planned, &out["deff_planned"], EXACT, "planned design effect");
        match found.estimated {
            None => assert!(out["deff_est"].is_null(), "{out}"),
            Some(estimated) => close(estimated, &out["deff_est"], EXACT, "estimated design effect"),
        }
        close(found.used, &out["deff_used"], EXACT, "design effect");
        close(found.effective.total(), &out["n_eff"], EXACT, "effective sample size");
        let bounds = found.bounds(Sides::Each, Confidence::P95);
        close_interval(bounds, &out["lower95"], &out["upper95"], "cluster-adjusted bounds");
    }
    assert_eq!(undefined, 1);
}

#[test]
fn multiplicity_adjustments() {
    let file = load("fx_multiplicity.json");
    for case in cases(&file, 44) {
        let p = numbers(&case["p"]);
        let holm = holm(&p).expect("probabilities");
        let bh = benjamini_hochberg(&p).expect("probabilities");
        close_list(&bonferroni(&p).expect("probabilities"), &case["bonferroni"], EXACT, "bonferroni");
        close_list(&hochberg(&p).expect("probabilities"), &case["hochberg"], EXACT, "hochberg");
        close_list(&holm, &case["holm"], EXACT, "holm");
        close_list(&bh, &case["bh"], EXACT, "bh");
        for (adjusted, rejected) in [(&holm, &case["reject_holm_05"]), (&bh, &case["reject_bh_05"])] {
            let expected: Vec<bool> =
                rejected.as_array().expect("list").iter().map(|r| r.as_bool().expect("bool")).collect();
            let found: Vec<bool> = adjusted.iter().map(|p| *p <= 0.05).collect();
            assert_eq!(found, expected, "{p:?}");
        }
    }
}

#[test]
fn tarone_holm_families() {
    let file = load("fx_tarone_holm.json");
    for case in cases(&file, 44) {
        let informative = case["n_nonzero"].as_array().expect("list");
        let family: Vec<Hypothesis> = numbers(&case["p"])
            .into_iter()
            .zip(informative)
            .map(|(p, n)| Hypothesis {
                p,
                smallest_attainable: smallest_attainable(usize::try_from(integer(n)).expect("small")).exact,
            })
            .collect();
        let outcome =
            tarone_holm(&family, Alpha::new(number(&case["alpha"])).expect("alpha")).expect("valid");
        let testable: Vec<u64> = outcome.testable.iter().map(|position| *position as u64).collect();
        let expected: Vec<u64> = case["testable"].as_array().expect("list").iter().map(integer).collect();
        assert_eq!(testable, expected);
        for (found, expected) in outcome.adjusted.iter().zip(case["adjusted"].as_array().expect("list")) {
            match found {
                None => assert!(expected.is_null()),
                Some(p) => close(*p, expected, EXACT, "adjusted"),
            }
        }
        assert_eq!(outcome.adjusted.len(), family.len());
    }
}

/// `"-3/4"` or `"2"`.
fn fraction(text: &str) -> PersonaDelta {
    let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
    PersonaDelta::new(numerator.parse().expect("numerator"), denominator.parse().expect("denominator"))
        .expect("fraction")
}

#[test]
fn sign_flips_against_full_enumeration() {
    let file = load("fx_signflip.json");
    for case in cases(&file, 46) {
        let deltas: Vec<PersonaDelta> =
            case["d"].as_array().expect("d").iter().map(|d| fraction(d.as_str().expect("text"))).collect();
        let found = sign_flip(&deltas);
        assert_eq!(found.personas as u64, integer(&case["n_personas"]));
        assert_eq!(found.informative as u64, integer(&case["n_nonzero"]));
        match found.mean {
            None => assert!(case["mean"].is_null()),
            Some(mean) => assert!((mean - number(&case["mean"])).abs() <= EXACT),
        }
        let expected = &case["p"];
        close(found.greater.exact, &expected["greater"], EXACT, "greater");
        close(found.less.exact, &expected["less"], EXACT, "less");
        close(found.two_sided.exact, &expected["two_sided"], EXACT, "two-sided");
        close(found.greater.mid, &expected["mid_p_greater"], EXACT, "mid-p");
        let (numerator, denominator) =
            case["p_greater_fraction"].as_str().expect("text").split_once('/').expect("fraction");
        let fraction: f64 = numerator.parse::<f64>().expect("n") / denominator.parse::<f64>().expect("d");
        assert!((found.greater.exact - fraction).abs() <= EXACT * fraction);
    }
}

#[test]
fn sign_flips_of_realistic_size() {
    let file = load("fx_signflip_large.json");
    for case in cases(&file, 6) {
        let scale = integer(&case["scale"]);
        let deltas: Vec<PersonaDelta> = case["d_scaled"]
            .as_array()
            .expect("d")
            .iter()
            .map(|d| PersonaDelta::new(d.as_i64().expect("integer"), scale).expect("fraction"))
            .collect();
        let found = sign_flip(&deltas);
        close(found.greater.exact, &case["p"]["greater"], EXACT, "greater");
        close(found.greater.mid, &case["p"]["mid_p_greater"], EXACT, "mid-p");
        close(found.two_sided.exact, &case["p"]["two_sided"], EXACT, "two-sided");
    }
}

/// Every p-value a case names, so that none is left out.
fn close_exact(found: &ExactTest, expected: &Value, what: &str) {
    for (name, value) in expected.as_object().expect("p-values") {
        let p = match name.as_str() {
            "greater" => found.greater.exact,
            "less" => found.less.exact,
            "two_sided" => found.two_sided.exact,
            "mid_p_greater" => found.greater.mid,
            "mid_p_two_sided" => found.two_sided.mid,
            other => panic!("unknown p-value {other}"),
        };
        close(p, value, EXACT, &format!("{what}: {name}"));
    }
}

#[test]
fn fisher_tables() {
    let file = load("fx_fisher.json");
    for case in cases(&file, 53) {
        let row = |row: &Value| {
            Count::new(integer(&row[0]), integer(&row[0]) + integer(&row[1])).expect("valid count")
        };
        let table = &case["table"];
        let found = fisher(row(&table[0]), row(&table[1])).expect("small table");
        close_exact(&found, &case["p"], &table.to_string());
    }
}

#[test]
fn mcnemar_pairs() {
    let file = load("fx_mcnemar.json");
    for case in cases(&file, 43) {
        let (b, c) = (integer(&case["b_cand_only"]), integer(&case["c_base_only"]));
        close_exact(&mcnemar(b, c).expect("small"), &case["p"], &format!("{b} {c}"));
    }
}

#[test]
fn stratified_tests() {
    let file = load("fx_stratified.json");
    for case in cases(&file, 12) {
        let personas: Vec<PersonaCounts> = case["strata_kc_nc_kb_nb"]
            .as_array()
            .expect("strata")
            .iter()
            .map(|s| PersonaCounts { candidate: count(&s[0], &s[1]), baseline: count(&s[2], &s[3]) })
            .collect();
        close_exact(&stratified(&personas).expect("small"), &case["p"], "stratified");
        let found = cmh(&personas).expect("informative strata");
        assert_eq!(found.informative as u64, integer(&case["informative"]));
        let expected = &case["cmh_no_correction"];
        close(found.chi_squared, &expected["chi2"], EXACT, "chi-squared");
        close(found.p, &expected["p_two_sided"], QUANTILE, "CMH p");
    }
}

#[test]
fn e_processes() {
    let file = load("fx_eprocess.json");
    let mut exact_rows = 0;
    for case in cases(&file, 40) {
        let (count, limit) = (count(&case["k"], &case["n"]), number(&case["x"]));
        let found = e_values(count, limit).expect("limit within (0, 1)");
        let (pass, mut fail) = (number(&case["log_e_pass"]), number(&case["log_e_fail"]));
        // The one row in which the reference subtracts two tails so close to 1 that nine digits are left. In exact
        // rationals, with x = 1/20 and the prior's top 6x = 3/10: the integral of (1 - p)^400 from 1/20 to 3/10 is
        // ((19/20)^401 - (7/10)^401) / 401; over the prior's width 1/4 and the likelihood (19/20)^400 at the limit, its
        // logarithm is ln((19/20) (1 - (14/19)^401) 4 / 401) = -4.658960360574...
        if (count.successes(), count.total(), case["x"].as_f64()) == (0, 400, Some(0.05)) {
            assert!(
                (fail + 4.658_960_360_574_229).abs() > 1e-9,
                "the reference was mended: drop this row's own value"
            );
            fail = -4.658_960_360_574_229;
            exact_rows += 1;
        }
        for (value, expected) in [(found.log_pass, pass), (found.log_fail, fail)] {
            // Logarithms pass through zero, where a relative tolerance means nothing.
            assert!(
                (value - expected).abs() <= QUANTILE * expected.abs().max(1.0),
                "{count:?} {limit}: {value} instead of {expected}"
            );
        }
        assert_eq!(Some(found.passes(Alpha::P05)), case["pass_at_0.05"].as_bool());
        assert_eq!(Some(found.fails(Alpha::P05)), case["fail_at_0.05"].as_bool());
    }
    assert_eq!(exact_rows, 1);
}
