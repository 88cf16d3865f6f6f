//! Scripts in arguments that may run commands or write files: those of `sed`, `awk` and `sqlite3`, and values that
//! name a file. Only plainly harmless scripts pass.

use super::program_names::{program_name, strip_version};
use super::risk_table::{CommandRisk, RiskEffect};
use crate::shell::ShellWord;

/// Interpreters, whose scripts can change any file.
const INTERPRETERS: &str = "python pypy node nodejs deno bun ruby perl php lua luajit tclsh guile Rscript julia osascript awk gawk \
    mawk nawk sed gsed sqlite ed ex";

/// Whether a program runs scripts given as text.
pub(super) fn is_interpreter(program: &str) -> bool {
    let program = strip_version(program_name(program));
    INTERPRETERS.split_whitespace().any(|name| name == program)
}

/// Finds words that may make a script do more than print.
pub(super) fn find_script_risks(program: &str, words: &[ShellWord]) -> Vec<CommandRisk> {
    match program {
        "sed" | "gsed" => sed_risks(words),
        "awk" | "gawk" | "mawk" | "nawk" => awk_risk(words).into_iter().collect(),
        "sqlite" => sqlite_risks(words),
        "curl" => curl_risks(words),
        _ => Vec::new(),
    }
}

/// Options of `sed` without a value or effect.
const SED_FLAGS: &str = "nErsuz";
const SED_LONG: &[&str] = &["--quiet", "--silent", "--regexp-extended", "--version", "--help"];

fn sed_risks(words: &[ShellWord]) -> Vec<CommandRisk> {
    let mut risks = Vec::new();
    let (mut scripts, mut operands) = (Vec::new(), Vec::new());
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        let Some(bundle) = text.strip_prefix('-').filter(|bundle| !bundle.is_empty()) else {
            operands.push((at, word.known_text()));
            at += 1;
            continue;
        };
        if text == "--" {
            operands.extend(words.iter().enumerate().skip(at + 1).map(|(at, word)| (at, word.known_text())));
            break;
        }
        let (name, joined) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let is_long = name.len() > "--".len() && "--expression".starts_with(name);
        let letters = bundle.trim_start_matches(|letter| SED_FLAGS.contains(letter));
        let joined =
            if is_long { joined } else { letters.strip_prefix('e').filter(|joined| !joined.is_empty()) };
        match joined {
            Some(joined) if is_long || letters.starts_with('e') => {
                scripts.push((at, word.known_text().map(|_| joined)));
            }
            None if is_long || letters == "e" => {
                at += 1;
                scripts.push((at, words.get(at).and_then(ShellWord::known_text)));
            }
            _ if SED_LONG.contains(&text) || letters.is_empty() => {}
            // It is unknown which of the next words is its value.
            _ => risks.push(CommandRisk {
                word_index: at,
                effect: RiskEffect::Runs,
                reason: "gets an option that may move its script",
            }),
        }
        at += 1;
    }
    if scripts.is_empty() {
        scripts.extend(operands.first());
    }
    scripts.retain(|(_, script)| !script.is_some_and(only_prints));
    let reason = "gets a script that may run commands or write files";
    risks.extend(scripts.into_iter().map(|(at, _)| CommandRisk {
        word_index: at,
        effect: RiskEffect::Runs,
        reason,
    }));
    risks
}

/// Whether a script consists of the common commands `p`, `d`, `q`, `=` and `s` with addresses.
fn only_prints(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\n', '\t', ';']);
        if rest.is_empty() {
            return true;
        }
        let Some(after) = skip_address(rest) else { return false };
        let after = after.trim_start_matches([' ', '!']);
        let Some(after) = skip_command(after) else { return false };
        rest = after.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with([';', '\n']) {
            return false;
        }
    }
}

/// Skips an optional address: a line, the last one, a pattern, or a range.
fn skip_address(text: &str) -> Option<&str> {
    let Some(after) = skip_one_address(text)? else { return Some(text) };
    match after.strip_prefix(',') {
        Some(second) => skip_one_address(second.trim_start_matches(['+', '~', ' ']))?,
        None => Some(after),
    }
}

/// Returns the text after an address; the inner `None` without an address, the outer for an invalid one.
fn skip_one_address(text: &str) -> Option<Option<&str>> {
    let first = text.chars().next();
    if first.is_some_and(|letter| letter.is_ascii_digit()) {
        return Some(Some(text.trim_start_matches(|letter: char| letter.is_ascii_digit())));
    }
    match first {
        Some('$') => Some(Some(&text[1..])),
        Some('/') => skip_delimited(&text[1..], '/').map(Some),
        _ => Some(None),
    }
}

fn skip_command(text: &str) -> Option<&str> {
    let mut letters = text.chars();
    match letters.next()? {
        'p' | 'd' | 'q' | '=' | 'P' | 'D' => Some(letters.as_str()),
        's' => {
            let delimiter =
                letters.next().filter(|letter| letter.is_ascii_punctuation() && *letter != '\\')?;
            let after = skip_delimited(skip_delimited(letters.as_str(), delimiter)?, delimiter)?;
            Some(after.trim_start_matches(|letter: char| letter.is_ascii_digit() || "gpiI".contains(letter)))
        }
        _ => None,
    }
}

