//! Keeping Markdown within what GitHub takes, by leaving out whole sections.

use crate::escape::markdown::{self, Markdown};

/// One part of a Markdown report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What it is, for the note that it was left out. Plain text.
    pub name: String,
    /// The whole of it.
    pub markdown: Markdown,
    /// A shorter form, used before the section is left out.
    pub shorter: Option<Markdown>,
    /// What goes last: 0 stays longest, 255 is left out first. Sections of equal priority go from the end.
    pub priority: u8,
}

/// A limit in both of the units GitHub may count in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Unicode scalar values.
    pub characters: usize,
    /// Bytes of UTF-8.
    pub bytes: usize,
}

impl Budget {
    /// No limit.
    pub const NONE: Self = Self { characters: usize::MAX, bytes: usize::MAX };

    /// Half of it or of the text, whichever is less: for another try after the server said that the text is too long.
    #[must_use]
    pub fn half_of(self, text: &str) -> Self {
        Self {
            characters: self.characters.min(text.chars().count()) / 2,
            bytes: self.bytes.min(text.len()) / 2,
        }
    }

    fn takes(self, text: &str) -> bool {
        text.len() <= self.bytes && (text.len() <= self.characters || text.chars().count() <= self.characters)
    }
}

/// What is put together.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// Verdict and notices.
    pub heading: &'a Markdown,
    /// The same in a few hundred characters at most: what stands when nothing else fits.
    pub short_heading: &'a Markdown,
    /// The rest in its order.
    pub sections: &'a [Section],
    /// Where what is left out can be read, as the end of a sentence.
    pub full_report: &'a Markdown,
    /// What stands at the very end whatever the limit: a marker. May be blank.
    pub tail: &'a str,
}

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

/// Whether the note names what is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Note {
    Names,
    Short,
}

/// Puts the parts together within the budget.
///
/// Sections are shortened, then left out, the least important first; heading and tail always stay. What is missing
/// is named, with where to find it. A budget below the short heading and the tail is not kept.
pub fn fit(parts: Parts<'_>, budget: Budget) -> Fitted {
    let mut forms = vec![Form::Whole; parts.sections.len()];
    let mut order: Vec<usize> = (0..forms.len()).collect();
    order.sort_by_key(|&i| parts.sections.get(i).map(|s| (s.priority, i)));
    for next in [Form::Shorter, Form::Absent] {
        for &i in order.iter().rev() {
            let fitted = assemble(parts, parts.heading, &forms, Note::Names);
            if budget.takes(&fitted.text) {
                return fitted;
            }
            if let (Some(form), Some(section)) = (forms.get_mut(i), parts.sections.get(i))
                && (next == Form::Absent || section.shorter.is_some())
            {
                *form = next;
            }
        }
    }
    let fitted = assemble(parts, parts.heading, &forms, Note::Names);
    if budget.takes(&fitted.text) {
        return fitted;
    }
    assemble(parts, parts.short_heading, &forms, Note::Short)
}

