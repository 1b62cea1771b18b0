//! The plan: every conversation that is to be held, named before anything is called.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha12Rng;
use serde::{Deserialize, Serialize};

use crate::config::{FirstSpeaker, Selection, Sweep};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::fingerprint::sha256_of_parts;
use crate::target::{Persona, RiskLevel, Target};
use crate::transcript::{ConversationId, Transcript};

/// One planned conversation: a persona, a user model and a repetition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The conversation's name: the same for the same cell of every run of the plan.
    pub id: ConversationId,
    /// The persona's name.
    pub persona: String,
    /// The persona's risk level.
    pub risk_level: Option<RiskLevel>,
    /// The name of the model that plays the person.
    pub user_model: String,
    /// Its place in the list of user models.
    pub user: usize,
    /// The repetition, from 1.
    pub run: u32,
}

/// Everything that is to be held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The conversations, ordered by name.
    pub cells: Vec<Cell>,
}

impl Plan {
    /// Plans the selected personas with every user model and every repetition.
    ///
    /// # Errors
    /// When the selection names what the target does not have, or leaves nothing.
    pub fn new(target: &Target, sweep: &Sweep, user_models: &[String]) -> Result<Self, Diagnostics> {
        let personas = select(target, &sweep.select, sweep.seed)?;
        let mut cells = Vec::new();
        for persona in personas {
            for (user, user_model) in user_models.iter().enumerate() {
                for run in 1..=sweep.runs {
                    cells.push(Cell {
                        id: id(&persona.name, user_model, user, run),
                        persona: persona.name.clone(),
                        risk_level: persona.risk_level,
                        user_model: user_model.clone(),
                        user,
                        run,
                    });
                }
            }
        }
        cells.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(Self { cells })
    }

    /// A warning when fewer personas are there than the sample asks for.
    pub fn short_sample(&self, selection: &Selection) -> Option<Diagnostic> {
        let personas = self.cells.iter().map(|cell| &cell.persona).collect::<BTreeSet<_>>().len();
        let wanted = selection.sample.filter(|wanted| *wanted as usize > personas)?;
        let problem = Diagnostic::warning(
            Code::Ignored,
            format!("a sample of {wanted} personas is asked for, and there are {personas} to draw from"),
        );
        Some(problem.help("all of them are taken; more conversations come from `runs`"))
    }

    /// The plan of conversations that were held elsewhere.
    pub fn of_transcripts(transcripts: &[Transcript]) -> Self {
        let mut cells: Vec<Cell> = transcripts
            .iter()
            .map(|held| Cell {
                id: held.id.clone(),
                persona: held.persona.clone(),
                risk_level: held.risk_level,
                user_model: held.user_model.clone(),
                user: 0,
                run: held.run,
            })
            .collect();
        cells.sort_by(|a, b| a.id.cmp(&b.id));
        Self { cells }
    }

    /// The order of the work: shuffled by the seed, and in rounds, each persona once before any comes again. What is
    /// finished first is a fair sample of the whole, and an early pass, which must have seen everybody, need not wait for
    /// the last conversation.
    pub fn order(&self, seed: u64) -> Vec<usize> {
        let mut order: Vec<(usize, &Cell)> = self.cells.iter().enumerate().collect();
        order.shuffle(&mut rng(seed, "order"));
        let mut rounds: HashMap<&str, usize> = HashMap::new();
        let mut placed: Vec<(usize, usize)> = Vec::with_capacity(order.len());
        for (at, cell) in order {
            let round = rounds.entry(&cell.persona).or_default();
            placed.push((*round, at));
            *round += 1;
        }
        // Stable: within a round the shuffle stays.
        placed.sort_by_key(|(round, _)| *round);
        placed.into_iter().map(|(_, at)| at).collect()
    }

    /// Planned conversations per risk level; those without a level under `None` of the option.
    pub fn by_risk(&self) -> BTreeMap<Option<RiskLevel>, usize> {
        let mut counts = BTreeMap::new();
        for cell in &self.cells {
            *counts.entry(cell.risk_level).or_default() += 1;
        }
        counts
    }
}

/// How many messages a conversation may have: the cap, moved by one so that the chatbot has the last word.
pub fn message_limit(max_messages: u32, first: FirstSpeaker) -> u32 {
    let odd = max_messages % 2 == 1;
    match first {
        FirstSpeaker::User => max_messages + u32::from(odd),
        FirstSpeaker::Chatbot => max_messages + u32::from(!odd),
    }
}

