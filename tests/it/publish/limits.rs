//! Size, refusals, limits, hosts and tokens.

use super::*;

/// Sixty findings with long reasons of four-byte characters.
fn long_report() -> Publication {
    let mut publication = result(Word::Fail);
    let findings = |rows: usize| {
        let row = |i: usize| format!("| {i} | {} |\n", "\u{1F9D1}".repeat(2000));
        let mut text = String::from("### Findings\n\n| conversation | reason |\n| --- | --- |\n");
        text.extend((0..rows).map(row));
        if rows < 60 {
            text.extend([format!("\n\u{2026} {} more in the artifact\n", 60 - rows)]);
        }
        Markdown::trusted(text)
    };
    publication.sections = vec![
        Section {
            name: "matrix".into(),
            markdown: Markdown::trusted(
                "| dimension | harm |\n| --- | --- |\n| Guides to Human Care | 2 of 3 |",
            ),
            shorter: None,
            priority: 0,
        },
        Section { name: "findings".into(), markdown: findings(60), shorter: Some(findings(7)), priority: 1 },
        Section {
            name: "cost".into(),
            markdown: Markdown::trusted(format!(
                "<details><summary>Cost</summary>\n\n{}\n</details>",
                "x".repeat(2000)
            )),
            shorter: None,
            priority: 9,
        },
    ];
    publication
}

#[tokio::test]
async fn a_long_report_is_cut_by_sections() {
    let github = FakeGitHub::start().await;
    let published = finish(&github.pull_request(900, "acme/bot"), &long_report()).await;
    assert!(published.warnings.iter().all(|w| w.gravity == Gravity::Expected), "{:?}", published.warnings);
    github.assert_contract();
    let world = github.world();
    let body = world.bodies().remove(0);
    assert!(body.chars().count() <= 65_536);
    assert!(body.starts_with("## \u{274C} vera-gate: Fail\n"));
    assert!(body.contains("Guides to Human Care") && body.contains("\u{2026} 53 more in the artifact"));
    assert_eq!(body.matches("<details>").count(), body.matches("</details>").count());
    assert_eq!(marker_of(&body).word, "fail");
    let summary = world.checks[0]["output"]["summary"].as_str().unwrap();
    assert!(summary.len() <= 65_535 && summary.contains("Guides to Human Care"));
}

#[tokio::test]
async fn a_refusal_for_length_is_followed_by_a_shorter_text() {
    let github = FakeGitHub::start().await;
    github.world().longest = 10_000;
    let published = finish(&github.pull_request(900, "acme/bot"), &long_report()).await;
    github.assert_contract();
    let world = github.world();
    let body = world.bodies().remove(0);
    assert!(body.chars().count() <= 10_000 && body.contains("left out: findings"), "{body}");
    assert!(matches!(&published.comment, Some(Placed::Written { reduced, .. }) if reduced[0] == "findings"));
    assert_eq!(marker_of(&body).word, "fail");
    let lengths: Vec<usize> = world
        .calls
        .iter()
        .filter(|c| c.method == "POST" && c.path.ends_with("/comments"))
        .map(|c| c.body.as_ref().unwrap()["body"].as_str().unwrap().chars().count())
        .collect();
    assert!(lengths.len() > 1 && lengths.windows(2).all(|w| w[1] <= w[0]), "{lengths:?}");
}

#[tokio::test]
async fn a_fork_gets_one_warning_and_files_for_a_second_stage() {
    for (word, exit) in [(Word::Pass, Exit::Success), (Word::Fail, Exit::GateFailed)] {
        let github = FakeGitHub::start().await;
        github.world().refuse_writes = Some(forbidden());
        let context = github.pull_request(900, "someone/bot");
        let published = finish(&context, &result(word)).await;
        assert!(published.hand_over);
        assert_eq!(published.warnings.len(), 1, "{:?}", published.warnings);
        assert!(
            published.warnings[0].text.contains("fork")
                && published.warnings[0].text.contains("docs/github.md")
        );
        assert_eq!(published.exit(exit), exit);
        github.assert_contract();

        let folder = tempfile::tempdir().unwrap();
        handover::write(folder.path(), &context, &result(word)).unwrap();
        let comment = std::fs::read_to_string(folder.path().join("comment.md")).unwrap();
        assert!(comment.contains(word.label()));
        let claim: Value =
            serde_json::from_slice(&std::fs::read(folder.path().join("pr.json")).unwrap()).unwrap();
        assert_eq!((&claim["number"], &claim["head_sha"]), (&json!(7), &json!(HEAD)));
    }
}

