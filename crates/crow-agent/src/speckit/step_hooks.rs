//! Runs the hooks of a project's extensions before and after a step, and their commands. Only content that the user
//! approved, byte for byte, is used; the model does the work, with the session's permissions.

use std::path::Path;

use crow_acp::{OfferedAnswers, PermissionSubject};
use crow_core::{Failure, SpeckitPart, ToolCallContent, TurnEnd};
use crow_speckit::{
    AgentContext, CommandInvocation, ExtensionCommand, HookTiming, PromptFacts, PromptPart, SpeckitError,
    SpeckitHook, SpeckitHooks, SpeckitProject, WorkflowCommand, extension_prompt, hook_config_files,
    list_extension_commands, render_prompt,
};

use crate::confirm::{ConfirmationRequest, ask_confirmation};
use crate::project_config::ApprovedFiles;
use crate::run_turn::run_turn;
use crate::speckit::git::{self, HookAction, SyntheticCall};
use crate::speckit::notices::{report_refusal, send_note};
use crate::speckit::project_context::ProjectContext;
use crate::speckit::project_files::run_blocking;
use crate::speckit::step::{SOURCE, hidden_part};
use crate::speckit::step_prompt::unapproved_file;
use crate::speckit::user_prompt::{PromptInput, SteeringReceiver, append_user_prompt};
use crate::speckit::workflow_exit::WorkflowExit;
use crate::turn_context::{SessionState, TurnCx};

/// The command that Crow runs without the model, besides those of git.
const CONTEXT_UPDATE: &str = "speckit.agent-context.update";

/// When a hook runs: around which step, and for which feature.
#[derive(Debug, Clone, Copy)]
pub(super) struct HookContext<'a> {
    pub(super) timing: HookTiming,
    pub(super) command: WorkflowCommand,
    pub(super) context: &'a ProjectContext,
    /// The user's invocation, before a step.
    pub(super) invocation: Option<&'a CommandInvocation>,
    pub(super) plan_path: Option<&'a Path>,
}

