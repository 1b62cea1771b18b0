//! Words and numbers that every rendering shares. A report never says "safe": it says what was counted.

use crate::gate::verdict::{Observed, Reason, ReasonCode, Verdict, Weight};
use crate::rating::Rating;
use crate::target::RiskLevel;

/// The verdict for people.
pub fn label(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "Pass",
        Verdict::Warn => "Pass with warnings",
        Verdict::Inconclusive => "Inconclusive",
        Verdict::Fail => "Fail",
    }
}

/// A picture beside the word, never instead of it.
pub fn icon(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "\u{2705}",
        Verdict::Warn => "\u{26A0}\u{FE0F}",
        Verdict::Inconclusive => "\u{2753}",
        Verdict::Fail => "\u{274C}",
    }
}

/// A reason with the rule and the dimension it is about.
pub fn reason(reason: &Reason) -> String {
    match (&reason.rule, &reason.dimension) {
        // The text names the dimension itself, so that it can stand alone.
        (Some(rule), Some(dimension)) => {
            let prefix = format!("{dimension}: ");
            let text = reason.text.strip_prefix(&prefix).unwrap_or(&reason.text);
            format!("{rule}, {dimension}: {text}")
        }
        (Some(name), None) | (None, Some(name)) => format!("{name}: {}", reason.text),
        (None, None) => reason.text.clone(),
    }
}

/// A remark as a sentence: a capital first, one full stop at the end.
pub fn sentence(text: &str) -> String {
    let mut letters = text.trim().trim_end_matches('.').chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

/// Reasons with their codes. What a rule says of several dimensions in the same words is said once.
pub fn reasons(reasons: &[&Reason]) -> Vec<String> {
    let bare = |reason: &Reason| {
        let dimension = reason.dimension.as_deref().unwrap_or_default();
        reason.text.strip_prefix(&format!("{dimension}: ")).unwrap_or(&reason.text).to_owned()
    };
    let mut lines: Vec<(&Reason, String, Vec<&str>)> = Vec::new();
    for one in reasons {
        let text = bare(one);
        let same = |(other, words, _): &&mut (&Reason, String, Vec<&str>)| {
            other.rule.is_some() && other.rule == one.rule && other.code == one.code && *words == text
        };
        match (lines.iter_mut().find(same), one.dimension.as_deref()) {
            (Some((_, _, dimensions)), Some(dimension)) => dimensions.push(dimension),
            (_, dimension) => lines.push((one, text, dimension.into_iter().collect())),
        }
    }
    lines
        .into_iter()
        .map(|(first, text, dimensions)| {
            let code = first.code.as_str();
            match (&first.rule, dimensions.len()) {
                (Some(rule), 2..) => format!("{rule}, {}: {text} ({code})", dimensions.join(", ")),
                _ => format!("{} ({code})", reason(first)),
            }
        })
        .collect()
}

/// Whether a reason is among those that make the verdict; the others stand behind them.
pub fn decides(verdict: Verdict, reason: &Reason) -> bool {
    let weight = reason.weight;
    match verdict {
        // That the gate itself ended the sweep explains everything below.
        _ if reason.code == ReasonCode::StoppedEarly => true,
        // Beside a broken rule a reader must see that too little was measured.
        Verdict::Fail => matches!(weight, Weight::Fails | Weight::Incomplete),
        Verdict::Inconclusive => matches!(weight, Weight::Incomplete | Weight::Open),
        Verdict::Warn => weight == Weight::Warns,
        Verdict::Pass => weight == Weight::Note,
    }
}

/// A rating in a table's heading.
pub fn short(rating: Rating) -> &'static str {
    match rating {
        Rating::BestPractice => "Best practice",
        Rating::Suboptimal => "Suboptimal, low potential for harm",
        Rating::HighPotentialForHarm => "High potential for harm",
        Rating::NotRelevant => "Not relevant",
    }
}

/// A persona's risk level.
pub fn risk(level: Option<RiskLevel>) -> &'static str {
    level.map_or("unknown", RiskLevel::word)
}

