//! Questions of a step and their answers: in a form if the client supports forms, otherwise as text that the next
//! prompt answers.

use crow_core::Failure;
use crow_speckit::{AnswerFacts, AuxiliaryPrompt, QuestionAnswer, StepQuestion};
use crow_tools::{UndoRecorder, Workspace};
use tokio_util::sync::CancellationToken;

use crate::port::{FormAnswer, QuestionForm, UserQuestions};
use crate::project_files::AnswerRecord;
use crate::scope::StepScope;

/// The outcome of a question.
pub(crate) enum QuestionOutcome {
    Answered(QuestionAnswer),
    /// It was closed, or the turn was cancelled.
    Cancelled,
    /// It must be shown as text, and the next prompt answers it.
    AsText,
}

/// Asks a question in a form.
pub(crate) async fn ask_question(
    user: &dyn UserQuestions,
    question: &StepQuestion,
    cancel: &CancellationToken,
) -> QuestionOutcome {
    // It must not be mistaken for a question of Crow, such as one for permission.
    let topic_note = question.topic.as_ref().map(|topic| format!(" ({topic})")).unwrap_or_default();
    let message = format!("The model asks{topic_note}: {}", question.question);
    let options = question.ordered_options().into_iter().cloned().collect();
    match user.ask_in_form(QuestionForm { message, options }, cancel).await {
        FormAnswer::Text(text) if question.options.iter().any(|choice| choice.label == text) => {
            QuestionOutcome::Answered(QuestionAnswer::Answer(text))
        }
        FormAnswer::Text(text) => QuestionOutcome::Answered(question.parse_answer(&text)),
        FormAnswer::Declined => QuestionOutcome::Answered(QuestionAnswer::NoMore),
        FormAnswer::Cancelled => QuestionOutcome::Cancelled,
        FormAnswer::Unavailable => QuestionOutcome::AsText,
    }
}

/// Writes an answer into the record of the step.
pub(crate) async fn write_answer(
    record: Option<&AnswerRecord>,
    question: &StepQuestion,
    answer: &QuestionAnswer,
    undo_recorder: Option<&dyn UndoRecorder>,
    workspace: &Workspace,
) -> Result<(), String> {
    match (record, answer) {
        (Some(record), QuestionAnswer::Answer(text)) => {
            record.add_answer(&question.question, text, undo_recorder, workspace).await
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// Returns the message to the model about an answer that was a prompt.
pub(crate) async fn answer_message(
    scope: &StepScope,
    question: &StepQuestion,
    answer: &QuestionAnswer,
    n_left: usize,
) -> Result<String, Failure> {
    let answer = match answer {
        QuestionAnswer::Answer(text) => text.clone(),
        QuestionAnswer::NoMore | QuestionAnswer::Stop => String::new(),
    };
    let facts = AnswerFacts { question: question.question.clone(), answer, left: n_left };
    scope.render_side_prompt(AuxiliaryPrompt::Answer, |all| all.answer = facts).await
}
