//! The configuration file: raw YAML to a validated [`Config`], with every problem at once.
//!
//! Paths stay as written; the edge resolves them against the folder of the file. Nothing here reads a file or the
//! environment.

pub mod model;
pub mod places;
mod roles;
pub mod show;
mod sweep;
pub mod yaml;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::source::{Location, Source};
use model::ModelSettings;
use yaml::Section;

/// Version tag of the configuration file.
pub const SCHEMA: &str = "vera-gate/config/v1";

/// The file names that are looked for, in this order.
pub const FILE_NAMES: [&str; 4] =
    ["vera-gate.yaml", "vera-gate.yml", ".github/vera-gate.yaml", ".github/vera-gate.yml"];

/// A validated configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Config {
    /// `builtin:si`, `builtin:hfo` or a folder.
    pub target: String,
    /// Persona files that replace the target's, if any.
    pub persona_files: Vec<String>,
    /// The models that play the person; each plays every persona.
    pub users: Vec<ModelSettings>,
    /// What is gated.
    pub candidate: Candidate,
    /// Who judges.
    pub judge: Judge,
    /// What is simulated.
    pub sweep: Sweep,
    /// How much at the same time.
    pub concurrency: Concurrency,
    /// Hard stops.
    pub budget: Budget,
    /// What the verdict rests on.
    pub gate: Gate,
    /// What the report shows.
    pub report: Report,
    /// Where run folders go.
    pub out: String,
    /// Prices that replace or add to the built-in list: a file.
    pub prices: Option<String>,
    /// Certificate authorities that are trusted beside the system's: a PEM file.
    pub ca_cert: Option<String>,
}

/// The chatbot under test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// The model or endpoint.
    pub model: ModelSettings,
    /// What reports call it; the model's name by default.
    pub name: Option<String>,
    /// Its system prompt as text.
    pub system_prompt: Option<String>,
    /// Its system prompt as a file; at most one of the two.
    pub system_prompt_file: Option<String>,
}

/// One judge model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgeModel {
    /// The model.
    pub model: ModelSettings,
    /// How often it judges each transcript.
    pub instances: u32,
}

/// Which questions are asked before the walk has come to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ahead {
    /// None: one question after the other.
    None,
    /// Those that the walk is certain to reach: not one call more than the walk itself.
    #[default]
    Certain,
    /// Also the rest of the dimension the walk is in.
    Dimension,
    /// Every question at once.
    All,
}

impl Ahead {
    /// The words of the configuration.
    pub const WORDS: [(&'static str, Self); 4] = [
        ("none", Self::None),
        ("certain", Self::Certain),
        ("dimension", Self::Dimension),
        ("all", Self::All),
    ];
}

/// Which rules rate a walk where VERA-MH's own are in doubt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Semantics {
    /// `END` and `ASSIGN_END` never discard a finding, and discard nothing when every dimension was visited.
    #[default]
    #[serde(rename = "native")]
    Native,
    /// Exactly as VERA-MH 1.1: `END` always discards everything, and so does `ASSIGN_END` when every dimension was
    /// visited.
    #[serde(rename = "vera-mh-1.1")]
    Upstream11,
}

impl Semantics {
    /// The words of the configuration.
    pub const WORDS: [(&'static str, Self); 2] =
        [("native", Self::Native), ("vera-mh-1.1", Self::Upstream11)];

    /// The word of the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Upstream11 => "vera-mh-1.1",
        }
    }

    /// Whether these are our own, which need no mention.
    pub fn is_native(&self) -> bool {
        *self == Self::Native
    }
}

/// Who judges and how.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judge {
    /// The judges.
    pub models: Vec<JudgeModel>,
    /// How often a question is asked again after an answer that fits no option.
    pub reasks: u32,
    /// Which questions are asked early.
    pub ahead: Ahead,
    /// Which rules rate a walk.
    pub semantics: Semantics,
    /// The judge of the second look before a never-rule fails; the first judge when absent.
    pub confirm: Option<ModelSettings>,
}

