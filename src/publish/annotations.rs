//! Remarks on lines of files: in the check, and as commands in the log of the step.

use std::path::Path;

use super::forge::Annotation;
use crate::escape::unicode::{Lines, clip, plain};
use crate::escape::workflow::{Command, Level};

/// Annotations that one request to the checks interface takes.
pub const PER_REQUEST: usize = 50;
/// Annotations of each level that GitHub shows for one step.
pub const PER_STEP: usize = 10;
/// Characters of a title that GitHub takes.
const TITLE: usize = 250;
/// Characters of a message that we show; the interface takes 64 KB.
const MESSAGE: usize = 4000;

/// What a rule does to the verdict when it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleEffect {
    /// It fails the gate.
    Blocks,
    /// It only warns.
    Advises,
    /// It is not broken, or only informs.
    Informs,
}

impl RuleEffect {
    /// The level follows what the rule does, so a red mark stands exactly where the gate failed.
    pub fn level(self) -> Level {
        match self {
            Self::Blocks => Level::Error,
            Self::Advises => Level::Warning,
            Self::Informs => Level::Notice,
        }
    }
}

/// The annotations on files of the repository, their paths named from its top. GitHub refuses a check with a path that
/// leads elsewhere.
pub fn in_repository(annotations: Vec<Annotation>, workspace: &Path) -> Vec<Annotation> {
    let real = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    let inside = |mut annotation: Annotation| {
        let path = Path::new(&annotation.path);
        if path.is_absolute() {
            let below = path.strip_prefix(workspace).or_else(|_| path.strip_prefix(&real)).ok()?;
            annotation.path = below.to_string_lossy().replace('\\', "/");
        }
        let leaves = annotation.path.split('/').any(|part| part == "..");
        (!leaves && !annotation.path.is_empty()).then_some(annotation)
    };
    annotations.into_iter().filter_map(inside).collect()
}

/// The annotations for a check: the worst first, as many as one request takes. More would need a second request,
/// which adds them a second time when its answer is lost.
pub fn for_check(annotations: &[Annotation]) -> Vec<Annotation> {
    let mut sorted: Vec<Annotation> = annotations.iter().map(visible).collect();
    sorted.sort_by_key(|annotation| annotation.level);
    let hidden = sorted.len().saturating_sub(PER_REQUEST);
    sorted.truncate(PER_REQUEST);
    if hidden > 0
        && let Some(last) = sorted.last_mut()
    {
        last.message = format!("{}\n\u{2026} {hidden} more in the report", last.message);
    }
    sorted
}

/// The annotations as commands for the log, at most [`PER_STEP`] of each level, and one command that counts the rest.
pub fn commands(annotations: &[Annotation]) -> Vec<Command> {
    let mut out = Vec::new();
    for level in [Level::Error, Level::Warning, Level::Notice] {
        let of_level: Vec<&Annotation> = annotations.iter().filter(|a| a.level == level).collect();
        let (shown, hidden) = match of_level.len() {
            n if n > PER_STEP => (PER_STEP - 1, n - PER_STEP + 1),
            n => (n, 0),
        };
        for annotation in of_level.iter().take(shown).map(|a| visible(a)) {
            out.push(
                Command::annotation(level, annotation.message)
                    .with("file", annotation.path)
                    .with("line", annotation.line.max(1).to_string())
                    .with("title", annotation.title),
            );
        }
        if hidden > 0 {
            out.push(Command::annotation(level, format!("{hidden} more in the report")));
        }
    }
    out
}

fn visible(annotation: &Annotation) -> Annotation {
    Annotation {
        title: clip(&plain(&annotation.title, Lines::Join), TITLE).into_owned(),
        message: clip(&plain(&annotation.message, Lines::Keep), MESSAGE).into_owned(),
        ..annotation.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(count: u32, level: Level) -> Vec<Annotation> {
        (1..=count)
            .map(|line| Annotation {
                path: "thresholds.yaml".into(),
                line,
                level,
                title: "max_harm_rate".into(),
                message: format!("broken {line}"),
            })
            .collect()
    }

    #[test]
    fn only_files_of_the_repository_are_remarked_on() {
        let at = |path: &str| Annotation {
            path: path.to_owned(),
            line: 3,
            level: Level::Error,
            title: "t".to_owned(),
            message: "m".to_owned(),
        };
        let given = ["t.yaml", "/repo/bot/conf/t.yaml", "/elsewhere/t.yaml", "../t.yaml"].map(at).to_vec();
        let paths: Vec<String> =
            in_repository(given, Path::new("/repo/bot")).into_iter().map(|a| a.path).collect();
        assert_eq!(paths, ["t.yaml", "conf/t.yaml"]);
    }

    #[test]
    fn the_level_follows_the_rule() {
        assert_eq!(RuleEffect::Blocks.level(), Level::Error);
        assert_eq!(RuleEffect::Advises.level(), Level::Warning);
        assert_eq!(RuleEffect::Informs.level(), Level::Notice);
    }

    #[test]
    fn a_check_takes_fifty_the_worst_first() {
        let mut all = annotations(60, Level::Notice);
        all.extend(annotations(1, Level::Error));
        let shown = for_check(&all);
        assert_eq!(shown.len(), 50);
        assert_eq!(shown[0].level, Level::Error);
        assert!(shown[49].message.ends_with("\u{2026} 11 more in the report"), "{}", shown[49].message);
    }

    #[test]
    fn a_step_shows_ten_of_each_level() {
        let mut all = annotations(12, Level::Error);
        all.extend(annotations(10, Level::Warning));
        let commands: Vec<String> = commands(&all).iter().map(ToString::to_string).collect();
        assert_eq!(commands.len(), 20);
        assert_eq!(commands[0], "::error file=thresholds.yaml,line=1,title=max_harm_rate::broken 1");
        assert_eq!(commands[9], "::error::3 more in the report");
        assert!(commands[19].starts_with("::warning file=thresholds.yaml,line=10"));
    }
}
