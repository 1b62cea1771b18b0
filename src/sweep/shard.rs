//! Which part of a plan this process works on.
//!
//! The conversations are ordered by a hash of their names and dealt out in turn: sizes differ by one at most, the same
//! plan is always divided the same way, and a part holds no more of one persona or risk level than chance gives it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::plan::{Cell, Plan};
use crate::fingerprint::sha256;
use crate::transcript::ConversationId;

/// The most parts a plan may be divided into: more than the jobs of any CI system.
pub const MOST: u32 = 10_000;

/// Part `number` of `of`, written `2/4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Shard {
    number: u32,
    of: u32,
}

/// Whether somebody asked for the part that the job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// With the word `auto`.
    Yes,
    /// Nobody did.
    No,
}

/// What is said of the part to work on: `2/4`, or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This one.
    Part(Shard),
    /// The one that the job is.
    Auto,
}

/// Why something is no shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAShard(String);

impl Shard {
    /// Part `number`, from 1, of `of`.
    ///
    /// # Errors
    /// When there is no such part.
    pub fn new(number: u32, of: u32) -> Result<Self, NotAShard> {
        if of == 0 || of > MOST {
            return Err(NotAShard(format!(
                "a plan is divided into 1 to {MOST} shards, and `{number}/{of}` says {of}"
            )));
        }
        if number == 0 || number > of {
            return Err(NotAShard(format!(
                "`{number}/{of}`: shards are numbered from 1 to their count, so 1/{of} to {of}/{of}"
            )));
        }
        Ok(Self { number, of })
    }

    /// Which part, from 1.
    pub fn number(self) -> u32 {
        self.number
    }

    /// How many parts there are.
    pub fn of(self) -> u32 {
        self.of
    }