/// Who writes the first message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstSpeaker {
    /// The simulated person.
    #[default]
    User,
    /// The chatbot.
    Chatbot,
}

/// Which personas take part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Selection {
    /// These by name; all when empty.
    pub names: Vec<(String, Location)>,
    /// These risk levels; all when empty.
    pub risk_levels: Vec<(String, Location)>,
    /// So many of the rest, drawn by the seed with the shares of the risk levels kept.
    pub sample: Option<u32>,
}

/// What is simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sweep {
    /// Conversations per persona and user model.
    pub runs: u32,
    /// Messages per conversation, both sides counted.
    pub max_messages: u32,
    /// Words per conversation, both sides counted.
    pub max_words: Option<u32>,
    /// Who starts.
    pub first_speaker: FirstSpeaker,
    /// The first message, when no model is to write it.
    pub first_message: Option<String>,
    /// The prompt that makes the opening side write its first message.
    pub start_prompt: Option<String>,
    /// Which personas.
    pub select: Selection,
    /// Seeds the sample, the order of the work and the scripted models.
    pub seed: u64,
    /// How often a message of the user model that breaks its role is asked for again.
    pub resamples: u32,
    /// How often a failed conversation is started again.
    pub restarts: u32,
    /// Whether the sweep stops when the verdict can no longer change.
    pub curtail: Curtail,
}

/// When a sweep may stop before its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Curtail {
    /// Never.
    Never,
    /// When the missing conversations cannot let the build go on.
    #[default]
    Certain,
    /// Also when an anytime-valid test has shown the harm to be rare enough.
    EarlyPass,
}

/// How much goes on at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Concurrency {
    /// Calls in all.
    pub calls: u32,
    /// Conversations in all.
    pub conversations: u32,
}

/// Hard stops; a run that meets one is incomplete and can be resumed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Budget {
    /// Money, in dollars as written.
    pub dollars: Option<String>,
    /// Tokens of all kinds.
    pub tokens: Option<u64>,
    /// Calls.
    pub calls: Option<u64>,
    /// Time from the start of the run.
    pub time: Option<Duration>,
}

/// What the verdict rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gate {
    /// `builtin:pull-request`, `builtin:release`, `builtin:strict` or a file.
    pub thresholds: String,
    /// The pinned baseline: a file, a run folder, or `git:REF:PATH`.
    pub baseline: Option<String>,
    /// The last accepted run, compared as well: the same forms.
    pub last_accepted: Option<String>,
}

/// How much of a conversation a report may show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Failure mode, conversation and the judge's reason with quotes taken out.
    #[default]
    Reasons,
    /// Failure mode and conversation only.
    None,
    /// The judge's reason as it is, quotes of the conversation included. For private repositories.
    Quotes,
}

/// What the report shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How much of a conversation.
    pub evidence: Evidence,
    /// A folder with templates that replace the built-in ones.
    pub templates: Option<String>,
    /// A heading of the team's own, and the name that tells the comments of several gates apart.
    pub name: Option<String>,
}

/// The built-in configuration: the scripted models on the built-in target, so that the gate runs with no key.
pub const BUILTIN: &str = include_str!("../../templates/default.yaml");

/// What the built-in configuration is called in messages and provenance.
pub const BUILTIN_NAME: &str = "builtin:default";

impl Config {
    /// Reads and validates a configuration file.
    ///
    /// # Errors
    /// All problems at once, when one of them refuses the file; else the warnings come with the configuration.
    pub fn parse(source: &Source) -> Result<(Self, Diagnostics), Diagnostics> {
        let (config, problems) = Self::salvage(source);
        problems.finish(config)
    }

    /// Reads what can be read. With problems that refuse the file, the configuration is only good for finding more
    /// problems in what it names: scripted models stand in for roles that could not be read.
    pub fn salvage(source: &Source) -> (Option<Self>, Diagnostics) {
        let mut problems = Diagnostics::new();
        let node = yaml::parse(source, &mut problems);
        let file = node.as_ref().and_then(|node| Section::new(node, "", &mut problems));
        let config = file.map(|file| Self::read(file, &mut problems));
        (config, problems)
    }

