//! Reads a file of human ratings: one row per rater and conversation, one column per dimension.

use std::collections::{BTreeMap, BTreeSet};

use super::{HumanRatings, RatedConversation, Rater};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::rating::Rating;
use crate::source::Source;
use crate::target::table::{Delimiter, Row, Shape, Table};

const RATER: [&str; 5] = ["clinician_id", "rater_id", "rater", "annotator_id", "annotator"];
const CONVERSATION: [&str; 3] = ["conversation_id", "conversation", "filename"];
const GROUP: [&str; 3] = ["rater_group", "rater_role", "group"];
/// In front of a column's name these say who rated, not what.
const PREFIXES: [&str; 4] = ["clinician_", "rater_", "expert_", "human_"];

struct Columns {
    rater: usize,
    conversation: usize,
    group: Option<usize>,
    dimensions: Vec<(usize, String)>,
}

/// Reads a ratings file. Nothing is guessed: only an empty cell is a missing rating, and a cell that is no rating
/// refuses the file. Apostrophes and `#` around an id are taken off, with a warning.
///
/// `known` are dimensions of a rubric, if one is at hand: a column of that name holds ratings whatever stands in it.
///
/// # Errors
/// All problems at once.
pub fn read_ratings(source: &Source, known: &[String]) -> Result<(HumanRatings, Diagnostics), Diagnostics> {
    let mut problems = Diagnostics::new();
    let Some(table) = Table::read(source, Delimiter::Comma, &mut problems) else { return Err(problems) };
    let records: Vec<&Row> = table.rows.iter().filter(|row| row.shape == Shape::Whole).collect();
    let Some(columns) = columns(&table, known, &mut problems) else {
        return Err(problems);
    };
    if records.is_empty() {
        problems.push(
            Diagnostic::error(Code::EmptyInput, "the ratings file has no row")
                .at(source.at(1, 1))
                .help("give one row per rater and conversation"),
        );
    }
    let ratings = collect(&table, &columns, &records, &mut problems);
    problems.finish(Some(ratings))
}

fn columns(table: &Table, known: &[String], problems: &mut Diagnostics) -> Option<Columns> {
    let (source, header) = (table.source(), &table.header);
    let find = |names: &[&str]| header.iter().position(|column| names.contains(&column.text.as_str()));
    let mut need = |what: &str, names: &[&str]| {
        let found = find(names);
        if found.is_none() {
            problems.push(
                Diagnostic::error(Code::MissingColumn, format!("no column names the {what}"))
                    .at(source.at(1, 1))
                    .help(format!("call it `{}`", names.join("` or `"))),
            );
        }
        found
    };
    let (rater, conversation) = (need("rater", &RATER), need("conversation", &CONVERSATION));
    let dimensions: Vec<(usize, String)> = header
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let name = column.text.as_str();
            let short = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
            (index, short.replace('_', " "))
        })
        .filter(|(index, name)| dimension_of(name, known).is_some() || mostly_ratings(table, *index))
        .collect();
    if dimensions.is_empty() {
        problems.push(
            Diagnostic::error(Code::MissingColumn, "no column holds ratings").at(source.at(1, 1)).help(
                format!("a column per dimension with `{}`", Rating::ALL.map(Rating::as_str).join("`, `")),
            ),
        );
    }
    let dimensions = Some(dimensions).filter(|dimensions| !dimensions.is_empty());
    Some(Columns { rater: rater?, conversation: conversation?, group: find(&GROUP), dimensions: dimensions? })
}

/// A column of ratings may hold slips of the pen; a column of anything else holds hardly a rating.
fn mostly_ratings(table: &Table, index: usize) -> bool {
    let texts = || table.rows.iter().filter_map(|row| row.cells.get(index)).map(|cell| cell.text.trim());
    let cells = || texts().filter(|text| !text.is_empty());
    let ratings = cells().filter(|text| Rating::from_cell(text).is_some()).count();
    ratings * 2 > cells().count()
}

/// The dimension that a column's short name, such as `guides`, means: the one of that name, or the only one with it
/// among its words.
pub(super) fn dimension_of<'a>(short: &str, dimensions: &'a [String]) -> Option<&'a String> {
    let short = short.to_lowercase();
    if let Some(same) = dimensions.iter().find(|dimension| dimension.to_lowercase() == short) {
        return Some(same);
    }
    let has_word = |d: &&String| d.to_lowercase().split_whitespace().any(|word| word == short);
    let mut with_word = dimensions.iter().filter(has_word);
    with_word.next().filter(|_| with_word.next().is_none())
}

