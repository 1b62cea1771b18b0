//! A report as texts escaped for one kind of page. This is all that templates see, so a template, a team's own
//! included, cannot put a model's text on a page unescaped.

mod evidence;
mod origin;
mod rules;

use serde::Serialize;

pub(super) use evidence::{cases, missing_name, mode_counts, remark_sentences, unjudged_lines, why};
pub(super) use origin::total;
pub(super) use rules::about;

pub use evidence::{FindingView, MissingView, ModeView, Remarks, RiskTable, UnjudgedView};
pub use origin::{CostRow, CostView, CoverageRow, CoverageView, Fact};
pub use rules::{ReasonView, RegressionView, RuleRow, WaiverView};

use super::{Change, Direction, Links, Report, next_steps, words};
use crate::escape::html::{self, Html};
use crate::escape::markdown::{self, Markdown};
use crate::gate::StopReason;
use crate::gate::verdict::{Against, BaselineWord, Observed, ShownBaseline, Verdict};
use crate::matrix::DimensionCounts;
use crate::rating::Rating;

/// Text in the form of one kind of page.
pub trait Escaped: Clone + Serialize {
    /// Text in a sentence or a table cell.
    fn text(text: &str) -> Self;
    /// A name in the form of code, in a table cell.
    fn code(text: &str) -> Self;
    /// A link; only its label when the address is none.
    fn link(label: &str, address: &str) -> Self;
}

impl Escaped for Markdown {
    fn text(text: &str) -> Self {
        markdown::cell(text)
    }
    fn code(text: &str) -> Self {
        markdown::code_cell(text)
    }
    fn link(label: &str, address: &str) -> Self {
        Self::link(label, address)
    }
}

impl Escaped for Html {
    fn text(text: &str) -> Self {
        html::text(text)
    }
    fn code(text: &str) -> Self {
        Self::trusted(format!("<code>{}</code>", html::text(text)))
    }
    fn link(label: &str, address: &str) -> Self {
        match html::address(address) {
            Some(address) => Self::trusted(format!("<a href=\"{address}\">{}</a>", html::text(label))),
            None => html::text(label),
        }
    }
}

/// The first items of a list, and how many there are beside them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed<T> {
    /// What is shown.
    pub items: Vec<T>,
    /// How many are not.
    pub more: usize,
}

impl<T> Listed<T> {
    /// The first `most` of the items.
    pub fn first(items: impl IntoIterator<Item = T>, most: usize) -> Self {
        let mut items = items.into_iter();
        let shown = items.by_ref().take(most).collect();
        Self { items: shown, more: items.count() }
    }

    /// Whether there is nothing to list.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty() && self.more == 0
    }
}

/// The verdict and the sentence beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerdictView<E> {
    /// `pass`, `warn`, `inconclusive` or `fail`.
    pub word: &'static str,
    /// The word for people.
    pub label: &'static str,
    /// A picture beside it.
    pub icon: &'static str,
    /// Kind of GitHub's alert box.
    pub alert: &'static str,
    /// The verdict in one sentence.
    pub headline: E,
    /// What the exit code is and what follows from it.
    pub exit: E,
    /// What the verdict would be without the waivers, when that differs.
    pub without_waivers: Option<E>,
}

/// One line of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixRow<E> {
    /// The dimension.
    pub dimension: E,
    /// Best practice, of relevant conversations.
    pub best_practice: E,
    /// Suboptimal, of relevant conversations.
    pub suboptimal: E,
    /// High potential for harm, of relevant conversations.
    pub harm: E,
    /// Whether there is any harm, for emphasis beside the number.
    pub harmful: bool,
    /// Not relevant, of rated conversations.
    pub not_relevant: E,
    /// Rated, of planned conversations.
    pub rated: E,
    /// The harm rate that is not excluded.
    pub not_excluded: E,
    /// Against the baseline.
    pub changes: Vec<ChangeView<E>>,
}

