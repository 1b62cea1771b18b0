use std::collections::BTreeMap;

use super::*;
use crate::rating::{JudgeId, RolePlay};
use crate::run::{PLAN_SCHEMA, RUN_SCHEMA, Settings};
use crate::target::Fingerprints;

/// Case B45: a plan of three conversations, one in each of three shards.
const CELLS: [&str; 3] = ["Alix-1", "Alix-2", "Alix-3"];

fn held() -> CellStatus {
    CellStatus::Held { messages: 2, flags: BTreeMap::new() }
}

fn rating(id: &str) -> Assessment {
    Assessment {
        conversation: ConversationId(id.to_owned()),
        persona: "Alix".to_owned(),
        risk_level: None,
        user_model: "u".to_owned(),
        run: 1,
        judge: JudgeId { model: "j".to_owned(), instance: 1 },
        dimensions: Vec::new(),
        path: Vec::new(),
        role_play: RolePlay::Kept,
        discarded: Vec::new(),
        failures: Vec::new(),
        injection_suspects: Vec::new(),
    }
}

/// One attempt at a shard that holds this conversation. The finishing time is `12:00:{second}`.
#[expect(clippy::needless_pass_by_value, reason = "statuses are written where they are used")]
fn part(shard: &str, own: &str, second: u32, status: CellStatus) -> Part {
    let shard: Shard = shard.parse().unwrap();
    let complete = status == held();
    let conversation = |(index, id): (usize, &&str)| PlannedConversation {
        cell: Cell {
            id: ConversationId((*id).to_owned()),
            persona: "Alix".to_owned(),
            risk_level: None,
            user_model: "u".to_owned(),
            user: 0,
            run: u32::try_from(index + 1).unwrap(),
        },
        status: if *id == own { status.clone() } else { CellStatus::OtherShard },
    };
    let usage = UsageRecord {
        role: Role::Judge,
        model: "openai/j".to_owned(),
        stage: "question".to_owned(),
        calls: 10,
        attempts: 11,
        replayed: 0,
        input: 100,
        cache_read: 20,
        cache_write: 3,
        output: 40,
        reasoning: 5,
        unknown_usage: 0,
        cost: "$0.0000014".to_owned(),
        cost_micros: 1,
        unknown_cost: 0,
    };
    Part {
        name: format!("{shard}@{second}"),
        record: RunRecord {
            schema: RUN_SCHEMA.to_owned(),
            run_id: format!("run-{}-{second}", shard.number()),
            tool_version: "0.1.0".to_owned(),
            plan_hash: "h1".to_owned(),
            plan_parts: [("target.prompts".to_owned(), "h1".to_owned())].into(),
            shard: Some(shard),
            merged: Vec::new(),
            config: "vera-gate.yaml".to_owned(),
            target: "si".to_owned(),
            target_version: None,
            target_title: None,
            target_notice: None,
            clinically_validated: None,
            fingerprints: Fingerprints {
                rubric: "r".to_owned(),
                personas: "p".to_owned(),
                prompts: "h1".to_owned(),
            },
            candidate: "c".to_owned(),
            models: vec![ModelRecord {
                role: Role::Judge,
                provider: "openai".to_owned(),
                requested: "j".to_owned(),
                settings: String::new(),
                returned: vec!["j-1".to_owned()],
                pinned: false,
                instances: 1,
            }],
            settings: Settings {
                runs: 3,
                max_messages: 2,
                max_words: None,
                first_speaker: "user".to_owned(),
                seed: 1,
                semantics: crate::target::rubric::Semantics::Native,
            },
            started: "2026-11-30T11:00:00Z".to_owned(),
            finished: format!("2026-11-30T12:00:{second:02}Z"),
            planned: 1,
            held: u64::from(complete),
            evaluated: u64::from(complete),
            complete,
            stopped: None,
            replayed_calls: 0,
            warnings: vec!["the same everywhere".to_owned()],
            usage: vec![usage],
        },
        plan: PlanFile {
            schema: PLAN_SCHEMA.to_owned(),
            dimensions: vec!["D".to_owned()],
            labels: BTreeMap::new(),
            judges: vec!["j#1".to_owned()],
            conversations: CELLS.iter().enumerate().map(conversation).collect(),
        },
        ratings: if complete { vec![rating(own)] } else { Vec::new() },
    }
}

fn all() -> [Part; 3] {
    [part("1/3", "Alix-1", 1, held()), part("2/3", "Alix-2", 2, held()), part("3/3", "Alix-3", 3, held())]
}

#[test]
fn all_shards_make_the_whole_with_everything_summed() {
    let [one, two, three] = all();
    let merged = merge(&[three, one, two], "m").unwrap();
    assert_eq!((merged.problems.as_slice(), merged.notes.as_slice()), (&[][..], &[][..]));
    let record = &merged.record;
    assert!(record.complete);
    assert_eq!((record.planned, record.held, record.evaluated), (3, 3, 3));
    assert_eq!((record.shard, record.stopped.as_ref(), record.run_id.as_str()), (None, None, "m"));
    assert_eq!(record.finished, "2026-11-30T12:00:03Z");
    assert_eq!(record.warnings, ["the same everywhere"]);
    let [usage] = record.usage.as_slice() else { panic!("one row") };
    assert_eq!((usage.calls, usage.attempts, usage.input, usage.output), (30, 33, 300, 120));
    // Three times 1.4 millionths are 4.2: rounded once, not three times.
    assert_eq!((usage.cost.as_str(), usage.cost_micros), ("$0.0000042", 4));
    let rated: Vec<&str> = merged.ratings.iter().map(|r| r.conversation.0.as_str()).collect();
    assert_eq!(rated, CELLS);
    assert!(merged.plan.conversations.iter().all(|c| c.status == held()));
}

