//! Shards of one plan become one run. Pure: what was read goes in, one run or the reason why not comes out.

use std::collections::{BTreeMap, BTreeSet};

use super::record::{MergedShard, ModelRecord, PlanFile, PlannedConversation, RunRecord, Stop, UsageRecord};
use crate::model::{Money, Role};
use crate::rating::Assessment;
use crate::sweep::journal::part_differences;
use crate::sweep::plan::Cell;
use crate::sweep::scheduler::CellStatus;
use crate::sweep::shard::Shard;
use crate::transcript::ConversationId;

/// How many conversations a problem names before it counts the rest.
const NAMED: usize = 3;

/// What one run of a shard left.
#[derive(Clone, Debug)]
pub struct Part {
    /// What messages call it: its folder.
    pub name: String,
    /// Its record.
    pub record: RunRecord,
    /// The whole plan, with what became of its own conversations.
    pub plan: PlanFile,
    /// Its evaluations.
    pub ratings: Vec<Assessment>,
}

/// The run that the shards add up to.
#[derive(Clone, Debug)]
pub struct Merged {
    /// Provenance, coverage and usage of all shards together.
    pub record: RunRecord,
    /// The plan with what became of each conversation.
    pub plan: PlanFile,
    /// The evaluations, ordered by conversation and judge.
    pub ratings: Vec<Assessment>,
    /// Where the transcripts of held conversations are: the place of the part in the list that was given.
    pub held_by: BTreeMap<ConversationId, usize>,
    /// What keeps the shards from being the whole; empty when they are.
    pub problems: Vec<String>,
    /// What a reader should know, such as which of two attempts was used.
    pub notes: Vec<String>,
}

/// Why runs cannot be merged at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// No run was given.
    #[error("there is no run to merge")]
    Nothing,
    /// A run is of a whole plan.
    #[error("`{name}` is a whole run and no shard; `vera-gate gate` gives its verdict")]
    Whole {
        /// The run.
        name: String,
    },
    /// Two runs are of different plans.
    #[error("`{first}` and `{second}` are of different plans: {}", differences.join("; "))]
    OtherPlan {
        /// One of them.
        first: String,
        /// The other.
        second: String,
        /// What is not the same, as `name: first -> second`.
        differences: Vec<String>,
    },
}

/// Merges the runs of shards. A shard that is there several times counts once: a complete attempt beats a partial
/// one, then the newest counts.
///
/// # Errors
/// When the runs do not belong together. Missing shards are no error but [`Merged::problems`].
pub fn merge(parts: &[Part], run_id: &str) -> Result<Merged, MergeError> {
    let of = same_plan(parts)?;
    let mut notes = Vec::new();
    let chosen = choose(parts, &mut notes);
    let first = chosen.values().next().and_then(|index| parts.get(*index)).ok_or(MergeError::Nothing)?;
    let mut problems: Vec<String> = (1..=of)
        .filter(|number| !chosen.contains_key(number))
        .map(|n| format!("shard {n} missing"))
        .collect();
    let owners = owners(parts, &chosen, problems.is_empty(), &mut problems);
    let mut plan = first.plan.clone();
    for conversation in &mut plan.conversations {
        conversation.status = owners
            .get(&conversation.cell.id)
            .and_then(|index| status(parts.get(*index)?, &conversation.cell.id))
            .unwrap_or(CellStatus::NotStarted);
    }
    let ratings = ratings(parts, &chosen, &owners, &mut problems);
    let held = |c: &&PlannedConversation| matches!(c.status, CellStatus::Held { .. });
    let held_by = plan
        .conversations
        .iter()
        .filter(held)
        .filter_map(|c| Some((c.cell.id.clone(), *owners.get(&c.cell.id)?)));
    let held_by: BTreeMap<ConversationId, usize> = held_by.collect();
    let runs: Vec<&RunRecord> =
        chosen.values().filter_map(|index| parts.get(*index)).map(|p| &p.record).collect();
    let record = record(&first.record, &runs, run_id, &plan, held_by.len(), ratings.len(), &problems);
    Ok(Merged { record, plan, ratings, held_by, problems, notes })
}

