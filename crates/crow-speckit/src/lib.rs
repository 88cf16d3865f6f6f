//! Owns a project's `.specify/` and `specs/`: numbering, templates, prerequisites, `tasks.md`, and the words that a model
//! is given. Blocks; keep it off the loop. Knows no session, no client and no model.

mod command;
mod error;
mod markdown;
mod page;
mod project;
mod prompt;
mod question;
mod tasks;

pub use command::{About, Asked, Command, Invocation, Naming};
pub use error::SpeckitError;
pub use page::{Page, page};
pub use project::Project;
pub use prompt::{
    AnswerFacts, ChecklistFacts, ConstitutionFacts, ConstitutionState, Facts, FeatureFacts, LimitFacts,
    PathFacts, PhaseFacts, PromptKind, TaskFacts, TasksFacts, render,
};
pub use question::{Answer, Choice, Question};
pub use tasks::{
    Done, Gap, GapKind, Phase, PhaseKind, Task, TaskId, TaskList, TasksError, append_convergence, flip,
};
