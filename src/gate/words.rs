//! How numbers and lists read in a sentence.

use super::verdict::Observed;

/// Adds a sentence or a part of one.
pub(super) fn push(text: &mut String, more: &str) {
    text.push_str(more);
}

/// A share as a percentage with one decimal, `14.7 %`; with more where it would read as nothing or as all, `99.98 %`.
pub(super) fn percent(share: f64) -> String {
    let percents = share * 100.0;
    let misleads = |text: &String| match text.parse::<f64>() {
        Ok(shown) => (shown > 0.0) != (share > 0.0) || (shown < 100.0) != (share < 1.0),
        Err(_) => false,
    };
    let mut rounded = (1..=15).map(|digits| format!("{percents:.digits$}"));
    let text = rounded.find(|text| !misleads(text)).unwrap_or_else(|| percents.to_string());
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// An upper bound as a percentage, rounded up: rounding never promises more than was shown.
pub(super) fn at_most(bound: f64) -> String {
    // A bound such as 0.259 is stored a little above 259 thousandths, and must not become 26.0.
    percent((bound * 1000.0 - 1e-9).ceil().clamp(0.0, 1000.0) / 1000.0)
}

/// A lower bound as a percentage, rounded down for the same reason.
pub(super) fn at_least(bound: f64) -> String {
    percent((bound * 1000.0 + 1e-9).floor().clamp(0.0, 1000.0) / 1000.0)
}

/// A difference of shares in points, `+3.1 points`.
pub(super) fn points(difference: f64) -> String {
    format!("{:+.1} points", difference * 100.0)
}

/// An interval of a difference in points, `-1.2 to +3.1 points`.
pub(super) fn points_between(lower: f64, upper: f64) -> String {
    format!("{:+.1} to {}", lower * 100.0, points(upper))
}

/// `24 of 163 (14.7 %)`.
pub(super) fn of(observed: Observed) -> String {
    match observed.share() {
        Some(share) => format!("{} of {} ({})", observed.k, observed.n, percent(share)),
        None => "0 of 0".to_owned(),
    }
}

/// `60 of the 100 planned conversations`, `1 of the 1 planned conversation`.
pub(super) fn of_the(k: u64, n: u64, singular: &str) -> String {
    format!("{k} of the {}", count(n, singular))
}

/// A p-value: four decimals, or that it is smaller.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {p:.4}") }
}

/// `1 conversation`, `3 conversations`.
pub(super) fn count(n: u64, singular: &str) -> String {
    if n == 1 { format!("1 {singular}") } else { format!("{n} {singular}s") }
}

/// `1 conversation has`, `3 conversations have`.
pub(super) fn have(n: u64, singular: &str) -> String {
    format!("{} {}", count(n, singular), if n == 1 { "has" } else { "have" })
}

/// `1 persona is`, `3 personas are`.
pub(super) fn are(n: u64, singular: &str) -> String {
    format!("{} {}", count(n, singular), if n == 1 { "is" } else { "are" })
}

/// `1 finding was`, `3 findings were`.
pub(super) fn was(n: u64, singular: &str) -> String {
    format!("{} {}", count(n, singular), if n == 1 { "was" } else { "were" })
}

/// The first names and how many more there are.
pub(super) fn some_of<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    let more = names.len().saturating_sub(most);
    let list = shown.join(", ");
    if more > 0 { format!("{list} and {more} more") } else { list }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(percent(0.2), "20 %");
        assert_eq!([0.0, 0.0004, 0.999_999, 1.0].map(percent), ["0 %", "0.04 %", "99.9999 %", "100 %"]);
        assert_eq!(of(Observed { k: 24, n: 163 }), "24 of 163 (14.7 %)");
        assert_eq!(of(Observed::default()), "0 of 0");
        assert_eq!(of_the(14, 100, "planned conversation"), "14 of the 100 planned conversations");
        // A bound is never printed as tighter than it is.
        assert_eq!(
            (at_most(0.0501), at_most(0.05), at_most(1.0)),
            ("5.1 %".into(), "5 %".into(), "100 %".into())
        );
        assert_eq!(
            (at_least(0.0999), at_least(0.1), at_least(0.0)),
            ("9.9 %".into(), "10 %".into(), "0 %".into())
        );
        assert_eq!(points_between(-0.012, 0.031), "-1.2 to +3.1 points");
        assert_eq!(points(-0.031), "-3.1 points");
        assert_eq!((p_value(0.230_77), p_value(0.000_01)), ("p = 0.2308".into(), "p < 0.0001".into()));
        assert_eq!((count(1, "persona"), count(0, "persona")), ("1 persona".into(), "0 personas".into()));
        assert_eq!(some_of(&["a", "b", "c"], 2), "a, b and 1 more");
    }
}
