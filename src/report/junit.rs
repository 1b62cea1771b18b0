//! `junit.xml`: one test case per conversation in a suite per dimension, and a suite for the gate itself.
//!
//! Viewers of CI systems group by suite and list what failed by name, so the dimension is the suite and the
//! conversation the case. Harm is a failure, a missing rating an error, Not Relevant skipped. The suite `gate` holds
//! the verdict and the rules: without it a run in which nothing was held would be a file without a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use quick_xml::Writer;
use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use quick_xml::name::QName;

use super::view::{about, missing_name, subject, why};
use super::{ConversationRow, HarmFinding, Report, words};
use crate::escape::xml;
use crate::gate::verdict::{Status, Verdict};
use crate::rating::{Rating, RatingOutcome};

/// What became of a case.
enum Outcome {
    Passed,
    Failure(Detail),
    Error(Detail),
    Skipped(String),
}

struct Detail {
    kind: &'static str,
    message: String,
    body: String,
}

struct Case {
    name: String,
    outcome: Outcome,
    output: String,
}

struct Suite {
    name: String,
    properties: Vec<(&'static str, String)>,
    cases: Vec<Case>,
}

#[derive(Clone, Copy, Default)]
struct Tally {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

impl Tally {
    fn of(cases: &[Case]) -> Self {
        let mut tally = Self { tests: cases.len(), ..Self::default() };
        for case in cases {
            match case.outcome {
                Outcome::Passed => {}
                Outcome::Failure(_) => tally.failures += 1,
                Outcome::Error(_) => tally.errors += 1,
                Outcome::Skipped(_) => tally.skipped += 1,
            }
        }
        tally
    }

