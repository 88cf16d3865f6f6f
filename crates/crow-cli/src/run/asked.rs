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
    speak,
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
    pub(super) fn accepts_blanket_yes(&self) -> bool {
        match self {
            Self::Call { question, .. } => match question.subject {
                PermissionSubject::Call | PermissionSubject::Offer => true,
                PermissionSubject::GoOn => false,
            },
            Self::Form { .. } => false,
        }
    }

    /// Tells whether the work suffers when nobody answers it.
    pub(super) fn is_needed(&self) -> bool {
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
                send_choice(answer, question::find_one_time_choice(&question, OneTimeAnswer::Yes));
            }
            Self::Form { .. } => {}
        }
    }

    /// Tells the agent that there is nobody to ask.
    pub(super) fn answer_unavailable(self, why: &'static str) {
        match self {
            Self::Call { answer, .. } => send_answer(answer, PermissionAnswer::Nobody { why: why.into() }),
            Self::Form { answer, .. } => send_answer(answer, ElicitationOutcome::Nobody { why: why.into() }),
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
    pub(super) fn show_answers(&self) -> io::Result<()> {
        let answers = match self {
            Self::Call { question, .. } => question::describe_choices(question),
            Self::Form { form, .. } => form::describe_answers(form),
        };
        let place = if answers.contains('\n') { "\n  ›" } else { " ›" };
        speak::write_prompt(&format!("  {answers}{place} "))
    }

    /// Takes a line for an answer; gives the question back when it is none. The end of all lines is a no.
    pub(super) fn try_answer(self, typed: Option<&str>) -> io::Result<Option<Self>> {
        if typed.is_none() {
            speak::write_prompt("\n")?;
        }
        let again = match self {
            Self::Call { question, answer } => {
                let id = match typed {
                    None => question::find_one_time_choice(&question, OneTimeAnswer::No),
                    Some(typed) => question::parse_choice(&question, typed),
                };
                if id.is_some() || typed.is_none() {
                    send_choice(answer, id);
                    return Ok(None);
                }
                Self::Call { question, answer }
            }
            Self::Form { form, answer } => {
                let formed = match typed {
                    None => Some(ElicitationOutcome::Declined),
                    Some(typed) => form::parse_answer(&form, typed),
                };
                if let Some(formed) = formed {
                    send_answer(answer, formed);
                    return Ok(None);
                }
                Self::Form { form, answer }
            }
        };
        again.show_answers()?;
        Ok(Some(again))
    }
}

/// Waits until the agent waits for the answer no longer.
pub(super) async fn wait_until_withdrawn(asked: &mut Option<PendingQuestion>) {
    match asked {
        Some(PendingQuestion::Call { answer, .. }) => answer.closed().await,
        Some(PendingQuestion::Form { answer, .. }) => answer.closed().await,
        None => std::future::pending().await,
    }
}

/// Answers the agent. One without a fitting choice is not answered, which refuses.
fn send_choice(answer: oneshot::Sender<PermissionAnswer>, id: Option<String>) {
    if let Some(id) = id {
        send_answer(answer, PermissionAnswer::Chosen(id));
    }
}

fn send_answer<T>(answer: oneshot::Sender<T>, given: T) {
    if answer.send(given).is_err() {
        tracing::debug!("the agent no longer waits for the answer");
    }
}
