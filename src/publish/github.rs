//! GitHub and GitHub Enterprise Server, through octocrab.
//!
//! octocrab's own retry layer is not compiled in: it would send a comment four times when the server answers 502.
//! Its `update_comment` sends POST where the interface says PATCH, so requests are built here. Redirects are not
//! followed, so the token reaches the configured host and no other.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::ACCEPT;
use http::request::Builder;
use http::{HeaderMap, Method, StatusCode};
use octocrab::{Octocrab, ReqwestClientConfig};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::context::{ActionsContext, Repository};
use super::forge::{
    Annotation, CheckOutput, CheckState, Comment, Conclusion, Forge, ForgeError, NewCheck, Operation,
    PullState,
};
use crate::escape::workflow::Level;
use crate::source::Entry;

/// Comments asked for at once; the most GitHub gives.
const PER_PAGE: usize = 100;
/// Longest wait for one answer.
const ANSWER: Duration = Duration::from_secs(30);
const JSON: &str = "application/vnd.github+json";
/// Entries of a folder that GitHub lists at most.
const LONGEST_FOLDER: usize = 1000;
const RAW: &str = "application/vnd.github.raw+json";

/// A client for one repository.
pub struct GitHub {
    client: Octocrab,
    repository: Repository,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The token is empty or holds characters that no token has, such as a line break.
    #[error("the token is empty or holds a space, a line break or another character that no token has")]
    Token,
    /// The address cannot be used.
    #[error("{0} is not an address of a GitHub interface")]
    Address(String),
    /// The HTTP client cannot be built.
    #[error("cannot set up the connection to GitHub: {0}")]
    Setup(Box<octocrab::Error>),
}

impl GitHub {
    /// A client for the repository of the context, which writes with the token over the given connection. That one
    /// must not follow redirects: see [`crate::model::http_client`].
    ///
    /// Must be called inside of a tokio runtime.
    pub fn new(
        context: &ActionsContext,
        token: &str,
        connection: impl Into<ReqwestClientConfig>,
    ) -> Result<Self, ClientError> {
        let token = token.trim();
        if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
            return Err(ClientError::Token);
        }
        let bad_address = |_| ClientError::Address(context.api_url.clone());
        let client = Octocrab::builder()
            .base_uri(context.api_url.as_str())
            .map_err(bad_address)?
            // Without this the token would also be sent to octocrab's default upload host.
            .upload_uri(context.api_url.as_str())
            .map_err(bad_address)?
            .personal_token(token)
            .build_with_reqwest(connection)
            .map_err(|e| ClientError::Setup(Box::new(e)))?;
        Ok(Self { client, repository: context.repository.clone() })
    }

    fn path(&self, rest: &str) -> String {
        format!("/repos/{}/{}/{rest}", self.repository.owner, self.repository.name)
    }

    /// One request, one answer: headers and text of the reply.
    async fn call(
        &self,
        operation: Operation,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<&Value>,
    ) -> Result<(HeaderMap, String), ForgeError> {
        match tokio::time::timeout(ANSWER, self.exchange(operation, method, path, accept, body)).await {
            Ok(result) => result,
            Err(_elapsed) => {
                let message = format!("no answer within {} seconds", ANSWER.as_secs());
                Err(ForgeError::Unavailable { operation, message })
            }
        }
    }

    async fn exchange(
        &self,
        operation: Operation,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<&Value>,
    ) -> Result<(HeaderMap, String), ForgeError> {
        let unavailable = |e: &octocrab::Error| ForgeError::Unavailable { operation, message: one_line(e) };
        let builder = Builder::new().method(method).uri(path).header(ACCEPT, accept);
        let request = self.client.build_request(builder, body).map_err(|e| unavailable(&e))?;
        let response = self.client.execute(request).await.map_err(|e| unavailable(&e))?;
        let response = octocrab::map_github_error(response).await.map_err(|error| match error {
            octocrab::Error::GitHub { source, .. } => classify(operation, &source, SystemTime::now()),
            other => unavailable(&other),
        })?;
        let headers = response.headers().clone();
        let text = self.client.body_to_string(response).await.map_err(|e| match e {
            octocrab::Error::InvalidUtf8 { .. } => {
                ForgeError::Unreadable { operation, message: "it is not UTF-8 text".to_owned() }
            }
            other => unavailable(&other),
        })?;
        Ok((headers, text))
    }

    async fn json<R: DeserializeOwned>(
        &self,
        operation: Operation,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<R, ForgeError> {
        let (_, text) = self.call(operation, method, path, JSON, body).await?;
        read(operation, &text)
    }
}

fn read<R: DeserializeOwned>(operation: Operation, text: &str) -> Result<R, ForgeError> {
    serde_json::from_str(text).map_err(|e| ForgeError::Unreadable { operation, message: e.to_string() })
}

/// octocrab appends a backtrace to some of its messages; people need the first line.
fn one_line(error: &octocrab::Error) -> String {
    let mut message = error.to_string().lines().next().unwrap_or_default().to_owned();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let text = cause.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        source = cause.source();
    }
    message
}

