//! The short list of what needs no rule: words of the shell itself that change nothing outside it.

use crate::shell::{Simple, Word};

/// Variables that change how a program speaks, not what it runs.
const SETTINGS: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "TZ",
    "CI",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "NODE_ENV",
    "DEBUG",
    "TERM",
    "COLUMNS",
    "LINES",
    "CARGO_TERM_COLOR",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "GIT_TERMINAL_PROMPT",
];

/// Tells whether setting a variable for a program is harmless.
pub(super) fn is_setting(name: &str) -> bool {
    SETTINGS.contains(&name) || name.starts_with("LC_")
}

/// Tells whether setting a variable of the shell is harmless: no program we know reads one whose name is plain and
/// in lower case.
pub(super) fn is_own_variable(name: &str) -> bool {
    is_setting(name) || name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
}

/// Tells whether a variable is known to choose what a program runs.
pub(super) fn is_steering(name: &str) -> bool {
    let begins = ["GIT_", "LD_", "DYLD_", "BASH_", "NODE_O", "PYTHON", "PERL5", "RUBY"];
    let holds = ["PAGER", "EDITOR", "VISUAL", "COMMAND", "WRAPPER", "SHELL", "OPTIONS", "CONFIG"];
    let is_named = ["PATH", "ENV", "IFS", "CDPATH", "BROWSER"].contains(&name);
    let is_like =
        begins.iter().any(|part| name.starts_with(part)) || holds.iter().any(|part| name.contains(part));
    !is_setting(name) && (is_named || is_like)
}

/// Tells whether a command is harmless by itself, but for where its output goes.
pub(super) fn needs_no_rule(simple: &Simple) -> bool {
    let Some(program) = simple.words.first().and_then(Word::whole) else { return false };
    let arguments = &simple.words[1..];
    let are_known = || arguments.iter().all(|word| word.whole().is_some());
    match program {
        "true" | "false" | ":" | "pwd" | "exit" | "break" | "continue" | "return" | "wait" => are_known(),
        // Nothing it is given makes it do more than print.
        "echo" => true,
        // It can set a variable instead.
        "printf" => arguments.first().and_then(Word::whole).is_some_and(|format| !format.starts_with('-')),
        // With -v some shells run what is in brackets; the other operands are only compared.
        "test" | "[" => are_known() && arguments.iter().all(|word| word.text != "-v"),
        // Where it may go is asked elsewhere.
        "cd" => true,
        "set" => {
            arguments.len() == 1
                && ["-e", "-u", "-x", "-eu", "-ex", "-eux"].contains(&arguments[0].text.as_str())
        }
        "command" => {
            let names = arguments.len() == 2 && are_known();
            names && ["-v", "-V"].contains(&arguments[0].text.as_str())
        }
        // It writes where a redirection would.
        "tee" => {
            let plain = ["-a", "--append", "-i", "-p"];
            let is_fine = |word: &Word| plain.contains(&word.text.as_str()) || !word.text.starts_with('-');
            arguments.iter().all(|word| is_fine(word) && word.whole().is_some())
        }
        _ => false,
    }
}
