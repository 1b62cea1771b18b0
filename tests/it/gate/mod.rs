//! The gate on results files: the acceptance cases, a pass and a fail for each rule, and what holds for every input.

mod cases;
mod lacking;
mod properties;
mod published;
mod rules;
mod scope;
mod stop;
mod waivers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use semver::Version;
use vera_gate::baseline::{Baseline, Provenance};
use vera_gate::gate::{
    BaselineState, CellStatus, Confirmation, GateInput, GateVerdict, Known, PlannedCell, Thresholds, evaluate,
};
use vera_gate::matrix::{Collapsed, collapse, read_results};
use vera_gate::source::Source;
use vera_gate::target::RiskLevel;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn today() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 10, 1).unwrap()
}

/// Everything one evaluation needs, owned.
struct Gate {
    thresholds: Thresholds,
    dimensions: Vec<String>,
    labels: BTreeMap<String, String>,
    plan: Option<Vec<PlannedCell>>,
    conversations: Vec<Collapsed>,
    provenance: Provenance,
    baseline: Option<Baseline>,
    confirmations: Vec<Confirmation>,
    version: Version,
}

impl Gate {
    fn new(thresholds: &str, dimensions: &[String], conversations: Vec<Collapsed>) -> Self {
        Self {
            thresholds: parse(thresholds, dimensions).unwrap_or_else(|problems| panic!("{problems}")),
            dimensions: dimensions.to_vec(),
            labels: BTreeMap::new(),
            plan: None,
            conversations,
            provenance: Provenance::default(),
            baseline: None,
            confirmations: Vec::new(),
            version: Version::new(0, 1, 0),
        }
    }

    /// Results as read from a file.
    fn of_results(thresholds: &str, path: &Path) -> Self {
        let (dimensions, conversations) = results(path);
        Self::new(thresholds, &dimensions, conversations)
    }

    fn against(mut self, path: &Path) -> Self {
        let (dimensions, conversations) = results(path);
        self.baseline = Some(Baseline::from_conversations(
            "",
            None,
            Provenance::default(),
            &dimensions,
            &conversations,
            &self.labels,
        ));
        self
    }

    fn input(&self) -> GateInput<'_> {
        GateInput {
            thresholds: &self.thresholds,
            dimensions: &self.dimensions,
            labels: &self.labels,
            plan: self.plan.as_deref(),
            conversations: &self.conversations,
            role_breaks: &[],
            provenance: &self.provenance,
            baseline: self.baseline.as_ref().map_or(BaselineState::None, |baseline| BaselineState::Found {
                source: "baseline.csv",
                baseline,
            }),
            last_accepted: BaselineState::None,
            confirmations: &self.confirmations,
            stopped: None,
            today: today(),
            tool_version: &self.version,
        }
    }

    fn verdict(&self) -> GateVerdict {
        evaluate(&self.input())
    }
}

fn parse(text: &str, dimensions: &[String]) -> Result<Thresholds, vera_gate::diagnostic::Diagnostics> {
    let version = Version::new(0, 1, 0);
    let known = Known {
        dimensions: Some(dimensions),
        labels: None,
        personas: None,
        tool_version: &version,
        today: today(),
    };
    Thresholds::parse(&Source::new("thresholds.yaml", text), &known).map(|(thresholds, _)| thresholds)
}

fn results(path: &Path) -> (Vec<String>, Vec<Collapsed>) {
    let source = Source::new(path.display().to_string(), text(path));
    let (results, _) = read_results(&source).unwrap_or_else(|problems| panic!("{problems}"));
    (results.dimensions, collapse(&results.rows))
}

/// The plan of a fixture: persona, run and what became of it.
fn plan(path: &Path) -> Vec<PlannedCell> {
    let cells: serde_json::Value = serde_json::from_str(&text(path)).unwrap();
    let cells = cells.get("cells").unwrap_or(&cells);
    cells
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| PlannedCell {
            persona: cell["persona"].as_str().unwrap().to_owned(),
            risk_level: cell["risk_level"].as_str().and_then(RiskLevel::from_word),
            user_model: String::new(),
            run: u32::try_from(cell["run"].as_u64().unwrap()).unwrap(),
            status: match cell["status"].as_str() {
                Some("errored") => CellStatus::Errored("503".to_owned()),
                Some("invalid") => CellStatus::Invalid,
                Some("missing") => CellStatus::Missing,
                _ => CellStatus::Finished,
            },
        })
        .collect()
}

/// The codes of the reasons at or above a weight.
fn codes(verdict: &GateVerdict, least: vera_gate::gate::verdict::Weight) -> Vec<&'static str> {
    verdict.reasons.iter().filter(|r| r.weight >= least).map(|r| r.code.as_str()).collect()
}
