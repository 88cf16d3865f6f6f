//! Scripts inside a command that may run commands or write files: those of `sed` and `awk`. Only what is plainly
//! harmless passes.

use super::programs::Does;
use super::risks::Risk;
use crate::shell::Word;

/// Finds out whether a script in the words of a command may do more than print.
pub(super) fn risk(program: &str, words: &[Word]) -> Option<Risk> {
    match program {
        "sed" | "gsed" => sed(words),
        "awk" | "gawk" | "mawk" | "nawk" => awk(words),
        _ => None,
    }
}

fn sed(words: &[Word]) -> Option<Risk> {
    let risk = |at| Risk { at, does: Does::Runs, why: "gets a script that may run commands or write files" };
    let mut scripts = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.text.as_str();
        let value = match text.strip_prefix("--") {
            Some(long) if long.starts_with('e') => Some(long.split_once('=').map(|(_, value)| value)),
            Some(_) => None,
            None => text
                .strip_prefix('-')
                .and_then(|bundle| bundle.split_once('e'))
                .map(|(_, value)| Some(value).filter(|value| !value.is_empty())),
        };
        match value {
            Some(Some(value)) => scripts.push((at, word.whole().map(|_| value))),
            Some(None) => scripts.push((at + 1, words.get(at + 1).and_then(Word::whole))),
            None => {}
        }
    }
    if scripts.is_empty() {
        let operand = words.iter().enumerate().skip(1).find(|(_, word)| !word.text.starts_with('-'));
        scripts.extend(operand.map(|(at, word)| (at, word.whole())));
    }
    let is_harmless = |script: Option<&str>| script.is_some_and(only_prints);
    scripts.into_iter().find(|(_, script)| !is_harmless(*script)).map(|(at, _)| risk(at))
}

/// Recognises the scripts that people and models mostly write: `p`, `d`, `q`, `=` and `s` with an address.
fn only_prints(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\n', '\t', ';']);
        if rest.is_empty() {
            return true;
        }
        let Some(after) = address(rest) else { return false };
        let after = after.trim_start_matches([' ', '!']);
        let Some(after) = command(after) else { return false };
        rest = after.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with([';', '\n']) {
            return false;
        }
    }
}

/// Steps over an address, if there is one: a line, the last one, or a pattern, or two of them.
fn address(text: &str) -> Option<&str> {
    let Some(after) = one_address(text)? else { return Some(text) };
    match after.strip_prefix(',') {
        Some(second) => one_address(second.trim_start_matches(['+', '~', ' ']))?,
        None => Some(after),
    }
}

/// Gives what follows an address; the inner `None` when there is no address, the outer when it is odd.
fn one_address(text: &str) -> Option<Option<&str>> {
    let first = text.chars().next();
    if first.is_some_and(|letter| letter.is_ascii_digit()) {
        return Some(Some(text.trim_start_matches(|letter: char| letter.is_ascii_digit())));
    }
    match first {
        Some('$') => Some(Some(&text[1..])),
        Some('/') => delimited(&text[1..], '/').map(Some),
        _ => Some(None),
    }
}

fn command(text: &str) -> Option<&str> {
    let mut letters = text.chars();
    match letters.next()? {
        'p' | 'd' | 'q' | '=' | 'P' | 'D' => Some(letters.as_str()),
        's' => {
            let delimiter =
                letters.next().filter(|letter| letter.is_ascii_punctuation() && *letter != '\\')?;
            let after = delimited(delimited(letters.as_str(), delimiter)?, delimiter)?;
            Some(after.trim_start_matches(|letter: char| letter.is_ascii_digit() || "gpiI".contains(letter)))
        }
        _ => None,
    }
}

/// Steps over a text up to a delimiter. In brackets programs differ on what ends it.
fn delimited(text: &str, delimiter: char) -> Option<&str> {
    let mut letters = text.chars();
    let mut is_bracket = false;
    while let Some(letter) = letters.next() {
        match letter {
            _ if letter == delimiter && is_bracket => return None,
            _ if letter == delimiter => return Some(letters.as_str()),
            '\\' => drop(letters.next()?),
            '\n' => return None,
            '[' if letters.as_str().starts_with([']', '^']) => return None,
            '[' => is_bracket = true,
            ']' => is_bracket = false,
            _ => {}
        }
    }
    None
}

fn awk(words: &[Word]) -> Option<Risk> {
    let risk =
        |at| Some(Risk { at, does: Does::Runs, why: "gets a script that may run commands or write files" });
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Some(text) = word.whole() else { return risk(at) };
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
        if words.get(at - 1).is_some_and(|value| value.whole().is_none()) {
            return risk(at - 1);
        }
    }
    let script = words.get(at)?;
    let text = script.whole().map(|text| text.replace("||", " ").replace(">=", " "));
    let is_harmless = |text: &str| {
        let odd = ["system", "getline", "|", ">", "@", "fflush", "close"];
        !odd.iter().any(|part| text.contains(part))
    };
    if text.is_some_and(|text| is_harmless(&text)) { None } else { risk(at) }
}
