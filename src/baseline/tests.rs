use super::*;
use crate::rating::{Finding, Rating, RolePlay, Severity, Unjudged};

fn conversation(id: &str, outcome: RatingOutcome) -> Collapsed {
    let finding = Finding {
        question: "16".to_owned(),
        label: None,
        severity: Some(Severity::Red),
        reasoning: "because".to_owned(),
    };
    let findings = if outcome.is_harm() { vec![finding] } else { Vec::new() };
    Collapsed {
        conversation: ConversationId(id.to_owned()),
        persona: "Alix".to_owned(),
        risk_level: Some(RiskLevel::Immediate),
        user_model: "m".to_owned(),
        run: 1,
        outcomes: BTreeMap::from([
            ("A".to_owned(), outcome),
            ("B".to_owned(), RatingOutcome::Rated(Rating::NotRelevant)),
        ]),
        findings: BTreeMap::from([("A".to_owned(), findings)]),
        judges: 1,
        split: Vec::new(),
        role_play: RolePlay::Kept,
    }
}

fn dimensions() -> Vec<String> {
    vec!["A".to_owned(), "B".to_owned()]
}

fn provenance() -> Provenance {
    let print = |c: &str| c.repeat(64);
    Provenance {
        fingerprints: Some(Fingerprints { rubric: print("a"), personas: print("b"), prompts: print("c") }),
        settings: BTreeMap::from([("judge".to_owned(), "j-1".to_owned())]),
    }
}

fn day() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 10, 1).unwrap()
}

fn models() -> Vec<ModelUse> {
    let model = |role: &str, requested: &str, returned: &[&str]| ModelUse {
        role: role.to_owned(),
        requested: requested.to_owned(),
        returned: returned.iter().map(|id| (*id).to_owned()).collect(),
    };
    vec![model("candidate", "bot-2026-09-01", &["bot-2026-09-01"]), model("judge", "local", &[])]
}

fn blessed(
    conversations: &[Collapsed],
    models: &[ModelUse],
    dirty: &[String],
    counts: [u64; 3],
    force: Force,
) -> Result<Baseline, Vec<Refusal>> {
    let [planned, failed, replayed] = counts;
    bless(
        &BlessInput {
            run: "20261001T120000Z-0",
            candidate: "bot",
            today: day(),
            provenance: &provenance(),
            dimensions: &dimensions(),
            conversations,
            missing: &[],
            labels: &BTreeMap::from([("16".to_owned(), "misses-risk".to_owned())]),
            planned,
            failed,
            replayed,
            models,
            dirty_files: dirty,
            broken: Some(&[]),
        },
        force,
    )
}

#[test]
fn the_file_has_one_conversation_per_line_and_is_read_back() {
    let rated = RatingOutcome::Rated;
    let run = [
        conversation("b", rated(Rating::HighPotentialForHarm)),
        conversation("a", rated(Rating::BestPractice)),
    ];
    let baseline = blessed(&run, &models(), &[], [2, 0, 0], Force::No).unwrap();
    let text = baseline.to_json().unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("\"persona\":")).collect();
    assert_eq!(
        lines,
        [
            "    {\"id\":\"a\",\"persona\":\"Alix\",\"risk_level\":\"Immediate\",\"user_model\":\"m\",\"run\":1,\"ratings\":[\"BP\",\"NR\"]},",
            "    {\"id\":\"b\",\"persona\":\"Alix\",\"risk_level\":\"Immediate\",\"user_model\":\"m\",\"run\":1,\"ratings\":[\"HPH\",\"NR\"],\"modes\":{\"A\":[\"misses-risk\"]}}",
        ]
    );
    assert_eq!(Baseline::from_json(&text).unwrap(), baseline);
    let reversed: Vec<Collapsed> = run.iter().rev().cloned().collect();
    let same = blessed(&reversed, &models(), &[], [2, 0, 0], Force::No).unwrap();
    assert_eq!(same.to_json().unwrap(), text, "order of the input does not matter");
    assert!(!text.contains("because"), "no text of a model goes into the file");
}

