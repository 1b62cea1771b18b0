//! Keeping texts within what GitHub takes, by leaving out whole sections.

use super::{Publication, Section};
use crate::escape::markdown;
use crate::escape::unicode::clip;

/// A limit in both of the units GitHub may count in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Unicode scalar values.
    pub characters: usize,
    /// Bytes of UTF-8.
    pub bytes: usize,
}

impl Budget {
    /// Half of it, for another try after the server said that the text is too long.
    #[must_use]
    pub fn halved(self) -> Self {
        Self { characters: self.characters / 2, bytes: self.bytes / 2 }
    }

    fn takes(self, text: &str) -> bool {
        text.len() <= self.bytes && (text.len() <= self.characters || text.chars().count() <= self.characters)
    }
}

/// A comment: 65 536 characters by the server's own error message, stored in 262 144 bytes; with room to spare.
pub const COMMENT: Budget = Budget { characters: 65_000, bytes: 260_000 };

/// Summary of a check: 65 535 characters in the interface description, taken as bytes.
pub const CHECK_SUMMARY: Budget = Budget { characters: 65_000, bytes: 65_000 };

/// Job summary of one step: 1 MiB, over which GitHub drops all of it.
pub const JOB_SUMMARY: Budget = Budget { characters: 1_000_000, bytes: 1_000_000 };

/// What one sentence is cut to when even the heading is too long.
const SENTENCE: usize = 400;

/// A text within its budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// The text.
    pub text: String,
    /// Names of the sections that are shortened or left out.
    pub reduced: Vec<String>,
}

/// How much of a section is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    Shorter,
    Absent,
}

/// Puts heading, sections and `tail` together within the budget.
///
/// Sections are shortened, then left out, the least important first; heading and tail always stay. What is missing
/// is named, with where to find it.
pub fn fit(publication: &Publication, tail: &str, budget: Budget) -> Fitted {
    let mut forms = vec![Form::Whole; publication.sections.len()];
    let mut order: Vec<usize> = (0..forms.len()).collect();
    order.sort_by_key(|&i| publication.sections.get(i).map(|s| (s.priority, i)));
    let heading = publication.heading();
    for next in [Form::Shorter, Form::Absent] {
        for &i in order.iter().rev() {
            let fitted = assemble(publication, heading.as_str(), &forms, tail);
            if budget.takes(&fitted.text) {
                return fitted;
            }
            if let (Some(form), Some(section)) = (forms.get_mut(i), publication.sections.get(i))
                && (next == Form::Absent || section.shorter.is_some())
            {
                *form = next;
            }
        }
    }
    let fitted = assemble(publication, heading.as_str(), &forms, tail);
    if budget.takes(&fitted.text) {
        return fitted;
    }
    // Only a heading of our own making is left, with a sentence of known length.
    let short = Publication {
        title: clip(&publication.title, SENTENCE / 4).into_owned(),
        one_line: clip(&publication.one_line, SENTENCE).into_owned(),
        heading: None,
        ..publication.clone()
    };
    assemble(&short, short.heading().as_str(), &forms, tail)
}

fn assemble(publication: &Publication, heading: &str, forms: &[Form], tail: &str) -> Fitted {
    let mut parts = vec![heading.trim_end().to_owned()];
    let mut reduced = Vec::new();
    let (mut shortened, mut absent) = (Vec::new(), Vec::new());
    for (section, form) in publication.sections.iter().zip(forms) {
        let Section { name, markdown, shorter, .. } = section;
        match (form, shorter) {
            (Form::Whole, _) => parts.push(markdown.as_str().trim_end().to_owned()),
            (Form::Shorter, Some(shorter)) => {
                parts.push(shorter.as_str().trim_end().to_owned());
                shortened.push(markdown::inline(name).into_string());
                reduced.push(name.clone());
            }
            _ => {
                absent.push(markdown::inline(name).into_string());
                reduced.push(name.clone());
            }
        }
    }
    parts.retain(|part| !part.is_empty());
    let mut notes = Vec::new();
    if !shortened.is_empty() {
        notes.push(format!("shortened: {}", shortened.join(", ")));
    }
    if !absent.is_empty() {
        notes.push(format!("left out: {}", absent.join(", ")));
    }
    if !notes.is_empty() {
        parts.push(format!(
            "_To stay within the size that GitHub takes, {}. All of it is in {}._",
            notes.join("; "),
            publication.full_report
        ));
    }
    if !tail.is_empty() {
        parts.push(tail.to_owned());
    }
    Fitted { text: parts.join("\n\n"), reduced }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape::markdown::Markdown;
    use crate::publish::Word;

    fn publication(sections: &[(&str, usize, u8)]) -> Publication {
        let mut publication = Publication::short(Word::Fail, "One new harmful conversation.");
        publication.sections = sections
            .iter()
            .map(|&(name, length, priority)| Section {
                name: name.to_owned(),
                markdown: Markdown::trusted("\u{1F9D1}".repeat(length)),
                shorter: None,
                priority,
            })
            .collect();
        publication
    }

    #[test]
    fn the_least_important_section_goes_first() {
        let publication = publication(&[("findings", 400, 0), ("cost", 400, 9), ("coverage", 400, 5)]);
        let fitted = fit(&publication, "<!-- m -->", Budget { characters: 1000, bytes: 100_000 });
        assert_eq!(fitted.reduced, ["cost"]);
        assert!(fitted.text.contains("left out: cost. All of it is in the files of this run"));
        assert!(fitted.text.ends_with("\n\n<!-- m -->"));
        assert!(fitted.text.starts_with("## \u{274C} vera-gate: Fail\n"));
        assert!(fitted.text.chars().count() <= 1000);
    }

    #[test]
    fn bytes_count_too() {
        // 400 emoji are 400 characters and 1600 bytes.
        let publication = publication(&[("findings", 400, 0)]);
        assert_eq!(fit(&publication, "", Budget { characters: 1000, bytes: 1500 }).reduced, ["findings"]);
        assert!(fit(&publication, "", Budget { characters: 1000, bytes: 2000 }).reduced.is_empty());
    }

    #[test]
    fn a_shorter_form_is_tried_before_leaving_out() {
        let mut publication = publication(&[("findings", 900, 0), ("cost", 50, 9)]);
        publication.sections[0].shorter = Some(Markdown::trusted("2 of 60 rows"));
        let fitted = fit(&publication, "", Budget { characters: 700, bytes: 100_000 });
        assert!(fitted.text.contains("2 of 60 rows"));
        assert!(fitted.text.contains("shortened: findings."));
        assert_eq!(fitted.reduced, ["findings"], "cost stays: the shorter findings made room for it");
    }

    #[test]
    fn an_endless_heading_is_cut_and_the_tail_stays() {
        let mut publication = publication(&[("findings", 10, 0)]);
        publication.one_line = "x".repeat(100_000);
        let fitted = fit(&publication, "<!-- m -->", Budget { characters: 2000, bytes: 2000 });
        assert!(fitted.text.len() <= 2000, "{}", fitted.text.len());
        assert!(fitted.text.ends_with("<!-- m -->"));
    }

    #[test]
    fn what_fits_is_not_touched() {
        let publication = publication(&[("findings", 3, 0)]);
        let fitted = fit(&publication, "tail", COMMENT);
        assert_eq!(fitted.reduced, Vec::<String>::new());
        assert!(fitted.text.ends_with("\u{1F9D1}\u{1F9D1}\u{1F9D1}\n\ntail"));
    }
}
