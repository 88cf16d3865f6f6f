//! Whether a command line may change a Git repository on purpose. One that certainly runs no Git keeps repositories as
//! they are, even if it removes everything around them.

#[cfg(test)]
mod tests;

use crate::shell::{self, SimpleCommand};

/// Programs that run no other program, apart from those that the parser finds in their arguments.
const FILE_PROGRAMS: &[&str] = &[
    ":", "[", "[[", "basename", "break", "bunzip2", "bzip2", "cat", "cd", "chgrp", "chmod", "chown", "comm",
    "continue", "cp", "cut", "date", "dd", "diff", "dirname", "du", "echo", "egrep", "exit", "export",
    "false", "fgrep", "file", "find", "fold", "grep", "gunzip", "gzip", "head", "install", "join", "jq",
    "let", "link", "ln", "local", "ls", "mkdir", "mktemp", "mv", "nl", "paste", "patch", "popd", "printf",
    "pushd", "pwd", "read", "readlink", "realpath", "rename", "return", "rev", "rg", "rm", "rmdir", "sed",
    "seq", "set", "shopt", "shred", "sleep", "sort", "stat", "tac", "tail", "tee", "test", "touch", "tr",
    "true", "truncate", "uniq", "unlink", "unset", "unxz", "wc", "xargs", "xz", "yes",
];

/// Programs that run only the commands that the parser finds in their arguments, if it finds any.
const WRAPPERS: &[&str] =
    &["bash", "command", "dash", "env", "nice", "nohup", "sh", "stdbuf", "time", "timeout"];

/// Returns `false` only for a line whose programs certainly run no Git.
pub fn may_use_git(line: &str) -> bool {
    let commands = shell::parse_line(line).or_else(|_| shell::parse_extended(line));
    let Ok(commands) = commands else { return true };
    let mut may_use = false;
    for command in &commands {
        command.walk(&mut |simple| may_use |= may_run_git(simple));
    }
    may_use
}

fn may_run_git(simple: &SimpleCommand) -> bool {
    let Some(program) = simple.words.first() else { return false };
    let Some(program) = program.known_text() else { return true };
    let program = program.strip_prefix("/usr").unwrap_or(program);
    let program = program.strip_prefix("/bin/").unwrap_or(program);
    let only_wraps = simple.inner.is_some() && WRAPPERS.contains(&program);
    !only_wraps && !FILE_PROGRAMS.contains(&program)
}
