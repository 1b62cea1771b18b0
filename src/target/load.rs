//! From files to a checked target: which files there are, what they hold, and whether they fit together.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::manifest::{self, Manifest};
use super::persona::{self, Persona, PersonaFile, RiskMapping};
use super::prompt::{Layers, PromptParts, Template};
use super::rubric::{BlankDimension, Rubric};
use super::{Fingerprints, Target, embedded};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, did_you_mean};
use crate::source::files::{folder_of, join};
use crate::source::{FileSet, ReadError, Source};

/// What a reference to a built-in target starts with.
pub const BUILTIN: &str = "builtin:";

const RUBRIC: &str = "rubric.tsv";
const PERSONAS: &str = "personas.tsv";
const PERSONA_PROMPT: &str = "persona_prompt_template.txt";
const REMINDER: &str = "persona_prompt_reminder.txt";
const JUDGE_PROMPT: &str = "rubric_prompt_beginning.txt";
const QUESTION_PROMPT: &str = "question_prompt.txt";

/// Loads a target by its reference: `builtin:si`, the name of a built-in target alone, or a path within `base` to
/// a folder or a manifest. A folder that is called like a built-in target is meant by `./` in front of it.
///
/// # Errors
/// All problems of all files at once, if any of them refuses the target; else the warnings come with it.
pub fn load(reference: &str, base: &FileSet) -> Result<(Target, Diagnostics), Diagnostics> {
    let name = reference.strip_prefix(BUILTIN);
    let known = |name: &str| embedded::TARGETS.iter().find(|(known, _)| *known == name);
    match (known(name.unwrap_or(reference)), name) {
        (Some((_, manifest)), _) => load_from(&embedded::files(), manifest),
        (None, Some(name)) => {
            Err(Diagnostic::error(Code::UnknownWord, format!("there is no built-in target `{name}`"))
                .help(did_you_mean(name, embedded::TARGETS.iter().map(|(known, _)| *known)))
                .into())
        }
        (None, None) => load_from(base, reference),
    }
}

/// Loads a target with other persona tables in the place of its own: paths within `base`, or `builtin:si-youth` and
/// the like for a table that the binary carries.
///
/// # Errors
/// All problems of all files at once, if any of them refuses the target; else the warnings come with it.
pub fn load_with_personas(
    reference: &str,
    base: &FileSet,
    personas: &[String],
) -> Result<(Target, Diagnostics), Diagnostics> {
    let mut problems = Diagnostics::new();
    let mut sources = Vec::new();
    for path in personas {
        let read = match path.strip_prefix(BUILTIN) {
            Some(name) => embedded::files().read(&format!("personas/{name}.tsv")),
            None => base.read(path),
        };
        match read {
            Ok(source) => sources.push(source),
            Err(error) => problems.push(Diagnostic::error(Code::Unreadable, error.to_string())),
        }
    }
    let name = reference.strip_prefix(BUILTIN).unwrap_or(reference);
    let embedded = embedded::TARGETS.iter().find(|(known, _)| *known == name);
    let carried = embedded::files();
    let (files, path) = embedded.map_or((base, reference), |(_, manifest)| (&carried, *manifest));
    let mut loader = Loader { files, problems, manifest: None, personas: Some(sources) };
    let target = loader.target(path);
    loader.problems.finish(target)
}

/// Loads a target from a folder or a manifest of a set of files.
///
/// # Errors
/// All problems of all files at once, if any of them refuses the target; else the warnings come with it.
pub fn load_from(files: &FileSet, path: &str) -> Result<(Target, Diagnostics), Diagnostics> {
    let mut loader = Loader { files, problems: Diagnostics::new(), manifest: None, personas: None };
    let target = loader.target(path);
    loader.problems.finish(target)
}

/// Something that `vera-gate check` can look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// A whole target.
    Target(Box<Target>),
    /// A rubric table alone.
    Rubric(Rubric),
    /// A persona table alone.
    Personas(PersonaFile),
}

/// Checks a target, or a single table of one: a `.tsv` file with the column `Question ID` is a rubric, another one
/// a persona table.
///
/// # Errors
/// All problems at once, if any of them refuses the input; else the warnings come with it.
pub fn check(reference: &str, base: &FileSet) -> Result<(Checked, Diagnostics), Diagnostics> {
    let is_table = Path::new(reference).extension().is_some_and(|extension| extension == "tsv");
    if !is_table || !base.contains(reference) {
        return load(reference, base).map(|(target, problems)| (Checked::Target(Box::new(target)), problems));
    }
    let mut loader = Loader { files: base, problems: Diagnostics::new(), manifest: None, personas: None };
    let Some(source) = loader.source(reference, None) else { return Err(loader.problems) };
    if source.line(1).split('\t').any(|column| column.trim_matches('"').trim() == "Question ID") {
        let (rubric, problems) = Rubric::parse(&source, BlankDimension::Inherit)?;
        return Ok((Checked::Rubric(rubric), problems));
    }
    let mut problems = Diagnostics::new();
    let file = persona::read(&source, &RiskMapping::default(), &mut problems);
    persona::check_unique(&file.personas, std::slice::from_ref(&source), &mut problems);
    problems.finish(Some(Checked::Personas(file)))
}

