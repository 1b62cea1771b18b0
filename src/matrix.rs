//! Dimension x rating counts and the VERA-MH scores.
