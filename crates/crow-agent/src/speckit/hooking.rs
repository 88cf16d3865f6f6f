//! What a project's extensions want run before and after a step, and their commands. Nothing of it runs that the person did
//! not approve by its bytes; what it asks for is done by the model, under the session's own rules.

use std::path::Path;

use crow_acp::{OfferedAnswers, PermissionSubject};
use crow_core::{Failure, SpeckitPart, ToolCallContent, TurnEnd};
use crow_speckit::{
    AgentContext, CommandInvocation, ExtensionCommand, HookTiming, PromptFacts, PromptPart, SpeckitError,
    SpeckitHook, SpeckitHooks, SpeckitProject, WorkflowCommand, extension_prompt, hook_config_files,
    list_extension_commands, render_prompt,
};

use crate::confirm::{ConfirmationRequest, ask_confirmation};
use crate::run_turn::{SessionState, TurnCx, run_turn};
use crate::speckit::git::{self, HookAction, SyntheticCall};
use crate::speckit::ground::ProjectContext;
use crate::speckit::record::run_blocking;
use crate::speckit::source::unapproved_file;
use crate::speckit::step::{BY, hidden_part};
use crate::speckit::work::{SteeringReceiver, StepInput, append_user_prompt, report_refusal, send_note};
use crate::supplies::ApprovedFiles;

/// The command that Crow does without a model, beside those of git.
const CONTEXT_UPDATE: &str = "speckit.agent-context.update";

/// When a hook runs: around which step, and for which feature's folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct HookContext<'a> {
    pub(super) when: HookTiming,
    pub(super) command: WorkflowCommand,
    pub(super) ground: &'a ProjectContext,
    /// What the person asked for, before a step.
    pub(super) asked: Option<&'a CommandInvocation>,
    pub(super) plan: Option<&'a Path>,
}

