//! Input of a job: a line of text, or one key by its name. Pure.

/// Input for a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JobInput {
    /// A text, followed by Enter.
    Line(String),
    Key {
        /// The bytes it sends.
        bytes: Vec<u8>,
        /// Whether it only interrupts, ends or suspends the program.
        only_stops: bool,
        /// Whether it interrupts the program.
        interrupts: bool,
    },
}

const KEYS: &[(&str, &str)] = &[
    ("enter", "\r"),
    ("tab", "\t"),
    ("esc", "\x1b"),
    ("escape", "\x1b"),
    ("backspace", "\x7f"),
    ("up", "\x1b[A"),
    ("down", "\x1b[B"),
    ("right", "\x1b[C"),
    ("left", "\x1b[D"),
    ("home", "\x1b[H"),
    ("end", "\x1b[F"),
    ("pageup", "\x1b[5~"),
    ("pagedown", "\x1b[6~"),
];

const CONTROL_PREFIXES: &[&str] = &["c-", "ctrl-", "ctrl+"];

const INTERRUPT: u8 = 0x03;
const END_OF_INPUT: u8 = 0x04;
const SUSPEND: u8 = 0x1A;
const QUIT: u8 = 0x1C;

impl JobInput {
    /// Parses a model's input: exactly the name of a key is that key, anything else is a line.
    pub(super) fn parse(text: &str) -> Self {
        let name = text.to_ascii_lowercase();
        if let Some((_, sequence)) = KEYS.iter().find(|(key, _)| *key == name) {
            return Self::Key { bytes: sequence.as_bytes().to_vec(), only_stops: false, interrupts: false };
        }
        let letter = CONTROL_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
        match letter.map(str::as_bytes) {
            Some(&[letter @ (b'a'..=b'z' | b'\\')]) => {
                let byte = letter & 0x1F;
                let only_stops = matches!(byte, INTERRUPT | END_OF_INPUT | SUSPEND | QUIT);
                Self::Key { bytes: vec![byte], only_stops, interrupts: byte == INTERRUPT }
            }
            Some(_) | None => Self::Line(text.to_owned()),
        }
    }

    /// The bytes to send. Enter is a carriage return on every terminal, within a text too.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Line(text) => {
                let text = text.strip_suffix('\n').unwrap_or(text);
                format!("{}\r", text.replace("\r\n", "\n").replace('\n', "\r")).into_bytes()
            }
            Self::Key { bytes, .. } => bytes.clone(),
        }
    }

    /// The number of bytes that the terminal echoes.
    pub(super) fn n_echoed(&self) -> u64 {
        match self {
            Self::Line(_) => self.to_bytes().len() as u64,
            // Echoed as ^C.
            Self::Key { bytes, .. } => 2 * bytes.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_input(text: &str, sent: &str, stops: bool) {
        let input = JobInput::parse(text);
        assert_eq!(String::from_utf8_lossy(&input.to_bytes()), sent);
        assert_eq!(matches!(input, JobInput::Key { only_stops: true, .. }), stops);
    }

    #[test]
    fn keys_and_lines_are_parsed() {
        assert_input("C-c", "\x03", true);
        assert_input("ctrl+C", "\x03", true);
        assert_input("C-d", "\x04", true);
        assert_input("C-z", "\x1a", true);
        assert_input("C-\\", "\x1c", true);
        assert_input("C-r", "\x12", false);
        assert_input("Enter", "\r", false);
        assert_input("Up", "\x1b[A", false);
        assert_input("C-cc", "C-cc\r", false);
        assert_input("C-", "C-\r", false);
        assert_input("C-ö", "C-ö\r", false);
        assert_input("print(1)", "print(1)\r", false);
        assert_input("two\nlines\n", "two\rlines\r", false);
        assert_input("two\r\nlines", "two\rlines\r", false);
        assert_input(" up", " up\r", false);
    }
}
