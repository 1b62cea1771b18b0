//! The scripted provider: plays all three roles offline, so that the whole gate runs without a key.
//!
//! Every reply is derived from the seed, the names of the call and what was said; there is no clock and no other
//! source of chance. The user speaks from its persona prompt, the candidate has one of several characters, and the
//! judge answers by stated word rules (`lexicon/*.txt`, `rules.rs`), so that ratings follow from the text and not
//! from the candidate's name. It demonstrates the machinery and measures nothing: see [`NOTICE`].

mod candidate;
mod candidate_lines;
mod draw;
mod judge;
mod labels;
mod lexicon;
mod persona;
mod reading;
mod rules;
mod ruling;
mod user;
mod user_lines;
mod words;

use futures::future::BoxFuture;

use self::draw::Draw;
use self::judge::Judge;
use super::{
    Author, ChatModel, ChatRequest, Exchange, Failure, ModelError, ModelIdentity, Money, Origin, Outcome,
    Role, Usage,
};
use crate::diagnostic::did_you_mean;

/// The provider's name in configuration and results.
pub const PROVIDER: &str = "scripted";

/// What every report must say that rests on a scripted role.
pub const NOTICE: &str = "Scripted models took part in this run. It demonstrates the machinery and measures nothing: \
     no statement about any chatbot or any person's safety follows from it.";

macro_rules! characters {
    ($($name:ident $role:ident $word:literal $what:literal),+ $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Character { $($name),+ }

        const CHARACTERS: &[(Role, &str, Character, &str)] = &[$((Role::$role, $word, Character::$name, $what)),+];
    };
}

characters! {
    Persona User "person" "speaks from its persona prompt",
    RefusesRole User "refuses-role" "declines to play the person",
    SwapsRole User "swaps-role" "speaks as the helper from the second message on",
    FlakyUser User "flaky" "as `person`, but some calls fail",
    Careful Candidate "careful" "asks, stays, and leads to human help",
    Cold Candidate "cold" "correct and without warmth",
    MissesRisk Candidate "misses-risk" "gives everyday tips whatever is said",
    Harmful Candidate "harmful" "belittles, isolates and claims to be human",
    FlakyCandidate Candidate "flaky" "as `careful`, but some calls fail, are cut off, refused or empty",
    Rules Judge "rules" "answers by word rules",
    FlakyJudge Judge "flaky" "as `rules`, but some calls fail or give no answer",
}

/// The characters of a role with a description, for help texts and error messages.
pub fn characters(role: Role) -> impl Iterator<Item = (&'static str, &'static str)> {
    CHARACTERS.iter().filter(move |(r, ..)| *r == role).map(|(_, word, _, what)| (*word, *what))
}

/// A role played by the script.
#[derive(Debug)]
pub struct Scripted {
    role: Role,
    character: Character,
    seed: u64,
    identity: ModelIdentity,
    judge: Judge,
}

impl Scripted {
    /// Sets up a role. `settings` is the hash of the role's settings, as every model carries it.
    ///
    /// # Errors
    /// If the role has no such character; the message names the nearest or all.
    pub fn new(role: Role, character: &str, seed: u64, settings: impl Into<String>) -> Result<Self, String> {
        let known = CHARACTERS.iter().find(|(r, word, ..)| *r == role && *word == character);
        let Some((_, word, character, _)) = known else {
            let words: Vec<&str> = characters(role).map(|(word, _)| word).collect();
            let mut message = format!(
                "the scripted {role} has no character `{character}`; it has {}",
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
            );
            let hint = did_you_mean(character, words.iter().copied());
            if hint.starts_with("did you mean") {
                message = format!("{message}; {hint}");
            }
            return Err(message);
        };
        let identity =
            ModelIdentity { provider: PROVIDER.into(), model: (*word).to_owned(), settings: settings.into() };
        Ok(Self { role, character: *character, seed, identity, judge: Judge::default() })
    }

    fn answer(&self, request: &ChatRequest) -> Result<(Outcome, String), ModelError> {
        let text = match self.character {
            Character::Persona | Character::FlakyUser => user::reply(request, self.seed),
            Character::RefusesRole => user::refuse_role(),
            Character::SwapsRole => user::swap_roles(request, self.seed),
            Character::Careful | Character::FlakyCandidate => candidate::careful(request, self.seed),
            Character::Cold => candidate::cold(request, self.seed),
            Character::MissesRisk => candidate::misses_risk(request, self.seed),
            Character::Harmful => candidate::harmful(request, self.seed),
            Character::Rules | Character::FlakyJudge => self.judge.reply(request),
        };
        match self.character {
            Character::FlakyUser | Character::FlakyCandidate | Character::FlakyJudge => {
                self.spoil(request, text)
            }
            _ => Ok((Outcome::Reply, text)),
        }
    }

    /// Lets one call in twelve go wrong, in a way that the draw decides; a later draw of the same call may succeed.
    fn spoil(&self, request: &ChatRequest, text: String) -> Result<(Outcome, String), ModelError> {
        let mut draw = Draw::of_call(self.seed ^ 0x5eed, self.role, &request.id);
        if !draw.one_in(12) {
            return Ok((Outcome::Reply, text));
        }
        let fail = |failure: Failure| ModelError {
            role: self.role,
            failure,
            message: "the script lets this call fail".into(),
            attempts: 1,
        };
        match draw.below(7) {
            0 => Err(fail(Failure::Rate)),
            1 => Err(fail(Failure::Server)),
            2 => Err(fail(Failure::Timeout)),
            3 => Ok((Outcome::Refusal, "I am sorry, but I cannot help with that.".into())),
            4 => Ok((Outcome::Empty, String::new())),
            5 => {
                let half = text.chars().count() / 2;
                Ok((Outcome::Truncated, text.chars().take(half).collect()))
            }
            // A judge that answers beside the options; for the others a plain empty reply once more.
            _ if self.role == Role::Judge => {
                Ok((Outcome::Reply, r#"{"answer":"Unclear","reasoning":""}"#.into()))
            }
            _ => Ok((Outcome::Empty, String::new())),
        }
    }
}

/// The usual estimate of four characters for a token, rounded up.
fn tokens(characters: usize) -> u64 {
    characters.div_ceil(4) as u64
}

impl ChatModel for Scripted {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn reply<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<Exchange, ModelError>> {
        let reply = self.answer(request).map(|(outcome, text)| {
            let system = request.system.as_deref().map_or(0, |text| text.chars().count());
            let sent: usize = request.messages.iter().map(|message| message.text.chars().count()).sum();
            Exchange {
                outcome,
                usage: Some(Usage {
                    input: tokens(system + sent),
                    output: tokens(text.chars().count()),
                    ..Usage::default()
                }),
                text,
                cost: Some(Money::ZERO),
                thinking: None,
                finish: None,
                model: Some(self.identity.model.clone()),
                attempts: 1,
                origin: Origin::Live,
            }
        });
        Box::pin(std::future::ready(reply))
    }
}

/// The messages of a request by side: what the called model said, and what it heard.
fn said_and_heard(request: &ChatRequest) -> (Vec<&str>, Vec<&str>) {
    let side = |author: Author| {
        request.messages.iter().filter(move |m| m.author == author).map(|m| &*m.text).collect::<Vec<&str>>()
    };
    (side(Author::Assistant), side(Author::User))
}

#[cfg(test)]
mod tests;
