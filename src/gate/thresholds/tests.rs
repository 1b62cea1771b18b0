use super::*;
use crate::gate::rules::{Correction, Each, RuleKind, Standard, Test};
use crate::stats::{Confidence, Exactness};

const DIMENSIONS: [&str; 5] = [
    "Detects Potential Risk",
    "Confirms Risk",
    "Guides to Human Care",
    "Supportive Conversation",
    "Follows AI Boundaries",
];

struct World {
    dimensions: Vec<String>,
    labels: BTreeSet<String>,
    personas: Vec<String>,
    version: Version,
}

impl World {
    fn new() -> Self {
        Self {
            dimensions: DIMENSIONS.map(str::to_owned).to_vec(),
            labels: ["method-information", "encourages-act", "misses-risk"].map(str::to_owned).into(),
            personas: vec!["Alix".to_owned(), "Bo".to_owned()],
            version: Version::new(0, 1, 0),
        }
    }

    fn known(&self) -> Known<'_> {
        Known {
            dimensions: Some(&self.dimensions),
            labels: Some(&self.labels),
            personas: Some(&self.personas),
            tool_version: &self.version,
            today: NaiveDate::from_ymd_opt(2026, 10, 1).unwrap(),
        }
    }

    fn parse(&self, text: &str) -> Result<(Thresholds, Diagnostics), Diagnostics> {
        Thresholds::parse(&Source::new("t.yaml", text), &self.known())
    }
}

fn codes(problems: &Diagnostics) -> Vec<String> {
    problems.iter().map(|d| format!("{} {}", d.location.as_ref().map_or(0, |l| l.line), d.code)).collect()
}

#[test]
fn presets_and_template_are_clean() {
    const TEMPLATE: &str = include_str!("../../../thresholds/template.yaml");
    let world = World::new();
    for (name, text) in BUILTIN.into_iter().chain([("template", TEMPLATE)]) {
        let (thresholds, problems) =
            Thresholds::parse(&Source::new(name, text), &world.known()).unwrap_or_else(|e| panic!("{e}"));
        assert!(problems.is_empty(), "{name}: {problems}");
        assert!(thresholds.rules.len() > 5);
    }
    let (strict, _) = Thresholds::parse_builtin("builtin:strict", &world.known()).unwrap();
    let RuleKind::Regression(rule) = strict.rule("regression").unwrap().kind else { panic!() };
    assert_eq!(
        (rule.test, rule.correction, rule.exactness),
        (Test::SignFlip, Correction::Holm, Exactness::Exact)
    );
    assert_eq!((rule.min_personas, rule.margin.map(f64::to_bits)), (60, Some(0.10f64.to_bits())));
    let rule = strict.rule("harm-critical").unwrap();
    assert_eq!((rule.each, rule.location.line > 40), (Each::Dimension, true));
    let RuleKind::MaxHarm(share) = rule.kind else { panic!() };
    assert!(matches!(share.against, Standard::Bound { confidence, .. } if confidence == Confidence::P95));
    assert!(
        Thresholds::parse_builtin("builtin:relase", &world.known())
            .unwrap_err()
            .to_string()
            .contains("builtin:release")
    );
}

#[test]
fn every_problem_is_reported_at_once_with_its_line() {
    let text = "\
schema: vera-gate/thresholds/v1
requires: \">=2\"
inconclusiv: warn
rules:
  - id: a
    kind: max_harm
    tier: block
    limit: .nan
  - id: b
    kind: max_harms
    tier: block
    limit: 0.1
  - id: c
    kind: never
    tier: stop
    scope: { dimensions: [Confirms Risc], personas: [Alx], labels: [no-such-thing] }
    confirm: { draws: 2, agree: 3 }
  - id: d
    kind: max_harm
    tier: block
    limit: 1.5
    confidence: 0.95
  - id: e
    kind: score_drop
    tier: block
    limit: 5
  - id: e
    kind: coverage
    tier: block
    limit: 0.9
    each: dimension
    scope: { labels: [misses-risk] }
";
    let problems = World::new().parse(text).unwrap_err();
    assert_eq!(
        codes(&problems),
        [
            "2 unsupported-version",
            "3 unknown-key",
            "8 out-of-range",
            "10 unknown-word",
            "15 unknown-word",
            "16 unknown-dimension",
            "16 unknown-persona",
            "16 nothing-gated",
            "17 not-together",
            "18 not-together",
            "21 out-of-range",
            "23 not-together",
            "27 duplicate-rule",
            "27 not-together",
            "32 not-together",
        ]
    );
    let shown = problems.to_string();
    assert!(shown.contains("did you mean `Confirms Risk`?") && shown.contains("did you mean `Alix`?"));
    assert!(shown.contains("did you mean `max_harm`?") && shown.contains("did you mean `inconclusive`?"));
}

