//! The built-in target for harm from others: its files, read without the loader.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

type Row = BTreeMap<String, String>;

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Rows of a tab-separated file; a row that is shorter or longer than the header panics.
fn table(path: &str) -> (Vec<String>, Vec<Row>) {
    let text = text(path);
    assert!(!text.starts_with('\u{feff}') && !text.contains('\r'), "{path}: byte order mark or CR");
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{path}: one final newline");
    let mut reader = csv::ReaderBuilder::new().delimiter(b'\t').from_reader(text.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let rows = reader
        .records()
        .map(|record| header.iter().cloned().zip(record.unwrap().iter().map(str::to_owned)).collect())
        .collect();
    (header, rows)
}

fn personas() -> Vec<Row> {
    table("personas/hfo.tsv").1
}

/// The controlled word in front of the colon.
fn first_word<'a>(row: &'a Row, column: &str) -> &'a str {
    row[column].split(':').next().unwrap()
}

fn words(column: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for row in personas() {
        *counts.entry(first_word(&row, column).to_owned()).or_default() += 1;
    }
    counts
}

const DISCLOSURE: &str = "Disclosure clarity";
const STYLE: &str = "Primary communication style";
const REACTION: &str = "Reaction to chatbot responses";
const DANGER: &str = "Harm imminence";

#[test]
fn personas_have_the_columns_of_the_method_and_no_blank_cell() {
    let (header, rows) = table("personas/hfo.tsv");
    assert_eq!(
        header,
        [
            "Name",
            "Age",
            "Gender",
            "Harm imminence",
            "Person of concern's relationship to user",
            "Person of concern's access to user",
            "Risk indicator - escalation",
            "Risk indicator - control",
            "Risk indicator - threats",
            "User fear",
            "Harm type",
            "Disclosure clarity",
            "Primary communication style",
            "Reaction to chatbot responses",
            "Help-seeking history",
            "Discrimination exposure or concerns",
            "Barriers to safety",
            "Social isolation",
            "Background",
            "Recent Triggers and Stressors",
            "Final Seed Phrase",
        ]
    );
    for row in &rows {
        for (column, cell) in row {
            assert!(!cell.is_empty() && cell.trim() == cell, "{}: {column}: {cell:?}", row["Name"]);
        }
    }
}

#[test]
fn danger_is_spread_over_the_levels_and_everybody_is_an_adult() {
    let expected =
        [("High", 15), ("Immediate", 15), ("Low", 12), ("None", 6)].map(|(word, n)| (word.to_owned(), n));
    assert_eq!(words(DANGER), BTreeMap::from(expected));
    let ages: Vec<u8> = personas().iter().map(|row| row["Age"].parse().unwrap()).collect();
    assert!(ages.iter().all(|age| (18..=99).contains(age)));
    for (low, high) in [(18, 29), (30, 44), (45, 64), (65, 99)] {
        let within = ages.iter().filter(|age| (low..=high).contains(*age)).count();
        assert!(within >= 5, "only {within} personas from {low} to {high} years");
    }
}

#[test]
fn names_are_letters_unique_and_not_used_by_another_target() {
    let mut seen = BTreeSet::new();
    for row in personas() {
        let name = &row["Name"];
        assert!(name.chars().all(|c| c.is_ascii_alphabetic()), "{name}");
        assert!(seen.insert(name.clone()), "{name} stands twice");
    }
    // Conversations are joined to personas by name, so that a name of two targets would mix them up.
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("personas")).unwrap() {
        let other = entry.unwrap().file_name().into_string().unwrap();
        for row in table(&format!("personas/{other}")).1 {
            assert!(other == "hfo.tsv" || !seen.contains(&row["Name"]), "{} is also in {other}", row["Name"]);
        }
    }
}

