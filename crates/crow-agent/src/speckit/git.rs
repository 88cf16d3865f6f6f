//! Runs the hooks of bundled extensions as calls of Crow, without the model. They are evaluated, shown and stored like
//! any other call.

use std::path::Path;

use crate::calls::run_calls;
use crate::clock;
use crate::project_config::ApprovedFiles;
use crate::speckit::step_hooks::{HookContext, approved_text};
use crate::turn_context::{SessionState, TurnCx};
use crow_core::{
    CallId, Failure, MessageId, Reply, ReplyEnd, ToolArguments, ToolCall, ToolCallStatus, TranscriptEntry,
};
use crow_speckit::{
    BranchFacts, BranchNumber, BranchNumbering, BranchRequest, CommitStyle, Feature, GitExtensionConfig,
    SpeckitError, SpeckitHook, exact_branch_name, is_repository, list_branches, list_features, name_branch,
};

const INITIALIZE: &str = "speckit.git.initialize";
const FEATURE: &str = "speckit.git.feature";
pub(super) const COMMIT: &str = "speckit.git.commit";

/// The way to run a hook.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HookAction {
    /// With these calls, in order.
    Calls(Vec<SyntheticCall>),
    /// There is nothing to do.
    Nothing,
    /// By the model.
    Model,
}

/// A call that Crow makes instead of the model.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntheticCall {
    tool: &'static str,
    arguments: Vec<(&'static str, String)>,
}

impl SyntheticCall {
    pub(super) fn write_file(path: &Path, text: String) -> Self {
        Self { tool: "write", arguments: vec![("file_path", path.display().to_string()), ("content", text)] }
    }

    fn shell_command(line: String) -> Self {
        Self { tool: "terminal", arguments: vec![("command", line)] }
    }
}

/// Returns the action for a hook. Blocks.
pub(super) fn hook_action(
    hook_context: &HookContext<'_>,
    hook: &SpeckitHook,
    approved: &ApprovedFiles,
) -> Result<HookAction, SpeckitError> {
    let project = &hook_context.context.project;
    let (has_repository, git) = (is_repository(project.root()), git_command(hook_context));
    if ![INITIALIZE, FEATURE, COMMIT].contains(&hook.command.as_str()) {
        return Ok(HookAction::Model);
    }
    // Without the file, the defaults apply.
    let config_text =
        approved_text(project, approved, &GitExtensionConfig::config_path(project))?.unwrap_or_default();
    let config = GitExtensionConfig::parse(&config_text)?;
    Ok(match hook.command.as_str() {
        INITIALIZE if has_repository => HookAction::Nothing,
        INITIALIZE => shell_commands([
            format!("{git} init --quiet"),
            format!("{git} add ."),
            format!("{git} commit --quiet --message {}", quote_word(&config.init_commit_message)),
        ]),
        FEATURE if !has_repository => HookAction::Nothing,
        FEATURE => create_branch_action(hook_context, &config)?,
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
    hook_context: &HookContext<'_>,
    config: &GitExtensionConfig,
) -> Result<HookAction, SpeckitError> {
    let Some(invocation) = hook_context.invocation else { return Ok(HookAction::Model) };
    // Only git knows the author's name.
    if config.branch_template.contains("{author}") {
        return Ok(HookAction::Model);
    }
    let (project, naming) = (&hook_context.context.project, &invocation.naming);
    let branch = match &naming.branch {
        Some(name) => exact_branch_name(name)?,
        None => {
            let directories: Vec<String> = list_features(project, &hook_context.context.config.specs_root)?
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
            let timestamp = clock::local_now().strftime("%Y%m%d-%H%M%S").to_string();
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
    Ok(shell_commands([format!(
        "{} checkout --quiet -b {}",
        git_command(hook_context),
        quote_word(&branch.name)
    )]))
}

fn shell_commands<const N: usize>(lines: [String; N]) -> HookAction {
    HookAction::Calls(lines.map(SyntheticCall::shell_command).into())
}

/// Returns the git command for the project, as called from the session's directory.
fn git_command(hook_context: &HookContext<'_>) -> String {
    let root = hook_context.context.project.root();
    match root == hook_context.context.cwd {
        true => "git".to_owned(),
        false => format!("git -C {}", quote_word(&root.display().to_string())),
    }
}

/// Quotes a word for a shell.
fn quote_word(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Runs a call like one of the model; returns whether it succeeded.
pub(super) async fn run_synthetic_call(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    call_spec: SyntheticCall,
) -> Result<bool, Failure> {
    let seq = state.transcript.next_seq();
    let call = ToolCall {
        id: CallId::from_position(seq, 0),
        provider_id: format!("crow_{seq}"),
        name: call_spec.tool.to_owned(),
        arguments: ToolArguments::Valid(
            call_spec.arguments.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect(),
        ),
    };
    let reply = Reply {
        id: MessageId::from_seq(seq),
        thought: String::new(),
        text: String::new(),
        calls: vec![call.clone()],
        end: ReplyEnd::Complete,
        usage: None,
        provider_state: None,
        fallback_model: None,
    };
    cx.append_entry(state, TranscriptEntry::Reply(reply)).await?;
    run_calls(cx, &cx.current_tools().tools, &[call], state).await?;
    let is_done = |entry: &TranscriptEntry| matches!(entry, TranscriptEntry::Result { result, .. } if result.status == ToolCallStatus::Completed);
    Ok(state.transcript.entries().last().is_some_and(is_done))
}