/// A change in a picture and in words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangeView<E> {
    /// A picture beside the words.
    pub icon: &'static str,
    /// `better`, `same`, `worse` or `unknown`.
    pub word: &'static str,
    /// The change in words.
    pub text: E,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct View<E> {
    /// What stands above everything when scripted models took part.
    pub notice: Option<E>,
    /// The gate's name.
    pub name: E,
    /// Name and verdict, for a heading.
    pub title: E,
    /// The verdict.
    pub verdict: VerdictView<E>,
    /// Who was measured with what.
    pub subject: E,
    /// A word to the reader before the details.
    pub content_note: E,
    /// Whose rules judged a pull request that changes them, or asked for others; empty when there is nothing to say.
    pub policy_notice: E,
    /// What a pull request changes in the rules it is judged by, line by line.
    pub policy_change: Vec<E>,
    /// What was found about harm.
    pub harm: E,
    /// The matrix.
    pub matrix: Vec<MatrixRow<E>>,
    /// What the changes compare with, or why there are none.
    pub baselines: Vec<E>,
    /// Whether there is a change column.
    pub compared: bool,
    /// The score, which decides nothing.
    pub score: E,
    /// How to read the matrix.
    pub reading: E,
    /// What makes the verdict what it is, worst first.
    pub reasons: Listed<ReasonView<E>>,
    /// Other reasons, worst first.
    pub other_reasons: Listed<ReasonView<E>>,
    /// What a reader does next.
    pub next: Vec<E>,
    /// Applications of rules that are not simply held, in the order of the file.
    pub broken: Listed<RuleRow<E>>,
    /// Applications of rules that hold, or that need a baseline and have none.
    pub holding: Listed<RuleRow<E>>,
    /// Waivers.
    pub waivers: Vec<WaiverView<E>>,
    /// Failure modes with the number of conversations, when there are too many findings to read one by one.
    pub modes: Listed<ModeView<E>>,
    /// Harmful findings, the highest risk first.
    pub findings: Listed<FindingView<E>>,
    /// Whether findings come with the judges' reasons.
    pub with_reasons: bool,
    /// What is missing or has no rating.
    pub unjudged: UnjudgedView<E>,
    /// What to keep in mind about the conversations.
    pub remarks: Remarks<E>,
    /// What to keep in mind about how the run came about.
    pub warnings: Listed<E>,
    /// Comparisons with a baseline.
    pub regressions: Listed<RegressionView<E>>,
    /// Harm per risk level.
    pub risk: RiskTable<E>,
    /// How much was measured.
    pub coverage: CoverageView<E>,
    /// What it cost.
    pub cost: CostView<E>,
    /// Where the result comes from.
    pub provenance: Vec<Fact<E>>,
    /// What this report is not.
    pub limits: Vec<E>,
    /// Where the rest is.
    pub full_report: E,
    /// The workflow run, when [`Self::full_report`] is not there.
    pub run: Option<E>,
}

impl<E: Escaped> View<E> {
    /// The view with lists of at most `most` items.
    pub fn of(report: &Report, most: usize) -> Self {
        let gate = &report.verdict;
        let (broken, holding) = rules::rows(gate);
        let (deciding, others): (Vec<_>, Vec<_>) =
            gate.reasons.iter().partition(|reason| words::decides(gate.verdict, reason));
        let name = report.name.as_deref().unwrap_or("vera-gate");
        let mut policy = report
            .policy_change
            .as_deref()
            .unwrap_or_default()
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        Self {
            notice: report.notice.as_deref().map(E::text),
            name: E::text(name),
            // Escaped as a whole: a name and a colon behind it could mean something together.
            title: E::text(&format!("{name}: {}", words::label(gate.verdict))),
            verdict: verdict(report),
            subject: E::text(&subject(report)),
            content_note: E::text(content_note(report)),
            policy_notice: E::text(policy.next().unwrap_or_default()),
            policy_change: policy.map(E::text).collect(),
            harm: E::text(&report.harm),
            matrix: matrix(report),
            baselines: gate.baselines.iter().map(|baseline| E::text(&baseline_sentence(baseline))).collect(),
            compared: report.compared_with.is_some(),
            score: E::text(&score(gate.score)),
            reading: E::text(READING),
            reasons: Listed::first(deciding.into_iter().map(rules::reason), most),
            other_reasons: Listed::first(others.into_iter().map(rules::reason), most),
            next: next_steps(gate).into_iter().map(E::text).collect(),
            broken: Listed::first(broken, most),
            holding: Listed::first(holding, most),
            waivers: gate.waivers.iter().map(rules::waiver).collect(),
            modes: Listed::first(evidence::modes(report), most),
            findings: Listed::first(report.findings.iter().map(evidence::finding), most),
            with_reasons: report.findings.iter().any(|finding| finding.reason.is_some()),
            unjudged: evidence::unjudged(report, most),
            remarks: evidence::remarks(report, most),
            warnings: Listed::first(report.warnings.iter().map(|text| E::text(text)), most),
            regressions: Listed::first(rules::regressions(gate), most),
            risk: evidence::risk(report),
            coverage: origin::coverage(gate),
            cost: origin::cost(report),
            provenance: origin::provenance(report),
            limits: limits(report).iter().map(|text| E::text(text)).collect(),
            full_report: full_report(report),
            run: match &report.links {
                Links { run: Some(address), artifact: Some(_) } => Some(E::link("the workflow run", address)),
                _ => None,
            },
        }
    }
}

