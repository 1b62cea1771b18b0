//! What a pull request changes in the rules it is judged by, in words for the top of the report.

use std::collections::{BTreeMap, BTreeSet};

use super::conclude::{Baselines, decide};
use super::evidence::{self, Evidence};
use super::load::Loaded;
use super::names::Names;
use super::policy::{Base, Rules};
use super::prepare::{load_target, thresholds_source};
use crate::config::yaml;
use crate::diagnostic::Diagnostics;
use crate::gate::GateVerdict;
use crate::publish::policy::compare::{self, short};
use crate::source::Source;
use crate::target::{Persona, Target};

/// The sentence on top of the report and a line for each change; nothing when the rules are those that lie there, or the
/// proposal does not touch them.
pub(super) fn words(loaded: &Loaded, evidence: &Evidence, verdict: &GateVerdict) -> Option<String> {
    let base = match &loaded.rules {
        Rules::AsTheyLie => return None,
        Rules::Proposal => {
            return Some(
                "Policy of the pull request: it was judged by its own rules and not by those of the base branch, because \
                 the workflow asks for it (policy: head)."
                    .to_owned(),
            );
        }
        Rules::Elsewhere(what) => {
            return Some(format!(
                "Policy not of the base branch: this pull request was judged by rules from {what}, which is no checkout of \
                 its repository."
            ));
        }
        Rules::Base(base) => base,
    };
    let mut lines = Vec::new();
    let tested = configuration(loaded, base, &mut lines);
    for name in &base.new {
        lines.push(format!("`{name}`: new; the base branch has none, so the pull request's own was used"));
    }
    for name in &base.new_baselines {
        lines.push(format!(
            "baseline `{name}`: new; the base branch has none, and the pull request's own was not used"
        ));
    }
    let mut judging = Vec::new();
    if let Some(proposal) = &base.proposal {
        thresholds(loaded, proposal, &mut judging);
        baselines(loaded, proposal, &mut judging);
        files(loaded, proposal, &mut lines);
        targets(loaded, proposal, &mut lines);
    }
    if !judging.is_empty() {
        judging.extend(base.proposal.as_ref().and_then(|proposal| by_its_own(proposal, evidence, verdict)));
    }
    // What decides stands first.
    judging.append(&mut lines);
    let lines = judging;
    let first = if !lines.is_empty() {
        format!(
            "Policy changed: this pull request changes the rules it is judged by. It was judged by those of the base \
             branch at {}{}.",
            base.short(),
            if base.new.is_empty() { "" } else { " where there are any" }
        )
    } else if !tested.is_empty() {
        "This pull request changes the settings of the chatbot under test; they were tested as it has them."
            .to_owned()
    } else if base.beside.is_empty() {
        return None;
    } else {
        // The sentence about them is the first.
        return Some(beside(base));
    };
    let lines = lines.into_iter().chain((!base.beside.is_empty()).then(|| beside(base)));
    Some(std::iter::once(first).chain(lines).chain(tested).collect::<Vec<_>>().join("\n"))
}

/// Rules that neither side of the pull request holds: the workflow's own business, but nobody reviews them here.
fn beside(base: &Base) -> String {
    let names = base.beside.iter().map(|name| format!("`{}`", short(name))).collect::<Vec<_>>().join(", ");
    format!(
        "Policy not all of the base branch: {names} is from outside of the repository's commits (beside the checkout, or \
         made by an earlier step), and was used as it lies there."
    )
}

/// The settings of the configuration. Those of the candidate are what is tested, and come back on their own.
fn configuration(loaded: &Loaded, base: &Base, lines: &mut Vec<String>) -> Vec<String> {
    let name = loaded.source.name();
    // One that does not come from the base branch goes by its file's name; it is told as a new file.
    if loaded.name == name {
        return Vec::new();
    }
    let Some(proposal) = &base.proposal else {
        lines.push(format!("configuration `{name}`: removed"));
        return Vec::new();
    };
    if proposal.source.name() != name {
        lines.push(format!("configuration: `{name}` becomes `{}`", proposal.source.name()));
    }
    let differences = settings(&loaded.source, &proposal.source);
    let is_tested = |words: &String| words.starts_with("candidate");
    let (tested, rules): (Vec<String>, Vec<String>) = differences.into_iter().partition(is_tested);
    lines.extend(compare::told(rules).into_iter().map(|words| format!("configuration: {words}")));
    compare::told(tested).into_iter().map(|words| format!("under test: {words}")).collect()
}

