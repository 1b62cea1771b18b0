//! Rules, regression and verdict.
