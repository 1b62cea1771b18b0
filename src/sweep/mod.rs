//! Plan, conversation loop, scheduler, journal, shards.
