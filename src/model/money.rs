//! Money in integers: a price per token can be far below a micro-dollar, and a sum of floats drifts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount of US dollars in pico-dollars (10^-12), so that a price of 0.0088 dollars per million tokens is still
/// a whole number per token. Reaches 18 million dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Money(u64);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Decimal places of a dollar that are kept.
    const PLACES: i64 = 12;

    /// From pico-dollars.
    pub const fn from_pico(pico: u64) -> Self {
        Self(pico)
    }

    /// In pico-dollars.
    pub const fn pico(self) -> u64 {
        self.0
    }

    /// In whole micro-dollars, rounded half up.
    pub const fn micros(self) -> u64 {
        self.0.saturating_add(500_000) / 1_000_000
    }

    /// The sum; stays at the largest amount instead of wrapping.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The product; stays at the largest amount instead of wrapping.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// Reads a decimal number of dollars, with or without an exponent (`0.25`, `1.794e-4`), exactly; digits below
    /// a pico-dollar are rounded half up. `None` for anything else, negative amounts included.
    pub fn parse_dollars(text: &str) -> Option<Self> {
        let text = text.trim();
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let digits: String = format!("{whole}{fraction}");
        if digits.len() > 60 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let places = i64::try_from(fraction.len()).ok()?;
        let shift = Self::PLACES.checked_sub(places)?.checked_add(exponent)?;
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return Some(Self::ZERO);
        }
        let value = if shift >= 0 {
            let zeros = u32::try_from(shift).ok()?;
            digits.parse::<u64>().ok()?.checked_mul(10_u64.checked_pow(zeros)?)?
        } else {
            let cut = usize::try_from(shift.unsigned_abs()).unwrap_or(usize::MAX);
            let kept = digits.len().saturating_sub(cut);
            let value = match digits.get(..kept) {
                None | Some("") => 0,
                Some(kept) => kept.parse::<u64>().ok()?,
            };
            let first_lost = if cut > digits.len() { None } else { digits.as_bytes().get(kept) };
            value.checked_add(u64::from(first_lost.is_some_and(|&d| d >= b'5')))?
        };
        Some(Self(value))
    }
}

impl fmt::Display for Money {
    /// Dollars with at least cents and without trailing zeros: `$6.00`, `$0.0001794`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DOLLAR: u64 = 1_000_000_000_000;
        let fraction = format!("{:012}", self.0 % DOLLAR);
        let shown = fraction.trim_end_matches('0');
        write!(f, "${}.{shown:0<2}", self.0 / DOLLAR)
    }
}

impl std::iter::Sum for Money {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Self::plus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_exactly() {
        for (text, pico) in [
            ("1.794e-4", 179_400_000),
            ("0.0001794", 179_400_000),
            ("0.0088", 8_800_000_000),
            ("6", 6_000_000_000_000),
            (".5", 500_000_000_000),
            ("0", 0),
            ("0e9", 0),
            // Half a pico-dollar rounds up, less rounds down.
            ("0.0000000000005", 1),
            ("0.00000000000049", 0),
            ("1e-30", 0),
            ("12E0", 12_000_000_000_000),
        ] {
            assert_eq!(Money::parse_dollars(text), Some(Money::from_pico(pico)), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", "-1", "nan", "inf", "1.2.3", "1e", "e5", "$1", "1e40", "99999999999999999999"] {
            assert_eq!(Money::parse_dollars(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_are_shown_in_dollars() {
        assert_eq!(Money::from_pico(6_000_000_000_000).to_string(), "$6.00");
        assert_eq!(Money::from_pico(179_400_000).to_string(), "$0.0001794");
        assert_eq!(Money::ZERO.to_string(), "$0.00");
    }

    #[test]
    fn sums_stay_at_the_largest_amount() {
        let most = Money::from_pico(u64::MAX);
        assert_eq!(most.plus(Money::from_pico(1)), most);
        assert_eq!(most.times(2), most);
    }
}
