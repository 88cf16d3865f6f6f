//! Comments, messages and documents use plain English.

use std::fs;

use super::{check, is_test, root, sources};

/// Phrases to avoid, with their replacements.
const PHRASES: [(&str, &str); 16] = [
    ("nobody", "name the actor: `no client`, `no user`, or use `unapproved`, `unused`"),
    ("somebody", "name the actor: `a user`, `a client`, `another process`"),
    ("anybody", "name the actor"),
    ("whoever", "name the actor: `the caller`, `the client`, `the process that`"),
    ("whomever", "name the actor"),
    ("so it is with", "`also applies to`"),
    ("stands in", "`is in`"),
    ("stand in the place of", "`replace`"),
    ("comes with", "`has`, `includes`"),
    ("let us in", "`accept our credentials`"),
    ("let us not in", "`reject our credentials`"),
    ("says yes", "`approves`"),
    ("said yes", "`approved`"),
    ("a yes", "`an approval`"),
    ("is at work", "`is running`"),
    ("gives back", "`returns`, `releases`"),
];

/// A doc comment begins with a noun or a verb, not with a clause.
const OPENINGS: [&str; 7] = ["What ", "Whatever ", "How ", "Where ", "Who ", "Tells ", "Says "];

/// Whether a line contains a phrase as whole words, in any case.
fn contains_phrase(line: &str, phrase: &str) -> bool {
    let line = line.to_lowercase();
    // `nobody` is also the name of a user.
    let is_name = |letter: char| letter.is_alphanumeric() || "_`~".contains(letter);
    let is_letter = |letter: Option<char>| letter.is_some_and(is_name);
    line.match_indices(phrase).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + phrase.len()..]);
        !is_letter(before.chars().next_back()) && !is_letter(after.chars().next())
    })
}

/// Returns the Markdown files at the root and below `docs`, by their path from the root.
fn documents() -> Vec<(String, String)> {
    let root = root();
    let mut directories = vec![root.join("docs")];
    let mut files: Vec<_> =
        fs::read_dir(&root).expect("the root").map(|entry| entry.expect("an entry").path()).collect();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { directories.push(path) } else { files.push(path) }
        }
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    let named = |path: std::path::PathBuf| {
        let name = path.strip_prefix(&root).expect("below the root").display().to_string();
        (name, fs::read_to_string(&path).expect("a document"))
    };
    files.into_iter().map(named).collect()
}

#[test]
fn prose_has_no_translated_phrases() {
    let mut broken = Vec::new();
    for (name, text) in documents().into_iter().chain(sources().iter().cloned()) {
        // This file lists the phrases.
        if name.ends_with("tests/it/tidy/prose.rs") {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let phrases = PHRASES.iter().filter(|(phrase, _)| contains_phrase(line, phrase));
            broken.extend(
                phrases.map(|(phrase, instead)| format!("{name}:{}: {phrase}: write {instead}", index + 1)),
            );
        }
    }
    check("prose is plain English", &broken);
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let mut broken = Vec::new();
    for (name, text) in sources() {
        let mut is_inside = false;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_start();
            let doc = ["/// ", "//! "].iter().find_map(|mark| line.strip_prefix(mark));
            if let Some(doc) = doc.filter(|_| !is_inside)
                && OPENINGS.iter().any(|opening| doc.starts_with(opening))
            {
                broken.push(format!("{name}:{}: {doc}", index + 1));
            }
            is_inside = line.starts_with("///") || line.starts_with("//!");
        }
    }
    check("a doc comment begins with a noun or a verb", &broken);
}

#[test]
fn errors_are_lower_case_without_a_full_stop() {
    let mut broken = Vec::new();
    for (name, text) in sources().iter().filter(|(name, _)| !is_test(name)) {
        for (index, line) in text.lines().enumerate() {
            let Some(message) = line.trim_start().strip_prefix("#[error(\"") else { continue };
            let mut letters = message.chars();
            // An abbreviation such as `MCP` stays in capitals.
            let is_sentence = letters.next().is_some_and(char::is_uppercase)
                && letters.next().is_some_and(|letter| letter.is_lowercase() || letter == ' ');
            if is_sentence || message.ends_with(".\")]") {
                broken.push(format!("{name}:{}: {}", index + 1, line.trim()));
            }
        }
    }
    check("an error is lower case and has no full stop", &broken);
}

#[test]
fn public_items_are_documented() {
    const ITEMS: [&str; 7] =
        ["pub fn ", "pub async fn ", "pub struct ", "pub enum ", "pub trait ", "pub type ", "pub const "];
    let mut broken = Vec::new();
    for (name, text) in sources().iter().filter(|(name, _)| name.contains("/src/") && !is_test(name)) {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            // A macro passes the documentation of a type on.
            if !ITEMS.iter().any(|item| line.starts_with(item)) || line.contains('$') {
                continue;
            }
            // Attributes are between an item and its documentation.
            let mut above = lines[..index].iter().rev();
            let first = above.find(|line| {
                line.is_empty() || line.starts_with("///") || line.ends_with(['{', '}', ';', ','])
            });
            if !first.is_some_and(|line| line.starts_with("///")) {
                broken.push(format!("{name}:{}: {line}", index + 1));
            }
        }
    }
    check("a public type, function, trait or constant has documentation", &broken);
}
