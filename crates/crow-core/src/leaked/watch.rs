//! Looks for calls behind words: the tag that begins one, at the beginning of a line and outside of code.

/// What begins a call.
const CALL_TAG: &str = "<tool_call>";

/// What begins and ends code.
const FENCE: &str = "```";

/// More blanks than a line of words begins with.
const INDENT_LEN_MAX: usize = 256;

/// Words while they arrive.
#[derive(Debug, Default)]
pub(super) struct TextCallWatcher {
    /// The beginning of a line that may become something else.
    held: String,
    is_in_line: bool,
    is_in_code: bool,
}

/// What a text came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WatchOutcome {
    /// Words, all of them said or held.
    Words,
    /// A call begins with this text; what came before it is said.
    Call(String),
}

impl TextCallWatcher {
    /// Shows what waits.
    pub(super) fn pending_text(&self) -> &str {
        &self.held
    }

    /// Takes more; says the words of it.
    pub(super) fn feed(&mut self, text: &str, say: &mut impl FnMut(&str)) -> WatchOutcome {
        let text = std::mem::take(&mut self.held) + text;
        let mut at = 0;
        loop {
            if self.is_in_line {
                let Some(end) = text[at..].find('\n') else {
                    say(&text);
                    return WatchOutcome::Words;
                };
                at += end + 1;
                self.is_in_line = false;
            }
            let line = &text[at..];
            let words = line.trim_start_matches([' ', '\t']);
            // However the text is cut, what is indented further is only words.
            let begins = |mark: &str| {
                words.starts_with(mark) && line.len() - words.len() + mark.len() <= INDENT_LEN_MAX
            };
            if begins(CALL_TAG) && !self.is_in_code {
                say(&text[..at]);
                return WatchOutcome::Call(line.to_owned());
            }
            let is_open = CALL_TAG.starts_with(words) || FENCE.starts_with(words);
            if is_open && line.len() < INDENT_LEN_MAX {
                say(&text[..at]);
                self.held = line.to_owned();
                return WatchOutcome::Words;
            }
            self.is_in_code ^= begins(FENCE);
            self.is_in_line = true;
        }
    }
}