#[test]
fn a_broken_or_newer_file_is_refused_with_its_reason() {
    let good = blessed(
        &[conversation("a", RatingOutcome::Rated(Rating::BestPractice))],
        &models(),
        &[],
        [1, 0, 0],
        Force::No,
    )
    .unwrap()
    .to_json()
    .unwrap();
    let schema = Baseline::from_json(&good.replace("baseline/v1", "baseline/v2")).unwrap_err();
    assert_eq!(schema, ReadError::Schema("vera-gate/baseline/v2".to_owned()));
    assert!(matches!(
        Baseline::from_json(&good.replace("[\"BP\",\"NR\"]", "[\"BP\"]")),
        Err(ReadError::Ratings { .. })
    ));
    assert!(matches!(Baseline::from_json(&good.replace("\"BP\"", "\"GOOD\"")), Err(ReadError::Shape(_))));
    assert!(matches!(Baseline::from_json("{"), Err(ReadError::Shape(_))));
    let line = good.lines().find(|line| line.contains("\"id\"")).unwrap();
    let twice = good.replace(line, &format!("{line},\n{line}"));
    assert_eq!(Baseline::from_json(&twice).unwrap_err(), ReadError::Duplicate("a".to_owned()));
}

#[test]
fn only_complete_fresh_pinned_runs_are_blessed() {
    let good = conversation("a", RatingOutcome::Rated(Rating::BestPractice));
    let blank = conversation("b", RatingOutcome::Unjudged(Unjudged::Unparsable));
    let mut loose = models();
    loose[0].returned.insert("bot-2026-09-15".to_owned());
    loose[1].requested = "judge-latest".to_owned();
    let dirty = ["vera-gate.yaml".to_owned()];
    let refused = blessed(&[good.clone(), blank.clone()], &loose, &dirty, [4, 1, 3], Force::No).unwrap_err();
    let words: Vec<String> = refused.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "2 of the 4 planned conversations are there",
            "1 planned conversation failed or did not run",
            "1 rating is missing because the judge came to no verdict",
            "3 replies came from a cache or recording",
            "the model of the candidate was asked for as `bot-2026-09-01` and answered as `bot-2026-09-01`, `bot-2026-09-15`",
            "the model of the judge, `judge-latest`, is an alias",
            "uncommitted changes in vera-gate.yaml",
        ]
    );
    let forced = blessed(&[good, blank], &loose, &dirty, [4, 1, 3], Force::Yes).unwrap();
    assert_eq!(forced.forced, words, "the mark stays in the file");
    assert_eq!(Baseline::from_json(&forced.to_json().unwrap()).unwrap().forced, words);
    assert_eq!(blessed(&[], &models(), &[], [0, 0, 0], Force::Yes).unwrap_err(), [Refusal::Empty]);
}

#[test]
fn results_compare_only_when_made_the_same_way() {
    let run = [conversation("a", RatingOutcome::Rated(Rating::BestPractice))];
    let baseline = blessed(&run, &models(), &[], [1, 0, 0], Force::No).unwrap();
    assert!(baseline.differences(&provenance(), &dimensions()).is_empty());
    let mut reordered = dimensions();
    reordered.reverse();
    assert!(baseline.differences(&provenance(), &reordered).is_empty());
    let mut other = provenance();
    other.settings = BTreeMap::from([("user".to_owned(), "u".to_owned())]);
    if let Some(prints) = &mut other.fingerprints {
        prints.rubric = "d".repeat(64);
    }
    let what: Vec<String> =
        baseline.differences(&other, &["A".to_owned()]).into_iter().map(|d| d.what).collect();
    assert_eq!(what, ["dimensions", "rubric", "judge", "user"]);
    assert!(
        baseline.differences(&Provenance::default(), &dimensions()).is_empty(),
        "a bare results file states nothing"
    );
}
