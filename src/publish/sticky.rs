//! One comment per pull request that every run writes anew.
//!
//! Ours is a comment that both carries our marker as its last line and was written by our own account: anyone can
//! paste a marker. [`plan`] decides from what is there, so a lost answer is repaired by looking again, and a comment
//! is never written twice because a server stumbled.

use super::Publication;
use super::forge::{Comment, Forge, ForgeError, Operation};
use super::pace::{Pace, TRIES};
use super::size::{self, Budget};

/// Pages that are read at most: ten thousand comments.
const PAGES: u32 = 100;
/// Below this many characters a text that is still too long is given up.
const SMALLEST: usize = 1000;

/// What our comments carry in their last line, as an HTML comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Which gate of the repository; a repository may have several.
    pub id: String,
    /// The commit the result is about.
    pub head_sha: String,
    /// The run that wrote it.
    pub run_id: u64,
    /// Its attempt.
    pub run_attempt: u32,
    /// What it says.
    pub word: String,
}

impl Marker {
    /// Whether the text can be an id: lower-case letters, digits and `-`, at most 40.
    pub fn is_id(text: &str) -> bool {
        (1..=40).contains(&text.len())
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !text.contains("--")
    }

    /// The last line of a comment.
    pub fn render(&self) -> String {
        format!(
            "<!-- vera-gate:{} head={} run={} attempt={} word={} -->",
            self.id, self.head_sha, self.run_id, self.run_attempt, self.word
        )
    }

    /// Reads the last line of a comment. Older or shortened markers lack fields and count as the oldest.
    pub fn parse(body: &str) -> Option<Self> {
        let line = body.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        let inner = line.strip_prefix("<!-- vera-gate:")?.strip_suffix("-->")?;
        let mut words = inner.split_whitespace();
        let id = words.next().filter(|id| Self::is_id(id))?.to_owned();
        let mut marker = Self { id, head_sha: String::new(), run_id: 0, run_attempt: 0, word: String::new() };
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            match key {
                "head" => value.clone_into(&mut marker.head_sha),
                "run" => marker.run_id = value.parse().unwrap_or_default(),
                "attempt" => marker.run_attempt = value.parse().unwrap_or_default(),
                "word" => value.clone_into(&mut marker.word),
                _ => {}
            }
        }
        Some(marker)
    }

    fn same_attempt(&self, other: &Self) -> bool {
        (self.run_id, self.run_attempt) == (other.run_id, other.run_attempt)
    }

    /// Whether the other one, about the same commit, came from a later run. A later attempt of an older run was
    /// asked for by a person and counts as later than a first attempt.
    fn is_older_than(&self, other: &Self) -> bool {
        if self.run_id == other.run_id {
            self.run_attempt < other.run_attempt
        } else {
            self.run_id < other.run_id && self.run_attempt <= other.run_attempt
        }
    }
}

/// Why nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// The pull request has moved on to another commit.
    OtherHead,
    /// A later run already wrote about this commit.
    NewerRun,
    /// This run already wrote its result, and now only reports that it did not finish.
    AlreadyFinished,
}

impl Stale {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OtherHead => "the pull request has moved on to a newer commit",
            Self::NewerRun => "a newer run has already written its result for this commit",
            Self::AlreadyFinished => "this run has already written its result",
        }
    }
}

/// What to do with the comments that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The one write.
    pub action: Action,
    /// Further comments of ours, to be removed.
    pub remove: Vec<u64>,
}

/// The write of a [`Plan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// There is none of ours.
    Create,
    /// This one is ours.
    Update(u64),
    /// This one already says it.
    Keep(u64),
    /// It is not for us to write.
    Skip(Stale),
}

/// Decides what to do, from the comments that are there. Pure.
pub fn plan(comments: &[Comment], login: &str, marker: &Marker, body: &str, pull_head: &str) -> Plan {
    let skip = |why| Plan { action: Action::Skip(why), remove: Vec::new() };
    if pull_head != marker.head_sha {
        return skip(Stale::OtherHead);
    }
    let mut own: Vec<(&Comment, Marker)> = comments
        .iter()
        .filter(|comment| comment.author.as_deref().is_some_and(|author| author.eq_ignore_ascii_case(login)))
        .filter_map(|comment| Some((comment, Marker::parse(&comment.body)?)))
        .filter(|(_, found)| found.id == marker.id)
        .collect();
    own.sort_by_key(|(comment, _)| comment.id);
    let same_head = || own.iter().map(|(_, found)| found).filter(|found| found.head_sha == marker.head_sha);
    if same_head().any(|found| marker.is_older_than(found)) {
        // What this run itself created beside the newer one is a duplicate. The oldest comment is never removed: it is
        // the one that the newer run may be writing to right now.
        let mine =
            own.iter().skip(1).filter(|(_, found)| found.same_attempt(marker)).map(|(c, _)| c.id).collect();
        return Plan { action: Action::Skip(Stale::NewerRun), remove: mine };
    }
    let finished = |found: &Marker| found.same_attempt(marker) && found.word != super::Word::Running.as_str();
    if marker.word == super::Word::DidNotFinish.as_str()
        && same_head().any(|found| finished(found) && found.word != marker.word)
    {
        return skip(Stale::AlreadyFinished);
    }
    let Some(((keep, _), others)) = own.split_first() else {
        return Plan { action: Action::Create, remove: Vec::new() };
    };
    let action = if same_text(&keep.body, body) { Action::Keep(keep.id) } else { Action::Update(keep.id) };
    Plan { action, remove: others.iter().map(|(comment, _)| comment.id).collect() }
}

