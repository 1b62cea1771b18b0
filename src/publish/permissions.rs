//! What to add to a workflow when its token may not do something.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::forge::ForgeError;

/// The lines to add to the workflow after a refused call; `None` for other errors.
///
/// The server's own list, from the header `x-accepted-github-permissions`, goes before ours: in it `;` separates
/// alternatives and `,` what is needed together, as in `issues=write; pull_requests=write`.
pub fn help(error: &ForgeError) -> Option<String> {
    let (operation, accepted) = match error {
        ForgeError::Forbidden { operation, accepted, .. } => (operation, accepted.as_deref()),
        // A private repository does not tell that something is there that the token may not see.
        ForgeError::NotFound(operation) => (operation, None),
        _ => return None,
    };
    let mut scopes: BTreeMap<String, String> = BTreeMap::new();
    for pair in accepted.unwrap_or_default().split([';', ',']) {
        if let Some((scope, access)) = pair.trim().split_once('=') {
            let scope = scope.trim().replace('_', "-");
            let known =
                |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            if known(&scope) && known(access.trim()) {
                scopes.insert(scope, access.trim().to_owned());
            }
        }
    }
    let alternatives = scopes.len() > 1 && accepted.is_some_and(|text| text.contains(';'));
    if scopes.is_empty() {
        scopes = operation.permissions().iter().map(|&(s, a)| (s.to_owned(), a.to_owned())).collect();
    }
    if scopes.is_empty() {
        return None;
    }
    let mut text = String::from("Add to the job in the workflow file");
    text.push_str(if alternatives { " (one of these lines is enough):\n\n" } else { ":\n\n" });
    text.push_str("permissions:\n");
    for (scope, access) in &scopes {
        let _infallible = writeln!(text, "  {scope}: {access}");
    }
    text.push_str(
        "\nA `permissions` block of a job replaces the one of the workflow as a whole, so the job's block must also \
         repeat what it still needs, such as `contents: read`.",
    );
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::forge::Operation;

    fn forbidden(accepted: Option<&str>) -> ForgeError {
        ForgeError::Forbidden {
            operation: Operation::WriteComment,
            message: "Resource not accessible by integration".to_owned(),
            accepted: accepted.map(str::to_owned),
        }
    }

    #[test]
    fn the_servers_list_is_shown_as_yaml() {
        let help = help(&forbidden(Some("issues=write; pull_requests=write"))).unwrap();
        assert!(help.contains("permissions:\n  issues: write\n  pull-requests: write\n"), "{help}");
        assert!(help.contains("one of these lines is enough"));
        assert!(help.contains("block of a job replaces the one of the workflow"));
    }

    #[test]
    fn without_a_list_the_call_tells_what_it_needs() {
        assert!(help(&forbidden(None)).unwrap().contains("permissions:\n  pull-requests: write\n"));
        assert!(help(&forbidden(Some("\u{1B}[31m=x"))).unwrap().contains("  pull-requests: write\n"));
        let hidden = help(&ForgeError::NotFound(Operation::ReadPull)).unwrap();
        assert!(hidden.contains("  pull-requests: read\n"), "{hidden}");
        assert_eq!(help(&ForgeError::TooLong(String::new())), None);
    }
}
