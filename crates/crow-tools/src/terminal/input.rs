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

/// The keys as the parameter's description spells them. In lower case they are commands, such as `up` of a debugger.
const KEYS: &[(&str, &str)] = &[
    ("Enter", "\r"),
    ("Tab", "\t"),
    ("Esc", "\x1b"),
    ("Backspace", "\x7f"),
    ("Up", "\x1b[A"),
    ("Down", "\x1b[B"),
    ("Right", "\x1b[C"),
    ("Left", "\x1b[D"),
    ("Home", "\x1b[H"),
    ("End", "\x1b[F"),
    ("PageUp", "\x1b[5~"),
    ("PageDown", "\x1b[6~"),
];

const CONTROL_PREFIX: &str = "C-";

const INTERRUPT: u8 = 0x03;
const END_OF_INPUT: u8 = 0x04;
const SUSPEND: u8 = 0x1A;
const QUIT: u8 = 0x1C;

impl JobInput {
    /// Parses a model's input: exactly the name of a key is that key, anything else is a line.
    pub(super) fn parse(text: &str) -> Self {
        if let Some((_, sequence)) = KEYS.iter().find(|(key, _)| *key == text) {
            return Self::Key { bytes: sequence.as_bytes().to_vec(), only_stops: false, interrupts: false };
        }
        match text.strip_prefix(CONTROL_PREFIX).map(str::as_bytes) {
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
        assert_input("PageDown", "\x1b[6~", false);
    }

    #[test]
    fn words_that_are_no_names_of_keys_are_lines() {
        for line in ["up", "down", "end", "END", "home", "enter", "tab", "escape", "c-d", "C-D", "Escape"] {
            assert_input(line, &format!("{line}\r"), false);
        }
    }
}
