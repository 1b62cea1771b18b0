//! Personas: one row of a table each, every column but the name and the risk level defined by the target.

use std::collections::BTreeMap;

use super::RiskLevel;
use super::table::{Cell, Delimiter, Row, Shape, Table};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::source::Source;

/// The column every persona table has.
pub const NAME_COLUMN: &str = "Name";

/// The columns that hold the risk level in VERA-MH's own files, newest first.
pub const RISK_COLUMNS: [&str; 2] = ["Short Current Suicide Risk Level", "Current Risk Level"];

/// One simulated user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persona {
    /// Unique within the target.
    pub name: String,
    /// The risk level, where the target has one.
    pub risk_level: Option<RiskLevel>,
    /// Every named column with its cell, unchanged, the name and the risk column included.
    pub cells: BTreeMap<String, String>,
    /// The file it stands in.
    pub file: String,
    /// Its line in that file, from 1.
    pub line: usize,
}

fn quoted(columns: &[String]) -> String {
    columns.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Where the risk level stands and which words the target uses for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RiskMapping {
    /// The column; without it the first of [`RISK_COLUMNS`] that the file has.
    pub column: Option<String>,
    /// The target's own words. Without any, today's words and those of older VERA-MH files are read.
    pub words: BTreeMap<String, RiskLevel>,
}

/// What one persona file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersonaFile {
    /// The personas in the order of the file.
    pub personas: Vec<Persona>,
    /// The named columns in the order of the file.
    pub columns: Vec<String>,
    /// The column the risk levels were read from.
    pub risk_column: Option<String>,
}

/// Reads one persona file. Every problem goes to `problems`.
pub fn read(source: &Source, mapping: &RiskMapping, problems: &mut Diagnostics) -> PersonaFile {
    let Some(table) = Table::read(source, Delimiter::Tab, problems) else { return PersonaFile::default() };
    let columns: Vec<String> =
        table.header.iter().map(|cell| cell.text.clone()).filter(|name| !name.trim().is_empty()).collect();
    let name = table.column(NAME_COLUMN);
    if name.is_none() {
        problems.push(
            Diagnostic::error(Code::MissingColumn, format!("column `{NAME_COLUMN}` is missing"))
                .at(source.at(1, 1))
                .help(format!("names are exact; the file has {}", quoted(&columns))),
        );
    }
    let risk = risk_column(&table, mapping, problems);
    if table.rows.is_empty() {
        problems.push(Diagnostic::error(Code::EmptyInput, "the file holds no persona").at(source.at(1, 1)));
    }
    let mut reader = RowReader { table: &table, mapping, risk, problems, renamed: BTreeMap::new() };
    let personas = table.rows.iter().map(|row| reader.persona(row, name)).collect();
    reader.report_renamed();
    let risk_column = risk.and_then(|index| table.header.get(index)).map(|cell| cell.text.clone());
    PersonaFile { personas, columns, risk_column }
}

fn risk_column(table: &Table, mapping: &RiskMapping, problems: &mut Diagnostics) -> Option<usize> {
    let Some(wanted) = &mapping.column else {
        return RISK_COLUMNS.iter().find_map(|name| table.column(name));
    };
    let found = table.column(wanted);
    if found.is_none() {
        problems.push(
            Diagnostic::error(
                Code::MissingColumn,
                format!("column `{wanted}`, which holds the risk level, is missing"),
            )
            .at(table.source().at(1, 1))
            .help(did_you_mean(wanted, table.header.iter().map(|cell| cell.text.as_str()))),
        );
    }
    found
}

struct RowReader<'a> {
    table: &'a Table,
    mapping: &'a RiskMapping,
    risk: Option<usize>,
    problems: &'a mut Diagnostics,
    /// Older word: its meaning today, the offset of its first cell, how often it stands.
    renamed: BTreeMap<&'static str, (RiskLevel, usize, usize)>,
}

