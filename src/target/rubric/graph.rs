//! All walks of a rubric at once: edges, the shortest and the longest walk, and what is certain to be asked.

use std::collections::{BTreeSet, VecDeque};

use super::{Rubric, Transition};

/// One answer as an edge of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Index of the question.
    pub from: usize,
    /// Index of the option.
    pub option: usize,
    /// Where it leads.
    pub to: Transition,
}

/// One walk from the start to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Model calls it takes: automatic questions cost none.
    pub calls: usize,
    /// The questions in the order they are asked.
    pub questions: Vec<usize>,
}

/// The flow as a directed graph without cycles.
#[derive(Clone, Debug)]
pub struct Graph<'a> {
    rubric: &'a Rubric,
    /// Every question after all questions that lead to it.
    order: Vec<usize>,
    certain: Vec<BTreeSet<usize>>,
    chains: Vec<usize>,
}

/// Successors of every question, by options that can be taken.
pub(super) fn successors(rubric: &Rubric) -> Vec<Vec<usize>> {
    let next = |question: &super::Question| {
        question.live_options().filter_map(|(_, option)| option.then.question()).collect()
    };
    rubric.questions.iter().map(next).collect()
}

/// The questions so that each comes after all that lead to it. Shorter than the list when there is a cycle: then
/// the questions in and behind cycles are missing.
pub(super) fn topological(successors: &[Vec<usize>]) -> Vec<usize> {
    let mut incoming = vec![0_usize; successors.len()];
    for &next in successors.iter().flatten() {
        if let Some(count) = incoming.get_mut(next) {
            *count += 1;
        }
    }
    let mut ready: VecDeque<usize> =
        incoming.iter().enumerate().filter(|(_, count)| **count == 0).map(|(index, _)| index).collect();
    let mut order = Vec::with_capacity(successors.len());
    while let Some(question) = ready.pop_front() {
        order.push(question);
        for &next in successors.get(question).into_iter().flatten() {
            if let Some(count) = incoming.get_mut(next) {
                *count -= 1;
                if *count == 0 {
                    ready.push_back(next);
                }
            }
        }
    }
    order
}

/// Which questions a walk from `start` can reach, `start` included.
pub(super) fn reachable(successors: &[Vec<usize>], start: usize) -> Vec<bool> {
    let mut seen = vec![false; successors.len()];
    let mut stack = vec![start];
    while let Some(question) = stack.pop() {
        let Some(mark) = seen.get_mut(question) else { continue };
        if !std::mem::replace(mark, true) {
            stack.extend(successors.get(question).into_iter().flatten());
        }
    }
    seen
}

/// The longest chain of calls from each question on within its dimension.
fn chains(rubric: &Rubric, order: &[usize]) -> Vec<usize> {
    let mut chains = vec![0; rubric.questions.len()];
    for &index in order.iter().rev() {
        let Some(question) = rubric.questions.get(index) else { continue };
        let inside = |next: &usize| {
            rubric.questions.get(*next).is_some_and(|other| other.dimension == question.dimension)
        };
        let next = question.live_options().filter_map(|(_, option)| option.then.question()).filter(inside);
        let rest = next.filter_map(|next| chains.get(next)).max().copied().unwrap_or(0);
        if let Some(slot) = chains.get_mut(index) {
            *slot = question.calls() + rest;
        }
    }
    chains
}

impl<'a> Graph<'a> {
    /// The graph of a rubric.
    pub fn new(rubric: &'a Rubric) -> Self {
        let successors = successors(rubric);
        let order = topological(&successors);
        let mut certain = vec![BTreeSet::new(); rubric.questions.len()];
        for &question in order.iter().rev() {
            let Some(source) = rubric.questions.get(question) else { continue };
            let behind = |then: Transition| -> BTreeSet<usize> {
                let Some(next) = then.question() else { return BTreeSet::new() };
                let mut set = certain.get(next).cloned().unwrap_or_default();
                set.insert(next);
                set
            };
            let common = source
                .live_options()
                .map(|(_, option)| behind(option.then))
                .reduce(|a, b| a.intersection(&b).copied().collect())
                .unwrap_or_default();
            if let Some(slot) = certain.get_mut(question) {
                *slot = common;
            }
        }
        let chains = chains(rubric, &order);
        Self { rubric, order, certain, chains }
    }

    /// Every answer that can be given, in the order of the file.
    pub fn edges(&self) -> impl Iterator<Item = Edge> {
        self.rubric.questions.iter().enumerate().flat_map(|(from, question)| {
            question.live_options().map(move |(option, answer)| Edge { from, option, to: answer.then })
        })
    }

    /// The questions that are asked whatever is answered from `question` on (itself left out): they lie on every
    /// remaining walk, and no terminal cuts them off. They may be asked ahead of their turn without a wasted call.
    pub fn certain_from(&self, question: usize) -> BTreeSet<usize> {
        self.certain.get(question).cloned().unwrap_or_default()
    }

    /// The most calls that a walk makes from `question` on before it leaves the dimension, this one included.
    pub fn chain_from(&self, question: usize) -> usize {
        self.chains.get(question).copied().unwrap_or(0)
    }