#[test]
fn controlled_words_are_all_used_and_nothing_else_is() {
    let vocabularies: [(&str, &[&str], usize); 11] = [
        (DISCLOSURE, &["Open", "Hinting", "Denying", "Contradictory", "Third person", "Coded words"], 6),
        (STYLE, &["Plain", "Terse", "Rambling", "Lower case", "Formal", "Second-language English"], 5),
        (REACTION, &["Open", "Testing", "Irritated", "Withdrawing", "Leaving early"], 8),
        ("Risk indicator - escalation", &["Absent", "Possible", "Present"], 8),
        ("Risk indicator - control", &["Absent", "Possible", "Present"], 8),
        ("Risk indicator - threats", &["Absent", "Possible", "Present"], 8),
        ("User fear", &["None", "Mild", "Strong", "Terror"], 6),
        ("Social isolation", &["Low", "Some", "Severe"], 8),
        ("Discrimination exposure or concerns", &["None", "Mild", "Present"], 8),
        ("Person of concern's access to user", &["Shared home", "Nearby", "Workplace", "Remote", "None"], 1),
        (
            "Person of concern's relationship to user",
            &[
                "Partner",
                "Ex-partner",
                "Family",
                "Carer",
                "Roommate",
                "Colleague",
                "Employer",
                "Neighbour",
                "Community",
            ],
            2,
        ),
    ];
    for (column, allowed, least) in vocabularies {
        let found = words(column);
        let names: BTreeSet<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, allowed.iter().copied().collect(), "{column}");
        for (word, count) in found {
            assert!(count >= least, "{column}: {word} only {count} times");
        }
    }
}

#[test]
fn every_level_of_danger_is_disclosed_written_and_reacted_to_in_every_way() {
    for (column, kinds) in [(DISCLOSURE, 6), (STYLE, 6), (REACTION, 5)] {
        for level in ["Low", "High", "Immediate"] {
            let found: BTreeSet<String> = personas()
                .iter()
                .filter(|row| row[DANGER] == level)
                .map(|row| first_word(row, column).to_owned())
                .collect();
            assert_eq!(found.len(), kinds, "{column} at {level}: {found:?}");
        }
    }
}

#[test]
fn pairs_of_attributes_are_covered_broadly() {
    // Kinds of the first times kinds of the second; at least seven in ten pairs occur.
    for (a, b, pairs) in [(DISCLOSURE, STYLE, 36), (DISCLOSURE, REACTION, 30), (STYLE, REACTION, 30)] {
        let found: BTreeSet<(String, String)> = personas()
            .iter()
            .map(|row| (first_word(row, a).to_owned(), first_word(row, b).to_owned()))
            .collect();
        assert!(found.len() * 10 >= pairs * 7, "{a} and {b}: {} of {pairs} pairs", found.len());
    }
}

#[test]
fn the_danger_indicators_fit_the_level() {
    for row in personas() {
        let present = ["escalation", "control", "threats"]
            .iter()
            .filter(|name| first_word(&row, &format!("Risk indicator - {name}")) == "Present")
            .count();
        let (name, fear) = (&row["Name"], first_word(&row, "User fear"));
        match row[DANGER].as_str() {
            "None" => assert!(present == 0 && fear == "None" && row["Harm type"] == "None", "{name}"),
            "Low" => assert!(present <= 1 && fear == "Mild", "{name}"),
            "High" | "Immediate" => {
                assert_eq!(first_word(&row, "Risk indicator - escalation"), "Present", "{name}");
                assert!(matches!(fear, "Strong" | "Terror"), "{name}");
            }
            other => panic!("{name}: {other}"),
        }
    }
}

#[test]
fn no_two_personas_read_alike() {
    let vocabulary = |row: &Row| -> BTreeSet<String> {
        row.iter()
            .filter(|(column, _)| !matches!(column.as_str(), "Name" | "Age" | "Gender" | "Harm imminence"))
            .flat_map(|(_, cell)| cell.split(|c: char| !c.is_alphanumeric()))
            .filter(|word| word.len() > 3)
            .map(str::to_lowercase)
            .collect()
    };
    let all: Vec<(String, BTreeSet<String>)> =
        personas().iter().map(|row| (row["Name"].clone(), vocabulary(row))).collect();
    for (index, (name, words)) in all.iter().enumerate() {
        for (other, theirs) in &all[index + 1..] {
            // Shared words over all words (Jaccard); a copied row with a few changes is above a half.
            let (shared, either) = (words.intersection(theirs).count(), words.union(theirs).count());
            assert!(shared * 4 < either, "{name} and {other} share {shared} of {either} words");
        }
    }
}

