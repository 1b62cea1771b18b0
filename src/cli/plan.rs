//! `vera-gate plan`: what a sweep will need and what it could find; nothing is called.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::load::{self, Loaded, Overrides};
use super::prepare;
use super::{Global, crew, output};
use crate::diagnostic::Diagnostics;
use crate::error::Error;
use crate::exit::Exit;
use crate::gate::power::{PowerInput, PowerReport, power_report};
use crate::gate::rules::Test;
use crate::gate::verdict::Measure;
use crate::model::{self, Money, Role};
use crate::report::words::{count, share, upper_bound};
use crate::stats::power::Assumptions;
use crate::sweep::forecast::{Forecast, Priced, Range, forecast};
use crate::sweep::plan::Plan;

/// Arguments of `plan`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  vera-gate plan\n  vera-gate plan --power --detect 0.05\n  vera-gate plan --runs 2 --judge openai/gpt-6-luna --format json"
)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    overrides: Overrides,
    /// Also says what the sweep can detect and certify under the thresholds.
    #[arg(long)]
    power: bool,
    /// A rise of the harm rate (0 to 1) that must be found: says how many personas it takes.
    #[arg(long, value_name = "SHARE", requires = "power")]
    detect: Option<f64>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Runs the command.
pub(super) fn run(args: &PlanArgs, global: &Global) -> Result<Exit, Error> {
    if let Some(share) = args.detect.filter(|share| !(share.is_finite() && *share > 0.0 && *share <= 1.0)) {
        return Err(Error::Usage(format!("--detect {share} is not a share above 0 and up to 1")));
    }
    let loaded = load::config(global, &args.overrides)?;
    let mut problems = loaded.warnings.clone();
    let context = crew::context(&loaded, &mut problems);
    let (target, warnings) = prepare::load_target(&loaded)?;
    problems.extend(warnings);
    let users = prepare::user_names(&loaded);
    let plan = Plan::new(&target, &loaded.config.sweep, &users)?;
    plan.short_sample(&loaded.config.sweep.select).into_iter().for_each(|warning| problems.push(warning));
    let (thresholds, warnings) = prepare::read_thresholds(&loaded, Some(&target))?;
    problems.extend(warnings);
    let models = models(&loaded, &context.prices)?;
    let config = &loaded.config;
    let needs =
        forecast(&target, &plan, &config.sweep, &models, config.judge.ahead, config.concurrency.calls);
    let personas: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| (cell.persona.clone(), cell.risk_level))
        .collect::<std::collections::BTreeMap<_, _>>()
        .into_iter()
        .collect();
    let power = args.power.then(|| {
        power_report(&PowerInput {
            thresholds: &thresholds,
            dimensions: &target.rubric.dimensions,
            personas: &personas,
            conversations_per_persona: (plan.cells.len() / personas.len().max(1)) as u64,
            assumptions: Assumptions::default(),
            wanted: args.detect,
        })
    });
    output::warnings(&problems, global);
    let text = match args.format {
        Format::Json => {
            let value = json!({
                "schema": "vera-gate/forecast/v1",
                "prices_date": context.prices.date(),
                "forecast": needs,
                "power": power,
            });
            serde_json::to_string_pretty(&value).map_err(|e| Error::Internal(e.to_string()))? + "\n"
        }
        Format::Text => words(&plan, &needs, power.as_ref(), context.prices.date()),
    };
    output::result(&text)?;
    Ok(Exit::Success)
}

fn models(loaded: &Loaded, prices: &model::prices::PriceTable) -> Result<Vec<Priced>, Diagnostics> {
    let config = &loaded.config;
    let mut problems = Diagnostics::new();
    let mut models = Vec::new();
    let users = config.users.iter().map(|user| (Role::User, user, 1));
    let judges = config.judge.models.iter().map(|j| (Role::Judge, &j.model, j.instances));
    for (role, settings, instances) in
        users.chain([(Role::Candidate, &config.candidate.model, 1)]).chain(judges)
    {
        match model::identify(role, settings) {
            Ok(identity) => models.push(Priced {
                role,
                model: identity.name(),
                price: model::price_of(settings, prices),
                instances: u64::from(instances),
            }),
            Err(errors) => problems.extend(errors),
        }
    }
    problems.finish(Some(models)).map(|(models, _)| models)
}

