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
pub use check::{StepBaseline, check_step, summarize_step, unfilled_constitution_note};
pub use checklist::{REQUIREMENTS, ReviewOutcome, compare_reviewed};
pub use choosing::hook_config_files;
pub use clarifications::add_clarification;
pub use command::{CommandInvocation, FeatureNaming, SpeckitAction, SpeckitRequest, WorkflowCommand};
pub use create::{CreatedFeature, NewFeature, create_feature, existing, preview_feature};
pub use error::SpeckitError;
pub use extension::{ExtensionCommand, ExtensionCommands, list_extension_commands};
pub use feature::{Feature, FeatureOrigin, FeatureSelector, list_features, resolve_feature};
pub use gather::{PathFormatter, StepLimits, checklist_facts, gather_facts};
pub use git::{is_repository, list_branches};
pub use git_extension::{
    BranchFacts, BranchNumber, BranchNumbering, BranchRequest, CommitStyle, FeatureBranch,
    GitExtensionConfig, exact_branch_name, name_branch,
};
pub use github::{GithubRepository, github_repository};
pub use guard::{
    BackgroundWork, ChangeWatch, GuardSnapshot, ProtectedChange, ProtectedChangeKind, SET_ASIDE, WriteGuard,
};
pub use hold::FeatureLock;
pub use hooks::{HookTiming, SpeckitHook, SpeckitHooks};
pub use init::{PageLoader, init_project};
pub use number::{FeatureNumbering, default_numbering, parse_number};
pub use page::{LayerInfo, LayerOrigin, PageTemplate, PromptPart, compose_page, page_layers, page_names};
pub use plain::sanitize_text;
pub use plan_view::{TaskPlanEntry, TaskPlanPriority, TaskPlanStatus, build_plan_view};
pub use pointer::{read_pointer, write_pointer};
pub use prerequisites::{
    FeaturePrerequisite, check_feature_prerequisites, list_docs, prerequisites_for, setup_plan, setup_tasks,
};
pub use project::{SpeckitProject, SpeckitVariables};
pub use prompt::{
    AnswerFacts, AuxiliaryPrompt, ChecklistFacts, ConstitutionFacts, ConstitutionState, FeatureFacts,
    IssueFacts, LimitFacts, PathFacts, PhaseFacts, PromptFacts, PromptKind, TaskFacts, TasksFacts,
    built_in_prompt, render_prompt,
};
pub use prompt_source::{PromptSource, command_prompt, extension_prompt, prompt_layers};
pub use question::{QuestionAnswer, QuestionOption, StepQuestion};
pub use registry::LayerStrategy;
pub use roots::{SpecsLink, SpecsRoot, resolve_specs_root};
pub use slug::clean_short_name;
pub use supplied::{UntrustedFile, list_untrusted_files};
pub use take_up::{is_untouched, resume_feature};
pub use tasks::{
    ConvergenceGap, GapKind, PhaseKind, TaskId, TaskItem, TaskList, TaskPhase, TasksError, TickState,
    append_convergence, set_task_ticked,
};