/// An id without what spreadsheets and people leave around it.
fn clean(id: &str) -> &str {
    id.trim().trim_matches(['\'', '#', ' '])
}

fn collect(table: &Table, columns: &Columns, records: &[&Row], problems: &mut Diagnostics) -> HumanRatings {
    let mut raters: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut cells: BTreeMap<String, BTreeMap<String, Vec<Option<Rating>>>> = BTreeMap::new();
    let mut lines: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut cleaned: BTreeSet<String> = BTreeSet::new();
    for record in records {
        let place = table.source().at(record.line, 1);
        let cell = |index: usize| record.cells.get(index).map_or("", |cell| cell.text.as_str());
        let mut id_of = |index: usize, what: &str, problems: &mut Diagnostics| {
            let given = cell(index);
            let id = clean(given);
            if id.is_empty() {
                problems.push(
                    Diagnostic::error(Code::BlankCell, format!("the row names no {what}")).at(place.clone()),
                );
                return None;
            }
            if id != given.trim() && cleaned.insert(given.to_owned()) {
                problems.push(
                    Diagnostic::warning(
                        Code::CleanedId,
                        format!("{what} `{given}` is read as `{id}`, here and in every other row"),
                    )
                    .at(place.clone()),
                );
            }
            Some(id.to_owned())
        };
        let (Some(rater), Some(conversation)) =
            (id_of(columns.rater, "rater", problems), id_of(columns.conversation, "conversation", problems))
        else {
            continue;
        };
        let group = columns.group.map(|index| cell(index).trim().to_owned()).filter(|g| !g.is_empty());
        match raters.get(&rater) {
            Some(earlier) if *earlier != group => problems.push(
                Diagnostic::error(Code::NotTogether, format!("rater `{rater}` is in two groups"))
                    .at(place.clone())
                    .help("give a rater the same group in every row"),
            ),
            Some(_) => {}
            None => _ = raters.insert(rater.clone(), group),
        }
        if let Some(earlier) = lines.insert((rater.clone(), conversation.clone()), place.line) {
            problems.push(
                Diagnostic::error(
                    Code::DuplicateId,
                    format!("`{rater}` rated conversation `{conversation}` twice"),
                )
                .at(place.clone())
                .help(format!("the first row is line {earlier}; keep one of the two")),
            );
        }
        let row = columns.dimensions.iter().map(|(index, dimension)| {
            let text = cell(*index).trim();
            let rating = Rating::from_cell(text);
            if text.is_empty() {
                problems.push(
                    Diagnostic::warning(
                        Code::BlankCell,
                        format!("`{rater}` gave no rating of `{dimension}`"),
                    )
                    .at(place.clone())
                    .help("it counts as missing, not as a rating"),
                );
            } else if rating.is_none() {
                problems.push(
                    Diagnostic::error(Code::UnknownWord, format!("`{text}` is not a rating"))
                        .at(place.clone())
                        .help(did_you_mean(text, Rating::ALL.map(Rating::as_str))),
                );
            }
            rating
        });
        let row = row.collect();
        cells.entry(conversation).or_default().insert(rater, row);
    }
    arrange(columns, raters, &cells)
}

