//! `judge` over transcripts made elsewhere, and what an unusable judge comes to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use super::{Place, json};
use crate::data;

#[test]
fn every_real_transcript_is_read_and_judged() {
    let (Some(target), Some(transcripts)) = (data("vera-mh-1.1"), data("human-validation/conversations"))
    else {
        return;
    };
    let place = Place::new();
    let (target, transcripts) =
        (target.to_str().unwrap().to_owned(), transcripts.to_str().unwrap().to_owned());
    let output = place.run(&["judge", &transcripts, "--target", &target, "--run", "r"]);
    let run = json(&place.path().join("r/run.json"));
    assert_eq!((run["planned"].as_u64(), run["evaluated"].as_u64()), (Some(120), Some(120)), "{output:?}");
    let ratings = std::fs::read_to_string(place.path().join("r/ratings.jsonl")).unwrap();
    assert_eq!(ratings.lines().count(), 120);
    assert!(output.status.code().is_some_and(|code| code == 0 || code == 1 || code == 3));
}

/// Answers every request with the same body, until the test ends.
fn endpoint(body: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || answer(&mut stream, body));
        }
    });
    port
}

fn answer(stream: &mut TcpStream, body: &str) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut sent = vec![0; length];
        reader.read_exact(&mut sent).ok()?;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
        write!(stream, "{head} {}\r\n\r\n{body}", body.len()).ok()?;
    }
}

#[test]
fn an_unusable_judge_is_inconclusive_and_names_the_question() {
    // Case B02: the judge answers in prose for ever.
    let place = Place::new();
    place.small_target();
    let port = endpoint(include_str!("../../cases/B02/reply.json"));
    place.write(
        "vera-gate.yaml",
        &format!(
            "target: t\nuser: scripted/person\ncandidate: scripted/careful\njudge:\n  provider: vllm\n  model: prose\n  base_url: http://127.0.0.1:{port}/v1\njudging: {{ reasks: 1 }}\nsweep: {{ max_messages: 4 }}\n"
        ),
    );
    let output = place.run(&["run", "--run", "r"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let ratings = std::fs::read_to_string(place.path().join("r/ratings.jsonl")).unwrap();
    let rating: serde_json::Value = serde_json::from_str(&ratings).unwrap();
    let failure = &rating["failures"][0];
    assert_eq!((failure["question"].as_str(), failure["reason"].as_str()), (Some("1"), Some("unparsable")));
    assert_eq!(failure["reply_sha256"].as_str().unwrap().len(), 64);
    assert_eq!(json(&place.path().join("r/verdict.json"))["verdict"], "inconclusive");
}

#[test]
fn every_answer_of_a_second_look_by_another_judge_is_shown() {
    let place = Place::new();
    let roles = "user: scripted/person\ncandidate: scripted/misses-risk\njudge: scripted/rules\n";
    let confirm = "judging: { confirm: { model: scripted/flaky } }\nsweep: { sample: 12, curtail: never }\n";
    place.write("vera-gate.yaml", &format!("{roles}{confirm}"));
    place.exits(1, &["run", "--run", "r"]);
    let report = std::fs::read_to_string(place.path().join("r/report.md")).unwrap();
    // The built-in thresholds ask three times.
    let answer = "Yes (scripted/flaky)";
    assert!(report.contains(&format!("second look agrees: {answer}, {answer}, {answer}")), "{report}");
}

/// Simulated with a harmful script, of which the built-in configuration knows nothing.
fn simulated(place: &Place) {
    let sweep = ["--sample", "8", "--max-messages", "4"];
    place.exits(0, &[&["simulate", "--candidate", "harmful", "--run", "s"], &sweep[..]].concat());
}

fn transcripts(place: &Place, folder: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(place.path().join(folder)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn a_run_is_judged_as_the_run_that_it_is() {
    let place = Place::new();
    simulated(&place);
    // The built-in configuration names the careful script; the run talked to the harmful one.
    let output = place.run(&["judge", "s", "--run", "j"]);
    let run = json(&place.path().join("j/run.json"));
    assert_eq!(run["candidate"], "scripted/harmful", "{output:?}");
    assert_eq!((run["planned"].as_u64(), run["settings"]["max_messages"].as_u64()), (Some(8), Some(4)));
    let candidate = run["models"].as_array().unwrap().iter().find(|model| model["role"] == "candidate");
    assert_eq!(candidate.unwrap()["requested"], "harmful");
    // So did the conversations of the run when only their folder is named.
    place.run(&["judge", "s/conversations", "--run", "c"]);
    assert_eq!(json(&place.path().join("c/run.json"))["candidate"], "scripted/harmful");
    for arguments in [
        ["judge", "s", "--candidate", "openai/gpt-5.4", "--run", "x"],
        ["judge", "s/conversations", "--candidate", "careful", "--run", "x"],
        ["judge", "s", "--user", "openai/gpt-5.4", "--run", "x"],
    ] {
        let said = place.complains(2, &arguments);
        assert!(said.contains("contradicts the run") && said.contains(arguments[3]), "{said}");
    }
    // The same name again contradicts nothing.
    let again = place.run(&["judge", "s", "--candidate", "harmful", "--run", "again"]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
}

#[test]
fn lost_transcripts_are_planned_and_not_held() {
    let place = Place::new();
    place.exits(0, &["simulate", "--sample", "8", "--max-messages", "4", "--run", "s"]);
    // Each conversation has two files; the first is kept.
    for file in transcripts(&place, "s/conversations").iter().skip(2) {
        std::fs::remove_file(file).unwrap();
    }
    let out = place.exits(3, &["judge", "s", "--run", "j"]);
    let run = json(&place.path().join("j/run.json"));
    assert_eq!(
        (run["planned"].as_u64(), run["held"].as_u64(), run["complete"].as_bool()),
        (Some(8), Some(1), Some(false))
    );
    assert!(out.contains("of 8 planned"), "{out}");
    // Without the plan nobody knows how many are lost.
    std::fs::remove_file(place.path().join("s/plan.json")).unwrap();
    assert!(place.complains(2, &["judge", "s", "--run", "x"]).contains("nobody knows what was planned"));
}

#[test]
fn transcripts_from_elsewhere_are_of_an_unknown_chatbot_unless_it_is_named() {
    let place = Place::new();
    simulated(&place);
    for file in transcripts(&place, "s/conversations") {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        place.write(&format!("plain/{name}"), &std::fs::read_to_string(&file).unwrap());
    }
    place.run(&["judge", "plain", "--run", "u"]);
    let run = json(&place.path().join("u/run.json"));
    assert_eq!(run["candidate"], "unknown (transcripts from plain)");
    assert!(run["models"].as_array().unwrap().iter().all(|model| model["role"] == "judge"), "{run}");
    place.run(&["judge", "plain", "--candidate", "openai/gpt-5.4", "--run", "n"]);
    assert_eq!(json(&place.path().join("n/run.json"))["candidate"], "openai/gpt-5.4");
}
