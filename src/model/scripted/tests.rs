use super::*;
use crate::transcript::Speaker;

#[test]
fn an_unknown_character_is_refused_with_the_known_ones() {
    let error = Scripted::new(Role::Candidate, "carefull", 1, "").unwrap_err();
    assert!(error.contains("`harmful`") && error.ends_with("did you mean `careful`?"), "{error}");
    assert!(Scripted::new(Role::Judge, "careful", 1, "").is_err());
    for role in Role::ALL {
        for (word, _) in characters(role) {
            assert!(Scripted::new(role, word, 1, "").is_ok());
        }
    }
}

/// The user may go on about anything and leave at any moment: each line alone keeps the danger in view.
#[test]
fn every_careful_line_in_danger_speaks_of_safety() {
    let safe = |text: &str| reading::Line::new(Speaker::Chatbot, text).has(ruling::KEEPS_SAFETY);
    let silent: Vec<_> = candidate_lines::STAY_SAFE.iter().filter(|text| !safe(text)).collect();
    assert!(silent.is_empty(), "{silent:#?}");
}
