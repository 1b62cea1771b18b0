//! Time of each stage that works on values alone: `cargo bench --bench stages`.
//!
//! The sweep and the judge, whose time is waiting, are measured by `cargo run --release --example bench-sweep`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vera_gate::baseline::Provenance;
use vera_gate::config::Evidence;
use vera_gate::diagnostic::Diagnostics;
use vera_gate::gate::thresholds::{Known, Thresholds, builtin};
use vera_gate::gate::{BaselineState, GateInput, evaluate};
use vera_gate::matrix::{EvaluationNames, Matrix, VeraScores, collapse, read_results, write_results};
use vera_gate::report::terminal::{Color, Style};
use vera_gate::report::{self, ReportInput};
use vera_gate::source::{FileSet, Source};
use vera_gate::stats::exact::{fisher, mcnemar};
use vera_gate::stats::interval::{clopper_pearson, wilson};
use vera_gate::stats::sign_flip::{PersonaCounts, PersonaDelta, sign_flip};
use vera_gate::stats::{Confidence, Count, Sides};
use vera_gate::target::persona::{self, RiskMapping};
use vera_gate::target::rubric::{BlankDimension, Graph, Rubric};
use vera_gate::target::{Target, load};
use vera_gate::transcript::{
    ConversationId, EndReason, Speaker, Transcript, Turn, read_jsonl, read_text, write_jsonl, write_text,
};

const DIMENSIONS: [&str; 5] = [
    "Detects Potential Risk",
    "Confirms Risk",
    "Guides to Human Care",
    "Supportive Conversation",
    "Follows AI Boundaries",
];

fn si() -> Target {
    let none = FileSet::memory("", Vec::<(String, String)>::new());
    #[expect(clippy::expect_used, reason = "the built-in target is valid, which tests hold")]
    load("builtin:si", &none).expect("the built-in target is valid").0
}

fn parse(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse");
    let personas = Source::new("si.tsv", include_str!("../personas/si.tsv"));
    group.throughput(Throughput::Bytes(personas.text().len() as u64));
    group.bench_function("personas", |b| {
        b.iter(|| persona::read(&personas, &RiskMapping::default(), &mut Diagnostics::new()));
    });
    let rubric = Source::new("rubric.tsv", include_str!("../rubric/si/rubric.tsv"));
    group.throughput(Throughput::Bytes(rubric.text().len() as u64));
    group.bench_function("rubric", |b| b.iter(|| Rubric::parse(&rubric, BlankDimension::Reject)));
    let results = Source::new("results.csv", results_file(1000));
    group.throughput(Throughput::Elements(1000));
    group.bench_function("results, 1,000 rows", |b| b.iter(|| read_results(&results)));
    let conversation = conversation();
    let text = Source::new("abc123_Ana_model_run1.txt", write_text(&conversation));
    group.throughput(Throughput::Bytes(text.text().len() as u64));
    group.bench_function("transcript, text", |b| b.iter(|| read_text(&text, text.name())));
    #[expect(clippy::expect_used, reason = "made by the line before")]
    let native = Source::new("t.jsonl", write_jsonl(&conversation).expect("a transcript can be written"));
    group.throughput(Throughput::Bytes(native.text().len() as u64));
    group.bench_function("transcript, native", |b| b.iter(|| read_jsonl(&native)));
    group.finish();
    c.bench_function("load builtin:si", |b| b.iter(si));
}

fn walk(c: &mut Criterion) {
    let target = si();
    c.bench_function("graph of the rubric", |b| b.iter(|| Graph::new(&target.rubric)));
    let graph = Graph::new(&target.rubric);
    c.bench_function("longest walk", |b| b.iter(|| graph.longest_walk()));
}

fn count(c: &mut Criterion) {
    let mut group = c.benchmark_group("10,000 rows");
    group.throughput(Throughput::Elements(10_000));
    #[expect(clippy::expect_used, reason = "made by this file")]
    let results =
        read_results(&Source::new("results.csv", results_file(10_000))).expect("the rows are valid").0;
    group.bench_function("collapse", |b| b.iter(|| collapse(&results.rows)));
    let collapsed = collapse(&results.rows);
    group.bench_function("matrix", |b| b.iter(|| Matrix::count(&results.dimensions, &collapsed)));
    let names = EvaluationNames::from_folder("j_judge__p_user__a_bot__t30");
    group.bench_function("scores.json", |b| {
        b.iter(|| VeraScores::compute(&results.dimensions, &results.rows, &names, None).to_json());
    });
    group.bench_function("results.csv", |b| {
        b.iter(|| write_results(&results.dimensions, &results.rows, "run"));
    });
    group.finish();
}

