//! Publishing against a GitHub with memory.

mod contract;
mod fake;

use std::time::Duration;

use fake::{BASE, BOT, Effect, FakeGitHub, Fault, HEAD};
use serde_json::{Value, json};
use vera_gate::escape::markdown::Markdown;
use vera_gate::escape::workflow::Level;
use vera_gate::exit::Exit;
use vera_gate::publish::publisher::{Gravity, publish_locally};
use vera_gate::publish::sticky::{Marker, Placed, Stale};
use vera_gate::publish::{
    ActionsContext, Annotation, GitHub, Options, Publication, Published, Publisher, Section, State, Word,
    handover, policy,
};
use wiremock::ResponseTemplate;

fn options() -> Options {
    Options { total: Duration::from_secs(20), unit: Duration::from_millis(5), ..Options::default() }
}

fn client(context: &ActionsContext) -> GitHub {
    GitHub::new(context, "ghp_FAKE").unwrap()
}

fn result(word: Word) -> Publication {
    Publication::short(word, "Two conversations of three are likely harmful.")
}

async fn finish(context: &ActionsContext, publication: &Publication) -> Published {
    Publisher::new(&client(context), context, options()).finish(publication, &State::default()).await
}

fn marker_of(body: &str) -> Marker {
    Marker::parse(body).unwrap_or_else(|| panic!("no marker in {body}"))
}

fn forbidden() -> ResponseTemplate {
    ResponseTemplate::new(403)
        .insert_header("x-accepted-github-permissions", "issues=write; pull_requests=write")
        .set_body_json(json!({"message": "Resource not accessible by integration"}))
}

fn secondary_limit(seconds: &str) -> ResponseTemplate {
    ResponseTemplate::new(403).insert_header("retry-after", seconds).set_body_json(json!({"message":
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}))
}

// ---- The comment ----

#[tokio::test]
async fn our_comment_is_found_behind_two_pages_and_a_forged_one() {
    let github = FakeGitHub::start().await;
    for number in 1..=250 {
        let (login, body) = match number {
            2 => ("mallory", "<!-- vera-gate:default -->"),
            233 => (BOT, "old\n<!-- vera-gate:default -->"),
            _ => ("dev", "hello"),
        };
        github.world().add_comment(number, login, body);
    }
    let published = finish(&github.pull_request(900, "acme/bot"), &result(Word::Fail)).await;
    assert_eq!(published.warnings, []);
    assert!(matches!(published.comment, Some(Placed::Written { id: 233, .. })));
    github.assert_contract();
    let world = github.world();
    assert_eq!((world.count("PATCH", "/issues/comments/233"), world.count("POST", "/comments")), (1, 0));
    assert_eq!(world.count("GET", "/issues/7/comments"), 3);
    assert_eq!(world.comments.len(), 250);
    assert_eq!(world.bodies()[1], "<!-- vera-gate:default -->", "another's comment stays");
}

#[tokio::test]
async fn every_class_of_result_is_written() {
    let github = FakeGitHub::start().await;
    let words = [Word::Pass, Word::Warn, Word::Fail, Word::Inconclusive, Word::Invalid];
    for (run, word) in (900..).zip(words) {
        let published = finish(&github.pull_request(run, "acme/bot"), &result(word)).await;
        assert_eq!(published.warnings, [], "{word:?}");
        let world = github.world();
        assert_eq!(world.comments.len(), 1, "one comment for all runs");
        let body = world.bodies().remove(0);
        assert!(body.starts_with(&format!("## {} vera-gate: {}\n", word.icon(), word.label())), "{body}");
        assert!(body.contains("[Page of this run](https://github.com/acme/bot/actions/runs/"), "{body}");
        let marker = marker_of(&body);
        assert_eq!(
            (marker.run_id, marker.head_sha.as_str(), marker.word.as_str()),
            (run, HEAD, word.as_str())
        );
    }
    github.assert_contract();
    assert_eq!(github.world().count("POST", "/issues/7/comments"), 1);
}

#[tokio::test]
async fn a_lost_answer_makes_one_comment() {
    for effect in [Effect::Done, Effect::None] {
        let github = FakeGitHub::start().await;
        github.world().faults.push(Fault {
            method: "POST",
            path: "/issues/7/comments",
            answer: ResponseTemplate::new(502),
            effect,
        });
        let published = finish(&github.pull_request(900, "acme/bot"), &result(Word::Fail)).await;
        assert_eq!(published.warnings, []);
        github.assert_contract();
        let world = github.world();
        assert_eq!(world.comments.len(), 1);
        // Written twice only when the first one did not arrive.
        let posts = if effect == Effect::Done { 1 } else { 2 };
        assert_eq!(world.count("POST", "/issues/7/comments"), posts);
    }
}

#[tokio::test]
async fn a_server_that_stays_down_is_not_hammered() {
    let github = FakeGitHub::start().await;
    for _ in 0..20 {
        let answer = ResponseTemplate::new(502);
        github.world().faults.push(Fault { method: "POST", path: "/comments", answer, effect: Effect::None });
    }
    let published = finish(&github.pull_request(900, "acme/bot"), &result(Word::Fail)).await;
    assert_eq!(github.world().count("POST", "/issues/7/comments"), 4);
    assert_eq!(published.exit(Exit::GateFailed), Exit::GateFailed);
    assert_eq!(published.exit(Exit::Success), Exit::PublishFailed);
}

