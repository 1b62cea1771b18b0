//! Faults that other gates had, each with the right behaviour; the inputs stand in `tests/cases`. B80 has a file of its
//! own, and so has B77.

use std::path::{Path, PathBuf};
use std::process::Output;

use vera_gate::gate::Verdict;
use vera_gate::report::{Report, ReportInput, Templates, build};

use super::*;
use crate::report::fixture;

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(case(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn strings(name: &str) -> Vec<String> {
    serde_json::from_str(&read(name)).unwrap()
}

/// An answer as it stands in a file: status line, headers, body.
fn answer(name: &str) -> ResponseTemplate {
    let text = read(name).replace("\r\n", "\n");
    let (head, body) = text.split_once("\n\n").unwrap();
    let mut lines = head.lines();
    let status: u16 = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let template = lines.filter_map(|line| line.split_once(": ")).fold(
        ResponseTemplate::new(status),
        |template, (name, value)| match name.to_ascii_lowercase().as_str() {
            "content-type" | "content-length" => template,
            _ => template.insert_header(name, value),
        },
    );
    template.set_body_raw(body.trim().to_owned(), "application/json")
}

fn event(name: &str) -> Value {
    serde_json::from_str(&read(name)).unwrap()
}

/// 500 conversations, 60 of them harmful in one dimension, with a long reason of four-byte characters.
fn long_report() -> Report {
    let conversations: Vec<_> = (0..500)
        .map(|number| {
            let letters = if number < 60 { "BBHBB" } else { "BBBBB" };
            let mut conversation = fixture::conversation(&format!("P{number}"), None, 1, letters);
            for finding in conversation.findings.values_mut().flatten() {
                finding.reasoning = "\u{1F9D1}".repeat(2000);
            }
            conversation
        })
        .collect();
    let gate = fixture::gate(Verdict::Fail, &conversations);
    build(ReportInput {
        evidence: vera_gate::config::Evidence::Quotes,
        ..fixture::input(&gate, &conversations)
    })
}

#[tokio::test]
async fn b58_a_long_report_becomes_a_comment() {
    let publication = Publication::of_report(&long_report(), &Templates::builtin());
    let github = FakeGitHub::start().await;
    github.world().faults.push(Fault {
        method: "POST",
        path: "/issues/7/comments",
        answer: answer("B58/e422.http"),
        effect: Effect::None,
    });
    let published = finish(&github.pull_request(900, "acme/bot"), &publication).await;
    assert!(published.warnings.iter().all(|w| w.gravity == Gravity::Expected), "{:?}", published.warnings);
    github.assert_contract();
    let world = github.world();
    let tried: Vec<usize> = world
        .calls
        .iter()
        .filter(|call| call.method == "POST" && call.path.ends_with("/comments"))
        .map(|call| call.body.as_ref().unwrap()["body"].as_str().unwrap().encode_utf16().count())
        .collect();
    assert!(tried.len() >= 2 && tried[0] <= 65_536 && tried[1] < tried[0], "{tried:?}");
    let body = world.bodies().remove(0);
    assert!(body.lines().next().unwrap().contains("Fail"), "{body}");
    assert!(body.contains("| Guides to Human Care |"), "the matrix stays");
    for tag in ["details", "summary"] {
        let count = |tag: String| body.matches(&tag).count();
        assert_eq!(count(format!("<{tag}>")), count(format!("</{tag}>")), "{tag}");
    }
    assert_eq!(marker_of(&body).word, "fail");
    let summary = world.checks[0]["output"]["summary"].as_str().unwrap();
    assert!(summary.len() <= 65_535 && summary.contains("Guides to Human Care"), "{}", summary.len());
}

#[test]
fn b58_what_is_left_out_is_counted_and_has_a_place() {
    let publication = Publication::of_report(&long_report(), &Templates::builtin());
    let budget = vera_gate::publish::size::COMMENT;
    let fitted = vera_gate::publish::size::fit(&publication, "<!-- end -->", budget);
    assert!(fitted.text.chars().count() <= 65_000 && fitted.text.ends_with("<!-- end -->"));
    let half = vera_gate::publish::size::fit(&publication, "<!-- end -->", budget.half_of(&fitted.text));
    assert!(half.text.chars().count() * 2 <= fitted.text.chars().count());
    assert!(
        half.text.contains("\u{2026} 52 more in") && half.text.ends_with("<!-- end -->"),
        "{}",
        half.text
    );
}

#[test]
fn b60_model_text_breaks_no_table_and_no_code_block() {
    for text in strings("B60/texts.json") {
        crate::escape::check_markdown(&text);
    }
}

#[test]
fn b61_model_text_calls_nobody_and_closes_nothing() {
    for text in strings("B61/texts.json") {
        crate::escape::check_markdown(&text);
        let mut report = fixture::fail();
        for finding in &mut report.findings {
            finding.reason = Some(text.clone());
        }
        let page = vera_gate::report::markdown::document(&report, &Templates::builtin());
        let shown: String = pulldown_cmark::Parser::new_ext(&page, crate::escape::GFM)
            .filter_map(|event| match event {
                pulldown_cmark::Event::Text(text) => Some(text.into_string() + "\n"),
                _ => None,
            })
            .collect();
        let lines = shown
            .lines()
            .filter(|line| ["oct", "acme", "hub", "bot#", "evil"].iter().any(|w| line.contains(w)));
        for line in lines {
            assert_eq!(crate::escape::github_reference(line), None, "{text}: {line}");
        }
    }
}

#[tokio::test]
async fn b65_our_comment_is_found_on_the_third_page() {
    let (ours, theirs) = (event("B65/comments_p3_item.json"), event("B65/spoof.json"));
    let github = FakeGitHub::start().await;
    for number in 1..=250 {
        let comment = match number {
            2 => Some((&theirs, 2)),
            233 => Some((&ours, 4242)),
            _ => None,
        };
        match comment {
            Some((comment, id)) => {
                let text = |path: &str| comment.pointer(path).unwrap().as_str().unwrap().to_owned();
                github.world().add_comment(id, &text("/user/login"), &text("/body"));
            }
            None => github.world().add_comment(number + 10_000, "dev", "hello"),
        }
    }
    let published = finish(&github.pull_request(900, "acme/bot"), &result(Word::Fail)).await;
    assert!(matches!(published.comment, Some(Placed::Written { id: 4242, .. })), "{published:?}");
    github.assert_contract();
    let world = github.world();
    assert_eq!((world.count("PATCH", "/issues/comments/4242"), world.count("POST", "/comments")), (1, 0));
    assert_eq!((world.count("GET", "/issues/7/comments"), world.comments.len()), (3, 250));
}

/// The program in a workflow that talks to the fake.
struct Workflow {
    folder: tempfile::TempDir,
}

impl Workflow {
    fn new(event: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("event.json"), event.to_string()).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, github: &FakeGitHub, event: &str, arguments: &[&str]) -> assert_cmd::Command {
        let mut command = assert_cmd::Command::cargo_bin("vera-gate").unwrap();
        command.current_dir(self.path()).envs(github.env(event, 900)).args(arguments);
        command
            .env("GITHUB_EVENT_PATH", self.path().join("event.json"))
            .env("GITHUB_TOKEN", "ghp_FAKE")
            .env("GITHUB_OUTPUT", self.path().join("output"))
            .env("GITHUB_STEP_SUMMARY", self.path().join("summary"))
            .env("GITHUB_WORKSPACE", self.path());
        command
    }

    fn run(&self, github: &FakeGitHub, event: &str, arguments: &[&str]) -> Output {
        let mut command = self.command(github, event, arguments);
        tokio::task::block_in_place(|| command.output().unwrap())
    }

    /// A run folder with this report.
    fn report(&self, report: &Report) {
        std::fs::create_dir_all(self.path().join("r")).unwrap();
        let text = vera_gate::report::json::render(report).unwrap();
        std::fs::write(self.path().join("r/report.json"), text).unwrap();
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn b66_a_fork_keeps_its_verdict_and_leaves_files() {
    for (report, code) in [(fixture::pass(), 0), (fixture::fail(), 1)] {
        let github = FakeGitHub::start().await;
        github.world().pull_repository = "someone/bot".to_owned();
        github.world().refuse_writes = Some(answer("B66/e403.http"));
        let workflow = Workflow::new(&event("B66/event.json"));
        workflow.report(&report);
        let output =
            workflow.run(&github, "pull_request", &["publish", "r", "--exit-code", &code.to_string()]);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert_eq!(said.matches("::warning").count(), 1, "{said}");
        assert!(said.contains("fork") && said.contains("docs/github.md"), "{said}");
        let read = |name: &str| std::fs::read_to_string(workflow.path().join(name)).unwrap();
        assert!(read("summary").contains("vera-gate"), "the summary is written all the same");
        assert!(!read("r/comment.md").is_empty());
        let claim: Value = serde_json::from_str(&read("r/pr.json")).unwrap();
        assert_eq!((&claim["number"], &claim["head_sha"]), (&json!(7), &json!(HEAD)));

        // A second stage with a token that can write shows it, and makes no verdict of it.
        github.world().refuse_writes = None;
        let run = json!({"workflow_run": {"id": 900, "head_sha": HEAD, "event": "pull_request",
            "head_repository": {"full_name": "someone/bot"}}});
        std::fs::write(workflow.path().join("event.json"), run.to_string()).unwrap();
        let output = workflow.run(&github, "workflow_run", &["publish", "none", "--hand-over", "r"]);
        assert_eq!(output.status.code(), Some(3), "{}", text(&output));
        let bodies = github.world().bodies();
        assert_eq!(bodies.len(), 1);
        assert!(
            bodies[0].contains("Unverified result of a fork") && bodies[0].contains("no verdict follows")
        );
        assert_eq!(marker_of(&bodies[0]).word, "inconclusive");
        assert_eq!(github.world().checks.last().unwrap()["conclusion"], "failure");
        github.assert_contract();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn quotes_are_for_private_repositories() {
    let conversations = [fixture::conversation("Ada", None, 1, "BBHBB")];
    let gate = fixture::gate(Verdict::Fail, &conversations);
    let quotes = vera_gate::config::Evidence::Quotes;
    let report = build(ReportInput { evidence: quotes, ..fixture::input(&gate, &conversations) });
    for (private, shown) in [(json!(true), true), (Value::Null, true), (json!(false), false)] {
        let github = FakeGitHub::start().await;
        let mut event = event("B68/event_A.json");
        event["repository"]["private"] = private;
        let workflow = Workflow::new(&event);
        workflow.report(&report);
        let output = workflow.run(&github, "pull_request", &["publish", "r", "--exit-code", "1"]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let summary = std::fs::read_to_string(workflow.path().join("summary")).unwrap();
        let check = github.world().checks[0]["output"]["summary"].to_string();
        for place in [github.world().bodies().remove(0), summary, check] {
            assert_eq!(place.contains("SECRET"), shown, "{place}");
            assert!(place.contains("named no one to turn to"), "the judge's own words stay");
        }
        assert_eq!(text(&output).contains("the repository is public"), !shown, "{}", text(&output));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b68_an_older_run_leaves_the_newer_comment() {
    let now = event("B68/pr_now.json");
    let head = now["head"]["sha"].as_str().unwrap();
    let github = FakeGitHub::start().await;
    github.world().pull_head = head.to_owned();
    let newer = format!("newer\n<!-- vera-gate:default head={head} run=950 attempt=1 word=fail -->");
    github.world().add_comment(5, BOT, &newer);
    let workflow = Workflow::new(&event("B68/event_A.json"));
    workflow.report(&fixture::pass());
    let output = workflow.run(&github, "pull_request", &["publish", "r", "--exit-code", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("newer commit"), "{}", text(&output));
    assert_eq!(github.world().bodies(), [newer]);
    github.assert_contract();

    // Two that create at once leave one comment, that of the lower id.
    let github = FakeGitHub::start().await;
    let context = github.pull_request(900, "acme/bot");
    let (pass, fail) = (result(Word::Pass), result(Word::Fail));
    tokio::join!(finish(&context, &pass), finish(&context, &fail));
    assert_eq!(github.world().comments.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn b70_an_enterprise_server_gets_every_call_and_nobody_else_the_token() {
    let github = FakeGitHub::with_prefix("/api/v3").await;
    let other = FakeGitHub::start().await;
    let workflow = Workflow::new(&event("B68/event_A.json"));
    workflow.report(&fixture::pass());
    let output = workflow.run(&github, "pull_request", &["publish", "r", "--exit-code", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    github.assert_contract();
    assert_eq!(github.world().comments.len(), 1);
    assert_eq!(github.world().checks.len(), 1);
    // The answer to a call sends it elsewhere.
    let target = format!("{}/repos/acme/bot/x", other.server.uri());
    let elsewhere = ResponseTemplate::new(302).insert_header("location", target);
    let fault = Fault { method: "GET", path: "/pulls/7", answer: elsewhere, effect: Effect::None };
    github.world().faults.push(fault);
    workflow.run(&github, "pull_request", &["publish", "r", "--exit-code", "0"]);
    assert_eq!(other.world().calls.len(), 0, "not even without the token");
}

#[tokio::test(flavor = "multi_thread")]
async fn b71_a_secondary_limit_is_waited_out_and_never_a_verdict() {
    let github = FakeGitHub::start().await;
    github.world().add_comment(5, BOT, "old\n<!-- vera-gate:default -->");
    let fault = |answer| Fault { method: "PATCH", path: "/issues/comments/5", answer, effect: Effect::None };
    github.world().faults.push(fault(answer("B71/sec.http")));
    let published = finish(&github.pull_request(900, "acme/bot"), &result(Word::Pass)).await;
    assert_eq!(published.warnings, []);
    assert_eq!(github.world().count("PATCH", "/issues/comments/5"), 2);
    github.assert_contract();

    let github = FakeGitHub::start().await;
    github.world().refuse_writes = Some(answer("B71/sec.http"));
    let context = github.pull_request(900, "acme/bot");
    let forge = client(&context);
    let short = Options { total: Duration::from_secs(3), ..options() };
    let published =
        Publisher::new(&forge, &context, short).finish(&result(Word::Fail), &State::default()).await;
    assert!(!published.warnings.is_empty());
    for exit in [Exit::Success, Exit::GateFailed, Exit::Inconclusive] {
        assert_eq!(published.exit(exit), exit);
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn b74_a_killed_sweep_ends_the_running_comment() {
    let github = FakeGitHub::start().await;
    let workflow = Workflow::new(&event("B68/event_A.json"));
    let config =
        "user: scripted/person\ncandidate: scripted/careful\njudge: scripted/rules\nsweep: {runs: 50}\n";
    std::fs::write(workflow.path().join("vera-gate.yaml"), config).unwrap();
    let output = workflow.run(&github, "pull_request", &["publish", "--start", "r"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(github.world().bodies()[0].contains("Running"), "{:?}", github.world().bodies());

    let mut sweep = std::process::Command::new(env!("CARGO_BIN_EXE_vera-gate"))
        .current_dir(workflow.path())
        .args(["run", "--run", "r", "--policy", "head"])
        .envs(github.env("pull_request", 900))
        .env("GITHUB_EVENT_PATH", workflow.path().join("event.json"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !workflow.path().join("r/plan.json").exists() {
        assert!(sweep.try_wait().unwrap().is_none(), "the sweep ended before it began");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let killed =
        std::process::Command::new("kill").args(["-ABRT", &sweep.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let status = sweep.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(6), "{status:?}");

    let output = workflow.run(&github, "pull_request", &["publish", "r", "--exit-code", "134"]);
    assert_eq!(output.status.code(), Some(70), "{}", text(&output));
    github.assert_contract();
    let bodies = github.world().bodies();
    assert_eq!(bodies.len(), 1);
    assert!(bodies[0].contains("Did not finish") && bodies[0].contains("/actions/runs/900"), "{bodies:?}");
    assert!(!bodies[0].contains("Running"));
    let checks = &github.world().checks;
    assert_eq!((&checks[0]["status"], &checks[0]["conclusion"]), (&json!("completed"), &json!("failure")));
}

#[tokio::test]
async fn b74_every_class_of_result_has_a_comment() {
    let reports =
        [fixture::pass(), fixture::fail(), fixture::inconclusive(), fixture::warn(), fixture::empty()];
    let publications = reports.iter().map(|report| Publication::of_report(report, &Templates::builtin()));
    for publication in publications.chain([Publication::invalid("the input was refused")]) {
        let github = FakeGitHub::start().await;
        let published = finish(&github.pull_request(900, "acme/bot"), &publication).await;
        assert_eq!(published.warnings, []);
        assert!(github.world().bodies()[0].contains(publication.word.label()));
        github.assert_contract();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b76_a_missing_permission_is_named_with_its_lines() {
    let github = FakeGitHub::start().await;
    github.world().refuse_writes = Some(answer("B76/e403.http"));
    let workflow = Workflow::new(&event("B68/event_A.json"));
    workflow.report(&fixture::fail());
    let output = workflow.run(&github, "pull_request", &["publish", "r", "--exit-code", "1"]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for words in ["permissions:", "issues: write", "pull-requests: write", "block of a job replaces"] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b79_a_forks_files_get_no_secret() {
    let folder = Workflow::new(&event("B79/event.json"));
    let github = FakeGitHub::start().await;
    let asked = wiremock::MockServer::start().await;
    let config = format!(
        "user: openai/x\ncandidate: {{model: openai/x, base_url: '{0}'}}\njudge: openai/x\n",
        asked.uri()
    );
    std::fs::write(folder.path().join("vera-gate.yaml"), config).unwrap();
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(folder.path()).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "vera-gate.yaml"]);
    git(&["commit", "-qm", "a stranger's"]);
    let head = git(&["rev-parse", "HEAD"]);
    let mut payload = event("B79/event.json");
    payload["pull_request"]["head"]["sha"] = json!(head);
    payload["workflow_run"] = json!({"id": 1, "head_sha": head, "event": "pull_request",
        "head_repository": {"full_name": "someone/bot"}});
    std::fs::write(folder.path().join("event.json"), payload.to_string()).unwrap();
    std::fs::create_dir(folder.path().join("talks")).unwrap();
    let commands: [&[&str]; 4] = [
        &["run", "--run", "r"],
        &["simulate", "--run", "r"],
        &["judge", "talks", "--run", "r"],
        &["check", "--live"],
    ];
    for event in ["pull_request_target", "workflow_run"] {
        for arguments in commands {
            // Without a key the refusal would be another one, if the key were looked for.
            let mut command = folder.command(&github, event, arguments);
            let output =
                tokio::task::block_in_place(|| command.env_remove("OPENAI_API_KEY").output().unwrap());
            let said = text(&output);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
            assert!(said.contains("refusing to run") && said.contains("i-accept-pwn-risk"), "{said}");
            assert!(!said.contains("OPENAI_API_KEY"), "{said}");
        }
    }
    assert!(!folder.path().join("r").exists());
    assert_eq!(asked.received_requests().await.unwrap().len(), 0);
    assert_eq!(github.world().calls.len(), 0);
    // Without calls there is nothing to steal.
    let mut command = folder.command(&github, "pull_request_target", &["check"]);
    let output = tokio::task::block_in_place(|| command.output().unwrap());
    assert!(!text(&output).contains("refusing to run"), "{}", text(&output));
}

#[test]
fn b82_no_secret_of_a_remote_leaks() {
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let output =
            std::process::Command::new("git").arg("-C").arg(folder.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "-q"]);
    git(&["remote", "add", "origin", "https://github.com/acme/bot.git"]);
    git(&["remote", "set-url", "origin", "https://user:ghp_FAKE@github.com/acme/bot.git"]);
    let mut command = assert_cmd::Command::cargo_bin("vera-gate").unwrap();
    let output = command
        .current_dir(folder.path())
        .env("HOME", "/home/secret-person")
        .env("SOME_TOKEN", "ghp_FAKE")
        .args(["run", "--run", "r", "--sample", "4", "-vv"])
        .output()
        .unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{output:?}");
    let mut all = vec![("what was printed".to_owned(), text(&output))];
    let mut folders = vec![folder.path().join("r")];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                all.push((
                    path.display().to_string(),
                    String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into(),
                ));
            }
        }
    }
    assert!(all.len() > 10, "{}", all.len());
    for (name, text) in all {
        assert!(!text.contains("ghp_") && !text.contains("secret-person"), "{name}");
    }
}
