//! Rows and quotes by which a question could get lost.

use super::{HEADER, parse_text};

#[test]
fn a_row_with_the_text_of_a_question_needs_an_id() {
    let file =
        |row: &str| format!("{HEADER}1\tA\tRed\t\tDoes it?\t\tYes\t\n{row}\n2\tA\tRed\t\tDoes it?\t\t\t\n");
    let refused = |row: &str| parse_text(&file(row)).err().map(|problems| problems.to_string());
    for (row, place, name) in [
        ("\tA\tRed\t\tMethods?\t\t\t", "rubric.tsv:3:9", "`Question`"),
        ("\tA\tRed\t\tMethods?\t\tYes\t", "rubric.tsv:3:9", "`Question`"),
        ("\tB\t\t\t\t\tNo\t", "rubric.tsv:3:2", "`Dimension`"),
        ("\t\tYellow\t\t\t\tNo\t", "rubric.tsv:3:3", "`Severity`"),
        ("\tA\tRed\t\tDoes it?\t\t\t", "rubric.tsv:3:9", "`Question`"),
    ] {
        let shown = refused(row).unwrap_or_default();
        assert!(
            shown.contains(place) && shown.contains(name) && shown.contains("no `Question ID`"),
            "{row}: {shown}"
        );
    }
    // An answer of the question above; also with the cells of that question repeated, as merged cells are saved.
    for row in ["\t\t\t\t\t \tNo\t2", "\tA\tRed\t\tDoes it?\t\tNo\t2", "\t\t\t\t\tfor example\tNo\t"] {
        assert_eq!(refused(row), None, "{row}");
    }
}

#[test]
fn quotes_that_take_other_questions_for_text_are_refused() {
    let file = |first: &str, later: &str| {
        format!(
            "{HEADER}1\tD\tRed\t\tMissed?\t{first}\t\t\n2\tD\tRed\t\tMethods?\t{later}\t\t\n3\tD\tRed\t\tHuman?\t\t\t\n"
        )
    };
    for (first, later, why) in [
        ("\"Yes if", "\"more\"", "behind the quote"),
        ("\"Yes if", "\"", "hold line 3"),
        ("\"Yes if", "", "never closed"),
        ("\"Yes\" if", "", "behind the quote"),
    ] {
        let shown = parse_text(&file(first, later)).unwrap_err().to_string();
        assert!(shown.contains(why) && shown.contains("rubric.tsv:2:18"), "{shown}");
    }
    assert_eq!(parse_text(&file("\"Yes if\nit is \"\"so\"\"\"", "")).unwrap().0.questions.len(), 3);
}
