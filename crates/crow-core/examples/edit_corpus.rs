//! Runs the edit corpus on the files of a directory, and measures the longest refusal: `edit_corpus DIRECTORY
//! [FILES_MAX] [ROUNDS]`.

#![expect(clippy::print_stdout, reason = "it is a program, and this is what it says")]

#[path = "../tests/edit_corpus/harness/mod.rs"]
mod harness;

use std::{path::Path, process::ExitCode, time::Instant};

use crow_core::edit::{self, EditOccurrences};
use harness::{Promise, Source, read_folder, run, table};

/// Failures shown per kind of case; further ones of a kind repeat the first.
const SHOWN_MAX: usize = 3;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else {
        println!("usage: edit_corpus FOLDER [FILES_MAX] [ROUNDS]");
        return ExitCode::FAILURE;
    };
    let mut number =
        |otherwise: u64| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let (n_files, n_rounds) = (number(1_000), number(1));
    let sources = read_folder(Path::new(&folder), usize::try_from(n_files).unwrap_or(usize::MAX));
    let tallies = run(&sources, n_rounds);
    println!("{} files\n{}", sources.len(), table(&tallies));
    measure(&sources);
    let mut is_good = true;
    for (kind, tally) in &tallies {
        let is_kept = kind.promise != Promise::Refused || tally.n_landed() == 0;
        is_good &= tally.wrong.is_empty() && tally.off.is_empty() && is_kept;
        for shown in tally.wrong.iter().chain(&tally.off).take(SHOWN_MAX) {
            println!("{}: {shown}\n", kind.name);
        }
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The size of a large source file.
const FILE_BYTES: usize = 5 * 1024 * 1024;

/// Lines of a large old text.
const OLD_LINES: usize = 200;

/// Measures edits that match nothing, on files that slow down the search.
fn measure(sources: &[Source]) {
    let all: String = sources.iter().map(|source| source.text.as_str()).collect();
    let written = all.repeat(FILE_BYTES / all.len().max(1) + 1).chars().take(FILE_BYTES).collect::<String>();
    let of_lines = |line: &str| line.repeat(FILE_BYTES / line.len());
    let spread: String = written
        .lines()
        .step_by(written.lines().count() / OLD_LINES + 1)
        .map(|line| line.to_owned() + "\n")
        .collect();
    let all_but_last = |line: &str| line.repeat(OLD_LINES - 1) + "and no more";
    for (what, file, old) in [
        ("source code", written.clone(), spread.clone()),
        ("source code with an emoji in each line", written.replace('\n', "\u{1f426}\n"), spread),
        ("one short line over and over", of_lines("a\n"), all_but_last("a\n")),
        ("one blank line over and over", of_lines("\n") + "a", all_but_last("\n")),
        (
            "one line of words over and over",
            of_lines("let one = two + three;\n"),
            all_but_last("let one  = two + three;\n"),
        ),
        ("a single line", of_lines("let one = two; "), all_but_last("let one = two; ")),
    ] {
        let begun = Instant::now();
        let is_refused = edit::apply_edit(&file, &old, "new", EditOccurrences::One).is_err();
        let word = if is_refused { "refused" } else { "edited" };
        println!("{word} in {:>4} ms: {what}", begun.elapsed().as_millis());
    }
}
