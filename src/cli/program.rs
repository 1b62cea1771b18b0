//! What a local program consists of, as far as its command line shows it.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::config::model::CommandSettings;
use crate::fingerprint::{sha256, sha256_of_parts};

/// Larger files, such as weights, are known by their size and both of their ends.
const WHOLE: u64 = 64 * 1024 * 1024;
/// Bytes of an end.
const END: u64 = 1024 * 1024;

/// SHA-256 over the files that a command names: the program when it is a path, and each argument that is a file, also
/// behind a `=`. A file that cannot be read counts as none; what the program loads by itself is not seen.
pub(super) fn contents(command: &CommandSettings, base: &Path) -> String {
    let folder = command.directory.as_ref().map_or_else(PathBuf::new, |directory| base.join(directory));
    let mut parts = Vec::new();
    for (index, argument) in command.argv.iter().enumerate() {
        // A bare name is looked for elsewhere, not in the folder.
        if index == 0 && !argument.contains('/') {
            continue;
        }
        let value = argument.split_once('=').map_or(argument.as_str(), |(_, value)| value);
        let found = [argument.as_str(), value].into_iter().find_map(|name| digest(&folder.join(name)));
        if let Some(digest) = found {
            parts.push(index.to_string());
            parts.push(digest);
        }
    }
    sha256_of_parts(parts.iter().map(String::as_str))
}

fn digest(path: &Path) -> Option<String> {
    // A pipe or a device would be read for ever.
    if !path.is_file() {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    if size <= WHOLE {
        file.read_to_end(&mut bytes).ok()?;
    } else {
        file.by_ref().take(END).read_to_end(&mut bytes).ok()?;
        file.seek(SeekFrom::End(-i64::try_from(END).ok()?)).ok()?;
        file.read_to_end(&mut bytes).ok()?;
        bytes.extend(size.to_be_bytes());
    }
    Some(sha256(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::CommandLifetime;

    #[test]
    fn the_files_of_a_command_count_with_their_contents() {
        let place = tempfile::tempdir().unwrap();
        let bot = place.path().join("bot");
        std::fs::create_dir(&bot).unwrap();
        let hash = |argv: &[&str]| {
            let argv = argv.iter().map(|&argument| argument.to_owned()).collect();
            let lifetime = CommandLifetime::Shared;
            let directory = Some(PathBuf::from("bot"));
            contents(&CommandSettings { argv, directory, lifetime }, place.path())
        };
        let command = ["python3", "bot.py", "--prompt=prompt.txt", "careful"];
        let mut seen = vec![hash(&command)];
        for (name, text) in
            [("bot.py", "one"), ("bot.py", "two"), ("prompt.txt", "one"), ("prompt.txt", "two")]
        {
            std::fs::write(bot.join(name), text).unwrap();
            seen.push(hash(&command));
            assert_eq!(seen.last(), Some(&hash(&command)), "the same files give the same hash");
        }
        let mut different = seen.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), 5, "{seen:?}");
        // A bare name is a program elsewhere, and a path is a file in the folder.
        std::fs::write(bot.join("python3"), "x").unwrap();
        assert_eq!(seen.last(), Some(&hash(&command)));
        assert_ne!(hash(&["./bot.py"]), hash(&["bot.py"]));
    }
}
