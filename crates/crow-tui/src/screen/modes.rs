//! Modes of the terminal that the program turns on, and the one sequence that turns them off again: at the end, before
//! an editor, and when the program panics or a signal ends it.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering},
};

/// Ends a synchronized frame and resets wrapping, pastes, focus, style, link, cursor and title.
const RESET: &str = "\x1b[?2026l\x1b[?7h\x1b[?2004l\x1b[?1004l\x1b[0m\x1b]8;;\x1b\\\x1b[?25h\x1b[23;2t";

/// Turns reports of the mouse off.
pub(super) const IGNORE_WHEEL: &str = "\x1b[?1006l\x1b[?1000l";

const POP_KITTY: &str = "\x1b[<u";

/// The modes that are on. Clones share them, so that a panic hook and a signal handler restore what is on at that time.
#[derive(Debug, Clone, Default)]
pub struct ScreenModes(Arc<ModeState>);

#[derive(Debug, Default)]
struct ModeState {
    flags: AtomicU16,
    /// Rows of the live region below the cursor.
    n_rows_below: AtomicU16,
}

/// A mode that must not be turned off unless it was turned on.
#[derive(Debug, Clone, Copy)]
pub(super) enum ModeFlag {
    /// Anything was written: without it there is nothing to restore.
    Active = 1,
    /// Flags of the kitty keyboard protocol are pushed; each screen has its own stack.
    KittyPushed = 2,
    Fullscreen = 4,
    KittyPushedFullscreen = 8,
    ModifiedKeys = 16,
    /// The wheel of the mouse is reported.
    Wheel = 32,
}

impl ScreenModes {
    pub(super) fn set(&self, flag: ModeFlag) {
        self.0.flags.fetch_or(flag as u16, Ordering::SeqCst);
    }

    pub(super) fn clear(&self, flag: ModeFlag) {
        self.0.flags.fetch_and(!(flag as u16), Ordering::SeqCst);
    }

    pub(super) fn is_set(&self, flag: ModeFlag) -> bool {
        self.0.flags.load(Ordering::SeqCst) & flag as u16 != 0
    }

    pub(super) fn set_rows_below(&self, n_rows: u16) {
        self.0.n_rows_below.store(n_rows, Ordering::SeqCst);
    }

    /// Returns the sequence that restores the terminal, and forgets the modes: a second call has nothing to do. The
    /// cursor ends in the row below the live region.
    pub fn take_restore_sequence(&self) -> String {
        let flags = self.0.flags.swap(0, Ordering::SeqCst);
        let is_on = |flag: ModeFlag| flags & flag as u16 != 0;
        if flags == 0 {
            return String::new();
        }
        let mut sequence = RESET.to_owned();
        if is_on(ModeFlag::ModifiedKeys) {
            sequence.push_str("\x1b[>4m");
        }
        if is_on(ModeFlag::Wheel) {
            sequence.push_str(IGNORE_WHEEL);
        }
        if is_on(ModeFlag::KittyPushedFullscreen) {
            sequence.push_str(POP_KITTY);
        }
        if is_on(ModeFlag::Fullscreen) {
            sequence.push_str("\x1b[?1049l");
        }
        if is_on(ModeFlag::KittyPushed) {
            sequence.push_str(POP_KITTY);
        }
        for _ in 0..=self.0.n_rows_below.swap(0, Ordering::SeqCst) {
            sequence.push_str("\r\n");
        }
        sequence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_modes_that_are_on_are_popped() {
        let modes = ScreenModes::default();
        assert_eq!(modes.take_restore_sequence(), "");
        modes.set(ModeFlag::Active);
        let plain = modes.take_restore_sequence();
        assert!(!plain.contains("1049") && !plain.contains(POP_KITTY), "{plain:?}");
        assert!(plain.contains("\x1b[23;2t"), "the window has its old title: {plain:?}");
        let shared = modes.clone();
        shared.set(ModeFlag::Fullscreen);
        shared.set(ModeFlag::KittyPushedFullscreen);
        shared.set_rows_below(1);
        let full = modes.take_restore_sequence();
        assert!(full.ends_with("\x1b[<u\x1b[?1049l\r\n\r\n"), "{full:?}");
        assert_eq!(shared.take_restore_sequence(), "");
    }
}