/// Runs the hooks of a moment, one after the other; gives how the turn ends if it ends with that. The person's words go
/// with the first one that the model has to do.
pub(super) async fn run_hooks(
    cx: &TurnCx<'_>,
    talk: &mut SessionState,
    moment: HookContext<'_>,
    words: SteeringReceiver<'_>,
) -> Result<Option<TurnEnd>, Failure> {
    let (ground, approved) = (moment.ground.clone(), cx.stock.current_config().approved.clone());
    let surrounding = cx.kit.config().workflow.surrounding.clone();
    let look = move |name: &str| surrounding.get(name);
    let (when, command) = (moment.when, moment.command);
    let hooks =
        match run_blocking(move || read_hooks(&ground.project, &approved, (when, command), &look)).await {
            Ok(hooks) => hooks,
            Err(why) => {
                send_note(cx, &format!("No hook was run {when} {command}: {why}."));
                return Ok(None);
            }
        };
    for hook in hooks {
        if let Some(end) = run_hook(cx, talk, (&moment, &hook), words).await? {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// Reads the hooks of a moment, if the person approved every file that decides what they do.
fn read_hooks(
    project: &SpeckitProject,
    approved: &ApprovedFiles,
    (when, command): (HookTiming, WorkflowCommand),
    look: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<SpeckitHook>, SpeckitError> {
    let path = SpeckitHooks::config_path(project);
    let Some(text) = project.read_project_file(&path)? else { return Ok(Vec::new()) };
    let hooks = SpeckitHooks::parse(project, &text)?.matching_hooks(when, command, look);
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
    Err(SpeckitError::Invalid(format!("nobody approved {}", project.display_path(path))))
}

/// Reads a file as the person approved it; `None` where there is none.
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
    talk: &mut SessionState,
    (moment, hook): (&HookContext<'_>, &SpeckitHook),
    words: SteeringReceiver<'_>,
) -> Result<Option<TurnEnd>, Failure> {
    let HookContext { when, command, ground, .. } = *moment;
    let on = ground.clone();
    let (of, asked, approved) =
        (hook.clone(), moment.asked.cloned(), cx.stock.current_config().approved.clone());
    let way = run_blocking(move || {
        let moment = HookContext { when, command, ground: &on, asked: asked.as_ref(), plan: None };
        git::hook_action(&moment, &of, &approved)
    });
    let way = match way.await {
        Ok(way) => way,
        Err(why) => return Ok(report_hook_failure(cx, (moment, hook), &why)),
    };
    // Its own settings say whether a commit is wanted; for all else the person is asked.
    let is_settled = way == HookAction::Nothing || hook.command == git::COMMIT;
    if way == HookAction::Nothing
        || (hook.is_optional && !is_settled && !confirm_hook(cx, talk, (moment, hook)).await)
    {
        return Ok(None);
    }
    let calls = match way {
        HookAction::Calls(calls) => Some(calls),
        HookAction::Model if hook.command == CONTEXT_UPDATE => match context_calls(cx, moment).await {
            Ok(calls) => Some(calls),
            Err(why) => return Ok(report_hook_failure(cx, (moment, hook), &why)),
        },
        HookAction::Model | HookAction::Nothing => None,
    };
    if let Some(calls) = calls {
        return run_hook_calls(cx, talk, (moment, hook), calls).await;
    }
    let prompt = match find_extension_prompt(cx, ground, &hook.command, String::new()).await {
        Ok(prompt) => prompt,
        Err(why) => return Ok(report_hook_failure(cx, (moment, hook), &why)),
    };
    let text = format!(
        "The project wants {} done {when} {command}. That is now: do what follows and nothing beyond it, then end your turn.\
         \n\n{prompt}",
        hook.command
    );
    cx.append_prompt(talk, vec![hidden_part(SpeckitPart::Hook, text)], Vec::new()).await?;
    let end = run_turn(cx, talk, words).await?;
    Ok((end != TurnEnd::Done).then_some(end))
}

/// Does what a hook asks by calls of Crow's own; one that fails ends the step, unless the hook need not run.
async fn run_hook_calls(
    cx: &TurnCx<'_>,
    talk: &mut SessionState,
    (moment, hook): (&HookContext<'_>, &SpeckitHook),
    calls: Vec<SyntheticCall>,
) -> Result<Option<TurnEnd>, Failure> {
    if calls.is_empty() {
        return Ok(None);
    }
    let HookContext { when, command, .. } = *moment;
    let text = format!("The project wants {} done {when} {command}; Crow does it.", hook.command);
    cx.append_prompt(talk, vec![hidden_part(SpeckitPart::Hook, text)], Vec::new()).await?;
    for call in calls {
        if !git::run_synthetic_call(cx, talk, call).await? {
            return Ok(match cx.is_over() {
                true => Some(TurnEnd::Cancelled),
                false => report_hook_failure(cx, (moment, hook), "one of its steps was not done"),
            });
        }
    }
    Ok(None)
}

/// Says that a hook did not run; gives how the turn ends, where the step cannot go on without it.
fn report_hook_failure(
    cx: &TurnCx<'_>,
    (moment, hook): (&HookContext<'_>, &SpeckitHook),
    why: &str,
) -> Option<TurnEnd> {
    if hook.is_optional || moment.when == HookTiming::After {
        send_note(cx, &format!("The hook {} was not run: {why}.", hook.command));
        return None;
    }
    report_refusal(
        cx,
        &format!("{} stops here: its hook {} cannot run: {why}.", moment.command, hook.command),
    );
    Some(TurnEnd::Done)
}

/// Offers a hook that need not run.
async fn confirm_hook(
    cx: &TurnCx<'_>,
    talk: &SessionState,
    (moment, hook): (&HookContext<'_>, &SpeckitHook),
) -> bool {
    let title = format!("Run {} {} {}", hook.command, moment.when, moment.command);
    let about = [&hook.prompt, &hook.description].into_iter().filter(|text| !text.is_empty());
    let content = about.map(|text| ToolCallContent::Text(text.clone())).collect();
    let answered = ask_confirmation(
        cx,
        ConfirmationRequest {
            by: BY,
            title: &title,
            content,
            subject: PermissionSubject::Offer,
            answers: OfferedAnswers::Once,
        },
        talk,
    )
    .await;
    answered.is_allowed()
}

/// The calls that keep the block about the plan in the files that other agents read.
async fn context_calls(cx: &TurnCx<'_>, moment: &HookContext<'_>) -> Result<Vec<SyntheticCall>, String> {
    let (on, plan) = (moment.ground.clone(), moment.plan.map(Path::to_owned));
    let approved = cx.stock.current_config().approved.clone();
    let changed = run_blocking(move || {
        let settings = approved_text(&on.project, &approved, &AgentContext::config_path(&on.project))?;
        let Some(settings) = settings else { return Ok(Vec::new()) };
        let context = AgentContext::parse(&on.project, &settings)?;
        let plan = plan.filter(|plan| plan.is_file()).map(|plan| on.project.display_path(&plan));
        let mut changed = Vec::new();
        for file in &context.files {
            let path = on.project.resolve_path(file);
            let old = on.project.read_project_file(&path)?;
            let new = context.upsert_block(old.as_deref().unwrap_or_default(), plan.as_deref());
            if old.as_ref() != Some(&new) {
                changed.push((path, old, new));
            }
        }
        Ok(changed)
    })
    .await?;
    let calls = changed.into_iter().map(|(path, old, new)| {
        if let Some(old) = old {
            // The new text was made of this very one.
            cx.workspace.record_write(crow_tools::resolve_links(&path), &old);
        }
        SyntheticCall::write_file(&path, new)
    });
    Ok(calls.collect())
}

/// Does a command of an extension; the other side is why it cannot be done.
pub(super) async fn run_extension_command(
    cx: &TurnCx<'_>,
    talk: &mut SessionState,
    (name, text): (&str, &str),
    said: StepInput,
    words: SteeringReceiver<'_>,
) -> Result<Result<TurnEnd, String>, Failure> {
    let ground = match ProjectContext::find_project(cx).await? {
        Ok(ground) => ground,
        Err(why) => return Ok(Err(why)),
    };
    let prompt = match find_extension_prompt(cx, &ground, name, text.to_owned()).await {
        Ok(prompt) => prompt,
        Err(why) => return Ok(Err(why)),
    };
    talk.turn = talk.transcript.next_seq();
    let meaning =
        hidden_part(SpeckitPart::Command, format!("The command /{name} stands for this:\n\n{prompt}"));
    if let Some(end) = append_user_prompt(cx, talk, (said, Some(meaning))).await? {
        return Ok(Ok(end));
    }
    run_turn(cx, talk, words).await.map(Ok)
}

/// Finds what a command of an extension stands for.
async fn find_extension_prompt(
    cx: &TurnCx<'_>,
    ground: &ProjectContext,
    name: &str,
    args: String,
) -> Result<String, String> {
    let (project, approved, name) =
        (ground.project.clone(), cx.stock.current_config().approved.clone(), name.to_owned());
    run_blocking(move || {
        let known = list_extension_commands(&project)?.commands;
        let Some(command) = known.iter().find(|command| command.name == name) else {
            return Err(SpeckitError::Invalid(unknown_command(&name, &known)));
        };
        let source = extension_prompt(&project, command)?;
        if let Some(path) = unapproved_file(&source, project.root(), &approved) {
            return Err(SpeckitError::Invalid(format!("nobody approved {path}")));
        }
        let facts = PromptFacts { args, ..PromptFacts::default() };
        source.parts.iter().map(|PromptPart { text, kind, .. }| render_prompt(text, *kind, &facts)).collect()
    })
    .await
}

fn unknown_command(name: &str, known: &[ExtensionCommand]) -> String {
    if known.is_empty() {
        return format!("there is no command /{name}: no extension of this project is enabled");
    }
    let names: Vec<String> = known.iter().map(|command| format!("/{}", command.name)).collect();
    format!("there is no command /{name}; the extensions have {}", names.join(", "))
}
