//! Runs the steps of Spec Kit: prerequisites, files, hooks, the model's turns, checks, repairs and the report.
//!
//! A step is defined in `crow-speckit`; what it asks of its session goes through [`WorkflowPort`]. Must not know how a
//! session stores, shows or runs anything.

mod blocking;
mod checklist_confirmation;
mod child_report;
mod config;
mod exit;
mod extension_command;
mod hook_calls;
mod hooks;
mod info;
mod issues;
mod layout;
mod notices;
mod open_question;
mod parallel;
mod parts;
mod policy;
mod port;
mod preflight;
mod preparation;
mod project_context;
mod project_files;
mod prompt;
mod question_call;
mod questions;
mod report;
mod request;
mod rounds;
mod runner;
mod scope;
mod session_facts;
mod session_view;
mod short_name;
mod step;
mod step_state;
mod task_run;
mod tool_arguments;
mod tools;

pub use child_report::ChildTaskReport;
pub use config::{ParallelMode, PublicEnvironment, WorkflowConfig};
pub use exit::WorkflowExit;
pub use issues::ServerTool;
pub use open_question::OpenQuestion;
pub use policy::{EndedCall, StepPolicy};
pub use port::{
    ChildTask, ConfirmationAnswer, ConfirmationSubject, FormAnswer, QuestionForm, StepConfirmation,
    StepReport, StepTurnEnd, SyntheticCall, UserQuestions, WorkflowPort,
};
pub use request::{WorkflowRequest, run_workflow};
pub use session_facts::{FeatureBinding, SessionFacts};
pub use session_view::{available_commands, needs_reminder, restored_plan, workflow_reminder};

#[cfg(test)]
mod tests;