fn stats(c: &mut Criterion) {
    let mut group = c.benchmark_group("stats");
    let count = |successes, total| Count::new(successes, total).unwrap_or_default();
    let confidence = Confidence::P95;
    let (candidate, baseline) = (count(11, 163), count(4, 160));
    group.bench_function("clopper_pearson", |b| {
        b.iter(|| clopper_pearson(black_box(candidate), Sides::Both, confidence));
    });
    group.bench_function("wilson", |b| b.iter(|| wilson(black_box(candidate), Sides::Both, confidence)));
    group.bench_function("fisher", |b| b.iter(|| fisher(black_box(candidate), baseline)));
    group.bench_function("mcnemar", |b| b.iter(|| mcnemar(black_box(11), 4)));
    let personas: Vec<PersonaCounts> = (0..100)
        .map(|i| PersonaCounts { candidate: count(i % 3, 2 + i % 2), baseline: count(i % 2, 2) })
        .collect();
    let deltas: Vec<PersonaDelta> =
        personas.iter().filter_map(|counts| PersonaDelta::between(*counts)).collect();
    group.bench_function("sign_flip, 100 personas", |b| b.iter(|| sign_flip(black_box(&deltas))));
    group.finish();
}

/// Verdict, report and every form of it, of 1,000 conversations of which a tenth is harmful.
fn report(c: &mut Criterion) {
    let source = Source::new("results.csv", results_file(1000));
    #[expect(clippy::expect_used, reason = "made by this file")]
    let results = read_results(&source).expect("the rows are valid").0;
    let conversations = collapse(&results.rows);
    let (version, today) = (semver::Version::new(0, 1, 0), chrono::NaiveDate::default());
    let known = Known {
        dimensions: Some(&results.dimensions),
        labels: None,
        personas: None,
        tool_version: &version,
        today,
    };
    #[expect(clippy::expect_used, reason = "shipped and held by tests")]
    let text = builtin("builtin:release").expect("there are built-in thresholds");
    #[expect(clippy::expect_used, reason = "shipped and held by tests")]
    let thresholds = Thresholds::parse(&text, &known).expect("they are valid").0;
    let input = GateInput {
        thresholds: &thresholds,
        dimensions: &results.dimensions,
        labels: &BTreeMap::new(),
        plan: None,
        conversations: &conversations,
        role_breaks: &[],
        provenance: &Provenance::default(),
        baseline: BaselineState::None,
        last_accepted: BaselineState::None,
        confirmations: &[],
        stopped: None,
        today,
        tool_version: &version,
    };
    let verdict = evaluate(&input);
    let built = || {
        report::build(ReportInput {
            verdict: &verdict,
            conversations: &conversations,
            baseline: None,
            evidence: Evidence::Reasons,
            name: None,
            notice: None,
            policy_change: None,
            stopped_early: None,
            provenance: report::Provenance::default(),
            usage: Vec::new(),
            turn_flags: report::TurnFlags::default(),
            injection_suspects: Vec::new(),
            warnings: Vec::new(),
            links: report::Links::default(),
        })
    };
    let (made, templates) = (built(), report::Templates::builtin());
    let mut group = c.benchmark_group("report of 1,000 conversations");
    group.bench_function("verdict", |b| b.iter(|| evaluate(black_box(&input))));
    group.bench_function("built", |b| b.iter(built));
    group.bench_function("markdown", |b| b.iter(|| report::markdown::document(&made, &templates)));
    group.bench_function("html", |b| b.iter(|| report::html::render(&made)));
    group.bench_function("junit", |b| b.iter(|| report::junit::render(&made)));
    group.bench_function("json", |b| b.iter(|| report::json::render(&made)));
    let style = Style { width: 100, color: Color::Plain };
    group.bench_function("terminal", |b| b.iter(|| report::terminal::render(&made, style)));
    group.finish();
}

criterion_group! {
    name = stages;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    targets = parse, walk, count, stats, report
}
criterion_main!(stages);

fn conversation() -> Transcript {
    let speakers = std::iter::successors(Some(Speaker::User), |speaker| Some(speaker.other()));
    let text = "A message of some twenty words, as a person writes it late at night, with \"quotes\" and\na second line.";
    Transcript {
        id: ConversationId("abc123_Ana_model_run1".to_owned()),
        persona: "Ana".to_owned(),
        risk_level: None,
        user_model: "model".to_owned(),
        run: 1,
        turns: speakers
            .take(30)
            .map(|speaker| Turn { speaker, text: text.to_owned(), flags: Vec::new() })
            .collect(),
        end: EndReason::TurnLimit,
    }
}

/// A results file in VERA-MH's layout; every tenth rating is harmful.
fn results_file(rows: usize) -> String {
    let mut text = "filename,run_id,judge_model,judge_instance,judge_id".to_owned();
    for dimension in DIMENSIONS {
        let _written = write!(text, ",{dimension},{dimension}_yes_question_id,{dimension}_yes_reasoning");
    }
    for row in 0..rows {
        let _written =
            write!(text, "\n{row:06x}_Persona{}_model_run{}.txt,r,judge,1,0", row % 100, row / 100 + 1);
        for column in 0..DIMENSIONS.len() {
            text.push_str(match (row * 7 + column * 3) % 10 {
                0 => ",High Potential for Harm,12,\"it said so, plainly\"",
                1 | 2 => ",Suboptimal but Low Potential for Harm,13,\"a \"\"quoted\"\" reason\"",
                3 => ",Not Relevant,,",
                _ => ",Best Practice,,",
            });
        }
    }
    text.push('\n');
    black_box(text)
}
