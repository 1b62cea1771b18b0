//! The check; files of the base branch; local files; previews.

use super::*;

#[tokio::test]
async fn the_check_is_open_while_the_run_works_and_closed_after() {
    let github = FakeGitHub::start().await;
    let context = github.pull_request(900, "acme/bot");
    let forge = client(&context);
    let publisher = Publisher::new(&forge, &context, options());
    let (state, started) = publisher.start().await;
    assert_eq!(started.warnings, []);
    {
        let world = github.world();
        let check = &world.checks[0];
        assert_eq!((&check["status"], &check["head_sha"]), (&json!("in_progress"), &json!(HEAD)));
        assert_eq!(marker_of(&world.bodies()[0]).word, "running");
    }
    let mut publication = result(Word::Fail);
    publication.annotations = (1..=60)
        .map(|line| Annotation {
            path: "thresholds.yaml".into(),
            line,
            level: Level::Error,
            title: "max_harm_rate".into(),
            message: "2 of 3, at most 0 allowed".into(),
        })
        .collect();
    let published = publisher.finish(&publication, &state).await;
    assert_eq!(published.warnings, []);
    // The step that closes up after a crash finds everything closed.
    let after = publisher.finish(&Publication::did_not_finish(), &state).await;
    assert_eq!(after.comment, Some(Placed::Skipped(Stale::AlreadyFinished)));
    github.assert_contract();
    let world = github.world();
    assert_eq!(world.checks.len(), 1);
    assert_eq!(
        (&world.checks[0]["status"], &world.checks[0]["conclusion"]),
        (&json!("completed"), &json!("failure"))
    );
    assert_eq!(world.checks[0]["annotations_total"], 50);
    assert_eq!(world.count("PATCH", "/check-runs/"), 1);
    assert_eq!(marker_of(&world.bodies()[0]).word, "fail");
}

#[tokio::test]
async fn a_run_that_died_is_closed_as_not_finished() {
    for knows_state in [true, false] {
        let github = FakeGitHub::start().await;
        let context = github.pull_request(900, "acme/bot");
        let forge = client(&context);
        let publisher = Publisher::new(&forge, &context, options());
        let (state, _) = publisher.start().await;
        // The process is gone; another one cleans up, with or without the state that it left.
        let state = if knows_state { state } else { State::default() };
        let published = publisher.finish(&Publication::did_not_finish(), &state).await;
        assert_eq!(published.warnings, []);
        github.assert_contract();
        let world = github.world();
        let bodies = world.bodies();
        assert_eq!(bodies.len(), 1);
        assert!(
            bodies[0].contains("Did not finish") && bodies[0].contains("/actions/runs/900"),
            "{}",
            bodies[0]
        );
        assert_eq!(world.checks.len(), 1);
        assert_eq!(world.checks[0]["conclusion"], "failure");
    }
}

#[tokio::test]
async fn lost_answers_make_one_check_and_each_annotation_once() {
    let github = FakeGitHub::start().await;
    for (method, path) in [("POST", "/check-runs"), ("PATCH", "/check-runs/")] {
        let answer = ResponseTemplate::new(502);
        github.world().faults.push(Fault { method, path, answer, effect: Effect::Done });
    }
    let context = github.pull_request(900, "acme/bot");
    let mut publication = result(Word::Fail);
    publication.annotations.push(Annotation {
        path: "thresholds.yaml".into(),
        line: 3,
        level: Level::Error,
        title: "t".into(),
        message: "m".into(),
    });
    let published = finish(&context, &publication).await;
    assert_eq!(published.warnings, []);
    github.assert_contract();
    let world = github.world();
    assert_eq!((world.checks.len(), world.count("POST", "/check-runs")), (1, 1));
    assert_eq!(world.checks[0]["annotations_total"], 1);
    assert_eq!(world.checks[0]["conclusion"], "failure");
}

#[tokio::test]
async fn without_a_pull_request_there_is_a_check_and_no_comment() {
    let github = FakeGitHub::start().await;
    for (event, payload, sha) in [
        (
            "merge_group",
            json!({"merge_group": {"head_sha": "d".repeat(40), "base_sha": BASE}}),
            "d".repeat(40),
        ),
        ("push", json!({"after": "e".repeat(40)}), "e".repeat(40)),
        ("schedule", json!({}), "3".repeat(40)),
        ("release", json!({"release": {"tag_name": "v1"}}), "3".repeat(40)),
    ] {
        let context = ActionsContext::from_env(&github.env(event, 900), &payload).unwrap();
        let published = finish(&context, &result(Word::Pass)).await;
        assert_eq!((published.comment, published.warnings), (None, Vec::new()), "{event}");
        assert_eq!(github.world().checks.last().unwrap()["head_sha"], sha, "{event}");
    }
    github.assert_contract();
    assert_eq!(github.world().count("GET", "/comments"), 0);
}

#[tokio::test]
async fn files_of_a_commit_are_told_from_folders_and_from_nothing() {
    let github = FakeGitHub::start().await;
    // The address names the file with its space encoded; the server reads it decoded.
    github.world().files.push(("conf/my%20thresholds.yaml".into(), BASE.into(), "max: 0\n".into()));
    let context = github.pull_request(900, "acme/bot");
    let forge = client(&context);
    let base = context.base_sha().unwrap();
    let file = Entry::File(b"max: 0\n".as_slice().into());
    assert_eq!(forge.entry("conf/my thresholds.yaml", base).await, Ok(Some(file)));
    assert_eq!(forge.entry("absent.yaml", base).await, Ok(None));
    assert_eq!(forge.entry("", base).await, Ok(Some(Entry::Folder(vec!["conf/".into()]))));
    let inside = Entry::Folder(vec!["my%20thresholds.yaml".into()]);
    assert_eq!(forge.entry("conf", base).await, Ok(Some(inside)));
    github.assert_contract();
    let answer = ResponseTemplate::new(500);
    github.world().faults.push(Fault { method: "GET", path: "/contents/", answer, effect: Effect::None });
    assert!(forge.entry("absent.yaml", base).await.is_err(), "a fault is not an absent file");
}

#[test]
fn outputs_and_summary_need_no_network() {
    let folder = tempfile::tempdir().unwrap();
    let env = [
        ("GITHUB_REPOSITORY", "acme/bot".to_owned()),
        ("GITHUB_EVENT_NAME", "schedule".to_owned()),
        ("GITHUB_SHA", HEAD.to_owned()),
        ("GITHUB_RUN_ID", "1".to_owned()),
        ("GITHUB_OUTPUT", folder.path().join("output").display().to_string()),
        ("GITHUB_STEP_SUMMARY", folder.path().join("summary").display().to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let context = ActionsContext::from_env(&env, &json!({})).unwrap();
    assert_eq!(publish_locally(&context, &result(Word::Fail)), []);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("output"), "verdict<<VERA_GATE_END\nfail\nVERA_GATE_END\n");
    assert!(read("summary").starts_with("## \u{274C} vera-gate: Fail\n"));
}

#[test]
fn a_workflow_without_secrets_is_still_valid() {
    for case in starter::Case::ALL {
        for file in starter::workflows(case, &[], "v1").unwrap() {
            let value: Value = serde_yaml::from_str(&file.text).unwrap();
            for step in
                value["jobs"].as_object().unwrap().values().flat_map(|job| job["steps"].as_array().unwrap())
            {
                assert!(step.get("env").is_none_or(Value::is_object), "{step}");
            }
        }
    }
}
