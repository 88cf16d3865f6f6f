//! The model copied too much: the markup of a listing or a chat, or the file's own indentation.

use super::{Kind, case, lands, nowhere, refused};
use crate::harness::{
    chance::Chance,
    mutate,
    outcome::{Case, MARK},
    spot::Spot,
};

pub(super) const KINDS: &[Kind] = &[
    lands("line numbers", |file, _, chance| numbered(file, chance, true)),
    lands("line numbers in the old", |file, _, chance| numbered(file, chance, false)),
    refused("line numbers that skip", |file, _, chance| {
        let spot = Spot::pick(file, 3, chance)?;
        let mut old: Vec<String> =
            spot.lines().iter().zip(7..).map(|(line, n)| format!("{n}\t{line}")).collect();
        old.remove(1);
        Some(nowhere(file.to_owned(), old.concat(), spot.new))
    }),
    lands("file indents, call does not", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        let by = if spot.old.starts_with('\t') { "\t" } else { "  " };
        let old = mutate::dedented(&spot.old, by)?;
        // All of it is new, so that nothing shows its intended indentation.
        let new = format!("{}{MARK}()\n", least_indent(&spot.old));
        let spot = Spot { new: new.clone(), ..spot };
        inexact(case(file, &spot, (old, new)))
    }),
    lands("typographic part of a line", |file, _, chance| {
        let style = chance.below(3);
        let file = mutate::typographic(file, style);
        let mut spot = Spot::pick(&file, 1, chance)?;
        let line = spot.old.lines().next()?.to_owned();
        let words: Vec<&str> = line.split(' ').collect();
        let piece = words.get(1..words.len().checked_sub(1)?)?.join(" ");
        let at = line.find(&piece).filter(|_| piece.contains(char::is_alphanumeric))?;
        spot.range = spot.range.start + at..spot.range.start + at + piece.len();
        spot.new = MARK.to_owned();
        inexact(case(&file, &spot, (mutate::plain(&piece), MARK.to_owned())))
    }),
    lands("byte order mark in the call", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        let texts = (format!("\u{feff}{}", spot.old), format!("\u{feff}{}", spot.new));
        inexact(case(file, &spot, texts))
    }),
    lands("fenced", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        let fenced = |text: &str| format!("```rust\n{text}```");
        let is_plain = !file.contains("```");
        is_plain.then(|| case(file, &spot, (fenced(&spot.old), fenced(&spot.new))))
    }),
    lands("written for HTML", |file, _, chance| {
        let spot = Spot::pick(file, 1, chance)?;
        let entities = |text: &str| {
            text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
        };
        let has_brackets =
            spot.old.contains(['<', '>']) && !spot.old.contains("&amp;") && !file.contains("&lt;");
        has_brackets.then(|| inexact(case(file, &spot, (entities(&spot.old), entities(&spot.new)))))?
    }),
    refused("lines elided", |file, _, chance| {
        let spot = Spot::pick(file, 4, chance)?;
        let lines = spot.lines();
        let mark = ["...\n", "// ... existing code ...\n", "    # …\n"][chance.below(3)];
        Some(nowhere(file.to_owned(), [lines[0], mark, lines[lines.len() - 1]].concat(), spot.new))
    }),
    refused("lines elided in the new", |file, _, chance| {
        let spot = Spot::pick(file, 4, chance)?;
        let lines = spot.lines();
        let mark =
            ["// ... existing code ...\n", "    # ... rest of the code ...\n", "<!-- … unchanged -->\n"];
        let new = [lines[0], MARK, "\n", mark[chance.below(3)], lines[lines.len() - 1]].concat();
        Some(nowhere(file.to_owned(), spot.old, new))
    }),
];

/// Both texts, or the old one alone, in the format of a listing.
fn numbered(file: &str, chance: &mut Chance, is_both: bool) -> Option<Case> {
    let spot = Spot::pick(file, 1, chance)?;
    let first = file[..spot.range.start].matches('\n').count() + 1;
    let style = chance.below(STYLES.len());
    let listed = |text: &str| -> String {
        text.split_inclusive('\n').zip(first..).map(|(line, number)| STYLES[style](number, line)).collect()
    };
    let new = if is_both { listed(&spot.new) } else { spot.new.clone() };
    inexact(case(file, &spot, (listed(&spot.old), new)))
}

const STYLES: &[fn(usize, &str) -> String] = &[
    |number, line| format!("{number:>6}\t{line}"),
    |number, line| format!("{number:>6}→{line}"),
    |number, line| format!("{number}: {line}"),
    |number, line| format!("{number}:{line}"),
    |number, line| format!("{number:>4} | {line}"),
    |number, line| format!("{number}|{line}"),
    |number, line| format!("L{number}: {line}"),
    |number, line| format!("src/main.rs:{number}: {line}"),
];

fn least_indent(text: &str) -> &str {
    let solid = text.lines().filter(|line| !line.trim().is_empty());
    let indents = solid.map(|line| &line[..line.len() - line.trim_start().len()]);
    indents.min_by_key(|indent| indent.len()).unwrap_or_default()
}

/// Drops a case whose old text occurs in the file exactly.
fn inexact(case: Case) -> Option<Case> {
    (!case.file.contains(&case.old) && !case.old.trim().is_empty()).then_some(case)
}
