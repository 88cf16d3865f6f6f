//! The shell that runs commands, and what it is told beside the command.

use crow_core::shell::rough_words;

use super::arguments::COMMAND_BYTES_MAX;

/// Shells whose lines are judged before they run; others read the same text differently.
const SUPPORTED_SHELLS: [&str; 4] = ["bash", "sh", "dash", "ash"];

/// Every system with a shell has this one.
const DEFAULT_SHELL: &str = "/bin/sh";

/// A file that bash runs before a command.
pub(super) const STARTUP_VARIABLE: &str = "BASH_ENV";

/// Commands after which a line may be in another directory.
const DIRECTORY_COMMANDS: [&str; 5] = ["cd", "pushd", "popd", "source", "."];

/// Tells the terminal the working directory when the shell exits. [`crow_process::CapturedOutput::directory`] reads it.
const DIRECTORY_TRAP: &str = r#"trap 'printf "\033]7;%s\007" "$PWD" >&2' EXIT; "#;

/// The shell that runs commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    name: String,
    program: String,
}

impl Default for Shell {
    fn default() -> Self {
        Self { name: "sh".into(), program: DEFAULT_SHELL.into() }
    }
}

impl Shell {
    /// Returns the shell of this name that is this program here; `None` if it is none whose lines can be judged.
    pub fn new(name: impl Into<String>, program: impl Into<String>) -> Option<Self> {
        let name = name.into();
        let file_name = name.rsplit('/').next().unwrap_or_default();
        SUPPORTED_SHELLS.contains(&file_name).then(|| Self { name, program: program.into() })
    }

    /// Its name, or its path where the configuration says one: what a terminal of the client starts.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The program on this machine.
    pub fn program(&self) -> &str {
        &self.program
    }

    fn is_bash(&self) -> bool {
        self.name.rsplit('/').next() == Some("bash")
    }

    /// The arguments that run a line here. Below `sshd` bash would read `~/.bashrc` without the first.
    pub(super) fn args(&self, line: String) -> Vec<String> {
        let flags = if self.is_bash() { &["--norc", "-c"][..] } else { &["-c"] };
        flags.iter().map(|&arg| arg.to_owned()).chain([line]).collect()
    }

    /// The arguments that run a line in a terminal of the client.
    pub(super) fn args_in_client(&self, line: &str) -> Vec<String> {
        vec!["-c".into(), line.into()]
    }

    /// Has a line that may change the directory tell where it ends; any other stays as it is.
    pub(super) fn announce_directory(&self, line: &str) -> String {
        let changes_dir = rough_words(line).is_some_and(|words| {
            words.iter().any(|word| word.known_text().is_some_and(|word| DIRECTORY_COMMANDS.contains(&word)))
        });
        if !changes_dir || line.len() + DIRECTORY_TRAP.len() > COMMAND_BYTES_MAX {
            return line.to_owned();
        }
        format!("{DIRECTORY_TRAP}{line}")
    }
}
