//! Certificates and proxies of a company network.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use vera_gate::config::model::ModelSettings;
use vera_gate::model::meter::Budget;
use vera_gate::model::{Certificates, EnvLookup, Failure, ModelContext, Role, connect};

use super::server::{Server, reply};
use super::{connected, context, request, settings};

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls").join(name)
}

pub(crate) const REPLY: &str = r#"{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}"#;

/// Serves a number of connections over TLS and gives its port.
pub(crate) fn tls_server(connections: usize) -> u16 {
    let chain: Vec<_> =
        CertificateDer::pem_file_iter(fixture("server.pem")).unwrap().collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            // A client that does not trust us leaves in the middle of the handshake.
            if stream.read(&mut [0; 8192]).is_ok() {
                drop(stream.write_all(&reply(200, REPLY)));
                stream.conn.send_close_notify();
                drop(stream.flush());
            }
        }
    });
    port
}

fn with_env(values: &[(&str, &str)]) -> ModelContext {
    let (mut context, _) = context(Budget::default());
    context.env = EnvLookup::fixed(values.iter().copied());
    context
}

/// B52: an unknown authority is a clear error that is not tried again; `SSL_CERT_FILE`, `SSL_CERT_DIR` and the
/// setting make it known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_companys_authority_can_be_trusted() {
    let ca = fixture("ca.pem");
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(&ca, folder.path().join("ca.pem")).unwrap();
    let settings = settings("llama-cpp", "m", format!("https://127.0.0.1:{}/v1", tls_server(4)));

    let error = connected(Role::Judge, &settings, &with_env(&[])).reply(&request(1)).await.unwrap_err();
    assert_eq!((error.failure, error.attempts), (Failure::Tls, 1));
    assert!(
        error.message.contains("untrusted certificate") && error.message.contains("SSL_CERT_FILE"),
        "{error}"
    );
    assert!(error.failure.stops_run());

    let by_file = with_env(&[("SSL_CERT_FILE", ca.to_str().unwrap())]);
    let by_folder = with_env(&[("SSL_CERT_DIR", folder.path().to_str().unwrap())]);
    let mut by_setting = with_env(&[]);
    by_setting.ca_cert = Some(Certificates::read("ca.pem", &std::fs::read(&ca).unwrap()).unwrap());
    for context in [by_file, by_folder, by_setting] {
        let exchange = connected(Role::Judge, &settings, &context).reply(&request(1)).await.unwrap();
        assert_eq!(exchange.text, "ok");
    }
}

#[tokio::test]
async fn a_certificate_file_that_is_none_is_said_before_the_first_call() {
    let settings = settings("llama-cpp", "m", "https://127.0.0.1:1/v1".to_owned());
    for value in ["/nowhere/ca.pem", env!("CARGO_MANIFEST_DIR").to_owned().as_str()] {
        let problems = connect(Role::Judge, &settings, &with_env(&[("SSL_CERT_FILE", value)])).unwrap_err();
        assert!(problems.to_string().contains("certificate"), "{problems}");
    }
}

/// A proxy from the environment is used; `NO_PROXY` goes past a dead one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxies_come_from_the_environment() {
    let proxy = Server::sequence(vec![reply(200, REPLY)]).await;
    let address = format!("http://127.0.0.1:{}", proxy.port());
    let through = with_env(&[("HTTP_PROXY", &address)]);
    let away = ModelSettings {
        max_retries: Some(0),
        ..settings("llama-cpp", "m", "http://chat.invalid/v1".to_owned())
    };
    connected(Role::Judge, &away, &through).reply(&request(1)).await.unwrap();
    assert_eq!(proxy.seen()[0].path, "http://chat.invalid/v1/chat/completions");

    let server = Server::sequence(vec![reply(200, REPLY)]).await;
    let dead = [("http_proxy", "http://127.0.0.1:9")];
    let near = ModelSettings { base_url: Some(server.url("v1")), ..away };
    let error = connected(Role::Judge, &near, &with_env(&dead)).reply(&request(1)).await.unwrap_err();
    assert_eq!(error.failure, Failure::Transport);
    let past = with_env(&[dead[0], ("NO_PROXY", "127.0.0.1")]);
    assert_eq!(connected(Role::Judge, &near, &past).reply(&request(1)).await.unwrap().text, "ok");
}
