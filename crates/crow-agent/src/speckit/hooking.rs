//! What a project's extensions want run before and after a step, and their commands. Nothing of it runs that the person did
//! not approve by its bytes; what it asks for is done by the model, under the session's own rules.

use crow_acp::{Answered, OfferAlways};
use crow_core::{Content, Failure, TurnEnd};
use crow_speckit::{
    AgentContext, Command, ExtensionCommand, Facts, Hook, Hooks, Invocation, Part, Project, SpeckitError,
    When, extension_commands, extension_prompt, render,
};

use crate::run_turn::{Conversation, TurnCx, run_turn, store_failure};
use crate::speckit::git::{self, Way};
use crate::speckit::ground::Ground;
use crate::speckit::record::{self, off};
use crate::speckit::source::unapproved;
use crate::speckit::step::{confirm, failed, hidden};
use crate::speckit::work::{Said, Words, first_words, note_to};
use crate::supplies::Approved;

/// The command that Crow does without a model, beside those of git.
const CONTEXT_UPDATE: &str = "speckit.agent-context.update";

/// When a hook runs: around which step, and for which feature's folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment<'a> {
    pub(super) when: When,
    pub(super) command: Command,
    pub(super) ground: &'a Ground,
    /// What the person asked for, before a step.
    pub(super) asked: Option<&'a Invocation>,
    pub(super) plan: Option<&'a std::path::Path>,
}