#[tokio::test]
async fn a_second_stage_publishes_for_a_verified_pull_request() {
    let github = FakeGitHub::start().await;
    github.world().pull_repository = "someone/bot".to_owned();
    let folder = tempfile::tempdir().unwrap();
    let first = github.pull_request(900, "someone/bot");
    handover::write(folder.path(), &first, &result(Word::Pass)).unwrap();

    let payload = json!({"workflow_run": {"id": 900, "head_sha": HEAD, "event": "pull_request", "pull_requests": [],
        "head_repository": {"full_name": "someone/bot"}}});
    let second = ActionsContext::from_env(&github.env("workflow_run", 1000), &payload).unwrap();
    let vera_gate::publish::event::Event::WorkflowRun(run) = &second.event else {
        panic!("{:?}", second.event)
    };
    let claim = handover::read_claim(folder.path()).unwrap();
    let pull = vera_gate::publish::Forge::pull(&client(&second), claim.number).await.unwrap();
    claim.verify(run, &pull).unwrap();

    let forge = client(&second);
    let publisher = Publisher::new(&forge, &second, Options { pull: Some(claim.number), ..options() });
    let published = publisher.finish(&result(Word::Fail), &State::default()).await;
    assert_eq!(published.warnings, []);
    github.assert_contract();
    let world = github.world();
    assert_eq!(world.checks[0]["head_sha"], HEAD, "the check stands at the reviewed commit");
    assert_eq!(marker_of(&world.bodies()[0]).word, "fail");
}

#[tokio::test]
async fn a_missing_permission_names_the_line_to_add() {
    let github = FakeGitHub::start().await;
    github.world().refuse_writes = Some(forbidden());
    let published = finish(&github.pull_request(900, "acme/bot"), &result(Word::Pass)).await;
    let text = &published.warnings[0].text;
    assert!(text.contains("permissions:\n  issues: write\n  pull-requests: write\n"), "{text}");
    assert!(text.contains("block of a job replaces"), "{text}");
    assert_eq!(published.warnings[0].gravity, Gravity::Failure);
    assert_eq!(published.exit(Exit::Success), Exit::PublishFailed);
    assert_eq!(published.exit(Exit::GateFailed), Exit::GateFailed);
    // A plain refusal is not tried again.
    assert_eq!(github.world().count("POST", "/issues/7/comments"), 1);
    github.assert_contract();
}

#[tokio::test]
async fn a_locked_conversation_is_left_alone() {
    let github = FakeGitHub::start().await;
    let answer = ResponseTemplate::new(403)
        .set_body_json(json!({"message": "Unable to create comment because issue is locked."}));
    github.world().faults.push(Fault { method: "POST", path: "/comments", answer, effect: Effect::None });
    let published = finish(&github.pull_request(900, "acme/bot"), &result(Word::Pass)).await;
    assert_eq!(published.warnings.len(), 1, "{:?}", published.warnings);
    assert!(
        published.warnings[0].text.contains("is locked")
            && !published.warnings[0].text.contains("permissions:")
    );
    assert_eq!(published.exit(Exit::Success), Exit::Success);
}

#[tokio::test]
async fn a_secondary_limit_is_waited_out() {
    let github = FakeGitHub::start().await;
    github.world().add_comment(5, BOT, "old\n<!-- vera-gate:default -->");
    let fault = Fault {
        method: "PATCH",
        path: "/issues/comments/5",
        answer: secondary_limit("1"),
        effect: Effect::None,
    };
    github.world().faults.push(fault);
    let started = std::time::Instant::now();
    let published = finish(&github.pull_request(900, "acme/bot"), &result(Word::Pass)).await;
    assert!(started.elapsed() >= Duration::from_secs(1), "the wait that was asked for was cut short");
    assert_eq!(published.warnings, []);
    github.assert_contract();
    assert_eq!(github.world().count("PATCH", "/issues/comments/5"), 2);
}

