//! Whether a forbidden command is in a command. Lenient: whatever may be it, counts.

use std::borrow::Cow;

use super::equal::{same_options, usual_words};
use super::programs::RiskEffect;
use super::risks::{find_risks, program_name, reads_program};
use crate::shell::{KnownExtent, ShellWord, SimpleCommand};

/// Whether something is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MatchCertainty {
    /// It is not.
    No,
    /// Nobody can tell before it runs.
    Perhaps,
    /// It is.
    Yes,
}

/// Programs whose words are only text to them, or of which the table of risks knows what they run.
const READERS: &[&str] = &[
    "echo", "printf", "test", "[", "cd", "ls", "cat", "head", "tail", "wc", "sort", "uniq", "cut", "tr",
    "grep", "egrep", "fgrep", "rg", "find", "stat", "file", "diff", "cmp", "basename", "dirname", "which",
    "type", "man", "command", "git", "cargo", "npm", "pip", "mkdir", "touch", "export", "sed", "awk", "jq",
];

/// Who names a program more often is up to something, and each mention takes time.
const MENTIONS_MAX: usize = 100;

/// Looks for a rule's words in a command, also behind a program that nobody knows.
pub(super) fn match_rule(rule: &[String], simple: &SimpleCommand) -> MatchCertainty {
    let rule: Vec<ShellWord> = rule.iter().map(ShellWord::from_text).collect();
    let rule: Vec<String> = usual_words(&rule).into_iter().map(|word| word.into_owned().text).collect();
    let found = match_words(&rule, &simple.words);
    if found == MatchCertainty::No && may_run(&rule, simple) { MatchCertainty::Perhaps } else { found }
}

/// Whether a program may run the forbidden command out of its words, or out of the text that is its input.
fn may_run(rule: &[String], simple: &SimpleCommand) -> bool {
    let program = simple.words.first().and_then(ShellWord::known_text).map(program_name).unwrap_or_default();
    let runs = find_risks(&simple.words).iter().any(|risk| risk.does == RiskEffect::Runs);
    let is_fed = reads_program(&simple.words);
    if READERS.contains(&program) && !runs && !is_fed {
        return false;
    }
    // What it is seen to run is judged by itself.
    let end = simple.inner.as_ref().map_or(simple.words.len(), |inner| inner.at);
    let mut words = Vec::new();
    for word in simple.words.iter().take(end).skip(1) {
        match word.known_text() {
            Some(text) => words.extend(command_pieces(text).map(ShellWord::from_text)),
            None => words.push(word.clone()),
        }
    }
    let documents = simple.documents.iter().filter(|_| is_fed || runs);
    words.extend(documents.flat_map(|document| command_pieces(document)).map(ShellWord::from_text));
    let Some(forbidden) = rule.first() else { return false };
    let is_it = |at: &usize| {
        words[*at]
            .known_text()
            .is_some_and(|name| program_name(name).eq_ignore_ascii_case(program_name(forbidden)))
    };
    let places: Vec<usize> = (0..words.len()).filter(is_it).take(MENTIONS_MAX).collect();
    let is_mentioned = places.len() == MENTIONS_MAX
        || places.into_iter().any(|at| match_words(rule, &words[at..]) != MatchCertainty::No);
    // The program itself, told to do it under another name.
    let is_program = program.eq_ignore_ascii_case(program_name(forbidden));
    let is_said = |part: &String| words.iter().any(|word| word.known_text() == Some(part));
    is_mentioned || (runs && is_program && rule.len() > 1 && rule[1..].iter().all(is_said))
}

/// Shows the words of a text that may be a command line.
fn command_pieces(text: &str) -> impl Iterator<Item = &str> {
    let splits = |letter: char| letter.is_whitespace() || ";&|()<>{}`'\"$,=!".contains(letter);
    text.split(splits).filter(|piece| !piece.is_empty())
}

