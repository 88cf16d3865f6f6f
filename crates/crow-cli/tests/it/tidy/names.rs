//! Names of types and functions, as `CONTRIBUTING.md` requires.

use std::collections::{BTreeMap, BTreeSet};

use super::{check, is_test, sources};

/// One-word types whose name is a term of the field or of Crow itself.
const ONE_WORD_TYPES: [&str; 28] = [
    "Agent",
    "Assignment",
    "Cli",
    "Client",
    "Compaction",
    "Confinement",
    "Database",
    "Delivery",
    "Draft",
    "Failure",
    "Feature",
    "Grant",
    "Mode",
    "Outbox",
    "Prompt",
    "Redirection",
    "Reply",
    "Settings",
    "Shell",
    "Skill",
    "Store",
    "Timestamp",
    "Tool",
    "Toolbox",
    "Transcript",
    "Turn",
    "Workspace",
    "Worktree",
];

/// Words that never name a function: they say neither the action nor its object.
const NO_FUNCTION_NAMES: [&str; 14] = [
    "afresh", "again", "found", "heard", "held", "here", "kept", "of", "said", "shown", "spelled", "there",
    "told", "whole",
];

/// Returns the name that a line declares after one of these words, and whether others may use it.
fn declared<'a>(line: &'a str, keywords: &[&str]) -> Option<(&'a str, bool)> {
    let line = line.trim_start();
    let (rest, is_public) = match line.strip_prefix("pub") {
        Some(rest) => (rest.trim_start_matches(|letter| letter != ' ').trim_start(), true),
        None => (line, false),
    };
    let modifiers = ["const ", "async ", "unsafe "];
    let rest = modifiers.iter().fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    let rest = keywords.iter().find_map(|keyword| rest.strip_prefix(keyword)?.strip_prefix(' '))?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
    Some((&rest[..end], is_public))
}

#[test]
fn type_names_are_understood_outside_their_file() {
    let (mut places, mut broken) = (BTreeMap::<String, BTreeSet<String>>::new(), Vec::new());
    for (file, text) in sources().iter().filter(|(name, _)| name.contains("/src/") && !is_test(name)) {
        let types = text.lines().filter_map(|line| declared(line, &["struct", "enum", "trait", "union"]));
        for (name, _) in types.filter(|(_, is_public)| *is_public) {
            let n_words = name.chars().filter(char::is_ascii_uppercase).count();
            if n_words == 1 && !ONE_WORD_TYPES.contains(&name) {
                broken.push(format!("{file}: {name} is one word"));
            }
            // The halves of two systems have the same types.
            let place = file.replace("/unix/", "/SYSTEM/").replace("/windows/", "/SYSTEM/");
            places.entry(name.to_owned()).or_default().insert(place);
        }
    }
    let shared = places.iter().filter(|(_, files)| files.len() > 1);
    broken.extend(shared.map(|(name, files)| format!("{name} names several types: {files:?}")));
    let unused = ONE_WORD_TYPES.iter().filter(|name| !places.contains_key(**name));
    broken.extend(unused.map(|name| format!("{name} is no type any longer")));
    check("the name of a type says what it is, and no two have one", &broken);
}

#[test]
fn function_names_say_what_is_done() {
    let mut broken = Vec::new();
    for (file, text) in sources().iter().filter(|(name, _)| name.contains("/src/") && !is_test(name)) {
        let names = text.lines().filter_map(|line| declared(line, &["fn"]));
        let odd = names.filter(|(name, _)| NO_FUNCTION_NAMES.contains(name));
        broken.extend(odd.map(|(name, _)| format!("{file}: {name}")));
    }
    check("the name of a function is a verb phrase or a noun", &broken);
}
