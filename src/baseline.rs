//! Blessed earlier results.