/// Skips a text up to a delimiter. Programs differ on the end of a bracket expression.
fn skip_delimited(text: &str, delimiter: char) -> Option<&str> {
    let mut letters = text.chars();
    let mut is_bracket = false;
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == delimiter && is_bracket => return None,
            _ if letter == delimiter => return Some(letters.as_str()),
            '\\' => drop(letters.next()?),
            '\n' => return None,
            '[' if is_bracket => letters = skip_class(letters.as_str())?.chars(),
            '[' if letters.as_str().trim_start_matches('^').starts_with(']') => return None,
            '[' => is_bracket = true,
            ']' => is_bracket = false,
            _ => {}
        }
    }
    None
}

/// Skips the rest of a class such as `[:digit:]` in a bracket expression; a plain `[` is one by itself.
fn skip_class(text: &str) -> Option<&str> {
    match text.chars().next() {
        Some(kind @ (':' | '.' | '=')) => text[1..].split_once(&format!("{kind}]")).map(|(_, after)| after),
        Some(_) | None => Some(text),
    }
}

fn awk_risk(words: &[ShellWord]) -> Option<CommandRisk> {
    let risk = |at| {
        Some(CommandRisk {
            word_index: at,
            effect: RiskEffect::Runs,
            reason: "gets a script that may run commands or write files",
        })
    };
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Some(text) = word.known_text() else { return risk(at) };
        match text {
            "-F" | "-v" => at += 2,
            "--" => {
                at += 1;
                break;
            }
            _ if text.starts_with("-F") || text.starts_with("-v") => at += 1,
            _ if text.starts_with('-') => return risk(at),
            _ => break,
        }
        // A value that may be several words moves the script.
        if words.get(at - 1).is_some_and(|value| value.known_text().is_none()) {
            return risk(at - 1);
        }
    }
    let script = words.get(at)?;
    if script.known_text().is_some_and(is_harmless_awk) { None } else { risk(at) }
}

/// Whether an `awk` script neither runs a command nor opens a file.
fn is_harmless_awk(script: &str) -> bool {
    let script = script.replace("||", " ").replace(">=", " ");
    // Only `print` and `printf` write to a file, and an escaped end of a line may tear a name apart.
    let first_print = if script.contains("\\\n") { 0 } else { script.find("print").unwrap_or(script.len()) };
    let (comparisons, rest) = script.split_at(first_print);
    let has = |text: &str| script.contains(text);
    let risky_parts = ["system", "getline", "|", "@", "fflush", "close"];
    !risky_parts.into_iter().any(has) && !rest.contains('>') && !comparisons.contains(">>")
}

/// Commands of the sqlite shell that only show information.
const SQLITE_SHOWS: &[&str] = &[
    "tables",
    "schema",
    "fullschema",
    "headers",
    "header",
    "mode",
    "width",
    "indexes",
    "indices",
    "databases",
    "show",
    "stats",
    "timer",
    "print",
    "help",
    "quit",
    "exit",
    "nullvalue",
    "separator",
    "dbinfo",
    "changes",
    "eqp",
    "explain",
];

/// Functions and statements that access other files or load code.
const SQLITE_REACHES: &[&str] =
    &["writefile", "readfile", "load_extension", "edit(", "fts3_tokenizer", "attach", "vacuum"];

/// A shell command begins with a dot, as a word or at the start of a line.
fn sqlite_risks(words: &[ShellWord]) -> Vec<CommandRisk> {
    let is_shown = |command: &str| {
        let name = command.split_whitespace().next().unwrap_or_default();
        SQLITE_SHOWS.contains(&name)
    };
    let is_risky = |word: &&ShellWord| {
        let text = word.text.to_lowercase();
        let mut commands = text.lines().filter_map(|line| line.trim_start().strip_prefix('.'));
        // A file below the working directory.
        let is_path = text.starts_with("./") || text.starts_with("../");
        SQLITE_REACHES.iter().any(|name| text.contains(name))
            || (!is_path && commands.any(|command| !is_shown(command)))
            || word.known_text().is_none()
    };
    let reason = "can run commands or write files";
    let words = words.iter().enumerate().skip(1);
    words
        .filter(|(_, word)| is_risky(word))
        .map(|(at, _)| CommandRisk { word_index: at, effect: RiskEffect::Runs, reason })
        .collect()
}

/// A value that begins with `@` is a file name, also joined to its option.
fn curl_risks(words: &[ShellWord]) -> Vec<CommandRisk> {
    let names_file = |word: &ShellWord, before: &str| {
        let is_joined =
            word.text.starts_with("-d@") || word.text.starts_with("-H@") || word.text.starts_with("-b@");
        let is_encoded = before == "--data-urlencode" && word.text.contains('@');
        is_joined || is_encoded
    };
    let places = (1..words.len()).filter(|&at| names_file(&words[at], &words[at - 1].text));
    places
        .map(|at| CommandRisk { word_index: at, effect: RiskEffect::Writes, reason: "sends a file" })
        .collect()
}
