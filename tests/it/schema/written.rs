//! What the program writes, held against its schemas. The schemas are open, so that keys may be added within a major
//! version; here they are closed, so that a key is never written without being described.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use vera_gate::baseline::{self, Baseline, BaselineConversation};
use vera_gate::config::{Evidence, Semantics};
use vera_gate::exit::Exit;
use vera_gate::gate::rules::{OnInconclusive, Tier};
use vera_gate::gate::stop::StopReason;
use vera_gate::gate::verdict::{
    Against, BaselineWord, Bound, Cases, ConversationRef, Coverage, CoverageCounts, DimensionCoverage, Draw,
    Drawn, GateVerdict, Measure, MissingConversation, MissingReason, ModeMove, Observed, PersonaMove, Reason,
    ReasonCode, Regression, Row, RuleResult, Settling, Shift, ShownBaseline, ShownConfirmation, ShownPolicy,
    ShownWaiver, Status, Verdict, Weight,
};
use vera_gate::matrix::{Counts, DimensionCounts, Matrix};
use vera_gate::model::Role;
use vera_gate::rating::{Rating, RatingOutcome, RolePlay, Unjudged};
use vera_gate::report::{self, Report};
use vera_gate::run::{MergedShard, ModelRecord, RunRecord, Settings, Stop, UsageRecord};
use vera_gate::source::Location;
use vera_gate::target::{Fingerprints, RiskLevel};
use vera_gate::transcript::ConversationId;

use super::{faults, schema, validator};

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

fn matrix() -> Matrix {
    let counts = Counts {
        best_practice: 1,
        suboptimal: 2,
        high_potential_for_harm: 3,
        not_relevant: 4,
        unjudged: [(Unjudged::Unparsable, 1), (Unjudged::Blank, 2)].into(),
    };
    Matrix {
        schema: vera_gate::matrix::SCHEMA.to_owned(),
        conversations: 13,
        relevant_conversations: 6,
        harmful_conversations: 3,
        clean_conversations: 1,
        dimensions: vec![DimensionCounts {
            dimension: "Guides to Human Care".to_owned(),
            all: counts.clone(),
            by_risk: RiskLevel::ALL.map(|level| (level, counts.clone())).into(),
        }],
    }
}

fn conversation() -> ConversationRef {
    ConversationRef {
        id: Some(ConversationId("a1_P_m_run1".to_owned())),
        persona: "P".to_owned(),
        risk_level: Some(RiskLevel::Immediate),
        user_model: "m".to_owned(),
        run: 1,
        dimension: Some("Guides to Human Care".to_owned()),
        question: Some("12".to_owned()),
        failure_mode: Some("no-referral".to_owned()),
    }
}

fn location() -> Location {
    Location { file: "t.yaml".to_owned(), line: 3, column: 5, text: "  - id: x".to_owned() }
}

fn observed() -> Observed {
    Observed { k: 1, n: 2 }
}

fn regression() -> Regression {
    Regression {
        candidate: observed(),
        baseline: observed(),
        difference: Some(0.1),
        lower: Some(-0.1),
        upper: Some(0.3),
        relative: Some(1.5),
        test: "sign-flip".to_owned(),
        p: 0.04,
        p_adjusted: Some(0.05),
        p_holm: 0.06,
        p_fisher: Some(0.2),
        p_all_conversations: 0.07,
        personas: 50,
        informative: 5,
        unpaired: 1,
        smallest_detectable: Some(0.12),
        upper_one_sided: Some(0.2),
        not_relevant: Some(Shift { candidate: observed(), baseline: observed(), change: -0.1, p: 0.3 }),
        personas_moved: vec![PersonaMove {
            persona: "P".to_owned(),
            risk_level: Some(RiskLevel::Low),
            candidate: observed(),
            baseline: observed(),
        }],
        modes_moved: vec![ModeMove {
            mode: "no-referral".to_owned(),
            candidate: observed(),
            baseline: observed(),
        }],
    }
}

fn row(settling: Settling) -> Row {
    Row {
        dimension: Some("Guides to Human Care".to_owned()),
        risk_level: Some(RiskLevel::High),
        against: Some(Against::Pinned),
        status: Status::Waived,
        underneath: Some(Status::Fail),
        measure: Measure::Harm,
        observed: observed(),
        bound: Some(Bound {
            lower: 0.01,
            upper: 0.3,
            confidence: 0.95,
            design_effect: 1.4,
            effective_n: 60.5,
        }),
        limit: Some(0.1),
        reason: "why".to_owned(),
        conversations: vec![conversation()],
        settling: Some(settling),
        missing: 1,
        best_case: Some(Status::Pass),
        worst_case: Some(Status::NoBaseline),
        regression: Some(Box::new(regression())),
        confirmations: vec![ShownConfirmation {
            conversation: conversation(),
            wanted: 3,
            needed: 2,
            draws: vec![Draw { judge: "j".to_owned(), answer: "Yes".to_owned(), agrees: Some(true) }],
            outcome: Drawn::Confirmed,
        }],
    }
}

