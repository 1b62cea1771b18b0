//! Integration tests, one binary so that the crate is linked once.