fn settings(base: &Source, head: &Source) -> Vec<String> {
    if base.text() == head.text() {
        return Vec::new();
    }
    let json = |source: &Source| yaml::parse(source, &mut Diagnostics::new()).and_then(|node| node.to_json());
    match (json(base), json(head)) {
        (Some(base), Some(head)) => compare::settings(&base, &head),
        _ => compare::texts(base.text(), head.text()).into_iter().collect(),
    }
}

fn thresholds(loaded: &Loaded, proposal: &Loaded, lines: &mut Vec<String>) {
    let name = &proposal.config.gate.thresholds;
    match (thresholds_source(loaded), thresholds_source(proposal)) {
        (Ok(base), Ok(head)) => {
            let words = compare::told(settings(&base, &head));
            lines.extend(words.into_iter().map(|words| format!("thresholds: {words}")));
        }
        (Ok(_), Err(_)) => lines.push(format!("thresholds: `{}` is removed or cannot be read", short(name))),
        (Err(_), _) => {}
    }
}

fn baselines(loaded: &Loaded, proposal: &Loaded, lines: &mut Vec<String>) {
    let gate =
        |loaded: &Loaded| [loaded.config.gate.baseline.clone(), loaded.config.gate.last_accepted.clone()];
    let names = ["baseline", "last accepted run"];
    for ((name, old), new) in names.into_iter().zip(gate(loaded)).zip(gate(proposal)) {
        let read = |reference: &Option<String>, loaded: &Loaded| {
            evidence::baseline(reference.as_deref()?, &loaded.files()).map(Result::ok)
        };
        let held = |count: usize| format!("{count} conversations");
        match (read(&old, loaded), read(&new, proposal)) {
            (Some(Some(old)), Some(Some(new))) if old == new => {}
            (Some(Some(old)), Some(Some(new))) => lines.push(format!(
                "{name}: another result ({} \u{2192} {})",
                held(old.conversations.len()),
                held(new.conversations.len())
            )),
            (Some(_), None) => lines.push(format!("{name}: removed")),
            (Some(_), Some(None)) => lines.push(format!("{name}: cannot be read")),
            // A new one is told as a new file.
            (None | Some(None), _) => {}
        }
    }
}

/// Prices, certificates and the templates of the report.
fn files(loaded: &Loaded, proposal: &Loaded, lines: &mut Vec<String>) {
    let text = |loaded: &Loaded, name: &str| loaded.files().read(name).ok();
    let mut one = |kind: &str, name: &str| match (text(loaded, name), text(proposal, name)) {
        (Some(base), Some(head)) => {
            let words = compare::texts(base.text(), head.text());
            lines.extend(words.map(|words| format!("{kind} `{}`: {words}", short(name))));
        }
        (Some(_), None) => lines.push(format!("{kind} `{}`: removed", short(name))),
        (None, Some(_)) => lines.push(format!("{kind} `{}`: added", short(name))),
        (None, None) => {}
    };
    if let Some(prices) = &loaded.config.prices {
        one("prices", prices);
    }
    if let Some(ca_cert) = &loaded.config.ca_cert {
        one("certificates", ca_cert);
    }
    if let Some(folder) = &loaded.config.report.templates {
        let list = |loaded: &Loaded| loaded.files().list(folder).unwrap_or_default();
        let names: BTreeSet<String> = list(loaded).into_iter().chain(list(proposal)).collect();
        for name in names {
            one("template", &format!("{folder}/{name}"));
        }
    }
}

