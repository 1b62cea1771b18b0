//! Refuses flows that cannot be walked to an end, or that could not show harm if there was some.

use std::collections::BTreeSet;

use super::graph::{Graph, reachable, successors, topological};
use super::parse::Draft;
use super::{AnswerOption, Question, Rubric, Transition};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::source::Source;

/// Cycles reported before the rest is left for the next check.
const MOST_CYCLES: usize = 20;

pub(super) fn check(draft: &Draft, source: &Source, problems: &mut Diagnostics) {
    let check = Check { draft, rubric: &draft.rubric, source };
    check.severities(problems);
    check.dimensions(problems);
    check.reach(problems);
    if check.cycles(problems) {
        // The questions below follow walks to their end, and a cycle has none.
        return;
    }
    check.ends(problems);
}

struct Check<'a> {
    draft: &'a Draft,
    rubric: &'a Rubric,
    source: &'a Source,
}

/// Whether an answer can record the question's severity.
fn can_record(question: &Question) -> bool {
    question.options.iter().any(|option| {
        option.then == Transition::AssignEnd
            || (option.is_yes() && !matches!(option.then, Transition::NotRelevant(_)))
    })
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl Check<'_> {
    fn severities(&self, problems: &mut Diagnostics) {
        for question in &self.rubric.questions {
            let Some(severity) = question.severity else { continue };
            if !can_record(question) {
                problems.push(
                    Diagnostic::error(
                        Code::Ignored,
                        format!(
                            "severity `{}` of question `{}` can never count",
                            severity.word(),
                            question.id
                        ),
                    )
                    .at(self.source.at_offset(question.at))
                    .help("only the answer `Yes` records a finding, and `NOT_RELEVANT>>` removes it again"),
                );
            }
        }
    }

    fn dimensions(&self, problems: &mut Diagnostics) {
        for (index, name) in self.rubric.dimensions.iter().enumerate() {
            let mut questions =
                self.rubric.questions.iter().enumerate().filter(|(_, q)| q.dimension == index);
            let Some((_, first)) = questions.clone().next() else { continue };
            let rateable = questions.any(|(at, question)| {
                self.draft.unread_severities.contains(&at)
                    || (question.severity.is_some() && can_record(question))
            });
            if !rateable {
                problems.push(
                    Diagnostic::error(
                        Code::UnrateableDimension,
                        format!("dimension `{name}` could never show harm: no question of it has a severity"),
                    )
                    .at(self.source.at_offset(first.at))
                    .help("give a question of it the severity `Red` or `Yellow`, and the answer `Yes`"),
                );
            }
        }
    }

    fn reach(&self, problems: &mut Diagnostics) {
        let reached = reachable(&successors(self.rubric), self.rubric.start());
        for (index, question) in self.rubric.questions.iter().enumerate() {
            if reached.get(index) == Some(&true) || self.draft.shadowed.contains(&index) {
                continue;
            }
            problems.push(
                Diagnostic::error(
                    Code::UnreachableQuestion,
                    format!("no walk reaches question `{}`", question.id),
                )
                .at(self.source.at_offset(question.at))
                .help("let an answer lead to it, or take it out"),
            );
        }
    }

    /// Reports cycles, each at the answer that leads back; true when there is one.
    fn cycles(&self, problems: &mut Diagnostics) -> bool {
        let mut edges = successors(self.rubric);
        for round in 0..MOST_CYCLES {
            let order: BTreeSet<usize> = topological(&edges).into_iter().collect();
            let Some(cycle) = cycle(&edges, &order) else { return round > 0 };
            // Every cycle leads back at least once in the order of the file.
            let Some((from, to)) = steps(&cycle).find(|(from, to)| to <= from) else { return true };
            if let Some(list) = edges.get_mut(from) {
                list.retain(|next| *next != to);
            }
            let ids = cycle.iter().chain(cycle.first()).filter_map(|&at| self.rubric.questions.get(at));
            let shown = ids.map(|question| question.id.as_str()).collect::<Vec<_>>().join(" > ");
            let at = self.rubric.questions.get(from).map_or(0, |question| {
                let back = question.live_options().find(|(_, option)| option.then.question() == Some(to));
                back.map_or(question.at, |(_, option)| option.goto_at)
            });
            problems.push(
                Diagnostic::error(Code::FlowCycle, format!("the flow goes in a circle: {shown}"))
                    .at(self.source.at_offset(at))
                    .help("answers lead on to questions that were not asked yet"),
            );
        }
        true
    }

    fn ends(&self, problems: &mut Diagnostics) {
        let graph = Graph::new(self.rubric);
        let surely = graph.dimensions_surely_visited();
        let maybe = graph.dimensions_maybe_visited();
        let found = graph.findings_maybe_before();
        let reached = reachable(&successors(self.rubric), self.rubric.start());
        for (index, question) in self.rubric.questions.iter().enumerate() {
            let (Some(surely), Some(maybe), Some(true)) =
                (surely.get(index), maybe.get(index), reached.get(index))
            else {
                continue;
            };
            let found = found.get(index).cloned().unwrap_or_default();
            for (at, option) in question.live_options() {
                let known = !self.draft.unresolved.contains(&(index, at));
                match option.then {
                    Transition::Done if known => self.done(question, at, surely, maybe, problems),
                    Transition::End => {
                        let here = option.is_yes() && question.severity.is_some();
                        let other = maybe.iter().any(|dimension| *dimension != question.dimension);
                        if !found.is_empty() || here || other {
                            self.discards(question, at, surely, problems);
                        }
                    }
                    Transition::NotRelevant(_) if found.contains(&question.dimension) => {
                        problems.push(self.drops(question, option));
                    }
                    _ => {}
                }
            }
        }
    }

    /// An answer after which nothing is left to ask, though dimensions are still to come.
    fn done(
        &self,
        question: &Question,
        option: usize,
        surely: &BTreeSet<usize>,
        maybe: &BTreeSet<usize>,
        problems: &mut Diagnostics,
    ) {
        let Some(option) = question.options.get(option) else { return };
        let missing = |visited: &BTreeSet<usize>| {
            let names =
                self.rubric.dimensions.iter().enumerate().filter(|(index, _)| !visited.contains(index));
            names.map(|(_, name)| name.as_str()).collect::<Vec<_>>()
        };
        let (never, sometimes) = (missing(maybe), missing(surely));
        let problem = if !never.is_empty() {
            Diagnostic::error(
                Code::DeadEndAnswer,
                format!(
                    "answer `{}` of question `{}` leads nowhere, and {} would stay without a rating",
                    option.text,
                    question.id,
                    quoted(&never)
                ),
            )
        } else if !sometimes.is_empty() {
            Diagnostic::warning(
                Code::DeadEndAnswer,
                format!(
                    "answer `{}` of question `{}` ends the walk, and {} can be without a rating then",
                    option.text,
                    question.id,
                    quoted(&sometimes)
                ),
            )
        } else {
            return;
        };
        problems.push(problem.at(self.source.at_offset(option.at)).help(
            "give the answer a GOTO: a question, `ASSIGN_END`, `END` or `NOT_RELEVANT>>` with a question",
        ));
    }

    fn drops(&self, question: &Question, option: &AnswerOption) -> Diagnostic {
        let dimension = self.rubric.dimensions.get(question.dimension).map_or("", String::as_str);
        Diagnostic::warning(
            Code::DiscardingEnd,
            format!(
                "`NOT_RELEVANT>>` on answer `{}` of question `{}` comes after questions that may have found something",
                option.text, question.id
            ),
        )
        .at(self.source.at_offset(option.goto_at))
        .help(format!("it takes back what was found in `{dimension}`; ask it before the questions with a severity"))
    }

    fn discards(
        &self,
        question: &Question,
        option: usize,
        surely: &BTreeSet<usize>,
        problems: &mut Diagnostics,
    ) {
        let Some(option) = question.options.get(option) else { return };
        let help = if surely.len() == self.rubric.dimensions.len() {
            "every dimension was asked about by then, so the ratings are kept; VERA-MH 1.1 discards them all"
        } else {
            "findings are kept and every other dimension becomes Not Relevant; VERA-MH 1.1 discards the findings too"
        };
        problems.push(
            Diagnostic::warning(
                Code::DiscardingEnd,
                format!(
                    "`END` on answer `{}` of question `{}` comes after dimensions that may have a rating",
                    option.text, question.id
                ),
            )
            .at(self.source.at_offset(option.goto_at))
            .help(help),
        );
    }
}

/// One cycle among the questions that are not in the topological order, if any.
fn cycle(edges: &[Vec<usize>], sorted: &BTreeSet<usize>) -> Option<Vec<usize>> {
    // Whatever could not be sorted has a predecessor that could not be sorted: going backwards ends in a cycle.
    let before = |at: usize| {
        let mut all = edges.iter().enumerate().filter(|(from, _)| !sorted.contains(from));
        all.find(|(_, next)| next.contains(&at)).map(|(from, _)| from)
    };
    let mut at = (0..edges.len()).find(|index| !sorted.contains(index))?;
    let mut trail = Vec::new();
    while !trail.contains(&at) {
        trail.push(at);
        at = before(at)?;
    }
    let mut cycle: Vec<usize> = trail.into_iter().skip_while(|step| *step != at).collect();
    cycle.reverse();
    // Start with the question that comes first in the file.
    let first = cycle.iter().enumerate().min_by_key(|(_, question)| **question).map_or(0, |(index, _)| index);
    cycle.rotate_left(first);
    Some(cycle)
}

/// The steps of a cycle, the closing one included.
fn steps(cycle: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    cycle.iter().copied().zip(cycle.iter().copied().cycle().skip(1))
}
