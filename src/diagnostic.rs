//! Coded diagnostics that show file, line, column and help.
