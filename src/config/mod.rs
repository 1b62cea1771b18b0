//! The configuration file, read and validated.