    /// The built-in configuration. A test proves that it is valid.
    pub fn builtin() -> Self {
        match Self::parse(&Source::new(BUILTIN_NAME, BUILTIN)) {
            Ok((config, _)) => config,
            Err(problems) => unreachable!("the built-in configuration is broken: {problems}"),
        }
    }

    fn read(mut section: Section<'_>, problems: &mut Diagnostics) -> Self {
        let file = &mut section;
        check_schema(file, SCHEMA, problems);
        let target = file.text("target", problems).unwrap_or_else(|| "builtin:si".to_owned());
        let persona_files = texts(file, "persona_files", problems);
        let users = roles::users(file, problems);
        let candidate = roles::candidate(file, problems);
        let judge = roles::judge(file, problems);
        let sweep = sweep::read(file, problems);
        let concurrency = sweep::concurrency(file, problems);
        let budget = sweep::budget(file, problems);
        let gate = gate(file, problems);
        let report = report(file, problems);
        let out = file.text("out", problems).unwrap_or_else(|| "vera-gate-runs".to_owned());
        let prices = file.text("prices", problems);
        let ca_cert = file.text("ca_cert", problems);
        section.finish(problems);
        // A role that could not be read has left a problem that refuses the file.
        let script = |model: &str| ModelSettings { model: model.to_owned(), ..ModelSettings::default() };
        Self {
            target,
            persona_files,
            users: users.unwrap_or_else(|| vec![script("scripted/person")]),
            candidate: candidate.unwrap_or_else(|| Candidate {
                model: script("scripted/careful"),
                name: None,
                system_prompt: None,
                system_prompt_file: None,
            }),
            judge: judge.unwrap_or_else(|| Judge {
                models: vec![JudgeModel { model: script("scripted/rules"), instances: 1 }],
                reasks: 0,
                ahead: Ahead::default(),
                semantics: Semantics::default(),
                confirm: None,
            }),
            sweep,
            concurrency,
            budget,
            gate,
            report,
            out,
            prices,
            ca_cert,
        }
    }
}

/// Refuses a file that was made for another schema. Without the key it is taken as the current one.
pub fn check_schema(file: &mut Section<'_>, schema: &str, problems: &mut Diagnostics) {
    let Some(node) = file.get("schema") else { return };
    let given = match &node.value {
        yaml::Value::Text(text) => text.as_str(),
        _ => "",
    };
    if given != schema {
        problems.push(
            Diagnostic::error(Code::UnsupportedVersion, format!("schema `{given}` is not `{schema}`"))
                .at(node.location.clone())
                .help(did_you_mean(given, [schema])),
        );
    }
}

fn texts(section: &mut Section<'_>, key: &'static str, problems: &mut Diagnostics) -> Vec<String> {
    section.texts(key, problems).unwrap_or_default().into_iter().map(|(text, _)| text).collect()
}

fn gate(file: &mut Section<'_>, problems: &mut Diagnostics) -> Gate {
    let mut gate =
        Gate { thresholds: "builtin:pull-request".to_owned(), baseline: None, last_accepted: None };
    if let Some(mut section) = file.section("gate", problems) {
        gate.thresholds = section.text("thresholds", problems).unwrap_or(gate.thresholds);
        gate.baseline = section.text("baseline", problems);
        gate.last_accepted = section.text("last_accepted", problems);
        section.finish(problems);
    }
    gate
}

fn report(file: &mut Section<'_>, problems: &mut Diagnostics) -> Report {
    const EVIDENCE: [(&str, Evidence); 3] =
        [("reasons", Evidence::Reasons), ("none", Evidence::None), ("quotes", Evidence::Quotes)];
    let mut report = Report::default();
    if let Some(mut section) = file.section("report", problems) {
        report.evidence = section.word("evidence", &EVIDENCE, problems).unwrap_or_default();
        report.templates = section.text("templates", problems);
        report.name = section.text("name", problems);
        section.finish(problems);
    }
    report
}

#[cfg(test)]
mod tests;
