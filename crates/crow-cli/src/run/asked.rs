//! The question that stands on the screen, of whichever kind, and what the agent is told when it goes.

use std::io;

use crow_acp::{Form, Formed, PermissionAnswer, PermissionQuestion, Subject};
use tokio::sync::oneshot;

use super::{
    form,
    plain::Paint,
    question::{self, Allows},
    speak,
};

/// A question that waits for the person; dropped, it tells the agent that nobody answers.
pub(super) enum Asked {
    /// Whether a call may run.
    Call { question: Box<PermissionQuestion>, answer: oneshot::Sender<PermissionAnswer> },
    /// Which way to go, or whether what a repository supplies may be used.
    Form { form: Box<Form>, answer: oneshot::Sender<Formed> },
}

impl Asked {
    /// Tells whether a yes to everything is an answer to it.
    pub(super) fn takes_any_yes(&self) -> bool {
        match self {
            Self::Call { question, .. } => match question.subject {
                Subject::Call | Subject::Offer => true,
                Subject::GoOn => false,
            },
            Self::Form { .. } => false,
        }
    }

    /// Tells whether the work suffers when nobody answers it.
    pub(super) fn is_needed(&self) -> bool {
        match self {
            Self::Call { question, .. } => match question.subject {
                Subject::Call => true,
                Subject::Offer | Subject::GoOn => false,
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
            Self::Call { question, answer } => reply(answer, question::once(&question, Allows::Yes)),
            Self::Form { .. } => {}
        }
    }

    /// Tells the agent that there is nobody to ask.
    pub(super) fn give_up(self, why: &'static str) {
        match self {
            Self::Call { answer, .. } => give(answer, PermissionAnswer::Nobody { why: why.into() }),
            Self::Form { answer, .. } => give(answer, Formed::Nobody { why: why.into() }),
        }
    }

    /// Draws it.
    pub(super) fn lines(&self, paint: Paint) -> Vec<String> {
        match self {
            Self::Call { question, .. } => question::lines(question, paint),
            Self::Form { form, .. } => form::lines(form, paint),
        }
    }

    /// Shows which answers there are and where to type.
    pub(super) fn mark_answers(&self) -> io::Result<()> {
        let answers = match self {
            Self::Call { question, .. } => question::answers(question),
            Self::Form { form, .. } => form::answers(form),
        };
        let place = if answers.contains('\n') { "\n  ›" } else { " ›" };
        speak::mark(&format!("  {answers}{place} "))
    }

    /// Takes a line for an answer; gives the question back when it is none. The end of all lines is a no.
    pub(super) fn answered(self, typed: Option<&str>) -> io::Result<Option<Self>> {
        if typed.is_none() {
            speak::mark("\n")?;
        }
        let again = match self {
            Self::Call { question, answer } => {
                let id = match typed {
                    None => question::once(&question, Allows::No),
                    Some(typed) => question::chosen(&question, typed),
                };
                if id.is_some() || typed.is_none() {
                    reply(answer, id);
                    return Ok(None);
                }
                Self::Call { question, answer }
            }
            Self::Form { form, answer } => {
                let formed = match typed {
                    None => Some(Formed::Declined),
                    Some(typed) => form::formed(&form, typed),
                };
                if let Some(formed) = formed {
                    give(answer, formed);
                    return Ok(None);
                }
                Self::Form { form, answer }
            }
        };
        again.mark_answers()?;
        Ok(Some(again))
    }
}

/// Waits until the agent waits for the answer no longer.
pub(super) async fn withdrawn(asked: &mut Option<Asked>) {
    match asked {
        Some(Asked::Call { answer, .. }) => answer.closed().await,
        Some(Asked::Form { answer, .. }) => answer.closed().await,
        None => std::future::pending().await,
    }
}

/// Answers the agent. One without a fitting choice is not answered, which refuses.
fn reply(answer: oneshot::Sender<PermissionAnswer>, id: Option<String>) {
    if let Some(id) = id {
        give(answer, PermissionAnswer::Chosen(id));
    }
}

fn give<T>(answer: oneshot::Sender<T>, given: T) {
    if answer.send(given).is_err() {
        tracing::debug!("the agent no longer waits for the answer");
    }
}
