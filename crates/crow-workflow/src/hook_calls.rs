//! The calls that Crow makes for hooks of bundled extensions, without the model. They are evaluated, shown and stored
//! like any other call.

use std::path::PathBuf;

use crow_speckit::{
    BranchFacts, BranchNumber, BranchNumbering, BranchRequest, CommandInvocation, CommitStyle, Feature,
    GitExtensionConfig, HookTiming, SpeckitError, SpeckitHook, WorkflowCommand, exact_branch_name,
    is_repository, list_branches, list_features, name_branch,
};

use crate::port::SyntheticCall;
use crate::project_context::ProjectContext;

const INITIALIZE: &str = "speckit.git.initialize";
const FEATURE: &str = "speckit.git.feature";
pub(crate) const COMMIT: &str = "speckit.git.commit";

/// The way to run a hook.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HookAction {
    /// With these calls, in order.
    Calls(Vec<SyntheticCall>),
    /// There is nothing to do.
    Nothing,
    /// By the model.
    Model,
}

/// When a hook runs: around which step, and for which feature.
#[derive(Debug, Clone)]
pub(crate) struct HookContext {
    pub(crate) timing: HookTiming,
    pub(crate) command: WorkflowCommand,
    pub(crate) context: ProjectContext,
    /// The user's invocation, before a step.
    pub(crate) invocation: Option<CommandInvocation>,
    pub(crate) plan_path: Option<PathBuf>,
}

/// Returns the action for a hook. Blocks.
pub(crate) fn hook_action(
    hook_context: &HookContext,
    hook: &SpeckitHook,
) -> Result<HookAction, SpeckitError> {
    let context = &hook_context.context;
    let project = &context.project;
    let (has_repository, git) = (is_repository(project.root()), git_command(context));
    if ![INITIALIZE, FEATURE, COMMIT].contains(&hook.command.as_str()) {
        return Ok(HookAction::Model);
    }
    // Without the file, the defaults apply.
    let config_text =
        context.read_approved_file(&GitExtensionConfig::config_path(project))?.unwrap_or_default();
    let config = GitExtensionConfig::parse(&config_text)?;
    Ok(match hook.command.as_str() {
        INITIALIZE if has_repository => HookAction::Nothing,
        INITIALIZE => shell_commands([
            format!("{git} init --quiet"),
            format!("{git} add ."),
            format!("{git} commit --quiet --message {}", quote_word(&config.init_commit_message)),
        ]),
        FEATURE if !has_repository => HookAction::Nothing,
        FEATURE => create_branch_action(context, hook_context.invocation.as_ref(), &config)?,
        _ => match config.commit_message(hook_context.timing, hook_context.command) {
            Some(_) if has_repository && config.commit_style == CommitStyle::Conventional => {
                HookAction::Model
            }
            Some(message) if has_repository => shell_commands([
                format!("{git} add ."),
                // Without changes there is nothing to commit.
                format!(
                    "{git} diff --cached --quiet || {git} commit --quiet --message {}",
                    quote_word(&message)
                ),
            ]),
            Some(_) | None => HookAction::Nothing,
        },
    })
}

fn create_branch_action(
    context: &ProjectContext,
    invocation: Option<&CommandInvocation>,
    config: &GitExtensionConfig,
) -> Result<HookAction, SpeckitError> {
    let Some(invocation) = invocation else { return Ok(HookAction::Model) };
    // Only git knows the author's name.
    if config.branch_template.contains("{author}") {
        return Ok(HookAction::Model);
    }
    let (project, naming) = (&context.project, &invocation.naming);
    let branch = match &naming.branch {
        Some(name) => exact_branch_name(name)?,
        None => {
            let directories: Vec<String> = list_features(project, &context.config.specs_root)?
                .into_iter()
                .map(|Feature { name, .. }| name)
                .collect();
            let branches = list_branches(project.root());
            let app = project.root().file_name().map(|name| name.display().to_string()).unwrap_or_default();
            let facts = BranchFacts {
                directories: &directories,
                branches: &branches,
                author: "",
                project_name: &app,
            };
            let timestamp = context.now.strftime("%Y%m%d-%H%M%S").to_string();
            let uses_timestamp = naming.timestamp || config.numbering == BranchNumbering::Timestamp;
            let number = match (uses_timestamp, naming.number) {
                (true, _) => BranchNumber::Timestamp(&timestamp),
                (false, Some(number)) => BranchNumber::Exact(number),
                (false, None) => BranchNumber::Next,
            };
            let short_name = naming.short_name.as_deref();
            name_branch(config, &facts, &BranchRequest { number, short_name, description: &invocation.text })?
        }
    };
    Ok(shell_commands([format!("{} checkout --quiet -b {}", git_command(context), quote_word(&branch.name))]))
}

fn shell_commands<const N: usize>(lines: [String; N]) -> HookAction {
    let call = |line| SyntheticCall { tool: "terminal", arguments: vec![("command", line)] };
    HookAction::Calls(lines.map(call).into())
}

/// Returns the git command for the project, as called from the session's directory.
fn git_command(context: &ProjectContext) -> String {
    let root = context.project.root();
    match root == context.cwd {
        true => "git".to_owned(),
        false => format!("git -C {}", quote_word(&root.display().to_string())),
    }
}

/// Quotes a word for a shell.
fn quote_word(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
