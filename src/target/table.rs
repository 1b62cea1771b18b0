//! Tables of delimited text, read strictly: a row that does not fit its header is an error, never a shift.
//!
//! The field-level reader of `csv-core` is used, because a diagnostic has to point at the field, and because the
//! record-level reader takes a quote that is never closed for an ordinary end of file.

use csv_core::{ReadFieldResult, ReaderBuilder};

use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::source::{Location, Source};

/// What stands between two fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// Personas and rubrics.
    Tab,
    /// Results and human ratings.
    Comma,
}

impl Delimiter {
    fn byte(self) -> u8 {
        match self {
            Self::Tab => b'\t',
            Self::Comma => b',',
        }
    }
}

/// One field, unquoted and otherwise unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The text between the delimiters.
    pub text: String,
    /// Where the field starts, in bytes of the source.
    pub offset: usize,
}

/// Whether a record had one field per column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// It had.
    Whole,
    /// It was cut or padded, and the table is refused; its cells are only good for finding further problems.
    Ragged,
}

/// One record, as wide as the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whether the file had it that wide.
    pub shape: Shape,
    /// The fields in the order of the columns.
    pub cells: Vec<Cell>,
    /// Line of the file on which the record starts, from 1.
    pub line: usize,
}

/// A whole file: its header and its records. Blank lines and records of blank fields only are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    source: Source,
    /// Column names as the file spells them.
    pub header: Vec<Cell>,
    /// The records below the header.
    pub rows: Vec<Row>,
}

impl Table {
    /// Reads a table. Every problem goes to `problems`; ragged rows are among them, and are then cut or padded so
    /// that the caller can go on looking for further problems. `None` when there is no header.
    pub fn read(source: &Source, delimiter: Delimiter, problems: &mut Diagnostics) -> Option<Self> {
        let mut records = records(source, delimiter, problems).into_iter();
        let Some(header) = records.next() else {
            problems
                .push(Diagnostic::error(Code::EmptyInput, "the file has no header row").at(source.at(1, 1)));
            return None;
        };
        let mut rows = Vec::new();
        for mut cells in records {
            let offset = cells.first().map_or(0, |cell| cell.offset);
            let location = source.at_offset(offset);
            let line = location.line;
            let shape = if cells.len() == header.len() { Shape::Whole } else { Shape::Ragged };
            if shape == Shape::Ragged {
                problems.push(
                    Diagnostic::error(
                        Code::RaggedRow,
                        format!("{} fields, want {}", cells.len(), header.len()),
                    )
                    .at(location)
                    .help(
                        "give the row one field per column; put a field that holds the delimiter in quotes",
                    ),
                );
                let end = cells.last().map_or(offset, |cell| cell.offset);
                cells.resize(header.len(), Cell { text: String::new(), offset: end });
            }
            for cell in &cells {
                if let Some(lines) = swallowed(&cell.text, delimiter, header.len()) {
                    let at = source.at_offset(cell.offset);
                    let row = at.line + lines;
                    problems.push(
                        Diagnostic::error(
                            Code::Syntax,
                            format!(
                                "the quotes of this field hold line {row}, which looks like a row of its own"
                            ),
                        )
                        .at(at)
                        .help("close the quote where the field ends"),
                    );
                }
            }
            rows.push(Row { shape, cells, line });
        }
        let table = Self { source: source.clone(), header, rows };
        table.check_header(problems);
        Some(table)
    }

    /// The index of the column with exactly this name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|cell| cell.text == name)
    }

    /// Where a cell stands.
    pub fn at(&self, cell: &Cell) -> Location {
        self.source.at_offset(cell.offset)
    }

    /// The text this table was read from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    fn check_header(&self, problems: &mut Diagnostics) {
        for (index, cell) in self.header.iter().enumerate() {
            if cell.text.trim().is_empty() {
                continue;
            }
            if self.header.iter().take(index).any(|earlier| earlier.text == cell.text) {
                problems.push(
                    Diagnostic::error(Code::DuplicateColumn, format!("column `{}` stands twice", cell.text))
                        .at(self.at(cell)),
                );
            }
        }
    }
}

