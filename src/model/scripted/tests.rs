use super::*;

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