const READING: &str = "Best practice, suboptimal and harm are counted of the conversations in which a dimension was \
    relevant. \"Not excluded\" is the one-sided 95 % upper bound of the harm rate for people like these personas.";

/// Where the rest is, as the end of a sentence.
pub fn full_report<E: Escaped>(report: &Report) -> E {
    match (&report.links.artifact, &report.links.run) {
        (Some(address), _) => E::link("the full report", address),
        (None, Some(address)) => E::link("the files of this run", address),
        (None, None) => E::text("the files of this run"),
    }
}

fn verdict<E: Escaped>(report: &Report) -> VerdictView<E> {
    let gate = &report.verdict;
    let differs = gate.verdict_without_waivers != gate.verdict;
    VerdictView {
        word: gate.verdict.word(),
        label: words::label(gate.verdict),
        icon: words::icon(gate.verdict),
        alert: match gate.verdict {
            Verdict::Pass => "TIP",
            Verdict::Warn => "WARNING",
            Verdict::Inconclusive => "IMPORTANT",
            Verdict::Fail => "CAUTION",
        },
        headline: E::text(&report.headline),
        exit: E::text(&exit_words(report)),
        without_waivers: differs.then(|| {
            E::text(&format!(
                "Without the waivers the verdict would be: {}.",
                words::label(gate.verdict_without_waivers)
            ))
        }),
    }
}

/// The exit code and what follows from it. Beside an open verdict that is let through, `success` must not stand alone.
fn exit_words(report: &Report) -> String {
    let exit = report.exit();
    match (report.verdict.verdict, exit.code()) {
        (Verdict::Inconclusive, 0) => {
            let class = exit.class();
            format!("exit code 0 ({class}): nothing is decided, and the thresholds file lets the build go on")
        }
        (_, 0) => format!("exit code 0 ({})", exit.class()),
        (_, code) => format!("exit code {code} ({}); the build stops", exit.class()),
    }
}

pub(super) fn subject(report: &Report) -> String {
    let target = &report.provenance.target;
    let name = match (&target.title, &target.version) {
        (Some(title), Some(version)) => format!("{title} ({} {version})", target.name),
        (Some(title), None) => format!("{title} ({})", target.name),
        (None, Some(version)) => format!("{} {version}", target.name),
        (None, None) => target.name.clone(),
    };
    let all = &report.verdict.coverage.all;
    let planned = if report.verdict.coverage.plan_known {
        words::count(all.planned, "planned conversation", "planned conversations")
    } else {
        words::count(all.planned, "conversation", "conversations")
    };
    let judged = words::thousands(all.judged);
    let mut sentences = Vec::new();
    // A bare results file does not say whose it is.
    if !report.provenance.candidate.is_empty() {
        sentences.push(format!("Candidate: {}.", report.provenance.candidate));
    }
    if !name.is_empty() {
        sentences.push(format!("Target: {name}."));
    }
    if report.verdict.stopped == Some(StopReason::EarlyPass) {
        // What never ran is not among the planned ones then.
        sentences.push(format!(
            "{planned} judged before the sweep was ended early.",
            planned = words::count(all.judged, "conversation", "conversations")
        ));
    } else {
        sentences.push(format!("{judged} of {planned} judged."));
    }
    sentences.join(" ")
}

fn content_note(report: &Report) -> &'static str {
    match report.evidence {
        crate::config::Evidence::Quotes => {
            "Content note: this report is about conversations with people in danger, and it may quote them. The people \
             are simulated."
        }
        _ => {
            "Content note: this report is about conversations with people in danger. The people are simulated, and \
             what they wrote is not shown."
        }
    }
}

pub(super) fn score(score: Option<f64>) -> String {
    match score {
        Some(score) => {
            format!(
                "Score by VERA-MH's formula: {score:.1} of 100. It is shown for orientation and decides nothing."
            )
        }
        None => "There is no score, because nothing was relevant.".to_owned(),
    }
}

/// What this report is not.
pub fn limits(report: &Report) -> Vec<String> {
    let target = &report.provenance.target;
    let mut lines = vec![
        "This report says what a model judged in conversations with simulated people. It is no certificate, and it \
         does not say that the chatbot will do no harm."
            .to_owned(),
    ];
    match target.clinically_validated {
        _ if target.name.is_empty() => {
            lines.push("Nothing here says that the target is clinically validated.".to_owned());
        }
        Some(true) => {}
        Some(false) => lines.push(format!("The target {} is not clinically validated.", target.name)),
        None => {
            lines.push(format!("The target {} does not say that it is clinically validated.", target.name));
        }
    }
    lines.extend(target.notice.clone());
    lines
}

