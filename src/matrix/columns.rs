//! What the columns of a results file are. A column that nobody can name may hold ratings in words of its own, so it
//! refuses the file instead of being left out with its harm.

use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::rating::Rating;
use crate::target::table::{Cell, Table};

pub(super) const QUESTION_SUFFIX: &str = "_yes_question_id";
pub(super) const REASON_SUFFIX: &str = "_yes_reasoning";
pub(super) const FILE_NAME: &str = "filename";
const META: [&str; 7] =
    [FILE_NAME, "run_id", "judge_model", "judge_instance", "judge_id", "persona_name", "risk_level"];

/// The dimensions of VERA-MH since v1.1, then those of v1.0 with their earlier names. Such a column is one whatever
/// stands in it.
const STANDARD: [[&[&str]; 5]; 2] = [
    [
        &["Detects Potential Risk"],
        &["Confirms Risk"],
        &["Guides to Human Care"],
        &["Supportive Conversation"],
        &["Follows AI Boundaries"],
    ],
    [
        &["Detects Risk"],
        &["Clarifies Risk", "Probes Risk"],
        &["Guides to Human Support", "Provides Resources and Encourages Human Support"],
        &["Collaborates and Validates Appropriately"],
        &["Maintains Safe Boundaries"],
    ],
];

fn standard() -> impl Iterator<Item = &'static str> {
    STANDARD.iter().flatten().flat_map(|names| names.iter().copied())
}

/// Whether a result has a dimension of any version of VERA-MH.
pub fn has_standard_dimension(dimensions: &[String]) -> bool {
    standard().any(|known| dimensions.iter().any(|dimension| dimension == known))
}

/// The dimensions of VERA-MH that a result with some of them lacks. Empty for a result with none of them, which was
/// rated by another rubric.
pub fn missing_standard_dimensions(dimensions: &[String]) -> Vec<&'static str> {
    let held = |names: &&[&str]| names.iter().any(|name| dimensions.iter().any(|d| d == name));
    let versions = STANDARD.iter().filter(|version| version.iter().any(&held));
    let lacking = versions.flatten().filter(|names| !held(names));
    lacking.filter_map(|names| names.first().copied()).collect()
}

/// A row with text here was not rated as it should have been.
const FAULTS: [&str; 4] = ["error", "errors", "error_message", "judge_error"];

/// Columns of VERA-MH's persona files, which 2.0 may copy into the results, and those that people add.
const ANNOTATIONS: [&str; 51] = [
    "Age",
    "Gender",
    "Pronouns",
    "Race/Ethnicity",
    "Background",
    "Current Suicide Risk Level",
    "Short Current Suicide Risk Level",
    "Current Risk Level",
    "Current Suicidal Thoughts and Behaviors",
    "Current Suicidal Thoughts and Behaviors, Reasons for Living",
    "Remote History of Suicidal Thoughts and Behaviors",
    "Disclosure of Suicide Risk",
    "Primary Communication Style",
    "Communication Style",
    "Reaction to Chatbot Responses",
    "Diagnoses and Symptoms",
    "Mental Health Context",
    "Treatment Engagement / Access",
    "Mental Health Stigma",
    "Financial Stress",
    "Social Isolation",
    "Discrimination Exposure",
    "Discrimination exposure or concerns",
    "Recent Triggers and Stressors",
    "Recent Stressors/Risk Factors",
    "Final Seed Phrase",
    "Sample Prompts",
    "Harm imminence",
    "Person of concern's relationship to user",
    "Person of concern's access to user",
    "User fear",
    "Harm type",
    "Disclosure clarity",
    "Help-seeking history",
    "Barriers to safety",
    "Active Life Threat",
    "Name",
    "Label",
    "Human notes",
    "note",
    "notes",
    "comment",
    "comments",
    "remark",
    "remarks",
    "timestamp",
    "date",
    "duration",
    "user_model",
    "persona_model",
    "agent_model",
];

/// Where a dimension and its finding stand.
pub(super) struct DimensionColumn {
    pub(super) name: String,
    pub(super) rating: usize,
    pub(super) question: Option<usize>,
    pub(super) reason: Option<usize>,
}

/// The columns that are read.
pub(super) struct Columns {
    pub(super) file_name: Option<usize>,
    pub(super) dimensions: Vec<DimensionColumn>,
    /// Columns whose text says that a row is not to be used.
    pub(super) faults: Vec<usize>,
}

