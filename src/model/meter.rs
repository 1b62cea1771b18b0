//! What a run has used, per role, model and stage, and the budget that stops it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::clock::Clock;
use super::{CallId, Exchange, ModelIdentity, Money, Origin, Role, Usage};

/// Limits of a run; what is absent is not limited. Each of them is a hard stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Money. Needs a known price for every role.
    pub dollars: Option<Money>,
    /// Tokens of all kinds.
    pub tokens: Option<u64>,
    /// Requests, retries included.
    pub calls: Option<u64>,
    /// Time since the run began.
    pub time: Option<Duration>,
}

/// What the calls of one role to one model in one stage used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRow {
    /// Role.
    pub role: Role,
    /// Provider profile.
    pub provider: String,
    /// Requested model.
    pub model: String,
    /// Part of the work, such as `turn` or `question`.
    pub stage: String,
    /// Calls that came back, replayed ones left out.
    pub calls: u64,
    /// Requests made for them.
    pub attempts: u64,
    /// Calls answered from a recording. Their tokens and money were spent earlier and are not counted here.
    pub replayed: u64,
    /// Sum of the known usage.
    pub usage: Usage,
    /// Calls whose usage the provider did not say.
    pub unknown_usage: u64,
    /// Sum of the known cost.
    pub cost: Money,
    /// Calls whose cost is unknown, so that the true cost is higher than the sum.
    pub unknown_cost: u64,
}

#[derive(Debug, Default)]
struct State {
    calls: u64,
    tokens: u64,
    spent: Money,
    /// Calls that are out now, by role.
    out: BTreeMap<Role, u64>,
    /// The largest call so far of each role: what a call that is out may still cost.
    largest: BTreeMap<Role, (u64, Money)>,
    rows: BTreeMap<(Role, String, String, String), LedgerRow>,
}

/// Counts what a run uses; shared by all roles.
#[derive(Debug)]
pub struct Meter {
    budget: Budget,
    clock: Clock,
    started: Instant,
    state: Mutex<State>,
}

/// A request that is out; dropping it says that it is back.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    meter: &'a Meter,
    role: Role,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = self.meter.lock();
        if let Some(out) = state.out.get_mut(&self.role) {
            *out = out.saturating_sub(1);
        }
    }
}

impl Meter {
    /// Starts counting, and the time of the budget.
    pub fn new(budget: Budget, clock: Clock) -> Self {
        let started = clock.now();
        Self { budget, clock, started, state: Mutex::default() }
    }

