//! A person's terminal: no escape sequence, cursor movement, title change or reordering gets through.

use super::unicode::{Lines, plain};

super::escaped_text! {
    /// Text that a terminal shows and does not obey.
    Terminal
}

/// Text that may have many lines.
pub fn block(text: &str) -> Terminal {
    Terminal(plain(text, Lines::Keep))
}

/// Text on one line, for tables and progress.
pub fn line(text: &str) -> Terminal {
    Terminal(plain(text, Lines::Join))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_obeyed() {
        assert_eq!(block("\u{1B}]0;title\u{7}a\u{8}\nb").as_str(), "\u{241B}]0;title\u{2407}a\u{2408}\nb");
        assert_eq!(line("100 %\rdone").as_str(), "100 % done");
    }
}
