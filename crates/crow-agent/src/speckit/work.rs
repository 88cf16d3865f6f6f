//! How a step goes: what has to be there is checked first, and costs nothing where it is missing; then Crow lays out what
//! needs no model, the model does the rest, and what it wrote is checked.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crow_acp::Spoken;
use crow_core::{Failure, Part, ReportOutcome, SpeckitPart, TurnEnd, Update};
use crow_speckit::{
    Answer, Aside, Baseline, ChangeWatch, Command, Done, Feature, Guard, Hold, Invocation, Snapshot,
    SpeckitError, When, check_needs, flip, needs_of, unfilled_constitution,
};
use crow_tools::Keeper;
use tokio::sync::mpsc;

use crate::calls;
use crate::confirm::visible;
use crate::handle::MoreWords;
use crate::hooks::{self, NotAsked};
use crate::linked;
use crate::run_turn::{Conversation, TurnCx, store_failure};
use crate::speckit::asking::{self, Open};
use crate::speckit::converge;
use crate::speckit::ground::Ground;
use crate::speckit::hooking::{self, Moment};
use crate::speckit::implement;
use crate::speckit::issues::IssueHome;
use crate::speckit::layout;
use crate::speckit::record::{Record, off};
use crate::speckit::report;
use crate::speckit::scope::{Desk, Scope};
use crate::speckit::source::Source;
use crate::speckit::step::{Step, failed, hidden};
use crate::speckit::tools;
use crate::{spoken, undo};

/// What the model is told of a step that the person ended.
pub(super) const STOPPED: &str =
    "The person ended this step here. What is written stays; do not go on with it.";

/// What a person said, with what they did since.
pub(super) struct Said {
    pub(super) spoken: Vec<Spoken>,
    pub(super) untold: Option<Part>,
}

/// Where a turn's further words come from.
pub(super) type Words<'a> = &'a mut mpsc::Receiver<MoreWords>;

/// What is known before anything is written.
struct Ready {
    feature: Option<Feature>,
    /// What the person should know.
    notes: Vec<String>,
}

/// Does a step from its beginning; the other side of the inner result is why it cannot begin.
pub(super) async fn begin(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    (invocation, said): (Invocation, Said),
    words: Words<'_>,
) -> Result<Result<TurnEnd, String>, Failure> {
    let command = invocation.command;
    // Without a model nothing comes of what is laid out.
    cx.model()?;
    let ground = match Ground::find(cx).await? {
        Ok(ground) => ground,
        Err(why) => return Ok(Err(why)),
    };
    let (on, asked) = (ground.clone(), invocation.clone());
    let ready = match off(move || preflight(&on, &asked)).await {
        Ok(ready) => ready,
        Err(why) => return Ok(Err(why)),
    };
    if let Some(why) = forbidden(cx, (&ground, command), ready.feature.as_ref()) {
        return Ok(Err(why));
    }
    for note in &ready.notes {
        note_to(cx, note);
    }
    let issues = match (command, &ready.feature) {
        (Command::TasksToIssues, Some(feature)) => {
            match IssueHome::find(cx, &ground, (feature, &invocation.text)).await {
                Ok(home) => Some(home),
                Err(why) => return Ok(Err(why)),
            }
        }
        _ => None,
    };
    if command == Command::Implement
        && let Some(end) = implement::gate(cx, &ready.feature, talk).await?
    {
        return Ok(Ok(end));
    }
    // From here on something may be left behind, and belongs to these words.
    talk.turn = talk.transcript.next_seq();
    if let Some(end) = say_first(cx, talk, (said, None)).await? {
        return Ok(Ok(end));
    }
    let asked = Some(&invocation);
    let moment = Moment { when: When::Before, command, ground: &ground, asked, plan: None };
    if let Some(end) = hooking::run(cx, talk, moment, words).await? {
        return Ok(Ok(end));
    }
    let feature = match layout::lay_out(cx, talk, (&ground, &invocation), ready.feature).await {
        Ok(feature) => feature,
        Err(why) => return Ok(Err(why)),
    };
    if cx.is_over() {
        return Ok(Ok(TurnEnd::Cancelled));
    }
    ground.bind(cx, feature.as_ref(), Some(command)).await?;
    let mut step = match stand(cx, ground, feature, (command, invocation.text), 0).await {
        Ok(step) => step,
        Err(why) => return Ok(Err(why)),
    };
    step.scope.issues = issues;
    work(&step, talk, words).await
}

