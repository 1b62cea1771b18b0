//! A raw HTTP server on loopback: every byte of a reply is chosen, so that faults of the connection are real.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

/// One request as it came in.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: serde_json::Value,
    pub(crate) raw: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The first path segment.
    pub(crate) fn case(&self) -> &str {
        self.path.split(['/', '?']).nth(1).unwrap_or("")
    }
}

/// What the server does with a connection once it has read a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Writes bytes.
    Write(Vec<u8>),
    /// Waits before it goes on.
    Wait(Duration),
    /// Stays silent until the client leaves.
    Hang,
    /// Writes a piece of this many bytes each 20 ms.
    Drip(usize, Vec<u8>),
    /// Ends the connection with a reset.
    Reset,
}

type Script = dyn Fn(usize, &Seen) -> Vec<Act> + Send + Sync;

/// The server; it stops when it is dropped.
pub(crate) struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    _stop: DropGuard,
}

impl Server {
    /// Starts on a free port. The script gets the number of the request with this first path segment, from 1.
    pub(crate) async fn start(script: impl Fn(usize, &Seen) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let stop = CancellationToken::new();
        let script: Arc<Script> = Arc::new(script);
        let (log, stopped) = (Arc::clone(&seen), stop.clone());
        tokio::spawn(stopped.run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, script) = (Arc::clone(&log), Arc::clone(&script));
                // A client that leaves early is part of some cases.
                tokio::spawn(async move { drop(serve(stream, &log, &*script).await) });
            }
        }));
        Self { port, seen, _stop: stop.drop_guard() }
    }

    /// Answers the n-th request with the n-th reply, and the last one for ever.
    pub(crate) async fn sequence(replies: Vec<Vec<u8>>) -> Self {
        Self::start(move |n, _| vec![Act::Write(replies[(n - 1).min(replies.len() - 1)].clone())]).await
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many requests have come.
    pub(crate) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// The requests whose first path segment is this.
    pub(crate) fn of(&self, case: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.case() == case).collect()
    }
}

async fn serve(stream: TcpStream, log: &Mutex<Vec<Seen>>, script: &Script) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        if line == "\r\n" {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let mut words = head[0].split(' ');
    let (method, path) = (words.next().unwrap_or("").to_owned(), words.next().unwrap_or("").to_owned());
    let headers: Vec<(String, String)> = head[1..]
        .iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let mut seen = Seen { method, path, headers, body: serde_json::Value::Null, raw: String::new() };
    let length: usize = seen.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    seen.body = serde_json::from_slice(&body).unwrap_or_default();
    seen.raw = String::from_utf8_lossy(&body).into_owned();
    let acts = {
        let mut log = log.lock().unwrap();
        let number = log.iter().filter(|other| other.case() == seen.case()).count() + 1;
        log.push(seen.clone());
        script(number, &seen)
    };
    for act in acts {
        match act {
            Act::Write(bytes) => stream.write_all(&bytes).await?,
            Act::Wait(time) => tokio::time::sleep(time).await,
            Act::Hang => drop(stream.read(&mut [0]).await?),
            Act::Drip(size, bytes) => {
                for piece in bytes.chunks(size) {
                    stream.write_all(piece).await?;
                    stream.flush().await?;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            Act::Reset => {
                stream.flush().await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
                stream.get_ref().set_zero_linger()?;
                return Ok(());
            }
        }
    }
    stream.flush().await?;
    stream.shutdown().await
}

/// A reply with a body and its length.
pub(crate) fn reply(status: u16, body: impl AsRef<[u8]>) -> Vec<u8> {
    reply_with(status, &[("content-type", "application/json")], body)
}

/// A reply with these headers, a body and its length.
pub(crate) fn reply_with(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let length = body.as_ref().len().to_string();
    let headers: Vec<_> = headers.iter().copied().chain([("content-length", length.as_str())]).collect();
    raw(status, &headers, body)
}

/// A reply with exactly these headers.
pub(crate) fn raw(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status} X\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"connection: close\r\n\r\n");
    bytes.extend_from_slice(body.as_ref());
    bytes
}
