//! Plain tables for a terminal: columns as wide as their widest cell.

use std::fmt;

use crate::escape::terminal;

/// A table. The first columns are texts and stand left, the others stand right.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    texts: usize,
}

impl Table {
    /// A table with these heads.
    pub(super) fn new<S: Into<String>>(heads: impl IntoIterator<Item = S>) -> Self {
        let mut table = Self { rows: Vec::new(), texts: 1 };
        table.row(heads);
        table
    }

    /// A table of texts without heads.
    pub(super) fn of_texts() -> Self {
        Self { rows: Vec::new(), texts: usize::MAX }
    }

    /// So many columns are texts.
    pub(super) fn texts(self, texts: usize) -> Self {
        Self { texts, ..self }
    }

    /// Adds a row. Cells may come from inputs: they are escaped.
    pub(super) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells = cells.into_iter().map(|cell| terminal::line(&cell.into()).into_string());
        self.rows.push(cells.collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
                if column > 0 {
                    line.push_str("  ");
                }
                if column < self.texts {
                    line.extend([cell.as_str(), &pad]);
                } else {
                    line.extend([pad.as_str(), cell]);
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A number with three decimals, or a dash.
pub(super) fn three(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_hostile_cells_stay_on_their_line() {
        let mut table = Table::new(["name", "n"]);
        table.row(["é\n\u{1b}[31m", "10"]);
        table.row(["long name", "7"]);
        let shown = table.to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[2]), (3, "name        n", "long name   7"));
        assert!(!shown.contains('\u{1b}'));
        assert_eq!(lines[1].chars().count(), lines[2].chars().count());
    }
}
