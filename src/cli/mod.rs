//! Command-line types, one file per command.