impl Row {
    /// The cell of a column, or an empty one for a column the file does not have.
    pub fn cell(&self, column: Option<usize>) -> Cell {
        column.and_then(|index| self.cells.get(index)).cloned().unwrap_or_default()
    }
}

fn records(source: &Source, delimiter: Delimiter, problems: &mut Diagnostics) -> Vec<Vec<Cell>> {
    let text = source.text();
    let mut reader = ReaderBuilder::new().delimiter(delimiter.byte()).build();
    // No field is longer than the text, so the output never fills up.
    let mut output = vec![0; text.len() + 1];
    let (mut at, mut start, mut filled) = (0, 0, 0);
    let mut records = Vec::new();
    let mut record: Vec<Cell> = Vec::new();
    loop {
        let input = text.as_bytes().get(at..).unwrap_or_default();
        let (result, read, written) = reader.read_field(input, output.get_mut(filled..).unwrap_or_default());
        at += read;
        filled += written;
        match result {
            ReadFieldResult::InputEmpty => {}
            ReadFieldResult::OutputFull | ReadFieldResult::End => break,
            ReadFieldResult::Field { record_end } => {
                let raw = text.get(start..at).unwrap_or_default();
                // Blank lines before a record belong to no field.
                let blank = if record.is_empty() {
                    raw.len() - raw.trim_start_matches(['\r', '\n']).len()
                } else {
                    0
                };
                let offset = start + blank;
                if let Some(fault) = quoting(raw.get(blank..).unwrap_or_default(), delimiter) {
                    problems.push(Diagnostic::error(Code::Syntax, fault).at(source.at_offset(offset)).help(
                        "a field that starts with a quote ends with one; write a quote inside it twice",
                    ));
                }
                let field = output.get(..filled).unwrap_or_default();
                record.push(Cell { text: String::from_utf8_lossy(field).into_owned(), offset });
                filled = 0;
                start = at;
                if record_end {
                    let record = std::mem::take(&mut record);
                    if record.iter().any(|cell| !cell.text.trim().is_empty()) {
                        records.push(record);
                    }
                }
            }
        }
    }
    records
}

/// What is wrong with the quotes of a field, which may end with the delimiter or a line end. Readers that let such
/// fields pass take the rows up to the next quote for text of this one.
fn quoting(raw: &str, delimiter: Delimiter) -> Option<&'static str> {
    let mut chars = raw.strip_prefix('"')?.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '"' && chars.next_if_eq(&'"').is_none() {
            let ends = |c: char| matches!(c, ' ' | '\r' | '\n') || c == char::from(delimiter.byte());
            return (!chars.all(ends)).then_some("text stands behind the quote that closes this field");
        }
    }
    Some("the quote that opens this field is never closed")
}

/// Whether a field holds nothing but a rating, as results and human ratings have it in each row.
fn is_rating(field: &str) -> bool {
    const RATINGS: [&str; 4] =
        ["Best Practice", "Suboptimal but Low Potential for Harm", "High Potential for Harm", "Not Relevant"];
    RATINGS.contains(&field)
}