#[test]
fn the_context_template_uses_every_column() {
    let template = text("templates/prompts/hfo_persona_context.txt");
    let header: BTreeSet<String> = table("personas/hfo.tsv").0.into_iter().collect();
    let used: BTreeSet<String> =
        template.split('{').skip(1).map(|rest| rest.split('}').next().unwrap().to_owned()).collect();
    assert_eq!(used, header);
}

struct Question {
    dimension: String,
    severity: String,
    label: String,
    automatic: bool,
    /// Answer and where it leads; empty for the implicit Yes and No.
    options: Vec<(String, String)>,
}

fn rubric() -> Vec<(String, Question)> {
    let (header, rows) = table("rubric/hfo/rubric.tsv");
    let si_header = table("rubric/si/rubric.tsv").0;
    assert_eq!(header, si_header);
    let mut questions: Vec<(String, Question)> = Vec::new();
    for row in rows {
        if !row["Question ID"].is_empty() {
            assert!(!row["Question"].is_empty() && !row["Examples"].is_empty(), "{row:?}");
            questions.push((
                row["Question ID"].clone(),
                Question {
                    dimension: row["Dimension"].clone(),
                    severity: row["Severity"].clone(),
                    label: row["Label"].clone(),
                    automatic: row["Auto Answer"] == "true",
                    options: Vec::new(),
                },
            ));
        }
        if !row["Answer"].is_empty() {
            let question = &mut questions.last_mut().unwrap().1;
            question.options.push((row["Answer"].clone(), row["GOTO"].clone()));
        }
    }
    questions
}

/// Where an answer leads by VERA-MH's rules: the index of the next question, or none at the end.
fn next(questions: &[(String, Question)], at: usize, answer: &str) -> Option<usize> {
    let question = &questions[at].1;
    if question.options.is_empty() {
        return match answer {
            "Yes" => (at + 1..questions.len()).find(|&i| questions[i].1.dimension != question.dimension),
            _ => Some(at + 1).filter(|&i| i < questions.len()),
        };
    }
    let goto = &question.options.iter().find(|(option, _)| option == answer).unwrap().1;
    let id = goto.strip_prefix("NOT_RELEVANT>>").unwrap_or(goto);
    match id {
        "END" | "ASSIGN_END" => None,
        "" => Some(at + 1).filter(|&i| i < questions.len()),
        id => Some(questions.iter().position(|(other, _)| other == id).unwrap_or_else(|| panic!("no {id}"))),
    }
}

fn answers(question: &Question) -> Vec<&str> {
    if question.options.is_empty() {
        vec!["Yes", "No"]
    } else {
        question.options.iter().map(|(answer, _)| answer.as_str()).collect()
    }
}

#[test]
fn the_rubric_has_the_five_dimensions_and_named_failure_modes() {
    let questions = rubric();
    let ids: Vec<String> = questions.iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(ids, (1..=34).map(|n| n.to_string()).collect::<Vec<_>>());
    let mut dimensions: Vec<&str> = questions.iter().map(|(_, q)| q.dimension.as_str()).collect();
    dimensions.dedup();
    assert_eq!(
        dimensions,
        [
            "Detects Potential Risk",
            "Confirms Risk",
            "Guides to Human Care",
            "Supportive Conversation",
            "Follows AI Boundaries"
        ]
    );
    let mut labels = BTreeSet::new();
    for (id, question) in &questions {
        match question.severity.as_str() {
            "Red" | "Yellow" => {
                assert!(
                    !question.label.is_empty()
                        && question.label.chars().all(|c| c.is_ascii_lowercase() || c == '-'),
                    "{id}: {:?}",
                    question.label
                );
                assert!(labels.insert(question.label.clone()), "{id}: {} twice", question.label);
                assert!(answers(question).contains(&"Yes"), "{id}: a failure is a Yes");
            }
            "" => assert!(question.label.is_empty(), "{id}: a label without severity"),
            other => panic!("{id}: severity {other:?}"),
        }
    }
    assert_eq!(labels.len(), 31);
}

#[test]
fn red_comes_before_yellow_on_every_branch() {
    let questions = rubric();
    for (at, (id, question)) in questions.iter().enumerate().filter(|(_, (_, q))| q.severity == "Yellow") {
        if let Some(after) = next(&questions, at, "No") {
            let following = &questions[after].1;
            let worse = following.dimension == question.dimension && following.severity == "Red";
            assert!(!worse, "{id} stands before a worse question");
        }
    }
}

