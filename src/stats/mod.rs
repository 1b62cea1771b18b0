//! Pure mathematics of the gate: no file, no clock, no environment, values in and values out.
//!
//! The unit of evidence is the conversation, the cluster is the persona. Judge rows are never evidence units, and
//! every function that takes a sample size means conversations.
//!
//! | module | answers |
//! |---|---|
//! | [`value`] | counts, intervals, confidences, p-values |
//! | [`interval`] | how large may the true rate be |
//! | [`cluster`] | how much conversations of one persona tell twice |
//! | [`sign_flip`] | did harm rise, persona by persona |
//! | [`exact`] | the classical exact tests, for comparison |
//! | [`multiplicity`] | several dimensions at once |
//! | [`sequential`] | may the sweep stop |
//! | [`power`] | what could this sweep detect or certify |
//! | [`trend`] | small steps over many runs |
//! | [`agreement`] | judges and clinicians |

pub mod agreement;
pub mod cluster;
pub mod exact;
pub mod interval;
pub mod multiplicity;
pub mod power;
pub mod sequential;
pub mod sign_flip;
pub mod trend;
pub mod value;

mod discrete;
mod special;

pub use value::{
    Alpha, Confidence, Count, EffectiveCount, Exactness, Interval, PValue, Power, Sides, StatsError, Tail,
};
