//! The question on the screen and the answer the agent gets for it.

use std::io;

use crow_acp::{
    AgentPermissionRequest, ElicitationForm, ElicitationOutcome, FormSubject, PermissionAnswer,
    PermissionSubject,
};
use tokio::sync::oneshot;

use super::{
    form,
    plain::PaintMode,
    question::{self, OneTimeAnswer},
    typed_input,
};

/// A question that waits for the user. If dropped, the agent is told that it was not answered.
pub(super) enum PendingQuestion {
    /// Whether a call may run.
    Call { question: Box<AgentPermissionRequest>, answer: oneshot::Sender<PermissionAnswer> },
    /// A choice, or whether to use what a repository supplies.
    Form { form: Box<ElicitationForm>, answer: oneshot::Sender<ElicitationOutcome> },
}

impl PendingQuestion {
    /// Whether `-y` answers the question.
    pub(super) fn is_covered_by_yes_flag(&self) -> bool {
        match self {
            Self::Call { question, .. } => match question.subject {
                PermissionSubject::Call | PermissionSubject::Proposal => true,
                PermissionSubject::Continue => false,
            },
            Self::Form { .. } => false,
        }
    }

    /// Whether the turn depends on the answer.
    pub(super) fn is_required(&self) -> bool {
        match self {
            Self::Call { question, .. } => match question.subject {
                PermissionSubject::Call => true,
                PermissionSubject::Proposal | PermissionSubject::Continue => false,
            },
            Self::Form { .. } => false,
        }
    }

    /// Whether the question is about trust in a repository.
    pub(super) fn is_about_trust(&self) -> bool {
        match self {
            Self::Call { .. } => false,
            Self::Form { form, .. } => form.subject == FormSubject::Trust,
        }
    }

    /// Approves the call once.
    pub(super) fn allow(self) {
        match self {
            Self::Call { question, answer } => {
                send_choice(answer, question::find_one_time_choice(&question, OneTimeAnswer::Allow));
            }
            Self::Form { .. } => {}
        }
    }

    /// Answers that the user cannot be asked.
    pub(super) fn answer_unavailable(self, reason: &'static str) {
        match self {
            Self::Call { answer, .. } => {
                send_answer(answer, PermissionAnswer::Unavailable { reason: reason.into() });
            }
            Self::Form { answer, .. } => {
                send_answer(answer, ElicitationOutcome::Unavailable { reason: reason.into() });
            }
        }
    }

    /// Rejects with the agent's own option; without one the agent is told that its turn was cancelled.
    pub(super) fn reject(self) {
        match self {
            Self::Call { question, answer } => {
                if let Some(rejection) = question.reject() {
                    send_answer(answer, rejection);
                }
            }
            Self::Form { answer, .. } => send_answer(answer, ElicitationOutcome::Declined),
        }
    }

    pub(super) fn render_lines(&self, paint: PaintMode) -> Vec<String> {
        match self {
            Self::Call { question, .. } => question::render_question(question, paint),
            Self::Form { form, .. } => form::render_form(form, paint),
        }
    }

    /// Prints the possible answers and the input prompt.
    pub(super) fn prompt_for_answer(&self) -> io::Result<()> {
        let answers = match self {
            Self::Call { question, .. } => question::describe_choices(question),
            Self::Form { form, .. } => form::describe_answers(form),
        };
        let mark = if answers.contains('\n') { "\n  ›" } else { " ›" };
        typed_input::write_prompt(&format!("  {answers}{mark} "))
    }

    /// Reads a line as an answer; returns the question if it is none. The end of input rejects.
    pub(super) fn try_answer(self, line: Option<&str>) -> io::Result<Option<Self>> {
        if line.is_none() {
            typed_input::write_prompt("\n")?;
        }
        let pending = match self {
            Self::Call { question, answer } => {
                let id = match line {
                    None => question::find_one_time_choice(&question, OneTimeAnswer::Reject),
                    Some(typed) => question::parse_choice(&question, typed),
                };
                if id.is_some() || line.is_none() {
                    send_choice(answer, id);
                    return Ok(None);
                }
                Self::Call { question, answer }
            }
            Self::Form { form, answer } => {
                let outcome = match line {
                    None => Some(ElicitationOutcome::Declined),
                    Some(typed) => form::parse_answer(&form, typed),
                };
                if let Some(outcome) = outcome {
                    send_answer(answer, outcome);
                    return Ok(None);
                }
                Self::Form { form, answer }
            }
        };
        pending.prompt_for_answer()?;
        Ok(Some(pending))
    }
}

/// Waits until the agent no longer waits for the answer.
pub(super) async fn wait_until_withdrawn(pending: &mut Option<PendingQuestion>) {
    match pending {
        Some(PendingQuestion::Call { answer, .. }) => answer.closed().await,
        Some(PendingQuestion::Form { answer, .. }) => answer.closed().await,
        None => std::future::pending().await,
    }
}

/// Sends the chosen option. Without one, dropping the sender rejects the request.
fn send_choice(answer_sender: oneshot::Sender<PermissionAnswer>, id: Option<String>) {
    if let Some(id) = id {
        send_answer(answer_sender, PermissionAnswer::Selected(id));
    }
}

fn send_answer<T>(answer_sender: oneshot::Sender<T>, value: T) {
    if answer_sender.send(value).is_err() {
        tracing::debug!("the agent no longer waits for the answer");
    }
}
