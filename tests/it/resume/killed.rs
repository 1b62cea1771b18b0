//! SIGKILL at random moments.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::{Place, SWEEP, endpoint, name_of, same_results, until};
use crate::providers::server::Seen;

const KILLS: usize = 50;
/// Calls that may be out when the process dies.
const AT_ONCE: usize = 4;

type Counts = BTreeMap<String, usize>;

/// How many answers of each request a journal holds in whole lines. Second looks ask the same thing again.
fn finished(journal: &str, clean: &Counts) -> Counts {
    let whole = journal.rfind('\n').map_or("", |end| &journal[..end]);
    clean
        .keys()
        .map(|name| (name.clone(), whole.lines().filter(|line| line.contains(name)).count()))
        .collect()
}

fn counted(seen: &[Seen]) -> Counts {
    let mut counts = Counts::new();
    for seen in seen {
        *counts.entry(name_of(seen)).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_kills_change_no_rating_and_repeat_no_finished_call() {
    let more = format!("{SWEEP}concurrency: {{ calls: {AT_ONCE} }}\n");
    let server = endpoint(4).await;
    let undisturbed = Place::new(&server, &more);
    undisturbed.completes(&["run", "--run", "r"]);
    let clean = counted(&server.seen());
    let needed: usize = clean.values().sum();
    assert!(needed > 100, "{needed}");

    let mut rng = ChaCha8Rng::seed_from_u64(50);
    let (mut kills, mut repeated, mut lives) = (0, 0, 0);
    while kills < KILLS {
        lives += 1;
        let place = Place::new(&server, &more);
        let journal = place.path("r/journal.jsonl");
        let start = server.count();
        let (mut kept, mut checked) = (Counts::new(), start);
        loop {
            let mut child = place.start(&["run", "--run", "r"]);
            let came = until(&server, server.count() + rng.random_range(0..12), &mut child);
            std::thread::sleep(Duration::from_millis(rng.random_range(0..6)));
            let ended = !came || kills == KILLS || child.try_wait().unwrap().is_some();
            if !ended {
                child.kill().unwrap();
                kills += 1;
            }
            let output = child.wait_with_output().unwrap();
            // What the killed process had sent may still be on its way, and is not the next one's.
            let mut before = usize::MAX;
            while server.count() != before {
                before = server.count();
                std::thread::sleep(Duration::from_millis(20));
            }
            // What was in the journal when the process started was not asked for again.
            let seen = server.seen();
            for (name, asked) in counted(&seen[checked..]) {
                let all = *clean.get(&name).expect("a call that no clean run makes");
                let known = kept.get(&name).copied().unwrap_or(0);
                assert!(known + asked <= all, "finished calls were repeated after kill {kills}");
            }
            checked = seen.len();
            kept = finished(&std::fs::read_to_string(&journal).unwrap_or_default(), &clean);
            if ended {
                assert!(matches!(output.status.code(), Some(0 | 1)), "{}", super::said(&output));
                break;
            }
        }
        assert_eq!(kept, clean, "every call is in the journal, once");
        repeated += server.count() - start - needed;
        same_results(&undisturbed.path("r"), &place.path("r"));
        assert_eq!(undisturbed.json("r/run.json")["usage"], place.json("r/run.json")["usage"]);
    }
    assert!(repeated <= kills * AT_ONCE, "{repeated} calls repeated after {kills} kills");
    assert!(lives < KILLS, "the kills hit runs that were under way");
}
