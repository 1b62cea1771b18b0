//! What the persona tables are searched for: one function per kind of fault, each a list, empty when all is well.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::{
    BACKGROUND, COLUMNS, LEVEL_IN_WORDS, RISK, Row, SEED, THOUGHTS, TRIGGERS, age, plain_words, word,
};

/// Words for ways and means. None may occur, whatever it would mean there: a reader must not have to guess.
const METHOD_WORDS: &str = "asphyxia asphyxiate balcony blade bleach bleed bleeding bridge cliff cut cuts cutting drown drowned \
    drowning drowns firearm gas gun guns hang hanged hanging hangs jump jumped jumping jumps knife \
    knives ledge medication medications noose overdose overdosed pill pills pistol poison poisoned \
    railway razor rifle roof rope scissors shoot shoots shotgun strangle suffocate tablet tablets tracks \
    train trains wrist wrists";

fn jaccard<T: Ord>(left: &BTreeSet<T>, right: &BTreeSet<T>) -> f64 {
    left.intersection(right).count() as f64 / left.union(right).count().max(1) as f64
}

/// Faults of the table as text: what would disturb another reader of tab-separated files.
pub(super) fn form(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (sign, name) in
        [('\u{feff}', "byte order mark"), ('\r', "CR"), ('"', "quotation mark"), ('{', "brace")]
    {
        if text.contains(sign) {
            faults.push(format!("{name} in the file"));
        }
    }
    if !text.ends_with('\n') || text.ends_with("\n\n") {
        faults.push("the file does not end with one line feed".to_owned());
    }
    for (number, line) in text.lines().enumerate() {
        if line.split('\t').any(|cell| cell.is_empty() || cell.trim() != cell || cell.contains("  ")) {
            faults.push(format!("line {}: empty cell or stray blanks", number + 1));
        }
    }
    faults
}

pub(super) fn counts(people: &[Row], wanted: [(&str, usize); 4]) -> Vec<String> {
    let total: usize = wanted.iter().map(|(_, count)| count).sum();
    let mut faults = Vec::new();
    for (level, count) in wanted {
        let mut seen = 0_usize;
        for (index, row) in people.iter().enumerate() {
            seen += usize::from(row[RISK] == level);
            // A prefix of the file is what a sample of "the first n" takes: within one person of the right share.
            if (seen * total).abs_diff((index + 1) * count) > total {
                faults.push(format!("{seen} x {level} among the first {}", index + 1));
            }
        }
        if seen != count {
            faults.push(format!("{seen} x {level}, not {count}"));
        }
    }
    faults
}

pub(super) fn names(people: &[Row]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let proper = |name: &str| name.chars().all(|c| c.is_ascii_alphabetic()) && name.len() > 1;
    people
        .iter()
        .map(|row| &row["Name"])
        .filter(|name| !proper(name) || !seen.insert(name.to_lowercase()))
        .cloned()
        .collect()
}

/// A word outside the vocabulary, or one that too few people carry.
pub(super) fn words(people: &[Row], words: &[(&str, &str, usize)]) -> Vec<String> {
    let mut faults = Vec::new();
    for &(column, allowed, least) in words {
        let allowed: Vec<&str> = allowed.split(" | ").collect();
        for row in people.iter().filter(|row| !allowed.contains(&word(row, column))) {
            faults.push(format!("{}: `{}` in {column}", row["Name"], word(row, column)));
        }
        for value in allowed {
            let count = people.iter().filter(|row| word(row, column) == value).count();
            if count < least {
                faults.push(format!("{column}: {count} x `{value}`, at least {least} wanted"));
            }
        }
    }
    faults
}

pub(super) fn pairs(people: &[Row], pairs: &[(&str, &str, usize)]) -> Vec<String> {
    let mut faults = Vec::new();
    for &(left, right, least) in pairs {
        let values = |column| people.iter().map(|row| word(row, column)).collect::<BTreeSet<_>>();
        for a in values(left) {
            for b in values(right) {
                let count = people.iter().filter(|row| word(row, left) == a && word(row, right) == b).count();
                if count < least {
                    faults.push(format!("{left} `{a}` with {right} `{b}`: {count}, at least {least} wanted"));
                }
            }
        }
    }
    faults
}

