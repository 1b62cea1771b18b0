//! The report: what each reader sees.

mod agreement;
mod fixture;
mod hostile;
mod pages;
mod snapshots;
mod templates;
