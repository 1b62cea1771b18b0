//! Publishing against a GitHub with memory.

mod cases;
mod check;
mod contract;
mod fake;
mod limits;
mod log;
mod policy;
mod program;

use std::time::Duration;

use fake::{BASE, BOT, Effect, FakeGitHub, Fault, HEAD};
use serde_json::{Value, json};
use vera_gate::escape::markdown::Markdown;
use vera_gate::escape::workflow::Level;
use vera_gate::exit::Exit;
use vera_gate::model::EnvLookup;
use vera_gate::publish::preview::Preview;
use vera_gate::publish::publisher::{Gravity, publish_locally};
use vera_gate::publish::starter;
use vera_gate::publish::sticky::{Marker, Placed, Stale};
use vera_gate::publish::{
    ActionsContext, Annotation, Forge as _, GitHub, Options, Publication, Published, Publisher, Section,
    State, Word, handover,
};
use vera_gate::source::Entry;
use wiremock::ResponseTemplate;

fn options() -> Options {
    Options { total: Duration::from_secs(20), unit: Duration::from_millis(5), ..Options::default() }
}

fn connection(env: &EnvLookup) -> impl Into<octocrab::ReqwestClientConfig> {
    vera_gate::model::http_client(env, None, Duration::from_secs(5)).unwrap()
}

fn client(context: &ActionsContext) -> GitHub {
    GitHub::new(context, "ghp_FAKE", connection(&EnvLookup::fixed([]))).unwrap()
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