/// Sorts an answer that is not a success.
fn classify(operation: Operation, error: &octocrab::GitHubError, now: SystemTime) -> ForgeError {
    let message = error.message.lines().next().unwrap_or_default().to_owned();
    let header = |name: &str| error.headers.as_ref()?.get(name)?.to_str().ok();
    let status = error.status_code;
    let details = || {
        let details = error.errors.iter().flatten().map(|e| match e.get("message").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => e.to_string(),
        });
        std::iter::once(message.clone()).chain(details).collect::<Vec<_>>().join("; ")
    };
    if matches!(status, StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS) {
        let after = header("retry-after").and_then(|s| s.trim().parse().ok()).map(Duration::from_secs);
        let exhausted = header("x-ratelimit-remaining").is_some_and(|n| n.trim() == "0");
        let reset = error.rate_limit_reset.filter(|_| exhausted).map(|reset| {
            let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
            // One second more, because both clocks are rounded down.
            Duration::from_secs(reset + 1).saturating_sub(now)
        });
        let limited = status == StatusCode::TOO_MANY_REQUESTS
            || after.is_some()
            || exhausted
            || message.to_ascii_lowercase().contains("rate limit");
        if operation == Operation::WriteComment && message.to_ascii_lowercase().contains("locked") {
            return ForgeError::Locked;
        }
        return if limited {
            ForgeError::RateLimited { message, wait: after.or(reset) }
        } else {
            let accepted = header("x-accepted-github-permissions").map(str::to_owned);
            ForgeError::Forbidden { operation, message, accepted }
        };
    }
    match status {
        StatusCode::UNPROCESSABLE_ENTITY if details().to_ascii_lowercase().contains("too long") => {
            ForgeError::TooLong(details())
        }
        StatusCode::PAYLOAD_TOO_LARGE => ForgeError::TooLong(message),
        StatusCode::NOT_FOUND | StatusCode::GONE => ForgeError::NotFound(operation),
        _ if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
            ForgeError::Unavailable { operation, message: format!("the server answered {}", status.as_u16()) }
        }
        _ => ForgeError::Refused { operation, status: status.as_u16(), message: details() },
    }
}

#[derive(Deserialize)]
struct User {
    login: String,
}

#[derive(Deserialize)]
struct WireComment {
    id: u64,
    user: Option<User>,
    #[serde(default)]
    body: Option<String>,
}

impl From<WireComment> for Comment {
    fn from(wire: WireComment) -> Self {
        Self { id: wire.id, author: wire.user.map(|user| user.login), body: wire.body.unwrap_or_default() }
    }
}

#[derive(Deserialize)]
struct WirePull {
    head: WireHead,
}

#[derive(Deserialize)]
struct WireHead {
    sha: String,
    #[serde(default)]
    repo: Option<WireRepository>,
}

#[derive(Deserialize)]
struct WireRepository {
    full_name: String,
}

#[derive(Deserialize)]
struct WireCheck {
    id: u64,
    #[serde(default)]
    external_id: Option<String>,
    #[serde(default)]
    status: Option<String>,
}

impl From<WireCheck> for CheckState {
    fn from(wire: WireCheck) -> Self {
        Self {
            id: wire.id,
            external_id: wire.external_id.filter(|id| !id.is_empty()),
            completed: wire.status.as_deref() == Some("completed"),
        }
    }
}

#[derive(Deserialize)]
struct WireChecks {
    check_runs: Vec<WireCheck>,
}

impl Forge for GitHub {
    async fn login(&self) -> Result<Option<String>, ForgeError> {
        match self.json::<User>(Operation::WhoAmI, Method::GET, "/user", None).await {
            Ok(user) => Ok(Some(user.login)),
            // The token of a workflow belongs to no user, and is told so in one of these ways.
            Err(
                ForgeError::Forbidden { .. }
                | ForgeError::NotFound(_)
                | ForgeError::Refused { .. }
                | ForgeError::Unreadable { .. },
            ) => Ok(None),
            Err(other) => Err(other),
        }
    }

    async fn pull(&self, number: u64) -> Result<PullState, ForgeError> {
        let path = self.path(&format!("pulls/{number}"));
        let pull: WirePull = self.json(Operation::ReadPull, Method::GET, &path, None).await?;
        Ok(PullState { head_sha: pull.head.sha, head_repository: pull.head.repo.map(|repo| repo.full_name) })
    }

    async fn comments(&self, pull: u64, page: u32) -> Result<(Vec<Comment>, bool), ForgeError> {
        let operation = Operation::ListComments;
        let path = self.path(&format!("issues/{pull}/comments?per_page={PER_PAGE}&page={page}"));
        let (headers, text) = self.call(operation, Method::GET, &path, JSON, None).await?;
        let comments: Vec<WireComment> = read(operation, &text)?;
        // The address in the header is not followed: behind a proxy it can name another host.
        let more = match headers.get("link").and_then(|link| link.to_str().ok()) {
            Some(link) => link.contains("rel=\"next\""),
            None => comments.len() >= PER_PAGE,
        };
        Ok((comments.into_iter().map(Comment::from).collect(), more))
    }