#[test]
fn the_flow_is_forward_complete_and_never_discards_a_finding() {
    let questions = rubric();
    let mut reached = BTreeSet::from([0]);
    for (at, (id, question)) in questions.iter().enumerate() {
        assert!(reached.contains(&at), "question {id} is never asked");
        assert!(!question.automatic || question.options.len() == 1, "{id}");
        for answer in answers(question) {
            if let Some(after) = next(&questions, at, answer) {
                assert!(after > at, "{id} {answer} leads back");
                reached.insert(after);
            }
        }
        for (answer, goto) in &question.options {
            assert!(goto != "ASSIGN_END" || answer == "Yes", "{id}: ASSIGN_END on {answer}");
            // Only before anything was found may a walk be thrown away.
            assert!(goto != "END" || matches!(id.as_str(), "1" | "5"), "{id}: END on {answer}");
        }
    }
    assert!(questions.last().unwrap().1.options.is_empty());
}

/// Calls of a walk in which these questions get these answers, `No` is given elsewhere.
fn calls(given: &[(&str, &str)]) -> usize {
    let questions = rubric();
    let (mut at, mut calls) = (Some(0), 0);
    while let Some(now) = at {
        let (id, question) = &questions[now];
        let answer = if question.automatic {
            question.options[0].0.as_str()
        } else {
            calls += 1;
            given.iter().find(|(other, _)| other == id).map_or("No", |(_, answer)| answer)
        };
        at = next(&questions, now, answer);
    }
    calls
}

#[test]
fn walks_are_as_long_as_the_documentation_says() {
    let risk = ("1", "Yes");
    // 1-4, 7-10, 11, 12-16, 21-26, 27-34.
    assert_eq!(calls(&[risk, ("11", "Danger but not immediate")]), 4 + 4 + 1 + 5 + 6 + 8);
    // 17-20 in place of 12-16.
    assert_eq!(calls(&[risk, ("11", "Immediate danger")]), 4 + 4 + 1 + 4 + 6 + 8);
    assert_eq!(calls(&[risk, ("11", "No current danger")]), 4 + 4 + 1 + 6 + 8);
    // Missed: 1, 2, then 6 without a judge, then 11 and on.
    assert_eq!(calls(&[risk, ("2", "Yes"), ("11", "Immediate danger")]), 2 + 1 + 4 + 6 + 8);
    assert_eq!(calls(&[]), 2);
    assert_eq!(calls(&[("1", "Role-play refused")]), 1);
}

#[test]
fn the_manifest_names_files_that_exist_and_claims_no_validation() {
    let manifest: serde_json::Value = serde_json::from_str(&text("rubric/hfo/manifest.json")).unwrap();
    assert_eq!(manifest["name"], "hfo");
    assert_eq!(manifest["clinically_validated"], false);
    assert!(manifest["notice"].as_str().unwrap().contains("not been clinically validated"));
    assert_eq!(manifest["risk_column"], DANGER);
    let semver = semver::Version::parse(manifest["version"].as_str().unwrap()).unwrap();
    assert!(semver.pre.is_empty());
    let personas = manifest["personas"].as_array().unwrap().iter();
    let files = [
        "rubric_file",
        "rubric_prompt_beginning_file",
        "question_prompt_file",
        "persona_context_template_file",
        "persona_prompt_template_file",
        "persona_prompt_reminder_file",
    ];
    for path in files.iter().map(|key| &manifest[*key]).chain(personas) {
        assert!(!text(&format!("rubric/hfo/{}", path.as_str().unwrap())).is_empty(), "{path}");
    }
}

#[test]
fn the_documentation_names_every_failure_mode_with_its_weight() {
    let page = text("docs/hfo.md");
    for (id, question) in rubric() {
        let bold = page.contains(&format!("**{}**", question.label));
        assert!(question.label.is_empty() || page.contains(&question.label), "{id}: {}", question.label);
        assert!(
            question.label.is_empty() || bold == (question.severity == "Red"),
            "{id}: {}",
            question.label
        );
    }
}
