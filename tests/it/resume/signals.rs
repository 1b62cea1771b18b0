//! The first SIGINT or SIGTERM ends the work in order, the second at once.

use std::time::Duration;

use serde_json::Value;

use super::{Place, SWEEP, endpoint, said, same_results, signal, until};
use crate::providers::server::{Act, Server};

/// Case B42.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_stops_new_calls_and_the_next_run_goes_on() {
    const AT_ONCE: usize = 4;
    let more = format!("{SWEEP}concurrency: {{ calls: {AT_ONCE} }}\n");
    let server = endpoint(20).await;
    let whole = Place::new(&server, &more);
    whole.completes(&["run", "--run", "r"]);
    let clean = server.count();
    // In the middle of the conversations, and in the middle of the judging.
    for (name, after) in [("TERM", 10), ("INT", clean - 20)] {
        let place = Place::new(&server, &more);
        let start = server.count();
        let mut child = place.start(&["run", "--run", "r"]);
        assert!(until(&server, start + after, &mut child));
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        let text = said(&output);
        let verdict = place.json("r/verdict.json");
        // Harm that was found before the signal stays a fail; that early there cannot be any.
        let expected: (Value, i32) = match verdict["verdict"].as_str() {
            Some("fail") if name == "INT" => ("fail".into(), 1),
            _ => ("inconclusive".into(), 3),
        };
        assert_eq!(output.status.code(), Some(expected.1), "{name}: {text}");
        assert!(text.contains("run the same command again to go on"), "{text}");
        let stopped_at = server.count();
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(server.count(), stopped_at, "nothing calls any more");
        assert_eq!((&verdict["verdict"], &verdict["exit_code"]), (&expected.0, &expected.1.into()));
        assert_eq!(place.json("r/run.json")["stopped"]["kind"], "cancelled");
        assert!(place.path("r/report.md").is_file() && place.path("r/junit.xml").is_file());

        place.completes(&["run", "--run", "r"]);
        let calls = server.count() - start;
        assert!((clean..=clean + AT_ONCE).contains(&calls), "{name}: {calls} calls instead of {clean}");
        same_results(&whole.path("r"), &place.path("r"));
        assert_eq!(place.json("r/run.json")["stopped"], Value::Null);
    }
}

/// The endpoint never answers, so that only the signals can end it; a run without `--run` is found again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_endpoint_does_not_keep_the_process() {
    let silent = Server::start(|_, _| vec![Act::Hang]).await;
    let place = Place::new(&silent, SWEEP);
    let mut child = place.start(&["run"]);
    assert!(until(&silent, 6, &mut child));
    signal(&child, "TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let server = endpoint(0).await;
    // Another address is another plan, which is said; the same one goes on.
    place.configure(&server, SWEEP);
    let output = place.run(&["run", "--seed", "2"]);
    let text = said(&output);
    assert!(text.contains("run folder: ") && text.contains("is not gone on with"), "{text}");
    assert!(text.contains("candidate.settings: ") && text.contains("sweep.seed: 1 -> 2"), "{text}");
    place.configure(&silent, SWEEP);
    let mut child = place.start(&["run"]);
    assert!(until(&silent, 7, &mut child));
    signal(&child, "INT");
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("going on in: "), "{}", said(&output));
}
