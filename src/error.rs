//! The top-level error with exit code and help.
