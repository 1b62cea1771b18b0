//! A fifth of all requests goes wrong in every way that providers have, and the matrix is that of a run without
//! faults.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::{Place, answer, endpoint, name_of, same_results};
use crate::providers::server::{Act, Seen, Server, raw, reply, reply_with};

/// The kinds of faults.
const KINDS: usize = 9;

fn fault(kind: usize, seen: &Seen) -> Vec<Act> {
    let whole = answer(seen).to_string();
    let half = &whole[..whole.len() / 2];
    let bytes = match kind {
        0 => reply_with(
            429,
            &[("retry-after-ms", "300")],
            r#"{"error": {"message": "slow down", "type": "requests"}}"#,
        ),
        1 => reply(429, r#"{"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}"#),
        2 => reply(500, r#"{"error": {"message": "The server had an error", "type": "server_error"}}"#),
        3 => reply(503, "upstream connect error"),
        4 => return vec![Act::Reset],
        // More bytes are promised than come.
        5 => raw(200, &[("content-type", "application/json"), ("content-length", "100000")], half),
        6 => reply(200, half),
        7 => reply(200, r#"{"choices": []}"#),
        _ => return vec![Act::Write(b"HTTP/1.1 200 X\r\ncontent-le".to_vec()), Act::Hang],
    };
    vec![Act::Write(bytes)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fifth_of_faults_changes_no_result() {
    let sweep = "sweep: { sample: 6, max_messages: 6, curtail: never }\n";
    let good = endpoint(0).await;
    let clean = Place::new(&good, sweep);
    clean.completes(&["run", "--run", "r"]);
    let needed = good.count();

    // Every fifth request that comes for the first time fails, in turn in each way; the second try is served. So
    // each kind occurs and no call runs out of tries by chance.
    let state: Mutex<(BTreeMap<String, usize>, usize)> = Mutex::default();
    let bad = Server::start(move |_, seen| {
        let mut state = state.lock().unwrap();
        let tries = state.0.entry(name_of(seen)).or_default();
        *tries += 1;
        if *tries > 1 {
            return vec![Act::Write(reply(200, answer(seen).to_string()))];
        }
        state.1 += 1;
        if state.1.is_multiple_of(5) {
            let kind = state.1 / 5 % KINDS;
            return fault(kind, seen);
        }
        vec![Act::Wait(Duration::from_millis(1)), Act::Write(reply(200, answer(seen).to_string()))]
    })
    .await;
    let place = Place::new(&bad, sweep);
    let config = std::fs::read_to_string(place.path("vera-gate.yaml")).unwrap();
    // A stall is over when nothing more comes for this long.
    let impatient = config.replace("max_retry_wait: 20s", "max_retry_wait: 20s, timeout: 2s");
    std::fs::write(place.path("vera-gate.yaml"), impatient).unwrap();
    place.completes(&["run", "--run", "r"]);
    let faults = bad.count() - needed;
    assert!(faults >= needed / 5 - 1 && faults >= 3 * KINDS, "{faults} faults in {needed} calls");
    same_results(&clean.path("r"), &place.path("r"));
    let usage = |place: &Place, count: &str| {
        let run = place.json("r/run.json");
        run["usage"].as_array().unwrap().iter().map(|row| row[count].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(usage(&clean, "calls"), usage(&place, "calls"));
    assert_eq!(usage(&place, "attempts"), bad.count() as u64, "every request is in the books");
}

/// An endpoint that takes six calls at once, while 64 may go out. Each refusal that was not expected yet halves what
/// goes out; without that every wait would end in a rush that is refused again. A call may be refused five times, until
/// four go out; none of that counts as a retry of the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_takes_few_calls_at_once_is_not_overrun() {
    const TAKES: usize = 6;
    const TIME: Duration = Duration::from_millis(20);
    let sweep = "sweep: { sample: 24, max_messages: 4, curtail: never }\n";
    let good = endpoint(0).await;
    let clean = Place::new(&good, sweep);
    clean.completes(&["run", "--run", "r"]);
    let taken: Mutex<Vec<Instant>> = Mutex::default();
    let busy = Server::start(move |_, seen| {
        let mut taken = taken.lock().unwrap();
        taken.retain(|since| since.elapsed() < TIME);
        if taken.len() >= TAKES {
            let headers = [("retry-after-ms", "250")];
            return vec![Act::Write(reply_with(429, &headers, r#"{"error": {"message": "too many"}}"#))];
        }
        taken.push(Instant::now());
        vec![Act::Wait(TIME), Act::Write(reply(200, answer(seen).to_string()))]
    })
    .await;
    let place = Place::new(&busy, sweep);
    let config = std::fs::read_to_string(place.path("vera-gate.yaml")).unwrap();
    let patient = config.replace("max_retry_wait: 20s", "max_retry_wait: 20s, max_retries: 1");
    std::fs::write(place.path("vera-gate.yaml"), patient).unwrap();
    place.completes(&["run", "--run", "r"]);
    same_results(&clean.path("r"), &place.path("r"));
    let refused = busy.count() - good.count();
    // The first rush may be refused whole but for what is taken, which is 58; after it a refusal is rare.
    assert!((1..80).contains(&refused), "{refused} refusals");
}
