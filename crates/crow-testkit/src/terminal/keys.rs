//! Keys as the bytes that a terminal sends for them.
#![expect(clippy::panic, reason = "an unknown key is a mistake in the test")]

/// Returns the bytes of a key such as `enter`, `shift-tab` or `ctrl-o`; `None` if only the kitty protocol has some.
#[track_caller]
pub(super) fn encode_key(name: &str, has_kitty: bool) -> Option<String> {
    let mut rest = name;
    let mut modifiers = 0;
    for (prefix, bit) in [("shift-", 1), ("alt-", 2), ("ctrl-", 4)] {
        if let Some(without) = rest.strip_prefix(prefix) {
            (rest, modifiers) = (without, modifiers + bit);
        }
    }
    let letter = (rest.chars().count() == 1).then(|| rest.chars().next()).flatten();
    let code = match (rest, letter) {
        ("up", _) => return Some(encode_arrow('A', modifiers)),
        ("down", _) => return Some(encode_arrow('B', modifiers)),
        ("right", _) => return Some(encode_arrow('C', modifiers)),
        ("left", _) => return Some(encode_arrow('D', modifiers)),
        ("pageup", _) => return Some("\x1b[5~".to_owned()),
        ("pagedown", _) => return Some("\x1b[6~".to_owned()),
        ("enter", _) => '\r',
        ("tab", _) => '\t',
        ("esc", _) => '\x1b',
        ("backspace", _) => '\x7f',
        ("space", _) => ' ',
        (_, Some(letter)) => letter,
        (_, None) => panic!("there is no key {name}"),
    };
    let code_point = u32::from(code);
    Some(match (has_kitty, modifiers) {
        (true, 0) if code == '\x1b' => "\x1b[27u".to_owned(),
        (_, 0) => code.to_string(),
        (true, _) => format!("\x1b[{code_point};{}u", modifiers + 1),
        (false, 1) if code == '\t' => "\x1b[Z".to_owned(),
        (false, 2) => format!("\x1b{code}"),
        (false, 4) if code.is_ascii_alphabetic() => {
            char::from(code.to_ascii_lowercase() as u8 & 0x1f).to_string()
        }
        (false, _) => return None,
    })
}

fn encode_arrow(letter: char, modifiers: u32) -> String {
    match modifiers {
        0 => format!("\x1b[{letter}"),
        _ => format!("\x1b[1;{}{letter}", modifiers + 1),
    }
}
