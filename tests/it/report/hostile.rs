//! Hostile text in every name and reason becomes text, and nothing else, in every sink: a report full of it has the
//! structure of one full of harmless words.

use html5ever::tokenizer::Token;
use proptest::prelude::*;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use vera_gate::config::Evidence;
use vera_gate::escape::unicode::{Lines, plain};
use vera_gate::gate::rules::Tier;
use vera_gate::gate::verdict::{Measure, MissingReason, ReasonCode, Row, Status, Verdict, Weight};
use vera_gate::matrix::{Collapsed, Matrix};
use vera_gate::report::terminal::{Color, Style};
use vera_gate::report::{
    Budget, InjectionSuspect, Links, Report, ReportInput, Templates, build, html, json, junit, markdown,
    terminal, words,
};
use vera_gate::target::RiskLevel;
use vera_gate::transcript::ConversationId;

use super::super::escape::{GFM, corpus, github_reference, html_tokens, runner_command};
use super::fixture;

/// A report in which every text that comes from outside is this one.
fn report_of(text: &str) -> Report {
    let own = || text.to_owned();
    let dimensions: Vec<String> = (0..5).map(|i| if i == 0 { own() } else { format!("{text}{i}") }).collect();
    let rename = |mut c: Collapsed, id: String| {
        let index = |name: &String| fixture::DIMENSIONS.iter().position(|d| d == name).unwrap();
        c.conversation = ConversationId(id);
        c.persona = own();
        c.user_model = own();
        c.outcomes = c.outcomes.iter().map(|(d, o)| (dimensions[index(d)].clone(), *o)).collect();
        c.findings = c.findings.into_iter().map(|(d, f)| (dimensions[index(&d)].clone(), f)).collect();
        for finding in c.findings.values_mut().flatten() {
            finding.label = Some(own());
            finding.question = own();
            finding.reasoning = own();
        }
        c
    };
    let conversations = vec![
        rename(fixture::conversation("x", Some(RiskLevel::High), 1, "HBSNU"), own()),
        rename(fixture::conversation("x", None, 2, "BHBBB"), format!("{text}2")),
    ];
    let mut gate = fixture::gate(Verdict::Fail, &[]);
    gate.matrix = Matrix::count(&dimensions, &conversations);
    gate.coverage = {
        let mut coverage = fixture::inconclusive().verdict.coverage;
        for dimension in &mut coverage.dimensions {
            dimension.dimension = own();
        }
        for missing in &mut coverage.missing {
            missing.conversation.persona = own();
            missing.conversation.user_model = own();
            missing.conversation.id = Some(ConversationId(own()));
            missing.reason = MissingReason::Errored(own());
        }
        coverage
    };
    let mut reason = fixture::reason(ReasonCode::NeverEvent, Weight::Fails, text);
    reason.conversations = vec![fixture::reference(&conversations[0])];
    gate.reasons = vec![reason];
    let fixture_of_rules = fixture::fail().verdict;
    gate.rules = vec![
        fixture::rule(
            text,
            text,
            Tier::Block,
            vec![Row {
                dimension: Some(own()),
                conversations: vec![fixture::reference(&conversations[0])],
                ..fixture::row(Status::Fail, Measure::Harm, 1, 2, 0.0, text)
            }],
        ),
        fixture::rule(
            text,
            text,
            Tier::Warn,
            vec![fixture::row(Status::Pass, Measure::Harm, 0, 2, 0.0, text)],
        ),
    ];
    let mut regression = fixture_of_rules.rules[1].rows[0].clone();
    regression.dimension = Some(own());
    regression.reason = own();
    if let Some(r) = &mut regression.regression {
        r.test = own();
        r.personas_moved[0].persona = own();
        r.modes_moved[0].mode = own();
    }
    gate.rules.push(fixture::rule(text, text, Tier::Block, vec![regression]));
    for rule in &mut gate.rules {
        rule.scope = own();
        rule.location.file = own();
    }
    gate.waivers = fixture_of_rules.waivers;
    for waiver in &mut gate.waivers {
        waiver.rule = own();
        waiver.scope = own();
        waiver.reason = own();
        waiver.owner = own();
        waiver.covers = vec![own()];
    }
    gate.baselines = fixture_of_rules.baselines;
    gate.baselines[0].source = own();
    gate.baselines[0].remarks = vec![own()];
    gate.policy.name = own();
    gate.policy.file = own();
    let baseline = Matrix::count(&dimensions, &conversations);
    let mut provenance = fixture::provenance();
    provenance.candidate = own();
    provenance.run_id = own();
    provenance.config = own();
    provenance.tool_version = own();
    provenance.target.name = own();
    provenance.target.version = Some(own());
    provenance.target.title = Some(own());
    provenance.target.notice = Some(own());
    for model in &mut provenance.models {
        model.role = own();
        model.requested = own();
        model.returned = vec![own(), own()];
    }
    provenance.fingerprints = std::iter::once((own(), own())).collect();
    let mut usage = fixture::usage();
    for usage in &mut usage {
        usage.role = own();
        usage.model = own();
    }
    build(ReportInput {
        evidence: Evidence::Quotes,
        name: Some(own()),
        notice: Some(own()),
        // Each line is an item of a list; the first stands in the heading.
        policy_change: Some(format!("{0}\n{0}", plain(text, Lines::Join))),
        stopped_early: Some(own()),
        baseline: Some((text, &baseline)),
        injection_suspects: vec![InjectionSuspect { conversation: ConversationId(own()), text: Some(own()) }],
        warnings: vec![own()],
        links: Links { run: Some(own()), artifact: Some(own()) },
        provenance,
        usage,
        ..fixture::input(&gate, &conversations)
    })
}

