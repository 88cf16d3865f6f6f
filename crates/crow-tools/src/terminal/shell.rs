//! The shell that runs commands, and its arguments.

use std::{env::consts::EXE_SUFFIX, path::is_separator};

use crow_core::shell::rough_words;
use crow_process::{SHELL_DIRECTORY, posix_shell};

use super::arguments::COMMAND_BYTES_MAX;

/// Shells whose command lines can be evaluated; others parse the same text differently.
const SUPPORTED_SHELLS: [&str; 4] = ["bash", "sh", "dash", "ash"];

/// The variable with a file that bash runs before a command.
pub(super) const STARTUP_VARIABLE: &str = "BASH_ENV";

/// Commands that may change the directory.
const DIRECTORY_COMMANDS: [&str; 5] = ["cd", "pushd", "popd", "source", "."];

/// The shell that runs commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    name: String,
    program: String,
}

impl Default for Shell {
    fn default() -> Self {
        Self { name: "sh".into(), program: posix_shell() }
    }
}

impl Shell {
    /// Returns the shell with this name and this local program; `None` if its command lines cannot be evaluated.
    pub fn new(name: impl Into<String>, program: impl Into<String>) -> Option<Self> {
        let name = name.into();
        SUPPORTED_SHELLS.contains(&file_stem(&name)).then(|| Self { name, program: program.into() })
    }

    /// Its name, or its path if the configuration has one: the program that a terminal of the client starts.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program on this machine.
    pub fn program(&self) -> &str {
        &self.program
    }

    fn is_bash(&self) -> bool {
        file_stem(&self.name) == "bash"
    }

    /// The arguments that run a line locally. Below `sshd` bash would read `~/.bashrc` without the first.
    pub(super) fn args(&self, line: String) -> Vec<String> {
        let flags = if self.is_bash() { &["--norc", "-c"][..] } else { &["-c"] };
        flags.iter().map(|&arg| arg.to_owned()).chain([line]).collect()
    }

    /// The arguments that run a line in a terminal of the client.
    pub(super) fn args_in_client(&self, line: &str) -> Vec<String> {
        vec!["-c".into(), line.into()]
    }

    /// Adds a report of the working directory to a line that may change it; returns other lines unchanged.
    pub(super) fn announce_directory(&self, line: &str) -> String {
        let changes_dir = rough_words(line).is_some_and(|words| {
            words.iter().any(|word| word.known_text().is_some_and(|word| DIRECTORY_COMMANDS.contains(&word)))
        });
        // Reports the directory to the terminal when the shell exits; `crow_process::CapturedOutput::cwd` reads it.
        let trap = format!(r#"trap 'printf "\033]7;%s\007" "{SHELL_DIRECTORY}" >&2' EXIT; "#);
        if !changes_dir || line.len() + trap.len() > COMMAND_BYTES_MAX {
            return line.to_owned();
        }
        trap + line
    }
}

/// Returns the name of a program without its directory, and without the extension that the system's programs have.
fn file_stem(program: &str) -> &str {
    let name = program.rsplit(is_separator).next().unwrap_or_default();
    name.strip_suffix(EXE_SUFFIX).unwrap_or(name)
}
