//! One escaping layer per output sink.
