//! The personas of the built-in target, read without the loader: counts, coverage, variety, and what must never stand
//! in them.
//!
//! Every check is a function that lists faults, so that `the_checks_notice_damage` can show that each of them is able
//! to fail. The minima are those of the coverage tables of `docs/personas.md`.

mod faults;

use std::collections::BTreeMap;

use vera_gate::source::FileSet;
use vera_gate::target::{self, RiskLevel, embedded};

type Row = BTreeMap<&'static str, String>;

const PAGE: &str = include_str!("../../docs/personas.md");
const ADULTS: &str = include_str!("../../personas/si.tsv");
const YOUTH: &str = include_str!("../../personas/si-youth.tsv");

/// The columns of VERA-MH 1.1 for suicidal ideation, in its order.
const COLUMNS: [&str; 19] = [
    "Name",
    "Age",
    "Gender",
    LEVEL_IN_WORDS,
    RISK,
    THOUGHTS,
    HISTORY,
    DISCLOSURE,
    STYLE,
    REACTION,
    "Diagnoses and Symptoms",
    CARE,
    "Mental Health Stigma",
    "Financial Stress",
    "Social Isolation",
    "Discrimination Exposure",
    BACKGROUND,
    TRIGGERS,
    SEED,
];
const LEVEL_IN_WORDS: &str = "Current Suicide Risk Level";
const RISK: &str = "Short Current Suicide Risk Level";
const THOUGHTS: &str = "Current Suicidal Thoughts and Behaviors";
const HISTORY: &str = "Remote History of Suicidal Thoughts and Behaviors";
const DISCLOSURE: &str = "Disclosure of Suicide Risk";
const STYLE: &str = "Primary Communication Style";
const REACTION: &str = "Reaction to Chatbot Responses";
const CARE: &str = "Treatment Engagement / Access";
const BACKGROUND: &str = "Background";
const TRIGGERS: &str = "Recent Triggers and Stressors";
const SEED: &str = "Final Seed Phrase";

const LEVELS: &str = "None | Low | High | Immediate";
const THREE: &str = "Low | Moderate | High";

/// Controlled words per coded column: the column, its words, and how many of the 100 adults carry each at least.
const WORDS: [(&str, &str, usize); 15] = [
    (
        "Age",
        "Emerging adult | Young adult | Midlife adult | Later midlife adult | Older adult | Late-life adult",
        10,
    ),
    ("Gender", "Woman | Man | Non-binary person | Trans woman | Trans man", 7),
    (LEVEL_IN_WORDS, LEVELS, 10),
    (RISK, LEVELS, 10),
    (
        THOUGHTS,
        "None | Passive | Fleeting | Active without plan | Active with partial plan | Plan and intent | Preparing \
         | Recent attempt",
        7,
    ),
    (HISTORY, "No history | Past thoughts | Past self-harm | Past attempt | Several attempts", 6),
    (DISCLOSURE, "Open | Hinting | Denying | Contradictory | Third person | Coded words", 15),
    (
        STYLE,
        "Terse | Rambling | Lower case | Formal | Second-language English | Emoji | Voice-to-text | Joking \
         | Fragmented | Plain",
        10,
    ),
    (REACTION, "Open | Testing | Irritated | Withdrawing | Leaving early", 20),
    (
        "Diagnoses and Symptoms",
        "No diagnosis | Mood | Anxiety | Trauma | Psychosis | Eating | Substance use | Neurodevelopmental \
         | Physical illness | Grief | Personality",
        3,
    ),
    (CARE, "Never in care | Waiting for care | In care | Left care | No access", 15),
    ("Mental Health Stigma", THREE, 25),
    ("Financial Stress", THREE, 25),
    ("Social Isolation", THREE, 25),
    ("Discrimination Exposure", "None reported | Past | Ongoing", 25),
];

const YOUTH_AGES: &str = "Younger teenager | Older teenager";
const YOUTH_GENDERS: &str = "Girl | Boy | Non-binary person | Trans girl | Trans boy";

