//! `check` on one file: what it is, whether it holds, and what to do when it is something else.

use super::Place;

const RESULTS: &str = "filename,run_id,A,A_yes_question_id\n000001_P_m_run1.txt,r,Best Practice,\n";

#[test]
fn a_file_is_known_by_its_content() {
    let place = Place::new();
    place.exits(0, &["run", "--run", "r", "--sample", "5"]);
    place.exits(0, &["baseline", "bless", "r", "--to", "b.json"]);
    place.write("rules.yaml", "rules:\n  - {id: n, kind: never, tier: block}\n");
    place.write(
        "named.yml",
        "schema: vera-gate/thresholds/v1\nname: named\nrules: [{id: n, kind: never, tier: block}]\n",
    );
    place.write("bot.yaml", "user: scripted/person\ncandidate: scripted/careful\njudge: scripted/rules\n");
    place.write("results.csv", RESULTS);
    let cases = [
        ("rules.yaml", "blocks  n  never"),
        ("named.yml", "thresholds     named"),
        ("bot.yaml", "configuration  bot.yaml"),
        ("b.json", "conversations  5"),
        ("results.csv", "A: 0 of 1 relevant"),
        ("r", "5 judged of 5 planned"),
        ("builtin:pull-request", "blocks  regression"),
        ("builtin:strict", "Names of dimensions"),
        ("builtin:si", "target si"),
        ("si", "target si"),
    ];
    for (what, expected) in cases {
        let out = place.exits(0, &["check", what]);
        assert!(out.contains(expected), "{what}: {out}");
    }
}

#[test]
fn faults_of_a_single_file_come_at_once_with_their_place() {
    let place = Place::new();
    place.write(
        "rules.yaml",
        "rules:\n  - {id: n, kind: nevr, tier: block}\n  - {id: h, kind: max_harm, tier: block, limit: 2}\n  - {id: g, kind: never, tier: block, scope: {dimensions: [Guide to Human Care]}}\nwaiver: []\n",
    );
    let err = place.complains(2, &["check", "rules.yaml", "--target", "si"]);
    for part in [
        "rules.yaml:2:",
        "did you mean `never`?",
        "rules.yaml:3:",
        "rules.yaml:4:",
        "did you mean `Guides to Human Care`?",
        "rules.yaml:5:",
        "did you mean `waivers`?",
        "4 errors",
    ] {
        assert!(err.contains(part), "{part} not in\n{err}");
    }
    place.write("bot.yaml", "user: scripted/person\ncandidat: scripted/careful\njudge: scripted/rules\n");
    let err = place.complains(2, &["check", "bot.yaml"]);
    assert!(err.contains("bot.yaml:2:1") && err.contains("did you mean `candidate`?"), "{err}");
    place.write("cut.json", "{\n  \"schema\": \"vera-gate/baseline/v1\",\n  \"candidate\": \"b");
    assert!(place.complains(2, &["check", "cut.json"]).contains("cut.json:3:"));
    place.write("new.json", "{\"schema\": \"vera-gate/baseline/v2\"}");
    assert!(place.complains(2, &["check", "new.json"]).contains("reads `vera-gate/baseline/v1`"));
    place.write(
        "empty.json",
        "{\"schema\": \"vera-gate/baseline/v1\", \"candidate\": \"b\", \"created\": \"2026-05-01\", \"provenance\": {}, \"dimensions\": [\"A\"], \"conversations\": []}",
    );
    assert!(place.complains(2, &["check", "empty.json"]).contains("holds no conversation"));
    // Without a day no age limit could be applied.
    let read = std::fs::read_to_string(place.path().join("empty.json")).unwrap();
    place.write("ageless.json", &read.replace("\"2026-05-01\"", "null"));
    assert!(place.complains(2, &["check", "ageless.json"]).contains("`created`, the day it was blessed"));
    place.write("results.csv", &RESULTS.replace("Best Practice", "Best practise"));
    assert!(place.complains(2, &["check", "results.csv"]).contains("results.csv:2:"));
}

#[test]
fn what_is_nothing_of_this_gets_a_hint() {
    let place = Place::new();
    place.write("other.yaml", "version: 1\n");
    place.write("list.yaml", "- a\n");
    place.write("other.json", "{\"a\": 1}");
    place.write("verdict.json", "{\"schema\": \"vera-gate/verdict/v1\"}");
    place.write("note.txt", "hello\n");
    place.write("ratings.csv", "clinician_id,conversation_id,A\nx,c,Best Practice\n");
    let cases = [
        ("other.yaml", "schema: vera-gate/thresholds/v1"),
        ("list.yaml", "no mapping"),
        ("other.json", "no manifest"),
        ("verdict.json", "vera-gate gate FOLDER"),
        ("note.txt", "thresholds file"),
        ("ratings.csv", "vera-gate calibrate"),
        ("missing.yaml", "does not exist"),
        ("release", "did you mean `builtin:release`?"),
        ("builtin:relaese", "did you mean `builtin:release`?"),
    ];
    for (what, expected) in cases {
        let err = place.complains(2, &["check", what]);
        assert!(err.contains(expected) && err.contains("help:"), "{what}: {err}");
    }
    let err = place.complains(2, &["check", "builtin:release", "--format", "dot"]);
    assert!(err.contains("has a flow to draw"), "{err}");
}

/// A role that answers with nothing was reached and cannot play: that is no success.
#[cfg(unix)]
#[test]
fn a_live_check_fails_when_a_role_gives_no_text() {
    let place = Place::new();
    let bot = |text: &str| {
        place.write("bot.sh", &format!("while read -r line; do echo '{{\"text\": \"{text}\"}}'; done\n"));
    };
    place.write(
        "vera-gate.yaml",
        "user: scripted/person\ncandidate: { provider: command, model: bot, command: { argv: [sh, bot.sh] } }\n\
         judge: scripted/rules\n",
    );
    bot("I hear you.");
    let said = place.exits(0, &["check", "--live"]);
    assert!(said.contains("candidate: command/bot"), "{said}");
    bot("");
    let said = place.exits(4, &["check", "--live"]);
    assert!(said.contains("gave no text"), "{said}");
}