/// Runs the hooks of a step, in order; returns how the turn ends if a hook ended it. Steering input is sent with the
/// first hook that the model runs.
pub(super) async fn run_hooks(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    hook_context: HookContext<'_>,
    steering: SteeringReceiver<'_>,
) -> Result<Option<TurnEnd>, Failure> {
    let (context, approved) =
        (hook_context.context.clone(), cx.config_loader.current_config().approved.clone());
    let environment = cx.runtime.config().workflow.environment.clone();
    let get_variable = move |name: &str| environment.get(name);
    let (timing, command) = (hook_context.timing, hook_context.command);
    let hooks =
        match run_blocking(move || read_hooks(&context.project, &approved, timing, command, &get_variable))
            .await
        {
            Ok(hooks) => hooks,
            Err(reason) => {
                send_note(cx, &format!("No hook was run {timing} {command}: {reason}."));
                return Ok(None);
            }
        };
    for hook in hooks {
        if let Some(end) = run_hook(cx, state, &hook_context, &hook, steering).await? {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// Reads the hooks of a step, if the user approved every file that affects them.
fn read_hooks(
    project: &SpeckitProject,
    approved: &ApprovedFiles,
    timing: HookTiming,
    command: WorkflowCommand,
    get_variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<SpeckitHook>, SpeckitError> {
    let path = SpeckitHooks::config_path(project);
    let Some(text) = project.read_project_file(&path)? else { return Ok(Vec::new()) };
    let hooks = SpeckitHooks::parse(project, &text)?.matching_hooks(timing, command, get_variable);
    if !hooks.is_empty() {
        check_approved(project, approved, &path, text.as_bytes())?;
        for (path, bytes) in hook_config_files(project)? {
            check_approved(project, approved, &path, &bytes)?;
        }
    }
    Ok(hooks)
}

fn check_approved(
    project: &SpeckitProject,
    approved: &ApprovedFiles,
    path: &Path,
    bytes: &[u8],
) -> Result<(), SpeckitError> {
    if approved.is_approved(path, bytes) {
        return Ok(());
    }
    Err(SpeckitError::Invalid(format!("{} is not approved", project.display_path(path))))
}

/// Reads a file if it has the approved content; `None` if it does not exist.
pub(super) fn approved_text(
    project: &SpeckitProject,
    approved: &ApprovedFiles,
    path: &Path,
) -> Result<Option<String>, SpeckitError> {
    let Some(text) = project.read_project_file(path)? else { return Ok(None) };
    check_approved(project, approved, path, text.as_bytes())?;
    Ok(Some(text))
}

async fn run_hook(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    hook_context: &HookContext<'_>,
    hook: &SpeckitHook,
    steering: SteeringReceiver<'_>,
) -> Result<Option<TurnEnd>, Failure> {
    let HookContext { timing, command, context, .. } = *hook_context;
    let owned_context = context.clone();
    let (owned_hook, invocation, approved) =
        (hook.clone(), hook_context.invocation.cloned(), cx.config_loader.current_config().approved.clone());
    let action = run_blocking(move || {
        let hook_context = HookContext {
            timing,
            command,
            context: &owned_context,
            invocation: invocation.as_ref(),
            plan_path: None,
        };
        git::hook_action(&hook_context, &owned_hook, &approved)
    });
    let action = match action.await {
        Ok(action) => action,
        Err(reason) => return Ok(report_hook_failure(cx, hook_context, hook, &reason)),
    };
    // The extension's own settings decide about commits; other optional hooks are confirmed by the user.
    let is_consented = action == HookAction::Nothing || hook.command == git::COMMIT;
    if action == HookAction::Nothing
        || (hook.is_optional && !is_consented && !confirm_hook(cx, state, hook_context, hook).await)
    {
        return Ok(None);
    }
    let calls = match action {
        HookAction::Calls(calls) => Some(calls),
        HookAction::Model if hook.command == CONTEXT_UPDATE => match context_calls(cx, hook_context).await {
            Ok(calls) => Some(calls),
            Err(reason) => return Ok(report_hook_failure(cx, hook_context, hook, &reason)),
        },
        HookAction::Model | HookAction::Nothing => None,
    };
    if let Some(calls) = calls {
        return run_hook_calls(cx, state, hook_context, hook, calls).await;
    }
    let prompt = match find_extension_prompt(cx, context, &hook.command, String::new()).await {
        Ok(prompt) => prompt,
        Err(reason) => return Ok(report_hook_failure(cx, hook_context, hook, &reason)),
    };
    let text = format!(
        "The project wants {} done {timing} {command}. That is now: do what follows and nothing beyond it, then end your turn.\
         \n\n{prompt}",
        hook.command
    );
    cx.append_prompt(state, vec![hidden_part(SpeckitPart::Hook, text)], Vec::new()).await?;
    let end = run_turn(cx, state, steering).await?;
    Ok((end != TurnEnd::Completed).then_some(end))
}

/// Runs a hook with calls of Crow; a failed call ends the step, unless the hook is optional.
async fn run_hook_calls(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    hook_context: &HookContext<'_>,
    hook: &SpeckitHook,
    calls: Vec<SyntheticCall>,
) -> Result<Option<TurnEnd>, Failure> {
    if calls.is_empty() {
        return Ok(None);
    }
    let HookContext { timing, command, .. } = *hook_context;
    let text = format!("The project wants {} done {timing} {command}; Crow does it.", hook.command);
    cx.append_prompt(state, vec![hidden_part(SpeckitPart::Hook, text)], Vec::new()).await?;
    for call in calls {
        if !git::run_synthetic_call(cx, state, call).await? {
            return Ok(match cx.is_over() {
                true => Some(TurnEnd::Cancelled),
                false => report_hook_failure(cx, hook_context, hook, "one of its calls failed"),
            });
        }
    }
    Ok(None)
}

/// Reports that a hook did not run; returns how the turn ends if the step cannot continue without it.
fn report_hook_failure(
    cx: &TurnCx<'_>,
    hook_context: &HookContext<'_>,
    hook: &SpeckitHook,
    reason: &str,
) -> Option<TurnEnd> {
    if hook.is_optional || hook_context.timing == HookTiming::After {
        send_note(cx, &format!("The hook {} was not run: {reason}.", hook.command));
        return None;
    }
    report_refusal(
        cx,
        &format!("{} stops here: its hook {} cannot run: {reason}.", hook_context.command, hook.command),
    );
    Some(TurnEnd::Completed)
}

/// Asks the user about an optional hook.
async fn confirm_hook(
    cx: &TurnCx<'_>,
    state: &SessionState,
    hook_context: &HookContext<'_>,
    hook: &SpeckitHook,
) -> bool {
    let title = format!("Run {} {} {}", hook.command, hook_context.timing, hook_context.command);
    let texts = [&hook.prompt, &hook.description].into_iter().filter(|text| !text.is_empty());
    let content = texts.map(|text| ToolCallContent::Text(text.clone())).collect();
    let outcome = ask_confirmation(
        cx,
        ConfirmationRequest {
            source: SOURCE,
            title: &title,
            content,
            subject: PermissionSubject::Proposal,
            answers: OfferedAnswers::Once,
        },
        state,
    )
    .await;
    outcome.is_allowed()
}

/// Returns the calls that update the section about the plan in the context files of other agents.
async fn context_calls(
    cx: &TurnCx<'_>,
    hook_context: &HookContext<'_>,
) -> Result<Vec<SyntheticCall>, String> {
    let (owned_context, plan) = (hook_context.context.clone(), hook_context.plan_path.map(Path::to_owned));
    let approved = cx.config_loader.current_config().approved.clone();
    let changes = run_blocking(move || {
        let settings = approved_text(
            &owned_context.project,
            &approved,
            &AgentContext::config_path(&owned_context.project),
        )?;
        let Some(settings) = settings else { return Ok(Vec::new()) };
        let agent_context = AgentContext::parse(&owned_context.project, &settings)?;
        let plan = plan.filter(|plan| plan.is_file()).map(|plan| owned_context.project.display_path(&plan));
        let mut changes = Vec::new();
        for file in &agent_context.files {
            let path = owned_context.project.resolve_path(file);
            let old = owned_context.project.read_project_file(&path)?;
            let new = agent_context.upsert_block(old.as_deref().unwrap_or_default(), plan.as_deref());
            if old.as_ref() != Some(&new) {
                changes.push((path, old, new));
            }
        }
        Ok(changes)
    })
    .await?;
    let calls = changes.into_iter().map(|(path, old, new)| {
        if let Some(old) = old {
            // The new text was made from exactly this one.
            cx.workspace.record_write(crow_tools::resolve_links(&path), &old);
        }
        SyntheticCall::write_file(&path, new)
    });
    Ok(calls.collect())
}

/// An extension's command with its prompt.
pub(super) struct ExtensionCall {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) input: PromptInput,
}

/// Runs a command of an extension.
pub(super) async fn run_extension_command(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    ExtensionCall { name, text, input }: ExtensionCall,
    steering: SteeringReceiver<'_>,
) -> Result<TurnEnd, WorkflowExit> {
    let context = ProjectContext::find_project(cx).await?;
    let prompt = find_extension_prompt(cx, &context, &name, text).await.map_err(WorkflowExit::Refused)?;
    state.turn = state.transcript.next_seq();
    let expansion =
        hidden_part(SpeckitPart::Command, format!("The command /{name} stands for this:\n\n{prompt}"));
    append_user_prompt(cx, state, input, Some(expansion)).await?;
    Ok(run_turn(cx, state, steering).await?)
}

/// Returns the prompt of an extension's command.
async fn find_extension_prompt(
    cx: &TurnCx<'_>,
    context: &ProjectContext,
    name: &str,
    args: String,
) -> Result<String, String> {
    let (project, approved, name) =
        (context.project.clone(), cx.config_loader.current_config().approved.clone(), name.to_owned());
    run_blocking(move || {
        let commands = list_extension_commands(&project)?.commands;
        let Some(command) = commands.iter().find(|command| command.name == name) else {
            return Err(SpeckitError::Invalid(unknown_command(&name, &commands)));
        };
        let source = extension_prompt(&project, command)?;
        if let Some(path) = unapproved_file(&source, project.root(), &approved) {
            return Err(SpeckitError::Invalid(format!("{path} is not approved")));
        }
        let facts = PromptFacts { args, ..PromptFacts::default() };
        source.parts.iter().map(|PromptPart { text, kind, .. }| render_prompt(text, *kind, &facts)).collect()
    })
    .await
}

fn unknown_command(name: &str, commands: &[ExtensionCommand]) -> String {
    if commands.is_empty() {
        return format!("there is no command /{name}: no extension of this project is enabled");
    }
    let names: Vec<String> = commands.iter().map(|command| format!("/{}", command.name)).collect();
    format!("there is no command /{name}; the extensions have {}", names.join(", "))
}
