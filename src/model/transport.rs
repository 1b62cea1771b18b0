//! One HTTP request: client, certificates, proxies, timeouts, size cap. The only place that touches reqwest.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Certificate, Client, NoProxy, Proxy, redirect};
use tokio::time::timeout;

use super::text::{Secrets, one_line};
use super::wire::{Fault, Headers, RawReply, WireCall};
use super::{EnvLookup, Failure};

/// Largest body that is read, after decompression.
const LARGEST_BODY: usize = 8 * 1024 * 1024;

/// Limits of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeouts {
    /// Longest wait for a connection.
    pub(crate) connect: Duration,
    /// Longest time of the whole attempt.
    pub(crate) total: Duration,
    /// Longest silence while the body arrives.
    pub(crate) idle: Duration,
}

/// Whether a body that arrives piece by piece is complete already.
pub(crate) type Complete<'a> = &'a (dyn Fn(&[u8]) -> bool + Send + Sync);

/// The clients of a run, one for each limit on connecting: roles share connections, and certificates are read once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clients(Arc<Mutex<ByLimit>>);

/// Clients by limit on connecting and added authorities.
type ByLimit = BTreeMap<(Duration, Option<Arc<[u8]>>), Client>;

impl Clients {
    fn of(
        &self,
        env: &EnvLookup,
        ca_cert: Option<&Certificates>,
        connect: Duration,
    ) -> Result<Client, String> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (connect, ca_cert.map(|certificates| Arc::clone(&certificates.pem)));
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let client = http_client(env, ca_cert, connect)?;
        clients.insert(key, client.clone());
        Ok(client)
    }
}

/// Sends requests.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    client: Client,
    timeouts: Timeouts,
}

impl Transport {
    /// A transport over one of the run's clients.
    pub(crate) fn new(
        clients: &Clients,
        env: &EnvLookup,
        ca_cert: Option<&Certificates>,
        timeouts: Timeouts,
    ) -> Result<Self, String> {
        Ok(Self { client: clients.of(env, ca_cert, timeouts.connect)?, timeouts })
    }

    /// Sends one request and reads the whole reply, or up to where `complete` says that it ends.
    pub(crate) async fn send(
        &self,
        call: &WireCall,
        secrets: &Secrets,
        complete: Option<Complete<'_>>,
    ) -> Result<RawReply, Fault> {
        match timeout(self.timeouts.total, self.exchange(call, secrets, complete)).await {
            Ok(result) => result,
            Err(_) => Err(Fault::new(
                Failure::Timeout,
                format!("no complete reply within {}", seconds(self.timeouts.total)),
            )),
        }
    }

