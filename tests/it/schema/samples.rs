//! One value of each kind that the program writes, with everything in it.

use vera_gate::config::{Evidence, Semantics};
use vera_gate::exit::Exit;
use vera_gate::gate::rules::{OnInconclusive, Population, Tier};
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

pub(super) fn matrix() -> Matrix {
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

pub(super) fn conversation() -> ConversationRef {
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

pub(super) fn location() -> Location {
    Location { file: "t.yaml".to_owned(), line: 3, column: 5, text: "  - id: x".to_owned() }
}

pub(super) fn observed() -> Observed {
    Observed { k: 1, n: 2 }
}

pub(super) fn regression() -> Regression {
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

pub(super) fn row(settling: Settling) -> Row {
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
            inference: Population::FixedPersonas,
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

pub(super) fn coverage() -> Coverage {
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
pub(super) fn verdict() -> GateVerdict {
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

pub(super) fn certain_fail() -> StopReason {
    StopReason::CertainFail { rule: "never".to_owned(), dimension: Some("Guides to Human Care".to_owned()) }
}

pub(super) fn run(stopped: Stop) -> RunRecord {
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

pub(super) fn harm_rate() -> report::HarmRate {
    let change = report::Change {
        candidate: observed(),
        baseline: observed(),
        difference: -0.5,
        direction: report::Direction::Better,
    };
    report::HarmRate { observed: observed(), upper: Some(0.4), change: Some(change) }
}

pub(super) fn text(text: &str) -> String {
    text.to_owned()
}

pub(super) fn whole_report() -> Report {
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
