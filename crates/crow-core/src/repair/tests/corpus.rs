//! Arguments as models send them, with the results: `corpus.txt`.

use std::fmt::Write as _;

use expect_test::{expect, expect_file};

use super::*;

/// Characters of an object that identify it.
const SHOWN_CHARS_MAX: usize = 120;

/// Expands a case: `⟪12 [⟫` means twelve brackets, and invisible characters have names.
fn unfolded(case: &str) -> String {
    let mut text = String::new();
    let mut rest = case;
    while let Some((before, after)) = rest.split_once('⟪') {
        let (piece, after) = after.split_once('⟫').unwrap();
        text += before;
        match piece {
            "cr" => text.push('\r'),
            "tab" => text.push('\t'),
            "nul" => text.push('\0'),
            "bom" => text.push('\u{feff}'),
            _ => {
                let (times, piece) = piece.split_once(' ').unwrap();
                text += &piece.repeat(times.parse().unwrap());
            }
        }
        rest = after;
    }
    text + rest
}

/// Renders the certainty of a result.
fn name(arguments: &ToolArguments) -> &'static str {
    match arguments {
        ToolArguments::Valid(_) => "valid",
        ToolArguments::Repaired { doubt: None, .. } => "repaired",
        ToolArguments::Repaired { doubt: Some(doubt), .. } => match doubt.kind {
            DoubtKind::UnclosedValue => "not closed",
            DoubtKind::MissingBrackets => "only brackets missing",
            DoubtKind::TruncatedString => "cut in a string",
            DoubtKind::SeveralObjects => "several",
            DoubtKind::TrailingText => "text behind",
            DoubtKind::LoneSurrogate => "half a character",
            DoubtKind::DuplicateKey => "key twice",
            DoubtKind::Ambiguous => "guessed",
        },
        ToolArguments::Unreadable { .. } => "unreadable",
    }
}

fn outcome(arguments: &ToolArguments) -> String {
    let place = match arguments.doubt() {
        Some(RepairDoubt { position: Some(place), .. }) => format!(" at {}:{}", place.line, place.column),
        Some(RepairDoubt { position: None, .. }) | None => String::new(),
    };
    let shown = match arguments {
        ToolArguments::Unreadable { reason } => {
            let reason = reason.strip_prefix("the arguments are not a JSON object: ").unwrap();
            reason.strip_suffix("; send the call again with one").unwrap().to_owned()
        }
        ToolArguments::Valid(map) | ToolArguments::Repaired { value: map, .. } => {
            Value::Object(map.clone()).to_string()
        }
    };
    let shown = match shown.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown,
    };
    format!("{}{place}: {shown}", name(arguments))
}

#[test]
fn corpus_has_expected_results() {
    let corpus = include_str!("corpus.txt");
    let mut counts = std::collections::BTreeMap::<_, usize>::new();
    let mut read = String::new();
    let mut case = Vec::new();
    let mut lines = corpus.lines();
    while let Some(line) = lines.next() {
        let is_heading = case.is_empty() && line.starts_with("# ");
        if is_heading {
            writeln!(read, "{line}\n").unwrap();
        } else if line.starts_with("=> ") {
            let text = case.join("\n");
            let arguments = read_arguments(&unfolded(&text));
            *counts.entry(name(&arguments)).or_default() += 1;
            writeln!(read, "{text}\n=> {}\n", outcome(&arguments)).unwrap();
            case.clear();
        } else {
            case.push(line);
            continue;
        }
        assert_eq!(lines.next(), Some(""), "an empty line follows {line}");
    }
    expect_file!["corpus.txt"].assert_eq(&read);
    let counts = counts.iter().map(|(name, n)| format!("{n} {name}\n"));
    expect![[r#"
        20 cut in a string
        62 guessed
        11 half a character
        11 key twice
        27 not closed
        33 only brackets missing
        90 repaired
        4 several
        6 text behind
        80 unreadable
        25 valid
    "#]]
    .assert_eq(&counts.collect::<String>());
}
