//! A GitHub with memory. Every request, and every answer that is not an injected fault, is held against the contract.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use vera_gate::publish::ActionsContext;
use vera_gate::publish::context::Env;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use super::contract;

pub(super) const HEAD: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
pub(super) const BASE: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
pub(super) const BOT: &str = "github-actions[bot]";

/// Something that goes wrong once.
pub(super) struct Fault {
    pub method: &'static str,
    pub path: &'static str,
    pub answer: ResponseTemplate,
    /// Whether the request does its work before its answer is replaced.
    pub effect: Effect,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    Done,
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub method: String,
    pub path: String,
    pub query: Vec<(String, String)>,
    pub authorization: Option<String>,
    pub accept: Vec<String>,
    pub body: Option<Value>,
}

pub(super) struct World {
    pub comments: Vec<Value>,
    pub checks: Vec<Value>,
    pub files: Vec<(String, String, String)>,
    pub pull_head: String,
    pub pull_repository: String,
    /// Who the token writes as.
    pub login: String,
    /// Whether `/user` tells it, as for the token of a person.
    pub tells_login: bool,
    /// Bodies above it are refused.
    pub longest: usize,
    pub faults: Vec<Fault>,
    /// Answers this to every write, for tokens that can only read.
    pub refuse_writes: Option<ResponseTemplate>,
    pub calls: Vec<Call>,
    pub breaches: Vec<String>,
    next_id: u64,
}

impl World {
    pub(super) fn add_comment(&mut self, id: u64, login: &str, body: &str) {
        self.next_id = self.next_id.max(id);
        self.comments.push(comment(id, login, body));
    }

    pub(super) fn count(&self, method: &str, part: &str) -> usize {
        self.calls.iter().filter(|call| call.method == method && call.path.contains(part)).count()
    }