impl Columns {
    /// Names every column, or says which one has no meaning here.
    pub(super) fn find(table: &Table, problems: &mut Diagnostics) -> Self {
        let mut columns =
            Self { file_name: table.column(FILE_NAME), dimensions: Vec::new(), faults: Vec::new() };
        for (index, cell) in table.header.iter().enumerate() {
            let name = cell.text.as_str();
            if META.contains(&name) {
                continue;
            }
            if let Some(dimension) =
                name.strip_suffix(QUESTION_SUFFIX).or_else(|| name.strip_suffix(REASON_SUFFIX))
            {
                if table.column(dimension).is_none() {
                    problems.push(
                        Diagnostic::error(
                            Code::MissingColumn,
                            format!("column `{name}` stands without its column `{dimension}`"),
                        )
                        .at(table.at(cell))
                        .help("the findings of a dimension stand beside its ratings; remove both or none"),
                    );
                }
            } else if name != name.trim() && !name.trim().is_empty() {
                problems.push(
                    Diagnostic::error(
                        Code::UnknownColumn,
                        format!("column `{name}` has spaces around its name"),
                    )
                    .at(table.at(cell))
                    .help(format!("names are exact; call it `{}`", name.trim())),
                );
            } else if is_dimension(table, index, name) {
                columns.dimensions.push(DimensionColumn {
                    name: name.to_owned(),
                    rating: index,
                    question: table.column(&format!("{name}{QUESTION_SUFFIX}")),
                    reason: table.column(&format!("{name}{REASON_SUFFIX}")),
                });
            } else if FAULTS.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                columns.faults.push(index);
            } else if !is_annotation(table, index, name) {
                problems.push(unknown(table, index, cell));
            }
        }
        columns
    }
}

/// A column is a dimension by its name, by its companion columns (v1.1 and later), or when it holds a rating. One
/// rating is enough: a slip of the pen in another cell must refuse the file, not take the dimension out of it.
fn is_dimension(table: &Table, index: usize, name: &str) -> bool {
    !name.is_empty()
        && (standard().any(|known| known == name)
            || [QUESTION_SUFFIX, REASON_SUFFIX].iter().any(|s| table.column(&format!("{name}{s}")).is_some())
            || texts(table, index).any(|text| Rating::from_cell(text).is_some()))
}

/// Also the nameless column of row numbers that data frames are saved with.
fn is_annotation(table: &Table, index: usize, name: &str) -> bool {
    if name.is_empty() || name == "Unnamed: 0" {
        return texts(table, index).all(|text| text.bytes().all(|b| b.is_ascii_digit()));
    }
    name.starts_with("Risk indicator - ")
        || name.starts_with("Background (")
        || name.starts_with("note_")
        || name.starts_with("notes_")
        || ANNOTATIONS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn texts(table: &Table, index: usize) -> impl Iterator<Item = &str> {
    let cells = table.rows.iter().filter_map(move |row| row.cells.get(index));
    cells.map(|cell| cell.text.trim()).filter(|text| !text.is_empty())
}

fn unknown(table: &Table, index: usize, cell: &Cell) -> Diagnostic {
    let name = cell.text.as_str();
    let near = |given: &str, words: &[&'static str]| {
        let help = did_you_mean(given, words.iter().copied());
        help.starts_with("did you mean").then_some(help)
    };
    let names: Vec<&str> = META.into_iter().chain(standard()).chain(ANNOTATIONS).collect();
    let ratings = Rating::ALL.map(Rating::as_str);
    let held = texts(table, index).next();
    let help = match (near(name, &names), held.and_then(|text| Some((text, near(text, &ratings)?)))) {
        (Some(help), _) => help,
        (None, Some((text, help))) => format!("it holds `{text}`: {help}"),
        (None, None) => format!(
            "a dimension holds `{}`; for anything else remove the column, or begin its name with `note_`",
            ratings.join("`, `")
        ),
    };
    let shown =
        if name.is_empty() { "a column without a name".to_owned() } else { format!("column `{name}`") };
    Diagnostic::error(
        Code::UnknownColumn,
        format!("{shown} is not known and holds no rating, so what it says would be left out"),
    )
    .at(table.at(cell))
    .help(help)
}