/// The server may hand back other line breaks and white space at the ends.
fn same_text(a: &str, b: &str) -> bool {
    a.trim().lines().map(str::trim_end).eq(b.trim().lines().map(str::trim_end))
}

/// What became of the comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It is there; names of the sections that were cut for size.
    Written {
        /// Id of the comment.
        id: u64,
        /// What was cut.
        reduced: Vec<String>,
    },
    /// It was not for us to write.
    Skipped(Stale),
}

/// Writes the publication as the one comment of ours on the pull request.
pub async fn put<F: Forge>(
    forge: &F,
    pace: Pace,
    pull: u64,
    login: &str,
    marker: &Marker,
    publication: &Publication,
) -> Result<Placed, ForgeError> {
    let mut login = login.to_owned();
    let mut created = None;
    let mut budget = size::COMMENT;
    let mut attempt = 0;
    loop {
        match reconcile(forge, pull, &login, created.as_ref(), marker, publication, budget).await {
            Ok(Step::Done(placed)) => return Ok(placed),
            // Look again: two runs may have written at the same time, and the account may be another one.
            Ok(Step::Created(comment)) => {
                if let Some(author) = &comment.author {
                    login.clone_from(author);
                }
                created = Some(comment);
                continue;
            }
            Ok(Step::Moved) if attempt + 1 < TRIES => created = None,
            Ok(Step::Moved) => return Err(ForgeError::NotFound(Operation::WriteComment)),
            Err(ForgeError::TooLong(_)) if budget.characters / 2 >= SMALLEST => {
                budget = budget.half_of(&size::fit(publication, &marker.render(), budget).text);
                continue;
            }
            Err(error) if pace.again(&error, attempt).await => {}
            Err(error) => return Err(error),
        }
        attempt += 1;
    }
}

enum Step {
    Created(Comment),
    Moved,
    Done(Placed),
}

/// Reads what is there and does what the plan says, once.
async fn reconcile<F: Forge>(
    forge: &F,
    pull: u64,
    login: &str,
    created: Option<&Comment>,
    marker: &Marker,
    publication: &Publication,
    budget: Budget,
) -> Result<Step, ForgeError> {
    let now = forge.pull(pull).await?;
    let mut comments = all_comments(forge, pull).await?;
    // A list can lag behind a write; what we wrote ourselves is there.
    comments.extend(created.filter(|c| comments.iter().all(|there| there.id != c.id)).cloned());
    let fitted = size::fit(publication, &marker.render(), budget);
    let plan = plan(&comments, login, marker, &fitted.text, &now.head_sha);
    let placed = match plan.action {
        Action::Create => return Ok(Step::Created(forge.create_comment(pull, &fitted.text).await?)),
        Action::Update(id) => match forge.update_comment(id, &fitted.text).await {
            Ok(_) => Placed::Written { id, reduced: fitted.reduced },
            // Another run removed it since it was listed.
            Err(ForgeError::NotFound(_)) => return Ok(Step::Moved),
            Err(error) => return Err(error),
        },
        Action::Keep(id) => Placed::Written { id, reduced: fitted.reduced },
        Action::Skip(why) => Placed::Skipped(why),
    };
    for duplicate in plan.remove {
        match forge.delete_comment(duplicate).await {
            // The other run removed it first.
            Ok(()) | Err(ForgeError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Step::Done(placed))
}

async fn all_comments<F: Forge>(forge: &F, pull: u64) -> Result<Vec<Comment>, ForgeError> {
    let mut all = Vec::new();
    for page in 1..=PAGES {
        let (comments, more) = forge.comments(pull, page).await?;
        all.extend(comments);
        if !more {
            return Ok(all);
        }
    }
    Err(ForgeError::Unreadable {
        operation: Operation::ListComments,
        message: format!("there are more than {PAGES} pages"),
    })
}

#[cfg(test)]
mod tests;
