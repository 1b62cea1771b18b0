//! What a planned sweep can detect and certify under a thresholds file, before a single call.

use serde::{Deserialize, Serialize};

use super::check::{family_size, finding};
use super::rules::{Each, Population, RuleKind, Scope, ShareLimit, Standard, Test};
use super::thresholds::Thresholds;
use super::verdict::Measure;
use crate::stats::power::{
    Assumptions, Finding, PlannedSweep, most_harms_passing, personas_needed, relevant_needed,
    zero_harm_upper_bound,
};
use crate::target::RiskLevel;

/// The sweep that is planned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerInput<'a> {
    /// The rules.
    pub thresholds: &'a Thresholds,
    /// Dimensions of the rubric.
    pub dimensions: &'a [String],
    /// Personas by name with their risk levels, each once.
    pub personas: &'a [(String, Option<RiskLevel>)],
    /// Conversations with each: user models times runs.
    pub conversations_per_persona: u64,
    /// What is assumed about the chatbot.
    pub assumptions: Assumptions,
    /// A rise of the harm rate that someone wants to be found, 0 to 1.
    pub wanted: Option<f64>,
}

/// What the sweep can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerReport {
    /// Conversations of the sweep.
    pub conversations: u64,
    /// Relevant ones to expect in a dimension.
    pub relevant: f64,
    /// Per regression rule.
    pub regressions: Vec<RegressionPower>,
    /// Per limit with a bound.
    pub limits: Vec<LimitPower>,
}

/// What a regression rule finds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegressionPower {
    /// The rule.
    pub rule: String,
    /// Chance of a false alarm over all dimensions together.
    pub false_alarm: f64,
    /// The test, as the thresholds file calls it. What follows is known for `sign-flip` only.
    pub test: String,
    /// The smallest rise found in about four of five cases when one dimension is tested alone; `None` when none is.
    pub smallest_rise: Option<f64>,
    /// The same when every dimension takes part in the adjustment.
    pub smallest_rise_adjusted: Option<f64>,
    /// Whether there are fewer personas than the rule wants.
    pub too_few_personas: bool,
    /// The wanted rise and the personas it needs, with as many conversations each; `None` when no sweep finds it.
    pub wanted: Option<(f64, Option<u64>)>,
}

/// What a limit with a bound can certify.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitPower {
    /// The rule.
    pub rule: String,
    /// What the limit is on: `harm` at most, or `best-practice` at least.
    pub measure: Measure,
    /// The limit.
    pub limit: f64,
    /// Conversations of the sweep that are in the rule's scope.
    pub conversations: u64,
    /// The rate of harm, or of less than best practice, that is not excluded when none is seen.
    pub not_excluded_at_zero: Option<f64>,
    /// Most conversations in a dimension that are harmful, or less than best practice, and still pass; `None` when not even
    /// zero do.
    pub most_harms: Option<u64>,
    /// Conversations in the scope that a sweep of this shape needs to pass without any such.
    pub conversations_needed: Option<u64>,
}

/// Forecasts what the sweep can detect and certify.
pub fn power_report(input: &PowerInput<'_>) -> PowerReport {
    // A rule sees what is in its scope, and no more.
    let in_scope = |scope: &Scope| {
        let within = input.personas.iter().filter(|(name, level)| scope.has_conversation(name, *level));
        PlannedSweep {
            personas: within.count() as u64,
            conversations_per_persona: input.conversations_per_persona,
            assumptions: input.assumptions,
        }
    };
    let sweep = in_scope(&Scope::default());
    let mut report = PowerReport {
        conversations: sweep.conversations(),
        relevant: sweep.relevant(),
        regressions: Vec::new(),
        limits: Vec::new(),
    };
    for rule in &input.thresholds.rules {
        let sweep = in_scope(&rule.scope);
        match rule.kind {
            RuleKind::Regression(test) => {
                let members = match rule.each {
                    Each::Together => 1,
                    Each::Dimension => {
                        input.dimensions.iter().filter(|name| rule.scope.has_dimension(name)).count()
                            + usize::from(test.overall)
                    }
                };
                let adjusted = finding(&test, family_size(&test, members));
                let known = test.test == Test::SignFlip;
                let smallest = |finding: &Finding| sweep.smallest_detectable(finding).filter(|_| known);
                report.regressions.push(RegressionPower {
                    rule: rule.id.clone(),
                    false_alarm: test.alpha.get(),
                    test: test.test.word().to_owned(),
                    smallest_rise: smallest(&finding(&test, 1)),
                    smallest_rise_adjusted: smallest(&adjusted),
                    too_few_personas: sweep.personas < u64::from(test.min_personas),
                    wanted: input.wanted.filter(|_| known).map(|wanted| {
                        let each = input.conversations_per_persona;
                        let needed = personas_needed(wanted, each, input.assumptions, &adjusted);
                        (wanted, needed.map(|n| n.max(u64::from(test.min_personas))))
                    }),
                });
            }
            RuleKind::MaxHarm(limit) => {
                report.limits.extend(certify(&sweep, &rule.id, Measure::Harm, limit));
            }
            RuleKind::MinBestPractice(limit) => {
                report.limits.extend(certify(&sweep, &rule.id, Measure::BestPractice, limit));
            }
            _ => {}
        }
    }
    report
}

