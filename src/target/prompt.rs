//! Prompt templates: `{Name}` is replaced, `{{` and `}}` are braces, as in Python's `str.format`.

use std::collections::BTreeMap;

use super::persona::Persona;
use super::rubric::Question;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::source::Source;

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    source: Source,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field { name: String, offset: usize },
}

/// Text files are sent with `\n`, however they were checked out.
fn unix_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Characters at which a placeholder would stop being a plain name for `str.format`.
const NOT_IN_NAMES: [char; 4] = ['.', '[', '!', ':'];

impl Template {
    /// Reads a template. Every problem goes to `problems`; what cannot be read is left out.
    pub fn parse(source: &Source, problems: &mut Diagnostics) -> Self {
        let text = source.text();
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut bad = |offset: usize, message: &str, help: &str| {
            problems
                .push(Diagnostic::error(Code::BadTemplate, message).at(source.at_offset(offset)).help(help));
        };
        let mut chars = text.char_indices().peekable();
        while let Some((offset, c)) = chars.next() {
            match c {
                '{' | '}' if chars.next_if(|(_, next)| *next == c).is_some() => plain.push(c),
                '}' => bad(offset, "`}` closes nothing", "write `}}` for a brace"),
                '{' => {
                    let rest = text.get(offset + 1..).unwrap_or_default();
                    let (name, closed) = match rest.find(['{', '}']) {
                        Some(end) => (
                            rest.get(..end).unwrap_or_default(),
                            rest.get(end..).is_some_and(|r| r.starts_with('}')),
                        ),
                        None => (rest, false),
                    };
                    if !closed {
                        bad(offset, "this placeholder is never closed", "write `{{` for a brace");
                        continue;
                    }
                    while chars.next_if(|(at, _)| *at <= offset + 1 + name.len()).is_some() {}
                    if name.is_empty() || name.bytes().all(|b| b.is_ascii_digit()) {
                        bad(offset, "a placeholder needs a name", "write `{{` and `}}` for braces");
                    } else if let Some(stop) = name.chars().find(|c| NOT_IN_NAMES.contains(c)) {
                        bad(
                            offset,
                            &format!("the placeholder `{{{name}}}` holds `{stop}`, which no name can hold"),
                            "give the column a name without `.`, `[`, `!` and `:`",
                        );
                    } else {
                        parts.push(Part::Text(unix_lines(&std::mem::take(&mut plain))));
                        parts.push(Part::Field { name: name.to_owned(), offset });
                    }
                }
                c => plain.push(c),
            }
        }
        parts.push(Part::Text(unix_lines(&plain)));
        Self { source: source.clone(), parts }
    }

    /// The names of the placeholders, in order, with repetitions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields().map(|(name, _)| name)
    }

    fn fields(&self) -> impl Iterator<Item = (&str, usize)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Field { name, offset } => Some((name.as_str(), *offset)),
            Part::Text(_) => None,
        })
    }

    /// Reports placeholders that nothing can fill, and demanded ones that are not there. `filler` says what is
    /// missing, such as "column in `personas.tsv`".
    pub fn check(&self, allowed: &[&str], demanded: &[&str], filler: &str, problems: &mut Diagnostics) {
        for (name, offset) in self.fields().filter(|(name, _)| !allowed.contains(name)) {
            problems.push(
                Diagnostic::error(
                    Code::UnknownPlaceholder,
                    format!("the placeholder `{{{name}}}` has no {filler}"),
                )
                .at(self.source.at_offset(offset))
                .help(did_you_mean(name, allowed.iter().copied())),
            );
        }
        for name in demanded.iter().filter(|name| !self.names().any(|used| used == **name)) {
            problems.push(
                Diagnostic::error(Code::BadTemplate, format!("the placeholder `{{{name}}}` is missing"))
                    .at(self.source.at(1, 1))
                    .help("without it the model would not see what it is asked about"),
            );
        }
    }

    /// Fills the placeholders. Values are inserted as they are and not expanded again; a name without a value, which
    /// [`Template::check`] refuses, is left out.
    pub fn fill<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> String {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Field { name, .. } => filled.push_str(value(name).unwrap_or_default()),
            }
        }
        filled
    }
}

/// Whether the judge's prompt fences the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// It has a `{delimiter}`: the transcript stands between marks drawn for each request.
    Delimited,
    /// It has none, as in VERA-MH.
    Plain,
}

/// The texts every request of a target is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompts {
    /// System prompt of the user model: filled from the persona, or around the filled context.
    persona: Template,
    /// The inner layer of VERA-MH 2.0, filled from the persona.
    context: Option<Template>,
    reminder: String,
    judge: Template,
    question: Template,
}

const CONTEXT: &str = "persona_context";

/// How many templates make the user model's system prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layers {
    /// VERA-MH 1.1: one template is filled from the persona.
    One,
    /// VERA-MH 2.0: one is filled from the persona and put into the other.
    Two,
}

/// The templates of a target as far as they could be read, so that each is checked whatever became of the others.
pub(super) struct PromptParts {
    pub(super) layers: Layers,
    pub(super) persona: Option<Template>,
    pub(super) context: Option<Template>,
    pub(super) judge: Option<Template>,
    pub(super) question: Option<Template>,
}

impl PromptParts {
    /// The template that is filled from a row of the persona table.
    fn inner(&self) -> Option<&Template> {
        match self.layers {
            Layers::One => self.persona.as_ref(),
            Layers::Two => self.context.as_ref(),
        }
    }

    /// Reports placeholders that a persona file, shown as `file`, has no column for.
    pub(super) fn check_personas(&self, columns: &[String], file: &str, problems: &mut Diagnostics) {
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        if let Some(inner) = self.inner() {
            inner.check(&columns, &[], &format!("column in `{file}`"), problems);
        }
    }

