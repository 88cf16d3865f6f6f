//! Detects commands that need a terminal. Pure; a command that cannot be parsed needs none.

use crow_core::shell::{self, SimpleCommand};

/// Why a command needs a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalNeed {
    NotNeeded,
    /// To ask for a password or a confirmation; otherwise it does its work and exits.
    Prompts,
    /// To read commands until it is told to exit.
    Interactive,
}

/// The arguments with which a program needs a terminal.
enum ArgCondition {
    Always,
    /// Only options such as `-i`: given a script, it runs that and exits.
    OnlyOptions,
    /// None of these, which make it run one command and exit.
    Without(&'static [&'static str]),
    /// None of these options, nor one of these letters, alone or in a word such as `-Atc`.
    WithoutLetters {
        options: &'static [&'static str],
        letters: &'static str,
        /// The letters that are followed by a value: `-dflorida` names a database.
        value_letters: &'static str,
    },
    /// One of these.
    With(&'static [&'static str]),
    /// At most one word that is no option, the database.
    AtMostOne,
}

/// Options of a program that still reads commands.
const ALONE_OPTIONS: &[&str] = &["-i", "-q", "-l", "--login", "--interactive"];

/// Options that give a container a terminal; they fail without one.
const CONTAINER_OPTIONS: &[&str] = &["-t", "-it", "-ti", "--tty"];

const PROGRAM_NEEDS: &[(TerminalNeed, ArgCondition, &[&str])] = &[
    // They ask for a password or whether a host is trusted, on the terminal only.
    (TerminalNeed::Prompts, ArgCondition::Without(&["-n", "--non-interactive"]), &["sudo", "doas"]),
    (
        TerminalNeed::Prompts,
        ArgCondition::Always,
        &["su", "passwd", "ssh", "ssh-add", "ssh-copy-id", "sftp", "ftp", "telnet"],
    ),
    (TerminalNeed::Prompts, ArgCondition::With(CONTAINER_OPTIONS), &["docker", "podman", "kubectl"]),
    // Without a terminal they read a script from stdin, which is empty here.
    (
        TerminalNeed::Interactive,
        ArgCondition::OnlyOptions,
        &["python", "python3", "ipython", "bpython", "node", "deno", "bun"],
    ),
    (
        TerminalNeed::Interactive,
        ArgCondition::OnlyOptions,
        &["irb", "pry", "lua", "luajit", "ghci", "R", "julia", "erl", "iex", "scala"],
    ),
    (
        TerminalNeed::Interactive,
        ArgCondition::OnlyOptions,
        &["jshell", "clojure", "sbcl", "guile", "ocaml", "utop", "swipl", "octave"],
    ),
    (
        TerminalNeed::Interactive,
        ArgCondition::OnlyOptions,
        &["sh", "bash", "zsh", "dash", "ksh", "fish", "nu", "pwsh", "bc", "dc"],
    ),
    (
        TerminalNeed::Interactive,
        ArgCondition::WithoutLetters {
            options: &["--command", "--file", "--list", "--version"],
            letters: "cflV",
            value_letters: "dhopvFLPRTU",
        },
        &["psql"],
    ),
    (
        TerminalNeed::Interactive,
        ArgCondition::WithoutLetters {
            options: &["--execute", "--version"],
            letters: "eV",
            value_letters: "hpuDPS",
        },
        &["mysql", "mariadb"],
    ),
    (TerminalNeed::Interactive, ArgCondition::Without(&["--eval", "--file", "-f"]), &["mongosh"]),
    (TerminalNeed::Interactive, ArgCondition::AtMostOne, &["sqlite3", "duckdb", "redis-cli"]),
    (
        TerminalNeed::Interactive,
        ArgCondition::Without(&["-batch", "--batch", "-b", "--version"]),
        &["gdb", "lldb", "pdb"],
    ),
    // They draw on the whole screen.
    (TerminalNeed::Interactive, ArgCondition::Without(&["-b", "--version"]), &["top", "htop", "btop"]),
    (
        TerminalNeed::Interactive,
        ArgCondition::Without(&["--version", "--headless", "-es", "-Es"]),
        &["vi", "vim", "nvim", "nano", "micro", "hx", "less", "more"],
    ),
    (
        TerminalNeed::Interactive,
        ArgCondition::Without(&["-batch", "--batch", "-script", "--script", "--version"]),
        &["emacs", "tig", "lazygit", "mc", "watch"],
    ),
];

/// Returns why a command line needs a terminal. Piped or redirected commands have other input.
pub(super) fn terminal_need(line: &str) -> TerminalNeed {
    if line.replace("&&", "").contains(['|', '&', '`']) || line.contains("$(") {
        return TerminalNeed::NotNeeded;
    }
    let Ok(commands) = shell::parse_line(line) else { return TerminalNeed::NotNeeded };
    match commands.split_last() {
        Some((last, before)) if before.iter().all(is_preparation) => command_need(last),
        Some(_) | None => TerminalNeed::NotNeeded,
    }
}

