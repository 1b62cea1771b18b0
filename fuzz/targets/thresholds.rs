#![no_main]

#[path = "../readers.rs"]
#[allow(dead_code, reason = "every target uses one reader")]
mod readers;

libfuzzer_sys::fuzz_target!(|text: &str| readers::thresholds(text));