    async fn create_comment(&self, pull: u64, body: &str) -> Result<Comment, ForgeError> {
        let path = self.path(&format!("issues/{pull}/comments"));
        let body = json!({ "body": body });
        self.json(Operation::WriteComment, Method::POST, &path, Some(&body))
            .await
            .map(|c: WireComment| c.into())
    }

    async fn update_comment(&self, id: u64, body: &str) -> Result<Comment, ForgeError> {
        let path = self.path(&format!("issues/comments/{id}"));
        let body = json!({ "body": body });
        self.json(Operation::WriteComment, Method::PATCH, &path, Some(&body))
            .await
            .map(|c: WireComment| c.into())
    }

    async fn delete_comment(&self, id: u64) -> Result<(), ForgeError> {
        let path = self.path(&format!("issues/comments/{id}"));
        self.call(Operation::WriteComment, Method::DELETE, &path, JSON, None).await.map(|_| ())
    }

    async fn checks(&self, sha: &str, name: &str) -> Result<Vec<CheckState>, ForgeError> {
        let path = self.path(&format!(
            "commits/{}/check-runs?check_name={}&filter=all&per_page={PER_PAGE}",
            percent_encode(sha),
            percent_encode(name)
        ));
        let checks: WireChecks = self.json(Operation::ReadCheck, Method::GET, &path, None).await?;
        Ok(checks.check_runs.into_iter().map(CheckState::from).collect())
    }

    async fn create_check(&self, check: &NewCheck) -> Result<CheckState, ForgeError> {
        let body = json!({
            "name": check.name,
            "head_sha": check.head_sha,
            "external_id": check.external_id,
            "details_url": check.details_url,
            "status": "in_progress",
            "output": {"title": check.title, "summary": check.summary},
        });
        let path = self.path("check-runs");
        self.json(Operation::WriteCheck, Method::POST, &path, Some(&body)).await.map(|c: WireCheck| c.into())
    }

    async fn complete_check(
        &self,
        id: u64,
        conclusion: Conclusion,
        output: &CheckOutput,
    ) -> Result<CheckState, ForgeError> {
        let annotations: Vec<Value> = output.annotations.iter().map(annotation).collect();
        let body = json!({
            "status": "completed",
            "conclusion": conclusion,
            "output": {"title": output.title, "summary": output.summary, "annotations": annotations},
        });
        let path = self.path(&format!("check-runs/{id}"));
        self.json(Operation::WriteCheck, Method::PATCH, &path, Some(&body)).await.map(|c: WireCheck| c.into())
    }

    async fn entry(&self, path: &str, revision: &str) -> Result<Option<Entry>, ForgeError> {
        let operation = Operation::ReadFile;
        let parts: Vec<String> = path.split('/').map(percent_encode).collect();
        let path = self.path(&format!("contents/{}?ref={}", parts.join("/"), percent_encode(revision)));
        let found: Value = match self.json(operation, Method::GET, &path, None).await {
            Err(ForgeError::NotFound(_)) => return Ok(None),
            found => found?,
        };
        if let Value::Array(entries) = &found {
            if entries.len() >= LONGEST_FOLDER {
                let message = format!("the folder may hold more than the {LONGEST_FOLDER} files it lists");
                return Err(ForgeError::Unreadable { operation, message });
            }
            return Ok(Some(Entry::Folder(entries.iter().filter_map(name_in_folder).collect())));
        }
        match found.get("type").and_then(Value::as_str) {
            // The raw form has no limit of one megabyte and needs no decoding.
            Some("file") => {
                let (_, text) = self.call(operation, Method::GET, &path, RAW, None).await?;
                Ok(Some(Entry::File(text.into_bytes().into())))
            }
            other => {
                let kind = other.unwrap_or("nothing we know");
                let message = format!("it is a {kind} and not a file or a folder of the repository");
                Err(ForgeError::Unreadable { operation, message })
            }
        }
    }
}

fn name_in_folder(entry: &Value) -> Option<String> {
    let slash = if entry.get("type").and_then(Value::as_str) == Some("dir") { "/" } else { "" };
    Some(format!("{}{slash}", entry.get("name")?.as_str()?))
}

fn annotation(annotation: &Annotation) -> Value {
    json!({
        "path": annotation.path,
        "start_line": annotation.line.max(1),
        "end_line": annotation.line.max(1),
        "annotation_level": match annotation.level {
            Level::Error => "failure",
            Level::Warning => "warning",
            Level::Notice => "notice",
        },
        "title": annotation.title,
        "message": annotation.message,
    })
}

/// Everything but the unreserved characters of RFC 3986, so that a path segment or a query value stays one.
fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
    out
}