/// Whether a command only prepares for the next one.
fn is_preparation(command: &SimpleCommand) -> bool {
    let program = command.words.first().and_then(|word| word.known_text());
    program.is_none_or(|program| matches!(program, "cd" | "export" | "." | "source" | "clear"))
}

fn command_need(command: &SimpleCommand) -> TerminalNeed {
    if !command.redirections.is_empty() || !command.documents.is_empty() {
        return TerminalNeed::NotNeeded;
    }
    let words: Option<Vec<&str>> = command.words.iter().map(|word| word.known_text()).collect();
    let Some((program, args)) = words.as_deref().and_then(|words| words.split_first()) else {
        return TerminalNeed::NotNeeded;
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    // Some names contain a version: python3.12.
    let base_name = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let row = PROGRAM_NEEDS.iter().find(|(_, condition, programs)| {
        programs.iter().any(|known| *known == name || *known == base_name) && condition_holds(condition, args)
    });
    row.map_or(TerminalNeed::NotNeeded, |(need, ..)| *need)
}

/// Returns an argument without the value of a long option.
fn option_name(arg: &str) -> &str {
    match arg.split_once('=') {
        Some((name, _)) if name.starts_with("--") => name,
        Some(_) | None => arg,
    }
}

/// Whether an argument has one of these letters as an option, before the value of another.
fn has_short_option(arg: &str, letters: &str, value_letters: &str) -> bool {
    let Some(word) = arg.strip_prefix('-').filter(|word| !word.starts_with('-')) else { return false };
    let end = word.find(|letter: char| value_letters.contains(letter)).unwrap_or(word.len());
    word[..end].contains(|letter: char| letters.contains(letter))
}

fn condition_holds(condition: &ArgCondition, args: &[&str]) -> bool {
    let has_any = |options: &[&str]| args.iter().any(|arg| options.contains(&option_name(arg)));
    match condition {
        ArgCondition::Always => true,
        ArgCondition::OnlyOptions => args.iter().all(|arg| ALONE_OPTIONS.contains(arg)),
        ArgCondition::Without(options) => !has_any(options) && !args.contains(&"--help"),
        ArgCondition::WithoutLetters { options, letters, value_letters } => {
            let has_letter = args.iter().any(|arg| has_short_option(arg, letters, value_letters));
            !has_any(options) && !has_letter && !args.contains(&"--help")
        }
        ArgCondition::With(options) => has_any(options),
        ArgCondition::AtMostOne => args.len() <= 1 && !args.iter().any(|arg| arg.starts_with('-')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_need(expected: TerminalNeed, lines: &[&str]) {
        for line in lines {
            assert_eq!(terminal_need(line), expected, "{line}");
        }
    }

    #[test]
    fn interactive_programs_are_detected() {
        let lines = [
            "python3",
            "python3.12 -q",
            "/usr/bin/python3 -i",
            "cd app && python3",
            "FOO=1 node",
            "bash -i",
            "psql -h localhost mydb",
            "sqlite3 app.db",
            "redis-cli",
            "PS1='> ' sh",
            "top",
            "vim a.txt",
            "less a.txt",
            "gdb ./a",
            "psql -dflorida -U local",
            "psql -At mydb",
            "mysql -psecret -uedgar shop",
            "mysql --user=me",
            "emacs a.txt",
        ];
        assert_need(TerminalNeed::Interactive, &lines);
    }

    #[test]
    fn prompting_programs_are_detected() {
        let lines = [
            "sudo apt install x",
            "ssh host uptime",
            "cd /tmp && sudo ls",
            "docker run -it alpine sh",
            "docker exec -ti box bash",
        ];
        assert_need(TerminalNeed::Prompts, &lines);
    }

    #[test]
    fn other_commands_need_no_terminal() {
        let lines = [
            "",
            "ls",
            "python3 a.py",
            "python3 -c 'print(1)'",
            "echo 1 | python3",
            "python3 < a.py",
            "python3 &",
            "psql -c 'select 1'",
            "sqlite3 app.db 'select 1'",
            "top -b -n 1",
            "sudo -n true",
            "docker build .",
            "vim --version",
            "node; ls",
            "make && bash build.sh",
            "echo 'python3",
            "python3 <<E\n1\nE",
            "psql --help",
            "ls && python3",
            "psql -Atc 'select 1'",
            "psql -c'select 1'",
            "psql -U me -dshop --command='select 1'",
            "psql --file=a.sql",
            "mysql --execute='select 1'",
            "mysql -e'select 1'",
            "mysql -uroot -Ne 'select 1'",
            "mongosh --eval='1 + 1'",
            "emacs -batch -l a.el",
            "emacs --script a.el",
            "nvim --headless +q",
            "vim -es -c q a.txt",
            "vim -Es a.txt",
            "gdb -batch -x a ./a",
        ];
        assert_need(TerminalNeed::NotNeeded, &lines);
    }
}