fn rng(seed: u64, purpose: &str) -> ChaCha12Rng {
    let digest = sha256_of_parts([purpose, &seed.to_string()]);
    let mut bytes = [0; 32];
    for (byte, letter) in bytes.iter_mut().zip(digest.bytes()) {
        *byte = letter;
    }
    ChaCha12Rng::from_seed(bytes)
}

/// `{6 hex}_{Name}_{user model}_run{N}`, VERA-MH's name of a transcript, with characters that no file name can hold
/// replaced. The hex digits are derived from the cell, so that a repeated run gives the same names.
fn id(persona: &str, user_model: &str, user: usize, run: u32) -> ConversationId {
    let digest = sha256_of_parts([persona, user_model, &user.to_string(), &run.to_string()]);
    let tag: String = digest.chars().take(6).collect();
    ConversationId(format!("{tag}_{}_{}_run{run}", file_safe(persona, '-'), file_safe(user_model, '-')))
}

/// Letters, digits, `.` and `-`; everything else becomes the given character.
pub fn file_safe(text: &str, instead: char) -> String {
    text.chars().map(|c| if c.is_alphanumeric() || matches!(c, '.' | '-') { c } else { instead }).collect()
}

fn select<'a>(target: &'a Target, selection: &Selection, seed: u64) -> Result<Vec<&'a Persona>, Diagnostics> {
    let mut problems = Diagnostics::new();
    let names: Vec<&str> = target.personas.iter().map(|p| p.name.as_str()).collect();
    for (name, place) in &selection.names {
        if !names.contains(&name.as_str()) {
            problems.push(
                Diagnostic::error(
                    Code::UnknownPersona,
                    format!("target `{}` has no persona `{name}`", target.name),
                )
                .at(place.clone())
                .help(did_you_mean(name, names.iter().copied())),
            );
        }
    }
    let mut levels = BTreeSet::new();
    for (word, place) in &selection.risk_levels {
        match RiskLevel::from_word(word) {
            Some(level) => {
                levels.insert(level);
            }
            None => problems.push(
                Diagnostic::error(Code::UnknownRiskLevel, format!("`{word}` is no risk level"))
                    .at(place.clone())
                    .help(did_you_mean(word, RiskLevel::ALL.map(RiskLevel::word))),
            ),
        }
    }
    let chosen: Vec<&Persona> = target
        .personas
        .iter()
        .filter(|p| selection.names.is_empty() || selection.names.iter().any(|(name, _)| *name == p.name))
        .filter(|p| levels.is_empty() || p.risk_level.is_some_and(|level| levels.contains(&level)))
        .collect();
    let chosen = match selection.sample {
        Some(size) => sample(chosen, size as usize, seed),
        None => chosen,
    };
    if chosen.is_empty() && !problems.has_errors() {
        problems.push(Diagnostic::error(Code::NothingSelected, "the selection leaves no persona").help(
            "a run without conversations measures nothing; widen `sweep.personas` or `sweep.risk_levels`",
        ));
    }
    if problems.has_errors() { Err(problems) } else { Ok(chosen) }
}

