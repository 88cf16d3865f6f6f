//! A question that the user answers by choosing or with free text. Knows nothing of the subject, and accepts no
//! choice that was not offered.

/// One question with its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElicitationForm {
    pub message: String,
    /// The choices, the recommended one first; labels are unique.
    pub options: Vec<ElicitationChoice>,
    /// Whether free text is an answer too.
    pub free_text: bool,
    pub subject: FormSubject,
}

/// The subject of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormSubject {
    /// A question of Crow or of its model.
    Question,
    /// Whether to trust repository content, which only a user who has seen it can answer.
    Trust,
    /// A request of an MCP server. The answer is for the server and is not repeated on the screen.
    McpServer,
}

impl ElicitationForm {
    /// Free text selects a direction; longer text belongs in a prompt.
    pub const ANSWER_CHARS_MAX: usize = 2_000;

    /// Returns free text as an answer, if that is permitted.
    pub fn free_text_answer<'a>(&self, text: &'a str) -> Option<&'a str> {
        let text = text.trim();
        let is_too_long = text.chars().nth(Self::ANSWER_CHARS_MAX).is_some();
        (self.free_text && !text.is_empty() && !is_too_long).then_some(text)
    }
}

/// One choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElicitationChoice {
    /// The label, which is also the answer.
    pub label: String,
    /// A description; empty if the label is enough.
    pub description: String,
}

/// The outcome of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitationOutcome {
    /// The label of a choice, or free text, which may be anything.
    Accepted(String),
    /// The user declined to answer.
    Declined,
    /// The form was closed without an answer, or the turn was cancelled.
    Cancelled,
    /// No user could be asked.
    Unavailable { reason: String },
}
