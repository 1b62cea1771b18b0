//! Where the values of a configuration stand, for problems that show only once something is looked up: a model, a
//! target, a file.

use std::collections::BTreeMap;

use super::yaml::{self, Node, Value};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{Location, Source};

/// The place of each value by its dotted name, such as `gate.thresholds` or `judge[1].model`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(BTreeMap<String, Location>);

impl Places {
    /// The places of a file. One that is no YAML has none.
    pub fn of(source: &Source) -> Self {
        let mut places = Self::default();
        if let Some(node) = yaml::parse(source, &mut Diagnostics::new()) {
            places.enter(String::new(), &node);
        }
        places
    }

    fn enter(&mut self, name: String, node: &Node) {
        match &node.value {
            Value::Map(entries) => {
                for (key, value) in entries {
                    let inner =
                        if name.is_empty() { key.text.clone() } else { format!("{name}.{}", key.text) };
                    self.enter(inner, value);
                }
            }
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.enter(format!("{name}[{index}]"), item);
                }
            }
            _ => {}
        }
        self.0.insert(name, node.location.clone());
    }

    /// Says that a value came from elsewhere, such as the command line.
    pub fn replace(&mut self, name: &str, location: Location) {
        self.0.retain(|known, _| !is_part_of(known, name));
        self.0.insert(name.to_owned(), location);
    }

    /// Takes the places of a value from another file.
    pub fn adopt(&mut self, name: &str, other: &Self) {
        self.0.retain(|known, _| !is_part_of(known, name));
        let parts = other.0.iter().filter(|(known, _)| is_part_of(known, name));
        self.0.extend(parts.map(|(known, place)| (known.clone(), place.clone())));
    }

    /// Where a value stands.
    pub fn of_value(&self, name: &str) -> Option<&Location> {
        self.0.get(name)
    }

    /// Where the model of a role stands: the role may be a text, a mapping, or the `index`th of a list.
    pub fn of_model(&self, role: &str, index: usize) -> Option<&Location> {
        let item = format!("{role}[{index}]");
        [format!("{item}.model"), item, format!("{role}.model"), role.to_owned()]
            .iter()
            .find_map(|name| self.of_value(name))
    }

    /// A problem at a value's place, unless it has a place of its own.
    pub fn locate(place: Option<&Location>, problem: Diagnostic) -> Diagnostic {
        match place {
            Some(place) if problem.location.is_none() => problem.at(place.clone()),
            _ => problem,
        }
    }
}

fn is_part_of(known: &str, name: &str) -> bool {
    known.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "user:\n  - a/b\n  - {model: c/d}\ncandidate: e/f\njudge: {model: g/h}\n";

    #[test]
    fn a_role_is_found_however_it_is_written() {
        let places = Places::of(&Source::new("c.yaml", TEXT));
        let at = |role, index| places.of_model(role, index).map(|place| (place.line, place.column));
        assert_eq!(at("user", 0), Some((2, 5)));
        assert_eq!(at("user", 1), Some((3, 13)));
        assert_eq!(at("candidate", 0), Some((4, 12)));
        assert_eq!(at("judge", 0), Some((5, 16)));
        assert_eq!(at("confirm", 0), None);
    }

    #[test]
    fn a_value_of_the_command_line_hides_all_that_stood_below_it() {
        let mut places = Places::of(&Source::new("c.yaml", TEXT));
        let flag = Source::new("command line", "--user x/y").at(1, 8);
        places.replace("user", flag.clone());
        assert_eq!(places.of_model("user", 0), Some(&flag));
        assert_eq!(places.of_model("user", 1), Some(&flag));
    }
}
