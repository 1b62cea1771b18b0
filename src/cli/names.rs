//! What the names in a thresholds file are held against: a target, or what a result says of its own.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::Evidence;
use super::load::Loaded;
use super::prepare::{load_target, today, tool_version};
use crate::diagnostic::Diagnostics;
use crate::gate::thresholds::{Known, Thresholds};
use crate::run::{PlanFile, RunRecord};
use crate::source::Source;
use crate::target::{self, Target, embedded};

/// Names that rules may use; `None` where they are not known.
#[derive(Debug, Default)]
pub(super) struct Names {
    dimensions: Option<Vec<String>>,
    labels: Option<BTreeSet<String>>,
    personas: Option<Vec<String>>,
    /// The dimensions of each failure mode.
    modes: BTreeMap<String, BTreeSet<String>>,
}

impl Names {
    /// Those of a target.
    pub(super) fn of_target(target: &Target) -> Self {
        let rubric = &target.rubric;
        let mut modes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for question in &rubric.questions {
            if let (Some(label), Some(dimension)) =
                (&question.label, rubric.dimensions.get(question.dimension))
            {
                modes.entry(label.clone()).or_default().insert(dimension.clone());
            }
        }
        Self {
            dimensions: Some(rubric.dimensions.clone()),
            labels: Some(modes.keys().cloned().collect()),
            personas: Some(target.personas.iter().map(|persona| persona.name.clone()).collect()),
            modes,
        }
    }

    /// Those of a run: of its target where that can be found unchanged, and of its plan. A plan for a part of the
    /// personas does not tell who else there is.
    pub(super) fn of_run(record: &RunRecord, plan: &PlanFile, loaded: &Loaded) -> Self {
        let planned: BTreeSet<&str> =
            plan.conversations.iter().map(|conversation| conversation.cell.persona.as_str()).collect();
        let planned = planned.into_iter().map(str::to_owned);
        if let Some(target) = target_of(record, loaded) {
            let mut names = Self::of_target(&target);
            names.personas.get_or_insert_default().extend(planned);
            return names;
        }
        let chosen = ["sweep.personas", "sweep.risk_levels", "sweep.sample"];
        let everybody = chosen.iter().all(|part| record.plan_parts.get(*part).is_some_and(String::is_empty));
        Self {
            dimensions: Some(plan.dimensions.clone()),
            labels: Some(plan.labels.values().cloned().collect()),
            personas: everybody.then(|| planned.collect()),
            modes: BTreeMap::new(),
        }
    }

    /// Those of a result. A bare results file names no failure modes, so rules about them cannot be held against it.
    pub(super) fn of_evidence(evidence: &Evidence, loaded: &Loaded) -> Self {
        match (&evidence.record, &evidence.plan_file) {
            (Some(record), Some(plan)) => Self::of_run(record, plan, loaded),
            _ => Self { dimensions: Some(evidence.dimensions.clone()), ..Self::default() },
        }
    }

    /// Reads thresholds.
    pub(super) fn thresholds(&self, source: &Source) -> Result<(Thresholds, Diagnostics), Diagnostics> {
        let known = Known {
            dimensions: self.dimensions.as_deref(),
            labels: self.labels.as_ref(),
            personas: self.personas.as_deref(),
            tool_version: &tool_version(),
            today: today(),
        };
        let (thresholds, mut problems) = Thresholds::parse(source, &known)?;
        problems.extend(thresholds.impossible_scopes(&self.modes));
        problems.finish(Some(thresholds))
    }
}

/// The target that a run was made with: the configured or a built-in one, if it is the same to the letter.
fn target_of(record: &RunRecord, loaded: &Loaded) -> Option<Target> {
    let configured = load_target(loaded).ok().map(|(target, _)| target);
    let builtin = embedded::TARGETS.iter().find(|(name, _)| *name == record.target);
    let builtin = builtin.and_then(|(name, _)| target::load(name, &embedded::files()).ok());
    let same = |target: &Target| target.fingerprints == record.fingerprints;
    configured.filter(same).or_else(|| builtin.map(|(target, _)| target).filter(same))
}
