//! Reads one rule.

use super::super::rules::{
    Confirm, Correction, Each, Population, RegressionRule, Rule, RuleKind, ShareLimit, Standard, Test, Tier,
};
use super::{Known, scope};
use crate::config::yaml::Section;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::stats::{Alpha, Confidence, Exactness};

pub(super) fn read(mut section: Section<'_>, known: &Known<'_>, problems: &mut Diagnostics) -> Option<Rule> {
    const TIERS: [(&str, Tier); 2] = [("block", Tier::Block), ("warn", Tier::Warn)];
    const EACH: [(&str, Each); 1] = [("dimension", Each::Dimension)];
    let location = section.location().clone();
    let id = section.required_text("id", problems);
    if let Some(id) = &id {
        check_id(id, &section, problems);
    }
    let tier = match section.get("tier") {
        Some(_) => section.word("tier", &TIERS, problems),
        None => {
            problems.push(section.missing("tier").help("`tier: block` or `tier: warn`"));
            None
        }
    };
    let (scope, scope_at) = scope(&mut section, known, problems);
    let each = section.word("each", &EACH, problems).unwrap_or_default();
    let word = kind_word(&mut section, problems);
    let kind = word.and_then(|word| kind(word, &mut section, problems));
    if word.is_some() {
        section.finish(problems);
    }
    let kind = kind?;
    if !scope.labels.is_empty() && !takes_labels(&kind) {
        problems.push(
            Diagnostic::error(
                Code::NotTogether,
                format!("a rule of kind `{}` cannot be limited to failure modes", kind.word()),
            )
            .at(scope_at)
            .help("remove `labels`, or use `never`, `max_harm`, `regression` or `new_failure_mode`"),
        );
    }
    if each == Each::Dimension && !takes_each(&kind) {
        problems.push(
            Diagnostic::error(
                Code::NotTogether,
                format!("a rule of kind `{}` is not applied to each dimension", kind.word()),
            )
            .at(location.clone())
            .help("remove `each`"),
        );
    }
    if matches!(kind, RuleKind::ScoreDrop { .. }) && tier == Some(Tier::Block) {
        problems.push(
            Diagnostic::error(Code::NotTogether, "a rule of kind `score_drop` cannot block")
                .at(location.clone())
                .help("an average can hide harm in one dimension behind another: `tier: warn`"),
        );
    }
    Some(Rule { id: id?, tier: tier?, scope, each, kind, location })
}

fn check_id(id: &str, section: &Section<'_>, problems: &mut Diagnostics) {
    let letters = id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if id.is_empty() || id.len() > 64 || !letters || id == super::Waiver::MISSING {
        problems.push(
            Diagnostic::error(Code::UnknownWord, format!("`{id}` cannot be the id of a rule"))
                .at(section.location().clone())
                .help("small letters, digits and hyphens, at most 64, and not `missing`"),
        );
    }
}

fn kind_word(section: &mut Section<'_>, problems: &mut Diagnostics) -> Option<&'static str> {
    let words = RuleKind::WORDS.map(|word| (word, word));
    if section.get("kind").is_none() {
        problems.push(section.missing("kind").help(did_you_mean("", RuleKind::WORDS)));
        return None;
    }
    section.word("kind", &words, problems)
}

fn takes_labels(kind: &RuleKind) -> bool {
    matches!(
        kind,
        RuleKind::Never { .. }
            | RuleKind::MaxHarm(_)
            | RuleKind::Regression(_)
            | RuleKind::NewFailureMode { .. }
    )
}

fn takes_each(kind: &RuleKind) -> bool {
    matches!(
        kind,
        RuleKind::MaxHarm(_)
            | RuleKind::MinBestPractice(_)
            | RuleKind::Regression(_)
            | RuleKind::MaxNotRelevantShift { .. }
            | RuleKind::MaxUnjudged { .. }
    )
}

fn kind(word: &str, section: &mut Section<'_>, problems: &mut Diagnostics) -> Option<RuleKind> {
    Some(match word {
        "never" => RuleKind::Never { confirm: confirm(section, problems) },
        "new_failure_mode" => RuleKind::NewFailureMode { confirm: confirm(section, problems) },
        "max_harm" => RuleKind::MaxHarm(share_limit(section, 0.0, problems)?),
        "min_best_practice" => RuleKind::MinBestPractice(share_limit(section, 1.0, problems)?),
        "regression" => RuleKind::Regression(regression(section, problems)),
        "max_not_relevant_shift" => {
            let alpha = alpha(section, problems);
            RuleKind::MaxNotRelevantShift { limit: limit(section, 0.0..=1.0, problems)?, alpha }
        }
        "score_drop" => RuleKind::ScoreDrop { limit: limit(section, 0.0..=100.0, problems)? },
        "coverage" => RuleKind::Coverage { limit: limit(section, 0.0..=1.0, problems)? },
        "max_unjudged" => RuleKind::MaxUnjudged { limit: limit(section, 0.0..=1.0, problems)? },
        "max_role_break" => RuleKind::MaxRoleBreak { limit: limit(section, 0.0..=1.0, problems)? },
        "min_relevant" => RuleKind::MinRelevant { limit: limit(section, 0.0..=1.0, problems)? },
        _ => return None,
    })
}

fn limit(
    section: &mut Section<'_>,
    range: std::ops::RangeInclusive<f64>,
    problems: &mut Diagnostics,
) -> Option<f64> {
    if section.get("limit").is_none() {
        problems.push(section.missing("limit"));
        return None;
    }
    section.number("limit", range, problems)
}

fn alpha(section: &mut Section<'_>, problems: &mut Diagnostics) -> Alpha {
    let given = section.number("alpha", 0.0001..=0.5, problems);
    given.and_then(|alpha| Alpha::new(alpha).ok()).unwrap_or(Alpha::P05)
}

fn confirm(section: &mut Section<'_>, problems: &mut Diagnostics) -> Option<Confirm> {
    let mut inner = section.section("confirm", problems)?;
    let location = inner.location().clone();
    let mut required = |key: &'static str, problems: &mut Diagnostics| {
        if inner.get(key).is_none() {
            problems.push(inner.missing(key));
            return None;
        }
        inner.small(key, 1..=15, problems)
    };
    let (draws, agree) = (required("draws", problems), required("agree", problems));
    inner.finish(problems);
    let confirm = Confirm { draws: draws?, agree: agree? };
    if confirm.agree > confirm.draws {
        problems.push(
            Diagnostic::error(
                Code::NotTogether,
                format!("{} of {} answers can never agree", confirm.agree, confirm.draws),
            )
            .at(location)
            .help("`agree` is at most `draws`; otherwise no finding could ever stand"),
        );
    }
    Some(confirm)
}

