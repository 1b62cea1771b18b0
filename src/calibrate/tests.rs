use super::*;
use crate::matrix::read_results;
use crate::source::Source;
use crate::stats::Confidence;

/// Two of group `a` and one of group `b` on four conversations; B best practice, H high potential for harm, N not
/// relevant:
///
/// | | a_1 | a_2 | b_1 |
/// |---|---|---|---|
/// | c1 | B | B | B |
/// | c2 | H | H | H |
/// | c3 | B | H | H |
/// | c4 | N | N | B |
const FOUR: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/calibrate/ratings.csv"));
const JUDGE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/calibrate/results.csv"));

fn resampling() -> Resampling {
    Resampling { resamples: 200, seed: 7, confidence: Confidence::P95 }
}

fn humans() -> HumanRatings {
    read_ratings(&Source::new("ratings.csv", FOUR), &[]).unwrap().0
}

fn judged(text: &str) -> Result<Vec<judge::JudgeReport>, Diagnostics> {
    let (results, _) = read_results(&Source::new("results.csv", text)).unwrap();
    judge::compare(&humans(), &results.dimensions, &results.rows, resampling())
}

use crate::diagnostic::Diagnostics;

fn near(estimate: Option<Estimate>, expected: f64) {
    let value = estimate.unwrap().value;
    assert!((value - expected).abs() < 1e-12, "{value} instead of {expected}");
}

#[test]
fn four_conversations_by_hand() {
    let found = calibrate(&humans(), resampling());
    assert_eq!((found.conversations, found.ratings, found.blank), (4, 12, 0));
    // Same rating: 1, 1, 1/3, 1/3 of the pairs.
    near(found.humans.pooled.percent, 2.0 / 3.0);
    // Alpha: 5 B, 5 H, 2 N of 12. Observed disagreement 1/3, expected 1 - (20 + 20 + 2) / 132 = 90/132.
    near(found.humans.pooled.alpha, 1.0 - (1.0 / 3.0) / (90.0 / 132.0));
    // AC1: chance (5/12 * 7/12 * 2 + 2/12 * 10/12) / 3 = 5/24, so (16/24 - 5/24) / (19/24).
    near(found.humans.pooled.ac1, 11.0 / 19.0);
    let row = &found.humans.dimensions[0];
    assert_eq!(row.dimension, "guides");
    assert_eq!((row.harm.both, row.harm.one, row.harm.neither), (4, 2, 6));
    // Harm or not: 1, 1, 1/3, 1.
    assert!((row.harm.percent.unwrap() - 5.0 / 6.0).abs() < 1e-12);
    let interval = found.humans.pooled.percent.unwrap();
    assert!(interval.lower.unwrap() < 2.0 / 3.0 && 2.0 / 3.0 < interval.upper.unwrap());

    assert_eq!(found.groups.len(), 1, "group b has one member");
    assert_eq!(found.groups[0].group.as_deref(), Some("a"));
    near(found.groups[0].pooled.percent, 0.75);
}

#[test]
fn one_human_against_the_others_by_hand() {
    let found = calibrate(&humans(), resampling());
    // c2: three of three found; c3: a_1 misses what both others say, the other two have others who disagree.
    let all = found.yardstick.last().unwrap();
    assert_eq!(
        (all.sensitivity, all.specificity),
        (humans::Share { k: 3, n: 4 }, humans::Share { k: 6, n: 6 })
    );
    assert_eq!((all.ambiguous, &all.dimension), (2, &None));
    let third = found.adjudication.unwrap();
    assert_eq!((third.followed, third.sided), (humans::Share { k: 2, n: 3 }, humans::Share { k: 1, n: 1 }));
    assert!(!third.is_likely(), "four conversations show no habit");
}

#[test]
fn a_judge_by_hand() {
    // The judge: c1 B, c2 H, c3 S, c4 H, and c9 that no human rated.
    let reports = judged(JUDGE).unwrap();
    assert_eq!(reports.len(), 1);
    let report = &reports[0];
    assert_eq!((report.judge.as_str(), report.conversations, report.without_humans), ("j", 4, 1));
    assert!(report.without_judge.is_empty());
    // The majority of the humans: B, H, H, N.
    let guides = &report.majority[1];
    assert_eq!(guides.dimension.as_deref(), Some("Guides to Human Care"));
    near(guides.agreement.percent, 0.5);
    assert_eq!(guides.harm.sensitivity, humans::Share { k: 1, n: 2 });
    assert_eq!(guides.harm.specificity, humans::Share { k: 1, n: 2 });
    assert_eq!(guides.harm.youden, Some(0.0));
    // Clopper-Pearson of 1 of 2, two-sided 95 %: 1 - sqrt(0.975) and sqrt(0.975).
    let [lower, upper] = guides.harm.sensitivity_interval.unwrap();
    assert!((lower - (1.0 - 0.975f64.sqrt())).abs() < 1e-9 && (upper - 0.975f64.sqrt()).abs() < 1e-9);
    // Against a_1 alone (B, H, B, N): c2 found, c1 and c3 cleared, c4 not.
    assert_eq!(report.raters[0].harm.specificity, humans::Share { k: 2, n: 3 });
    assert_eq!(report.raters[0].harm.sensitivity, humans::Share { k: 1, n: 1 });
}

#[test]
fn an_unjudged_conversation_is_counted_and_in_no_other_number() {
    let text = JUDGE.replace("c2_P_m_run1.txt,j,1,High Potential for Harm", "c2_P_m_run1.txt,j,1,");
    let report = &judged(&text).unwrap()[0];
    assert_eq!(report.majority[1].unjudged, 1);
    assert_eq!(report.majority[1].harm.sensitivity, humans::Share { k: 0, n: 1 });
    assert_eq!(report.majority[1].agreement.items, 3);
}

#[test]
fn several_judges_are_shown_together_and_each() {
    let second: String = JUDGE.lines().skip(1).map(|line| line.replace(",j,", ",k,") + "\n").collect();
    let names: Vec<String> =
        judged(&format!("{JUDGE}{second}")).unwrap().into_iter().map(|report| report.judge).collect();
    assert_eq!(names, ["all judges", "j", "k"]);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let other = JUDGE.replace("Guides to Human Care", "Confirms Risk");
    assert!(judged(&other).unwrap_err().to_string().contains("unknown-dimension"));
    let nobody: String = JUDGE.replace("\nc", "\nx");
    assert!(judged(&nobody).unwrap_err().to_string().contains("nothing-selected"));
    let twins = format!("{JUDGE}c1_Q_m_run1.txt,j,1,Best Practice,,\n");
    assert!(judged(&twins).unwrap_err().to_string().contains("may be any of"));
}

#[test]
fn a_humans_tie_is_no_verdict_on_the_judge() {
    let text = "rater,conversation_id,guides\n\
                x,c1,Best Practice\ny,c1,High Potential for Harm\n";
    let (ratings, _) = read_ratings(&Source::new("r.csv", text), &[]).unwrap();
    let (results, _) = read_results(&Source::new("results.csv", JUDGE)).unwrap();
    let reports = judge::compare(&ratings, &results.dimensions, &results.rows, resampling()).unwrap();
    let guides = &reports[0].majority[1];
    assert_eq!((guides.undecided, guides.harm.ambiguous), (1, 1));
    assert_eq!((guides.harm.youden, guides.agreement.percent), (None, None));
}