/// Into how many shards the plan is divided that all runs share.
fn same_plan(parts: &[Part]) -> Result<u32, MergeError> {
    let first = parts.first().ok_or(MergeError::Nothing)?;
    for part in parts {
        let Some(shard) = part.record.shard else {
            return Err(MergeError::Whole { name: part.name.clone() });
        };
        let (ours, theirs) = (&first.record, &part.record);
        let mut differences = part_differences(&ours.plan_parts, &theirs.plan_parts);
        let mut differ = |what: &str, same: bool| {
            if !same && differences.is_empty() {
                differences.push(format!("{what} not the same"));
            }
        };
        differ("plan hash is", ours.plan_hash == theirs.plan_hash);
        differ("fingerprints of rubric, personas and prompts are", ours.fingerprints == theirs.fingerprints);
        differ("settings are", ours.settings == theirs.settings);
        differ("judges are", first.plan.judges == part.plan.judges);
        differ("dimensions are", first.plan.dimensions == part.plan.dimensions);
        differ("planned conversations are", cells(&first.plan).eq(cells(&part.plan)));
        if let Some(one) = ours.shard.filter(|one| one.of() != shard.of()) {
            differences.push(format!("shards: {} -> {}", one.of(), shard.of()));
        }
        if !differences.is_empty() {
            let (first, second) = (first.name.clone(), part.name.clone());
            return Err(MergeError::OtherPlan { first, second, differences });
        }
    }
    Ok(first.record.shard.map_or(0, Shard::of))
}

fn cells(plan: &PlanFile) -> impl Iterator<Item = &Cell> {
    plan.conversations.iter().map(|conversation| &conversation.cell)
}

/// One attempt of each shard, by its number.
fn choose(parts: &[Part], notes: &mut Vec<String>) -> BTreeMap<u32, usize> {
    let mut attempts: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, part) in parts.iter().enumerate() {
        if let Some(shard) = part.record.shard {
            attempts.entry(shard.number()).or_default().push(index);
        }
    }
    let mut chosen = BTreeMap::new();
    for (number, mut indexes) in attempts {
        // All times are written in the same form, in UTC, so that their texts order like the times.
        let rank = |index: &usize| {
            parts.get(*index).map(|part| {
                let record = &part.record;
                (record.complete, &record.finished, record.evaluated, record.held, &part.name)
            })
        };
        indexes.sort_by(|a, b| rank(b).cmp(&rank(a)));
        let describe = |index: &usize| {
            parts.get(*index).map_or_else(String::new, |part| {
                let state = if part.record.complete { "complete" } else { "partial" };
                format!("`{}` ({state}, finished {})", part.name, part.record.finished)
            })
        };
        let Some((best, others)) = indexes.split_first() else { continue };
        if !others.is_empty() {
            let left: Vec<String> = others.iter().map(describe).collect();
            notes.push(format!(
                "shard {number} is there {} times: {} is used, not {}",
                indexes.len(),
                describe(best),
                left.join(", ")
            ));
        }
        chosen.insert(number, *best);
    }
    chosen
}

fn status(part: &Part, id: &ConversationId) -> Option<CellStatus> {
    // Conversations are ordered by name.
    let conversations = &part.plan.conversations;
    let index = conversations.binary_search_by(|c| c.cell.id.cmp(id)).ok()?;
    conversations.get(index).map(|conversation| conversation.status.clone())
}

