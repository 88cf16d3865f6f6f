//! A question that the user answers by choosing or with free text. Knows nothing of the subject, and accepts no
//! choice that was not offered.

use crow_core::SessionId;
use tokio_util::sync::CancellationToken;

use crate::outbox::{Client, USER_ANSWER_TIMEOUT};
use crate::v1;

/// One question with its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElicitationForm {
    pub message: String,
    /// The choices, the recommended one first; labels are unique.
    pub options: Vec<ElicitationChoice>,
    /// Whether free text is an answer too.
    pub free_text: bool,
    /// Whether it asks to trust repository content, which only a user who has seen it can answer.
    pub is_about_trust: bool,
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

impl Client {
    /// Shows a form to the user, if the client supports forms; otherwise nothing is sent.
    pub async fn elicit_form(
        &self,
        session: &SessionId,
        form: &ElicitationForm,
        cancel: &CancellationToken,
    ) -> ElicitationOutcome {
        if !self.capabilities().forms {
            return ElicitationOutcome::Unavailable { reason: "the client does not support forms".into() };
        }
        if form.options.is_empty() && !form.free_text {
            return ElicitationOutcome::Unavailable { reason: "the form has no answers".into() };
        }
        let answer = async {
            // The updates that led to the question precede it.
            self.flush_updates(session).await;
            self.send_request(v1::to_elicitation_request(session, form)).await
        };
        // Dropping the request cancels it at the client.
        tokio::select! {
            biased;
            () = cancel.cancelled() => ElicitationOutcome::Cancelled,
            answered = tokio::time::timeout(USER_ANSWER_TIMEOUT, answer) => match answered {
                Ok(_) if self.is_gone() => ElicitationOutcome::Cancelled,
                Ok(answer) => v1::elicitation_outcome(answer, form),
                Err(_) => ElicitationOutcome::Unavailable { reason: "no answer within twelve hours".into() },
            },
        }
    }
}

#[cfg(test)]
mod tests;
