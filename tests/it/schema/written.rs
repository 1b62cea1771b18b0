//! What the program writes, held against its schemas. The schemas are open, so that keys may be added within a major
//! version; here they are closed, so that a key is never written without being described.

use super::samples::{certain_fail, matrix, row, run, text, verdict, whole_report};
use super::{faults, schema, validator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use vera_gate::baseline::{self, Baseline, BaselineConversation};
use vera_gate::exit::Exit;
use vera_gate::gate::rules::{OnInconclusive, Tier};
use vera_gate::gate::stop::StopReason;
use vera_gate::gate::verdict::{
    Against, BaselineWord, Cases, Coverage, Drawn, GateVerdict, Measure, Row, RuleResult, Settling, Status,
    Verdict, Weight,
};
use vera_gate::model::Role;
use vera_gate::rating::{Rating, RatingOutcome, Unjudged};
use vera_gate::report::{self, Report};
use vera_gate::run::{RunRecord, Stop};
use vera_gate::target::{Fingerprints, RiskLevel};
use vera_gate::transcript::ConversationId;

/// The schema with every object closed that names its properties.
pub(super) fn closed(schema: &Value) -> Value {
    match schema {
        Value::Object(object) => {
            let mut object: serde_json::Map<String, Value> =
                object.iter().map(|(key, value)| (key.clone(), closed(value))).collect();
            if object.contains_key("properties") && !object.contains_key("additionalProperties") {
                object.insert("additionalProperties".to_owned(), false.into());
            }
            Value::Object(object)
        }
        Value::Array(items) => items.iter().map(closed).collect(),
        other => other.clone(),
    }
}

/// The value validates, names no key that the schema does not know, and comes back the same.
fn holds<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(name: &str, value: &T) -> Value {
    let schema = schema(name);
    let written = serde_json::to_value(value).unwrap();
    for schema in [&schema, &closed(&schema)] {
        let faults = faults(&validator(schema), &written);
        assert!(faults.is_empty(), "{name}:\n{faults}\n{written:#}");
    }
    assert_eq!(&serde_json::from_value::<T>(written.clone()).unwrap(), value);
    written
}

/// A document that lacks one of the keys that are always written, or has another version, does not validate.
pub(super) fn bites(name: &str, written: &Value) {
    let validator = validator(&schema(name));
    for key in written.as_object().unwrap().keys() {
        let mut less = written.clone();
        less.as_object_mut().unwrap().remove(key);
        assert!(!validator.is_valid(&less), "{name} without `{key}`");
    }
    let mut newer = written.clone();
    newer["schema"] = format!("vera-gate/{name}/v2").into();
    assert!(!validator.is_valid(&newer), "{name}: a newer version");
}

#[test]
fn a_matrix_validates() {
    let written = holds("matrix", &matrix());
    bites("matrix", &written);
    let float = json!({"best_practice": 1.5});
    let mut broken = written;
    broken["dimensions"][0]["all"]["best_practice"] = float["best_practice"].clone();
    assert!(!validator(&schema("matrix")).is_valid(&broken), "counts are whole numbers");
}

#[test]
fn a_verdict_validates_with_everything_in_it_and_with_nothing() {
    let full = verdict();
    holds("verdict", &full);
    let empty = GateVerdict {
        reasons: Vec::new(),
        rules: Vec::new(),
        cases: Cases { best: Verdict::Pass, worst: Verdict::Pass, deciding: Vec::new() },
        coverage: Coverage::default(),
        score: None,
        baselines: Vec::new(),
        waivers: Vec::new(),
        stopped: None,
        ..full.clone()
    };
    bites("verdict", &holds("verdict", &empty));
    for stopped in [StopReason::CannotPass { rule: "r".to_owned(), dimension: None }, StopReason::EarlyPass] {
        holds("verdict", &GateVerdict { stopped: Some(stopped), ..empty.clone() });
    }
    let bare = Row {
        dimension: None,
        risk_level: None,
        against: None,
        underneath: None,
        bound: None,
        limit: None,
        conversations: Vec::new(),
        settling: None,
        best_case: None,
        worst_case: None,
        regression: None,
        confirmations: Vec::new(),
        ..row(Settling::CannotSettle)
    };
    let rules = vec![RuleResult { rows: vec![bare], ..full.rules[0].clone() }];
    holds("verdict", &GateVerdict { rules, ..empty });
}

#[test]
fn a_run_validates_however_it_stopped() {
    let text = || "why".to_owned();
    let written = [
        Stop::Provider(text()),
        Stop::Budget(text()),
        Stop::Cancelled,
        Stop::Storage(text()),
        Stop::Shards(text()),
        Stop::Curtailed(certain_fail()),
        Stop::Curtailed(StopReason::EarlyPass),
    ]
    .map(|stop| holds("run", &run(stop)));
    bites("run", &written[0]);
    let done = RunRecord {
        shard: None,
        target_version: None,
        target_title: None,
        target_notice: None,
        clinically_validated: None,
        stopped: None,
        complete: true,
        ..run(Stop::Cancelled)
    };
    holds("run", &done);
}

#[test]
fn a_report_validates_with_everything_in_it_and_with_little() {
    let full = whole_report();
    holds("report", &full);
    let bare = Report {
        name: None,
        notice: None,
        policy_change: None,
        stopped_early: None,
        overall: report::HarmRate::default(),
        compared_with: None,
        findings: Vec::new(),
        injection_suspects: Vec::new(),
        warnings: Vec::new(),
        ..full
    };
    bites("report", &holds("report", &bare));
}

/// The file form of a baseline is its own, so it is not the serialised value that counts.
#[test]
fn a_baseline_file_validates_and_schema_and_reader_agree() {
    let outcomes = Rating::ALL
        .map(RatingOutcome::Rated)
        .into_iter()
        .chain([RatingOutcome::Unjudged(Unjudged::Blank)])
        .enumerate()
        .map(|(index, outcome)| (format!("d{index}"), outcome))
        .collect();
    let full = Baseline {
        origin: baseline::Origin::Blessed,
        run: Some(text("20260501T120000Z-0")),
        candidate: text("bot"),
        created: chrono::NaiveDate::from_ymd_opt(2026, 5, 1),
        provenance: baseline::Provenance {
            fingerprints: Some(Fingerprints { rubric: text("1"), personas: text("2"), prompts: text("3") }),
            settings: [(text("judge"), text("j"))].into(),
        },
        forced: vec![text("3 ratings are missing")],
        dimensions: (0..5).map(|index| format!("d{index}")).collect(),
        conversations: vec![BaselineConversation {
            id: ConversationId(text("c")),
            persona: text("P"),
            risk_level: Some(RiskLevel::Immediate),
            user_model: text("m"),
            run: 1,
            outcomes,
            modes: [(text("d2"), [text("no-referral")].into())].into(),
        }],
    };
    let (open, strict) = (validator(&schema("baseline")), validator(&closed(&schema("baseline"))));
    let read = |value: &Value| Baseline::from_json(&value.to_string()).is_ok();
    let written: Value = serde_json::from_str(&full.to_json().unwrap()).unwrap();
    assert!(faults(&strict, &written).is_empty(), "{}", faults(&strict, &written));
    assert!(read(&written));
    let bare = Baseline { provenance: baseline::Provenance::default(), run: None, forced: vec![], ..full };
    let bare: Value = serde_json::from_str(&bare.to_json().unwrap()).unwrap();
    assert!(faults(&strict, &bare).is_empty(), "{}", faults(&strict, &bare));

    let change = |pointer: &str, to: Value| {
        let mut changed = written.clone();
        *changed.pointer_mut(pointer).unwrap() = to;
        changed
    };
    for broken in [
        change("/schema", "vera-gate/baseline/v2".into()),
        change("/created", "yesterday".into()),
        change("/created", Value::Null),
        change("/conversations", json!([])),
        change("/conversations/0/ratings/0", "bp".into()),
        change("/conversations/0/ratings/4", json!({"unjudged": "unknown"})),
        change("/conversations/0/risk_level", "Imminent".into()),
        change("/conversations/0", json!({"id": "c"})),
        change("/provenance", json!({"hash": "x"})),
        change("/dimensions", "d0".into()),
    ] {
        assert!(!open.is_valid(&broken) && !read(&broken), "{broken:#}");
    }
}

#[test]
fn what_stands_inside_another_file_is_the_same_there() {
    let (matrix, verdict, report) = (schema("matrix"), schema("verdict"), schema("report"));
    for key in ["dimension", "counts", "risk_level", "unjudged"] {
        assert_eq!(matrix["$defs"][key], verdict["$defs"][key], "{key}");
    }
    for key in ["properties", "required", "additionalProperties"] {
        assert_eq!(matrix[key], verdict["$defs"]["matrix"][key], "{key}");
    }
    for (key, definition) in verdict["$defs"].as_object().unwrap() {
        assert_eq!(definition, &report["$defs"][key], "{key}");
    }
    for key in ["properties", "required"] {
        assert_eq!(verdict[key], report["$defs"]["gate_verdict"][key], "{key}");
    }
}

/// The words of an enumeration, from what the reader says when it meets none of them.
fn words_of<T: DeserializeOwned>() -> BTreeSet<String> {
    let Err(error) = serde_json::from_value::<T>("no such word".into()) else { panic!("read anything") };
    let text = error.to_string();
    let (_, list) = text.split_once("expected").unwrap();
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn closed_sets_of_words_are_the_same_in_schema_and_program() {
    let (verdict, run) = (schema("verdict"), schema("run"));
    let at = |schema: &Value, pointer: &str| -> BTreeSet<String> {
        let list = schema.pointer(pointer).and_then(Value::as_array).unwrap_or_else(|| panic!("{pointer}"));
        list.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let defs = "/$defs";
    let checks: BTreeMap<&str, BTreeSet<String>> = [
        ("verdict/enum", words_of::<Verdict>()),
        ("status/enum", words_of::<Status>()),
        ("risk_level/enum", words_of::<RiskLevel>()),
        ("unjudged/enum", words_of::<Unjudged>()),
        ("against/enum", words_of::<Against>()),
        ("reason/properties/weight/enum", words_of::<Weight>()),
        ("rule/properties/tier/enum", words_of::<Tier>()),
        ("row/properties/measure/enum", words_of::<Measure>()),
        ("confirmation/properties/outcome/enum", words_of::<Drawn>()),
        ("baseline/properties/state/enum", words_of::<BaselineWord>()),
    ]
    .into();
    for (place, words) in checks {
        assert_eq!(at(&verdict, &format!("{defs}/{place}")), words, "{place}");
    }
    assert_eq!(at(&verdict, "/properties/policy/properties/inconclusive/enum"), words_of::<OnInconclusive>());
    assert_eq!(at(&run, "/$defs/role/enum"), words_of::<Role>());
    let exits: Vec<u8> = serde_json::from_value(verdict["properties"]["exit_code"]["enum"].clone()).unwrap();
    assert_eq!(exits, [Exit::Success, Exit::GateFailed, Exit::Inconclusive].map(Exit::code));
}
