//! Ratings with their path and evidence.