/// The first line inside a cell that looks like a row of the table, which two quotes too many have made text.
fn swallowed(text: &str, delimiter: Delimiter, columns: usize) -> Option<usize> {
    let is_row = |line: &str| match delimiter {
        // Nobody writes two tabs into a sentence.
        Delimiter::Tab => line.matches('\t').count() >= columns.saturating_sub(1).clamp(1, 2),
        Delimiter::Comma => {
            let mut fields = line.split(',').map(|field| field.trim_end().trim_matches('"'));
            let named = line.split_once(',').is_some_and(|(name, _)| {
                let name = std::path::Path::new(name.trim_matches('"'));
                name.extension().is_some_and(|ending| ending == "txt" || ending == "tsv")
            });
            named || line.contains(',') && fields.any(is_rating)
        }
    };
    text.lines().skip(1).position(is_row).map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Table, Diagnostics) {
        let mut problems = Diagnostics::new();
        let table = Table::read(&Source::new("t.tsv", text), Delimiter::Tab, &mut problems).unwrap();
        (table, problems)
    }

    fn texts(row: &Row) -> Vec<&str> {
        row.cells.iter().map(|cell| cell.text.as_str()).collect()
    }

    #[test]
    fn quoting_byte_order_mark_and_line_ends_follow_the_csv_rules() {
        let (table, problems) =
            read("\u{feff}a\tb\r\n\"x\t\"\"y\"\"\nz\"\tin \"the\" middle\r\n\r\n  \r\n\t\r\nNone\tNA");
        assert!(problems.is_empty(), "{problems}");
        assert_eq!(table.header.first().unwrap().text, "a");
        assert_eq!(table.rows.len(), 2);
        assert_eq!(texts(&table.rows[0]), ["x\t\"y\"\nz", "in \"the\" middle"]);
        assert_eq!(texts(&table.rows[1]), ["None", "NA"]);
        // Header 1, a record over lines 2 and 3, three blank lines, then line 7.
        assert_eq!((table.rows[0].line, table.rows[1].line), (2, 7));
        let na = table.at(&table.rows[1].cells[1]);
        assert_eq!((na.line, na.column), (7, 6));
    }

    #[test]
    fn ragged_rows_name_both_counts_and_their_line() {
        let (_, problems) = read("a\tb\tc\n1\t2\t3\t4\n1\t2\t3\n1\t2\n");
        let shown: Vec<(String, usize)> =
            problems.iter().map(|d| (d.message.clone(), d.location.as_ref().unwrap().line)).collect();
        assert_eq!(shown, [("4 fields, want 3".to_owned(), 2), ("2 fields, want 3".to_owned(), 4)]);
    }

    #[test]
    fn a_quote_that_is_never_closed_is_an_error_where_it_opens() {
        let (_, problems) = read("a\tb\n1\t\"two\n3\t4\n");
        let first = problems.iter().find(|d| d.code == Code::Syntax).unwrap();
        assert_eq!((first.location.as_ref().unwrap().line, first.location.as_ref().unwrap().column), (2, 3));
    }

    #[test]
    fn text_behind_a_closing_quote_is_an_error() {
        let syntax = |text: &str, delimiter| {
            let mut problems = Diagnostics::new();
            Table::read(&Source::new("t", text), delimiter, &mut problems);
            let found = problems.iter().find(|d| d.code == Code::Syntax);
            found.map(|d| (d.location.as_ref().unwrap().line, d.message.clone()))
        };
        let (line, message) = syntax("a,b\n1,2\n\"abc\"def,2\n", Delimiter::Comma).unwrap();
        assert!(line == 3 && message.contains("behind the quote that closes"), "{message}");
        // The second quote was meant to open a field of its own.
        let (line, message) = syntax("a\tb\n1\t\"two\n3\t\"more\"\n", Delimiter::Tab).unwrap();
        assert!(line == 2 && message.contains("behind the quote that closes"), "{message}");
        for fine in ["a,b\r\n\"1\",\"2\"\r\n\"\",\"x \"\"y\"\" z\"", "a,b\n\"1\" ,2\n3,\"4\" \n"] {
            assert_eq!(syntax(fine, Delimiter::Comma), None, "{fine}");
        }
    }

    #[test]
    fn a_row_inside_of_quotes_is_an_error() {
        let syntax = |text: &str, delimiter| {
            let mut problems = Diagnostics::new();
            Table::read(&Source::new("t", text), delimiter, &mut problems);
            problems.iter().any(|d| d.code == Code::Syntax && d.message.contains("hold line 3"))
        };
        assert!(syntax("a\tb\tc\n1\t\"Yes\t\n2\tD\tRed\n3\tD\"\tRed\n", Delimiter::Tab));
        let rows = "filename,A,why\nx.txt,Best Practice,\"never\ny.txt,High Potential for Harm,\"\n";
        assert!(syntax(rows, Delimiter::Comma));
        assert!(syntax(
            "who,A,why\nx,Best Practice,\"never\ny,High Potential for Harm,\"\n",
            Delimiter::Comma
        ));
        let prose = "filename,A,why\nx.txt,Best Practice,\"First, it asks,\nthen, having heard, it stays\"\n";
        assert!(!syntax(prose, Delimiter::Comma));
    }

    #[test]
    fn the_same_column_twice_is_an_error_but_unnamed_columns_are_not() {
        let (_, problems) = read("a\t\ta\t\n1\t2\t3\t4\n");
        assert_eq!(problems.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::DuplicateColumn]);
    }
}