/// Goes on with a step that asked something.
pub(super) async fn go_on(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    (open, said): (Open, Said),
    words: Words<'_>,
) -> Result<Result<TurnEnd, String>, Failure> {
    let Open { command, question, n_asked } = open;
    let answer = question.read(&said.text());
    let ground = match Ground::find(cx).await? {
        Ok(ground) => ground,
        Err(why) => return Ok(Err(why)),
    };
    let on = ground.clone();
    let feature = match needs_of(command).is_some() || command == Command::Specify {
        true => match off(move || on.feature(None)).await {
            Ok((feature, _)) => Some(feature),
            Err(why) => return Ok(Err(why)),
        },
        false => None,
    };
    let n_asked = if answer == Answer::NoMore { tools::questions_max(command) } else { n_asked };
    talk.turn = talk.transcript.next_seq();
    let step = match stand(cx, ground, feature, (command, String::new()), n_asked).await {
        Ok(step) => step,
        Err(why) => return Ok(Err(why)),
    };
    let left = tools::questions_max(command).saturating_sub(n_asked);
    let told = match &answer {
        Answer::Stop => STOPPED.to_owned(),
        Answer::Given(_) | Answer::NoMore => asking::told(&step, (&question, &answer), left).await?,
    };
    if let Some(end) = say_first(cx, talk, (said, Some(hidden(SpeckitPart::Answer, told)))).await? {
        return Ok(Ok(end));
    }
    if answer == Answer::Stop {
        step.note(&format!("{command} ends here. What is written stays."));
        return Ok(Ok(TurnEnd::Done));
    }
    let keeper = step.keeper(talk);
    let with = (Some(&keeper as &dyn Keeper), cx.workspace);
    if let Err(why) = asking::written(step.record().as_ref(), (&question, &answer), with).await {
        return Ok(Err(why));
    }
    let before = match talk.before.take() {
        Some(before) => *before,
        None => step.baseline().await?.late(),
    };
    let end = step.go(talk, words).await?;
    finish(&step, talk, (end, before), words).await.map(Ok)
}

/// Checks what a step needs. Writes nothing.
fn preflight(ground: &Ground, asked: &Invocation) -> Result<Ready, SpeckitError> {
    let command = asked.command;
    if command == Command::Specify && asked.text.trim().is_empty() {
        let why = format!("there is nothing to specify; say behind {command} what to build and why");
        return Err(SpeckitError::Invalid(why));
    }
    let mut ready = Ready { feature: None, notes: ground.notes() };
    if let Some(needs) = needs_of(command) {
        let (feature, origin) = ground.feature(asked.feature.as_deref())?;
        check_needs(&ground.project, &feature, needs)?;
        if matches!(command, Command::Implement | Command::Converge | Command::TasksToIssues) {
            tasks_are_ready(&feature, asked)?;
        }
        ready.notes.extend(report::on_origin(ground, &feature, origin));
        ready.feature = Some(feature);
    }
    // Each step ends with the facts of the project, which hold the ground rules: what cannot be read is told before.
    ground.project.read_own(&ground.project.constitution())?;
    layout::check(ground, asked, ready.feature.as_ref())?;
    Ok(ready)
}

