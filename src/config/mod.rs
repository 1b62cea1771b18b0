//! The configuration file, read and validated.

pub mod model;
