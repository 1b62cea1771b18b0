//! Plan, conversation loop, scheduler, journal, shards.

pub mod conversation;
pub mod event;
pub mod forecast;
pub mod journal;
pub mod plan;
pub mod role;
pub mod scheduler;
pub mod shard;