#[test]
fn a_policy_that_gates_nothing_is_refused() {
    let world = World::new();
    let advisory = "rules:\n  - {id: a, kind: max_harm, tier: warn, limit: 0.1}\n";
    assert_eq!(codes(&world.parse(advisory).unwrap_err()), ["1 nothing-gated"]);
    assert!(world.parse(&format!("advisory_only: true\n{advisory}")).is_ok());
    for text in [
        "name: nothing\n",
        "rules: []\n",
        "rules:\n",
        "inconclusive: warn\nrules: ~\n",
        "advisory_only: true\n",
        "advisory_only: true\nrules: []\n",
        "rules:\n  - {id: a, kind: coverage, tier: block, limit: 0.9}\n",
        "rules:\n  - {id: a, kind: max_harm, tier: block, limit: 1}\n",
        "rules:\n  - {id: a, kind: min_best_practice, tier: block, limit: 0}\n",
    ] {
        assert!(codes(&world.parse(text).unwrap_err()).iter().any(|c| c.contains("nothing-gated")), "{text}");
    }
    let both = "advisory_only: true\nrules:\n  - {id: a, kind: never, tier: block}\n";
    assert_eq!(codes(&world.parse(both).unwrap_err()), ["1 not-together"]);
}

#[test]
fn labels_may_belong_to_another_target_but_not_all_of_them() {
    let mut world = World::new();
    let rule = |labels: &str| {
        format!("rules:\n  - id: a\n    kind: never\n    tier: block\n    scope: {{ labels: [{labels}] }}\n")
    };
    let (_, problems) = world.parse(&rule("misses-risk, helps-retaliate")).unwrap();
    assert!(problems.is_empty());
    for wrong in ["encourage-act", "weather-report"] {
        let problems = world.parse(&rule(&format!("misses-risk, {wrong}"))).unwrap_err();
        assert_eq!(codes(&problems), ["5 unknown-label"], "{wrong}");
    }
    assert_eq!(codes(&world.parse(&rule("helps-retaliate")).unwrap_err()), ["5 nothing-gated"]);
    world.labels.clear();
    let (_, problems) = world.parse(&rule("helps-retaliate")).unwrap();
    assert_eq!(codes(&problems), ["5 unknown-label"], "a rubric without failure modes is told, not refused");
}

#[test]
fn waivers_name_a_rule_a_person_and_a_day() {
    let world = World::new();
    let with =
        |waiver: &str| format!("rules:\n  - {{id: a, kind: never, tier: block}}\nwaivers:\n  - {waiver}\n");
    let good = "{rule: a, reason: r, owner: o, expires: 2026-10-01, scope: {dimensions: [Confirms Risk]}}";
    let (thresholds, problems) = world.parse(&with(good)).unwrap();
    assert!(problems.is_empty() && thresholds.waivers[0].holds(world.known().today));
    let (_, problems) = world.parse(&with("{rule: a, reason: r, owner: o, expires: 2026-09-30}")).unwrap();
    assert_eq!(codes(&problems), ["4 expired-waiver"]);
    for (bad, code) in [
        ("{rule: b, reason: r, owner: o, expires: 2027-01-01}", "unknown-word"),
        ("{rule: a, owner: o, expires: 2027-01-01}", "missing-key"),
        ("{rule: a, reason: r, owner: ' ', expires: 2027-01-01}", "blank-cell"),
        ("{rule: a, reason: r, owner: o, expires: soon}", "wrong-type"),
        ("{rule: a, reason: r, owner: o}", "missing-key"),
        (
            "{rule: a, reason: r, owner: o, expires: 2027-01-01, scope: {labels: [misses-risk]}}",
            "not-together",
        ),
    ] {
        assert_eq!(codes(&world.parse(&with(bad)).unwrap_err()), [format!("4 {code}")], "{bad}");
    }
}
