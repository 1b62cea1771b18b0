//! The report: what each reader sees.

mod agreement;
pub(crate) mod fixture;
mod hostile;
mod pages;
mod snapshots;
mod templates;
