//! Conversations as they were held.