/// How a target's folder is laid out.
enum Layout {
    /// A manifest names the files.
    Manifest,
    /// The fixed names of VERA-MH 1.1.
    Bare,
}

struct Loader<'a> {
    files: &'a FileSet,
    problems: Diagnostics,
    manifest: Option<Source>,
    /// Persona tables in the place of the target's own.
    personas: Option<Vec<Source>>,
}

/// The sources of one target, and where they were found.
struct Parts {
    rubric: Option<Source>,
    personas: Vec<Source>,
    persona_prompt: Option<Source>,
    context: Option<Source>,
    reminder: Option<Source>,
    judge: Option<Source>,
    question: Option<Source>,
}

impl Loader<'_> {
    fn target(&mut self, path: &str) -> Option<Target> {
        let (layout, folder) = self.layout(path)?;
        let manifest = match layout {
            Layout::Manifest => Manifest::parse(&self.manifest.clone()?, &mut self.problems)?,
            Layout::Bare => Manifest {
                rubric: RUBRIC.to_owned(),
                judge_prompt: JUDGE_PROMPT.to_owned(),
                question_prompt: QUESTION_PROMPT.to_owned(),
                personas: vec![PERSONAS.to_owned()],
                persona_prompt: Some(PERSONA_PROMPT.to_owned()),
                ..Manifest::default()
            },
        };
        let parts = self.read(&manifest, &folder);
        let blank = match layout {
            Layout::Manifest => BlankDimension::Reject,
            Layout::Bare => BlankDimension::Inherit,
        };
        let rubric = parts.rubric.as_ref().and_then(|source| match Rubric::parse(source, blank) {
            Ok((rubric, warnings)) => {
                self.problems.extend(warnings);
                Some(rubric)
            }
            Err(problems) => {
                self.problems.extend(problems);
                None
            }
        });
        let read: Vec<PersonaFile> = parts
            .personas
            .iter()
            .map(|source| persona::read(source, &manifest.risk, &mut self.problems))
            .collect();
        let personas: Vec<Persona> = read.iter().flat_map(|file| file.personas.iter().cloned()).collect();
        persona::check_unique(&personas, &parts.personas, &mut self.problems);
        self.check_annotations(&manifest, &read);
        let layers = if manifest.context.is_some() { Layers::Two } else { Layers::One };
        let prompts = self.prompts(&parts, layers);
        prompts.check(&mut self.problems);
        for (source, file) in parts.personas.iter().zip(&read) {
            prompts.check_personas(&file.columns, source.name(), &mut self.problems);
        }
        let fingerprints = fingerprints(&parts, &manifest, &read);
        let risk_column = read.iter().find_map(|file| file.risk_column.clone());
        Some(Target {
            name: manifest.name.unwrap_or_else(|| self.folder_name(&folder)),
            version: manifest.version,
            title: manifest.title,
            clinically_validated: manifest.clinically_validated,
            notice: manifest.notice,
            personas,
            risk_column,
            annotation_columns: manifest.annotation_columns,
            rubric: rubric?,
            prompts: prompts.finish(parts.reminder.as_ref())?,
            fingerprints: fingerprints?,
        })
    }

    fn layout(&mut self, path: &str) -> Option<(Layout, String)> {
        let manifest = join(path, manifest::FILE_NAME);
        if self.files.contains(path) {
            self.manifest = self.source(path, None);
            return self.manifest.is_some().then(|| (Layout::Manifest, folder_of(path).to_owned()));
        }
        if self.files.contains(&manifest) {
            self.manifest = self.source(&manifest, None);
            return self.manifest.is_some().then(|| (Layout::Manifest, path.to_owned()));
        }
        if self.files.contains(&join(path, RUBRIC)) || self.files.contains(&join(path, PERSONAS)) {
            return Some((Layout::Bare, path.to_owned()));
        }
        self.problems.push(
            Diagnostic::error(Code::Unreadable, format!("`{}` is no target", self.files.name_of(path))).help(
                format!(
                    "a target is a folder with `{}` (VERA-MH 2.0), a folder with `{RUBRIC}` and `{PERSONAS}` (VERA-MH 1.1), or {}",
                    manifest::FILE_NAME,
                    embedded::TARGETS.map(|(name, _)| format!("`{BUILTIN}{name}`")).join(" or ")
                ),
            ),
        );
        None
    }

    fn folder_name(&self, folder: &str) -> String {
        let shown = self.files.name_of(folder);
        match shown.rsplit('/').next() {
            Some(name) if !name.is_empty() && name != ".." => name.to_owned(),
            _ => "target".to_owned(),
        }
    }

    /// Reads a file; a failure is reported, at the key that names the file if there is one.
    fn source(&mut self, path: &str, key: Option<&str>) -> Option<Source> {
        let error = match self.files.read(path) {
            Ok(source) => return Some(source),
            Err(error) => error,
        };
        let code = if matches!(error, ReadError::NotText { .. }) { Code::Syntax } else { Code::Unreadable };
        let mut problem = Diagnostic::error(code, error.to_string());
        if let (Some(manifest), Some(key)) = (&self.manifest, key) {
            problem = problem.at(Manifest::place(manifest, key));
        }
        self.problems.push(problem);
        None
    }

    fn read(&mut self, manifest: &Manifest, folder: &str) -> Parts {
        let own = self.personas.take();
        // A path that could not be read from the manifest is blank, and has been reported there.
        let mut named = |path: &str, key: &str| {
            if path.is_empty() { None } else { self.source(&join(folder, path), Some(key)) }
        };
        Parts {
            rubric: named(&manifest.rubric, "rubric_file"),
            personas: own.unwrap_or_else(|| {
                manifest.personas.iter().filter_map(|path| named(path, "personas")).collect()
            }),
            context: manifest.context.as_ref().and_then(|path| named(path, "persona_context_template_file")),
            judge: named(&manifest.judge_prompt, "rubric_prompt_beginning_file"),
            question: named(&manifest.question_prompt, "question_prompt_file"),
            persona_prompt: self.shared(manifest.persona_prompt.as_deref(), folder, PERSONA_PROMPT),
            reminder: self.shared(manifest.reminder.as_deref(), folder, REMINDER),
        }
    }

    /// A file that VERA-MH shares between its targets: named in the manifest, or beside it, or one folder above.
    fn shared(&mut self, named: Option<&str>, folder: &str, fixed: &str) -> Option<Source> {
        let key = fixed.replace(".txt", "_file");
        if let Some(path) = named {
            return self.source(&join(folder, path), Some(&key));
        }
        let places = [join(folder, fixed), join(folder, &format!("../{fixed}"))];
        if let Some(path) = places.iter().find(|path| self.files.contains(path)) {
            return self.source(path, Some(&key));
        }
        let message = format!("`{fixed}` stands neither in the target's folder nor above it");
        let help = format!("name it with `{key}` in the manifest");
        self.problems.push(if fixed == REMINDER {
            Diagnostic::warning(Code::MissingKey, message).help(format!(
                "without a reminder the user model slips into the helper's part more often; {help}"
            ))
        } else {
            Diagnostic::error(Code::MissingKey, message).help(help)
        });
        None
    }

    fn prompts(&mut self, parts: &Parts, layers: Layers) -> PromptParts {
        let mut template = |source: &Option<Source>| {
            source.as_ref().map(|source| Template::parse(source, &mut self.problems))
        };
        PromptParts {
            layers,
            persona: template(&parts.persona_prompt),
            context: template(&parts.context),
            judge: template(&parts.judge),
            question: template(&parts.question),
        }
    }

    fn check_annotations(&mut self, manifest: &Manifest, read: &[PersonaFile]) {
        for column in &manifest.annotation_columns {
            if read.iter().any(|file| file.columns.contains(column)) {
                continue;
            }
            let problem = Diagnostic::warning(
                Code::MissingColumn,
                format!("no persona file has the annotation column `{column}`"),
            )
            .help(did_you_mean(column, read.iter().flat_map(|file| file.columns.iter().map(String::as_str))));
            self.problems.push(match &self.manifest {
                Some(source) => problem.at(Manifest::place(source, "persona_annotation_columns")),
                None => problem,
            });
        }
    }
}

