//! What a terminal would still show of output: escape sequences acted on or dropped, a line that is drawn again
//! kept as it was last. Works on pieces cut anywhere, in bounded memory; knows nothing of processes.

/// A longer line is passed on in pieces; a progress bar is as wide as a screen.
const LINE_BYTES_MAX: usize = 4096;

/// A title or a link fits; what is longer was never ended, and hides no more than this.
const STRING_BYTES_MAX: usize = 4096;

/// No control sequence has more parameters than this.
const SEQUENCE_BYTES_MAX: usize = 64;

/// As wide as a screen may be moved over.
const COLUMNS_MAX: usize = 200;

/// How a zero byte is shown: it separates names, so it cannot just go, and many programs stop reading at it.
const NULL_SHOWN: &str = "␀";

const NULL: u8 = 0;
const BELL: u8 = 7;
const BACKSPACE: u8 = 8;
const ESCAPE: u8 = 0x1B;
const DELETE: u8 = 0x7F;

/// Turns what a program sends into what is left to read.
#[derive(Debug, Default)]
pub(crate) struct AnsiStripper {
    at: AnsiState,
    /// The line that may still be drawn again.
    line: Vec<u8>,
    /// The next letter is drawn over the line from its beginning.
    is_returned: bool,
    /// What the terminal is being told.
    told: Vec<u8>,
    /// The working directory that the terminal was told last.
    directory: Option<String>,
}

#[derive(Debug, Default, Clone, Copy)]
enum AnsiState {
    #[default]
    Text,
    /// After an escape.
    Escape,
    /// Before the one letter that says which letters are meant.
    Charset,
    /// Inside a control sequence.
    Sequence { n_bytes: usize, first: Option<usize>, is_first: bool },
    /// Inside a string for the terminal itself.
    String { n_bytes: usize },
}

impl AnsiStripper {
    /// Takes a piece in and gives out the lines that nothing changes any more.
    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while let Some((&first, rest)) = bytes.split_first() {
            let n_text = match self.at {
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

    /// Returns the working directory that the terminal was told last: an absolute path behind `ESC ] 7 ;`.
    pub(crate) fn directory(&self) -> Option<&str> {
        self.directory.as_deref()
    }

    /// Gives out the line that has no end yet.
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.line);
        self.is_returned = false;
    }

    /// The line that has no end yet.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    fn push_text(&mut self, text: &[u8], out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_returned) && text.first() != Some(&b'\n') {
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

    /// Takes one byte that is not just text; `false` when it has to be looked at again.
    fn push_control(&mut self, byte: u8, out: &mut Vec<u8>) -> bool {
        match self.at {
            AnsiState::Text => self.apply_control_char(byte, out),
            AnsiState::Charset => self.at = AnsiState::Text,
            AnsiState::Escape => {
                self.at = match byte {
                    b'[' => AnsiState::Sequence { n_bytes: 0, first: None, is_first: true },
                    b']' | b'P' | b'X' | b'^' | b'_' => {
                        self.told.clear();
                        AnsiState::String { n_bytes: 0 }
                    }
                    b'(' | b')' | b'*' | b'+' | b'#' | b'%' | b' ' => AnsiState::Charset,
                    ESCAPE => AnsiState::Escape,
                    _ => AnsiState::Text,
                };
            }
            AnsiState::String { n_bytes } => {
                self.at = match byte {
                    BELL => {
                        self.record_directory();
                        AnsiState::Text
                    }
                    // A backslash after it ends the string, and anything else begins something new.
                    ESCAPE => AnsiState::Escape,
                    _ if n_bytes >= STRING_BYTES_MAX => AnsiState::Text,
                    _ => {
                        self.told.push(byte);
                        AnsiState::String { n_bytes: n_bytes + 1 }
                    }
                };
            }
            AnsiState::Sequence { n_bytes, first, is_first } => match byte {
                b'0'..=b'9' if is_first && n_bytes < SEQUENCE_BYTES_MAX => {
                    let first =
                        first.unwrap_or(0).saturating_mul(10).saturating_add(usize::from(byte - b'0'));
                    self.at = AnsiState::Sequence { n_bytes: n_bytes + 1, first: Some(first), is_first };
                }
                0x20..=0x3F if n_bytes < SEQUENCE_BYTES_MAX => {
                    self.at = AnsiState::Sequence { n_bytes: n_bytes + 1, first, is_first: false };
                }
                0x40..=0x7E => {
                    self.at = AnsiState::Text;
                    self.apply_sequence(byte, first, out);
                }
                // No sequence after all.
                _ => {
                    self.at = AnsiState::Text;
                    return false;
                }
            },
        }
        true
    }

    fn record_directory(&mut self) {
        let directory = self.told.strip_prefix(b"7;").filter(|path| path.starts_with(b"/"));
        if let Some(directory) = directory {
            self.directory = Some(String::from_utf8_lossy(directory).into_owned());
        }
    }

    fn apply_control_char(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'\r' => self.is_returned = true,
            ESCAPE => self.at = AnsiState::Escape,
            NULL => self.push_text(NULL_SHOWN.as_bytes(), out),
            BACKSPACE => while self.line.pop().is_some_and(|byte| (0x80..0xC0).contains(&byte)) {},
            // The others ring, feed paper or mean nothing.
            _ => {}
        }
    }

    fn apply_sequence(&mut self, last: u8, first: Option<usize>, out: &mut Vec<u8>) {
        match (last, first.unwrap_or(0)) {
            (b'K', 1 | 2) => self.line.clear(),
            (b'K' | b'J', _) if self.is_returned => self.line.clear(),
            (b'G', 0 | 1) => self.is_returned = true,
            (b'C', n_columns) => self.push_text(" ".repeat(n_columns.clamp(1, COLUMNS_MAX)).as_bytes(), out),
            // The cursor goes elsewhere: what it left is a line of its own.
            (b'A' | b'B' | b'E' | b'F' | b'H' | b'd' | b'f', _) => {
                self.is_returned = false;
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