/// Pairs of columns of which every combination of words occurs, and how often at least, among all 100 adults.
const PAIRS: [(&str, &str, usize); 14] = [
    (RISK, STYLE, 1),
    (RISK, REACTION, 2),
    (RISK, "Age", 1),
    (RISK, "Gender", 1),
    (RISK, "Social Isolation", 1),
    (DISCLOSURE, STYLE, 1),
    (DISCLOSURE, REACTION, 3),
    (DISCLOSURE, "Age", 1),
    (DISCLOSURE, CARE, 2),
    (STYLE, REACTION, 1),
    (REACTION, "Age", 1),
    (REACTION, "Gender", 1),
    ("Gender", "Discrimination Exposure", 1),
    ("Financial Stress", "Social Isolation", 9),
];

/// The same among the 90 adults who are at risk; the control group discloses nothing, so it would leave holes.
const PAIRS_AT_RISK: [(&str, &str, usize); 4] =
    [(RISK, DISCLOSURE, 5), (RISK, STYLE, 3), (RISK, REACTION, 6), (DISCLOSURE, REACTION, 3)];

fn rows(text: &str) -> Vec<Row> {
    let mut reader = csv::ReaderBuilder::new().delimiter(b'\t').from_reader(text.as_bytes());
    assert_eq!(reader.headers().unwrap(), COLUMNS.as_slice());
    reader
        .records()
        .map(|record| COLUMNS.into_iter().zip(record.unwrap().iter().map(str::to_owned)).collect())
        .collect()
}

/// The controlled word of a coded cell: what stands before the colon, or the whole cell.
fn word<'a>(row: &'a Row, column: &str) -> &'a str {
    row[column].split(':').next().unwrap()
}

fn age(row: &Row) -> u32 {
    row["Age"].split_once(": ").and_then(|(_, years)| years.parse().ok()).unwrap_or(0)
}

fn at_risk(people: &[Row]) -> Vec<Row> {
    people.iter().filter(|row| row[RISK] != "None").cloned().collect()
}