    pub(super) fn bodies(&self) -> Vec<String> {
        self.comments.iter().map(|c| c["body"].as_str().unwrap().to_owned()).collect()
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

fn comment(id: u64, login: &str, body: &str) -> Value {
    let mut comment = contract::example("issue-comment");
    comment["id"] = json!(id);
    comment["user"]["login"] = json!(login);
    comment["body"] = json!(body);
    comment
}

pub(super) struct FakeGitHub {
    pub server: MockServer,
    world: Arc<Mutex<World>>,
    prefix: &'static str,
}

impl FakeGitHub {
    pub(super) async fn start() -> Self {
        Self::with_prefix("").await
    }

    /// A server whose interface stands below a path, as an Enterprise Server's does.
    pub(super) async fn with_prefix(prefix: &'static str) -> Self {
        let world = Arc::new(Mutex::new(World {
            comments: Vec::new(),
            checks: Vec::new(),
            files: Vec::new(),
            pull_head: HEAD.to_owned(),
            pull_repository: "acme/bot".to_owned(),
            login: BOT.to_owned(),
            tells_login: false,
            longest: 65_536,
            faults: Vec::new(),
            refuse_writes: None,
            calls: Vec::new(),
            breaches: Vec::new(),
            next_id: 100,
        }));
        // A validating proxy may stand between client and server; it wants to know the server's port beforehand.
        let builder = MockServer::builder();
        let server = match std::env::var("VERA_GATE_TEST_UPSTREAM") {
            Ok(port) => {
                let listener = std::net::TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
                builder.listener(listener).start().await
            }
            Err(_) => builder.start().await,
        };
        Mock::given(any()).respond_with(Server { world: Arc::clone(&world), prefix }).mount(&server).await;
        Self { server, world, prefix }
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    pub(super) fn env(&self, event: &str, run_id: u64) -> Env {
        let mut env: Env = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_REPOSITORY", "acme/bot"),
            ("GITHUB_SHA", "3333333333333333333333333333333333333333"),
            ("GITHUB_ACTOR", "dev"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        env.insert("GITHUB_EVENT_NAME".into(), event.into());
        env.insert("GITHUB_RUN_ID".into(), run_id.to_string());
        let address = std::env::var("VERA_GATE_TEST_PROXY").unwrap_or_else(|_| self.server.uri());
        env.insert("GITHUB_API_URL".into(), format!("{address}{}", self.prefix));
        env
    }

    /// The context of run `run_id` for pull request 7 of `head_repository`.
    pub(super) fn pull_request(&self, run_id: u64, head_repository: &str) -> ActionsContext {
        let payload = json!({
            "pull_request": {
                "number": 7,
                "head": {"sha": HEAD, "ref": "feat", "repo": {"full_name": head_repository}},
                "base": {"sha": BASE, "ref": "main", "repo": {"full_name": "acme/bot"}},
            },
            "repository": {"full_name": "acme/bot"},
        });
        ActionsContext::from_env(&self.env("pull_request", run_id), &payload).unwrap()
    }

    /// No request and no answer broke the contract.
    pub(super) fn assert_contract(&self) {
        let world = self.world();
        assert!(!world.calls.is_empty(), "nothing was called");
        assert_eq!(world.breaches, Vec::<String>::new());
    }
}

struct Server {
    world: Arc<Mutex<World>>,
    prefix: &'static str,
}

impl Respond for Server {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let mut world = self.world.lock().unwrap();
        let Some(path) = request.url.path().strip_prefix(self.prefix).map(str::to_owned) else {
            world.breaches.push(format!("{} is outside of {}", request.url.path(), self.prefix));
            return ResponseTemplate::new(404);
        };
        let header = |name: &str| -> Vec<String> {
            request.headers.get_all(name).iter().map(|v| v.to_str().unwrap().to_owned()).collect()
        };
        let call = Call {
            method: request.method.to_string(),
            path,
            query: request.url.query_pairs().map(|(k, v)| (k.into_owned(), v.into_owned())).collect(),
            authorization: header("authorization").pop(),
            accept: header("accept"),
            body: (!request.body.is_empty()).then(|| serde_json::from_slice(&request.body).unwrap()),
        };
        world.calls.push(call.clone());
        let faults = contract::request_faults(&call.method, &call.path, &call.query, call.body.as_ref());
        world.breaches.extend(faults);
        if call.authorization.is_none() {
            world.breaches.push(format!("{} {} without a token", call.method, call.path));
        }
        if call.accept.len() != 1 || !call.accept[0].starts_with("application/vnd.github") {
            world.breaches.push(format!("{} {} accepts {:?}", call.method, call.path, call.accept));
        }
        let fault = world.faults.iter().position(|f| f.method == call.method && call.path.contains(f.path));
        let fault = fault.map(|at| world.faults.remove(at));
        if let Some(Fault { effect: Effect::None, answer, .. }) = fault {
            return answer;
        }
        if call.method != "GET"
            && let Some(refusal) = &world.refuse_writes
        {
            return refusal.clone();
        }
        let (status, body, link) = answer(&mut world, &call, self.prefix);
        // The raw form of a file has no schema.
        let wrong = match &body {
            Some(Value::String(_)) => Vec::new(),
            body => contract::response_faults(&call.method, &call.path, status, body.as_ref()),
        };
        world.breaches.extend(wrong.into_iter().map(|w| format!("the test server itself: {w}")));
        if let Some(fault) = fault {
            return fault.answer;
        }
        let mut template = ResponseTemplate::new(status);
        if let Some(link) = link {
            template = template.insert_header("link", link);
        }
        match body {
            Some(Value::String(raw)) => template.set_body_string(raw),
            Some(body) => template.set_body_json(body),
            None => template,
        }
    }
}

type Answer = (u16, Option<Value>, Option<String>);

fn answer(world: &mut World, call: &Call, prefix: &str) -> Answer {
    let segments: Vec<&str> = call.path.trim_start_matches('/').split('/').collect();
    let body = call.body.clone().unwrap_or_default();
    let error =
        |status, message: &str| (status, Some(json!({"message": message, "documentation_url": "x"})), None);
    match (call.method.as_str(), segments.as_slice()) {
        ("GET", ["user"]) if world.tells_login => {
            let mut user =
                contract::example("private-user-response-with-public-and-private-profile-information");
            user["login"] = json!(world.login);
            (200, Some(user), None)
        }
        ("GET", ["user"]) => error(403, "Resource not accessible by integration"),
        ("GET", ["repos", "acme", "bot", "pulls", _]) => {
            let mut pull = contract::example("pull-request");
            // GitHub's own example breaks its description here.
            pull["requested_teams"] = json!([]);
            pull["head"]["sha"] = json!(world.pull_head);
            pull["head"]["repo"]["full_name"] = json!(world.pull_repository);
            (200, Some(pull), None)
        }
        ("GET", ["repos", "acme", "bot", "issues", "7", "comments"]) => page(world, call, prefix),
        ("POST", ["repos", "acme", "bot", "issues", "7", "comments"]) => {
            let text = body["body"].as_str().unwrap_or_default();
            if text.chars().count() > world.longest {
                return too_long(world.longest);
            }
            let id = world.id();
            let login = world.login.clone();
            world.add_comment(id, &login, text);
            (201, world.comments.last().cloned(), None)
        }
        (method, ["repos", "acme", "bot", "issues", "comments", id]) => {
            let id: u64 = id.parse().unwrap();
            let Some(at) = world.comments.iter().position(|c| c["id"] == id) else {
                return error(404, "Not Found");
            };
            if world.comments[at]["user"]["login"] != world.login.as_str() {
                world.breaches.push(format!("{method} of another's comment {id}"));
            }
            if method == "DELETE" {
                world.comments.remove(at);
                return (204, None, None);
            }
            let text = body["body"].as_str().unwrap_or_default();
            if text.chars().count() > world.longest {
                return too_long(world.longest);
            }
            world.comments[at]["body"] = json!(text);
            (200, Some(world.comments[at].clone()), None)
        }
        ("GET", ["repos", "acme", "bot", "commits", sha, "check-runs"]) => {
            let found: Vec<Value> = world.checks.iter().filter(|c| c["head_sha"] == *sha).cloned().collect();
            (200, Some(json!({"total_count": found.len(), "check_runs": found})), None)
        }
        ("POST", ["repos", "acme", "bot", "check-runs"]) => {
            let mut check = contract::example("check-run-example-of-in-progress-conclusion");
            check["id"] = json!(world.id());
            merge(&mut check, &body);
            world.checks.push(check.clone());
            (201, Some(check), None)
        }
        ("PATCH", ["repos", "acme", "bot", "check-runs", id]) => {
            let id: u64 = id.parse().unwrap();
            let check = world.checks.iter_mut().find(|c| c["id"] == id).unwrap();
            let before = check["annotations_total"].as_u64().unwrap_or(0);
            let added = body["output"]["annotations"].as_array().map_or(0, Vec::len) as u64;
            merge(check, &body);
            check["annotations_total"] = json!(before + added);
            (200, Some(check.clone()), None)
        }
        ("GET", ["repos", "acme", "bot", "contents", path @ ..]) => {
            let revision =
                call.query.iter().find(|(k, _)| k == "ref").map(|(_, v)| v.clone()).unwrap_or_default();
            let path = path.join("/");
            let raw = call.accept.iter().any(|accept| accept.contains("raw"));
            let of_commit: Vec<_> = world.files.iter().filter(|(_, r, _)| *r == revision).collect();
            let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
            let below: BTreeSet<(&str, &str)> = of_commit
                .iter()
                .filter_map(|(p, _, _)| p.strip_prefix(&folder))
                .map(|rest| rest.split_once('/').map_or((rest, "file"), |(name, _)| (name, "dir")))
                .collect();
            match of_commit.iter().find(|(p, _, _)| *p == path) {
                Some((_, _, text)) if raw => (200, Some(Value::String(text.clone())), None),
                Some(_) => (200, Some(content(&path, "file")), None),
                None if below.is_empty() => error(404, "Not Found"),
                None => {
                    let list =
                        below.iter().map(|(name, kind)| content(&format!("{folder}{name}"), kind)).collect();
                    (200, Some(Value::Array(list)), None)
                }
            }
        }
        _ => error(404, "Not Found"),
    }
}

/// A file or a folder, as the description has them.
fn content(path: &str, kind: &str) -> Value {
    let name = path.rsplit('/').next().unwrap();
    let address = format!("https://api.github.com/repos/acme/bot/contents/{path}");
    let mut content = json!({"type": kind, "size": 0, "name": name, "path": path, "sha": "3d21ec53a331a6f037a91c368710b99387d012c1",
        "url": address, "git_url": address, "html_url": address, "download_url": address,
        "_links": {"self": address, "git": address, "html": address}});
    if kind == "file" {
        content["encoding"] = json!("base64");
        content["content"] = json!("");
    }
    content
}

fn too_long(longest: usize) -> Answer {
    let error = json!({"resource": "IssueComment", "code": "unprocessable", "field": "data",
        "message": format!("Body is too long (maximum is {longest} characters)")});
    (422, Some(json!({"message": "Validation Failed", "documentation_url": "x", "errors": [error]})), None)
}

fn page(world: &World, call: &Call, prefix: &str) -> Answer {
    let query = |name: &str, default: usize| {
        call.query.iter().find(|(key, _)| key == name).map_or(default, |(_, value)| value.parse().unwrap())
    };
    let (size, page) = (query("per_page", 30).min(100), query("page", 1));
    let slice: Vec<Value> = world.comments.iter().skip((page - 1) * size).take(size).cloned().collect();
    let more = world.comments.len() > page * size;
    // As behind a proxy: the address names a host that the client must not go to.
    let address = format!("https://other.invalid{prefix}{}?per_page={size}&page=", call.path);
    let last = world.comments.len().div_ceil(size);
    let link =
        more.then(|| format!("<{address}{}>; rel=\"next\", <{address}{last}>; rel=\"last\"", page + 1));
    (200, Some(Value::Array(slice)), link)
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().unwrap() {
        if key == "output" {
            // What an answer says about annotations is not what a request says.
            into["output"]["title"] = value["title"].clone();
            into["output"]["summary"] = value["summary"].clone();
        } else {
            into[key] = value.clone();
        }
    }
}
