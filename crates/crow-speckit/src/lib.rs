//! Owns a project's `.specify/` and `specs/`: numbering, templates, prerequisites, `tasks.md`, and the words that a model
//! is given. Blocks; keep it off the loop. Knows no session, no client and no model.

mod agent_context;
mod check;
mod checklist;
mod choosing;
mod clarifications;
mod command;
mod confined;
mod create;
mod error;
mod extension;
mod feature;
#[cfg(test)]
mod fixture;
mod gather;
mod git;
mod git_extension;
mod github;
mod guard;
mod hold;
mod hooks;
mod init;
mod kept;
mod lint;
mod markdown;
mod number;
mod open;
mod page;
mod plain;
mod plan_view;
mod pointer;
mod prerequisites;
mod project;
mod prompt;
mod prompt_source;
mod question;
mod registry;
mod roots;
mod scaffold;
mod slug;
mod supplied;
mod take_up;
mod tasks;

pub use agent_context::AgentContext;
pub use check::{Baseline, came_to, check, unfilled_constitution};
pub use checklist::{REQUIREMENTS, ReviewOutcome, keep_reviewed};
pub use choosing::deciding_files;
pub use clarifications::add_clarification;
pub use command::{About, Asked, Command, Invocation, Naming};
pub use create::{Created, NewFeature, create, existing, would_create};
pub use error::SpeckitError;
pub use extension::{ExtensionCommand, ExtensionCommands, extension_commands};
pub use feature::{Feature, Origin, WhoAsks, features, resolve};
pub use gather::{Limits, Spelled, checklists, gather};
pub use git::{branches, is_repository};
pub use git_extension::{
    Branch, BranchFacts, BranchNumber, BranchNumbering, BranchWish, CommitStyle, GitConfig, branch,
    exact_branch,
};
pub use github::{Repository, github_repository};
pub use guard::{BackgroundWork, Change, ChangeWatch, Guard, SET_ASIDE, Snapshot, Touched};
pub use hold::Hold;
pub use hooks::{Hook, Hooks, When};
pub use init::{Pages, init};
pub use number::{Numbering, parse_number, usual_numbering};
pub use page::{Layer, Page, Part, Place, layers, page, page_names};
pub use plain::plain;
pub use plan_view::{Entry, Priority, Status, plan_view};
pub use pointer::{read_pointer, write_pointer};
pub use prerequisites::{Need, check_needs, docs, needs_of, setup_plan, setup_tasks};
pub use project::{Project, Variables};
pub use prompt::{
    AnswerFacts, Aside, ChecklistFacts, ConstitutionFacts, ConstitutionState, Facts, FeatureFacts,
    IssueFacts, LimitFacts, PathFacts, PhaseFacts, PromptKind, TaskFacts, TasksFacts, built_in, render,
};
pub use prompt_source::{PromptSource, command_prompt, extension_prompt, prompt_layers};
pub use question::{Answer, Choice, Question};
pub use registry::Strategy;
pub use roots::{SpecsLink, SpecsRoot, specs_root};
pub use slug::clean;
pub use supplied::{Supplied, supplied};
pub use take_up::{take_up, untouched};
pub use tasks::{
    Done, Gap, GapKind, Phase, PhaseKind, Task, TaskId, TaskList, TasksError, append_convergence, flip,
};
