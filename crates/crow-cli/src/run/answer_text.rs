//! The model's answer: its text after the last tool call of a turn.

use crow_acp::AgentUpdate;

/// Bytes of an answer; the longest outputs of models are below a megabyte.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Follows the last text of an answer that was longer.
const TRUNCATION_NOTE: &str = "\n[the rest of the answer was dropped]";

/// Collects an answer from the updates of a turn.
#[derive(Debug, Default)]
pub(crate) struct AnswerText {
    text: String,
    is_truncated: bool,
}

impl AnswerText {
    /// Adds an update. Text before a call is not the answer.
    pub(crate) fn on_update(&mut self, update: &AgentUpdate) {
        match update {
            AgentUpdate::Text(text) => self.push(text),
            AgentUpdate::Call { title: Some(_), .. } => self.clear(),
            AgentUpdate::Call { title: None, .. }
            | AgentUpdate::Thought(_)
            | AgentUpdate::Notice(_)
            | AgentUpdate::Compaction(_)
            | AgentUpdate::Prompt(_)
            | AgentUpdate::Plan(_)
            | AgentUpdate::Child { .. }
            | AgentUpdate::Title(_)
            | AgentUpdate::Usage { .. }
            | AgentUpdate::Mode(_)
            | AgentUpdate::Options(_)
            | AgentUpdate::Commands(_)
            | AgentUpdate::CallOutput { .. }
            | AgentUpdate::CallResult { .. }
            | AgentUpdate::CallExit { .. }
            | AgentUpdate::Outcome(_) => {}
        }
    }

    /// Forgets the text.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the answer.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(self).text
    }

    fn push(&mut self, text: &str) {
        if self.is_truncated {
            return;
        }
        let room = ANSWER_BYTES_MAX.saturating_sub(self.text.len());
        let end = text.floor_char_boundary(room);
        self.text.push_str(&text[..end]);
        if end < text.len() {
            self.text.push_str(TRUNCATION_NOTE);
            self.is_truncated = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_is_the_text_after_the_last_call() {
        let call = |title: Option<&str>| AgentUpdate::Call {
            id: "1".into(),
            title: title.map(Into::into),
            kind: None,
            status: None,
            content: None,
            input: None,
        };
        let mut answer = AnswerText::default();
        let text = |text: &str| AgentUpdate::Text(text.into());
        for update in [text("I look."), call(Some("Read a")), text("It "), call(None), text("is.")] {
            answer.on_update(&update);
        }
        assert_eq!(answer.take(), "It is.");
        answer.on_update(&text(&"ä".repeat(ANSWER_BYTES_MAX)));
        answer.on_update(&text("more"));
        let long = answer.take();
        assert_eq!(long.len(), ANSWER_BYTES_MAX + TRUNCATION_NOTE.len());
        assert!(long.ends_with("ä\n[the rest of the answer was dropped]"));
        answer.on_update(&text("short"));
        assert_eq!(answer.take(), "short");
    }
}
