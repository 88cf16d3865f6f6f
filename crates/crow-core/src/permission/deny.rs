//! Whether a forbidden command is in a command. Lenient: whatever may be it, counts.

use super::risks::base;
use crate::shell::{Extent, Word};

/// Whether something is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Found {
    /// It is not.
    No,
    /// Nobody can tell before it runs.
    Perhaps,
    /// It is.
    Yes,
}

/// Looks for a rule's words in a command's: the program, its operands in order, its options anywhere.
pub(super) fn found(rule: &[String], words: &[Word]) -> Found {
    let (Some(forbidden), Some(program)) = (rule.first(), words.first()) else { return Found::No };
    let is_program = match program.whole() {
        None => Found::Perhaps,
        Some(name) if base(name).eq_ignore_ascii_case(base(forbidden)) => Found::Yes,
        Some(_) => return Found::No,
    };
    let (options, operands): (Vec<&String>, Vec<&String>) =
        rule[1..].iter().partition(|word| is_option(word));
    let parts = options.into_iter().map(|option| has_option(option, words));
    parts.chain([has_operands(&operands, words)]).fold(is_program, Ord::min)
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

fn has_option(option: &str, words: &[Word]) -> Found {
    let arguments = words.get(1..).unwrap_or_default();
    let is_bundle = !option.starts_with("--");
    let is_it = |word: &Word| {
        let name = word.text.split_once('=').map_or(word.text.as_str(), |(name, _)| name);
        // Long options may be abbreviated.
        let is_short_for = name.len() > "--".len() && name.starts_with("--") && option.starts_with(name);
        name == option || (is_short_for && !is_bundle)
    };
    // `-rf`, `-fr` and `-r -f` are the same.
    let has_letter = |letter: char| {
        arguments.iter().any(|word| {
            let bundle = word.text.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'));
            bundle.is_some_and(|bundle| bundle.contains(letter))
        })
    };
    if arguments.iter().any(is_it) || (is_bundle && option.chars().skip(1).all(has_letter)) {
        return Found::Yes;
    }
    let may_be =
        |word: &Word| word.may_be_option() || (word.extent >= Extent::Begins && word.text.starts_with('-'));
    if arguments.iter().any(may_be) { Found::Perhaps } else { Found::No }
}

/// Looks for operands right after the program or one another, but for options and their values in between.
fn has_operands(operands: &[&String], words: &[Word]) -> Found {
    // Every place that may follow what was found so far; an option's value may look like an operand.
    let mut places = vec![1];
    let mut found = Found::Yes;
    for operand in operands {
        let mut is_seen = vec![false; words.len()];
        let mut next = Vec::new();
        for mut at in places {
            while let Some(word) = words.get(at).filter(|_| !std::mem::replace(&mut is_seen[at], true)) {
                match word.extent {
                    Extent::Whole if word.text == **operand => next.push(at + 1),
                    Extent::Whole => {}
                    Extent::Home | Extent::Begins | Extent::Splits => {
                        if word.extent != Extent::Begins || operand.starts_with(&word.text) {
                            found = Found::Perhaps;
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
            return if found == Found::Perhaps { Found::Perhaps } else { Found::No };
        }
        places = next;
    }
    Found::Yes
}
