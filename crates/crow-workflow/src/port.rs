//! The port of the workflow: what a request asks of the session in which it runs. Must not know how a session stores,
//! shows or runs anything.

use std::path::Path;
use std::sync::Arc;

use crow_core::{ContentPart, Failure, PlanEntry, ReportOutcome, SuggestedCommand, Transcript, TurnEnd};
use crow_speckit::{BackgroundWork, QuestionOption, StepBaseline, TaskId, WorkflowCommand};
use crow_tools::{UndoRecorder, Workspace};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::child_report::ChildTaskReport;
use crate::exit::WorkflowExit;
use crate::issues::ServerTool;
use crate::policy::StepPolicy;
use crate::session_facts::{FeatureBinding, SessionFacts};

/// The session of a workflow request.
pub trait WorkflowPort: Send {
    /// Reads the facts about the session.
    fn read_facts(&mut self) -> impl Future<Output = Result<SessionFacts, Failure>> + Send;

    /// Checks that a model is configured.
    fn check_model(&self) -> Result<(), Failure>;

    /// Returns the reason why Crow itself may not write a file, if there is one.
    fn forbidden_write_reason(&self, path: &Path) -> Option<String>;

    /// Returns the tools of the session's MCP servers, once these are connected.
    fn server_tools(&mut self) -> impl Future<Output = Vec<ServerTool>> + Send;

    /// Whether the turn was cancelled or its client has disconnected.
    fn is_over(&self) -> bool;

    /// Returns the conversation.
    fn transcript(&self) -> &Transcript;

    /// Returns the directories of the session, and the files read in them.
    fn workspace(&self) -> &Workspace;

    /// Returns a recorder of changes that Crow is about to make, so that the user can undo them.
    fn undo_recorder(&self) -> Box<dyn UndoRecorder + '_>;

    /// Whether a background job or a child agent is running.
    fn background_work(&self) -> BackgroundWork;

    /// Binds the session to a feature.
    fn bind_feature(&mut self, binding: FeatureBinding) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Keeps the baseline of a step until the user has answered a question.
    fn keep_baseline(&mut self, baseline: StepBaseline);

    /// Removes and returns the kept baseline.
    fn take_baseline(&mut self) -> Option<StepBaseline>;

    /// Appends the prompt that made the request, with an expansion for the model. Changes from here on belong to it.
    fn append_user_prompt(
        &mut self,
        expansion: Option<ContentPart>,
    ) -> impl Future<Output = Result<(), WorkflowExit>> + Send;

    /// Appends a part for the model without a request.
    fn append_part(&mut self, part: ContentPart) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Appends the report on child agents, with the delivery of their results.
    fn append_child_report(&mut self, part: ContentPart) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Appends a prompt, if there is one, and lets the model answer, within a policy.
    fn run_turn(
        &mut self,
        prompt: Option<ContentPart>,
        policy: Option<&StepPolicy>,
    ) -> impl Future<Output = Result<StepTurnEnd, Failure>> + Send;

    /// Runs a call in place of the model: evaluated, shown and stored like any other. Returns whether it succeeded.
    fn run_call(&mut self, call: SyntheticCall) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Sends one question to the model outside the conversation; returns a complete answer.
    fn ask_model(&mut self, system: &str, prompt: String) -> impl Future<Output = Option<String>> + Send;

    /// Sends text to the user.
    fn send_text(&self, text: &str);

    /// Reports why a request was not started; a clause is shown as a sentence.
    fn send_refusal(&self, reason: &str);

    /// Sends the task list as the plan.
    fn send_plan(&self, entries: Vec<PlanEntry>);

    /// Sends the report of a step and stores it.
    fn send_report(&mut self, report: StepReport) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Asks the user for a confirmation.
    fn confirm(&mut self, confirmation: StepConfirmation) -> impl Future<Output = ConfirmationAnswer> + Send;

    /// Returns the way to ask the user questions of the model.
    fn user_questions(&self) -> Arc<dyn UserQuestions>;

    /// Starts a child agent for a task, with a call that shows its progress; returns whether it was started.
    fn start_child(&mut self, task: ChildTask) -> impl Future<Output = bool> + Send;

    /// Waits for the next child agent to end, and shows its result; `None` if none is running.
    fn next_child_report(&mut self) -> impl Future<Output = Option<ChildTaskReport>> + Send;
}

/// The end of a turn of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct StepTurnEnd {
    /// The end.
    pub end: TurnEnd,
    /// Whether a hook of the user ended the turn.
    pub is_ended_by_hook: bool,
}

/// A call that Crow makes instead of the model.
#[derive(Debug, PartialEq, Eq)]
pub struct SyntheticCall {
    /// The tool.
    pub tool: &'static str,
    /// The arguments.
    pub arguments: Vec<(&'static str, String)>,
}

/// The report of a step.
#[derive(Debug, Clone)]
pub struct StepReport {
    /// The step.
    pub command: WorkflowCommand,
    /// The arguments of its command.
    pub arguments: String,
    /// The report.
    pub text: String,
    /// The commands that follow.
    pub next: Vec<SuggestedCommand>,
    /// The outcome.
    pub outcome: ReportOutcome,
}

/// A request for a confirmation.
#[derive(Debug, Clone)]
pub struct StepConfirmation {
    /// The action to confirm, in one line.
    pub title: String,
    /// Paragraphs about it.
    pub texts: Vec<String>,
    /// The kind of action.
    pub subject: ConfirmationSubject,
}

/// The kind of action that the user confirms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmationSubject {
    /// The requested step.
    Step,
    /// An action that Crow or the project proposes.
    Proposal,
    /// An action that is proposed repeatedly: an answer may apply to the whole session.
    RepeatedProposal,
}

/// The answer to a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfirmationAnswer {
    /// The action is allowed.
    Allowed {
        /// Whether the answer applies to later requests as well.
        is_lasting: bool,
    },
    /// The action is rejected.
    Rejected {
        /// Whether the answer applies to later requests as well.
        is_lasting: bool,
    },
    /// The turn was cancelled.
    Cancelled,
    /// The user cannot be asked.
    Unavailable {
        /// The reason.
        reason: String,
    },
}

impl ConfirmationAnswer {
    /// Whether the action is allowed.
    pub(crate) fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed { .. })
    }
}

/// Asks the user questions while a turn runs.
pub trait UserQuestions: Send + Sync {
    /// Asks a question in a form.
    fn ask_in_form<'a>(
        &'a self,
        form: QuestionForm,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, FormAnswer>;

    /// Sends text to the user.
    fn send_text(&self, text: &str);
}

/// A form with one question.
#[derive(Debug, Clone)]
pub struct QuestionForm {
    /// The question.
    pub message: String,
    /// The options, the recommended one first. Any other text is an answer as well.
    pub options: Vec<QuestionOption>,
}

/// The answer to a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormAnswer {
    /// An option or a text.
    Text(String),
    /// The user declined to answer.
    Declined,
    /// The form was closed, or the turn was cancelled.
    Cancelled,
    /// The client has no forms.
    Unavailable,
}

/// A task for a child agent.
#[derive(Debug, Clone)]
pub struct ChildTask {
    /// The task.
    pub id: TaskId,
    /// The title of the call that shows the progress.
    pub title: String,
    /// The prompt.
    pub prompt: String,
}
