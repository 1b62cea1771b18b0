//! One escaping layer per output sink.
//!
//! Text of the candidate, the user model and the judge is hostile until it went through one of these. Every sink
//! first makes the text [`unicode::plain`] (no control, bidi or invisible characters), then disarms what the sink
//! itself would read as structure. Nothing here reads the environment; the same text gives the same bytes.
//!
//! | sink | text goes through |
//! |---|---|
//! | pull-request comment, job summary, `report.md` | [`markdown`] |
//! | `report.html` | [`html`] |
//! | log of a workflow, `GITHUB_OUTPUT`, `GITHUB_ENV` | [`workflow`] |
//! | terminal | [`terminal`] |
//! | `results.csv` and other tables for spreadsheets | [`csv`] |
//! | `junit.xml` | [`xml`] |

pub mod csv;
pub mod html;
pub mod markdown;
pub mod terminal;
pub mod unicode;
pub mod workflow;
pub mod xml;

/// Declares a string type that only its own sink's functions, or text written by us, can make.
macro_rules! escaped_text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes text that this program wrote itself, or that is built of escaped parts. Never hand it text from
            /// a model, a file or the environment.
            pub fn trusted(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The escaped text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The escaped text, owned.
            pub fn into_string(self) -> String {
                self.0
            }

            /// Whether nothing would be shown.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
use escaped_text;
