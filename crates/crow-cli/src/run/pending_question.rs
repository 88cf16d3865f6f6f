//! The question that stands on the screen, of whichever kind, and what the agent is told when it goes.

use std::io;

use crow_acp::{
    AgentPermissionRequest, ElicitationForm, ElicitationOutcome, PermissionAnswer, PermissionSubject,
};
use tokio::sync::oneshot;

use super::{
    form,
    plain::PaintMode,
    question::{self, OneTimeAnswer},
    typed_input,
};

/// A question that waits for the person; dropped, it tells the agent that nobody answers.
pub(super) enum PendingQuestion {
    /// Whether a call may run.
    Call { question: Box<AgentPermissionRequest>, answer: oneshot::Sender<PermissionAnswer> },
    /// Which way to go, or whether what a repository supplies may be used.
    Form { form: Box<ElicitationForm>, answer: oneshot::Sender<ElicitationOutcome> },
}

impl PendingQuestion {
    /// Tells whether a yes to everything is an answer to it.
    pub(super) fn is_covered_by_yes_flag(&self) -> bool {
        match self {
            Self::Call { question, .. } => match question.subject {
                PermissionSubject::Call | PermissionSubject::Offer => true,
                PermissionSubject::GoOn => false,
            },
            Self::Form { .. } => false,
        }
    }

    /// Tells whether the work suffers when nobody answers it.
    pub(super) fn is_required(&self) -> bool {
        match self {
            Self::Call { question, .. } => match question.subject {
                PermissionSubject::Call => true,
                PermissionSubject::Offer | PermissionSubject::GoOn => false,
            },
            Self::Form { .. } => false,
        }
    }

    /// Whether it is about using what a repository supplies.
    pub(super) fn is_about_trust(&self) -> bool {
        match self {
            Self::Call { .. } => false,
            Self::Form { form, .. } => form.is_about_trust,
        }
    }

    /// Says yes, where that is an answer.
    pub(super) fn allow(self) {
        match self {
            Self::Call { question, answer } => {
                send_choice(answer, question::find_one_time_choice(&question, OneTimeAnswer::Allow));
            }
            Self::Form { .. } => {}
        }
    }

    /// Tells the agent that there is nobody to ask.
    pub(super) fn answer_unavailable(self, reason: &'static str) {
        match self {
            Self::Call { answer, .. } => send_answer(answer, PermissionAnswer::Nobody { why: reason.into() }),
            Self::Form { answer, .. } => {
                send_answer(answer, ElicitationOutcome::Nobody { why: reason.into() })
            }
        }
    }

    /// Draws it.
    pub(super) fn render_lines(&self, paint: PaintMode) -> Vec<String> {
        match self {
            Self::Call { question, .. } => question::render_question(question, paint),
            Self::Form { form, .. } => form::render_form(form, paint),
        }
    }

    /// Shows which answers there are and where to type.
    pub(super) fn prompt_for_answer(&self) -> io::Result<()> {
        let answers = match self {
            Self::Call { question, .. } => question::describe_choices(question),
            Self::Form { form, .. } => form::describe_answers(form),
        };
        let mark = if answers.contains('\n') { "\n  ›" } else { " ›" };
        typed_input::write_prompt(&format!("  {answers}{mark} "))
    }

    /// Takes a line for an answer; gives the question back when it is none. The end of all lines is a no.
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

/// Waits until the agent waits for the answer no longer.
pub(super) async fn wait_until_withdrawn(pending: &mut Option<PendingQuestion>) {
    match pending {
        Some(PendingQuestion::Call { answer, .. }) => answer.closed().await,
        Some(PendingQuestion::Form { answer, .. }) => answer.closed().await,
        None => std::future::pending().await,
    }
}

/// Answers the agent. One without a fitting choice is not answered, which refuses.
fn send_choice(answer_sender: oneshot::Sender<PermissionAnswer>, id: Option<String>) {
    if let Some(id) = id {
        send_answer(answer_sender, PermissionAnswer::Chosen(id));
    }
}

fn send_answer<T>(answer_sender: oneshot::Sender<T>, value: T) {
    if answer_sender.send(value).is_err() {
        tracing::debug!("the agent no longer waits for the answer");
    }
}
