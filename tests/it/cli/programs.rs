//! Chatbots that are local programs, through the real binary: what goes wrong between their lines and between two runs.

use serde_json::Value;

use super::{Place, json, text};

/// The surplus line comes out after the last reply, which is in the journal by then: going on must not make it good.
#[test]
fn a_conversation_that_was_spoiled_at_its_end_stays_so_when_the_run_goes_on() {
    let place = Place::new();
    place.write(
        "bot.sh",
        "while read -r line; do echo '{\"text\": \"I hear you.\"}'; done\necho '{\"text\": \"Goodbye\"}'\n",
    );
    let command = "  provider: command\n  model: bot\n  command: { argv: [sh, bot.sh] }\n";
    let sweep = "sweep: { sample: 1, max_messages: 4, restarts: 1 }\n";
    place.write(
        "vera-gate.yaml",
        &format!("user: scripted/person\ncandidate:\n{command}judge: scripted/rules\n{sweep}"),
    );
    for _ in 0..2 {
        place.exits(3, &["run", "--run", "r"]);
        let plan = json(&place.path().join("r/plan.json"));
        let status = plan["conversations"][0]["status"].to_string();
        assert!(status.contains("nobody asked for") && status.contains("Goodbye"), "{status}");
    }
}

/// Half a run of one chatbot and half of another is a verdict about neither.
#[test]
fn a_program_that_was_replaced_is_another_plan() {
    let place = Place::new();
    let bot = |text: &str| {
        let script = format!("while read -r line; do echo '{{\"text\": \"{text}\"}}'; done\n");
        place.write("bot/bot.sh", &script);
    };
    bot("I hear you.");
    let command = "  provider: command\n  model: bot\n  command: { argv: [sh, bot.sh], directory: bot }\n";
    let rest = "judge: scripted/rules\nsweep: { sample: 2, max_messages: 4, curtail: never }\n";
    let config = format!("user: scripted/person\ncandidate:\n{command}{rest}");
    place.write("vera-gate.yaml", &config);
    place.write("few.yaml", &format!("{config}budget: {{ calls: 6 }}\n"));
    // It runs into its budget and is gone on with.
    place.exits(3, &["run", "--run", "r", "--config", "few.yaml"]);
    bot("Whatever.");
    let said = place.complains(2, &["run", "--run", "r"]);
    assert!(said.contains("candidate.program: "), "{said}");
    bot("I hear you.");
    let output = place.run(&["run", "--run", "r"]);
    let run = json(&place.path().join("r/run.json"));
    assert_eq!(run["complete"], true, "{output:?}");
    let gone_on = |run: &Value| -> Vec<String> {
        let warnings = run["warnings"].as_array().unwrap().iter().filter_map(|text| text.as_str());
        warnings.filter(|text| text.contains("gone on with")).map(str::to_owned).collect()
    };
    assert!(gone_on(&run)[0].contains("steps were finished before"), "{run}");
    let report = std::fs::read_to_string(place.path().join("r/report.md")).unwrap();
    assert!(report.contains("gone on with"), "{report}");
    // Looking at a complete run again is not going on with it.
    let again = place.run(&["run", "--run", "r"]);
    assert_eq!(gone_on(&json(&place.path().join("r/run.json"))), gone_on(&run));
    let said = text(&again.stderr);
    assert!(said.contains("finished steps are in the journal") && !said.contains("unfinished"), "{said}");
}