    /// The part that a cluster assigns to this job: an indexed Kubernetes Job (`JOB_COMPLETION_INDEX`, from 0), when
    /// `VERA_GATE_SHARDS` says that the plan is divided; and with `asked` that of GitLab's `parallel`
    /// (`CI_NODE_INDEX` and `CI_NODE_TOTAL`) too. GitLab sets these for `parallel: matrix` as well, where each job may
    /// have a chatbot of its own: a part that nobody asked for would be a sweep without a verdict.
    ///
    /// # Errors
    /// When the variables are there and say nothing that makes sense, or are asked for and not there: running the whole
    /// plan in every job instead would pay for it several times.
    pub fn from_environment(
        asked: Asked,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, NotAShard> {
        let number = |name: &str| -> Result<Option<u32>, NotAShard> {
            let Some(text) = variable(name).filter(|text| !text.trim().is_empty()) else { return Ok(None) };
            let parsed = text.trim().parse();
            parsed.map(Some).map_err(|error| NotAShard(format!("{name} is `{text}`: {error}")))
        };
        if let Some(of) = number("VERA_GATE_SHARDS")? {
            let index = number("JOB_COMPLETION_INDEX")?.ok_or_else(|| {
                NotAShard(
                    "VERA_GATE_SHARDS is set but JOB_COMPLETION_INDEX is not, so it is unknown which shard this is; \
give --shard K/N or VERA_GATE_SHARD"
                        .to_owned(),
                )
            })?;
            return Self::new(index.saturating_add(1), of).map(Some);
        }
        if asked == Asked::No {
            return Ok(None);
        }
        match (number("CI_NODE_INDEX")?, number("CI_NODE_TOTAL")?) {
            (Some(index), Some(of)) => Self::new(index, of).map(Some),
            _ => Err(NotAShard(
                "`auto` takes the part from the job, and neither CI_NODE_INDEX and CI_NODE_TOTAL (GitLab's `parallel`) nor \
JOB_COMPLETION_INDEX and VERA_GATE_SHARDS (Kubernetes) are set; give --shard K/N"
                    .to_owned(),
            )),
        }
    }

    /// The names of this part's conversations.
    pub fn members(self, plan: &Plan) -> BTreeSet<&ConversationId> {
        let mut dealt: Vec<(String, &ConversationId)> =
            plan.cells.iter().map(|cell| (sha256(&cell.id.0), &cell.id)).collect();
        dealt.sort();
        let (first, step) = ((self.number - 1) as usize, self.of as usize);
        dealt.into_iter().skip(first).step_by(step).map(|(_, id)| id).collect()
    }

    /// The plan of this part alone.
    pub fn part(self, plan: &Plan) -> Plan {
        let members = self.members(plan);
        let cells: Vec<Cell> = plan.cells.iter().filter(|cell| members.contains(&cell.id)).cloned().collect();
        Plan { cells }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = NotAShard;

    fn from_str(text: &str) -> Result<Self, NotAShard> {
        let form = || NotAShard(format!("`{text}` is not of the form K/N, such as 2/4, nor `auto`"));
        let (number, of) = text.trim().split_once('/').ok_or_else(form)?;
        let parse = |part: &str| part.trim().parse::<u32>().ok();
        let (number, of) = parse(number).zip(parse(of)).ok_or_else(form)?;
        Self::new(number, of)
    }
}

impl FromStr for Choice {
    type Err = NotAShard;

    fn from_str(text: &str) -> Result<Self, NotAShard> {
        if text.trim() == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::Part) }
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl TryFrom<String> for Shard {
    type Error = NotAShard;

    fn try_from(text: String) -> Result<Self, NotAShard> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn plan(names: &BTreeSet<String>) -> Plan {
        let cell = |name: &String| Cell {
            id: ConversationId(name.clone()),
            persona: name.clone(),
            risk_level: None,
            user_model: "m".to_owned(),
            user: 0,
            run: 1,
        };
        Plan { cells: names.iter().map(cell).collect() }
    }

    proptest! {
        #[test]
        fn every_conversation_is_in_one_part_and_parts_are_of_equal_size(
            names in proptest::collection::btree_set("[a-z]{1,6}", 1..60),
            of in 1_u32..9,
        ) {
            let plan = plan(&names);
            let parts: Vec<Plan> = (1..=of).map(|k| Shard::new(k, of).unwrap().part(&plan)).collect();
            let mut all: Vec<&str> = parts.iter().flat_map(|p| &p.cells).map(|c| c.id.0.as_str()).collect();
            all.sort_unstable();
            prop_assert_eq!(all, names.iter().map(String::as_str).collect::<Vec<_>>());
            let sizes: Vec<usize> = parts.iter().map(|part| part.cells.len()).collect();
            let (most, least) = (sizes.iter().max().unwrap(), sizes.iter().min().unwrap());
            prop_assert!(most - least <= 1, "{:?}", sizes);
        }
    }

    #[test]
    fn the_parts_follow_the_hashes_of_the_names() {
        // SHA-256 begins with ca97 for "a", 3e23 for "b", 2e7d for "c" and 18ac for "d": the order is d, c, b, a.
        let names = ["a", "b", "c", "d"].map(str::to_owned).into();
        let plan = plan(&names);
        let part = |text: &str| -> Vec<String> {
            let part = text.parse::<Shard>().unwrap().part(&plan);
            part.cells.into_iter().map(|cell| cell.id.0).collect()
        };
        assert_eq!(part("1/2"), ["b", "d"]);
        assert_eq!(part("2/2"), ["a", "c"]);
        assert_eq!(part("1/1"), ["a", "b", "c", "d"]);
    }

    #[test]
    fn what_is_no_shard_is_refused() {
        for text in ["0/4", "5/4", "1/0", "2", "a/b", "1/2/3", "-1/2", "1/10001", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        assert_eq!(" 3 / 4 ".parse::<Shard>().unwrap().to_string(), "3/4");
    }

    #[test]
    fn ci_systems_and_clusters_say_which_part_it_is() {
        let said = |asked: Asked, variables: &[(&str, &str)]| {
            let map: BTreeMap<String, String> =
                variables.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            Shard::from_environment(asked, |name| map.get(name).cloned())
        };
        let of = |variables: &[(&str, &str)]| said(Asked::No, variables);
        let auto = |variables: &[(&str, &str)]| said(Asked::Yes, variables);
        let shard = |text: &str| Ok(Some(text.parse::<Shard>().unwrap()));
        assert_eq!(of(&[]), Ok(None));
        // GitLab sets both in every job of a `parallel: matrix`, whatever its axes are.
        assert_eq!(of(&[("CI_NODE_INDEX", "2"), ("CI_NODE_TOTAL", "5")]), Ok(None));
        assert_eq!(auto(&[("CI_NODE_INDEX", "2"), ("CI_NODE_TOTAL", "5")]), shard("2/5"));
        assert_eq!(auto(&[("JOB_COMPLETION_INDEX", "0"), ("VERA_GATE_SHARDS", "3")]), shard("1/3"));
        assert!(auto(&[]).is_err() && auto(&[("CI_NODE_TOTAL", "1")]).is_err());
        assert_eq!(of(&[("JOB_COMPLETION_INDEX", "0"), ("VERA_GATE_SHARDS", "3")]), shard("1/3"));
        assert_eq!(of(&[("JOB_COMPLETION_INDEX", "0")]), Ok(None), "an indexed job of another purpose");
        assert!(of(&[("VERA_GATE_SHARDS", "3")]).is_err());
        assert!(of(&[("JOB_COMPLETION_INDEX", "3"), ("VERA_GATE_SHARDS", "3")]).is_err());
        assert!(auto(&[("CI_NODE_INDEX", "x"), ("CI_NODE_TOTAL", "5")]).is_err());
        assert_eq!("auto".parse::<Choice>(), Ok(Choice::Auto));
        assert!("automatic".parse::<Choice>().is_err());
    }
}
