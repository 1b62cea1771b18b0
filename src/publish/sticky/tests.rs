use super::*;

const US: &str = "github-actions[bot]";

fn marker(head: &str, run_id: u64, run_attempt: u32, word: &str) -> Marker {
    Marker { id: "default".into(), head_sha: head.into(), run_id, run_attempt, word: word.into() }
}

fn comment(id: u64, author: &str, body: impl Into<String>) -> Comment {
    Comment { id, author: Some(author.into()), body: body.into() }
}

fn by_us(id: u64, marker: &Marker) -> Comment {
    comment(id, US, format!("old\n\n{}", marker.render()))
}

fn action(comments: &[Comment], mine: &Marker) -> Action {
    plan(comments, US, mine, "new", "aa").action
}

#[test]
fn markers_are_read_back() {
    let mine = marker("aa", 900, 2, "fail");
    assert_eq!(mine.render(), "<!-- vera-gate:default head=aa run=900 attempt=2 word=fail -->");
    assert_eq!(Marker::parse(&format!("text\r\n{}\r\n\r\n", mine.render())), Some(mine));
    assert_eq!(Marker::parse("old\n<!-- vera-gate:default -->"), Some(marker("", 0, 0, "")));
}

#[test]
fn a_marker_counts_only_as_the_last_line() {
    let line = marker("aa", 1, 1, "pass").render();
    assert_eq!(Marker::parse(&format!("{line}\nmore")), None);
    assert_eq!(Marker::parse(&format!("> {line}")), None);
    assert_eq!(Marker::parse(&format!("look: {line}")), None);
    assert_eq!(Marker::parse("<!-- vera-gate:Bad_Id -->"), None);
    assert_eq!(Marker::parse(""), None);
}

#[test]
fn ids_cannot_end_an_html_comment() {
    assert!(Marker::is_id("nightly-2"));
    for bad in ["", "a--b", "a b", "A", "a>", &"a".repeat(41)] {
        assert!(!Marker::is_id(bad), "{bad}");
    }
}

#[test]
fn only_our_own_marked_comment_is_updated() {
    let mine = marker("aa", 900, 1, "pass");
    let old = marker("a0", 800, 1, "fail");
    let comments = [
        comment(2, "mallory", old.render()),
        comment(3, US, "another tool's comment"),
        Comment { id: 4, author: None, body: old.render() },
        by_us(5, &Marker { id: "nightly".into(), ..old.clone() }),
        by_us(4242, &old),
    ];
    assert_eq!(action(&comments, &mine), Action::Update(4242));
    assert_eq!(action(&comments[..4], &mine), Action::Create);
}

#[test]
fn duplicates_of_ours_go_and_the_oldest_stays() {
    let mine = marker("aa", 900, 1, "pass");
    let comments = [by_us(9, &mine), by_us(5, &mine), comment(6, "mallory", mine.render()), by_us(7, &mine)];
    assert_eq!(
        plan(&comments, US, &mine, "new", "aa"),
        Plan { action: Action::Update(5), remove: vec![7, 9] }
    );
}

#[test]
fn a_stale_run_writes_nothing_and_removes_nothing() {
    let mine = marker("aa", 900, 1, "pass");
    let skipped = |comments: &[Comment], head: &str| plan(comments, US, &mine, "new", head);
    let nothing = |why| Plan { action: Action::Skip(why), remove: Vec::new() };
    assert_eq!(skipped(&[], "cc"), nothing(Stale::OtherHead));
    let newer = [by_us(5, &marker("aa", 901, 1, "fail")), by_us(6, &mine)];
    assert_eq!(skipped(&newer[..1], "aa"), nothing(Stale::NewerRun));
    // Both runs created a comment at once: the older one takes back its own.
    assert_eq!(skipped(&newer, "aa"), Plan { action: Action::Skip(Stale::NewerRun), remove: vec![6] });
    // If its own is the oldest, the newer run writes to that one.
    let oldest = [by_us(4, &mine), by_us(5, &marker("aa", 901, 1, "fail"))];
    assert_eq!(skipped(&oldest, "aa"), nothing(Stale::NewerRun));
    let later_attempt = [by_us(5, &marker("aa", 900, 2, "fail"))];
    assert_eq!(skipped(&later_attempt, "aa"), nothing(Stale::NewerRun));
    // A newer run about an older commit does not count.
    assert_eq!(skipped(&[by_us(5, &marker("a0", 901, 1, "fail"))], "aa").action, Action::Update(5));
}

#[test]
fn a_run_repeated_by_hand_writes_over_a_newer_first_attempt() {
    let there = [by_us(5, &marker("aa", 901, 1, "fail"))];
    assert_eq!(action(&there, &marker("aa", 900, 2, "pass")), Action::Update(5));
}

#[test]
fn not_finished_never_hides_a_result_of_the_same_attempt() {
    let mine = marker("aa", 900, 1, "did-not-finish");
    assert_eq!(
        action(&[by_us(5, &marker("aa", 900, 1, "fail"))], &mine),
        Action::Skip(Stale::AlreadyFinished)
    );
    assert_eq!(action(&[by_us(5, &marker("aa", 900, 1, "running"))], &mine), Action::Update(5));
    assert_eq!(action(&[by_us(5, &marker("a0", 800, 1, "fail"))], &mine), Action::Update(5));
    assert_eq!(action(&[], &mine), Action::Create);
}

#[test]
fn an_equal_text_is_kept() {
    let mine = marker("aa", 900, 1, "pass");
    let body = format!("line\n\n{}", mine.render());
    let there = [comment(5, US, format!("line\r\n\r\n{}\r\n", mine.render()))];
    assert_eq!(plan(&there, US, &mine, &body, "aa").action, Action::Keep(5));
}
