//! Keys, as terminals report them. Releases are not reported.

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyPress {
    pub code: KeyCode,
    pub modifiers: KeyModifiers,
}

/// A key without modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyCode {
    /// A letter as typed: with Shift it is the capital, and `shift` is not set. With Ctrl it is lower case.
    Char(char),
    Enter,
    Tab,
    Backspace,
    Escape,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    /// The wheel of the mouse, on the alternate screen.
    WheelUp,
    WheelDown,
    Insert,
    Delete,
    /// A function key, from 1.
    Function(u8),
}

/// Modifiers that were held. A terminal without the kitty protocol reports Shift only with some keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct KeyModifiers {
    pub shift: bool,
    pub alt: bool,
    pub ctrl: bool,
}

impl KeyPress {
    /// Returns a key without modifiers.
    pub fn plain(code: KeyCode) -> Self {
        Self { code, modifiers: KeyModifiers::default() }
    }

    /// Returns a letter with Ctrl.
    pub fn ctrl(letter: char) -> Self {
        let modifiers = KeyModifiers { ctrl: true, ..KeyModifiers::default() };
        Self { code: KeyCode::Char(letter), modifiers }
    }

    /// Returns a key with Alt.
    pub fn alt(code: KeyCode) -> Self {
        Self { code, modifiers: KeyModifiers { alt: true, ..KeyModifiers::default() } }
    }

    /// Returns a key with Shift.
    pub fn shift(code: KeyCode) -> Self {
        Self { code, modifiers: KeyModifiers { shift: true, ..KeyModifiers::default() } }
    }
}
