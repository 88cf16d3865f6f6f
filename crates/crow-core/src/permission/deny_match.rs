//! Matches a deny rule against a command. Lenient: a possible match counts.

use std::borrow::Cow;

use super::program_names::program_name;
use super::risk_table::RiskEffect;
use super::risks::{find_risks, reads_program};
use super::synonyms::{same_options, usual_words};
use crate::shell::{KnownExtent, ShellWord, SimpleCommand};

/// The certainty of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchCertainty {
    /// No match.
    NoMatch,
    /// Unknown before the command runs.
    Possible,
    /// A match.
    Certain,
}

/// Programs that do not run their words, or whose risks are in the table.
const READERS: &[&str] = &[
    "echo", "printf", "test", "[", "cd", "ls", "cat", "head", "tail", "wc", "sort", "uniq", "cut", "tr",
    "grep", "egrep", "fgrep", "rg", "find", "stat", "file", "diff", "cmp", "basename", "dirname", "which",
    "type", "man", "command", "git", "cargo", "npm", "pip", "mkdir", "touch", "export", "sed", "awk", "jq",
];

/// More mentions of a program are suspicious, and each takes time.
const MENTIONS_MAX: usize = 100;

/// Matches a rule in a command, including the words of an unknown program.
pub(super) fn match_rule(rule: &[String], simple: &SimpleCommand) -> MatchCertainty {
    let rule: Vec<ShellWord> = rule.iter().map(ShellWord::from_text).collect();
    let rule: Vec<String> = usual_words(&rule).into_iter().map(|word| word.into_owned().text).collect();
    let certainty = match_words(&rule, &simple.words);
    if certainty == MatchCertainty::NoMatch && may_run(&rule, simple) {
        MatchCertainty::Possible
    } else {
        certainty
    }
}

/// Whether a program may run the forbidden command from its words or its input.
fn may_run(rule: &[String], simple: &SimpleCommand) -> bool {
    let program = simple.words.first().and_then(ShellWord::known_text).map(program_name).unwrap_or_default();
    let runs = find_risks(&simple.words).iter().any(|risk| risk.effect == RiskEffect::Runs);
    let reads_input = reads_program(&simple.words);
    if READERS.contains(&program) && !runs && !reads_input {
        return false;
    }
    // Inner commands are evaluated by themselves.
    let end = simple.inner.as_ref().map_or(simple.words.len(), |inner| inner.first_word);
    let mut words = Vec::new();
    for word in simple.words.iter().take(end).skip(1) {
        match word.known_text() {
            Some(text) => words.extend(command_pieces(text).map(ShellWord::from_text)),
            None => words.push(word.clone()),
        }
    }
    let documents = simple.documents.iter().filter(|_| reads_input || runs);
    words.extend(documents.flat_map(|document| command_pieces(document)).map(ShellWord::from_text));
    let Some(forbidden) = rule.first() else { return false };
    let is_program_name = |at: &usize| {
        words[*at]
            .known_text()
            .is_some_and(|name| program_name(name).eq_ignore_ascii_case(program_name(forbidden)))
    };
    let positions: Vec<usize> = (0..words.len()).filter(is_program_name).take(MENTIONS_MAX).collect();
    let is_mentioned = positions.len() == MENTIONS_MAX
        || positions.into_iter().any(|at| match_words(rule, &words[at..]) != MatchCertainty::NoMatch);
    // The program itself under another name of its options.
    let is_program = program.eq_ignore_ascii_case(program_name(forbidden));
    let is_present = |part: &String| words.iter().any(|word| word.known_text() == Some(part));
    is_mentioned || (runs && is_program && rule.len() > 1 && rule[1..].iter().all(is_present))
}

/// Splits a text that may be a command line into words.
fn command_pieces(text: &str) -> impl Iterator<Item = &str> {
    let splits = |letter: char| letter.is_whitespace() || ";&|()<>{}`'\"$,=!".contains(letter);
    text.split(splits).filter(|piece| !piece.is_empty())
}

