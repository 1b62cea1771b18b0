//! A plan that changed, and two processes on one folder.

use super::{Place, SWEEP, endpoint, said, until};

/// Case B43: one word of the persona template.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_plan_is_refused_and_a_restored_one_calls_nothing() {
    let server = endpoint(0).await;
    let place = Place::new(&server, "target: t\nsweep: { max_messages: 4, curtail: never }\n");
    let files = [
        (
            "rubric.tsv",
            "Question ID\tDimension\tSeverity\tRisk Type\tQuestion\tExamples\tAnswer\tGOTO\n1\tA\tRed\t\tq\t\t\t\n",
        ),
        ("personas.tsv", "Name\tShort Current Suicide Risk Level\tBackground\nAna\tHigh\tx\nBo\tLow\ty\n"),
        ("persona_prompt_template.txt", "You are {Name}: {Background}"),
        ("persona_prompt_reminder.txt", "r"),
        ("rubric_prompt_beginning.txt", "{conversation}"),
        ("question_prompt.txt", "{question}{examples_section}{options}"),
    ];
    std::fs::create_dir(place.path("t")).unwrap();
    for (name, text) in files {
        std::fs::write(place.path("t").join(name), text).unwrap();
    }
    let first = place.run(&["run", "--run", "r"]);
    assert!(place.path("r/verdict.json").is_file(), "{}", said(&first));
    // 2 conversations of 4 messages, and a question for each.
    assert_eq!(server.count(), 10);
    let verdict = place.json("r/verdict.json");

    let template = place.path("t/persona_prompt_template.txt");
    std::fs::write(&template, "You were {Name}: {Background}").unwrap();
    let refused = place.run(&["run", "--run", "r"]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    let text = said(&refused);
    assert!(text.contains("target.prompts: ") && !text.contains("target.rubric"), "{text}");
    let other = ["run", "--run", "r", "--max-messages", "6", "--seed", "5"];
    let text = said(&place.run(&other));
    for difference in ["sweep.max_messages: 4 -> 6", "sweep.seed: 1 -> 5", "target.prompts: "] {
        assert!(text.contains(difference), "{difference} not in {text}");
    }
    assert_eq!(server.count(), 10, "nothing was called");

    std::fs::write(&template, "You are {Name}: {Background}").unwrap();
    let again = place.run(&["run", "--run", "r"]);
    assert_eq!(again.status.code(), first.status.code(), "{}", said(&again));
    assert_eq!((server.count(), place.json("r/verdict.json")), (10, verdict));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fresh_starts_anew_beside_an_unfinished_run() {
    let server = endpoint(20).await;
    let place = Place::new(&server, SWEEP);
    let mut child = place.start(&["run"]);
    assert!(until(&server, 10, &mut child));
    child.kill().unwrap();
    child.wait().unwrap();
    // Without the word it would be gone on with; that run is killed as well.
    let mut child = place.start(&["run"]);
    assert!(until(&server, 14, &mut child));
    child.kill().unwrap();
    let again = child.wait_with_output().unwrap();
    assert!(said(&again).contains("going on in: "), "{}", said(&again));
    let output = place.run(&["run", "--fresh"]);
    assert!(said(&output).contains("run folder: "), "{}", said(&output));
    let count = || std::fs::read_dir(place.path("vera-gate-runs")).unwrap().count();
    assert_eq!(count(), 2);
    // The one that was passed over is history: another chatbot may answer there by now.
    let output = place.run(&["run"]);
    assert!(said(&output).contains("run folder: "), "{}", said(&output));
    assert_eq!(count(), 3);
}

/// What a run found earlier says nothing of a go that was killed: no verdict is better than a stale one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_go_leaves_no_older_verdict() {
    let server = endpoint(20).await;
    let place = Place::new(&server, &format!("{SWEEP}budget: {{ calls: 40 }}\n"));
    let first = place.run(&["run", "--run", "r"]);
    assert!(
        place.path("r/verdict.json").exists() && place.path("r/report.json").exists(),
        "{}",
        said(&first)
    );
    place.configure(&server, SWEEP);
    let mut child = place.start(&["run", "--run", "r"]);
    assert!(until(&server, 50, &mut child));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!place.path("r/verdict.json").exists() && !place.path("r/report.json").exists());
    assert!(matches!(place.run(&["report", "r"]).status.code(), Some(2)), "nothing to report yet");
    place.completes(&["run", "--run", "r"]);
    assert!(place.path("r/verdict.json").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_on_the_folder_is_refused() {
    let server = endpoint(40).await;
    let place = Place::new(&server, SWEEP);
    let mut first = place.start(&["run", "--run", "r"]);
    assert!(until(&server, 2, &mut first));
    let second = place.run(&["run", "--run", "r"]);
    assert_eq!(second.status.code(), Some(2), "{}", said(&second));
    assert!(said(&second).contains("is in use by another run"), "{}", said(&second));
    let first = first.wait_with_output().unwrap();
    assert!(matches!(first.status.code(), Some(0 | 1)), "{}", said(&first));
}
