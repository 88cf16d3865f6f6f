//! Runs the hooks of a project's extensions before and after a step. Only content that the user approved, byte for
//! byte, is used; the model does the work, with the session's permissions.

use crow_core::{Failure, SpeckitPart, TurnEnd};
use crow_speckit::{AgentContext, HookTiming, SpeckitError, SpeckitHook, SpeckitHooks, hook_config_files};

use crate::blocking::run_blocking;
use crate::extension_command::find_extension_prompt;
use crate::hook_calls::{self, HookAction, HookContext};
use crate::notices::{report_refusal, send_note};
use crate::parts::hidden_part;
use crate::port::{ConfirmationSubject, StepConfirmation, SyntheticCall, WorkflowPort};

/// The command that Crow runs without the model, besides those of git.
const CONTEXT_UPDATE: &str = "speckit.agent-context.update";

/// Runs the hooks of a step, in order; returns how the turn ends if a hook ended it. Steering input is sent with the
/// first hook that the model runs.
pub(crate) async fn run_hooks(
    port: &mut impl WorkflowPort,
    hook_context: HookContext,
) -> Result<Option<TurnEnd>, Failure> {
    let (timing, command) = (hook_context.timing, hook_context.command);
    let owned_context = hook_context.clone();
    let hooks = match run_blocking(move || read_hooks(&owned_context)).await {
        Ok(hooks) => hooks,
        Err(reason) => {
            send_note(port, &format!("No hook was run {timing} {command}: {reason}."));
            return Ok(None);
        }
    };
    for hook in hooks {
        if let Some(end) = run_hook(port, &hook_context, &hook).await? {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// Reads the hooks of a step, if the user approved every file that affects them.
fn read_hooks(hook_context: &HookContext) -> Result<Vec<SpeckitHook>, SpeckitError> {
    let HookContext { context, timing, command, .. } = hook_context;
    let project = &context.project;
    let path = SpeckitHooks::config_path(project);
    let Some(text) = project.read_project_file(&path)? else { return Ok(Vec::new()) };
    let get_variable = |name: &str| context.config.environment.get(name);
    let hooks = SpeckitHooks::parse(project, &text)?.matching_hooks(*timing, *command, &get_variable);
    if !hooks.is_empty() {
        context.check_approved(&path, text.as_bytes())?;
        for (path, bytes) in hook_config_files(project)? {
            context.check_approved(&path, &bytes)?;
        }
    }
    Ok(hooks)
}

async fn run_hook(
    port: &mut impl WorkflowPort,
    hook_context: &HookContext,
    hook: &SpeckitHook,
) -> Result<Option<TurnEnd>, Failure> {
    let (timing, command) = (hook_context.timing, hook_context.command);
    let (owned_context, owned_hook) = (hook_context.clone(), hook.clone());
    let action = run_blocking(move || hook_calls::hook_action(&owned_context, &owned_hook)).await;
    let action = match action {
        Ok(action) => action,
        Err(reason) => return Ok(report_hook_failure(port, hook_context, hook, &reason)),
    };
    // The extension's own settings decide about commits; other optional hooks are confirmed by the user.
    let is_consented = action == HookAction::Nothing || hook.command == hook_calls::COMMIT;
    if action == HookAction::Nothing
        || (hook.is_optional && !is_consented && !confirm_hook(port, hook_context, hook).await)
    {
        return Ok(None);
    }
    let calls = match action {
        HookAction::Calls(calls) => Some(calls),
        HookAction::Model if hook.command == CONTEXT_UPDATE => {
            match context_calls(port, hook_context).await {
                Ok(calls) => Some(calls),
                Err(reason) => return Ok(report_hook_failure(port, hook_context, hook, &reason)),
            }
        }
        HookAction::Model | HookAction::Nothing => None,
    };
    if let Some(calls) = calls {
        return run_hook_calls(port, hook_context, hook, calls).await;
    }
    let prompt = match find_extension_prompt(&hook_context.context, &hook.command, String::new()).await {
        Ok(prompt) => prompt,
        Err(reason) => return Ok(report_hook_failure(port, hook_context, hook, &reason)),
    };
    let text = format!(
        "The project wants {} done {timing} {command}. That is now: do what follows and nothing beyond it, then end your turn.\
         \n\n{prompt}",
        hook.command
    );
    let end = port.run_turn(Some(hidden_part(SpeckitPart::Hook, text)), None).await?.end;
    Ok((end != TurnEnd::Completed).then_some(end))
}

/// Runs a hook with calls of Crow; a failed call ends the step, unless the hook is optional.
async fn run_hook_calls(
    port: &mut impl WorkflowPort,
    hook_context: &HookContext,
    hook: &SpeckitHook,
    calls: Vec<SyntheticCall>,
) -> Result<Option<TurnEnd>, Failure> {
    if calls.is_empty() {
        return Ok(None);
    }
    let (timing, command) = (hook_context.timing, hook_context.command);
    let text = format!("The project wants {} done {timing} {command}; Crow does it.", hook.command);
    port.append_part(hidden_part(SpeckitPart::Hook, text)).await?;
    for call in calls {
        if !port.run_call(call).await? {
            return Ok(match port.is_over() {
                true => Some(TurnEnd::Cancelled),
                false => report_hook_failure(port, hook_context, hook, "one of its calls failed"),
            });
        }
    }
    Ok(None)
}

/// Reports that a hook did not run; returns how the turn ends if the step cannot continue without it.
fn report_hook_failure(
    port: &impl WorkflowPort,
    hook_context: &HookContext,
    hook: &SpeckitHook,
    reason: &str,
) -> Option<TurnEnd> {
    if hook.is_optional || hook_context.timing == HookTiming::After {
        send_note(port, &format!("The hook {} was not run: {reason}.", hook.command));
        return None;
    }
    report_refusal(
        port,
        &format!("{} stops here: its hook {} cannot run: {reason}.", hook_context.command, hook.command),
    );
    Some(TurnEnd::Completed)
}

/// Asks the user about an optional hook.
async fn confirm_hook(port: &mut impl WorkflowPort, hook_context: &HookContext, hook: &SpeckitHook) -> bool {
    let texts = [&hook.prompt, &hook.description].into_iter().filter(|text| !text.is_empty());
    let confirmation = StepConfirmation {
        title: format!("Run {} {} {}", hook.command, hook_context.timing, hook_context.command),
        texts: texts.cloned().collect(),
        subject: ConfirmationSubject::Proposal,
    };
    port.confirm(confirmation).await.is_allowed()
}

/// Returns the calls that update the section about the plan in the context files of other agents.
async fn context_calls(
    port: &mut impl WorkflowPort,
    hook_context: &HookContext,
) -> Result<Vec<SyntheticCall>, String> {
    let owned_context = hook_context.clone();
    let changes = run_blocking(move || {
        let HookContext { context, plan_path, .. } = owned_context;
        let project = &context.project;
        let settings = context.read_approved_file(&AgentContext::config_path(project))?;
        let Some(settings) = settings else { return Ok(Vec::new()) };
        let agent_context = AgentContext::parse(project, &settings)?;
        let plan = plan_path.filter(|plan| plan.is_file()).map(|plan| project.display_path(&plan));
        let mut changes = Vec::new();
        for file in &agent_context.files {
            let path = project.resolve_path(file);
            let old = project.read_project_file(&path)?;
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
            port.workspace().record_write(crow_files::resolve_links(&path), &old);
        }
        let arguments = vec![("file_path", path.display().to_string()), ("content", new)];
        SyntheticCall { tool: "write", arguments }
    });
    Ok(calls.collect())
}
