//! Forges, summaries, outputs, annotations.