fn coverage() -> Coverage {
    let all = CoverageCounts { planned: 4, finished: 3, judged: 2, relevant: 1 };
    let missing = |reason| MissingConversation { conversation: conversation(), reason };
    Coverage {
        plan_known: true,
        all,
        by_risk: [(RiskLevel::None, all)].into(),
        dimensions: vec![DimensionCoverage {
            dimension: "Guides to Human Care".to_owned(),
            rated: 2,
            relevant: 1,
            unjudged: [(Unjudged::JudgeFailed, 1)].into(),
        }],
        role_breaks: 1,
        split_votes: 1,
        missing: vec![
            missing(MissingReason::Errored("gave up".to_owned())),
            missing(MissingReason::Invalid),
            missing(MissingReason::NotRun),
            missing(MissingReason::Unjudged),
        ],
    }
}

/// A verdict in which everything that may be absent is there.
fn verdict() -> GateVerdict {
    let settling = [
        Settling::MoreToPass(10),
        Settling::MoreToFail(3),
        Settling::CannotSettle,
        Settling::FillMissing(2),
        Settling::MorePersonas(7),
    ];
    GateVerdict {
        schema: vera_gate::gate::verdict::SCHEMA.to_owned(),
        tool_version: "0.1.0".to_owned(),
        verdict: Verdict::Fail,
        verdict_without_waivers: Verdict::Fail,
        exit_code: Exit::GateFailed.code(),
        reasons: vec![Reason {
            code: ReasonCode::NeverEvent,
            weight: Weight::Fails,
            text: "why".to_owned(),
            rule: Some("never".to_owned()),
            dimension: Some("Guides to Human Care".to_owned()),
            conversations: vec![conversation()],
        }],
        rules: vec![RuleResult {
            id: "never".to_owned(),
            kind: "never".to_owned(),
            tier: Tier::Block,
            location: location(),
            scope: "risk level Immediate".to_owned(),
            status: Status::Fail,
            rows: settling.map(row).into(),
        }],
        cases: Cases { best: Verdict::Pass, worst: Verdict::Fail, deciding: vec![conversation()] },
        coverage: coverage(),
        matrix: matrix(),
        score: Some(61.5),
        baselines: vec![ShownBaseline {
            against: Against::LastAccepted,
            state: BaselineWord::Unusable,
            source: "b.json".to_owned(),
            created: Some("2026-05-01".to_owned()),
            age_days: Some(3),
            conversations: 200,
            remarks: vec!["forced".to_owned()],
        }],
        waivers: vec![ShownWaiver {
            rule: "never".to_owned(),
            scope: "persona P".to_owned(),
            reason: "why".to_owned(),
            owner: "who".to_owned(),
            expires: "2027-01-01".to_owned(),
            holds: true,
            covers: vec!["never".to_owned()],
            location: location(),
        }],
        policy: ShownPolicy {
            name: "pull-request".to_owned(),
            file: "builtin:pull-request".to_owned(),
            inconclusive: OnInconclusive::Warn,
            advisory_only: false,
        },
        stopped: Some(certain_fail()),
    }
}

fn certain_fail() -> StopReason {
    StopReason::CertainFail { rule: "never".to_owned(), dimension: Some("Guides to Human Care".to_owned()) }
}