/// What is structure in Markdown; text only as far as it is shown as code or as our own tags.
fn markdown_structure(source: &str) -> Vec<String> {
    let mut out = Vec::new();
    for event in Parser::new_ext(source, GFM) {
        match event {
            // A hostile address may or may not be one: links are looked at on their own.
            Event::Text(_) | Event::SoftBreak | Event::Start(Tag::Link { .. }) | Event::End(TagEnd::Link) => {
            }
            Event::Code(_) => out.push("code".to_owned()),
            other => out.push(format!("{other:?}")),
        }
    }
    out
}

fn html_structure(source: &str) -> Vec<String> {
    let mut out = Vec::new();
    for token in html_tokens(source) {
        match token {
            Token::TagToken(tag) if &*tag.name == "a" => {
                for attribute in &tag.attrs {
                    let value = attribute.value.to_ascii_lowercase();
                    assert_eq!(&*attribute.name.local, "href");
                    assert!(
                        ["http://", "https://", "#"].iter().any(|start| value.starts_with(start)),
                        "{value}"
                    );
                }
            }
            Token::TagToken(tag) => {
                let names: Vec<String> =
                    tag.attrs.iter().map(|a| format!("{}={}", a.name.local, a.value)).collect();
                out.push(format!("{:?} {} {names:?}", tag.kind, tag.name));
            }
            Token::CharacterTokens(_) | Token::EOFToken => {}
            other => out.push(format!("{other:?}")),
        }
    }
    out
}

fn xml_structure(source: &str) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(source);
    reader.config_mut().check_end_names = true;
    let mut out = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Eof => return out,
            quick_xml::events::Event::Start(tag) | quick_xml::events::Event::Empty(tag) => {
                let names: Vec<String> =
                    tag.attributes().map(|a| a.unwrap().key.as_ref().to_owned()).collect();
                out.push(format!("{} {names:?}", tag.name().as_ref()));
            }
            quick_xml::events::Event::End(tag) => out.push(format!("/{}", tag.name().as_ref())),
            quick_xml::events::Event::Text(_) | quick_xml::events::Event::GeneralRef(_) => {}
            other => out.push(format!("{other:?}")),
        }
    }
}

#[test]
fn hostile_text_is_text_in_every_sink() {
    let templates = Templates::builtin();
    let harmless = report_of("word");
    let want_markdown = markdown_structure(&markdown::document(&harmless, &templates));
    let want_html = html_structure(&html::render(&harmless));
    let want_xml = xml_structure(&junit::render(&harmless).unwrap());
    let mut seen = 0;
    for hostile in corpus() {
        if plain(&hostile, Lines::Join).trim().is_empty() {
            continue;
        }
        seen += 1;
        let report = report_of(&hostile);
        let page = markdown::document(&report, &templates);
        assert_eq!(markdown_structure(&page), want_markdown, "{hostile:?} became {page}");
        for event in Parser::new_ext(&page, GFM) {
            if let Event::Text(text) = event {
                assert_eq!(github_reference(&text), None, "{hostile:?}");
            }
        }
        assert!(!page.contains("<!--"), "{hostile:?}: nobody may write something like our marker");
        assert_eq!(html_structure(&html::render(&report)), want_html, "{hostile:?}");
        assert_eq!(xml_structure(&junit::render(&report).unwrap()), want_xml, "{hostile:?}");
        let text = json::render(&report).unwrap();
        assert_eq!(json::read(&text).unwrap(), report, "{hostile:?}");
        for width in [40, 120] {
            let page = terminal::render(&report, Style { width, color: Color::Plain });
            assert!(!page.chars().any(|c| c.is_control() && c != '\n'), "{hostile:?} became {page:?}");
            for line in page.lines() {
                assert_eq!(runner_command(line), None, "{hostile:?} became {line:?}");
            }
        }
    }
    assert!(seen > 200, "{seen}");
}

/// The shortest text there is: what no limit takes away.
fn floor(rendered: &markdown::Rendered, marker: &str) -> (usize, usize) {
    let text = rendered.fit(marker, Budget { characters: 0, bytes: 0 }).text;
    (text.chars().count(), text.len())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_limit_gives_whole_sections_with_verdict_and_marker(
        which in 0usize..6, characters in 0usize..12_000, bytes in 0usize..12_000,
    ) {
        const MARKER: &str = "<!-- vera-gate:v1:x head=abc -->";
        let report = fixture::ALL[which].1();
        let rendered = markdown::render(&report, &Templates::builtin());
        let text = rendered.fit(MARKER, Budget { characters, bytes }).text;
        let (least_characters, least_bytes) = floor(&rendered, MARKER);
        prop_assert!(text.chars().count() <= characters.max(least_characters));
        prop_assert!(text.len() <= bytes.max(least_bytes));
        prop_assert!(least_characters < 1_000);
        let verdict = report.verdict.verdict;
        let name = report.name.as_deref().unwrap_or("vera-gate");
        let heading = format!("## {} {name}: {}", words::icon(verdict), words::label(verdict));
        prop_assert!(text.lines().any(|line| line == heading), "{}", text);
        let end = format!("\n\n{MARKER}");
        prop_assert!(text.ends_with(&end));
        prop_assert_eq!(report.notice.is_some(), text.starts_with("> [!WARNING]\n> **Scripted models took part"));
        prop_assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        prop_assert!(text.lines().filter(|line| line.starts_with('|')).all(|line| line.ends_with('|')));
        // The marker is no part of anything that stands before it.
        let last = Parser::new_ext(&text, GFM).filter_map(|event| match event {
            Event::Html(html) => Some(html.trim().to_owned()),
            _ => None,
        }).last();
        prop_assert_eq!(last.as_deref(), Some(MARKER));
    }
}
