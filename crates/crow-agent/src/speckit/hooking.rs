//! What a project's extensions want run before and after a step, and their commands. Nothing of it runs that the person did
//! not approve by its bytes; what it asks for is done by the model, under the session's own rules.

use std::path::Path;

use crow_acp::{Answers, Subject};
use crow_core::{Content, Failure, SpeckitPart, TurnEnd};
use crow_speckit::{
    AgentContext, Command, ExtensionCommand, Facts, Hook, Hooks, Invocation, Part, Project, SpeckitError,
    When, deciding_files, extension_commands, extension_prompt, render,
};

use crate::confirm::{Matter, confirm};
use crate::run_turn::{Conversation, TurnCx, run_turn};
use crate::speckit::git::{self, OwnCall, Way};
use crate::speckit::ground::Ground;
use crate::speckit::record::off;
use crate::speckit::source::unapproved;
use crate::speckit::step::{BY, hidden};
use crate::speckit::work::{Said, Words, note_to, refuse, say_first};
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
    pub(super) plan: Option<&'a Path>,
}

/// Runs the hooks of a moment, one after the other; gives how the turn ends if it ends with that. The person's words go
/// with the first one that the model has to do.
pub(super) async fn run(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    moment: Moment<'_>,
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
        if let Some(end) = run_one(cx, talk, (&moment, &hook), words).await? {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// Reads the hooks of a moment, if the person approved every file that decides what they do.
fn hooks(
    project: &Project,
    approved: &Approved,
    (when, command): (When, Command),
    look: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<Hook>, SpeckitError> {
    let path = Hooks::file(project);
    let Some(text) = project.read_own(&path)? else { return Ok(Vec::new()) };
    let hooks = Hooks::parse(project, &text)?.of(when, command, look);
    if !hooks.is_empty() {
        check_approved(project, approved, &path, text.as_bytes())?;
        for (path, bytes) in deciding_files(project)? {
            check_approved(project, approved, &path, &bytes)?;
        }
    }
    Ok(hooks)
}

fn check_approved(
    project: &Project,
    approved: &Approved,
    path: &Path,
    bytes: &[u8],
) -> Result<(), SpeckitError> {
    if approved.has(path, bytes) {
        return Ok(());
    }
    Err(SpeckitError::Invalid(format!("nobody approved {}", project.shown(path))))
}

/// Reads a file as the person approved it; `None` where there is none.
pub(super) fn approved_text(
    project: &Project,
    approved: &Approved,
    path: &Path,
) -> Result<Option<String>, SpeckitError> {
    let Some(text) = project.read_own(path)? else { return Ok(None) };
    check_approved(project, approved, path, text.as_bytes())?;
    Ok(Some(text))
}

async fn run_one(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    (moment, hook): (&Moment<'_>, &Hook),
    words: Words<'_>,
) -> Result<Option<TurnEnd>, Failure> {
    let Moment { when, command, ground, .. } = *moment;
    let on = ground.clone();
    let (of, asked, approved) = (hook.clone(), moment.asked.cloned(), cx.stock.now().approved.clone());
    let way = off(move || {
        let moment = Moment { when, command, ground: &on, asked: asked.as_ref(), plan: None };
        git::way(&moment, &of, &approved)
    });
    let way = match way.await {
        Ok(way) => way,
        Err(why) => return Ok(stopped(cx, (moment, hook), &why)),
    };
    // Its own settings say whether a commit is wanted; for all else the person is asked.
    let is_settled = way == Way::Nothing || hook.command == git::COMMIT;
    if way == Way::Nothing || (hook.is_optional && !is_settled && !is_wanted(cx, talk, (moment, hook)).await)
    {
        return Ok(None);
    }
    let calls = match way {
        Way::Calls(calls) => Some(calls),
        Way::Model if hook.command == CONTEXT_UPDATE => match context_calls(cx, moment).await {
            Ok(calls) => Some(calls),
            Err(why) => return Ok(stopped(cx, (moment, hook), &why)),
        },
        Way::Model | Way::Nothing => None,
    };
    if let Some(calls) = calls {
        return by_calls(cx, talk, (moment, hook), calls).await;
    }
    let prompt = match prompt(cx, ground, &hook.command, String::new()).await {
        Ok(prompt) => prompt,
        Err(why) => return Ok(stopped(cx, (moment, hook), &why)),
    };
    let text = format!(
        "The project wants {} done {when} {command}. That is now: do what follows and nothing beyond it, then end your turn.\
         \n\n{prompt}",
        hook.command
    );
    cx.append_prompt(talk, vec![hidden(SpeckitPart::Hook, text)], Vec::new()).await?;
    let end = run_turn(cx, talk, words).await?;
    Ok((end != TurnEnd::Done).then_some(end))
}

/// Does what a hook asks by calls of Crow's own; one that fails ends the step, unless the hook need not run.
async fn by_calls(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    (moment, hook): (&Moment<'_>, &Hook),
    calls: Vec<OwnCall>,
) -> Result<Option<TurnEnd>, Failure> {
    if calls.is_empty() {
        return Ok(None);
    }
    let Moment { when, command, .. } = *moment;
    let text = format!("The project wants {} done {when} {command}; Crow does it.", hook.command);
    cx.append_prompt(talk, vec![hidden(SpeckitPart::Hook, text)], Vec::new()).await?;
    for call in calls {
        if !git::run(cx, talk, call).await? {
            return Ok(match cx.is_over() {
                true => Some(TurnEnd::Cancelled),
                false => stopped(cx, (moment, hook), "one of its steps was not done"),
            });
        }
    }
    Ok(None)
}

/// Says that a hook did not run; gives how the turn ends, where the step cannot go on without it.
fn stopped(cx: &TurnCx<'_>, (moment, hook): (&Moment<'_>, &Hook), why: &str) -> Option<TurnEnd> {
    if hook.is_optional || moment.when == When::After {
        note_to(cx, &format!("The hook {} was not run: {why}.", hook.command));
        return None;
    }
    refuse(cx, &format!("{} stops here: its hook {} cannot run: {why}.", moment.command, hook.command));
    Some(TurnEnd::Done)
}

/// Offers a hook that need not run.
async fn is_wanted(cx: &TurnCx<'_>, talk: &Conversation, (moment, hook): (&Moment<'_>, &Hook)) -> bool {
    let title = format!("Run {} {} {}", hook.command, moment.when, moment.command);
    let about = [&hook.prompt, &hook.description].into_iter().filter(|text| !text.is_empty());
    let content = about.map(|text| Content::Text(text.clone())).collect();
    let answered = confirm(
        cx,
        Matter { by: BY, title: &title, content, subject: Subject::Offer, answers: Answers::Once },
        talk,
    )
    .await;
    answered.allows()
}

/// The calls that keep the block about the plan in the files that other agents read.
async fn context_calls(cx: &TurnCx<'_>, moment: &Moment<'_>) -> Result<Vec<OwnCall>, String> {
    let (on, plan) = (moment.ground.clone(), moment.plan.map(Path::to_owned));
    let approved = cx.stock.now().approved.clone();
    let changed = off(move || {
        let settings = approved_text(&on.project, &approved, &AgentContext::file(&on.project))?;
        let Some(settings) = settings else { return Ok(Vec::new()) };
        let context = AgentContext::parse(&on.project, &settings)?;
        let plan = plan.filter(|plan| plan.is_file()).map(|plan| on.project.shown(&plan));
        let mut changed = Vec::new();
        for file in &context.files {
            let path = on.project.place(file);
            let old = on.project.read_own(&path)?;
            let new = context.upsert(old.as_deref().unwrap_or_default(), plan.as_deref());
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
            cx.workspace.wrote(crow_tools::resolve(&path), &old);
        }
        OwnCall::write(&path, new)
    });
    Ok(calls.collect())
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
    let meaning = hidden(SpeckitPart::Command, format!("The command /{name} stands for this:\n\n{prompt}"));
    if let Some(end) = say_first(cx, talk, (said, Some(meaning))).await? {
        return Ok(Ok(end));
    }
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