/// Matches a rule: the program, its operands in order, its options anywhere.
fn match_words(rule: &[String], words: &[ShellWord]) -> MatchCertainty {
    let words = usual_words(words);
    let (Some(forbidden), Some(program)) = (rule.first(), words.first()) else {
        return MatchCertainty::NoMatch;
    };
    let is_program = match program.known_text() {
        None => MatchCertainty::Possible,
        Some(name) if program_name(name).eq_ignore_ascii_case(program_name(forbidden)) => {
            MatchCertainty::Certain
        }
        Some(_) => return MatchCertainty::NoMatch,
    };
    let (options, operands): (Vec<&String>, Vec<&String>) =
        rule[1..].iter().partition(|word| is_option(word));
    let parts = options.into_iter().map(|option| has_option(option, &words));
    parts.chain([has_operands(&operands, &words)]).fold(is_program, Ord::min)
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// Finds an option in any form: `-rf`, `-fr`, `-r -f` and `--recursive --force` are equal.
fn has_option(option: &str, words: &[Cow<'_, ShellWord>]) -> MatchCertainty {
    let is_bundle = !option.starts_with("--") && option.chars().count() > 2;
    let has_all =
        || option.chars().skip(1).all(|letter| has_any(&same_options(words, &format!("-{letter}")), words));
    if has_any(&same_options(words, option), words) || (is_bundle && has_all()) {
        return MatchCertainty::Certain;
    }
    let may_be = |word: &Cow<'_, ShellWord>| {
        word.may_be_option() || (word.extent >= KnownExtent::Prefix && word.text.starts_with('-'))
    };
    if words.iter().skip(1).any(may_be) { MatchCertainty::Possible } else { MatchCertainty::NoMatch }
}

/// Whether one of these options is among the words of a command.
fn has_any(options: &[&str], words: &[Cow<'_, ShellWord>]) -> bool {
    let matches_word = |word: &str, option: &str| {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        // Long options may be abbreviated.
        let is_abbreviated = name.len() > "--".len() && name.starts_with("--") && option.starts_with(name);
        let bundle = word.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'));
        let letter = option.strip_prefix('-').filter(|letter| letter.chars().count() == 1 && *letter != "-");
        let is_bundled = letter.is_some_and(|letter| bundle.is_some_and(|bundle| bundle.contains(letter)));
        name == option
            || word == option
            || is_abbreviated
            || is_bundled
            || (option == "+" && word.starts_with('+'))
    };
    let mut words = words.iter().skip(1);
    words.any(|word| options.iter().any(|option| matches_word(&word.text, option)))
}

/// Whether a word equals an operand of a rule, or means the same to its program.
fn is_same_operand(words: &[Cow<'_, ShellWord>], word: &str, operand: &str) -> bool {
    let program =
        words.first().and_then(|program| program.known_text()).map(program_name).unwrap_or_default();
    match program {
        // npm accepts abbreviated commands.
        "npm" => word == operand || (word.len() > 2 && operand.starts_with(word)),
        "chmod" => word == operand || file_mode(word).is_some_and(|mode| file_mode(operand) == Some(mode)),
        _ => word == operand,
    }
}

/// Parses a numeric mode, or a symbolic one with all permissions.
fn file_mode(text: &str) -> Option<u32> {
    const ALL: [&str; 6] = ["a=rwx", "a+rwx", "ugo=rwx", "ugo+rwx", "+rwx", "=rwx"];
    if ALL.contains(&text) { Some(0o777) } else { u32::from_str_radix(text, 8).ok() }
}

/// Finds operands directly after the program or each other, with options and their values in between.
fn has_operands(operands: &[&String], words: &[Cow<'_, ShellWord>]) -> MatchCertainty {
    // The possible positions after the operands so far; an option's value may look like an operand.
    let mut positions = vec![1];
    let mut certainty = MatchCertainty::Certain;
    for operand in operands {
        let mut visited = vec![false; words.len()];
        let mut next = Vec::new();
        for mut at in positions {
            while let Some(word) = words.get(at).filter(|_| !std::mem::replace(&mut visited[at], true)) {
                match word.extent {
                    KnownExtent::Full if is_same_operand(words, &word.text, operand) => next.push(at + 1),
                    KnownExtent::Full => {}
                    KnownExtent::Home | KnownExtent::Prefix | KnownExtent::Unknown => {
                        if word.extent != KnownExtent::Prefix || operand.starts_with(&word.text) {
                            certainty = MatchCertainty::Possible;
                        }
                    }
                }
                let is_value = at > 1 && is_option(&words[at - 1].text) && !words[at - 1].text.contains('=');
                if !is_option(&word.text) && !is_value {
                    break;
                }
                at += 1;
            }
        }
        if next.is_empty() {
            return if certainty == MatchCertainty::Possible {
                MatchCertainty::Possible
            } else {
                MatchCertainty::NoMatch
            };
        }
        positions = next;
    }
    MatchCertainty::Certain
}