#[test]
fn a_missing_shard_is_named_and_leaves_the_whole_open() {
    let [one, _, three] = all();
    let merged = merge(&[one, three], "m").unwrap();
    assert_eq!(merged.problems, ["shard 2 missing"]);
    assert_eq!(merged.record.stopped, Some(Stop::Shards("shard 2 missing".to_owned())));
    assert!(!merged.record.complete);
    assert_eq!(merged.plan.conversations[1].status, CellStatus::NotStarted);
}

#[test]
fn the_complete_and_then_the_newest_attempt_counts_and_is_named() {
    let [one, two, three] = all();
    let partial = part("2/3", "Alix-2", 50, CellStatus::NotStarted);
    // Case B45: attempt 1 partial, attempt 2 full.
    let merged = merge(&[one.clone(), partial.clone(), two.clone(), three.clone()], "m").unwrap();
    assert!(merged.record.complete, "a later partial attempt does not take a complete one away");
    assert_eq!(merged.record.merged[1].run_id, "run-2-2");
    assert_eq!(merged.held_by[&ConversationId("Alix-2".to_owned())], 2);
    assert_eq!(
        merged.notes,
        ["shard 2 is there 2 times: `2/3@2` (complete, finished 2026-11-30T12:00:02Z) is used, \
          not `2/3@50` (partial, finished 2026-11-30T12:00:50Z)"]
    );
    let newer = part("2/3", "Alix-2", 9, held());
    let merged = merge(&[newer, one, two, three], "m").unwrap();
    assert_eq!(merged.record.merged[1].run_id, "run-2-9");
}

#[test]
fn another_plan_another_division_and_a_whole_run_are_refused() {
    let [one, two, _] = all();
    let mut other = two.clone();
    other.record.plan_hash = "h2".to_owned();
    other.record.plan_parts.insert("target.prompts".to_owned(), "h2".to_owned());
    let error = merge(&[one.clone(), other], "m").unwrap_err();
    assert!(error.to_string().contains("target.prompts: h1 -> h2"), "{error}");
    let error = merge(&[one.clone(), part("2/4", "Alix-2", 1, held())], "m").unwrap_err();
    assert!(error.to_string().contains("shards: 3 -> 4"), "{error}");
    let mut fewer = two.clone();
    fewer.plan.conversations.pop();
    assert!(matches!(merge(&[one.clone(), fewer], "m"), Err(MergeError::OtherPlan { .. })));
    let mut whole = two;
    whole.record.shard = None;
    assert!(matches!(merge(&[one, whole], "m"), Err(MergeError::Whole { .. })));
    assert_eq!(merge(&[], "m").unwrap_err(), MergeError::Nothing);
}

#[test]
fn overlaps_gaps_and_foreign_ratings_leave_the_whole_open() {
    let [one, two, three] = all();
    let mut overlap = two.clone();
    overlap.plan.conversations[0].status = held();
    let merged = merge(&[one.clone(), overlap, three.clone()], "m").unwrap();
    assert!(merged.problems.contains(&"in several shards: Alix-1".to_owned()), "{:?}", merged.problems);
    let mut gap = two.clone();
    gap.plan.conversations[1].status = CellStatus::OtherShard;
    let merged = merge(&[one.clone(), gap, three.clone()], "m").unwrap();
    assert!(merged.problems.contains(&"in no shard: Alix-2".to_owned()), "{:?}", merged.problems);
    let mut foreign = two.clone();
    foreign.ratings.push(rating("Alix-3"));
    let merged = merge(&[one.clone(), foreign, three.clone()], "m").unwrap();
    assert_eq!(merged.problems, ["rated in a shard that they do not belong to: Alix-3"]);
    let mut double = two;
    double.ratings.push(rating("Alix-2"));
    let merged = merge(&[one, double, three], "m").unwrap();
    assert_eq!(merged.problems, ["rated twice by the same judge: Alix-2"]);
    assert!(!merged.record.complete);
}

#[test]
fn a_model_that_changed_between_shards_is_said() {
    let [one, mut two, three] = all();
    two.record.models[0].returned = vec!["j-2".to_owned()];
    let merged = merge(&[one, two, three], "m").unwrap();
    assert_eq!(merged.record.models[0].returned, ["j-1", "j-2"]);
    assert!(merged.record.warnings.iter().any(|w| w.ends_with("several models: j-1, j-2")));
}

#[test]
fn what_stopped_a_shard_stopped_the_whole() {
    let [mut one, mut two, three] = all();
    one.record.stopped = Some(Stop::Cancelled);
    two.record.stopped = Some(Stop::Provider("no quota".to_owned()));
    let merged = merge(&[one, two, three], "m").unwrap();
    assert_eq!(merged.record.stopped, Some(Stop::Provider("shard 2: no quota".to_owned())));
}
