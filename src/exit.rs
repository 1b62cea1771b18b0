//! Every exit code, documented once.
