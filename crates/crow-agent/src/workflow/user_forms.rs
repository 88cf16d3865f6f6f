//! The questions of a step to the user, in forms of the client.

use std::sync::Arc;

use crow_acp::{Client, ElicitationChoice, ElicitationForm, ElicitationOutcome, FormSubject};
use crow_core::{SessionId, SessionUpdate};
use crow_workflow::{FormAnswer, QuestionForm, UserQuestions};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::runtime::AgentRuntime;

/// The forms of a session's client.
pub(super) struct UserForms {
    pub(super) runtime: Arc<AgentRuntime>,
    pub(super) client: Client,
    pub(super) session: SessionId,
}

impl UserQuestions for UserForms {
    fn ask_in_form<'a>(
        &'a self,
        form: QuestionForm,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, FormAnswer> {
        Box::pin(async move {
            if !self.client.capabilities().forms {
                return FormAnswer::Unavailable;
            }
            let options = form.options.into_iter();
            let choices =
                options.map(|option| ElicitationChoice { label: option.label, description: option.meaning });
            let form = ElicitationForm {
                message: form.message,
                options: choices.collect(),
                free_text: true,
                subject: FormSubject::Question,
            };
            match self.client.elicit_form(&self.session, &form, cancel).await {
                ElicitationOutcome::Accepted(text) => FormAnswer::Text(text),
                ElicitationOutcome::Declined => FormAnswer::Declined,
                ElicitationOutcome::Cancelled => FormAnswer::Cancelled,
                ElicitationOutcome::Unavailable { .. } => FormAnswer::Unavailable,
            }
        })
    }

    fn send_text(&self, text: &str) {
        let message = self.runtime.next_message_id();
        self.client.send_update(&self.session, SessionUpdate::Text { message, text: text.to_owned() });
    }
}