    fn plus(self, other: Self) -> Self {
        Self {
            tests: self.tests + other.tests,
            failures: self.failures + other.failures,
            errors: self.errors + other.errors,
            skipped: self.skipped + other.skipped,
        }
    }
}

/// Renders the file, ended by a line break.
///
/// # Errors
/// None in practice: it is written to memory.
pub fn render(report: &Report) -> io::Result<String> {
    let mut suites = vec![gate_suite(report)];
    suites.extend(dimension_suites(report));
    suites.extend(missing_suite(report));
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let total = suites.iter().fold(Tally::default(), |sum, suite| sum.plus(Tally::of(&suite.cases)));
    let name = report.name.as_deref().unwrap_or("vera-gate");
    let name = match &report.notice {
        Some(notice) => format!("{notice} {name}"),
        None => name.to_owned(),
    };
    writer.write_event(Event::Start(tallied("testsuites", &name, total)))?;
    for suite in &suites {
        write_suite(&mut writer, suite)?;
    }
    writer.write_event(Event::End(BytesEnd::new("testsuites")))?;
    let mut text = String::from_utf8(writer.into_inner()).map_err(io::Error::other)?;
    text.push('\n');
    Ok(text)
}

fn gate_suite(report: &Report) -> Suite {
    let gate = &report.verdict;
    let detail = |kind| Detail { kind, message: report.headline.clone(), body: report.harm.clone() };
    let outcome = match gate.verdict {
        Verdict::Fail => Outcome::Failure(detail("fail")),
        Verdict::Inconclusive => Outcome::Error(detail("inconclusive")),
        Verdict::Pass | Verdict::Warn => Outcome::Passed,
    };
    let verdict = format!("{}: {} {}", words::label(gate.verdict), report.headline, report.harm);
    let mut cases = vec![Case { name: "verdict".to_owned(), outcome, output: verdict }];
    for (rule, row) in gate.rules.iter().flat_map(|rule| rule.rows.iter().map(move |row| (rule, row))) {
        let detail = |kind| Detail { kind, message: row.reason.clone(), body: rule.location.to_string() };
        let (outcome, output) = match row.status {
            Status::Pass => (Outcome::Passed, String::new()),
            Status::Warn => (Outcome::Passed, format!("Warning: {}", row.reason)),
            Status::Fail => (Outcome::Failure(detail("fail")), String::new()),
            Status::Inconclusive => (Outcome::Error(detail("inconclusive")), String::new()),
            Status::NoBaseline | Status::Waived => {
                (Outcome::Skipped(format!("{}: {}", row.status.word(), row.reason)), String::new())
            }
        };
        cases.push(Case { name: format!("{}: {}", rule.id, about(rule, row)), outcome, output });
    }
    let mut properties = Vec::new();
    properties.extend(report.notice.clone().map(|notice| ("notice", notice)));
    properties.push(("verdict", gate.verdict.word().to_owned()));
    properties.push(("exit_code", report.exit().code().to_string()));
    properties.push(("run", subject(report)));
    Suite { name: "gate".to_owned(), properties, cases }
}

fn dimension_suites(report: &Report) -> Vec<Suite> {
    let mut findings: BTreeMap<(&str, &str), Vec<&HarmFinding>> = BTreeMap::new();
    for finding in &report.findings {
        findings.entry((&finding.conversation.0, &finding.dimension)).or_default().push(finding);
    }
    let suite = |(index, name): (usize, &String)| {
        let cases = report.conversations.iter().map(|row| Case {
            name: case_name(row),
            outcome: match row.outcomes.get(index) {
                Some(RatingOutcome::Rated(rating)) => {
                    rated(*rating, row, findings.get(&(row.conversation.0.as_str(), name.as_str())))
                }
                Some(RatingOutcome::Unjudged(reason)) => Outcome::Error(Detail {
                    kind: "no rating",
                    message: reason.word().to_owned(),
                    body: row.conversation.0.clone(),
                }),
                None => Outcome::Error(Detail {
                    kind: "no rating",
                    message: "no outcome".to_owned(),
                    body: row.conversation.0.clone(),
                }),
            },
            output: String::new(),
        });
        Suite { name: name.clone(), properties: Vec::new(), cases: cases.collect() }
    };
    report.dimensions.iter().map(|dimension| &dimension.dimension).enumerate().map(suite).collect()
}

fn case_name(row: &ConversationRow) -> String {
    format!(
        "{} (risk: {}, {}, run {}) {}",
        row.persona,
        words::risk(row.risk_level),
        row.user_model,
        row.run,
        row.conversation
    )
}

fn rated(rating: Rating, row: &ConversationRow, findings: Option<&Vec<&HarmFinding>>) -> Outcome {
    match rating {
        Rating::BestPractice | Rating::Suboptimal => Outcome::Passed,
        Rating::NotRelevant => Outcome::Skipped(words::short(rating).to_owned()),
        Rating::HighPotentialForHarm => {
            let findings = findings.map_or(&[][..], Vec::as_slice);
            let modes: Vec<&str> = findings
                .iter()
                .filter_map(|finding| finding.failure_mode.as_deref().or(finding.question.as_deref()))
                .collect();
            let mut lines = vec![row.conversation.0.clone()];
            lines.extend(findings.iter().map(|finding| {
                let mode = finding.failure_mode.as_deref().unwrap_or("no failure mode");
                let question = finding.question.as_deref().unwrap_or("not known");
                match &finding.reason {
                    Some(reason) => format!("{mode} (question {question}): {reason}"),
                    None => format!("{mode} (question {question})"),
                }
            }));
            let body = lines.join("\n");
            let message = if modes.is_empty() { words::short(rating).to_owned() } else { modes.join(", ") };
            Outcome::Failure(Detail { kind: rating.as_str(), message, body })
        }
    }
}

/// Planned conversations that no suite has a case of.
fn missing_suite(report: &Report) -> Option<Suite> {
    let held: BTreeSet<_> = report.conversations.iter().map(|row| &row.conversation).collect();
    let missing = report.verdict.coverage.missing.iter();
    let cases: Vec<Case> = missing
        .filter(|missing| missing.conversation.id.as_ref().is_none_or(|id| !held.contains(id)))
        .map(|missing| Case {
            name: missing_name(missing),
            outcome: Outcome::Error(Detail {
                kind: "no conversation",
                message: why(&missing.reason),
                body: String::new(),
            }),
            output: String::new(),
        })
        .collect();
    let name = "planned conversations without evidence".to_owned();
    (!cases.is_empty()).then_some(Suite { name, properties: Vec::new(), cases })
}

// ---- Writing ----

type Xml = Writer<Vec<u8>>;

fn tag(name: &'static str, attributes: &[(&str, &str)]) -> BytesStart<'static> {
    let mut start = BytesStart::new(name);
    for (key, value) in attributes {
        // Built by hand the value is taken as it is: escaped by the one layer for XML.
        let value = xml::text(value).into_string().into();
        start.push_attribute(Attribute { key: QName(key), value });
    }
    start
}

fn tallied(name: &'static str, title: &str, tally: Tally) -> BytesStart<'static> {
    let [tests, failures, errors, skipped] =
        [tally.tests, tally.failures, tally.errors, tally.skipped].map(|n| n.to_string());
    tag(
        name,
        &[
            ("name", title),
            ("tests", &tests),
            ("failures", &failures),
            ("errors", &errors),
            ("skipped", &skipped),
        ],
    )
}

fn element(writer: &mut Xml, start: BytesStart<'static>, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return writer.write_event(Event::Empty(start));
    }
    let end = start.to_end().into_owned();
    writer.write_event(Event::Start(start))?;
    writer.write_event(Event::Text(BytesText::from_escaped(xml::text(text).as_str())))?;
    writer.write_event(Event::End(end))
}

fn write_suite(writer: &mut Xml, suite: &Suite) -> io::Result<()> {
    writer.write_event(Event::Start(tallied("testsuite", &suite.name, Tally::of(&suite.cases))))?;
    if !suite.properties.is_empty() {
        writer.write_event(Event::Start(tag("properties", &[])))?;
        for (name, value) in &suite.properties {
            element(writer, tag("property", &[("name", name), ("value", value)]), "")?;
        }
        writer.write_event(Event::End(BytesEnd::new("properties")))?;
    }
    for case in &suite.cases {
        let class = format!("vera-gate.{}", suite.name);
        let start = tag("testcase", &[("name", &case.name), ("classname", &class)]);
        if matches!(case.outcome, Outcome::Passed) && case.output.is_empty() {
            writer.write_event(Event::Empty(start))?;
            continue;
        }
        writer.write_event(Event::Start(start))?;
        match &case.outcome {
            Outcome::Passed => {}
            Outcome::Failure(Detail { kind, message, body }) => {
                element(writer, tag("failure", &[("message", message), ("type", kind)]), body)?;
            }
            Outcome::Error(Detail { kind, message, body }) => {
                element(writer, tag("error", &[("message", message), ("type", kind)]), body)?;
            }
            Outcome::Skipped(message) => element(writer, tag("skipped", &[("message", message)]), "")?,
        }
        if !case.output.is_empty() {
            element(writer, tag("system-out", &[]), &case.output)?;
        }
        writer.write_event(Event::End(BytesEnd::new("testcase")))?;
    }
    writer.write_event(Event::End(BytesEnd::new("testsuite")))
}
