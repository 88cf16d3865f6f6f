//! Questions to the user of a client: permission requests and forms. Each follows the updates that led to it, and ends
//! with its answer, its turn or its time.

use std::time::Duration;

use crow_core::SessionId;
use tokio_util::sync::CancellationToken;

use crate::connected_client::Client;
use crate::form::{ElicitationForm, ElicitationOutcome};
use crate::permission::{ChildPermissionRequest, PermissionAnswer, PermissionOutcome, PermissionRequest};
use crate::v1;

/// A question asked in the evening is answered in the morning; later answers do not come.
const USER_ANSWER_TIMEOUT: Duration = Duration::from_hours(12);

impl Client {
    /// Requests permission for a call.
    pub async fn request_permission(
        &self,
        session: &SessionId,
        question: PermissionRequest<'_>,
        cancel: &CancellationToken,
    ) -> PermissionOutcome {
        let answer = async {
            // The call must be visible before the question about it.
            self.flush_updates(session).await;
            let is_child = self.capabilities().tree_depth.is_some();
            self.send_request(v1::permission_request(session, question, is_child)).await
        };
        // Dropping the request cancels it at the client.
        tokio::select! {
            biased;
            () = cancel.cancelled() => PermissionOutcome::Cancelled,
            answered = tokio::time::timeout(USER_ANSWER_TIMEOUT, answer) => match answered {
                Ok(_) if self.is_gone() => PermissionOutcome::Cancelled,
                Ok(answer) => v1::permission_outcome(answer, question.offered_answers),
                Err(_) => PermissionOutcome::Unavailable { reason: "no answer within twelve hours".into() },
            },
        }
    }

    /// Sends a child's permission request to the user, in place of the call that started the child; `None` if the
    /// child no longer waits for the answer.
    pub async fn request_child_permission(
        &self,
        session: &SessionId,
        question: ChildPermissionRequest<'_>,
        cancel: &CancellationToken,
    ) -> Option<PermissionAnswer> {
        let answer = async {
            self.flush_updates(session).await;
            let is_child = self.capabilities().tree_depth.is_some();
            self.send_request(v1::child_permission_request(session, question, is_child)).await
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            answered = tokio::time::timeout(USER_ANSWER_TIMEOUT, answer) => match answered {
                Ok(_) if self.is_gone() => None,
                Ok(answer) => v1::child_permission_answer(answer, question.request),
                Err(_) => Some(PermissionAnswer::Unavailable { reason: "no answer within twelve hours".into() }),
            },
        }
    }

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