fn targets(loaded: &Loaded, proposal: &Loaded, lines: &mut Vec<String>) {
    let (base, head) = match (load_target(loaded), load_target(proposal)) {
        (Ok((base, _)), Ok((head, _))) => (base, head),
        (Ok(_), Err(_)) => {
            return lines.push("target: the pull request's has faults; see `vera-gate check`".to_owned());
        }
        (Err(_), _) => return,
    };
    lines.extend(compare::told(personas(&base, &head)));
    lines.extend(compare::told(questions(&base, &head)));
    if base.fingerprints.personas != head.fingerprints.personas && base.personas == head.personas {
        lines.push("personas: the reading of risk levels changed".to_owned());
    }
    if base.fingerprints.prompts != head.fingerprints.prompts {
        lines.push("prompts of user model or judge changed".to_owned());
    }
}

fn personas(base: &Target, head: &Target) -> Vec<String> {
    fn level(persona: &Persona) -> &'static str {
        persona.risk_level.map_or("no risk level", crate::target::RiskLevel::word)
    }
    let by_name = |target: &Target| -> BTreeMap<String, Persona> {
        target.personas.iter().map(|persona| (persona.name.clone(), persona.clone())).collect()
    };
    let (before, after) = (by_name(base), by_name(head));
    let mut words = Vec::new();
    for (name, old) in &before {
        let named = format!("persona `{}` ({})", short(name), level(old));
        match after.get(name) {
            None => words.push(format!("{named} removed")),
            Some(new) if new.risk_level != old.risk_level => {
                words.push(format!("{named}: risk level becomes {}", level(new)));
            }
            Some(new) if new.cells != old.cells => {
                let changed: Vec<&str> = old
                    .cells
                    .keys()
                    .chain(new.cells.keys())
                    .filter(|column| old.cells.get(*column) != new.cells.get(*column))
                    .map(String::as_str)
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect();
                words.push(format!("{named} changed in {}", short(&changed.join(", "))));
            }
            Some(_) => {}
        }
    }
    let added = after.iter().filter(|(name, _)| !before.contains_key(*name));
    words.extend(added.map(|(name, new)| format!("persona `{}` ({}) added", short(name), level(new))));
    words
}

fn questions(base: &Target, head: &Target) -> Vec<String> {
    if base.fingerprints.rubric == head.fingerprints.rubric {
        return Vec::new();
    }
    let find = |target: &Target, id: &str| target.rubric.questions.iter().find(|q| q.id == id).cloned();
    let mut words = Vec::new();
    for old in &base.rubric.questions {
        match find(head, &old.id) {
            None => words.push(format!("question {} removed", short(&old.id))),
            Some(new) if new.severity != old.severity => {
                words.push(format!("question {}: what a Yes means changed", short(&old.id)));
            }
            Some(new)
                if (&new.text, &new.examples, &new.options) != (&old.text, &old.examples, &old.options)
                    || (&new.label, new.dimension, new.auto) != (&old.label, old.dimension, old.auto) =>
            {
                words.push(format!("question {} changed", short(&old.id)));
            }
            Some(_) => {}
        }
    }
    let added = head.rubric.questions.iter().filter(|q| find(base, &q.id).is_none());
    words.extend(added.map(|q| format!("question {} added", short(&q.id))));
    if words.is_empty() {
        words.push("the rubric changed".to_owned());
    }
    words
}

/// The verdict that the proposal's thresholds and baseline would give on the same conversations.
fn by_its_own(proposal: &Loaded, evidence: &Evidence, verdict: &GateVerdict) -> Option<String> {
    let source = thresholds_source(proposal).ok()?;
    let Ok((thresholds, _)) = Names::of_evidence(evidence, proposal).thresholds(&source) else {
        return Some("thresholds: the pull request's own have faults; see `vera-gate check`".to_owned());
    };
    let own = decide(evidence, &thresholds, &Baselines::read(proposal), &evidence.confirmations);
    Some(format!(
        "by its own thresholds and baseline, the verdict would be {} instead of {}",
        own.verdict.word(),
        verdict.verdict.word()
    ))
}
