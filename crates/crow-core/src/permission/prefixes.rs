//! Permanent grants for commands, by the prefix table.

use super::grants::{Grant, known_words};
use super::harmless;
use super::prefix_table::{PrefixExtent, find_row, project_script};
use super::program_names::program_name;
use crate::shell::{ShellWord, SimpleCommand, WrapperEffect};

/// Returns the safe permanent grant for a command: a prefix, or the whole command.
pub(super) fn safe_grant(simple: &SimpleCommand) -> Option<Grant> {
    let words = known_words(&simple.words);
    let to_owned_words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    match find_row(&words) {
        Some((_, PrefixExtent::Prefix(n_words))) => Some(Grant::RunPrefix(to_owned_words(&words[..n_words]))),
        // Words unknown before the command runs may be more than options.
        Some((_, PrefixExtent::Exact)) if words.len() == simple.words.len() => {
            Some(Grant::RunExact(to_owned_words(&words)))
        }
        Some((_, PrefixExtent::Exact)) => None,
        None => project_script(&words).map(|script| Grant::RunPrefix(vec![script.to_owned()])),
    }
}

/// Programs whose operands are targets, goals or tasks: a grant for one does not include another.
const TARGET_PROGRAMS: &[&str] = &[
    "make", "gmake", "just", "task", "rake", "mage", "invoke", "mvn", "mvnw", "gradle", "gradlew", "sbt",
    "lein",
];

/// Options of theirs with the next word as value.
const VALUED: &[&str] = &["--tests", "-pl", "--projects"];

/// Whether a command names more targets than the covered prefix.
pub(super) fn has_more_targets(words: &[ShellWord], n_covered: usize) -> bool {
    let is_one = words
        .first()
        .and_then(ShellWord::known_text)
        .is_some_and(|program| TARGET_PROGRAMS.contains(&program_name(program)));
    let is_target = |at: usize| {
        let (before, text) = (words[at - 1].text.as_str(), words[at].text.as_str());
        let is_number = text.starts_with(|first: char| first.is_ascii_digit()) && before.starts_with('-');
        !text.starts_with('-') && !is_number && !VALUED.contains(&before)
    };
    is_one && (n_covered.max(1)..words.len()).any(is_target)
}

/// Returns permanent grants that together cover commands; `None` if one of them has no safe grant.
pub(super) fn grants_for_commands<'a>(
    commands: impl Iterator<Item = &'a SimpleCommand>,
) -> Option<Vec<Grant>> {
    let mut grants = Vec::new();
    for command in commands {
        if command.words.is_empty() || harmless::needs_no_rule(command) {
            continue;
        }
        match (safe_grant(command), &command.inner) {
            (Some(grant), _) => grants.push(grant),
            (None, Some(inner)) if inner.effect == WrapperEffect::Transparent => {
                grants.extend(grants_for_commands(inner.commands.iter())?);
            }
            (None, _) => return None,
        }
    }
    Some(grants)
}