/// Which part held each conversation. When all shards are there, each conversation must be in exactly one.
fn owners(
    parts: &[Part],
    chosen: &BTreeMap<u32, usize>,
    all_there: bool,
    problems: &mut Vec<String>,
) -> BTreeMap<ConversationId, usize> {
    let mut owners: BTreeMap<ConversationId, usize> = BTreeMap::new();
    let mut twice = Vec::new();
    for index in chosen.values() {
        let Some(part) = parts.get(*index) else { continue };
        for conversation in &part.plan.conversations {
            if conversation.status == CellStatus::OtherShard {
                continue;
            }
            if owners.insert(conversation.cell.id.clone(), *index).is_some() {
                twice.push(conversation.cell.id.0.clone());
            }
        }
    }
    if !twice.is_empty() {
        problems.push(format!("in several shards: {}", named(&twice)));
    }
    if all_there {
        let plan = chosen.values().next().and_then(|index| parts.get(*index)).map(|part| &part.plan);
        let ids = plan.into_iter().flat_map(cells).map(|cell| &cell.id);
        let none: Vec<String> = ids.filter(|id| !owners.contains_key(*id)).map(|id| id.0.clone()).collect();
        if !none.is_empty() {
            problems.push(format!("in no shard: {}", named(&none)));
        }
    }
    owners
}

fn named(ids: &[String]) -> String {
    let shown = ids.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match ids.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The evaluations, each from the shard that its conversation belongs to and from every judge once.
fn ratings(
    parts: &[Part],
    chosen: &BTreeMap<u32, usize>,
    owners: &BTreeMap<ConversationId, usize>,
    problems: &mut Vec<String>,
) -> Vec<Assessment> {
    let mut ratings: Vec<Assessment> = Vec::new();
    let mut strange = Vec::new();
    for index in chosen.values() {
        for rating in parts.get(*index).iter().flat_map(|part| &part.ratings) {
            if owners.get(&rating.conversation) == Some(index) {
                ratings.push(rating.clone());
            } else {
                strange.push(rating.conversation.0.clone());
            }
        }
    }
    if !strange.is_empty() {
        problems.push(format!("rated in a shard that they do not belong to: {}", named(&strange)));
    }
    ratings.sort_by(|a, b| a.conversation.cmp(&b.conversation).then(a.judge.cmp(&b.judge)));
    let same = |a: &Assessment, b: &Assessment| a.conversation == b.conversation && a.judge == b.judge;
    let twice: Vec<String> = ratings
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] if same(a, b) => Some(a.conversation.0.clone()),
            _ => None,
        })
        .collect();
    if !twice.is_empty() {
        problems.push(format!("rated twice by the same judge: {}", named(&twice)));
        ratings.dedup_by(|a, b| same(a, b));
    }
    ratings
}

fn record(
    first: &RunRecord,
    runs: &[&RunRecord],
    run_id: &str,
    plan: &PlanFile,
    held: usize,
    evaluated: usize,
    problems: &[String],
) -> RunRecord {
    let planned = plan.conversations.len();
    let models = models(runs);
    RunRecord {
        run_id: run_id.to_owned(),
        shard: None,
        merged: runs
            .iter()
            .filter_map(|run| {
                Some(MergedShard {
                    shard: run.shard?,
                    run_id: run.run_id.clone(),
                    started: run.started.clone(),
                    finished: run.finished.clone(),
                })
            })
            .collect(),
        started: runs.iter().map(|run| run.started.clone()).min().unwrap_or_default(),
        finished: runs.iter().map(|run| run.finished.clone()).max().unwrap_or_default(),
        planned: planned as u64,
        held: held as u64,
        evaluated: evaluated as u64,
        complete: problems.is_empty() && held == planned && evaluated == planned * plan.judges.len(),
        stopped: stopped(runs, problems),
        replayed_calls: runs.iter().map(|run| run.replayed_calls).sum(),
        warnings: warnings_of(runs, &models),
        usage: usage(runs),
        models,
        ..first.clone()
    }
}

/// The same models in every shard, with all the ids that came back.
fn models(runs: &[&RunRecord]) -> Vec<ModelRecord> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let mut models = first.models.clone();
    for (index, model) in models.iter_mut().enumerate() {
        let more = others.iter().filter_map(|run| run.models.get(index)).flat_map(|m| &m.returned);
        let all: BTreeSet<String> = model.returned.iter().chain(more).cloned().collect();
        model.returned = all.into_iter().collect();
    }
    models
}

