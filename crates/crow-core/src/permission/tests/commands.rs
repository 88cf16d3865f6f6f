//! The table of commands in `commands.txt`.

use super::*;

/// Renders a decision.
fn spelled(decision: &PermissionDecision) -> &'static str {
    match decision {
        PermissionDecision::Allow => "allow",
        PermissionDecision::Ask { offer, .. } if offer.session.is_empty() => "each",
        PermissionDecision::Ask { .. } => "ask",
        PermissionDecision::Deny(_) => "deny",
    }
}

/// A command with visible control characters.
pub(super) fn written_out(command: &str) -> String {
    command.replace('⏎', "\n").replace('␍', "\r").replace('␀', "\0").replace('⇥', "\t").replace('⍽', "\u{a0}")
}

#[test]
fn command_table_matches() {
    let (mut mode, mut rules) = (Mode::Ask, PermissionRules::default());
    let (mut wrong, mut n_commands) = (Vec::new(), 0);
    for (place, line) in include_str!("commands.txt").lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(policy) = line.strip_prefix("@ ") {
            let (name, text) = policy.split_once(' ').unwrap_or((policy, ""));
            (mode, rules) = (Mode::parse(name).unwrap(), read_rules(text));
            continue;
        }
        let (expected, command) = line.split_once(" | ").unwrap();
        n_commands += 1;
        let decision = decide(mode, &rules, &runs(&written_out(command)), &GrantSet::default());
        if spelled(&decision) != expected.trim() {
            wrong.push(format!("{}: {line}\n    {decision:?}", place + 1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_commands >= 220, "only {n_commands} commands");
}