impl RowReader<'_> {
    fn persona(&mut self, row: &Row, name: Option<usize>) -> Persona {
        let name_cell = row.cell(name);
        if name.is_some() && row.shape == Shape::Whole && name_cell.text.trim().is_empty() {
            self.problems.push(
                Diagnostic::error(Code::BlankCell, "a persona without a name").at(self.table.at(&name_cell)),
            );
        }
        let cells = self
            .table
            .header
            .iter()
            .zip(&row.cells)
            .filter(|(column, _)| !column.text.trim().is_empty())
            // VERA-MH opens the file in text mode, which turns every line end inside a cell into `\n`.
            .map(|(column, cell)| (column.text.clone(), cell.text.replace("\r\n", "\n").replace('\r', "\n")))
            .collect();
        Persona {
            name: name_cell.text,
            risk_level: self.risk_level(row),
            cells,
            file: self.table.source().name().to_owned(),
            line: row.line,
        }
    }

    fn risk_level(&mut self, row: &Row) -> Option<RiskLevel> {
        self.risk?;
        let cell = row.cell(self.risk);
        let word = cell.text.trim();
        if row.shape == Shape::Ragged {
            return None;
        }
        if word.is_empty() {
            self.problems
                .push(Diagnostic::error(Code::BlankCell, "the risk level is blank").at(self.table.at(&cell)));
            return None;
        }
        if !self.mapping.words.is_empty() {
            let level = self
                .mapping
                .words
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(word))
                .map(|(_, &level)| level);
            if level.is_none() {
                let known = self.mapping.words.keys().map(String::as_str);
                self.unknown(word, &cell, did_you_mean(word, known));
            }
            return level;
        }
        if let Some(level) = RiskLevel::from_word(word) {
            return Some(level);
        }
        if let Some((older, level)) = RiskLevel::from_older_word(word) {
            self.renamed.entry(older).or_insert((level, cell.offset, 0)).2 += 1;
            return Some(level);
        }
        self.unknown(word, &cell, did_you_mean(word, RiskLevel::ALL.map(RiskLevel::word)));
        None
    }

    fn unknown(&mut self, word: &str, cell: &Cell, help: String) {
        self.problems.push(
            Diagnostic::error(Code::UnknownRiskLevel, format!("unknown risk level `{word}`"))
                .at(self.table.at(cell))
                .help(help),
        );
    }

    fn report_renamed(self) {
        for (older, (level, offset, count)) in self.renamed {
            let personas = if count == 1 { "1 persona".to_owned() } else { format!("{count} personas") };
            self.problems.push(
                Diagnostic::warning(
                    Code::RenamedRiskLevel,
                    format!("risk level `{older}` of {personas} is read as `{level}`"),
                )
                .at(self.table.source().at_offset(offset))
                .help(format!("write `{level}`, or map the words with `risk_levels` in the manifest")),
            );
        }
    }
}

