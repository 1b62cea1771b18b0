//! What a sweep will need before it starts: calls, tokens, money and minutes, each as a range.
//!
//! A forecast rests on stated assumptions about the length of messages and replies; the low end assumes that persons
//! leave early and prefixes are cached, the high end that every conversation has its full length and nothing is
//! cached.

use serde::Serialize;

use super::plan::{Plan, message_limit};
use crate::config::{Ahead, Sweep};
use crate::model::prices::Price;
use crate::model::{Money, Role, Usage};
use crate::target::Target;
use crate::target::rubric::Graph;

/// Tokens of a message of the person.
const USER_MESSAGE: u64 = 40;
/// Tokens of a message of the chatbot.
const CHATBOT_MESSAGE: u64 = 180;
/// Tokens of a judge's answer with its reasons.
const ANSWER: u64 = 150;
/// Characters of English text per token.
const CHARACTERS_PER_TOKEN: u64 = 4;
/// Share of the full length at which persons may leave, for the low end: one half.
const EARLY: u64 = 2;
/// Seconds of a reply, fast and slow.
const REPLY_SECONDS: (f64, f64) = (1.5, 6.0);

/// A low and a high end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Range<T> {
    /// Low end.
    pub low: T,
    /// High end.
    pub high: T,
}

/// What one model in one role will need.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoleForecast {
    /// The role.
    pub role: Role,
    /// The model.
    pub model: String,
    /// Calls.
    pub calls: Range<u64>,
    /// Prompt tokens.
    pub input: Range<u64>,
    /// Reply tokens without reasoning.
    pub output: Range<u64>,
    /// Money; `None` when the price is not known.
    pub cost: Option<Range<Money>>,
}

/// What a sweep will need.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Conversations.
    pub conversations: u64,
    /// Per role and model.
    pub roles: Vec<RoleForecast>,
    /// Minutes from start to end.
    pub minutes: Range<f64>,
}

/// A model of the sweep with its price and how often it works on each conversation.
#[derive(Clone, Debug)]
pub struct Priced {
    /// The role.
    pub role: Role,
    /// The model's name.
    pub model: String,
    /// Its price, if known.
    pub price: Option<Price>,
    /// Repetitions, for judges; for users the share of conversations is one of the number of user models.
    pub instances: u64,
}

/// Forecasts a sweep. `calls_at_once` is the cap on calls.
pub fn forecast(
    target: &Target,
    plan: &Plan,
    sweep: &Sweep,
    models: &[Priced],
    ahead: Ahead,
    calls_at_once: u32,
) -> Forecast {
    let conversations = plan.cells.len() as u64;
    let full = u64::from(message_limit(sweep.max_messages, sweep.first_speaker));
    let early = (full / EARLY).max(2);
    let graph = Graph::new(&target.rubric);
    let askable = target.rubric.questions.iter().filter(|q| q.auto.is_none()).count() as u64;
    let (fewest, most) = (graph.shortest_walk().calls as u64, graph.longest_walk().calls as u64);
    let clean = graph.clean_calls().map_or((fewest, most), |(low, high)| (low as u64, high as u64));
    let questions = match ahead {
        Ahead::None | Ahead::Certain => Range { low: clean.0, high: most },
        Ahead::Dimension => Range { low: clean.0, high: askable },
        Ahead::All => Range { low: askable, high: askable },
    };
    let persona_prompt =
        average(target.personas.iter().map(|p| target.prompts.persona_system(p).len() as u64));
    let question_prompt =
        average(target.rubric.questions.iter().map(|q| target.prompts.question(q).len() as u64));
    let users = models.iter().filter(|m| m.role == Role::User).count().max(1) as u64;
    let roles = models
        .iter()
        .map(|model| match model.role {
            Role::User => {
                let share = conversations.div_ceil(users);
                talk(model, share, early, full, persona_prompt, USER_MESSAGE)
            }
            Role::Candidate => talk(model, conversations, early, full, 0, CHATBOT_MESSAGE),
            Role::Judge => {
                let per = conversations * model.instances;
                let transcript = |messages: u64| messages * (USER_MESSAGE + CHATBOT_MESSAGE) / 2;
                let prompt = target.prompts.judge_system("", "").len() as u64 / CHARACTERS_PER_TOKEN;
                let input =
                    |calls: u64, messages: u64| calls * (prompt + transcript(messages) + question_prompt);
                let calls = Range { low: per * questions.low, high: per * questions.high };
                priced(
                    model,
                    calls,
                    Range { low: input(calls.low, early), high: input(calls.high, full) },
                    Range { low: calls.low * ANSWER, high: calls.high * ANSWER },
                )
            }
        })
        .collect::<Vec<_>>();
    let total = |end: fn(&Range<u64>) -> u64| roles.iter().map(|r| end(&r.calls)).sum::<u64>();
    let at_once = f64::from(calls_at_once.max(1));
    // The longest chain: every message waits for the one before, then the judge's rounds.
    let rounds = match ahead {
        Ahead::None => most,
        Ahead::Certain => most.div_ceil(3),
        Ahead::Dimension | Ahead::All => 2,
    };
    let minutes = |calls: u64, messages: u64, seconds: f64| {
        let chain = (messages + rounds) as f64 * seconds;
        let work = calls as f64 * seconds / at_once;
        chain.max(work) / 60.0
    };
    Forecast {
        conversations,
        minutes: Range {
            low: minutes(total(|r| r.low), early, REPLY_SECONDS.0),
            high: minutes(total(|r| r.high), full, REPLY_SECONDS.1),
        },
        roles,
    }
}