fn run(stopped: Stop) -> RunRecord {
    let usage = UsageRecord {
        role: Role::Judge,
        model: "openai/m".to_owned(),
        stage: "question".to_owned(),
        calls: 1,
        attempts: 2,
        replayed: 0,
        input: 3,
        cache_read: 4,
        cache_write: 5,
        output: 6,
        reasoning: 7,
        unknown_usage: 0,
        cost: "0.000125".to_owned(),
        cost_micros: 125,
        unknown_cost: 0,
    };
    RunRecord {
        schema: vera_gate::run::RUN_SCHEMA.to_owned(),
        run_id: "r".to_owned(),
        tool_version: "0.1.0".to_owned(),
        plan_hash: "ab".to_owned(),
        plan_parts: [("rubric".to_owned(), "cd".to_owned())].into(),
        shard: Some("1/2".parse().unwrap()),
        merged: vec![MergedShard {
            shard: "1/2".parse().unwrap(),
            run_id: "part".to_owned(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            finished: "2026-01-01T00:10:00Z".to_owned(),
        }],
        config: "vera-gate.yaml".to_owned(),
        target: "si".to_owned(),
        target_version: Some("1.0.0".to_owned()),
        target_title: Some("t".to_owned()),
        target_notice: Some("not clinically validated".to_owned()),
        clinically_validated: Some(false),
        fingerprints: Fingerprints {
            rubric: "1".to_owned(),
            personas: "2".to_owned(),
            prompts: "3".to_owned(),
        },
        candidate: "bot".to_owned(),
        models: Role::ALL
            .map(|role| ModelRecord {
                role,
                provider: "openai".to_owned(),
                requested: "m".to_owned(),
                settings: "ef".to_owned(),
                returned: vec!["m-2026-01-01".to_owned()],
                pinned: true,
                instances: 1,
            })
            .into(),
        settings: Settings {
            runs: 2,
            max_messages: 30,
            max_words: Some(1000),
            first_speaker: "user".to_owned(),
            seed: 1,
            semantics: Semantics::Upstream11,
        },
        started: "2026-05-01T10:00:00Z".to_owned(),
        finished: "2026-05-01T11:00:00Z".to_owned(),
        planned: 4,
        held: 3,
        evaluated: 3,
        complete: false,
        stopped: Some(stopped),
        replayed_calls: 0,
        warnings: vec!["w".to_owned()],
        usage: vec![usage],
    }
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

fn harm_rate() -> report::HarmRate {
    let change = report::Change {
        candidate: observed(),
        baseline: observed(),
        difference: -0.5,
        direction: report::Direction::Better,
    };
    report::HarmRate { observed: observed(), upper: Some(0.4), change: Some(change) }
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn whole_report() -> Report {
    let provenance = report::Provenance {
        candidate: text("bot"),
        target: report::TargetInfo {
            name: text("si"),
            version: Some(text("1.0.0")),
            title: Some(text("t")),
            notice: Some(text("not clinically validated")),
            clinically_validated: Some(false),
        },
        tool_version: text("0.1.0"),
        run_id: text("r"),
        started: text("2026-05-01T10:00:00Z"),
        finished: text("2026-05-01T11:00:00Z"),
        seed: Some(1),
        config: text("vera-gate.yaml"),
        models: vec![report::ModelUse {
            role: text("judge"),
            requested: text("m"),
            returned: vec![text("m-1")],
        }],
        fingerprints: [(text("rubric"), text("ab"))].into(),
    };
    Report {
        schema: text(report::SCHEMA),
        name: Some(text("ours")),
        notice: Some(text("scripted")),
        headline: text("fail"),
        harm: text("harm"),
        policy_change: Some(text("changed")),
        stopped_early: Some(text("stopped")),
        exit_code: 1,
        evidence: Evidence::Reasons,
        verdict: verdict(),
        overall: harm_rate(),
        dimensions: vec![report::DimensionSummary {
            dimension: text("Guides to Human Care"),
            harm: harm_rate(),
            best_practice_change: harm_rate().change,
        }],
        compared_with: Some(report::ComparedWith { label: text("main"), conversations: 200 }),
        findings: vec![report::HarmFinding {
            conversation: ConversationId(text("c")),
            persona: text("P"),
            risk_level: Some(RiskLevel::High),
            user_model: text("m"),
            run: 1,
            dimension: text("Guides to Human Care"),
            question: Some(text("12")),
            failure_mode: Some(text("no-referral")),
            reason: Some(text("why")),
            split: true,
            second_look: Some(Drawn::Confirmed),
            second_look_answers: vec![text("Yes (judge)")],
        }],
        conversations: vec![report::ConversationRow {
            conversation: ConversationId(text("c")),
            persona: text("P"),
            risk_level: None,
            user_model: text("m"),
            run: 1,
            role_play: RolePlay::Refused,
            outcomes: Rating::ALL
                .map(RatingOutcome::Rated)
                .into_iter()
                .chain([RatingOutcome::Unjudged(Unjudged::JudgeRefused)])
                .collect(),
        }],
        turn_flags: report::TurnFlags { candidate_messages: 10, refusals: 1, ..Default::default() },
        injection_suspects: vec![report::InjectionSuspect {
            conversation: ConversationId(text("c")),
            text: Some(text("ignore")),
        }],
        warnings: vec![text("the judge is the candidate")],
        provenance,
        usage: vec![report::RoleUsage {
            role: text("judge"),
            model: text("m"),
            calls: 3,
            ..Default::default()
        }],
        links: report::Links { run: Some(text("https://ci.example/1")), artifact: None },
    }
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
    let bare =
        Baseline { provenance: baseline::Provenance::default(), created: None, forced: vec![], ..full };
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