pub(super) fn baseline_sentence(baseline: &ShownBaseline) -> String {
    let which = against(baseline.against);
    let first = match baseline.state {
        BaselineWord::None if baseline.source.is_empty() => {
            format!("No {which}: changes against it are not known.")
        }
        BaselineWord::None => {
            format!("The {which} ({}) does not exist: changes against it are not known.", baseline.source)
        }
        BaselineWord::Usable => {
            let age = match (&baseline.created, baseline.age_days) {
                (Some(day), Some(1)) => format!(" of {day}, 1 day old,"),
                (Some(day), Some(age)) => format!(" of {day}, {age} days old,"),
                (Some(day), None) => format!(" of {day},"),
                (None, _) => String::new(),
            };
            let size = words::count(baseline.conversations, "conversation", "conversations");
            format!("Compared with the {which}{age} with {size} ({}).", baseline.source)
        }
        BaselineWord::Unusable => format!("The {which} ({}) was not compared with.", baseline.source),
    };
    let remarks = baseline.remarks.iter().map(|remark| words::sentence(remark));
    let sentences: Vec<String> = std::iter::once(first).chain(remarks).collect();
    sentences.join(" ")
}

pub(super) fn against(against: Against) -> &'static str {
    match against {
        Against::Pinned => "baseline",
        Against::LastAccepted => "last accepted run",
    }
}

fn matrix<E: Escaped>(report: &Report) -> Vec<MatrixRow<E>> {
    let rows = report.verdict.matrix.dimensions.iter();
    rows.zip(&report.dimensions)
        .map(|(row, summary)| {
            let cell = |rating| E::text(&rating_cell(row, rating));
            MatrixRow {
                dimension: E::text(&row.dimension),
                best_practice: cell(Rating::BestPractice),
                suboptimal: cell(Rating::Suboptimal),
                harm: cell(Rating::HighPotentialForHarm),
                harmful: row.all.high_potential_for_harm > 0,
                not_relevant: cell(Rating::NotRelevant),
                rated: E::text(&rated(report, row)),
                not_excluded: E::text(&not_excluded(summary.harm.upper)),
                changes: match report.compared_with {
                    None => Vec::new(),
                    Some(_) => changes(summary.harm.change, summary.best_practice_change)
                        .into_iter()
                        .map(|(icon, word, text)| ChangeView { icon, word, text: E::text(&text) })
                        .collect(),
                },
            }
        })
        .collect()
}

/// A number of the matrix with its share: of relevant conversations, for Not Relevant of rated ones.
pub(super) fn rating_cell(row: &DimensionCounts, rating: Rating) -> String {
    let of = if rating == Rating::NotRelevant { row.all.rated() } else { row.all.relevant() };
    words::count_and_share(row.all.of(rating), of)
}

pub(super) fn rated(report: &Report, row: &DimensionCounts) -> String {
    let planned = report.verdict.coverage.all.planned.max(row.all.total());
    format!("{} of {planned} rated", row.all.rated())
}

pub(super) fn not_excluded(upper: Option<f64>) -> String {
    upper.map_or_else(|| "no evidence".to_owned(), |upper| format!("up to {}", words::upper_bound(upper)))
}

/// Icon, word and text of the changes of harm and best practice. Text and icon say the same.
pub(super) fn changes(
    harm: Option<Change>,
    best_practice: Option<Change>,
) -> Vec<(&'static str, &'static str, String)> {
    let one = |what: &str, change: Option<Change>| match change {
        None => ("\u{2013}", "unknown", format!("{what}: no comparison")),
        Some(change) => {
            let arrow = if change.difference < 0.0 { "\u{25BC}" } else { "\u{25B2}" };
            let points = words::points(change.difference);
            match change.direction {
                Direction::Same => ("=", "same", format!("{what}: no change")),
                Direction::Better => (arrow, "better", format!("{what}: {points}, better")),
                Direction::Worse => (arrow, "worse", format!("{what}: {points}, worse")),
            }
        }
    };
    vec![one("harm", harm), one("best practice", best_practice)]
}

/// `3 of 40 (7.5 %)`, or a dash.
fn observed<E: Escaped>(observed: Observed) -> E {
    E::text(&words::of(observed))
}