#[tokio::test]
async fn a_run_for_an_old_commit_writes_nothing() {
    let github = FakeGitHub::start().await;
    github.world().pull_head = "c".repeat(40);
    let theirs =
        format!("newer\n<!-- vera-gate:default head={} run=950 attempt=1 word=fail -->", "c".repeat(40));
    github.world().add_comment(5, BOT, &theirs);
    let published = finish(&github.pull_request(900, "acme/bot"), &result(Word::Pass)).await;
    assert_eq!(published.comment, Some(Placed::Skipped(Stale::OtherHead)));
    assert_eq!(published.warnings.len(), 1);
    assert!(published.warnings[0].text.contains("newer commit"), "{:?}", published.warnings);
    assert_eq!(published.exit(Exit::Success), Exit::Success);
    github.assert_contract();
    let world = github.world();
    assert_eq!((world.count("PATCH", "/comments"), world.count("POST", "/comments")), (0, 0));
    assert_eq!(world.bodies(), [theirs]);
}

#[tokio::test]
async fn two_runs_at_once_leave_one_comment_of_the_newer() {
    let github = FakeGitHub::start().await;
    let (older, newer) = (github.pull_request(900, "acme/bot"), github.pull_request(901, "acme/bot"));
    let (pass, fail) = (result(Word::Pass), result(Word::Fail));
    let (a, b) = tokio::join!(finish(&older, &pass), finish(&newer, &fail));
    assert!(a.warnings.iter().chain(&b.warnings).all(|w| w.gravity == Gravity::Expected), "{a:?} {b:?}");
    github.assert_contract();
    let bodies = github.world().bodies();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    assert_eq!(marker_of(&bodies[0]).run_id, 901);
}

#[tokio::test]
async fn own_duplicates_are_removed_and_only_those() {
    let github = FakeGitHub::start().await;
    let old = "old\n<!-- vera-gate:default head=x run=1 attempt=1 word=pass -->";
    for (id, login, body) in [
        (1, "mallory", old),
        (2, BOT, old),
        (3, BOT, "another tool"),
        (4, BOT, old),
        (5, BOT, "old\n<!-- vera-gate:nightly -->"),
    ] {
        github.world().add_comment(id, login, body);
    }
    finish(&github.pull_request(900, "acme/bot"), &result(Word::Fail)).await;
    github.assert_contract();
    let ids: Vec<u64> = github.world().comments.iter().map(|c| c["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [1, 2, 3, 5]);
}

#[tokio::test]
async fn an_app_finds_its_earlier_comment_by_what_it_just_wrote() {
    let github = FakeGitHub::start().await;
    github.world().login = "acme-gate[bot]".to_owned();
    github.world().add_comment(4, "acme-gate[bot]", "old\n<!-- vera-gate:default -->");
    finish(&github.pull_request(900, "acme/bot"), &result(Word::Fail)).await;
    github.assert_contract();
    let world = github.world();
    assert_eq!(world.comments.len(), 1);
    assert_eq!(world.comments[0]["id"], 4);
    assert_eq!(marker_of(&world.bodies()[0]).run_id, 900);
}

#[tokio::test]
async fn a_persons_token_knows_its_name() {
    let github = FakeGitHub::start().await;
    github.world().login = "carol".to_owned();
    github.world().tells_login = true;
    github.world().add_comment(4, "carol", "old\n<!-- vera-gate:default -->");
    finish(&github.pull_request(900, "acme/bot"), &result(Word::Fail)).await;
    github.assert_contract();
    assert_eq!(github.world().count("POST", "/issues/7/comments"), 0);
}

// ---- Size ----

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

// ---- Refusals and limits ----

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

// ---- Enterprise Server, hosts and tokens ----

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
        assert!(GitHub::new(&context, token).is_err(), "{token:?}");
    }
    // The line break at the end of a secret that was read from a file is not part of it.
    assert!(GitHub::new(&context, "ghp_FAKE\n").is_ok());
}

// ---- The check ----

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
    let after = publisher.abandon(&state).await;
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
        let published = publisher.abandon(&state).await;
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

// ---- Policy of the base branch, local files ----

#[tokio::test]
async fn policy_files_come_from_the_base_commit() {
    let github = FakeGitHub::start().await;
    github.world().files.push(("conf/my thresholds.yaml".into(), BASE.into(), "max: 0\n".into()));
    let context = github.pull_request(900, "acme/bot");
    let forge = client(&context);
    // The address names the file with its space encoded; the server reads it decoded.
    github.world().files.push(("conf/my%20thresholds.yaml".into(), BASE.into(), "max: 0\n".into()));
    let base =
        policy::from_forge(&forge, context.base_sha().unwrap(), "./conf/my thresholds.yaml").await.unwrap();
    assert_eq!(base.as_deref(), Some("max: 0\n"));
    assert_eq!(policy::from_forge(&forge, BASE, "absent.yaml").await.unwrap(), None);
    assert!(policy::from_forge(&forge, BASE, "../x").await.is_err());
    let answer = ResponseTemplate::new(500);
    github.world().faults.push(Fault { method: "GET", path: "/contents/", answer, effect: Effect::None });
    assert!(policy::from_forge(&forge, BASE, "t.yaml").await.is_err(), "a fault is not an absent file");
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
