//! A budget is that of the whole run, however often it is gone on with, and of its second looks too.

use serde_json::Value;

use super::{Place, SWEEP, endpoint, said};

fn with_budget(calls: usize) -> String {
    format!("{SWEEP}concurrency: {{ calls: 1 }}\nbudget: {{ calls: {calls} }}\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn going_on_under_the_same_budget_makes_no_more_calls() {
    let server = endpoint(0).await;
    let place = Place::new(&server, &with_budget(30));
    for _ in 0..3 {
        let output = place.run(&["run"]);
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        assert!(said(&output).contains("raise the budget"), "{}", said(&output));
        assert_eq!(server.count(), 30);
    }
    place.configure(&server, &with_budget(100_000));
    place.completes(&["run"]);
    assert_eq!(std::fs::read_dir(place.path("vera-gate-runs")).unwrap().count(), 1);
}

/// The last call of a run is that of a second look. One that the budget forbids leaves the run unfinished and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_look_that_the_budget_forbids_leaves_the_run_unfinished() {
    let server = endpoint(0).await;
    let place = Place::new(&server, &with_budget(100_000));
    place.completes(&["run", "--run", "whole"]);
    let looks = place.json("whole/confirmations.json");
    assert!(looks.as_array().is_some_and(|looks| !looks.is_empty()), "the test has a second look");
    let all = server.count();
    place.configure(&server, &with_budget(all - 1));
    let output = place.run(&["run"]);
    assert!(said(&output).contains("ended early"), "{}", said(&output));
    assert_eq!(server.count(), 2 * all - 1);
    let folder = std::fs::read_dir(place.path("vera-gate-runs")).unwrap().next().unwrap().unwrap().path();
    let record = || -> Value {
        serde_json::from_str(&std::fs::read_to_string(folder.join("run.json")).unwrap()).unwrap()
    };
    assert_eq!(record()["stopped"]["kind"], "budget", "{}", record()["stopped"]);
    // With one call more it is the whole run, in the same folder.
    place.configure(&server, &with_budget(100_000));
    place.completes(&["run"]);
    assert_eq!(server.count(), 2 * all);
    assert!(record()["stopped"].is_null());
    assert_eq!(
        std::fs::read(folder.join("confirmations.json")).unwrap(),
        std::fs::read(place.path("whole/confirmations.json")).unwrap()
    );
}
