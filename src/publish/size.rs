//! Keeping texts within what GitHub takes, by leaving out whole sections.

use super::Publication;
use crate::escape::unicode::clip;
use crate::report::size::{self, Parts};
pub use crate::report::size::{Budget, Fitted};

/// A comment: 65 536 characters by the server's own error message, stored in 262 144 bytes; with room to spare.
pub const COMMENT: Budget = Budget { characters: 65_000, bytes: 260_000 };

/// Summary of a check: 65 535 characters in the interface description, taken as bytes.
pub const CHECK_SUMMARY: Budget = Budget { characters: 65_000, bytes: 65_000 };

/// Job summary of one step: 1 MiB, over which GitHub drops all of it.
pub const JOB_SUMMARY: Budget = Budget { characters: 1_000_000, bytes: 1_000_000 };

/// What one sentence is cut to when even the heading is too long.
const SENTENCE: usize = 400;

/// Puts heading, sections and `tail` together within the budget, see [`size::fit`].
pub fn fit(publication: &Publication, tail: &str, budget: Budget) -> Fitted {
    let short = publication.short_heading.clone().unwrap_or_else(|| {
        // A heading of our own making, with sentences of known length.
        Publication {
            title: clip(&publication.title, SENTENCE / 4).into_owned(),
            one_line: clip(&publication.one_line, SENTENCE).into_owned(),
            heading: None,
            ..publication.clone()
        }
        .heading()
    });
    let parts = Parts {
        heading: &publication.heading(),
        short_heading: &short,
        sections: &publication.sections,
        full_report: &publication.full_report,
        tail,
    };
    size::fit(parts, budget)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape::markdown::Markdown;
    use crate::publish::{Section, Word};

    fn publication() -> Publication {
        let mut publication = Publication::short(Word::Fail, "One new harmful conversation.");
        publication.sections.push(Section {
            name: "findings".to_owned(),
            markdown: Markdown::trusted("\u{1F9D1}\u{1F9D1}"),
            shorter: None,
            priority: 0,
        });
        publication
    }

    #[test]
    fn an_endless_heading_is_cut_and_the_tail_stays() {
        let mut publication = publication();
        publication.one_line = "x".repeat(100_000);
        let fitted = fit(&publication, "<!-- m -->", Budget { characters: 2000, bytes: 2000 });
        assert!(fitted.text.len() <= 2000, "{}", fitted.text.len());
        assert!(fitted.text.starts_with("## \u{274C} vera-gate: Fail\n"));
        assert!(fitted.text.ends_with("<!-- m -->"));
    }

    #[test]
    fn a_short_heading_of_the_reports_own_is_taken() {
        let mut publication = publication();
        publication.heading = Some(Markdown::trusted("x".repeat(100_000)));
        publication.short_heading = Some(Markdown::trusted("Notice. Fail."));
        let fitted = fit(&publication, "<!-- m -->", Budget { characters: 2000, bytes: 2000 });
        assert!(fitted.text.starts_with("Notice. Fail.\n"), "{}", fitted.text);
        assert!(fitted.text.ends_with("<!-- m -->"));
    }

    #[test]
    fn what_fits_is_not_touched() {
        let fitted = fit(&publication(), "tail", COMMENT);
        assert_eq!(fitted.reduced, Vec::<String>::new());
        assert!(fitted.text.ends_with("\u{1F9D1}\u{1F9D1}\n\ntail"));
    }
}