fn tasks_are_ready(feature: &Feature, asked: &Invocation) -> Result<(), SpeckitError> {
    let command = asked.command;
    let text = feature.read("tasks.md")?.unwrap_or_default();
    let list = feature.task_list()?;
    let unmet = |why: &str, next| Err(SpeckitError::Unmet { why: why.to_owned(), next: Some(next) });
    if list.tasks.is_empty() {
        return unmet("there is no task in tasks.md", Command::Tasks);
    }
    if command == Command::Converge && list.n_done() == 0 {
        let why = format!(
            "no task is done yet, so there is nothing to compare; {} comes first",
            Command::Implement
        );
        return Err(SpeckitError::Invalid(why));
    }
    if command == Command::Implement && list.n_done() == list.tasks.len() {
        let why = format!("every task is done; {} finds out what the code still lacks", Command::Converge);
        return Err(SpeckitError::Invalid(why));
    }
    if command == Command::TasksToIssues && list.n_done() == list.tasks.len() {
        let why = "every task is done, so there is nothing to make an issue of".to_owned();
        return Err(SpeckitError::Invalid(why));
    }
    let takes_some = matches!(command, Command::Implement | Command::TasksToIssues);
    if takes_some && list.selection(&asked.text).is_some_and(|meant| meant.is_empty()) {
        let why = format!(
            "no open task is meant by that; name others, or say {command} alone for all that are open"
        );
        return Err(SpeckitError::Invalid(why));
    }
    // What cannot be ticked is better known before it is done.
    let mut seen = HashSet::new();
    let twice = list.tasks.iter().find(|task| !seen.insert(&task.id));
    match twice.filter(|_| command == Command::Implement).map(|task| flip(&text, &task.id, Done::Yes)) {
        Some(Err(error)) => Err(SpeckitError::Invalid(format!("a tick would be lost: {error}"))),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Says which rule of the configuration keeps Crow from the files that a step is for.
fn forbidden(
    cx: &TurnCx<'_>,
    (ground, command): (&Ground, Command),
    feature: Option<&Feature>,
) -> Option<String> {
    let files: Vec<PathBuf> = match (command, feature) {
        (Command::Constitution, _) => vec![ground.project.constitution()],
        (Command::Clarify, Some(feature)) => vec![feature.spec()],
        (Command::Plan, Some(feature)) => vec![feature.plan()],
        (Command::Tasks | Command::Implement | Command::Converge, Some(feature)) => vec![feature.tasks()],
        (Command::Specify | Command::Checklist | Command::Analyze | Command::TasksToIssues, _) => Vec::new(),
        (
            Command::Clarify | Command::Plan | Command::Tasks | Command::Implement | Command::Converge,
            None,
        ) => Vec::new(),
    };
    files.iter().find_map(|path| calls::forbidden_write(cx, path))
}

/// Stores what the person said, with what it stands for; gives how the turn ends where it is not to be asked.
pub(super) async fn say_first(
    cx: &TurnCx<'_>,
    talk: &mut Conversation,
    (said, meaning): (Said, Option<Part>),
) -> Result<Option<TurnEnd>, Failure> {
    let Said { spoken, untold } = said;
    let mut parts = match hooks::on_prompt(cx, spoken::parts(spoken).await?).await {
        Ok(parts) => linked::with_contents(cx, talk, parts).await,
        Err(NotAsked::Refused(why)) => {
            note_to(cx, &why);
            return Ok(Some(TurnEnd::Done));
        }
        Err(NotAsked::Cut) => return Ok(Some(TurnEnd::Cancelled)),
    };
    if let Some(meaning) = meaning {
        parts.insert(parts.len().min(1), meaning);
    }
    let has_untold = untold.is_some();
    parts.extend(untold);
    let mail = cx.children.mail().await.map_err(store_failure)?;
    cx.append_prompt(talk, parts, mail).await?;
    if has_untold {
        undo::told(&cx.kit.store, cx.session).await.map_err(store_failure)?;
    }
    Ok(None)
}

impl Said {
    fn text(&self) -> String {
        let texts = self.spoken.iter().filter_map(|spoken| match spoken {
            Spoken::Part(Part::Text(text)) => Some(text.as_str()),
            Spoken::Part(_) | Spoken::ImageAt { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// Makes a step stand: its limits, its tools, its prompt.
async fn stand<'a>(
    cx: &TurnCx<'a>,
    ground: Ground,
    feature: Option<Feature>,
    (command, text): (Command, String),
    n_asked: usize,
) -> Result<Step<'a>, String> {
    let desk = Arc::new(Desk::default());
    desk.state().n_asked = n_asked;
    let approved = cx.stock.now().approved.clone();
    let (on, of) = (ground.clone(), feature.clone());
    let (source, note, guard, watch) = off(move || {
        let (source, note) = Source::find(&on, command, &approved);
        let dir = of.as_ref().map(|feature| feature.dir.as_path());
        let guard = Guard::new(command, on.project.root(), dir);
        let watch = ChangeWatch::new(Snapshot::take(&guard)?, of);
        Ok((source, note, guard, watch))
    })
    .await?;
    if let Some(note) = note {
        note_to(cx, &note);
    }
    let clarified = feature.as_ref().filter(|_| command == Command::Clarify);
    let record = clarified.map(|feature| Record { spec: feature.spec() });
    let tools = tools::of(command, &desk, (cx.kit, cx.client, cx.session), record);
    let watch = Arc::new(Mutex::new(watch));
    let scope = Scope { command, guard, desk, tools, watch, issues: None };
    Ok(Step { cx: *cx, ground, command, feature, text, scope, source })
}

/// Has the model do its part.
async fn work(
    step: &Step<'_>,
    talk: &mut Conversation,
    words: Words<'_>,
) -> Result<Result<TurnEnd, String>, Failure> {
    if let (Command::Implement, Some(feature)) = (step.command, step.feature.clone()) {
        let project = step.ground.project.clone();
        // Two sessions would do the same task.
        let _hold = match off(move || Hold::take(&project, &feature)).await {
            Ok(hold) => hold,
            Err(why) => return Ok(Err(why)),
        };
        return implemented(step, talk, words).await.map(Ok);
    }
    let before = step.baseline().await?;
    let current = step.scope.issues.as_ref().map(|home| home.tasks.clone()).unwrap_or_default();
    let opening = step.opening(current).await?;
    let end = step.turn(talk, vec![opening], words).await?;
    finish(step, talk, (end, before), words).await.map(Ok)
}

/// Checks what the model wrote, has it put right what is wrong, and tells what came of the step.
async fn finish(
    step: &Step<'_>,
    talk: &mut Conversation,
    (mut end, before): (TurnEnd, Baseline),
    words: Words<'_>,
) -> Result<TurnEnd, Failure> {
    let mut problems = Vec::new();
    for n_left in (0..=repairs_max(step.command)).rev() {
        if end != TurnEnd::Done {
            return step.broken(end, talk).await;
        }
        if step.has_stopped() {
            step.note(&format!("{} ends here. What is written stays.", step.command));
            return Ok(end);
        }
        if step.scope.desk.state().is_waiting {
            // The answer comes as a prompt, and the step goes on with it.
            talk.before = Some(Box::new(before));
            return Ok(end);
        }
        problems = match step.command == Command::Converge {
            true => converge::unsaid(step),
            false => step.problems(&before).await?,
        };
        if problems.is_empty() || n_left == 0 {
            break;
        }
        step.scope.desk.reopen();
        let told = problems.clone();
        let repair = step.aside(Aside::Repair, |facts| facts.problems = told).await?;
        end = step.turn(talk, vec![hidden(SpeckitPart::Repair, repair)], words).await?;
    }
    let converged = match step.command == Command::Converge {
        true => Some(converge::settle(step, talk).await?),
        false => None,
    };
    let hooked = after(step, talk, words).await?;
    if matches!(step.command, Command::Tasks | Command::Converge) {
        step.tell_plan(&[]).await?;
    }
    let is_whole = problems.is_empty();
    let (mut came_to, mut next) = (step.came_to(&before).await?, step.command.next());
    came_to.extend(step.scope.issues.as_ref().map(IssueHome::line));
    if let Some(converged) = converged {
        came_to.push(converged.line);
        next = converged.next;
        problems.clear();
    } else if !is_whole {
        // What comes next would stand on it.
        next = &[];
    }
    let text = report::summed_up(step.command, &came_to, &problems);
    let outcome = if is_whole { ReportOutcome::Done } else { ReportOutcome::Left };
    step.report((text, report::handoffs(next)), outcome, talk).await?;
    Ok(hooked.unwrap_or(end))
}

/// Works through the task list.
async fn implemented(step: &Step<'_>, talk: &mut Conversation, words: Words<'_>) -> Result<TurnEnd, Failure> {
    let (mut end, progress) = implement::run(step, talk, words).await?;
    let list = step.tasks().await?;
    let is_whole = list.n_done() == list.tasks.len();
    if end == TurnEnd::Done
        && is_whole
        && let Some(other) = after(step, talk, words).await?
    {
        end = other;
    }
    let outcome = if progress.is_as_asked { ReportOutcome::Done } else { ReportOutcome::Left };
    let project = step.ground.project.clone();
    let unfilled = off(move || unfilled_constitution(&project)).await.map_err(failed)?;
    let text = report::implemented(&progress, &list, (&end, unfilled.as_deref()));
    // A run of tasks that stopped goes on first.
    let next = if is_whole { Command::Implement.next() } else { &[Command::Implement] };
    step.report((text, report::handoffs(next)), outcome, talk).await?;
    Ok(end)
}

/// Runs the hooks behind a step; gives how the turn ends if it ends with that.
async fn after(
    step: &Step<'_>,
    talk: &mut Conversation,
    words: Words<'_>,
) -> Result<Option<TurnEnd>, Failure> {
    let plan = step.feature.as_ref().map(Feature::plan);
    let (when, command) = (When::After, step.command);
    let moment = Moment { when, command, ground: &step.ground, asked: None, plan: plan.as_deref() };
    hooking::run(&step.cx, talk, moment, words).await
}

/// How often the model may put right what it wrote.
pub(super) fn repairs_max(command: Command) -> usize {
    match command {
        Command::Tasks | Command::Plan | Command::Constitution => 2,
        Command::Specify | Command::Clarify | Command::Checklist | Command::Converge => 1,
        Command::Analyze | Command::Implement | Command::TasksToIssues => 0,
    }
}

pub(super) fn note_to(cx: &TurnCx<'_>, text: &str) {
    let text = format!("{}\n", visible(text.trim_end()));
    cx.client.tell(cx.session, Update::Text { message: cx.kit.next_note(), text });
}

/// Says why something is not done.
pub(super) fn refuse(cx: &TurnCx<'_>, why: &str) {
    let text = format!("{}\n", visible(why.trim_end()));
    let (message, outcome) = (cx.kit.next_note(), ReportOutcome::Refused);
    cx.client.tell(cx.session, Update::Report { message, text, outcome, next: Vec::new() });
}