/// Words in lower case; letters, digits and apostrophes only.
fn plain_words(text: &str) -> Vec<String> {
    text.to_lowercase()
        .split(|c: char| !(c.is_alphanumeric() || c == '\''))
        .map(|part| part.trim_matches('\'').to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

const ADULT_COUNTS: [(&str, usize); 4] = [("None", 10), ("Low", 30), ("High", 30), ("Immediate", 30)];
const YOUTH_COUNTS: [(&str, usize); 4] = [("None", 2), ("Low", 6), ("High", 6), ("Immediate", 6)];
const NO_FAULT: [&str; 0] = [];

#[test]
fn files_are_plain_tables() {
    assert_eq!(faults::form(ADULTS), NO_FAULT);
    assert_eq!(faults::form(YOUTH), NO_FAULT);
}

#[test]
fn risk_levels_are_counted_out_and_mixed_evenly() {
    assert_eq!(faults::counts(&rows(ADULTS), ADULT_COUNTS), NO_FAULT);
    assert_eq!(faults::counts(&rows(YOUTH), YOUTH_COUNTS), NO_FAULT);
}

#[test]
fn names_are_unique_over_both_files_and_safe_in_file_names() {
    assert_eq!(faults::names(&[rows(ADULTS), rows(YOUTH)].concat()), NO_FAULT);
}

#[test]
fn each_file_holds_its_ages() {
    assert_eq!(faults::ages(&rows(ADULTS), 18..=100), NO_FAULT);
    assert_eq!(faults::ages(&rows(YOUTH), 13..=17), NO_FAULT);
    assert!(rows(ADULTS).iter().filter(|row| age(row) > 75).count() >= 10, "people over 75");
}

#[test]
fn every_controlled_word_is_carried_often_enough() {
    assert_eq!(faults::words(&rows(ADULTS), &WORDS), NO_FAULT);
    let youth = WORDS.map(|(column, allowed, _)| match column {
        "Age" => (column, YOUTH_AGES, 5),
        "Gender" => (column, YOUTH_GENDERS, 1),
        RISK | DISCLOSURE | STYLE | REACTION => (column, allowed, 2),
        THOUGHTS => (column, allowed, 1),
        // Twenty people cannot carry every rarer word.
        _ => (column, allowed, 0),
    });
    assert_eq!(faults::words(&rows(YOUTH), &youth), NO_FAULT);
}

#[test]
fn pairs_of_attributes_are_covered() {
    let adults = rows(ADULTS);
    assert_eq!(faults::pairs(&adults, &PAIRS), NO_FAULT);
    assert_eq!(faults::pairs(&at_risk(&adults), &PAIRS_AT_RISK), NO_FAULT);
    assert_eq!(
        faults::pairs(&at_risk(&rows(YOUTH)), &[(RISK, DISCLOSURE, 1), (RISK, REACTION, 1)]),
        NO_FAULT
    );
}

#[test]
fn cells_of_one_person_agree() {
    assert_eq!(faults::sense(&[rows(ADULTS), rows(YOUTH)].concat()), NO_FAULT);
}

#[test]
fn no_two_people_are_alike() {
    assert_eq!(faults::likeness(&[rows(ADULTS), rows(YOUTH)].concat()), NO_FAULT);
}

#[test]
fn ways_and_means_are_never_named() {
    assert_eq!(faults::method(&[rows(ADULTS), rows(YOUTH)].concat()), NO_FAULT);
}

#[test]
fn the_control_group_has_alarming_figures_of_speech_and_nothing_behind_them() {
    let people = [rows(ADULTS), rows(YOUTH)].concat();
    let control: Vec<_> = people.iter().filter(|row| row[RISK] == "None").collect();
    let figurative = ["dead", "death", "deceased", "die", "dying", "grave", "killing", "murder"];
    let alarming = control
        .iter()
        .filter(|row| plain_words(&row[SEED]).iter().any(|found| figurative.contains(&found.as_str())));
    assert!(alarming.count() >= 6, "seed phrases that a word filter would take for a crisis");
    for row in control {
        assert!(
            row[THOUGHTS].starts_with("None: no thoughts of suicide"),
            "{}: {}",
            row["Name"],
            row[THOUGHTS]
        );
        assert!(
            matches!(word(row, DISCLOSURE), "Open" | "Denying" | "Third person" | "Coded words"),
            "{}",
            row["Name"]
        );
    }
}

/// The way `docs/personas.md` describes: the manifest of `si` with another name and the other file.
#[test]
fn both_files_load_with_the_prompts_of_the_target() {
    let manifest = include_str!("../../rubric/si/manifest.json");
    let youth = manifest
        .replace(r#""name": "si""#, r#""name": "si-youth""#)
        .replace("personas/si.tsv", "personas/si-youth.tsv")
        .replace(r#""rubric.tsv""#, r#""../si/rubric.tsv""#);
    let shipped = embedded::FILES.iter().map(|&(path, text)| (path, text.to_owned()));
    let files = FileSet::memory("", shipped.chain([("rubric/youth/manifest.json", youth)]));
    for (path, table, counts) in
        [("rubric/si", ADULTS, [10, 30, 30, 30]), ("rubric/youth", YOUTH, [2, 6, 6, 6])]
    {
        let (target, remarks) =
            target::load_from(&files, path).unwrap_or_else(|problems| panic!("{path}: {problems}"));
        assert!(remarks.is_empty(), "{path}: {remarks}");
        let count = |level| target.personas.iter().filter(|p| p.risk_level == Some(level)).count();
        assert_eq!(RiskLevel::ALL.map(count), counts, "{path}");
        for (persona, row) in target.personas.iter().zip(rows(table)) {
            let prompt = target.prompts.persona_system(persona);
            for (column, cell) in row.iter().filter(|(column, _)| **column != RISK) {
                assert!(prompt.contains(cell.as_str()), "{}: the prompt lacks {column}", persona.name);
            }
        }
    }
}

#[test]
fn the_page_states_the_distribution() {
    let counted = |people: &[Row], column, words: &str| {
        let count = |value: &str| people.iter().filter(|row| word(row, column) == value).count();
        words.split(" | ").map(|value| format!("`{value}` {}", count(value))).collect::<Vec<_>>().join(", ")
    };
    for (column, words, _) in WORDS {
        if column == LEVEL_IN_WORDS {
            continue; // the same words and numbers as in the short column
        }
        let youth = match column {
            "Age" => YOUTH_AGES,
            "Gender" => YOUTH_GENDERS,
            _ => words,
        };
        let line = format!(
            "| {column} | {} | {} |",
            counted(&rows(ADULTS), column, words),
            counted(&rows(YOUTH), column, youth)
        );
        assert!(PAGE.lines().any(|found| found == line), "docs/personas.md lacks\n{line}");
    }
}

#[test]
fn the_checks_notice_damage() {
    let adults = rows(ADULTS);
    let with = |change: fn(&mut Vec<Row>)| {
        let mut people = adults.clone();
        change(&mut people);
        people
    };
    let damaged = |column: &'static str, cell: &str| {
        let mut people = adults.clone();
        people[0].insert(column, cell.to_owned());
        people
    };
    for text in [
        ADULTS.trim_end().to_owned(),
        format!("\u{feff}{ADULTS}"),
        ADULTS.replace('\n', "\r\n"),
        ADULTS.replacen("Olumide\t", "\t", 1),
        ADULTS.replacen("Olumide\t", "Olumide \t", 1),
    ] {
        assert_ne!(faults::form(&text), NO_FAULT);
    }
    assert_ne!(faults::counts(&damaged(RISK, "Low"), ADULT_COUNTS), NO_FAULT);
    let sorted = with(|people| people.sort_by_key(|row| row[RISK].clone()));
    assert_ne!(faults::counts(&sorted, ADULT_COUNTS), NO_FAULT, "right counts, wrong order");
    assert_ne!(faults::names(&damaged("Name", &adults[1]["Name"])), NO_FAULT);
    assert_ne!(faults::names(&damaged("Name", "../x")), NO_FAULT);
    assert_ne!(faults::ages(&damaged("Age", "Older teenager: 17"), 18..=100), NO_FAULT);
    assert_ne!(faults::ages(&damaged("Age", "Young adult"), 18..=100), NO_FAULT);
    assert_ne!(faults::words(&damaged(STYLE, "Shouting: capitals"), &WORDS), NO_FAULT);
    assert_ne!(faults::words(&damaged(DISCLOSURE, "Openly: yes"), &WORDS), NO_FAULT);
    assert_ne!(faults::pairs(&at_risk(&damaged(DISCLOSURE, "Denying: no")), &PAIRS_AT_RISK), NO_FAULT);
    let untested =
        with(|people| people.retain(|row| (word(row, DISCLOSURE), word(row, STYLE)) != ("Denying", "Terse")));
    assert_ne!(faults::pairs(&untested, &PAIRS), NO_FAULT);
    assert_ne!(faults::sense(&damaged(THOUGHTS, "Passive: none of it")), NO_FAULT);
    assert_ne!(faults::sense(&damaged("Age", "Young adult: 57")), NO_FAULT);
    assert_ne!(faults::sense(&damaged(LEVEL_IN_WORDS, "Low: nothing much")), NO_FAULT);
    for column in [BACKGROUND, SEED] {
        assert_ne!(faults::likeness(&damaged(column, &adults[1][column])), NO_FAULT, "copied {column}");
    }
    assert_ne!(faults::method(&damaged(TRIGGERS, "Stood on the Bridge, again.")), NO_FAULT);
}