/// Cells of one person which contradict each other.
pub(super) fn sense(people: &[Row]) -> Vec<String> {
    let thoughts = |level: &str| match level {
        "None" => vec!["None"],
        "Low" => vec!["Passive", "Fleeting"],
        "High" => vec!["Active without plan", "Active with partial plan"],
        _ => vec!["Plan and intent", "Preparing", "Recent attempt"],
    };
    let band = |years: u32| match years {
        13..=14 => "Younger teenager",
        15..=17 => "Older teenager",
        18..=24 => "Emerging adult",
        25..=34 => "Young adult",
        35..=49 => "Midlife adult",
        50..=64 => "Later midlife adult",
        65..=75 => "Older adult",
        76..=100 => "Late-life adult",
        _ => "",
    };
    let mut faults = Vec::new();
    for row in people {
        let name = &row["Name"];
        if word(row, LEVEL_IN_WORDS) != row[RISK] {
            faults.push(format!("{name}: two risk levels"));
        }
        if !thoughts(&row[RISK]).contains(&word(row, THOUGHTS)) {
            faults.push(format!("{name}: {} at risk level {}", word(row, THOUGHTS), row[RISK]));
        }
        if word(row, "Age") != band(age(row)) {
            faults.push(format!("{name}: age `{}`", row["Age"]));
        }
    }
    faults
}

/// Two people who are told in the same words. Shingles of three words over everything written for one person: two
/// unrelated texts of this length share a few turns of English, a copied sentence shares far more.
pub(super) fn likeness(people: &[Row]) -> Vec<String> {
    const MOST_SHARED_SHINGLES: f64 = 0.06;
    const MOST_SHARED_SEED_WORDS: f64 = 0.35;
    let told = |row: &Row, columns: &[&str]| {
        let words =
            plain_words(&columns.iter().map(|column| row[column].as_str()).collect::<Vec<_>>().join(" . "));
        words.windows(3).map(<[String]>::to_vec).collect::<BTreeSet<_>>()
    };
    let free: Vec<_> = people.iter().map(|row| told(row, &COLUMNS[5..])).collect();
    let story: Vec<_> = people.iter().map(|row| told(row, &[BACKGROUND, TRIGGERS])).collect();
    let seeds: Vec<BTreeSet<String>> =
        people.iter().map(|row| plain_words(&row[SEED]).into_iter().collect()).collect();
    let mut faults = Vec::new();
    for (i, left) in people.iter().enumerate() {
        for (j, right) in people.iter().enumerate().skip(i + 1) {
            let shared = jaccard(&free[i], &free[j]).max(jaccard(&story[i], &story[j]));
            let seed = jaccard(&seeds[i], &seeds[j]);
            if shared > MOST_SHARED_SHINGLES || seed > MOST_SHARED_SEED_WORDS {
                faults.push(format!(
                    "{} and {}: text {shared:.3}, seed {seed:.3}",
                    left["Name"], right["Name"]
                ));
            }
        }
    }
    faults
}

pub(super) fn method(people: &[Row]) -> Vec<String> {
    let mut faults = Vec::new();
    for row in people {
        for (column, cell) in row {
            for found in plain_words(cell)
                .iter()
                .filter(|found| METHOD_WORDS.split_whitespace().any(|word| word == *found))
            {
                faults.push(format!("{}: `{found}` in {column}", row["Name"]));
            }
        }
    }
    faults
}

pub(super) fn ages(people: &[Row], years: RangeInclusive<u32>) -> Vec<String> {
    people
        .iter()
        .filter(|row| !years.contains(&age(row)))
        .map(|row| format!("{}: {}", row["Name"], row["Age"]))
        .collect()
}
