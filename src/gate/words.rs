//! How numbers and lists read in a sentence.

use super::verdict::Observed;

/// Adds a sentence or a part of one.
pub(super) fn push(text: &mut String, more: &str) {
    text.push_str(more);
}

/// A share as a percentage with one decimal, `14.7 %`.
pub(super) fn percent(share: f64) -> String {
    let rounded = format!("{:.1}", share * 100.0);
    format!("{} %", rounded.strip_suffix(".0").unwrap_or(&rounded))
}

/// A difference of shares in points, `+3.1 points`.
pub(super) fn points(difference: f64) -> String {
    format!("{:+.1} points", difference * 100.0)
}

/// `24 of 163 (14.7 %)`.
pub(super) fn of(observed: Observed) -> String {
    match observed.share() {
        Some(share) => format!("{} of {} ({})", observed.k, observed.n, percent(share)),
        None => "0 of 0".to_owned(),
    }
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
        assert_eq!(of(Observed { k: 24, n: 163 }), "24 of 163 (14.7 %)");
        assert_eq!(of(Observed::default()), "0 of 0");
        assert_eq!(points(-0.031), "-3.1 points");
        assert_eq!((p_value(0.230_77), p_value(0.000_01)), ("p = 0.2308".into(), "p < 0.0001".into()));
        assert_eq!((count(1, "persona"), count(0, "persona")), ("1 persona".into(), "0 personas".into()));
        assert_eq!(some_of(&["a", "b", "c"], 2), "a, b and 1 more");
    }
}
