//! The report: what each reader sees.

mod fixture;
mod hostile;
mod pages;
mod snapshots;