/// `1 conversation`, `2 conversations`.
pub fn count(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

/// `1,234,567`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share in percent. Something is never shown as nothing, and not all never as all.
pub fn percent(observed: Observed) -> String {
    let Some(share) = observed.share() else { return "\u{2013}".to_owned() };
    let text = format!("{:.1}", share * 100.0);
    match text.as_str() {
        "0.0" if observed.k > 0 => "<0.1 %".to_owned(),
        "100.0" if observed.k < observed.n => ">99.9 %".to_owned(),
        _ => format!("{} %", text.strip_suffix(".0").unwrap_or(&text)),
    }
}

/// `3 (7.5 %)`, or a bare `0` when there is nothing to take a share of.
pub fn count_and_share(k: u64, n: u64) -> String {
    if n == 0 { k.to_string() } else { format!("{k} ({})", percent(Observed { k, n })) }
}

/// `3 of 40 (7.5 %)`.
pub fn of(observed: Observed) -> String {
    if observed.n == 0 {
        return format!("{} of 0", observed.k);
    }
    format!("{} of {} ({})", observed.k, observed.n, percent(observed))
}

/// An upper bound in percent, rounded up, so that rounding never promises more than was shown.
pub fn upper_bound(share: f64) -> String {
    // A bound such as 0.259 is stored a little above 259 thousandths; that must not become 26.0.
    let tenths = (share * 1000.0 - 1e-9).ceil().clamp(0.0, 1000.0);
    if tenths >= 1000.0 { "100 %".to_owned() } else { format!("{:.1} %", tenths / 10.0) }
}

/// A lower bound in percent, rounded down for the same reason.
pub fn lower_bound(share: f64) -> String {
    let tenths = (share * 1000.0 + 1e-9).floor().clamp(0.0, 1000.0);
    format!("{:.1} %", tenths / 10.0)
}

/// A share or limit in percent with as many digits as it needs.
pub fn share(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A difference of shares in percentage points, with its sign.
pub fn points(difference: f64) -> String {
    let text = format!("{:.1}", (difference * 100.0).abs());
    let sign = if difference < 0.0 { '\u{2212}' } else { '+' };
    match text.as_str() {
        "0.0" if difference != 0.0 => format!("{sign}<0.1 points"),
        "0.0" => "0 points".to_owned(),
        _ => format!("{sign}{text} points"),
    }
}

/// A p-value.
pub fn p_value(p: f64) -> String {
    if p < 0.0001 { "<0.0001".to_owned() } else { format!("{p:.4}") }
}

/// Micro-dollars: whole cents, and below a cent all of it.
pub fn dollars(micros: u64) -> String {
    let (whole, rest) = (micros / 1_000_000, micros % 1_000_000);
    if micros > 0 && micros < 10_000 {
        let fraction = format!("{rest:06}");
        return format!("$0.{}", fraction.trim_end_matches('0'));
    }
    let cents = (rest + 5_000) / 10_000;
    let (whole, cents) = if cents == 100 { (whole + 1, 0) } else { (whole, cents) };
    format!("${}.{cents:02}", thousands(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent_of(k: u64, n: u64) -> String {
        percent(Observed { k, n })
    }

    #[test]
    fn something_is_never_nothing() {
        assert_eq!(percent_of(0, 40), "0 %");
        assert_eq!(percent_of(3, 40), "7.5 %");
        assert_eq!(percent_of(40, 40), "100 %");
        assert_eq!(percent_of(1, 3000), "<0.1 %");
        assert_eq!(percent_of(2999, 3000), ">99.9 %");
        assert_eq!(percent_of(0, 0), "\u{2013}");
        assert_eq!(points(0.0002), "+<0.1 points");
        assert_eq!(points(-0.025), "\u{2212}2.5 points");
        assert_eq!(points(0.0), "0 points");
    }

    #[test]
    fn what_a_rule_says_of_several_dimensions_is_said_once() {
        use crate::gate::verdict::ReasonCode;
        let of = |rule: Option<&str>, dimension: Option<&str>, text: &str| Reason {
            code: ReasonCode::EvidenceOpen,
            weight: Weight::Open,
            text: dimension.map_or_else(|| text.to_owned(), |name| format!("{name}: {text}")),
            rule: rule.map(str::to_owned),
            dimension: dimension.map(str::to_owned),
            conversations: Vec::new(),
        };
        let all = [
            of(Some("harm"), Some("A"), "Nothing."),
            of(Some("harm"), Some("B"), "Something."),
            of(Some("harm"), Some("C"), "Nothing."),
            of(Some("care"), Some("A"), "Nothing."),
            of(None, None, "Nothing."),
            of(None, None, "Nothing."),
        ];
        assert_eq!(
            reasons(&all.iter().collect::<Vec<_>>()),
            [
                "harm, A, C: Nothing. (evidence-open)",
                "harm, B: Something. (evidence-open)",
                "care, A: Nothing. (evidence-open)",
                "Nothing. (evidence-open)",
                "Nothing. (evidence-open)",
            ]
        );
    }

    #[test]
    fn bounds_are_rounded_up() {
        // 1 - 0.05^(1/10) = 0.25887: the number of the design page.
        assert_eq!(upper_bound(1.0 - 0.05f64.powf(0.1)), "25.9 %");
        assert_eq!(upper_bound(0.259), "25.9 %");
        assert_eq!(upper_bound(0.2591), "26.0 %");
        assert_eq!(upper_bound(1.0), "100 %");
        assert_eq!(lower_bound(0.3939), "39.3 %");
        assert_eq!(lower_bound(0.0), "0.0 %");
    }

    #[test]
    fn amounts() {
        assert_eq!(dollars(0), "$0.00");
        assert_eq!(dollars(1_234), "$0.001234");
        assert_eq!(dollars(9_990), "$0.00999");
        assert_eq!(dollars(995_000), "$1.00");
        assert_eq!(dollars(1_234_567_890), "$1,234.57");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(12), "12");
        assert_eq!(count(1, "conversation", "conversations"), "1 conversation");
        assert_eq!(share(0.05), "5 %");
        assert_eq!(share(0.1234), "12.34 %");
        assert_eq!(share(0.0), "0 %");
    }
}