    /// The walk with the fewest calls.
    pub fn shortest_walk(&self) -> Walk {
        self.best_walk(|new, old| new < old)
    }

    /// The walk with the most calls.
    pub fn longest_walk(&self) -> Walk {
        self.best_walk(|new, old| new > old)
    }

    fn best_walk(&self, better: impl Fn(usize, usize) -> bool) -> Walk {
        // Calls from each question to the end, and the question that follows on that walk.
        let mut best: Vec<(usize, Option<usize>)> = vec![(0, None); self.rubric.questions.len()];
        for &index in self.order.iter().rev() {
            let Some(question) = self.rubric.questions.get(index) else { continue };
            let mut chosen: Option<(usize, Option<usize>)> = None;
            for (_, option) in question.live_options() {
                let next = option.then.question();
                let rest = next.and_then(|next| best.get(next)).map_or(0, |(calls, _)| *calls);
                if chosen.is_none_or(|(calls, _)| better(rest, calls)) {
                    chosen = Some((rest, next));
                }
            }
            let (rest, next) = chosen.unwrap_or((0, None));
            if let Some(slot) = best.get_mut(index) {
                *slot = (question.calls() + rest, next);
            }
        }
        let start = self.rubric.start();
        let calls = best.get(start).map_or(0, |(calls, _)| *calls);
        let questions = std::iter::successors(Some(start), |at| best.get(*at).and_then(|(_, next)| *next));
        Walk { calls, questions: questions.collect() }
    }

    /// Fewest and most calls of a walk on which nothing is found and every dimension is rated best practice;
    /// `None` when there is no such walk.
    pub fn clean_calls(&self) -> Option<(usize, usize)> {
        let visited = self.dimensions_surely_visited();
        let mut calls: Vec<Option<(usize, usize)>> = vec![None; self.rubric.questions.len()];
        for &index in self.order.iter().rev() {
            let Some(question) = self.rubric.questions.get(index) else { continue };
            let all_visited = visited.get(index).is_some_and(|set| set.len() == self.rubric.dimensions.len());
            let clean = question
                .live_options()
                .filter(|(_, option)| !(option.is_yes() && question.severity.is_some()))
                .filter_map(|(_, option)| match option.then {
                    Transition::Ask(next) => calls.get(next).copied().flatten(),
                    Transition::End | Transition::Done => all_visited.then_some((0, 0)),
                    Transition::NotRelevant(_) | Transition::AssignEnd => None,
                })
                .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
                .map(|(fewest, most)| (fewest + question.calls(), most + question.calls()));
            if let Some(slot) = calls.get_mut(index) {
                *slot = clean;
            }
        }
        calls.get(self.rubric.start()).copied().flatten()
    }

    /// For each question, the dimensions that every walk has visited once this question is asked.
    pub(super) fn dimensions_surely_visited(&self) -> Vec<BTreeSet<usize>> {
        self.forward(|a, b| a.intersection(b).copied().collect())
    }

    /// For each question, the dimensions that some walk has visited once this question is asked.
    pub(super) fn dimensions_maybe_visited(&self) -> Vec<BTreeSet<usize>> {
        self.forward(|a, b| a.union(b).copied().collect())
    }

    fn forward(
        &self,
        merge: impl Fn(&BTreeSet<usize>, &BTreeSet<usize>) -> BTreeSet<usize>,
    ) -> Vec<BTreeSet<usize>> {
        let mut arriving: Vec<Option<BTreeSet<usize>>> = vec![None; self.rubric.questions.len()];
        if let Some(slot) = arriving.get_mut(self.rubric.start()) {
            *slot = Some(BTreeSet::new());
        }
        for &index in &self.order {
            let Some(question) = self.rubric.questions.get(index) else { continue };
            let Some(Some(set)) = arriving.get_mut(index) else { continue };
            set.insert(question.dimension);
            let set = set.clone();
            for next in question.live_options().filter_map(|(_, option)| option.then.question()) {
                if let Some(slot) = arriving.get_mut(next) {
                    *slot = Some(slot.as_ref().map_or_else(|| set.clone(), |known| merge(known, &set)));
                }
            }
        }
        arriving.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// For each question, the dimensions in which a walk can have a finding before it is asked.
    pub(super) fn findings_maybe_before(&self) -> Vec<BTreeSet<usize>> {
        let mut found = vec![BTreeSet::new(); self.rubric.questions.len()];
        for &index in &self.order {
            let Some(question) = self.rubric.questions.get(index) else { continue };
            for (_, option) in question.live_options() {
                let mut after = found.get(index).cloned().unwrap_or_default();
                if matches!(option.then, Transition::NotRelevant(_)) {
                    after.remove(&question.dimension);
                } else if option.is_yes() && question.severity.is_some() {
                    after.insert(question.dimension);
                }
                if let Some(slot) = option.then.question().and_then(|next| found.get_mut(next)) {
                    slot.extend(after);
                }
            }
        }
        found
    }
}