/// What a limit with a bound can certify; a limit on the observed share needs no number of conversations.
fn certify(sweep: &PlannedSweep, rule: &str, measure: Measure, share: ShareLimit) -> Option<LimitPower> {
    let Standard::Bound { confidence, population } = share.against else { return None };
    // Both limits become "at most" by counting what is unwanted.
    let limit = match measure {
        Measure::BestPractice => 1.0 - share.limit,
        _ => share.limit,
    };
    let design_effect = match population {
        Population::UsersLikeThese => sweep.design_effect(),
        Population::FixedPersonas => 1.0,
    };
    let relevant_share = 1.0 - sweep.assumptions.not_relevant_rate();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a forecast, floored, never negative"
    )]
    let relevant = sweep.relevant().max(0.0) as u64;
    let needed = relevant_needed(0, limit, confidence).filter(|_| relevant_share > 0.0).map(|n| {
        let conversations = (n as f64 * design_effect / relevant_share).ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count far below 2^52")]
        let conversations = conversations as u64;
        conversations
    });
    Some(LimitPower {
        rule: rule.to_owned(),
        measure,
        limit: share.limit,
        conversations: sweep.conversations(),
        not_excluded_at_zero: zero_harm_upper_bound(relevant as f64 / design_effect, confidence),
        most_harms: most_harms_passing(relevant, design_effect, limit, confidence),
        conversations_needed: needed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::thresholds::Known;

    fn report(personas: u64, each: u64, wanted: Option<f64>) -> PowerReport {
        let dimensions = [
            "Detects Potential Risk",
            "Confirms Risk",
            "Guides to Human Care",
            "Supportive Conversation",
            "Follows AI Boundaries",
        ]
        .map(str::to_owned);
        let version = semver::Version::new(0, 1, 0);
        let today = chrono::NaiveDate::from_ymd_opt(2026, 10, 1).unwrap();
        let known = Known {
            dimensions: Some(&dimensions),
            labels: None,
            personas: None,
            tool_version: &version,
            today,
        };
        let (thresholds, _) = Thresholds::parse_builtin("builtin:release", &known).unwrap();
        // Three in ten at each of the three levels of risk, as in the built-in targets.
        let level = |index: u64| match index % 10 {
            0 => RiskLevel::None,
            1..=3 => RiskLevel::Low,
            4..=6 => RiskLevel::High,
            _ => RiskLevel::Immediate,
        };
        let people: Vec<(String, Option<RiskLevel>)> =
            (0..personas).map(|index| (format!("P{index}"), Some(level(index)))).collect();
        power_report(&PowerInput {
            thresholds: &thresholds,
            dimensions: &dimensions,
            personas: &people,
            conversations_per_persona: each,
            assumptions: Assumptions::default(),
            wanted,
        })
    }

    #[test]
    fn twenty_conversations_detect_and_certify_nothing_small() {
        // Simulated: 20x1 finds a rise of about 35 points in 80 of 100; 16 relevant conversations without harm leave
        // room for 1 - 0.05^(1/16) = 17 %.
        let found = report(20, 1, None);
        let regression = &found.regressions[0];
        assert!(regression.too_few_personas);
        assert!(regression.smallest_rise.is_some_and(|rise| (rise - 0.35).abs() < 0.03));
        let harm = found.limits.iter().find(|limit| limit.rule == "harm").unwrap();
        assert_eq!(harm.most_harms, None);
        assert!(
            harm.not_excluded_at_zero
                .is_some_and(|rate| (rate - (1.0 - 0.05f64.powf(1.0 / 16.0))).abs() < 1e-9)
        );
    }

    #[test]
    fn a_full_sweep_finds_eight_points_and_names_what_five_need() {
        let found = report(100, 2, Some(0.05));
        let regression = &found.regressions[0];
        assert!(regression.smallest_rise.is_some_and(|rise| (rise - 0.08).abs() < 0.008));
        assert!(regression.smallest_rise_adjusted > regression.smallest_rise);
        let (_, personas) = regression.wanted.unwrap();
        assert!(personas.is_some_and(|n| n > 200), "{personas:?}");
        // 163 relevant at design effect 1.5: 59 * 1.5 / 0.815 = 109 conversations certify 5 % with zero harm.
        let critical = found.limits.iter().find(|limit| limit.rule == "harm-critical").unwrap();
        assert_eq!(critical.conversations_needed, Some(109));
        assert_eq!((found.conversations, critical.most_harms.is_some()), (200, true));
        // At immediate risk there are 30 personas with 60 conversations; 48 of them relevant, at 1.5 worth 32: with no
        // harm 1 - 0.05^(1/32) = 8.9 % is not excluded.
        let immediate = found.limits.iter().find(|limit| limit.rule == "harm-immediate-danger").unwrap();
        assert_eq!(immediate.conversations, 60);
        assert!(
            immediate
                .not_excluded_at_zero
                .is_some_and(|rate| (rate - (1.0 - 0.05f64.powf(1.0 / 32.0))).abs() < 1e-9)
        );
    }
}
