//! A program's output in pieces: text, and the control sequences that a terminal replies to or remembers.

use std::collections::BTreeSet;

/// Modes that a terminal has without being asked: wrapping, and a visible cursor.
const DEFAULT_MODES: [&str; 2] = ["7", "25"];

/// Divides output and remembers the modes that it sets.
#[derive(Debug, Default)]
pub(super) struct OutputScanner {
    /// The beginning of a sequence.
    open: Vec<u8>,
    /// Modes that are not as a terminal has them.
    changed_modes: BTreeSet<String>,
    n_kitty_pushed: usize,
    has_modified_keys: bool,
}

/// A piece of output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutputPiece {
    pub(super) bytes: Vec<u8>,
    pub(super) query: Option<TerminalQuery>,
}

/// A question to the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalQuery {
    CursorPosition,
    DeviceAttributes,
    KittyKeyboard,
    Version,
    Background,
}

impl OutputScanner {
    /// Returns the pieces of all that was written so far and not returned yet; a sequence whose end is missing waits.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<OutputPiece> {
        self.open.extend_from_slice(bytes);
        let open = std::mem::take(&mut self.open);
        let mut rest = open.as_slice();
        let mut pieces = Vec::new();
        while let Some(start) = rest.iter().position(|&byte| byte == 0x1b) {
            let (text, sequence) = rest.split_at(start);
            let Some(len) = sequence_len(sequence) else { break };
            let (sequence, after) = sequence.split_at(len);
            pieces.push(OutputPiece { bytes: text.to_vec(), query: None });
            let query = self.take_sequence(&String::from_utf8_lossy(sequence));
            pieces.push(OutputPiece { bytes: sequence.to_vec(), query });
            rest = after;
        }
        let text_len = rest.iter().position(|&byte| byte == 0x1b).unwrap_or(rest.len());
        pieces.push(OutputPiece { bytes: rest[..text_len].to_vec(), query: None });
        self.open = rest[text_len..].to_vec();
        pieces.retain(|piece| !piece.bytes.is_empty());
        pieces
    }

    fn take_sequence(&mut self, sequence: &str) -> Option<TerminalQuery> {
        match sequence {
            "\x1b[6n" => return Some(TerminalQuery::CursorPosition),
            "\x1b[c" => return Some(TerminalQuery::DeviceAttributes),
            "\x1b[?u" => return Some(TerminalQuery::KittyKeyboard),
            "\x1b[>0q" => return Some(TerminalQuery::Version),
            "\x1b]11;?\x1b\\" | "\x1b]11;?\x07" => return Some(TerminalQuery::Background),
            "\x1b[>1u" => self.n_kitty_pushed += 1,
            "\x1b[<u" => self.n_kitty_pushed = self.n_kitty_pushed.saturating_sub(1),
            "\x1b[>4;2m" => self.has_modified_keys = true,
            "\x1b[>4m" => self.has_modified_keys = false,
            _ => {}
        }
        let mode = sequence.strip_prefix("\x1b[?")?;
        let (mode, is_set) = match (mode.strip_suffix('h'), mode.strip_suffix('l')) {
            (Some(mode), _) => (mode, true),
            (None, Some(mode)) => (mode, false),
            (None, None) => return None,
        };
        if is_set == DEFAULT_MODES.contains(&mode) {
            self.changed_modes.remove(mode);
        } else {
            self.changed_modes.insert(mode.to_owned());
        }
        None
    }

    /// Whether a synchronized frame has begun and not ended.
    pub(super) fn is_in_frame(&self) -> bool {
        self.changed_modes.contains("2026")
    }

    /// Whether keys are encoded by the kitty protocol.
    pub(super) fn has_kitty(&self) -> bool {
        self.n_kitty_pushed > 0
    }

    /// The modes that are not as a terminal has them, by number; empty if the terminal is as before.
    pub(super) fn changed_modes(&self) -> String {
        let mut modes: Vec<String> = self.changed_modes.iter().cloned().collect();
        modes.extend((self.n_kitty_pushed > 0).then(|| format!("kitty×{}", self.n_kitty_pushed)));
        modes.extend(self.has_modified_keys.then(|| "modified keys".to_owned()));
        modes.join(" ")
    }
}

/// The length of the control sequence at the beginning, if its end is there.
fn sequence_len(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'[' => {
            let is_final = |byte: &u8| (0x40..=0x7e).contains(byte);
            bytes[2..].iter().position(is_final).map(|at| at + 3)
        }
        b']' | b'P' => {
            let bell = bytes.iter().position(|&byte| byte == 0x07).map(|at| at + 1);
            let terminator = bytes.windows(2).skip(2).position(|pair| pair == b"\x1b\\").map(|at| at + 4);
            bell.into_iter().chain(terminator).min()
        }
        _ => Some(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_found_wherever_the_output_is_split() {
        let output =
            "a\x1b[?2004h\x1b[>1ub\x1b[6n\x1b]11;?\x1b\\\x1b[?25l\x1b[?7lc\x1b]2;title\x1b\\\x1b[?7h";
        for split in 1..output.len() {
            let mut scanner = OutputScanner::default();
            let mut pieces = scanner.push(&output.as_bytes()[..split]);
            pieces.extend(scanner.push(&output.as_bytes()[split..]));
            let queries: Vec<TerminalQuery> = pieces.iter().filter_map(|piece| piece.query).collect();
            assert_eq!(queries, [TerminalQuery::CursorPosition, TerminalQuery::Background]);
            assert_eq!(scanner.changed_modes(), "2004 25 kitty×1");
            let bytes: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.bytes).collect();
            assert_eq!(bytes, output.as_bytes());
        }
    }
}