    /// The limits.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time left, if time is limited.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let used = self.clock.now().saturating_duration_since(self.started);
        self.budget.time.map(|limit| limit.saturating_sub(used))
    }

    /// Lets one request out, or says which limit forbids it. Requests that are out count with the largest call of
    /// their role so far, so that many workers at once do not run past the limit together.
    pub(crate) fn admit(&self, role: Role) -> Result<Ticket<'_>, String> {
        if self.time_left().is_some_and(|left| left.is_zero()) {
            let minutes = self.budget.time.unwrap_or_default().as_secs_f64() / 60.0;
            return Err(format!("the budget of {minutes} minutes is used up"));
        }
        let mut state = self.lock();
        let (mut tokens, mut money) = (state.tokens, state.spent);
        for (role, out) in &state.out {
            let (most_tokens, most_money) = state.largest.get(role).copied().unwrap_or_default();
            tokens = tokens.saturating_add(most_tokens.saturating_mul(*out));
            money = money.plus(most_money.times(*out));
        }
        if let Some(limit) = self.budget.calls.filter(|&limit| state.calls >= limit) {
            return Err(format!("the budget of {limit} calls is used up"));
        }
        if let Some(limit) = self.budget.tokens.filter(|&limit| tokens >= limit) {
            return Err(format!("the budget of {limit} tokens is used up"));
        }
        if let Some(limit) = self.budget.dollars.filter(|&limit| money >= limit) {
            return Err(format!("the budget of {limit} is used up"));
        }
        state.calls = state.calls.saturating_add(1);
        *state.out.entry(role).or_default() += 1;
        Ok(Ticket { meter: self, role })
    }

    /// Counts calls that an earlier go of the run made, each as one request: the budget is that of the whole run.
    pub(crate) fn made_earlier(&self, calls: u64) {
        let mut state = self.lock();
        state.calls = state.calls.saturating_add(calls);
    }

    /// Writes a call into the ledger.
    pub(crate) fn record(&self, role: Role, identity: &ModelIdentity, id: &CallId, exchange: &Exchange) {
        let stage = id.step.split('-').next().unwrap_or(&id.step).to_owned();
        let key = (role, identity.provider.clone(), identity.model.clone(), stage.clone());
        let mut state = self.lock();
        let row = state.rows.entry(key).or_insert_with(|| LedgerRow {
            role,
            provider: identity.provider.clone(),
            model: identity.model.clone(),
            stage,
            calls: 0,
            attempts: 0,
            replayed: 0,
            usage: Usage::default(),
            unknown_usage: 0,
            cost: Money::ZERO,
            unknown_cost: 0,
        });
        if exchange.origin == Origin::Replayed {
            row.replayed += 1;
            return;
        }
        row.calls += 1;
        row.attempts += u64::from(exchange.attempts);
        match &exchange.usage {
            Some(usage) => row.usage = row.usage.plus(usage),
            None => row.unknown_usage += 1,
        }
        match exchange.cost {
            Some(cost) => row.cost = row.cost.plus(cost),
            None => row.unknown_cost += 1,
        }
        let tokens = exchange.usage.map_or(0, |usage| usage.total());
        let cost = exchange.cost.unwrap_or(Money::ZERO);
        state.tokens = state.tokens.saturating_add(tokens);
        state.spent = state.spent.plus(cost);
        let largest = state.largest.entry(role).or_default();
        *largest = (largest.0.max(tokens), largest.1.max(cost));
    }

    /// The ledger, in the order of roles, providers, models and stages.
    pub fn rows(&self) -> Vec<LedgerRow> {
        self.lock().rows.values().cloned().collect()
    }

    /// Requests made so far.
    pub fn requests(&self) -> u64 {
        self.lock().calls
    }

    /// Money known to be spent, and the number of calls whose cost is unknown.
    pub fn spent(&self) -> (Money, u64) {
        let state = self.lock();
        (state.spent, state.rows.values().map(|row| row.unknown_cost).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Outcome;
    use crate::model::prices::PriceTable;
    use crate::source::Source;

    fn identity(provider: &str, model: &str) -> ModelIdentity {
        ModelIdentity { provider: provider.to_owned(), model: model.to_owned(), settings: String::new() }
    }

    fn id(step: &str) -> CallId {
        CallId { conversation: "c".to_owned(), step: step.to_owned(), draw: 1 }
    }

    fn exchange(input: u64, cost: Option<Money>) -> Exchange {
        Exchange {
            outcome: Outcome::Reply,
            text: "x".to_owned(),
            thinking: None,
            finish: None,
            usage: Some(Usage { input, ..Usage::default() }),
            cost,
            model: None,
            attempts: 1,
            origin: Origin::Live,
        }
    }

    fn meter(budget: Budget) -> Meter {
        Meter::new(budget, Clock::skipping())
    }

    /// One million input tokens at 5 dollars a million for the user model and one million at 1 dollar for the
    /// judge are 6 dollars, whatever the order.
    /// B55: 1M tokens at $5 and 1M at $1 are $6, whatever came first, in a row per role.
    #[test]
    fn each_role_is_priced_at_its_own_model() {
        let file = "models: {x/A: {input: 5.0, output: 0}, x/B: {input: 1.0, output: 0}}";
        let prices = PriceTable::shipped_with(&Source::new("prices.yaml", file)).unwrap();
        let usage = Usage { input: 1_000_000, ..Usage::default() };
        let calls = [(Role::User, "A"), (Role::Judge, "B")];
        let mut orders = Vec::new();
        for order in [[0, 1], [1, 0]] {
            let meter = meter(Budget::default());
            for index in order {
                let (role, model) = calls[index];
                let cost = prices.cost("x", model, &usage);
                meter.record(role, &identity("x", model), &id("turn-1"), &exchange(usage.input, cost));
            }
            assert_eq!(meter.spent(), (Money::parse_dollars("6").unwrap(), 0));
            orders.push(meter.rows());
        }
        assert_eq!(orders[0], orders[1]);
        let costs: Vec<String> = orders[0].iter().map(|row| format!("{} {}", row.role, row.cost)).collect();
        assert_eq!(costs, ["user $5.00", "judge $1.00"]);
    }

    #[test]
    fn two_roles_on_one_model_are_two_rows() {
        let meter = meter(Budget::default());
        for role in [Role::User, Role::Judge] {
            meter.record(role, &identity("x", "A"), &id("turn-1"), &exchange(1, None));
        }
        assert_eq!(meter.rows().len(), 2);
        assert_eq!(meter.spent(), (Money::ZERO, 2));
    }

    #[test]
    fn the_budget_of_calls_is_exact() {
        let meter = meter(Budget { calls: Some(2), ..Budget::default() });
        drop(meter.admit(Role::User).unwrap());
        let second = meter.admit(Role::Judge).unwrap();
        assert_eq!(meter.admit(Role::User).unwrap_err(), "the budget of 2 calls is used up");
        drop(second);
        assert!(meter.admit(Role::User).is_err());
    }

    #[test]
    fn calls_that_are_out_count_against_the_budget() {
        let dollar = Money::parse_dollars("1").unwrap();
        let meter = meter(Budget { dollars: Some(dollar.times(3)), ..Budget::default() });
        let first = meter.admit(Role::User).unwrap();
        drop(first);
        meter.record(Role::User, &identity("x", "A"), &id("turn-1"), &exchange(1, Some(dollar)));
        // One dollar is spent; two more calls may be out at a dollar each, a third may not.
        let _second = meter.admit(Role::User).unwrap();
        let third = meter.admit(Role::User).unwrap();
        assert_eq!(meter.admit(Role::User).unwrap_err(), "the budget of $3.00 is used up");
        drop(third);
        assert!(meter.admit(Role::User).is_ok());
    }

    #[test]
    fn the_budget_of_time_is_kept() {
        let clock = Clock::skipping();
        let meter =
            Meter::new(Budget { time: Some(Duration::from_secs(90)), ..Budget::default() }, clock.clone());
        assert!(meter.admit(Role::User).is_ok());
        futures::executor::block_on(clock.sleep(Duration::from_secs(90)));
        assert_eq!(meter.admit(Role::User).unwrap_err(), "the budget of 1.5 minutes is used up");
    }

    #[test]
    fn replayed_calls_cost_nothing_now() {
        let meter = meter(Budget { tokens: Some(10), ..Budget::default() });
        let replayed = Exchange { origin: Origin::Replayed, ..exchange(1000, Some(Money::from_pico(1))) };
        meter.record(Role::User, &identity("x", "A"), &id("turn-1"), &replayed);
        assert!(meter.admit(Role::User).is_ok());
        assert_eq!(meter.rows()[0].replayed, 1);
    }
}
