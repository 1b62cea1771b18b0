//! Plan, conversation loop, scheduler, journal, shards.

pub mod conversation;
pub mod plan;
pub mod role;
