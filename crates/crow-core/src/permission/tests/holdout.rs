//! The hold-out in `holdout.txt`.

use super::*;

#[test]
fn held_out_commands_are_not_free() {
    let (mut mode, mut rules) = (Mode::Ask, PermissionRules::default());
    let (mut wrong, mut part, mut n_lines) = (Vec::new(), String::new(), 0);
    for line in include_str!("holdout.txt").lines() {
        if line.is_empty() || line.starts_with('#') {
            part = line.to_owned();
            continue;
        }
        if let Some(policy) = line.strip_prefix("@ ") {
            let (name, text) = policy.split_once(' ').unwrap_or((policy, ""));
            (mode, rules) = (Mode::parse(name).unwrap(), read_rules(text));
            continue;
        }
        let (expected, command) = line.split_once(" | ").unwrap();
        n_lines += 1;
        let decision = decide(mode, &rules, &runs(&commands::written_out(command)), &GrantSet::default());
        if (decision == PermissionDecision::Allow) != (expected == "free") {
            wrong.push(format!("{part} {line}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {n_lines}:\n{}", wrong.len(), wrong.join("\n"));
}
