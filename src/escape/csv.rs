//! Cells of tables that people open in a spreadsheet. Quoting is the `csv` crate's work; this is about cells that a
//! spreadsheet would run as a formula.

/// Signs with which a spreadsheet starts a formula, in their narrow and wide forms.
const FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '\u{FF1D}', '\u{FF0B}', '\u{FF0D}', '\u{FF20}'];

/// A cell that a spreadsheet shows as text: a quote in front when it would start a formula. NUL, which many readers
/// take for the end, becomes U+FFFD. [`read`] gives the text back.
pub fn cell(text: &str) -> String {
    let text = text.replace('\0', "\u{FFFD}");
    if needs_quote(&text) { format!("'{text}") } else { text }
}

/// The text of a cell written by [`cell`]; other programs' cells come back as they are.
pub fn read(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(text) if needs_quote(text) => text,
        _ => cell,
    }
}

/// Also a text that itself starts with a quote and a formula sign needs one, or reading would take it off.
fn needs_quote(text: &str) -> bool {
    // Spreadsheets skip white space in front of a formula.
    let text = text.trim_start_matches(['\'', ' ', '\n', '\u{A0}']);
    text.starts_with(FORMULA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_text() {
        assert_eq!(cell("=1+1"), "'=1+1");
        assert_eq!(cell("  @SUM(A1)"), "'  @SUM(A1)");
        assert_eq!(cell("\u{FF1D}1"), "'\u{FF1D}1");
        assert_eq!(cell("not = a formula"), "not = a formula");
        assert_eq!(cell("None"), "None");
    }

    #[test]
    fn reading_gives_the_text_back() {
        for text in ["=x", "'=x", "''=x", "plain", "'quoted'", "- list", "", "'"] {
            assert_eq!(read(&cell(text)), text);
        }
    }
}