/// Reads the limit on a share. No bound ever reaches `perfect`.
fn share_limit(section: &mut Section<'_>, perfect: f64, problems: &mut Diagnostics) -> Option<ShareLimit> {
    const BOUNDS: [(&str, bool); 2] = [("point", false), ("upper", true)];
    const POPULATIONS: [(&str, Population); 2] =
        [("population", Population::UsersLikeThese), ("fixed-personas", Population::FixedPersonas)];
    let limit = limit(section, 0.0..=1.0, problems);
    let bounded = section.word("bound", &BOUNDS, problems).unwrap_or(false);
    let confidence = section.number("confidence", 0.5..=0.9999, problems);
    let population = section.word("inference", &POPULATIONS, problems);
    if !bounded && (confidence.is_some() || population.is_some()) {
        problems.push(
            Diagnostic::error(
                Code::NotTogether,
                "`confidence` and `inference` have no meaning for the observed share",
            )
            .at(section.location().clone())
            .help("add `bound: upper`, or remove the two keys"),
        );
    }
    if bounded && limit.is_some_and(|limit| (limit - perfect).abs() < f64::EPSILON) {
        problems.push(
            Diagnostic::error(
                Code::NotTogether,
                format!("no number of conversations can show a share of exactly {} %", 100.0 * perfect),
            )
            .at(section.location().clone())
            .help(format!(
                "allow a little, such as {}, or compare the observed share with `bound: point`",
                (perfect - 0.02).abs()
            )),
        );
    }
    let against = if bounded {
        Standard::Bound {
            confidence: confidence.and_then(|c| Confidence::new(c).ok()).unwrap_or(Confidence::P95),
            population: population.unwrap_or(Population::UsersLikeThese),
        }
    } else {
        Standard::Point
    };
    Some(ShareLimit { limit: limit?, against })
}

fn regression(section: &mut Section<'_>, problems: &mut Diagnostics) -> RegressionRule {
    const CORRECTIONS: [(&str, Correction); 3] =
        [("holm", Correction::Holm), ("tarone-holm", Correction::TaroneHolm), ("none", Correction::None)];
    let test = section.word("test", &Test::WORDS, problems).unwrap_or(Test::SignFlip);
    let alpha = alpha(section, problems);
    let correction = section.word("correction", &CORRECTIONS, problems).unwrap_or_default();
    let floor = section.number("floor", 0.0..=0.5, problems).unwrap_or(0.03);
    let exact = section.boolean("exact", problems).unwrap_or(false);
    let margin = section.number("margin", 0.0..=1.0, problems);
    let min_personas = section.small("min_personas", 1..=1_000_000, problems).unwrap_or(30);
    let overall = section.boolean("overall", problems).unwrap_or(false);
    RegressionRule {
        test,
        alpha,
        correction,
        floor,
        exactness: if exact { Exactness::Exact } else { Exactness::Mid },
        margin,
        min_personas,
        overall,
    }
}
