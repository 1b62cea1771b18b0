//! The workflows that `init` writes: the recipes of `docs/github.md`, with a team's own names.

/// What a team wants the gate for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Case {
    /// Every pull request, on a sample.
    PullRequest,
    /// The whole sweep, at night.
    Nightly,
    /// Before a release.
    Release,
    /// Pull requests from forks, in two stages.
    Forks,
}

impl Case {
    /// All cases, in the order in which they are offered.
    pub const ALL: [Self; 4] = [Self::PullRequest, Self::Nightly, Self::Release, Self::Forks];

    /// The word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PullRequest => "pull-request",
            Self::Nightly => "nightly",
            Self::Release => "release",
            Self::Forks => "forks",
        }
    }

    /// Paths and templates.
    fn templates(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::PullRequest => &[(
                ".github/workflows/vera-gate.yml",
                include_str!("../../templates/workflows/pull-request.yml"),
            )],
            Self::Nightly => &[(
                ".github/workflows/vera-gate-nightly.yml",
                include_str!("../../templates/workflows/nightly.yml"),
            )],
            Self::Release => &[(
                ".github/workflows/vera-gate-release.yml",
                include_str!("../../templates/workflows/release.yml"),
            )],
            Self::Forks => &[
                (
                    ".github/workflows/vera-gate-fork-one.yml",
                    include_str!("../../templates/workflows/fork-one.yml"),
                ),
                (
                    ".github/workflows/vera-gate-fork-two.yml",
                    include_str!("../../templates/workflows/fork-two.yml"),
                ),
            ],
        }
    }
}

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StarterFile {
    /// Path from the root of the repository.
    pub path: &'static str,
    /// Its text.
    pub text: String,
}

/// A name that GitHub does not allow for a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} cannot be the name of a secret: use letters, digits and `_`, start with no digit and not with GITHUB_"
)]
pub struct SecretName(pub String);

/// The workflows for a case.
///
/// `secrets` are the variables that the configuration reads its keys from; a secret of the same name is handed to
/// each. `revision` is what follows the `@` of the action: a commit, or the tag of this version.
pub fn workflows(case: Case, secrets: &[&str], revision: &str) -> Result<Vec<StarterFile>, SecretName> {
    if let Some(bad) = secrets.iter().find(|name| !is_secret_name(name)) {
        return Err(SecretName((*bad).to_owned()));
    }
    Ok(case
        .templates()
        .iter()
        .map(|&(path, template)| StarterFile { path, text: render(template, secrets, revision) })
        .collect())
}

fn is_secret_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.to_ascii_uppercase().starts_with("GITHUB_")
}

fn render(template: &str, secrets: &[&str], revision: &str) -> String {
    let mut text = String::with_capacity(template.len());
    let mut lines = template.lines().peekable();
    while let Some(line) = lines.next() {
        // A step without a secret has no variables either: a mapping without entries is refused.
        let opens = line.trim() == "env:" && lines.peek().is_some_and(|next| next.contains("{{secret}}"));
        if opens && secrets.is_empty() {
            lines.next();
            continue;
        }
        if line.contains("{{secret}}") {
            for secret in secrets {
                text.push_str(&line.replace("{{secret}}", secret));
                text.push('\n');
            }
        } else {
            text.push_str(&line.replace("{{action}}", revision));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_recipes_are_what_init_writes() {
        let document = include_str!("../../docs/github.md");
        for case in Case::ALL {
            for file in workflows(case, &["OPENAI_API_KEY"], "COMMIT # v0.1.0").unwrap() {
                let recipe = format!("```yaml\n# {}\n{}```\n", file.path, file.text);
                assert!(document.contains(&recipe), "docs/github.md differs from {recipe}");
            }
        }
    }

    #[test]
    fn every_key_gets_its_secret() {
        let files = workflows(Case::Nightly, &["A_KEY", "B_KEY"], "v1").unwrap();
        let text = &files[0].text;
        assert!(
            text.contains("          A_KEY: ${{ secrets.A_KEY }}\n          B_KEY: ${{ secrets.B_KEY }}\n"),
            "{text}"
        );
        assert!(text.contains("uses: vera-gate/vera-gate@v1\n"));
        assert!(!text.contains("{{secret}}") && !text.contains("{{action}}"));
    }

    #[test]
    fn names_cannot_change_the_workflow() {
        for bad in ["", "1A", "A-B", "A: x", "A\n  run: x", "GITHUB_TOKEN", "A}}"] {
            assert!(workflows(Case::PullRequest, &[bad], "v1").is_err(), "{bad}");
        }
    }
}