/// Lower-case hex of the SHA-256 of texts, each with its name and length, so that no two lists of texts agree by
/// accident. Line ends are those of Unix, so that a checkout with CRLF has the same fingerprint.
fn digest<'a>(parts: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut hash = Sha256::new();
    for (name, text) in parts {
        let text = text.replace("\r\n", "\n");
        hash.update(format!("{name}\0{}\0", text.len()));
        hash.update(text);
    }
    let digits =
        |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0'));
    hash.finalize().iter().flat_map(digits).collect()
}

fn fingerprints(parts: &Parts, manifest: &Manifest, read: &[PersonaFile]) -> Option<Fingerprints> {
    let mut personas: Vec<(&str, &str)> = Vec::new();
    for (source, file) in parts.personas.iter().zip(read) {
        personas.push(("personas", source.text()));
        personas.push(("risk_column", file.risk_column.as_deref().unwrap_or_default()));
    }
    for (word, level) in &manifest.risk.words {
        personas.push((word, level.word()));
    }
    let prompts = [
        ("persona_prompt", &parts.persona_prompt),
        ("persona_context", &parts.context),
        ("reminder", &parts.reminder),
        ("judge_prompt", &parts.judge),
        ("question_prompt", &parts.question),
    ];
    let prompts =
        prompts.into_iter().filter_map(|(name, part)| part.as_ref().map(|source| (name, source.text())));
    Some(Fingerprints {
        rubric: digest([("rubric", parts.rubric.as_ref()?.text())]),
        personas: digest(personas),
        prompts: digest(prompts),
    })
}