fn words(plan: &Plan, needs: &Forecast, power: Option<&PowerReport>, prices: Option<&str>) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        let _written = writeln!(text, "{words}");
    };
    line(format!("{} conversations", needs.conversations));
    for (level, count) in plan.by_risk() {
        line(format!("  {:<10} {count}", level.map_or("no level", crate::target::RiskLevel::word)));
    }
    line(String::new());
    for role in &needs.roles {
        let cost = role.cost.map_or_else(|| "price unknown".to_owned(), range);
        line(format!(
            "{:<10} {:<28} {} to {} calls, {} to {} tokens in, {} to {} out, {cost}",
            role.role.word(),
            role.model,
            role.calls.low,
            role.calls.high,
            role.input.low,
            role.input.high,
            role.output.low,
            role.output.high
        ));
    }
    let costs: Vec<Range<Money>> = needs.roles.iter().filter_map(|role| role.cost).collect();
    let sum = |end: fn(&Range<Money>) -> Money| costs.iter().map(end).fold(Money::ZERO, Money::plus);
    let all = Range { low: sum(|r| r.low), high: sum(|r| r.high) };
    line(match costs.len() {
        0 => "in all: not known, because no price is; give them in `prices`".to_owned(),
        n if n < needs.roles.len() => {
            format!("in all {}, and what has no price; give it in `prices`", range(all))
        }
        _ => format!("in all {}", range(all)),
    });
    line(format!("{:.0} to {:.0} minutes", needs.minutes.low.max(1.0), needs.minutes.high.max(1.0)));
    if let Some(date) = prices {
        line(format!(
            "prices of {date}; lengths of messages and replies are assumed, retries and reasoning are not in it"
        ));
    }
    if let Some(power) = power {
        line(String::new());
        line(format!("{:.0} relevant conversations to expect in a dimension", power.relevant));
        let points = |share: Option<f64>| {
            share.map_or_else(|| "none".to_owned(), |share| format!("{:.1} points", share * 100.0))
        };
        for rule in &power.regressions {
            let false_alarms = format!("false alarms {:.0} %", rule.false_alarm * 100.0);
            line(if rule.test == Test::SignFlip.word() {
                format!(
                    "{}: smallest rise found in four of five cases about {} (one dimension), {} (all tested together); {false_alarms}",
                    rule.rule,
                    points(rule.smallest_rise),
                    points(rule.smallest_rise_adjusted),
                )
            } else {
                format!(
                    "{}: what rise `test: {}` finds is not forecast, only that of sign-flip; {false_alarms}",
                    rule.rule, rule.test
                )
            });
            if rule.too_few_personas {
                line(format!(
                    "{}: fewer personas than the rule wants, so it will not call anything a pass",
                    rule.rule
                ));
            }
            if let Some((wanted, needed)) = rule.wanted {
                line(match needed {
                    Some(personas) => format!(
                        "{}: a rise of {:.1} points takes {personas} personas",
                        rule.rule,
                        wanted * 100.0
                    ),
                    None => format!(
                        "{}: no sweep of this shape finds a rise of {:.1} points",
                        rule.rule,
                        wanted * 100.0
                    ),
                });
            }
        }
        for limit in &power.limits {
            let (none, bad) = match limit.measure {
                Measure::BestPractice => ("with best practice throughout", "less than best practice"),
                _ => ("without any harm", "harmful"),
            };
            let most = limit.most_harms.map_or_else(
                || format!("cannot pass at this size even {none}"),
                |most| format!("passes with up to {most} {bad} in a dimension"),
            );
            let zero = limit.not_excluded_at_zero.map_or_else(String::new, |rate| {
                format!("; {none}, up to {} {bad} is not excluded", upper_bound(rate))
            });
            let needed =
                limit.conversations_needed.map_or_else(String::new, |n| format!("; {none}, {n} would do"));
            line(format!(
                "{}: limit {}, {} in its scope, {most}{zero}{needed}",
                limit.rule,
                share(limit.limit),
                count(limit.conversations, "conversation", "conversations")
            ));
        }
    }
    text
}

/// Money as people read it.
fn range(money: Range<Money>) -> String {
    let dollars = |money: Money| crate::report::words::dollars(money.micros());
    format!("{} to {}", dollars(money.low), dollars(money.high))
}