    /// Reports what does not fit whatever the personas are.
    pub(super) fn check(&self, problems: &mut Diagnostics) {
        if let Some(inner) = self.inner().filter(|inner| inner.names().next().is_none()) {
            problems.push(
                Diagnostic::error(Code::BadTemplate, "no column of the persona stands in this template")
                    .at(inner.source.at(1, 1))
                    .help("every persona would be the same user; write `{Background}` and the like"),
            );
        }
        let question = ["question", "examples_section", "options"];
        let (outer, conversation) = ([CONTEXT], ["conversation", "delimiter"]);
        let checks: [(Option<&Template>, &[&str], &[&str]); 3] = [
            (self.persona.as_ref().filter(|_| self.layers == Layers::Two), &outer, &outer),
            (self.judge.as_ref(), &conversation, &["conversation"]),
            (self.question.as_ref(), &question, &question),
        ];
        for (template, allowed, demanded) in checks {
            if let Some(template) = template {
                template.check(allowed, demanded, "value here", problems);
            }
        }
    }

    /// The prompts, if every template is there.
    pub(super) fn finish(self, reminder: Option<&Source>) -> Option<Prompts> {
        let reminder = reminder.map_or_else(String::new, |source| unix_lines(source.text()));
        Some(Prompts {
            persona: self.persona?,
            context: self.context,
            reminder,
            judge: self.judge?,
            question: self.question?,
        })
    }
}

impl Prompts {
    /// The system prompt of the user model that plays this persona.
    pub fn persona_system(&self, persona: &Persona) -> String {
        let cell = |name: &str| persona.cells.get(name).map(String::as_str);
        match &self.context {
            None => self.persona.fill(cell),
            Some(context) => {
                let context = context.fill(cell);
                self.persona.fill(|name| (name == CONTEXT).then_some(context.as_str()))
            }
        }
    }

    /// What is put before the latest message of the chatbot in a request to the user model, without a separator.
    pub fn reminder(&self) -> &str {
        &self.reminder
    }

    /// Whether [`Prompts::judge_system`] makes use of the delimiter.
    pub fn fence(&self) -> Fence {
        if self.judge.names().any(|name| name == "delimiter") { Fence::Delimited } else { Fence::Plain }
    }

    /// The system prompt of the judge over one conversation.
    pub fn judge_system(&self, conversation: &str, delimiter: &str) -> String {
        let values = BTreeMap::from([("conversation", conversation), ("delimiter", delimiter)]);
        self.judge.fill(|name| values.get(name).copied())
    }

    /// The judge's user message for one question.
    pub fn question(&self, question: &Question) -> String {
        let examples =
            if question.examples.is_empty() { String::new() } else { format!("\n{}\n", question.examples) };
        let options =
            question.options.iter().map(|option| option.text.as_str()).collect::<Vec<_>>().join(", ");
        let values = BTreeMap::from([
            ("question", question.text.as_str()),
            ("examples_section", examples.as_str()),
            ("options", options.as_str()),
        ]);
        self.question.fill(|name| values.get(name).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Template, Diagnostics) {
        let mut problems = Diagnostics::new();
        let template = Template::parse(&Source::new("t.txt", text), &mut problems);
        (template, problems)
    }

    fn fill(text: &str) -> String {
        let (template, problems) = parse(text);
        assert!(problems.is_empty(), "{problems}");
        template.fill(|name| Some(if name == "Age" { "{Name} é" } else { "x" }))
    }

    #[test]
    fn filling_follows_python() {
        // Each line is what `text.format(**{"Age": "{Name} é", ...: "x"})` gives.
        assert_eq!(fill("a {Age} b"), "a {Name} é b");
        assert_eq!(fill("{{Age}} {{{Age}}} }}{{"), "{Age} {{Name} é} }{");
        assert_eq!(fill("{Treatment Engagement / Access}{Person's \"x\", y}"), "xx");
        assert_eq!(fill(""), "");
        assert_eq!(fill("two\r\nlines\r{Age}\r\n"), "two\nlines\n{Name} é\n");
        // An em dash and other characters of several bytes around placeholders.
        assert_eq!(fill("— {Age}—{b}—"), "— {Name} é—x—");
    }

    #[test]
    fn what_python_would_refuse_is_refused_where_it_stands() {
        let cases = [
            ("a } b", 3),
            ("a {b", 3),
            ("{a{b}", 1),
            ("{}", 1),
            ("{0}", 1),
            ("{a.b}", 1),
            ("{a[b]}", 1),
            ("{a!r}", 1),
            ("{a:>3}", 1),
            ("é {", 3),
        ];
        for (text, column) in cases {
            let (_, problems) = parse(text);
            let first = problems.iter().next().unwrap_or_else(|| panic!("{text} was taken"));
            assert_eq!(
                (first.code, first.location.as_ref().unwrap().column),
                (Code::BadTemplate, column),
                "{text}"
            );
        }
        let (_, problems) = parse("{a.b}\n}\n{");
        assert_eq!(problems.iter().count(), 3);
    }

    #[test]
    fn an_unknown_placeholder_names_the_nearest_column() {
        let (template, mut problems) = parse("x\n  {Agee}");
        template.check(&["Age", "Name"], &["Name"], "column in `p.tsv`", &mut problems);
        let shown = problems.to_string();
        assert!(shown.contains("t.txt:2:3") && shown.contains("did you mean `Age`?"), "{shown}");
        assert!(shown.contains("the placeholder `{Agee}` has no column in `p.tsv`"), "{shown}");
        assert!(shown.contains("the placeholder `{Name}` is missing"), "{shown}");
    }
}
