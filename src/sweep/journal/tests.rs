use super::*;
use crate::model::{CallId, Message, Outcome};

fn plan(rubric: &str) -> PlanKey {
    PlanKey::new(BTreeMap::from([
        ("rubric".to_owned(), rubric.to_owned()),
        ("runs".to_owned(), "2".to_owned()),
    ]))
}

/// Says how often it was called.
#[derive(Debug)]
struct Counting {
    identity: ModelIdentity,
    calls: Mutex<usize>,
}

impl Counting {
    fn new() -> Arc<Self> {
        let identity = ModelIdentity { provider: "p".into(), model: "m".into(), settings: String::new() };
        Arc::new(Self { identity, calls: Mutex::new(0) })
    }
}

impl ChatModel for Counting {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        let mut calls = self.calls.lock().unwrap();
        *calls += 1;
        let text = format!("reply {calls} to {}", request.id.step);
        Box::pin(std::future::ready(Ok(Exchange::bare(Outcome::Reply, text))))
    }
}

fn request(step: &str, text: &str) -> ChatRequest {
    ChatRequest {
        id: CallId { conversation: "c".to_owned(), step: step.to_owned(), draw: 1 },
        role: Role::Candidate,
        system: None,
        messages: vec![Message::user(text)],
        answer: None,
        cache_group: None,
        output_scale: 1,
        question: None,
        wanted: crate::model::Wanted::Always,
    }
}

fn open(folder: &Path, plan: &PlanKey) -> Result<Arc<Journal>, JournalError> {
    Journal::open(folder, plan, CancellationToken::new()).map(Arc::new)
}

fn ask(journal: &Arc<Journal>, model: &Arc<Counting>, step: &str, text: &str) -> String {
    let meter =
        Arc::new(Meter::new(crate::model::meter::Budget::default(), crate::model::clock::Clock::real()));
    let journaled = Journaled::new(
        Arc::clone(model) as Arc<dyn ChatModel>,
        Arc::clone(journal),
        meter,
        CancellationToken::new(),
    );
    futures::executor::block_on(journaled.reply(&request(step, text))).unwrap().text
}

#[test]
fn a_finished_call_is_never_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let model = Counting::new();
    let journal = open(folder.path(), &plan("a")).unwrap();
    let first = ask(&journal, &model, "turn-1", "hi");
    assert_eq!(ask(&journal, &model, "turn-1", "hi"), first);
    drop(journal);
    let journal = open(folder.path(), &plan("a")).unwrap();
    assert_eq!(journal.found, 1);
    assert_eq!(ask(&journal, &model, "turn-1", "hi"), first);
    assert_eq!(*model.calls.lock().unwrap(), 1);
    ask(&journal, &model, "turn-1", "another text is another call");
    assert_eq!(*model.calls.lock().unwrap(), 2);
}

#[test]
fn whatever_is_torn_off_the_end_only_costs_the_last_call() {
    let folder = tempfile::tempdir().unwrap();
    let model = Counting::new();
    let journal = open(folder.path(), &plan("a")).unwrap();
    for step in ["turn-1", "turn-2", "turn-3"] {
        ask(&journal, &model, step, "hi");
    }
    drop(journal);
    let path = folder.path().join(FILE_NAME);
    let whole = std::fs::read(&path).unwrap();
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).collect();
    for length in (0..=whole.len()).rev().step_by(7).chain([1]) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let journal = open(folder.path(), &plan("a")).unwrap();
        let kept = ends.iter().filter(|end| **end <= length).count().saturating_sub(1);
        assert_eq!((journal.found, journal.broken_lines), (kept, 0), "{length} bytes left");
        ask(&journal, &model, "turn-9", "hi");
        drop(journal);
        assert_eq!(open(folder.path(), &plan("a")).unwrap().found, kept + 1, "{length} bytes left");
    }
}

#[test]
fn a_flipped_byte_costs_its_line_only_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let model = Counting::new();
    let journal = open(folder.path(), &plan("a")).unwrap();
    ask(&journal, &model, "turn-1", "hi");
    ask(&journal, &model, "turn-2", "hi");
    drop(journal);
    let path = folder.path().join(FILE_NAME);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 20;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let journal = open(folder.path(), &plan("a")).unwrap();
    assert_eq!((journal.found, journal.broken_lines), (1, 1));
}

#[test]
fn another_plan_is_refused_with_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), &plan("a")).unwrap());
    let error = open(folder.path(), &plan("b")).unwrap_err().to_string();
    assert!(error.contains("rubric: a -> b") && !error.contains("runs"), "{error}");
    assert_eq!(Journal::plan_of(folder.path()), Some(plan("a")));
}

#[test]
fn two_runs_cannot_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let _first = open(folder.path(), &plan("a")).unwrap();
    assert!(matches!(open(folder.path(), &plan("a")), Err(JournalError::InUse { .. })));
}

#[test]
fn a_foreign_file_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    std::fs::write(&path, "somebody's notes\n").unwrap();
    assert!(matches!(open(folder.path(), &plan("a")), Err(JournalError::NotAJournal { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody's notes\n");
}
