//! A project's `.specify/` and `specs/`: numbering, templates, prerequisites, `tasks.md`, checks and prompts. Its
//! functions block, so call them off the event loop. Knows no sessions, no clients and no models.

mod agent_context;
mod check;
mod checklist;
mod clarifications;
mod command;
mod confined_files;
mod create;
mod error;
mod extension;
mod fact_gathering;
mod feature;
mod feature_files;
mod feature_lock;
mod feature_pointer;
#[cfg(test)]
mod fixture;
mod git;
mod git_extension;
mod github;
mod guard;
mod hooks;
mod init;
mod lint;
mod markdown;
mod numbering;
mod page_template;
mod plan_view;
mod prerequisites;
mod project;
mod prompt;
mod prompt_source;
mod question;
mod registry;
mod request;
mod resume;
mod safe_text;
mod scaffold;
mod selection_files;
mod slug;
mod specs_root;
mod step_definition;
mod step_layout;
mod steps;
mod tasks;
mod untrusted_files;
mod write_rules;

pub use agent_context::AgentContext;
pub use check::{ProblemList, StepBaseline, StepFiles, unfilled_constitution_note};
pub use checklist::{REQUIREMENTS, ReviewOutcome, compare_reviewed};
pub use clarifications::add_clarification;
pub use command::{CommandInvocation, FeatureNaming, WorkflowCommand};
pub use create::{CreatedFeature, NewFeature, create_feature, find_existing_feature, preview_feature};
pub use error::SpeckitError;
pub use extension::{ExtensionCommand, ExtensionCommands, list_extension_commands};
pub use fact_gathering::{FactsInput, PathFormatter, StepLimits, checklist_facts, gather_facts, task_facts};
pub use feature::{Feature, FeatureOrigin, FeatureSelector, list_features, resolve_feature};
pub use feature_lock::FeatureLock;
pub use feature_pointer::{read_pointer, write_pointer};
pub use git::{is_repository, list_branches};
pub use git_extension::{
    BranchFacts, BranchNumber, BranchNumbering, BranchRequest, CommitStyle, FeatureBranch,
    GitExtensionConfig, exact_branch_name, name_branch,
};
pub use github::{GithubRepository, github_repository};
pub use guard::{
    BackgroundWork, ChangeWatch, GuardSnapshot, ProtectedChange, ProtectedChangeKind, SET_ASIDE_DIR,
    WriteGuard,
};
pub use hooks::{HookTiming, SpeckitHook, SpeckitHooks};
pub use init::{PageLoader, init_project};
pub use numbering::{FeatureNumbering, default_numbering, parse_number};
pub use page_template::{
    LayerInfo, LayerOrigin, PageTemplate, PromptPart, compose_page, page_layers, page_names,
};
pub use plan_view::{TaskPlanEntry, TaskPlanPriority, TaskPlanStatus, build_plan_view};
pub use prerequisites::{FeaturePrerequisite, check_feature_prerequisites, list_docs};
pub use project::{SpeckitProject, SpeckitVariables};
pub use prompt::{
    AnswerFacts, AuxiliaryPrompt, ChecklistFacts, ConstitutionFacts, ConstitutionState, FeatureFacts,
    IssueFacts, LimitFacts, PathFacts, PhaseFacts, PromptFacts, PromptKind, TaskFacts, TasksFacts,
    render_prompt,
};
pub use prompt_source::{PromptSource, command_prompt, extension_prompt, prompt_layers};
pub use question::{QuestionAnswer, QuestionOption, StepQuestion};
pub use registry::LayerStrategy;
pub use request::{SpeckitAction, SpeckitRequest};
pub use resume::{is_untouched, resume_feature};
pub use safe_text::sanitize_text;
pub use selection_files::hook_config_files;
pub use slug::clean_short_name;
pub use specs_root::{SpecsLink, SpecsRoot, resolve_specs_root};
pub use step_definition::{
    FeatureUse, GapClosure, GapWork, ReadinessCheck, StepDefinition, StepTool, StepWork,
};
pub use step_layout::{LayoutFile, LayoutRequest, StepLayout, lay_out_step};
pub use steps::{setup_plan, setup_tasks, step_definition};
pub use tasks::{
    ConvergenceGap, GapKind, PhaseKind, TaskId, TaskItem, TaskList, TaskPhase, TasksError, TickState,
    append_convergence, set_task_ticked,
};
pub use untrusted_files::{FileApprovals, UntrustedFile, list_untrusted_files};
pub use write_rules::{GuardedPath, ProtectedPath, WriteRules};