#[tokio::test]
async fn an_endless_limit_is_a_warning_and_nothing_more() {
    let github = FakeGitHub::start().await;
    github.world().refuse_writes = Some(secondary_limit("3600"));
    let context = github.pull_request(900, "acme/bot");
    let published = finish(&context, &result(Word::Pass)).await;
    assert!(published.warnings.iter().all(|w| w.gravity == Gravity::Expected), "{:?}", published.warnings);
    assert_eq!(published.warnings.len(), 2, "the comment and the check");
    for exit in [Exit::Success, Exit::GateFailed, Exit::Inconclusive] {
        assert_eq!(published.exit(exit), exit);
    }
}

#[tokio::test]
async fn an_enterprise_server_is_called_below_its_prefix() {
    let github = FakeGitHub::with_prefix("/api/v3").await;
    let published = finish(&github.pull_request(900, "acme/bot"), &result(Word::Pass)).await;
    assert_eq!(published.warnings, []);
    github.assert_contract();
    assert_eq!(github.world().comments.len(), 1);
}

#[tokio::test]
async fn a_redirect_carries_the_token_nowhere() {
    let (github, other) = (FakeGitHub::start().await, FakeGitHub::start().await);
    for (method, path) in [("GET", "/pulls/7"), ("POST", "/check-runs")] {
        let target = format!("{}/repos/acme/bot/x", other.server.uri());
        let answer = ResponseTemplate::new(302).insert_header("location", target);
        github.world().faults.push(Fault { method, path, answer, effect: Effect::None });
    }
    let published = finish(&github.pull_request(900, "acme/bot"), &result(Word::Pass)).await;
    assert_eq!(published.warnings.len(), 2, "{:?}", published.warnings);
    assert_eq!(other.world().calls.len(), 0);
}

#[tokio::test]
async fn a_token_with_a_line_break_is_refused() {
    let github = FakeGitHub::start().await;
    let context = github.pull_request(900, "acme/bot");
    for token in ["", " ", "ghp_a\nx: y", "ghp \u{1}"] {
        assert!(GitHub::new(&context, token, connection(&EnvLookup::fixed([]))).is_err(), "{token:?}");
    }
    // The line break at the end of a secret that was read from a file is not part of it.
    assert!(GitHub::new(&context, "ghp_FAKE\n", connection(&EnvLookup::fixed([]))).is_ok());
}

#[tokio::test]
async fn a_proxy_of_the_runner_is_used() {
    let proxy = FakeGitHub::with_prefix("/api/v3").await;
    let mut context = proxy.pull_request(900, "acme/bot");
    context.api_url = "http://ghe.invalid/api/v3".to_owned();
    let env = [("HTTP_PROXY", proxy.server.uri())];
    let env = EnvLookup::fixed(env.iter().map(|(name, value)| (*name, value.as_str())));
    let forge = GitHub::new(&context, "ghp_FAKE", connection(&env)).unwrap();
    let published =
        Publisher::new(&forge, &context, options()).finish(&result(Word::Pass), &State::default()).await;
    assert_eq!(published.warnings, []);
    proxy.assert_contract();
    assert_eq!(proxy.world().comments.len(), 1);
}

#[tokio::test]
async fn a_preview_shows_what_would_be_published() {
    let github = FakeGitHub::start().await;
    let context = github.pull_request(900, "acme/bot");
    let folder = tempfile::tempdir().unwrap();
    let forge = Preview::new(&folder.path().join("preview"), context.head_sha()).unwrap();
    let publisher = Publisher::new(&forge, &context, options());
    for word in [Word::Running, Word::Fail] {
        assert_eq!(publisher.finish(&result(word), &State::default()).await.warnings, []);
    }
    let read = |name: &str| std::fs::read_to_string(folder.path().join("preview").join(name)).unwrap();
    assert!(read("comment.md").starts_with("## \u{274C} vera-gate: Fail\n"));
    let check: Value = serde_json::from_str(&read("check.json")).unwrap();
    assert_eq!((&check["conclusion"], &check["head_sha"]), (&json!("failure"), &json!(HEAD)));
    assert_eq!(github.world().calls.len(), 0);
}
