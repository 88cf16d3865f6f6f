//! A question that a person answers by choosing, or in words of their own. Knows nothing of what is asked, and takes
//! nothing for an answer that was not on offer.

use crow_core::SessionId;
use tokio_util::sync::CancellationToken;

use crate::outbox::{ANSWER_WAIT_MAX, Client};
use crate::v1;

/// One question with its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElicitationForm {
    /// What is asked.
    pub message: String,
    /// The answers on offer, the one to recommend first; each has a label of its own.
    pub options: Vec<ElicitationChoice>,
    /// Whether words of the person's own are an answer too.
    pub free_text: bool,
    /// Whether it is about using what a repository supplies, which only a person who has looked at it can answer.
    pub is_about_trust: bool,
}

impl ElicitationForm {
    /// Own words say which way to go; who wants to say more says it in a prompt.
    pub const ANSWER_CHARS_MAX: usize = 2_000;

    /// Takes words of the person's own, where such are an answer.
    pub fn free_text_answer<'a>(&self, said: &'a str) -> Option<&'a str> {
        let said = said.trim();
        let is_long = said.chars().nth(Self::ANSWER_CHARS_MAX).is_some();
        (self.free_text && !said.is_empty() && !is_long).then_some(said)
    }
}

/// One answer on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElicitationChoice {
    /// What the person chooses, and what the answer is.
    pub label: String,
    /// What comes of it; empty where the label says all.
    pub meaning: String,
}

/// What came of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitationOutcome {
    /// The label of a choice, or words of the person's own; these may be anything.
    Chosen(String),
    /// The person does not want to answer.
    Declined,
    /// It was closed without an answer, or the turn was stopped.
    Cancelled,
    /// Nobody could be asked.
    Nobody {
        /// Why not.
        why: String,
    },
}

impl Client {
    /// Has the person fill in a form, where the client has such; nothing is sent to one that has not.
    pub async fn elicit_form(
        &self,
        session: &SessionId,
        form: &ElicitationForm,
        cut: &CancellationToken,
    ) -> ElicitationOutcome {
        if !self.capabilities().forms {
            return ElicitationOutcome::Nobody { why: "the client has no forms".into() };
        }
        if form.options.is_empty() && !form.free_text {
            return ElicitationOutcome::Nobody { why: "the form has no answers".into() };
        }
        let answer = async {
            // What led to the question has to be there before it.
            self.flush_updates(session).await;
            self.send_request(v1::to_elicitation_request(session, form)).await
        };
        // A dropped request tells the client by itself that nobody waits any longer.
        tokio::select! {
            biased;
            () = cut.cancelled() => ElicitationOutcome::Cancelled,
            answered = tokio::time::timeout(ANSWER_WAIT_MAX, answer) => match answered {
                Ok(_) if self.is_gone() => ElicitationOutcome::Cancelled,
                Ok(answer) => v1::elicitation_outcome(answer, form),
                Err(_) => ElicitationOutcome::Nobody { why: "nobody answered for twelve hours".into() },
            },
        }
    }
}

#[cfg(test)]
mod tests;