/// Looks for a rule's words among these: the program, its operands in order, its options anywhere.
fn match_words(rule: &[String], words: &[ShellWord]) -> MatchCertainty {
    let words = usual_words(words);
    let (Some(forbidden), Some(program)) = (rule.first(), words.first()) else { return MatchCertainty::No };
    let is_program = match program.known_text() {
        None => MatchCertainty::Perhaps,
        Some(name) if program_name(name).eq_ignore_ascii_case(program_name(forbidden)) => MatchCertainty::Yes,
        Some(_) => return MatchCertainty::No,
    };
    let (options, operands): (Vec<&String>, Vec<&String>) =
        rule[1..].iter().partition(|word| is_option(word));
    let parts = options.into_iter().map(|option| has_option(option, &words));
    parts.chain([has_operands(&operands, &words)]).fold(is_program, Ord::min)
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// Looks for an option, however it is spelled: `-rf`, `-fr`, `-r -f` and `--recursive --force` are the same.
fn has_option(option: &str, words: &[Cow<'_, ShellWord>]) -> MatchCertainty {
    let is_bundle = !option.starts_with("--") && option.chars().count() > 2;
    let has_all =
        || option.chars().skip(1).all(|letter| has_any(&same_options(words, &format!("-{letter}")), words));
    if has_any(&same_options(words, option), words) || (is_bundle && has_all()) {
        return MatchCertainty::Yes;
    }
    let may_be = |word: &Cow<'_, ShellWord>| {
        word.may_be_option() || (word.extent >= KnownExtent::Begins && word.text.starts_with('-'))
    };
    if words.iter().skip(1).any(may_be) { MatchCertainty::Perhaps } else { MatchCertainty::No }
}

/// Whether one of these options is among the words of a command.
fn has_any(options: &[&str], words: &[Cow<'_, ShellWord>]) -> bool {
    let is_it = |word: &str, option: &str| {
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
    words.any(|word| options.iter().any(|option| is_it(&word.text, option)))
}

/// Whether a word is an operand of a rule, or means the same to its program.
fn is_same_operand(words: &[Cow<'_, ShellWord>], word: &str, operand: &str) -> bool {
    let program =
        words.first().and_then(|program| program.known_text()).map(program_name).unwrap_or_default();
    match program {
        // It takes the beginning of a command for the command.
        "npm" => word == operand || (word.len() > 2 && operand.starts_with(word)),
        "chmod" => word == operand || file_mode(word).is_some_and(|mode| file_mode(operand) == Some(mode)),
        _ => word == operand,
    }
}

/// Reads a mode that is a number, or that gives everybody everything.
fn file_mode(text: &str) -> Option<u32> {
    const ALL: [&str; 6] = ["a=rwx", "a+rwx", "ugo=rwx", "ugo+rwx", "+rwx", "=rwx"];
    if ALL.contains(&text) { Some(0o777) } else { u32::from_str_radix(text, 8).ok() }
}

/// Looks for operands right after the program or one another, but for options and their values in between.
fn has_operands(operands: &[&String], words: &[Cow<'_, ShellWord>]) -> MatchCertainty {
    // Every place that may follow what was found so far; an option's value may look like an operand.
    let mut places = vec![1];
    let mut found = MatchCertainty::Yes;
    for operand in operands {
        let mut is_seen = vec![false; words.len()];
        let mut next = Vec::new();
        for mut at in places {
            while let Some(word) = words.get(at).filter(|_| !std::mem::replace(&mut is_seen[at], true)) {
                match word.extent {
                    KnownExtent::Whole if is_same_operand(words, &word.text, operand) => next.push(at + 1),
                    KnownExtent::Whole => {}
                    KnownExtent::Home | KnownExtent::Begins | KnownExtent::Splits => {
                        if word.extent != KnownExtent::Begins || operand.starts_with(&word.text) {
                            found = MatchCertainty::Perhaps;
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
            return if found == MatchCertainty::Perhaps {
                MatchCertainty::Perhaps
            } else {
                MatchCertainty::No
            };
        }
        places = next;
    }
    MatchCertainty::Yes
}
