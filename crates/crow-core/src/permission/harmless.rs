//! Commands that need no rule: shell builtins without outside effect.

use crate::shell::{KnownExtent, ShellWord, SimpleCommand};

/// Variables that change a program's output, not what it runs.
const HARMLESS_VARIABLES: &[&str] = &[
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

/// Whether setting a variable for a program is harmless.
pub(super) fn is_harmless_variable(name: &str) -> bool {
    HARMLESS_VARIABLES.contains(&name) || name.starts_with("LC_")
}

/// Whether setting a shell variable is harmless: known programs read no lower-case variables except proxies and npm's, and none
/// with one letter.
pub(super) fn is_harmless_shell_variable(name: &str) -> bool {
    let is_lower_case =
        name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    let is_read = name.ends_with("_proxy") || name.starts_with("npm_");
    is_harmless_variable(name) || name.len() == 1 && name != "_" || is_lower_case && !is_read
}

/// Variables that determine which programs run or what they load, by name, prefix or suffix.
const PROGRAM_VARIABLES: &[&str] = &[
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELL",
    "SHELLOPTS",
    "BASHOPTS",
    "PROMPT_COMMAND",
    "PS4",
    "CDPATH",
    "PERL5OPT",
    "PERL5LIB",
    "PERLLIB",
    "RUBYOPT",
    "RUBYLIB",
    "NODE_OPTIONS",
    "NODE_PATH",
    "MAKEFLAGS",
    "JAVA_TOOL_OPTIONS",
];
const PROGRAM_VARIABLE_PREFIXES: &[&str] =
    &["LD_", "DYLD_", "GIT_", "PYTHON", "RUSTC", "CARGO_", "npm_config_"];
const PROGRAM_VARIABLE_SUFFIXES: &[&str] =
    &["PAGER", "EDITOR", "VISUAL", "BROWSER", "_WRAPPER", "_COMMAND", "ASKPASS"];

/// Whether a variable determines which programs run or what they load.
pub(super) fn names_program(name: &str) -> bool {
    let is_known = PROGRAM_VARIABLES.contains(&name)
        || PROGRAM_VARIABLE_PREFIXES.iter().any(|start| name.starts_with(start))
        || PROGRAM_VARIABLE_SUFFIXES.iter().any(|end| name.ends_with(end));
    is_known && !is_harmless_variable(name)
}

/// Whether a command is harmless, except for its output file.
pub(super) fn needs_no_rule(simple: &SimpleCommand) -> bool {
    let Some(program) = simple.words.first().and_then(ShellWord::known_text) else { return false };
    let arguments = &simple.words[1..];
    let are_known = || arguments.iter().all(|word| word.known_text().is_some());
    match program {
        "true" | "false" | ":" | "pwd" | "exit" | "break" | "continue" | "return" => are_known(),
        // With an option it may set a variable.
        "wait" => arguments.iter().all(|word| word.known_text().is_some_and(is_job)),
        // No argument makes it do more than print.
        "echo" => true,
        // It can set a variable instead.
        "printf" => arguments.first().and_then(ShellWord::known_text).is_some_and(only_formats),
        // With -v some shells run the text in brackets; other operands are only compared. In `[[` more operands are
        // calculated, which runs the text in brackets.
        "[[" => {
            const CALCULATED: [&str; 9] = ["-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-t"];
            let is_plain = |word: &ShellWord| {
                let subscribes = word.text.contains('[') && word.text.contains('$');
                !(CALCULATED.contains(&word.text.as_str()) || subscribes)
            };
            arguments.iter().all(|word| is_plain(word) && word.extent != KnownExtent::Unknown)
        }
        "test" | "[" => are_known() && arguments.iter().all(|word| word.text != "-v"),
        // The target is checked elsewhere.
        "cd" => true,
        "set" => only_strict(arguments),
        "command" => {
            let names = arguments.len() == 2 && are_known();
            names && ["-v", "-V"].contains(&arguments[0].text.as_str())
        }
        // It writes like a redirection.
        "tee" => {
            let plain = ["-a", "--append", "-i", "-p"];
            let is_plain_word =
                |word: &ShellWord| plain.contains(&word.text.as_str()) || !word.text.starts_with('-');
            arguments.iter().all(|word| is_plain_word(word) && word.known_text().is_some())
        }
        _ => false,
    }
}

fn is_job(word: &str) -> bool {
    let number = word.strip_prefix('%').unwrap_or(word);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a format only prints: `%n` sets a variable.
fn only_formats(format: &str) -> bool {
    let single = format.replace("%%", "");
    let is_conversion = |part: &str| {
        let flags = |letter: char| letter.is_ascii_digit() || "-+ #.*".contains(letter);
        part.trim_start_matches(flags).starts_with(|letter| "sdbciouxXeEfFgGaAq".contains(letter))
    };
    !format.starts_with('-') && single.split('%').skip(1).all(is_conversion)
}

/// Whether `set` only stops at errors or shows commands.
fn only_strict(arguments: &[ShellWord]) -> bool {
    let mut words = arguments.iter().map(ShellWord::known_text);
    let Some(Some(letters)) = words.next() else { return false };
    let Some(letters) = letters.strip_prefix('-').filter(|letters| !letters.is_empty()) else { return false };
    let has_name = letters.ends_with('o');
    let is_plain = letters.strip_suffix('o').unwrap_or(letters).bytes().all(|byte| b"eux".contains(&byte));
    let names: Option<Vec<&str>> = words.collect();
    let are_plain = |names: Vec<&str>| match names.as_slice() {
        [] => !has_name,
        [name] => has_name && ["errexit", "nounset", "xtrace", "pipefail"].contains(name),
        _ => false,
    };
    is_plain && names.is_some_and(are_plain)
}