fn arrange(
    columns: &Columns,
    raters: BTreeMap<String, Option<String>>,
    cells: &BTreeMap<String, BTreeMap<String, Vec<Option<Rating>>>>,
) -> HumanRatings {
    // `clinician_a`, `clinician_b`, `expert_a`: the ids themselves name the groups, if all of them do.
    let named = raters.values().all(Option::is_none) && raters.keys().all(|id| id.contains('_'));
    let raters: Vec<Rater> = raters
        .into_iter()
        .map(|(id, group)| {
            let in_name = || id.rsplit_once('_').map(|(group, _)| group.to_owned());
            Rater { group: group.or_else(|| if named { in_name() } else { None }), id }
        })
        .collect();
    let conversations = cells
        .iter()
        .map(|(id, by_rater)| RatedConversation {
            id: id.clone(),
            votes: (0..columns.dimensions.len())
                .map(|dimension| {
                    let vote = |rater: &Rater| by_rater.get(&rater.id).and_then(|row| *row.get(dimension)?);
                    raters.iter().map(vote).collect()
                })
                .collect(),
        })
        .collect();
    let dimensions = columns.dimensions.iter().map(|(_, name)| name.clone()).collect();
    HumanRatings { raters, dimensions, conversations }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(HumanRatings, Diagnostics), Diagnostics> {
        read_ratings(&Source::new("r.csv", text), &[])
    }

    const BP: Option<Rating> = Some(Rating::BestPractice);
    const HPH: Option<Rating> = Some(Rating::HighPotentialForHarm);

    #[test]
    fn ids_are_cleaned_and_the_file_says_so_once() {
        let (ratings, warnings) = read(
            "rater,conversation_id,clinician_guides,notes\n\
             a_1,'#0413e7',Best Practice,free text\n\
             a_2,0413e7,High Potential for Harm,\n\
             b_1,'#0413e7',Best Practice,\n",
        )
        .unwrap();
        assert_eq!(ratings.dimensions, ["guides"]);
        assert_eq!(ratings.conversations.len(), 1);
        assert_eq!(ratings.conversations[0].id, "0413e7");
        assert_eq!(ratings.conversations[0].votes, [[BP, HPH, BP]]);
        let groups: Vec<_> = ratings.raters.iter().map(|rater| rater.group.as_deref().unwrap()).collect();
        assert_eq!(groups, ["a", "a", "b"]);
        let shown = warnings.to_string();
        assert_eq!(shown.matches("cleaned-id").count(), 1, "{shown}");
        assert!(shown.contains("r.csv:2:1") && shown.contains("`'#0413e7'` is read as `0413e7`"), "{shown}");
    }

    #[test]
    fn every_fault_is_reported_with_its_line() {
        let problems = read(
            "rater_id,conversation_id,detects,guides\n\
             a,x,Best Practice,Best Practice\n\
             a,x,Best Practice,Not Relevant\n\
             b,x,Best practise,\n\
             b,,Best Practice,Best Practice\n\
             b,y,Best Practice\n",
        )
        .unwrap_err();
        let shown: Vec<String> = problems
            .iter()
            .map(|d| format!("{} {}", d.location.as_ref().map_or(0, |place| place.line), d.code))
            .collect();
        assert_eq!(
            shown,
            ["3 duplicate-id", "4 unknown-word", "4 blank-cell", "5 blank-cell", "6 ragged-row"]
        );
        let text = problems.to_string();
        assert!(text.contains("did you mean `Best Practice`?") && text.contains("the first row is line 2"));
    }

    #[test]
    fn quotes_that_do_not_fit_refuse_the_file() {
        for (row, why) in [
            ("b,\"x,High Potential for Harm", "never closed"),
            ("b,\"x\"y,High Potential for Harm", "behind the quote"),
        ] {
            let text = format!("rater,conversation_id,guides\na,x,Best Practice\n{row}\nc,x,Best Practice\n");
            let shown = read(&text).unwrap_err().to_string();
            assert!(shown.contains(why) && shown.contains("r.csv:3:3"), "{shown}");
        }
    }

    #[test]
    fn columns_that_must_be_there_are_named() {
        let problems = read("who,what,score\na,x,3\n").unwrap_err().to_string();
        for part in ["names the rater", "names the conversation", "no column holds ratings"] {
            assert!(problems.contains(part), "{problems}");
        }
        assert!(read("rater,conversation_id,guides\n").is_err());
    }

    #[test]
    fn a_known_dimension_is_read_whatever_stands_in_it() {
        let text = "rater,conversation_id,guides\na,x,BP\nb,x,HPH\n";
        let known = ["Guides to Human Care".to_owned()];
        let problems = read_ratings(&Source::new("r.csv", text), &known).unwrap_err();
        assert_eq!(problems.count(crate::diagnostic::Severity::Error), 2, "{problems}");
    }

    #[test]
    fn the_stated_group_counts_before_the_name() {
        let text = "rater,rater_group,conversation_id,guides\na_1,nurse,x,Best Practice\nb_1,nurse,x,Best Practice\n";
        let (ratings, _) = read(text).unwrap();
        assert!(ratings.raters.iter().all(|rater| rater.group.as_deref() == Some("nurse")));
        let mixed = text.replace("b_1,nurse,x", "a_1,doctor,y");
        assert!(read(&mixed).unwrap_err().to_string().contains("two groups"));
    }
}