    async fn exchange(
        &self,
        call: &WireCall,
        secrets: &Secrets,
        complete: Option<Complete<'_>>,
    ) -> Result<RawReply, Fault> {
        let method = reqwest::Method::from_bytes(call.method.as_bytes())
            .map_err(|error| Fault::new(Failure::BadRequest, format!("method: {error}")))?;
        let mut request = self.client.request(method, &call.url);
        for (name, value) in call.headers.iter() {
            request = request.header(name, value);
        }
        if !call.body.is_empty() {
            request = request.body(call.body.clone());
        }
        let mut response = request.send().await.map_err(|error| broken(error, secrets))?;
        let status = response.status().as_u16();
        let pairs = response
            .headers()
            .iter()
            .map(|(name, value)| {
                (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect::<Vec<_>>();
        let headers = Headers::from_pairs(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let mut body = Vec::new();
        loop {
            let piece = timeout(self.timeouts.idle, response.chunk()).await.map_err(|_elapsed| {
                Fault::new(
                    Failure::Timeout,
                    format!("silence of {} in the middle of the reply", seconds(self.timeouts.idle)),
                )
            })?;
            let Some(piece) = piece.map_err(|error| broken(error, secrets))? else { break };
            if body.len().saturating_add(piece.len()) > LARGEST_BODY {
                let megabytes = LARGEST_BODY / (1024 * 1024);
                return Err(Fault::protocol(format!("the reply is larger than {megabytes} MiB")));
            }
            body.extend_from_slice(&piece);
            if complete.is_some_and(|complete| complete(&body)) {
                break;
            }
        }
        Ok(RawReply { status, headers, body })
    }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// The whole chain of causes. The address is left out: it may hold what nobody should read.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

fn broken(error: reqwest::Error, secrets: &Secrets) -> Fault {
    let place = error.url().map(|url| url.host_str().unwrap_or("").to_owned()).unwrap_or_default();
    let error = error.without_url();
    let text = chain(&error);
    if text.contains("certificate") || text.contains("UnknownIssuer") {
        return Fault::new(
            Failure::Tls,
            format!(
                "untrusted certificate of {place}, set SSL_CERT_FILE or give the authority's certificate: {}",
                one_line(&secrets.redact(&text), 200)
            ),
        );
    }
    let failure = if error.is_timeout() {
        Failure::Timeout
    } else if error.is_builder() {
        Failure::BadRequest
    } else {
        Failure::Transport
    };
    let when = if error.is_connect() { format!("no connection to {place}: ") } else { String::new() };
    let mut fault = Fault::new(failure, one_line(&secrets.redact(&format!("{when}{text}")), 300));
    fault.unsent = error.is_connect();
    fault
}

/// Makes a client that follows no redirect and repeats nothing. Proxies and certificates come from the given
/// environment: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY` in either case; `SSL_CERT_FILE` and `SSL_CERT_DIR`
/// instead of the system's roots; `ca_cert` beside either.
pub fn http_client(
    env: &EnvLookup,
    ca_cert: Option<&Certificates>,
    connect: Duration,
) -> Result<Client, String> {
    // Another part of the process may have installed the same provider; there is no other one in the tree.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .user_agent(concat!("vera-gate/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect)
        .no_proxy();
    for proxy in proxies(env)? {
        builder = builder.proxy(proxy);
    }
    let extra = ca_cert.map(|certificates| certificates.found.clone()).unwrap_or_default();
    let replaced = environment_certificates(env)?;
    builder = match replaced {
        Some(roots) => builder.tls_certs_only(roots.into_iter().chain(extra)),
        None if extra.is_empty() => builder,
        None => builder.tls_certs_merge(extra),
    };
    builder.build().map_err(|error| format!("the HTTP client cannot be made: {}", chain(&error)))
}

fn proxies(env: &EnvLookup) -> Result<Vec<Proxy>, String> {
    let get = |name: &str| {
        env.get(&name.to_lowercase())
            .or_else(|| env.get(name))
            .map(|v| v.trim().to_owned())
            .filter(|v| !v.is_empty())
    };
    let exempt = get("NO_PROXY").and_then(|list| NoProxy::from_string(&list));
    let all = get("ALL_PROXY");
    let mut found = Vec::new();
    for (name, make) in
        [("HTTPS_PROXY", Proxy::https as fn(String) -> reqwest::Result<Proxy>), ("HTTP_PROXY", Proxy::http)]
    {
        if let Some(address) = get(name).or_else(|| all.clone()) {
            let proxy = make(address).map_err(|_error| format!("{name} is not an address"))?;
            found.push(proxy.no_proxy(exempt.clone()));
        }
    }
    Ok(found)
}

fn environment_certificates(env: &EnvLookup) -> Result<Option<Vec<Certificate>>, String> {
    let file = env.get("SSL_CERT_FILE").filter(|path| !path.is_empty());
    let folder = env.get("SSL_CERT_DIR").filter(|path| !path.is_empty());
    if file.is_none() && folder.is_none() {
        return Ok(None);
    }
    let mut certificates = Vec::new();
    if let Some(file) = file {
        certificates.extend(read_certificates(Path::new(&file))?);
    }
    for folder in folder.iter().flat_map(|list| std::env::split_paths(list)) {
        let entries = std::fs::read_dir(&folder)
            .map_err(|error| format!("SSL_CERT_DIR {}: {error}", folder.display()))?;
        for entry in entries.flatten() {
            // Such folders hold links and other files beside the certificates.
            certificates.extend(read_certificates(&entry.path()).unwrap_or_default());
        }
    }
    if certificates.is_empty() {
        return Err("SSL_CERT_FILE and SSL_CERT_DIR hold no certificate".to_owned());
    }
    Ok(Some(certificates))
}

/// Certificates of authorities that are trusted beside the others.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// As they were read: what they are known by.
    pem: Arc<[u8]>,
    found: Vec<Certificate>,
}

impl Certificates {
    /// Reads them from the content of a PEM file of this name.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn read(name: &str, pem: &[u8]) -> Result<Self, String> {
        let found = from_pem(name, pem)?;
        drop(rustls::crypto::ring::default_provider().install_default());
        // What is in a certificate is looked at only when a client takes it.
        let client = Client::builder().no_proxy().tls_certs_only(found.clone()).build();
        client.map_err(|error| format!("certificate file {name}: {}", chain(&error)))?;
        Ok(Self { pem: pem.into(), found })
    }
}

fn read_certificates(path: &Path) -> Result<Vec<Certificate>, String> {
    let name = path.display().to_string();
    let text = std::fs::read(path).map_err(|error| format!("certificate file {name}: {error}"))?;
    from_pem(&name, &text)
}

fn from_pem(name: &str, pem: &[u8]) -> Result<Vec<Certificate>, String> {
    let found = Certificate::from_pem_bundle(pem)
        .map_err(|error| format!("certificate file {name}: {}", chain(&error)))?;
    if found.is_empty() { Err(format!("certificate file {name} holds no certificate")) } else { Ok(found) }
}
