//! The walk over the rubric.
