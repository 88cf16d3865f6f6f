//! Terminal output as plain text: escape sequences are applied or dropped, and a redrawn line is kept in its last
//! state. Works on pieces split anywhere, in bounded memory; knows nothing of processes.

/// A longer line is passed on in pieces; a progress bar is as wide as a screen.
const LINE_BYTES_MAX: usize = 4096;

/// A title or a link fits; longer strings were never terminated, and hide no more than this.
const STRING_BYTES_MAX: usize = 4096;

/// No control sequence has more parameters than this.
const SEQUENCE_BYTES_MAX: usize = 64;

/// The cursor moves at most a screen's width.
const COLUMNS_MAX: usize = 200;

/// The replacement of a zero byte: it separates names, so it cannot be dropped, and many programs stop reading at it.
const NULL_SYMBOL: &str = "␀";

const NULL: u8 = 0;
const BELL: u8 = 7;
const BACKSPACE: u8 = 8;
const ESCAPE: u8 = 0x1B;
const DELETE: u8 = 0x7F;

/// Converts terminal output to readable text.
#[derive(Debug, Default)]
pub(crate) struct AnsiStripper {
    state: AnsiState,
    /// The line that may still be redrawn.
    line: Vec<u8>,
    /// The next letter overwrites the line from its beginning.
    overwrites_line: bool,
    /// The string for the terminal that is being received.
    escape_string: Vec<u8>,
    /// The working directory that the terminal was last told.
    cwd: Option<String>,
}

#[derive(Debug, Default, Clone, Copy)]
enum AnsiState {
    #[default]
    Text,
    /// After an escape.
    Escape,
    /// Before the letter that selects a character set.
    Charset,
    /// Inside a control sequence.
    Sequence { n_bytes: usize, first_parameter: Option<usize>, is_in_first_parameter: bool },
    /// Inside a string for the terminal itself.
    String { n_bytes: usize },
}

impl AnsiStripper {
    /// Takes a piece and appends the lines that can no longer change to `out`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while let Some((&first, rest)) = bytes.split_first() {
            let n_text = match self.state {
                AnsiState::Text => bytes.iter().position(|&byte| is_special(byte)).unwrap_or(bytes.len()),
                AnsiState::Escape
                | AnsiState::Charset
                | AnsiState::Sequence { .. }
                | AnsiState::String { .. } => 0,
            };
            if n_text > 0 {
                self.push_text(&bytes[..n_text], out);
                bytes = &bytes[n_text..];
            } else if self.push_control(first, out) {
                bytes = rest;
            }
        }
    }

    /// Returns the working directory that the terminal was last told: an absolute path after `ESC ] 7 ;`.
    pub(crate) fn cwd(&self) -> Option<&str> {
        self.cwd.as_deref()
    }

    /// Appends the unfinished line to `out`.
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.line);
        self.overwrites_line = false;
    }

    /// The unfinished line.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    fn push_text(&mut self, text: &[u8], out: &mut Vec<u8>) {
        if std::mem::take(&mut self.overwrites_line) && text.first() != Some(&b'\n') {
            self.line.clear();
        }
        let n_ended = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if n_ended > 0 {
            out.append(&mut self.line);
            out.extend_from_slice(&text[..n_ended]);
        }
        self.line.extend_from_slice(&text[n_ended..]);
        if self.line.len() > LINE_BYTES_MAX {
            out.append(&mut self.line);
        }
    }

    /// Handles one control byte; `false` if it must be handled again.
    #[expect(clippy::too_many_lines, reason = "a table of control bytes")]
    fn push_control(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        match self.state {
            AnsiState::Text => self.apply_control_char(byte, out),
            AnsiState::Charset => self.state = AnsiState::Text,
            AnsiState::Escape => {
                self.state = match byte {
                    b'[' => {
                        AnsiState::Sequence { n_bytes: 0, first_parameter: None, is_in_first_parameter: true }
                    }
                    b']' | b'P' | b'X' | b'^' | b'_' => {
                        self.escape_string.clear();
                        AnsiState::String { n_bytes: 0 }
                    }
                    b'(' | b')' | b'*' | b'+' | b'#' | b'%' | b' ' => AnsiState::Charset,
                    ESCAPE => AnsiState::Escape,
                    _ => AnsiState::Text,
                };
            }
            AnsiState::String { n_bytes } => {
                self.state = match byte {
                    BELL => {
                        self.record_directory();
                        AnsiState::Text
                    }
                    // A backslash after it ends the string, and anything else begins a new sequence.
                    ESCAPE => AnsiState::Escape,
                    _ if n_bytes >= STRING_BYTES_MAX => AnsiState::Text,
                    _ => {
                        self.escape_string.push(byte);
                        AnsiState::String { n_bytes: n_bytes + 1 }
                    }
                };
            }
            AnsiState::Sequence { n_bytes, first_parameter, is_in_first_parameter } => match byte {
                b'0'..=b'9' if is_in_first_parameter && n_bytes < SEQUENCE_BYTES_MAX => {
                    let first_parameter = first_parameter
                        .unwrap_or(0)
                        .saturating_mul(10)
                        .saturating_add(usize::from(byte - b'0'));
                    self.state = AnsiState::Sequence {
                        n_bytes: n_bytes + 1,
                        first_parameter: Some(first_parameter),
                        is_in_first_parameter,
                    };
                }
                0x20..=0x3F if n_bytes < SEQUENCE_BYTES_MAX => {
                    self.state = AnsiState::Sequence {
                        n_bytes: n_bytes + 1,
                        first_parameter,
                        is_in_first_parameter: false,
                    };
                }
                0x40..=0x7E => {
                    self.state = AnsiState::Text;
                    self.apply_sequence(byte, first_parameter, out);
                }
                // Not a sequence.
                _ => {
                    self.state = AnsiState::Text;
                    return false;
                }
            },
        }
        true
    }

    fn record_directory(&mut self) {
        let cwd = self.escape_string.strip_prefix(b"7;").filter(|path| path.starts_with(b"/"));
        if let Some(cwd) = cwd {
            self.cwd = Some(String::from_utf8_lossy(cwd).into_owned());
        }
    }

    fn apply_control_char(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'\r' => self.overwrites_line = true,
            ESCAPE => self.state = AnsiState::Escape,
            NULL => self.push_text(NULL_SYMBOL.as_bytes(), out),
            BACKSPACE => while self.line.pop().is_some_and(|byte| (0x80..0xC0).contains(&byte)) {},
            // The others ring, feed paper or mean nothing.
            _ => {}
        }
    }

    fn apply_sequence(&mut self, last: u8, first_parameter: Option<usize>, out: &mut Vec<u8>) {
        match (last, first_parameter.unwrap_or(0)) {
            (b'K', 1 | 2) => self.line.clear(),
            (b'K' | b'J', _) if self.overwrites_line => self.line.clear(),
            (b'G', 0 | 1) => self.overwrites_line = true,
            (b'C', n_columns) => self.push_text(" ".repeat(n_columns.clamp(1, COLUMNS_MAX)).as_bytes(), out),
            // The cursor moves elsewhere: what it left is a line of its own.
            (b'A' | b'B' | b'E' | b'F' | b'H' | b'd' | b'f', _) => {
                self.overwrites_line = false;
                if !self.line.is_empty() {
                    out.append(&mut self.line);
                    out.push(b'\n');
                }
            }
            _ => {}
        }
    }
}

fn is_special(byte: u8) -> bool {
    (byte < b' ' && byte != b'\n' && byte != b'\t') || byte == DELETE
}

#[cfg(test)]
mod tests;
