//! Documents refer to tests and messages that exist.

use std::{collections::HashSet, fs};

use proc_macro2::{TokenStream, TokenTree};

use super::{check, is_test, root, sources};

/// The table of messages with their remedies.
const ERRORS: &str = "docs/user/reference/errors.md";

/// Returns the names after `fn` at the beginning of lines.
fn function_names(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| {
        let (before, rest) = line.split_once("fn ")?;
        let name = rest.split_once('(')?.0;
        ["", "async ", "pub(super) ", "pub(super) async "].contains(&before.trim_start()).then_some(name)
    })
}

/// Checks that the last column of each row of the tables with this head names tests that exist.
#[track_caller]
fn check_tests_of_tables(document: &str, head: &str, n_rows_min: usize) {
    let text = fs::read_to_string(root().join(document)).expect("the document");
    let of_tests = sources().iter().filter(|(name, text)| is_test(name) || text.contains("#[cfg(test)]"));
    let functions: HashSet<&str> = of_tests.flat_map(|(_, text)| function_names(text)).collect();
    let tables = text.split(head).skip(1);
    let rows = tables.flat_map(|table| table.lines().skip(2).take_while(|line| line.starts_with('|')));
    let rows: Vec<&str> = rows.collect();
    assert!(rows.len() >= n_rows_min, "{document}: {} rows", rows.len());
    let mut broken = Vec::new();
    for row in rows {
        let tests = row.trim_end_matches(['|', ' ']).rsplit('|').next().expect("a last column");
        let missing = tests
            .split(',')
            .map(|test| test.trim().trim_matches('`'))
            .filter(|test| !functions.contains(test));
        broken.extend(missing.map(|test| format!("`{test}`: {row}")));
    }
    check("each row of the table names tests that exist", &broken);
}

#[test]
fn each_quirk_has_its_test() {
    check_tests_of_tables("docs/dev/model-quirks.md", "| server |", 41);
}

#[test]
fn each_promise_has_its_test() {
    check_tests_of_tables("docs/dev/promises.md", "| promise | tests", 13);
}

#[test]
fn each_defence_has_its_test() {
    check_tests_of_tables("docs/dev/threat-model.md", "| attempt | defence | tests", 40);
    check_tests_of_tables("docs/dev/threat-model.md", "| leak | defence | tests", 3);
}

/// Collects the string literals of a source, with `…` for each placeholder.
fn collect_literals(tokens: TokenStream, literals: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect_literals(group.stream(), literals),
            TokenTree::Literal(literal) => {
                let text = syn::parse_str::<syn::LitStr>(&literal.to_string());
                literals.extend(text.map(|text| with_ellipses(&text.value())));
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// Replaces the placeholders of a format string by `…`.
fn with_ellipses(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        result.push_str(&rest[..start]);
        rest = &rest[start..];
        if let Some(escaped) = rest.strip_prefix("{{") {
            result.push('{');
            rest = escaped;
        } else {
            result.push('…');
            rest = rest.split_once('}').map_or("", |(_, rest)| rest);
        }
    }
    result.push_str(rest);
    result.replace("}}", "}")
}

/// A document whose programs are files that are run by tests.
const PROGRAMS: &str = "docs/user/guides/programs.md";

#[test]
fn programs_of_the_guide_are_files() {
    let guide = fs::read_to_string(root().join(PROGRAMS)).expect("the guide");
    let programs: Vec<&str> = guide.split("<!-- file: ").skip(1).collect();
    assert_eq!(programs.len(), 3);
    let mut broken = Vec::new();
    for program in programs {
        let (name, rest) = program.split_once(" -->").expect("the end of a comment");
        let shown = rest.split("```").nth(1).and_then(|block| block.split_once('\n')).map(|(_, code)| code);
        if shown != Some(fs::read_to_string(root().join(name)).expect("a program").as_str()) {
            broken.push(name.to_owned());
        }
    }
    check("a program of the guide is the file that a test runs", &broken);
}

#[test]
fn errors_in_the_reference_are_printed_by_the_program() {
    let table = fs::read_to_string(root().join(ERRORS)).expect("the reference of errors");
    let mut printed = Vec::new();
    for (_, text) in sources().iter().filter(|(name, _)| name.contains("/src/") && !is_test(name)) {
        collect_literals(text.parse().expect("Rust"), &mut printed);
    }
    let mut broken = Vec::new();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    for row in rows.take_while(|row| !row.starts_with("| `session_not_found`")) {
        let cell = row.trim_start_matches("| ").split(" | ").next().expect("a first column");
        for message in cell.split('`').skip(1).step_by(2) {
            let message = ["error: ", "warning: ", "hint: "]
                .iter()
                .fold(message, |text, prefix| text.strip_prefix(prefix).unwrap_or(text));
            let pieces = message.split('…').map(|piece| piece.trim_matches([' ', ':', ',', '.', '"']));
            let missing: Vec<&str> =
                pieces.filter(|piece| !printed.iter().any(|text| text.contains(piece))).collect();
            if !missing.is_empty() {
                broken.push(format!("`{message}`: no source has {missing:?}"));
            }
        }
    }
    check("each message of the reference is one that is printed", &broken);
}
