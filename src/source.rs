//! Loaded text with line and column spans.
