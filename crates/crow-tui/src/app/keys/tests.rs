use std::collections::HashMap;

use super::*;

#[test]
fn key_has_one_action_in_a_context() {
    let mut seen: HashMap<(KeyContext, &str), KeyAction> = HashMap::new();
    let mut conflicts = Vec::new();
    for binding in all_bindings() {
        for keys in binding.keys {
            if let Some(other) = seen.insert((binding.context, keys), binding.action) {
                conflicts.push(format!("{:?} {keys}: {other:?} and {:?}", binding.context, binding.action));
            }
            // A key cannot be an action and the beginning of another one.
            if let Some((first, _)) = keys.split_once(' ') {
                let is_bound = all_bindings()
                    .any(|other| other.context == binding.context && other.keys.contains(&first));
                conflicts.extend(is_bound.then(|| format!("{:?} {first} begins {keys}", binding.context)));
            }
        }
    }
    assert!(conflicts.is_empty(), "{conflicts:#?}");
}

#[test]
fn every_key_of_the_table_has_a_name_that_a_terminal_can_send() {
    let parts = all_bindings().flat_map(|binding| binding.keys).flat_map(|keys| keys.split(' '));
    for part in parts {
        let key = parse_key(part);
        assert_eq!(key_name(&key), part);
    }
}

#[test]
fn sequences_are_found_by_their_prefix() {
    let contexts = [KeyContext::Idle, KeyContext::Composer, KeyContext::Anywhere];
    let lookups = [
        find_action(&contexts, None, "ctrl-x"),
        find_action(&contexts, Some("ctrl-x"), "ctrl-e"),
        find_action(&contexts, Some("ctrl-x"), "e"),
        find_action(&contexts, None, "esc"),
        find_action(&contexts, Some("esc"), "esc"),
        find_action(&contexts[1..], None, "esc"),
    ];
    let expected = [
        KeyLookup::Prefix,
        KeyLookup::Action { context: KeyContext::Composer, action: KeyAction::OpenEditor },
        KeyLookup::Unbound,
        KeyLookup::Prefix,
        KeyLookup::Action { context: KeyContext::Idle, action: KeyAction::GoBack },
        KeyLookup::Unbound,
    ];
    assert_eq!(lookups, expected);
}

#[test]
fn documentation_has_every_key() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/user/guides/terminal.md");
    let guide = std::fs::read_to_string(path).expect("the guide");
    let row = |binding: &KeyBinding| {
        let keys: Vec<String> = binding.keys.iter().map(|keys| format!("`{keys}`")).collect();
        format!("| {} | {} |", keys.join(", "), binding.help)
    };
    let missing: Vec<String> = all_bindings().map(row).filter(|row| !guide.contains(row.as_str())).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Parses the name of a key.
pub(crate) fn parse_key(name: &str) -> KeyPress {
    let mut modifiers = crate::screen::KeyModifiers::default();
    let mut rest = name;
    while let Some((modifier, after)) = rest.split_once('-').filter(|(_, after)| !after.is_empty()) {
        match modifier {
            "ctrl" => modifiers.ctrl = true,
            "alt" => modifiers.alt = true,
            "shift" => modifiers.shift = true,
            _ => panic!("{name}"),
        }
        rest = after;
    }
    let code = match rest {
        "space" => KeyCode::Char(' '),
        "enter" => KeyCode::Enter,
        "tab" => KeyCode::Tab,
        "backspace" => KeyCode::Backspace,
        "esc" => KeyCode::Escape,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        "delete" => KeyCode::Delete,
        "wheelup" => KeyCode::WheelUp,
        "wheeldown" => KeyCode::WheelDown,
        _ => KeyCode::Char(rest.chars().next().expect("a letter")),
    };
    KeyPress { code, modifiers }
}