fn average(lengths: impl Iterator<Item = u64>) -> u64 {
    let (sum, count) = lengths.fold((0, 0), |(sum, count), length| (sum + length, count + 1));
    sum.checked_div(count).unwrap_or(0) / CHARACTERS_PER_TOKEN
}

/// One side of the conversations: half of the messages, each with the whole history before it.
fn talk(model: &Priced, conversations: u64, early: u64, full: u64, system: u64, reply: u64) -> RoleForecast {
    let side = |messages: u64| conversations * messages / 2;
    // Call number k carries 2k messages of the mean length: the sum over n calls is n * n of them.
    let input = |messages: u64| {
        let n = messages / 2;
        conversations * (n * system + n * n * (USER_MESSAGE + CHATBOT_MESSAGE) / 2)
    };
    priced(
        model,
        Range { low: side(early), high: side(full) },
        Range { low: input(early), high: input(full) },
        Range { low: side(early) * reply, high: side(full) * reply },
    )
}

fn priced(model: &Priced, calls: Range<u64>, input: Range<u64>, output: Range<u64>) -> RoleForecast {
    let cost = model.price.as_ref().and_then(|price| {
        // Prices may rise with the length of a prompt, so it is the mean call that is priced.
        let each = |tokens: u64, calls: u64| tokens.div_ceil(calls.max(1));
        let plain = |input: u64, output: u64, calls: u64| Usage {
            input: each(input, calls),
            output: each(output, calls),
            ..Usage::default()
        };
        let high = price.cost(&plain(input.high, output.high, calls.high))?.times(calls.high);
        // Low end: nine tenths of the prompt come from a cache, where the model has one.
        let low = plain(input.low, output.low, calls.low);
        let cached = Usage { input: low.input / 10, cache_read: low.input - low.input / 10, ..low };
        let low = price.cost(&cached).or_else(|| price.cost(&low))?.times(calls.low);
        Some(Range { low, high })
    });
    RoleForecast { role: model.role, model: model.model.clone(), calls, input, output, cost }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::source::FileSet;
    use crate::target::load;

    #[test]
    fn calls_are_counted_as_the_sweep_makes_them() {
        let target = load("builtin:si", &FileSet::memory("", Vec::<(String, String)>::new())).unwrap().0;
        let sweep = Sweep { runs: 2, ..Config::builtin().sweep };
        let plan = Plan::new(&target, &sweep, &["m".to_owned()]).unwrap();
        let model = |role| Priced { role, model: "m".to_owned(), price: None, instances: 1 };
        let models = Role::ALL.map(model);
        let made = forecast(&target, &plan, &sweep, &models, Ahead::Certain, 64);
        // 200 conversations of 30 messages: 15 calls of each side; at most 30 questions, at least 29 on a clean walk.
        assert_eq!(made.roles[0].calls.high, 200 * 15);
        assert_eq!(made.roles[1].calls.high, 200 * 15);
        assert_eq!((made.roles[2].calls.low, made.roles[2].calls.high), (200 * 29, 200 * 30));
        assert!(made.roles.iter().all(|role| role.cost.is_none()), "an unknown price is unknown, never 0");
        assert!(made.minutes.low < made.minutes.high);
        // Asking everything at once: 37 questions each, since one of the 38 answers itself.
        let all = forecast(&target, &plan, &sweep, &models, Ahead::All, 64);
        assert_eq!((all.roles[2].calls.low, all.roles[2].calls.high), (200 * 37, 200 * 37));
    }
}