fn assemble(parts: Parts<'_>, heading: &Markdown, forms: &[Form], note: Note) -> Fitted {
    let mut texts = vec![heading.as_str().trim_end().to_owned()];
    let mut reduced = Vec::new();
    let (mut shortened, mut absent) = (Vec::new(), Vec::new());
    for (section, form) in parts.sections.iter().zip(forms) {
        let Section { name, markdown, shorter, .. } = section;
        match (form, shorter) {
            (Form::Whole, _) => texts.push(markdown.as_str().trim_end().to_owned()),
            (Form::Shorter, Some(shorter)) => {
                texts.push(shorter.as_str().trim_end().to_owned());
                shortened.push(markdown::inline(name).into_string());
                reduced.push(name.clone());
            }
            _ => {
                absent.push(markdown::inline(name).into_string());
                reduced.push(name.clone());
            }
        }
    }
    texts.retain(|text| !text.is_empty());
    let mut notes = Vec::new();
    if !shortened.is_empty() {
        notes.push(format!("shortened: {}", shortened.join(", ")));
    }
    if !absent.is_empty() {
        notes.push(format!("left out: {}", absent.join(", ")));
    }
    match note {
        _ if notes.is_empty() => {}
        Note::Names => texts.push(format!(
            "_To stay within the size that GitHub takes, {}. All of it is in {}._",
            notes.join("; "),
            parts.full_report
        )),
        Note::Short => {
            texts.push("_The rest is too long for this place; see the files of this run._".to_owned());
        }
    }
    if !parts.tail.is_empty() {
        texts.push(parts.tail.to_owned());
    }
    Fitted { text: texts.join("\n\n"), reduced }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(sections: &[(&str, usize, u8)]) -> Vec<Section> {
        let section = |&(name, length, priority): &(&str, usize, u8)| Section {
            name: name.to_owned(),
            markdown: Markdown::trusted("\u{1F9D1}".repeat(length)),
            shorter: None,
            priority,
        };
        sections.iter().map(section).collect()
    }

    fn fitted(sections: &[Section], heading: &str, tail: &str, characters: usize, bytes: usize) -> Fitted {
        let parts = Parts {
            heading: &Markdown::trusted(heading),
            short_heading: &Markdown::trusted("## Fail"),
            sections,
            full_report: &Markdown::trusted("the files of this run"),
            tail,
        };
        fit(parts, Budget { characters, bytes })
    }

    #[test]
    fn the_least_important_section_goes_first() {
        let sections = sections(&[("findings", 400, 0), ("cost", 400, 9), ("coverage", 400, 5)]);
        let fitted = fitted(&sections, "## Fail: one harm.", "<!-- m -->", 1000, 100_000);
        assert_eq!(fitted.reduced, ["cost"]);
        assert!(fitted.text.contains("left out: cost. All of it is in the files of this run"));
        assert!(fitted.text.ends_with("\n\n<!-- m -->"));
        assert!(fitted.text.starts_with("## Fail: one harm.\n"));
        assert!(fitted.text.chars().count() <= 1000);
    }

    #[test]
    fn bytes_count_too() {
        // 400 emoji are 400 characters and 1600 bytes.
        let sections = sections(&[("findings", 400, 0)]);
        assert_eq!(fitted(&sections, "## Fail", "", 1000, 1500).reduced, ["findings"]);
        assert!(fitted(&sections, "## Fail", "", 1000, 2000).reduced.is_empty());
    }

    #[test]
    fn a_shorter_form_is_tried_before_leaving_out() {
        let mut sections = sections(&[("findings", 900, 0), ("cost", 50, 9)]);
        sections[0].shorter = Some(Markdown::trusted("2 of 60 rows"));
        let fitted = fitted(&sections, "## Fail", "", 700, 100_000);
        assert!(fitted.text.contains("2 of 60 rows"));
        assert!(fitted.text.contains("shortened: findings."));
        assert_eq!(fitted.reduced, ["findings"], "cost stays: the shorter findings made room for it");
    }

    #[test]
    fn a_long_heading_becomes_the_short_one_and_the_tail_stays() {
        let sections = sections(&[("findings", 10, 0)]);
        let fitted = fitted(&sections, &"x".repeat(100_000), "<!-- m -->", 2000, 2000);
        assert_eq!(
            fitted.text,
            "## Fail\n\n_The rest is too long for this place; see the files of this run._\n\n<!-- m -->"
        );
    }

    #[test]
    fn what_fits_is_not_touched() {
        let sections = sections(&[("findings", 3, 0)]);
        let fitted = fitted(&sections, "## Fail", "tail", 65_000, 65_000);
        assert_eq!(fitted.reduced, Vec::<String>::new());
        assert!(fitted.text.ends_with("\u{1F9D1}\u{1F9D1}\u{1F9D1}\n\ntail"));
    }
}