/// What a reader should know when one requested model was answered by several; `None` when it was not.
pub fn several_models(role: Role, requested: &str, returned: &[String]) -> Option<String> {
    (returned.len() > 1).then(|| format!("{}{}", answered_by(role, requested), returned.join(", ")))
}

fn answered_by(role: Role, requested: &str) -> String {
    format!("{role} model {requested} was answered by several models: ")
}

/// The warnings of all parts of a run, each once. Whether a model changed shows only in the answers of all of them.
pub fn warnings_of(runs: &[&RunRecord], models: &[ModelRecord]) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    for warning in runs.iter().flat_map(|run| &run.warnings) {
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    for model in models {
        let name = format!("{}/{}", model.provider, model.requested);
        let Some(warning) = several_models(model.role, &name, &model.returned) else { continue };
        if !warnings.contains(&warning) {
            let start = answered_by(model.role, &name);
            warnings.retain(|earlier| !earlier.starts_with(&start));
            warnings.push(warning);
        }
    }
    warnings
}

/// The first of the worst: what is missing, then what no retry would mend, then what was used up, then a signal.
fn stopped(runs: &[&RunRecord], problems: &[String]) -> Option<Stop> {
    if !problems.is_empty() {
        return Some(Stop::Shards(problems.join("; ")));
    }
    let of = |run: &&RunRecord| -> Option<(u8, Stop)> {
        let said = |text: &str| match run.shard {
            Some(shard) => format!("shard {}: {text}", shard.number()),
            None => text.to_owned(),
        };
        Some(match run.stopped.as_ref()? {
            Stop::Provider(why) => (0, Stop::Provider(said(why))),
            Stop::Storage(why) => (1, Stop::Storage(said(why))),
            Stop::Shards(why) => (2, Stop::Shards(said(why))),
            Stop::Budget(why) => (3, Stop::Budget(said(why))),
            Stop::Cancelled => (4, Stop::Cancelled),
            // A shard is never ended by what its part of the plan shows.
            Stop::Curtailed(reason) => (5, Stop::Shards(said(&reason.words()))),
        })
    };
    runs.iter().filter_map(of).min_by_key(|(rank, _)| *rank).map(|(_, stop)| stop)
}

fn usage(runs: &[&RunRecord]) -> Vec<UsageRecord> {
    let mut sums: BTreeMap<(Role, String, String, String), (UsageRecord, Money)> = BTreeMap::new();
    for row in runs.iter().flat_map(|run| &run.usage) {
        let (provider, model) = row.model.split_once('/').unwrap_or(("", &row.model));
        let key = (row.role, provider.to_owned(), model.to_owned(), row.stage.clone());
        // A cost that cannot be read is unknown, never nothing.
        let cost = Money::parse_dollars(row.cost.trim_start_matches('$'));
        let unreadable = if cost.is_none() { row.calls } else { 0 };
        let cost = cost.unwrap_or(Money::ZERO);
        let row = UsageRecord { unknown_cost: row.unknown_cost.max(unreadable), ..row.clone() };
        match sums.get_mut(&key) {
            None => {
                sums.insert(key, (row, cost));
            }
            Some((sum, money)) => {
                sum.calls += row.calls;
                sum.attempts += row.attempts;
                sum.replayed += row.replayed;
                sum.input += row.input;
                sum.cache_read += row.cache_read;
                sum.cache_write += row.cache_write;
                sum.output += row.output;
                sum.reasoning += row.reasoning;
                sum.unknown_usage += row.unknown_usage;
                sum.unknown_cost += row.unknown_cost;
                *money = money.plus(cost);
            }
        }
    }
    sums.into_values()
        .map(|(row, cost)| UsageRecord { cost: cost.to_string(), cost_micros: cost.micros(), ..row })
        .collect()
}

#[cfg(test)]
mod tests;
