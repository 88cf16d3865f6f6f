//! How often a person is asked about lines that are written all day.

use super::*;

/// The lines of the corpus, and whether they only read.
fn lines() -> impl Iterator<Item = (String, bool)> {
    let lines = include_str!("everyday.txt").lines().filter(|line| !line.starts_with("# "));
    lines.map(|line| {
        let (kind, line) = line.split_once(" | ").unwrap();
        (line.replace('⏎', "\n"), kind == "reads")
    })
}

#[test]
fn reading_is_free_in_every_mode_and_nothing_else_is_in_plan() {
    let mut wrong = Vec::new();
    for (line, reads) in lines() {
        for mode in Mode::ALL {
            let is_free = judged(mode, &Rules::default(), &runs(&line), &Grants::default()) == Verdict::Allow;
            if is_free != (reads || mode == Mode::Auto) {
                wrong.push(format!("{}: {line}", mode.as_str()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn questions_are_counted() {
    let rules = read_rules("deny: rm -rf, git push --force, path(**/*.lock)");
    let mut table = String::new();
    for (name, mode, rules) in [
        ("ask", Mode::Ask, &Rules::default()),
        ("accept-edits", Mode::AcceptEdits, &Rules::default()),
        ("plan", Mode::Plan, &Rules::default()),
        ("auto", Mode::Auto, &Rules::default()),
        ("auto with deny rules", Mode::Auto, &rules),
    ] {
        let (mut n_asked, mut n_refused, mut n_lines) = (0, 0, 0);
        for (line, _) in lines() {
            n_lines += 1;
            match judged(mode, rules, &runs(&line), &Grants::default()) {
                Verdict::Allow => {}
                Verdict::Ask { .. } => n_asked += 1,
                Verdict::Deny(_) => n_refused += 1,
            }
        }
        table += &format!("{name}: {n_asked} asked, {n_refused} refused of {n_lines}\n");
    }
    expect![[r#"
        ask: 102 asked, 0 refused of 227
        accept-edits: 102 asked, 0 refused of 227
        plan: 0 asked, 102 refused of 227
        auto: 0 asked, 0 refused of 227
        auto with deny rules: 3 asked, 1 refused of 227
    "#]]
    .assert_eq(&table);
}
