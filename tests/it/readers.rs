//! Damaged copies of the built-in files through every reader; the same functions serve the fuzzer.

use proptest::prelude::*;

#[path = "../../fuzz/readers.rs"]
mod shared;

/// What damages a text: where, how much is lost, and what stands there then.
fn damage() -> impl Strategy<Value = Vec<(f64, usize, String)>> {
    let pieces = prop_oneof![
        Just(String::new()),
        Just("\t".to_owned()),
        Just("\n".to_owned()),
        Just("\"".to_owned()),
        Just("\r\n".to_owned()),
        Just("\u{feff}".to_owned()),
        Just("END".to_owned()),
        Just("ASSIGN_END".to_owned()),
        Just("NOT_RELEVANT>>".to_owned()),
        Just("{".to_owned()),
        Just("- &a [*a]".to_owned()),
        Just(".nan".to_owned()),
        Just("chatbot: ".to_owned()),
        "\\PC{0,12}",
        "[0-9]{1,25}",
    ];
    prop::collection::vec((0.0..1.0_f64, 0..40_usize, pieces), 1..6)
}

fn damaged(text: &str, damages: &[(f64, usize, String)]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for (place, lost, piece) in damages {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
        let from = (letters.len() as f64 * place) as usize;
        let to = (from + lost).min(letters.len());
        letters.splice(from..to, piece.chars());
    }
    letters.into_iter().collect()
}

const RESULTS: &str = "filename,run_id,judge_model,judge_instance,judge_id,Detects Potential Risk,Detects Potential Risk_yes_question_id,Confirms Risk,Confirms Risk_yes_question_id\n\
a1b2c3_Ana_m_run1.txt,r,j,1,0,Best Practice,,High Potential for Harm,11\n\
a1b2c4_Ben_m_run1.txt,r,j,1,0,Not Relevant,,\"Suboptimal but Low Potential for Harm\",9\n\
a1b2c4_Ben_m_run1.txt,r,j,2,1,Best Practice,,,\n";

const CONVERSATION: &str =
    "user: i cannot sleep\n\nchatbot: What keeps you awake?\nTell me.\n\nuser: it is all too much\n";

const REPLIES: [&str; 4] = [
    "{\"answer\": \"Yes\", \"reasoning\": \"it asks \\\"are you safe\\\"\"}",
    "```json\n{\"answer\": \"No\", \"reasoning\": \"\"}\n```",
    "REASONING: it never asks\nANSWER: Yes",
    "I would say {\"result\": {\"answer\": \"No\", \"reasoning\": \"x\"}} here",
];

fn transcript_file() -> String {
    let source = vera_gate::source::Source::new("a1b2c3_Ana_m_run1.txt", CONVERSATION);
    let read = vera_gate::transcript::read_text(&source, "a1b2c3_Ana_m_run1.txt").unwrap();
    vera_gate::transcript::write_jsonl(&read).unwrap()
}

proptest! {
    #[test]
    fn tables_of_a_target(damages in damage()) {
        shared::rubric(&damaged(include_str!("../../rubric/si/rubric.tsv"), &damages));
        shared::personas(&damaged(include_str!("../../personas/si.tsv"), &damages));
    }

    #[test]
    fn results_files(damages in damage()) {
        shared::results(&damaged(RESULTS, &damages));
    }

    #[test]
    fn yaml_files(damages in damage()) {
        shared::config(&damaged(include_str!("../../templates/default.yaml"), &damages));
        shared::thresholds(&damaged(include_str!("../../thresholds/template.yaml"), &damages));
    }

    #[test]
    fn transcripts(damages in damage()) {
        shared::transcript(&damaged(CONVERSATION, &damages));
        shared::transcript(&damaged(&transcript_file(), &damages));
    }

    #[test]
    fn replies_of_a_judge(damages in damage()) {
        for reply in REPLIES {
            shared::answer(&damaged(reply, &damages));
        }
    }
}

/// The undamaged files are read, so that the tests above do damage something that works.
#[test]
fn undamaged_files_are_read() {
    use vera_gate::source::Source;
    assert!(vera_gate::matrix::read_results(&Source::new("results.csv", RESULTS)).is_ok());
    assert!(
        vera_gate::config::Config::parse(&Source::new(
            "x.yaml",
            include_str!("../../templates/default.yaml")
        ))
        .is_ok()
    );
    assert!(vera_gate::transcript::read_jsonl(&Source::new("x.jsonl", transcript_file())).is_ok());
    for reply in REPLIES {
        let question = &shared::SI.rubric.questions[1];
        assert!(vera_gate::judge::parse(reply, question).is_some(), "{reply}");
    }
}
