//! Prices per token and what a call costs.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_yaml::{Number, Value};

use super::{Money, Usage};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Source;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    date: Option<String>,
    models: BTreeMap<String, Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    input: Number,
    cache_read: Option<Number>,
    cache_write: Option<Number>,
    output: Number,
    long: Option<LongEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LongEntry {
    above: u64,
    input: Number,
    cache_read: Option<Number>,
    cache_write: Option<Number>,
    output: Number,
}

/// Prices of one token in each bucket; `None` where there is no known price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rates {
    input: Money,
    cache_read: Option<Money>,
    cache_write: Option<Money>,
    output: Money,
}

/// The price of one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    rates: Rates,
    long: Option<(u64, Rates)>,
}

/// All prices, with the date on which they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceTable {
    date: Option<String>,
    models: BTreeMap<String, Price>,
}

static SHIPPED: LazyLock<PriceTable> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the file is part of the program and a test reads it")]
    let table = PriceTable::read(include_str!("prices.yaml")).expect("the embedded prices are well-formed");
    table
});

/// `provider/model` of every shipped price.
pub(crate) fn shipped_names() -> Vec<String> {
    SHIPPED.models.keys().cloned().collect()
}

impl PriceTable {
    /// The prices that come with the tool.
    pub fn shipped() -> Self {
        SHIPPED.clone()
    }

    /// The shipped prices with a file of the user's laid over them. Its keys are `provider/model`, or `provider/*`
    /// for everything of a provider; its prices are dollars per million tokens, and 0 may be said there.
    pub fn shipped_with(source: &Source) -> Result<Self, Diagnostic> {
        let own = Self::read(source.text()).map_err(|(message, line_column)| {
            let (line, column) = line_column.unwrap_or((1, 1));
            Diagnostic::error(Code::Syntax, message).at(source.at(line, column)).help(
                "prices look like `models: {openai/gpt-6-luna: {input: 0.1, output: 0.5}}`, in dollars per million tokens",
            )
        })?;
        let mut table = Self::shipped();
        table.date = own.date.or(table.date);
        table.models.extend(own.models);
        Ok(table)
    }

    fn read(text: &str) -> Result<Self, (String, Option<(usize, usize)>)> {
        let file: File = serde_yaml::from_str(text).map_err(|error| {
            (error.to_string(), error.location().map(|place| (place.line(), place.column())))
        })?;
        let mut models = BTreeMap::new();
        for (name, entry) in file.models {
            let price = entry.price().map_err(|what| (format!("`{name}`: {what}"), None))?;
            models.insert(name, price);
        }
        Ok(Self { date: file.date, models })
    }

    /// The day on which the prices were read.
    pub fn date(&self) -> Option<&str> {
        self.date.as_deref()
    }

    /// The price of a model, whose id may end in a date.
    pub fn price(&self, provider: &str, model: &str) -> Option<&Price> {
        let model = model.strip_prefix("models/").unwrap_or(model);
        let exact = self.models.get(&format!("{provider}/{model}"));
        exact
            .or_else(|| self.models.get(&format!("{provider}/{}", without_date(model)?)))
            .or_else(|| self.models.get(&format!("{provider}/*")))
    }

    /// What a call costs; `None` when the model or one of its used buckets has no known price.
    pub fn cost(&self, provider: &str, model: &str, usage: &Usage) -> Option<Money> {
        self.price(provider, model)?.cost(usage)
    }
}

impl Price {
    /// What a call with this usage costs.
    pub fn cost(&self, usage: &Usage) -> Option<Money> {
        let prompt = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        let rates = match &self.long {
            Some((above, long)) if prompt > *above => long,
            _ => &self.rates,
        };
        let bucket = |tokens: u64, rate: Option<Money>| match (tokens, rate) {
            (0, _) => Some(Money::ZERO),
            (tokens, rate) => Some(rate?.times(tokens)),
        };
        let reply = usage.output.saturating_add(usage.reasoning);
        Some(
            rates
                .input
                .times(usage.input)
                .plus(bucket(usage.cache_read, rates.cache_read)?)
                .plus(bucket(usage.cache_write, rates.cache_write)?)
                .plus(rates.output.times(reply)),
        )
    }
}

impl Entry {
    fn price(&self) -> Result<Price, String> {
        let long = match &self.long {
            None => None,
            Some(long) => Some((
                long.above,
                rates(&long.input, long.cache_read.as_ref(), long.cache_write.as_ref(), &long.output)?,
            )),
        };
        let rates = rates(&self.input, self.cache_read.as_ref(), self.cache_write.as_ref(), &self.output)?;
        Ok(Price { rates, long })
    }
}

fn rates(
    input: &Number,
    cache_read: Option<&Number>,
    cache_write: Option<&Number>,
    output: &Number,
) -> Result<Rates, String> {
    Ok(Rates {
        input: per_token(input)?,
        cache_read: cache_read.map(per_token).transpose()?,
        cache_write: cache_write.map(per_token).transpose()?,
        output: per_token(output)?,
    })
}

