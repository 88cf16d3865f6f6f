//! Documents that name tests and messages name ones that exist.

use std::fs;

use super::{check, is_test, root, sources};

#[test]
fn each_quirk_has_its_test() {
    let table = fs::read_to_string(root().join("docs/dev/model-quirks.md")).expect("the table of quirks");
    let (_, table) = table.split_once("| server |").expect("its head");
    let sources = sources();
    let is_there = |test: &str| {
        let line = format!("fn {test}(");
        sources.iter().any(|(name, text)| is_test(name) && text.contains(&line))
    };
    let mut broken = Vec::new();
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 40, "{} rows", rows.len());
    for row in rows {
        let tests = row.trim_end_matches(['|', ' ']).rsplit('|').next().expect("a last column");
        let missing: Vec<&str> = tests
            .split(',')
            .map(|test| test.trim().trim_matches('`'))
            .filter(|test| !is_there(test))
            .collect();
        broken.extend(missing.iter().map(|test| format!("`{test}`: {row}")));
    }
    check("each row of the table names tests that exist", &broken);
}