/// Runs the hooks of a moment, one after the other; gives how the turn ends if it ends with that. The person's words go
/// with the first one that the model has to do.
pub(super) async fn run(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    moment: Moment<'_>,
    first: &mut Vec<crow_core::Part>,
    words: Words<'_>,
) -> Result<Option<TurnEnd>, Failure> {
    let (ground, approved) = (moment.ground.clone(), cx.stock.now().approved.clone());
    let surrounding = cx.kit.settings().workflow.surrounding.clone();
    let look = move |name: &str| surrounding.get(name);
    let (when, command) = (moment.when, moment.command);
    let hooks = match off(move || hooks(&ground.project, &approved, (when, command), &look)).await {
        Ok(hooks) => hooks,
        Err(why) => {
            note_to(cx, &format!("No hook was run {when} {command}: {why}."));
            return Ok(None);
        }
    };
    for hook in hooks {
        if let Some(end) = run_one(cx, talk, (&moment, &hook), first, words).await? {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// Reads the hooks of a moment from a file that the person approved.
fn hooks(
    project: &Project,
    approved: &Approved,
    (when, command): (When, Command),
    look: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Hook>, SpeckitError> {
    let path = Hooks::file(project);
    let Some(text) = Project::read(&path)? else { return Ok(Vec::new()) };
    let hooks = Hooks::parse(project, &text)?.of(when, command, look);
    if !hooks.is_empty() && !approved.has(&path, text.as_bytes()) {
        let why = format!("nobody approved {}", project.shown(&path));
        return Err(SpeckitError::Invalid(why));
    }
    Ok(hooks)
}

async fn run_one(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    (moment, hook): (&Moment<'_>, &Hook),
    first: &mut Vec<crow_core::Part>,
    words: Words<'_>,
) -> Result<Option<TurnEnd>, Failure> {
    let Moment { when, command, ground, .. } = *moment;
    let on = ground.clone();
    let (of, asked) = (hook.clone(), moment.asked.cloned());
    let way = off(move || {
        let moment = Moment { when, command, ground: &on, asked: asked.as_ref(), plan: None };
        git::way(&moment, &of)
    });
    let way = match way.await {
        Ok(way) => way,
        Err(why) => return Ok(stopped(cx, (command, hook), &why)),
    };
    // Its own settings say whether a commit is wanted; for all else the person is asked.
    let is_settled = way == Way::Nothing || hook.command == git::COMMIT;
    if way == Way::Nothing || (hook.is_optional && !is_settled && !is_wanted(cx, talk, (moment, hook)).await)
    {
        return Ok(None);
    }
    if let Way::Commands(lines) = way {
        return by_commands(cx, talk, (moment, hook), first, lines).await;
    }
    if hook.command == CONTEXT_UPDATE {
        update_context(cx, talk, moment).await.map_err(failed)?;
        return Ok(None);
    }
    let prompt = match prompt(cx, ground, &hook.command, String::new()).await {
        Ok(prompt) => prompt,
        Err(why) => return Ok(stopped(cx, (command, hook), &why)),
    };
    let text = format!(
        "The project wants {} done {when} {command}. That is now: do what follows and nothing beyond it, then end your turn.\
         \n\n{prompt}",
        hook.command
    );
    let mut parts = std::mem::take(first);
    parts.push(hidden("hook", text));
    cx.append_prompt(talk, parts, Vec::new()).await?;
    let end = run_turn(cx, talk, words).await?;
    Ok((end != TurnEnd::Done).then_some(end))
}

/// Does what a hook asks by commands; one that fails ends the step, unless the hook need not run.
async fn by_commands(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    (moment, hook): (&Moment<'_>, &Hook),
    first: &mut Vec<crow_core::Part>,
    lines: Vec<String>,
) -> Result<Option<TurnEnd>, Failure> {
    let Moment { when, command, .. } = *moment;
    let text = format!("The project wants {} done {when} {command}; Crow does it.", hook.command);
    let mut parts = std::mem::take(first);
    parts.push(hidden("hook", text));
    cx.append_prompt(talk, parts, Vec::new()).await?;
    for line in lines {
        if !git::run(cx, talk, line).await? {
            return Ok(match cx.is_over() {
                true => Some(TurnEnd::Cancelled),
                false => stopped(cx, (command, hook), "one of its commands was not done"),
            });
        }
    }
    Ok(None)
}

/// Says that a hook did not run; gives how the turn ends, where the step cannot go on without it.
fn stopped(cx: &TurnCx<'_>, (command, hook): (Command, &Hook), why: &str) -> Option<TurnEnd> {
    if hook.is_optional {
        note_to(cx, &format!("The hook {} was not run: {why}.", hook.command));
        return None;
    }
    note_to(cx, &format!("{command} stops here: its hook {} cannot run: {why}.", hook.command));
    Some(TurnEnd::Done)
}

/// Offers a hook that need not run.
async fn is_wanted(cx: &TurnCx<'_>, talk: &Conversation, (moment, hook): (&Moment<'_>, &Hook)) -> bool {
    let title = format!("Run {} {} {}", hook.command, moment.when, moment.command);
    let about = [&hook.prompt, &hook.description].into_iter().filter(|text| !text.is_empty());
    let content = about.map(|text| Content::Text(text.clone())).collect();
    let answered = confirm(cx, (&title, content), OfferAlways::No, talk).await;
    matches!(answered, Answered::AllowOnce | Answered::AllowAlways)
}

/// Keeps the block about the plan in the files that other agents read.
async fn update_context(cx: &TurnCx<'_>, talk: &Conversation, moment: &Moment<'_>) -> Result<(), String> {
    let on = moment.ground.clone();
    let plan = moment.plan.filter(|plan| plan.is_file()).map(|plan| on.project.shown(plan));
    let changed = off(move || {
        let Some(context) = AgentContext::read(&on.project)? else { return Ok(Vec::new()) };
        let mut changed = Vec::new();
        for file in &context.files {
            let path = on.project.place(file);
            if !on.project.owns(&path) {
                continue;
            }
            let old = Project::read(&path)?.unwrap_or_default();
            let new = context.upsert(&old, plan.as_deref());
            if new != old {
                changed.push((path, new));
            }
        }
        Ok(changed)
    })
    .await?;
    let keeper = crate::keeping::CallKeeper::new(cx, talk.turn, crow_core::CallId::at(talk.turn, 0));
    for (path, text) in changed {
        record::write(Some(&keeper), cx.workspace, &path, &text).await?;
        note_to(cx, &format!("{} names the plan to other agents now.", moment.ground.project.shown(&path)));
    }
    Ok(())
}

/// Does a command of an extension; the other side is why it cannot be done.
pub(super) async fn command(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    (name, text): (&str, &str),
    said: Said,
    words: Words<'_>,
) -> Result<Result<TurnEnd, String>, Failure> {
    let ground = match Ground::find(cx).await? {
        Ok(ground) => ground,
        Err(why) => return Ok(Err(why)),
    };
    let prompt = match prompt(cx, &ground, name, text.to_owned()).await {
        Ok(prompt) => prompt,
        Err(why) => return Ok(Err(why)),
    };
    talk.turn = talk.transcript.next_seq();
    let mut parts = match first_words(cx, said).await? {
        Ok(parts) => parts,
        Err(end) => return Ok(Ok(end)),
    };
    parts.insert(1, hidden("command", format!("The command /{name} stands for this:\n\n{prompt}")));
    let mail = cx.children.mail().await.map_err(store_failure)?;
    cx.append_prompt(talk, parts, mail).await?;
    run_turn(cx, talk, words).await.map(Ok)
}

/// Finds what a command of an extension stands for.
async fn prompt(cx: &TurnCx<'_>, ground: &Ground, name: &str, args: String) -> Result<String, String> {
    let (project, approved, name) =
        (ground.project.clone(), cx.stock.now().approved.clone(), name.to_owned());
    off(move || {
        let known = extension_commands(&project)?.commands;
        let Some(command) = known.iter().find(|command| command.name == name) else {
            return Err(SpeckitError::Invalid(unknown(&name, &known)));
        };
        let source = extension_prompt(&project, command)?;
        if let Some(path) = unapproved(&source, project.root(), &approved) {
            return Err(SpeckitError::Invalid(format!("nobody approved {path}")));
        }
        let facts = Facts { args, ..Facts::default() };
        source.parts.iter().map(|Part { text, kind, .. }| render(text, *kind, &facts)).collect()
    })
    .await
}

fn unknown(name: &str, known: &[ExtensionCommand]) -> String {
    if known.is_empty() {
        return format!("there is no command /{name}: no extension of this project is enabled");
    }
    let names: Vec<String> = known.iter().map(|command| format!("/{}", command.name)).collect();
    format!("there is no command /{name}; the extensions have {}", names.join(", "))
}