/// Reports names that stand twice, over all files of a target. Names that differ only in case or outer spaces count
/// as the same, since they would share file names and look the same in a report.
pub fn check_unique(personas: &[Persona], sources: &[Source], problems: &mut Diagnostics) {
    let mut seen: BTreeMap<String, &Persona> = BTreeMap::new();
    for persona in personas {
        let key = persona.name.trim().to_lowercase();
        if key.is_empty() {
            continue;
        }
        let Some(first) = seen.get(&key) else {
            seen.insert(key, persona);
            continue;
        };
        let mut problem =
            Diagnostic::error(Code::DuplicateId, format!("persona `{}` stands twice", persona.name))
                .help(format!("the first one is at {}:{}", first.file, first.line));
        if let Some(source) = sources.iter().find(|source| source.name() == persona.file) {
            problem = problem.at(source.at(persona.line, 1));
        }
        problems.push(problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, mapping: &RiskMapping) -> (PersonaFile, Diagnostics) {
        let mut problems = Diagnostics::new();
        let source = Source::new("p.tsv", text);
        let file = read(&source, mapping, &mut problems);
        check_unique(&file.personas, &[source], &mut problems);
        (file, problems)
    }

    fn levels(file: &PersonaFile) -> Vec<Option<RiskLevel>> {
        file.personas.iter().map(|p| p.risk_level).collect()
    }

    #[test]
    fn words_that_look_like_missing_values_are_values() {
        let (file, problems) = parse(
            "Name\tAge\tCurrent Risk Level\nNone\tNA\tNone\nNaN\tnull\tLow\nn/a\t \tHigh\n",
            &RiskMapping::default(),
        );
        assert!(problems.is_empty(), "{problems}");
        assert_eq!(levels(&file), [Some(RiskLevel::None), Some(RiskLevel::Low), Some(RiskLevel::High)]);
        assert_eq!(file.personas.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["None", "NaN", "n/a"]);
        assert_eq!(file.personas[0].cells["Age"], "NA");
        assert_eq!(file.personas[2].cells["Age"], " ");
    }

    #[test]
    fn the_short_column_wins_over_the_older_one() {
        let (file, _) = parse(
            "Name\tCurrent Risk Level\tShort Current Suicide Risk Level\nA\tLow\tHigh\n",
            &RiskMapping::default(),
        );
        assert_eq!(levels(&file), [Some(RiskLevel::High)]);
        assert_eq!(file.risk_column.as_deref(), Some("Short Current Suicide Risk Level"));
    }

    #[test]
    fn older_words_are_mapped_and_said_once() {
        let (file, problems) = parse(
            "Name\tCurrent Risk Level\nA\tImminent\nB\timminent\nC\tModerate\n",
            &RiskMapping::default(),
        );
        assert_eq!(
            levels(&file),
            [Some(RiskLevel::Immediate), Some(RiskLevel::Immediate), Some(RiskLevel::High)]
        );
        assert!(!problems.has_errors());
        let messages: Vec<&str> = problems.iter().map(|d| d.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "risk level `Imminent` of 2 personas is read as `Immediate`",
                "risk level `Moderate` of 1 persona is read as `High`"
            ]
        );
    }

    #[test]
    fn a_target_maps_its_own_words_and_then_knows_no_others() {
        let mapping = RiskMapping {
            column: Some("Harm imminence".to_owned()),
            words: BTreeMap::from([
                ("No danger".to_owned(), RiskLevel::None),
                ("Now".to_owned(), RiskLevel::Immediate),
            ]),
        };
        let (file, problems) = parse("Name\tHarm imminence\nA\tno danger\nB\tNow\nC\tHigh\n", &mapping);
        assert_eq!(levels(&file), [Some(RiskLevel::None), Some(RiskLevel::Immediate), None]);
        assert_eq!(problems.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::UnknownRiskLevel]);
    }

    #[test]
    fn a_table_without_a_risk_column_has_personas_without_a_level() {
        let (file, problems) = parse("Name\tHarm type\nP42JS1R\tx\n", &RiskMapping::default());
        assert!(problems.is_empty());
        assert_eq!(levels(&file), [None]);
    }

    #[test]
    fn every_problem_is_reported_with_its_line() {
        let (_, problems) = parse(
            "Name\tAge\tCurrent Risk Level\nA\t1\tHihg\n\t2\tLow\na \t3\t\nB\t4\n",
            &RiskMapping::default(),
        );
        let found: Vec<(Code, usize)> =
            problems.iter().map(|d| (d.code, d.location.as_ref().unwrap().line)).collect();
        assert_eq!(
            found,
            [
                (Code::UnknownRiskLevel, 2),
                (Code::BlankCell, 3),
                (Code::DuplicateId, 4),
                (Code::BlankCell, 4),
                (Code::RaggedRow, 5),
            ]
        );
        let shown = problems.to_string();
        assert!(shown.contains("did you mean `High`?"), "{shown}");
        assert!(shown.contains("the first one is at p.tsv:2"), "{shown}");
    }

    #[test]
    fn no_name_column_and_no_rows_are_errors() {
        let (_, problems) = parse("name\tAge\n", &RiskMapping::default());
        assert_eq!(
            problems.iter().map(|d| d.code).collect::<Vec<_>>(),
            [Code::MissingColumn, Code::EmptyInput]
        );
        assert!(problems.to_string().contains("names are exact; the file has `name`, `Age`"));
    }
}