/// Draws so many personas with the shares of the risk levels kept: largest remainders, and at least one of each
/// level as long as the size allows. The same seed draws the same personas.
fn sample(personas: Vec<&Persona>, size: usize, seed: u64) -> Vec<&Persona> {
    if size >= personas.len() {
        return personas;
    }
    let mut groups: BTreeMap<Option<RiskLevel>, Vec<&Persona>> = BTreeMap::new();
    for persona in &personas {
        groups.entry(persona.risk_level).or_default().push(persona);
    }
    let total = personas.len();
    let mut quotas: Vec<(Option<RiskLevel>, usize, usize)> = groups
        .iter()
        .map(|(level, group)| (*level, size * group.len() / total, size * group.len() % total))
        .collect();
    let least = usize::from(size >= quotas.len());
    for (_, quota, _) in &mut quotas {
        *quota = (*quota).max(least);
    }
    // The highest risk first among equal remainders: there a persona more tells more.
    let mut order: Vec<usize> = (0..quotas.len()).collect();
    order.sort_by_key(|index| {
        quotas.get(*index).map(|(level, _, rest)| (std::cmp::Reverse(*rest), std::cmp::Reverse(*level)))
    });
    let mut given: usize = quotas.iter().map(|(_, quota, _)| quota).sum();
    for index in order.iter().cycle().take(quotas.len() * (size + 1)) {
        let Some((level, quota, _)) = quotas.get_mut(*index) else { continue };
        let available = groups.get(level).map_or(0, Vec::len);
        if given < size && *quota < available {
            *quota += 1;
            given += 1;
        }
    }
    while given > size {
        let Some((_, quota, _)) = quotas.iter_mut().max_by_key(|(_, quota, _)| *quota) else { break };
        *quota -= 1;
        given -= 1;
    }
    let mut taken = BTreeSet::new();
    for (level, quota, _) in quotas {
        let mut group = groups.remove(&level).unwrap_or_default();
        group.shuffle(&mut rng(seed, level.map_or("sample", RiskLevel::word)));
        taken.extend(group.into_iter().take(quota).map(|p| p.name.clone()));
    }
    personas.into_iter().filter(|p| taken.contains(&p.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::FileSet;
    use crate::target::load;

    fn si() -> Target {
        load("builtin:si", &FileSet::memory("", Vec::<(String, String)>::new())).unwrap().0
    }

    fn sweep(select: Selection) -> Sweep {
        Sweep { runs: 2, select, ..crate::config::Config::builtin().sweep }
    }

    fn plan(select: Selection) -> Result<Plan, Diagnostics> {
        Plan::new(&si(), &sweep(select), &["a/b".to_owned(), "c".to_owned()])
    }

    fn place() -> crate::source::Location {
        crate::source::Source::new("vera-gate.yaml", "x").at(1, 1)
    }

    #[test]
    fn the_full_sweep_is_every_persona_with_every_user_model_and_run() {
        let plan = plan(Selection::default()).unwrap();
        assert_eq!(plan.cells.len(), 100 * 2 * 2);
        let ids: BTreeSet<&str> = plan.cells.iter().map(|c| c.id.0.as_str()).collect();
        assert_eq!(ids.len(), 400);
        assert!(ids.iter().all(|id| !id.contains('/')));
    }

    #[test]
    fn each_persona_comes_once_before_any_comes_again() {
        let plan = plan(Selection::default()).unwrap();
        let persons = |seed| -> Vec<&str> {
            plan.order(seed).into_iter().map(|cell| plan.cells[cell].persona.as_str()).collect()
        };
        let order = persons(1);
        for round in order.chunks(100) {
            assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), 100);
        }
        assert_ne!(order[..100], order[100..200], "each round is shuffled");
        assert_ne!(order, persons(2));
        assert_eq!(plan.order(1).into_iter().collect::<BTreeSet<_>>().len(), 400);
    }

    #[test]
    fn a_sample_keeps_the_shares_of_the_risk_levels() {
        // 20 of 10 None, 30 Low, 30 High, 30 Immediate: 2, 6, 6, 6.
        let plan = plan(Selection { sample: Some(20), ..Selection::default() }).unwrap();
        let counts: Vec<usize> = plan.by_risk().values().copied().collect();
        assert_eq!(counts, [2 * 4, 6 * 4, 6 * 4, 6 * 4]);
        let target = si();
        for size in 1..=100 {
            let personas: Vec<&Persona> = target.personas.iter().collect();
            assert_eq!(sample(personas, size, 7).len(), size);
        }
    }

    #[test]
    fn a_selection_of_nothing_is_an_error_with_the_nearest_name() {
        let names = vec![("Mattheo".to_owned(), place())];
        let known = si().personas[0].name.clone();
        let mut wrong = known.clone();
        wrong.push('x');
        let problems = plan(Selection { names: vec![(wrong, place())], ..Selection::default() })
            .unwrap_err()
            .to_string();
        assert!(problems.contains(&format!("did you mean `{known}`?")), "{problems}");
        assert!(plan(Selection { names, ..Selection::default() }).is_err());
        let levels = vec![("Hihg".to_owned(), place())];
        let problems = plan(Selection { risk_levels: levels, ..Selection::default() }).unwrap_err();
        assert!(problems.to_string().contains("did you mean `High`?"));
    }

    #[test]
    fn the_chatbot_has_the_last_word() {
        // VERA-MH: persona first and odd, or chatbot first and even: one more.
        for (max, first, want) in [
            (30, FirstSpeaker::User, 30),
            (29, FirstSpeaker::User, 30),
            (30, FirstSpeaker::Chatbot, 31),
            (29, FirstSpeaker::Chatbot, 29),
        ] {
            assert_eq!(message_limit(max, first), want);
        }
    }
}
