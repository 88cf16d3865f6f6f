//! The hold-out in `holdout.txt`.

use super::*;

#[test]
fn nothing_in_the_hold_out_gets_past() {
    let (mut mode, mut rules) = (Mode::Ask, PermissionRules::default());
    let (mut wrong, mut part, mut n_lines) = (Vec::new(), String::new(), 0);
    for line in include_str!("holdout.txt").lines() {
        if line.is_empty() || line.starts_with('#') {
            part = line.to_owned();
            continue;
        }
        if let Some(law) = line.strip_prefix("@ ") {
            let (name, text) = law.split_once(' ').unwrap_or((law, ""));
            (mode, rules) = (Mode::parse(name).unwrap(), read_rules(text));
            continue;
        }
        let (expected, command) = line.split_once(" | ").unwrap();
        n_lines += 1;
        let verdict = judged(mode, &rules, &runs(&commands::written_out(command)), &GrantSet::default());
        if (verdict == PermissionDecision::Allow) != (expected == "free") {
            wrong.push(format!("{part} {line}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {n_lines}:\n{}", wrong.len(), wrong.join("\n"));
}