/// From dollars per million tokens; exact, or refused.
fn per_token(number: &Number) -> Result<Money, String> {
    const MILLION: u64 = 1_000_000;
    let text = Value::Number(number.clone());
    let text = serde_yaml::to_string(&text).unwrap_or_default();
    let million = Money::parse_dollars(&text).ok_or_else(|| format!("`{}` is no price", text.trim()))?;
    if million.pico() % MILLION != 0 {
        return Err(format!("`{}` has more than six decimal places", text.trim()));
    }
    Ok(Money::from_pico(million.pico() / MILLION))
}

/// `gpt-4o-2024-08-06` and `claude-haiku-4-5-20251001` without their dates.
fn without_date(model: &str) -> Option<&str> {
    let is_date =
        |tail: &str| tail.bytes().all(|b| b.is_ascii_digit() || b == b'-') && tail.starts_with("20");
    [10, 8].into_iter().find_map(|length| {
        let at = model.len().checked_sub(length)?;
        let (head, tail) = (model.get(..at)?, model.get(at..)?);
        let digits = tail.bytes().filter(u8::is_ascii_digit).count();
        head.strip_suffix('-').filter(|_| digits == 8 && is_date(tail))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The oracle: a gateway charged 1.794e-4 dollars for 2006 prompt tokens, 1920 of them cached and 64 written,
    /// and 300 reply tokens of gpt-6-luna. By hand: 22 x 0.1 + 1920 x 0.01 + 64 x 0.125 + 300 x 0.5 = 179.4
    /// micro-dollars.
    #[test]
    fn cost_equals_the_gateways_to_the_last_digit() {
        let usage = Usage { input: 22, cache_read: 1920, cache_write: 64, output: 172, reasoning: 128 };
        let cost = PriceTable::shipped().cost("openai", "gpt-6-luna", &usage);
        assert_eq!(cost, Money::parse_dollars("1.794e-4"));
        assert_eq!(cost.unwrap().to_string(), "$0.0001794");
    }

    #[test]
    fn prices_below_a_micro_dollar_are_exact() {
        // 1000 x 0.0088 / 10^6 dollars.
        let usage = Usage { cache_read: 1000, ..Usage::default() };
        let cost = PriceTable::shipped().cost("bedrock", "amazon.nova-micro-v1:0", &usage);
        assert_eq!(cost, Some(Money::from_pico(8_800_000)));
    }

    #[test]
    fn unknown_is_never_zero() {
        let table = PriceTable::shipped();
        let usage = Usage { input: 10, ..Usage::default() };
        assert_eq!(table.cost("openai", "gpt-99", &usage), None);
        assert_eq!(table.cost("vllm", "gpt-6-luna", &usage), None);
        // gpt-5.5 has no price for cache writes.
        assert_eq!(table.cost("openai", "gpt-5.5", &Usage { cache_write: 1, ..usage }), None);
        // The long context has no price for cached tokens.
        let long = Usage { input: 300_000, cache_read: 1, ..Usage::default() };
        assert_eq!(table.cost("openai", "gpt-6-luna", &long), None);
    }

    #[test]
    fn a_long_prompt_costs_the_long_price() {
        // 300,000 x 0.2 + 1000 x 0.75 micro-dollars.
        let usage = Usage { input: 300_000, output: 1000, ..Usage::default() };
        let cost = PriceTable::shipped().cost("openai", "gpt-6-luna", &usage);
        assert_eq!(cost, Money::parse_dollars("0.06075"));
    }

    #[test]
    fn dated_ids_have_the_price_of_their_model() {
        let table = PriceTable::shipped();
        assert!(table.price("anthropic", "claude-haiku-4-5-20251001").is_some());
        assert!(table.price("openai", "gpt-4.1-2025-04-14").is_some());
        assert_eq!(table.price("openai", "gpt-4.1-turbo"), None);
    }

    #[test]
    fn own_prices_win_and_may_be_zero() {
        let source = Source::new(
            "p.yaml",
            "models:\n  llama-cpp/*: {input: 0, output: 0}\n  openai/gpt-6-luna: {input: 7, output: 9}\n",
        );
        let table = PriceTable::shipped_with(&source).unwrap();
        let usage = Usage { input: 1_000_000, ..Usage::default() };
        assert_eq!(table.cost("llama-cpp", "anything", &usage), Some(Money::ZERO));
        assert_eq!(table.cost("openai", "gpt-6-luna", &usage), Money::parse_dollars("7"));
        assert!(table.price("anthropic", "claude-haiku-5-5").is_some());
    }

    #[test]
    fn a_wrong_price_file_is_refused() {
        for text in [
            "models:\n  a/b: {input: -1, output: 0}",
            "models:\n  a/b: {input: .nan, output: 0}",
            "models:\n  a/b: {input: 1}",
            "models:\n  a/b: {input: 1, output: 1, extra: 2}",
            "models:\n  a/b: {input: 0.0000001, output: 0}",
        ] {
            assert!(PriceTable::shipped_with(&Source::new("p.yaml", text)).is_err(), "{text}");
        }
    }

    #[test]
    fn the_shipped_prices_are_dated() {
        assert!(
            PriceTable::shipped()
                .date()
                .is_some_and(|date| chrono::NaiveDate::parse_from_str(date, "%Y-%m-%d").is_ok())
        );
    }
}
