//! How a step goes: what has to be there is checked first, and costs nothing where it is missing; then Crow lays out what
//! needs no model, the model does the rest, and what it wrote is checked.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crow_acp::Spoken;
use crow_core::{Failure, Mode, Part, TurnEnd};
use crow_speckit::{
    Answer, AnswerFacts, Aside, Baseline, Command, Created, Done, Feature, Guard, Invocation, NewFeature,
    Numbering, Project, Snapshot, SpeckitError, TaskList, When, check_needs, create, flip, init, needs_of,
    setup_plan, usual_numbering, write_pointer,
};
use tokio::sync::mpsc;

use crate::clock;
use crate::handle::MoreWords;
use crate::hooks::{self, NotAsked};
use crate::keeping::CallKeeper;
use crate::run_turn::{Conversation, TurnCx, store_failure};
use crate::speckit::asking::{self, Open};
use crate::speckit::converge;
use crate::speckit::ground::Ground;
use crate::speckit::hooking::{self, Moment};
use crate::speckit::implement;
use crate::speckit::record::{self, Record, off};
use crate::speckit::report;
use crate::speckit::scope::{Desk, Scope};
use crate::speckit::short_name;
use crate::speckit::source::Source;
use crate::speckit::step::{Step, hidden};
use crate::speckit::tools;
use crate::{spoken, undo};

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
    let ground = match Ground::find(cx).await? {
        Ok(ground) => ground,
        Err(why) => return Ok(Err(why)),
    };
    if let Err(why) = may_write(cx, command) {
        return Ok(Err(why));
    }
    let (on, asked) = (ground.clone(), invocation.clone());
    let ready = match off(move || preflight(&on, &asked)).await {
        Ok(ready) => ready,
        Err(why) => return Ok(Err(why)),
    };
    for note in &ready.notes {
        note_to(cx, note);
    }
    talk.turn = talk.transcript.next_seq();
    let mut first = match first_words(cx, said).await? {
        Ok(first) => first,
        Err(end) => return Ok(Ok(end)),
    };
    let asked = Some(&invocation);
    let moment = Moment { when: When::Before, command, ground: &ground, asked, plan: None };
    if let Some(end) = hooking::run(cx, talk, moment, &mut first, words).await? {
        return Ok(Ok(end));
    }
    let feature = match scaffold(cx, talk, (&ground, &invocation), ready.feature).await {
        Ok(feature) => feature,
        Err(why) => return Ok(Err(why)),
    };
    if cx.is_over() {
        return Ok(Ok(TurnEnd::Cancelled));
    }
    ground.bind(cx, feature.as_ref(), Some(command)).await?;
    if cx.is_over() {
        if !first.is_empty() {
            cx.append_prompt(talk, first, Vec::new()).await?;
        }
        return Ok(Ok(TurnEnd::Cancelled));
    }
    let step = match stand(cx, ground, feature, (command, invocation.text), 0).await {
        Ok(step) => step,
        Err(why) => return Ok(Err(why)),
    };
    work(&step, talk, first, words).await.map(Ok)
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
    if answer != Answer::Stop
        && let Err(why) = may_write(cx, command)
    {
        return Ok(Err(format!("{why}, or say `cancel`")));
    }
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
    talk.turn = talk.transcript.next_seq();
    let mut parts = match first_words(cx, said).await? {
        Ok(parts) => parts,
        Err(end) => return Ok(Ok(end)),
    };
    let n_max = tools::questions_max(command);
    let n_asked = if answer == Answer::NoMore { n_max } else { n_asked };
    let step = match stand(cx, ground, feature, (command, String::new()), n_asked).await {
        Ok(step) => step,
        Err(why) => return Ok(Err(why)),
    };
    let n_left = n_max.saturating_sub(n_asked);
    let record = step.record();
    let keeper = step.keeper(talk);
    let with = (Some(&keeper as &dyn crow_tools::Keeper), cx.workspace);
    if let Err(why) = asking::answered(record.as_ref(), (&question, &answer), n_left, with).await {
        return Ok(Err(why));
    }
    let given = match &answer {
        Answer::Given(text) => text.clone(),
        Answer::NoMore | Answer::Stop => String::new(),
    };
    let told = match answer {
        Answer::Stop => {
            format!("The person ended {command} here. What is written stays; do not go on with it.")
        }
        Answer::Given(_) | Answer::NoMore => {
            let facts = AnswerFacts { question: question.question.clone(), answer: given, left: n_left };
            step.aside(Aside::Answer, |all| all.answer = facts).await?
        }
    };
    parts.insert(parts.len().min(1), hidden("answer", told));
    if answer == Answer::Stop {
        step.say(talk, parts, &[]).await?;
        step.note(&format!("{command} ends here. What is written stays.\n"));
        return Ok(Ok(TurnEnd::Done));
    }
    let before = step.baseline().await?.of_a_step_that_goes_on();
    let end = step.turn(talk, parts, words).await?;
    finish(&step, talk, (end, before), words).await.map(Ok)
}

/// A step that writes has no place in the mode that only reads.
fn may_write(cx: &TurnCx<'_>, command: Command) -> Result<(), String> {
    if cx.standing.borrow().mode == Mode::Plan && command != Command::Analyze {
        return Err(format!("{command} writes files, and plan mode only reads; change the mode first"));
    }
    Ok(())
}

/// Checks what a step needs. Writes nothing.
fn preflight(ground: &Ground, asked: &Invocation) -> Result<Ready, SpeckitError> {
    let command = asked.command;
    if command == Command::Specify && asked.text.trim().is_empty() {
        let why = format!("there is nothing to specify; say behind {command} what to build and why");
        return Err(SpeckitError::Invalid(why));
    }
    let Some(needs) = needs_of(command) else { return Ok(Ready { feature: None, notes: Vec::new() }) };
    let (feature, origin) = ground.feature(asked.feature.as_deref())?;
    check_needs(&ground.project, &feature, needs)?;
    if matches!(command, Command::Implement | Command::Converge) {
        tasks_are_ready(&feature, asked)?;
    }
    let notes = report::on_origin(ground, &feature, origin);
    Ok(Ready { feature: Some(feature), notes })
}

fn tasks_are_ready(feature: &Feature, asked: &Invocation) -> Result<(), SpeckitError> {
    let command = asked.command;
    let text = Project::read(&feature.tasks())?.unwrap_or_default();
    let list = TaskList::parse(&text);
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
    if command == Command::Implement && list.selection(&asked.text).is_some_and(|meant| meant.is_empty()) {
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

/// What the person said as the beginning of a prompt; the other side is how the turn ends instead.
pub(super) async fn first_words(cx: &TurnCx<'_>, said: Said) -> Result<Result<Vec<Part>, TurnEnd>, Failure> {
    let parts = spoken::parts(said.spoken).await?;
    match hooks::on_prompt(cx, parts).await {
        Ok(mut parts) => {
            if let Some(untold) = said.untold {
                parts.push(untold);
                undo::told(&cx.kit.store, cx.session).await.map_err(store_failure)?;
            }
            Ok(Ok(parts))
        }
        Err(NotAsked::Refused(why)) => {
            note_to(cx, &why);
            Ok(Err(TurnEnd::Done))
        }
        Err(NotAsked::Cut) => Ok(Err(TurnEnd::Cancelled)),
    }
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

/// Lays out what a step begins with; gives its feature.
async fn scaffold(
    cx: &TurnCx<'_>,
    talk: &Conversation,
    (ground, asked): (&Ground, &Invocation),
    feature: Option<Feature>,
) -> Result<Option<Feature>, String> {
    let naming = &asked.naming;
    let is_unnamed = naming.short_name.is_none() && naming.directory.is_none();
    let short_name = match asked.command == Command::Specify && is_unnamed {
        true => short_name::ask(cx, &asked.text).await,
        false => naming.short_name.clone(),
    };
    if cx.is_over() {
        return Ok(feature);
    }
    let (on, asked) = (ground.clone(), asked.clone());
    let laid = off(move || lay_out(&on, &asked, short_name.as_deref(), feature)).await?;
    for note in &laid.notes {
        note_to(cx, note);
    }
    let keeper = CallKeeper::new(cx, talk.turn, crow_core::CallId::at(talk.turn, 0));
    record::made(&keeper, cx.workspace, &laid.made).await?;
    Ok(laid.feature)
}

/// What was laid out.
struct Laid {
    feature: Option<Feature>,
    /// Files that were not there before, and what is in them.
    made: Vec<(PathBuf, String)>,
    notes: Vec<String>,
}

fn lay_out(
    ground: &Ground,
    asked: &Invocation,
    short_name: Option<&str>,
    feature: Option<Feature>,
) -> Result<Laid, SpeckitError> {
    let (project, now) = (&ground.project, clock::local());
    let pages = |name: &str| ground.page(name);
    let mut laid = Laid { feature, made: Vec::new(), notes: Vec::new() };
    let mut made: Vec<PathBuf> = Vec::new();
    match (asked.command, &laid.feature) {
        (Command::Constitution, _) => made = init(project, &pages)?,
        (Command::Specify, _) => {
            if !project.is_begun() {
                made = init(project, &pages)?;
            }
            let naming = &asked.naming;
            let dir = naming.directory.as_ref().map(|dir| dir.display().to_string());
            let new = NewFeature {
                description: &asked.text,
                short_name,
                numbering: match (naming.timestamp, naming.number) {
                    (true, _) => Numbering::Timestamp,
                    (false, Some(number)) => Numbering::Prefer(number),
                    (false, None) => usual_numbering(project),
                },
                dir: dir.as_deref(),
                specs_root: &ground.settings.specs_root,
                specs_link: ground.settings.specs_link,
                now: &now,
            };
            let Created { feature, notes, .. } = create(project, &new, &pages)?;
            laid.notes = notes;
            write_pointer(project, &feature.dir)?;
            made.extend([feature.spec(), feature.checklists().join("requirements.md")]);
            laid.feature = Some(feature);
        }
        (Command::Plan, Some(feature)) if setup_plan(project, feature, &now, &pages)? => {
            made = vec![feature.plan()];
        }
        (
            Command::Clarify
            | Command::Plan
            | Command::Checklist
            | Command::Tasks
            | Command::Analyze
            | Command::Implement
            | Command::Converge,
            _,
        ) => {}
    }
    for path in made {
        // Folders among them cannot be read.
        if let Ok(Some(text)) = Project::read(&path) {
            laid.made.push((path, text));
        }
    }
    Ok(laid)
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
    let (source, note, guard, snapshot) = off(move || {
        let (source, note) = Source::find(&on, command, &approved);
        let dir = of.as_ref().map(|feature| feature.dir.as_path());
        let guard = Guard::new(command, on.project.root(), dir);
        let snapshot = Snapshot::take(&guard)?;
        Ok((source, note, guard, snapshot))
    })
    .await?;
    if let Some(note) = note {
        note_to(cx, &note);
    }
    let clarified = feature.as_ref().filter(|_| command == Command::Clarify);
    let record = clarified.map(|feature| Record { spec: feature.spec() });
    let tools = tools::of(command, &desk, (cx.kit, cx.client, cx.session), record);
    let scope = Scope { command, guard, desk, tools };
    Ok(Step {
        cx: *cx,
        ground,
        command,
        feature,
        text,
        scope,
        source,
        snapshot: Arc::new(Mutex::new(snapshot)),
    })
}

/// Has the model do its part.
async fn work(
    step: &Step<'_>,
    talk: &mut Conversation,
    mut first: Vec<Part>,
    words: Words<'_>,
) -> Result<TurnEnd, Failure> {
    let before = step.baseline().await?;
    if step.command == Command::Implement {
        if let Some(end) = implement::gate(step, talk).await? {
            return Ok(end);
        }
        return implemented(step, talk, first, words).await;
    }
    first.insert(first.len().min(1), step.opening(Vec::new()).await?);
    let end = step.turn(talk, first, words).await?;
    finish(step, talk, (end, before), words).await
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
            return Ok(end);
        }
        if step.scope.desk.state().is_waiting {
            // The answer comes as a prompt, and the step goes on with it.
            return Ok(TurnEnd::Done);
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
        end = step.turn(talk, vec![hidden("repair", repair)], words).await?;
    }
    let converged = match step.command == Command::Converge {
        true => Some(converge::settle(step, talk).await?),
        false => None,
    };
    if let Some(end) = after(step, talk, words).await? {
        return Ok(end);
    }
    if matches!(step.command, Command::Tasks | Command::Converge) {
        step.tell_plan(&[]).await?;
    }
    let text = report::summed_up(step.command, &step.came_to().await?, &problems);
    let outcome = if problems.is_empty() { "done" } else { "problems left" };
    let (mut came_to, mut next) = (step.came_to().await?, step.command.next());
    if let Some(converged) = converged {
        came_to.push(converged.line);
        next = converged.next;
        problems.clear();
    }
    let text = report::summed_up(step.command, &came_to, &problems);
    step.report((text, report::handoffs(next)), outcome, talk).await?;
    Ok(end)
}

/// Works through the task list.
async fn implemented(
    step: &Step<'_>,
    talk: &mut Conversation,
    first: Vec<Part>,
    words: Words<'_>,
) -> Result<TurnEnd, Failure> {
    let (mut end, progress) = implement::run(step, talk, first, words).await?;
    let list = step.tasks().await?;
    let is_whole = list.n_done() == list.tasks.len();
    if end == TurnEnd::Done
        && is_whole
        && let Some(other) = after(step, talk, words).await?
    {
        end = other;
    }
    let outcome = if is_whole { "done" } else { "tasks left" };
    let text = report::implemented(&progress, &list, &end);
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
    hooking::run(&step.cx, talk, moment, &mut Vec::new(), words).await
}

/// How often the model may put right what it wrote.
pub(super) fn repairs_max(command: Command) -> usize {
    match command {
        Command::Tasks | Command::Plan | Command::Constitution => 2,
        Command::Specify | Command::Clarify | Command::Checklist | Command::Converge => 1,
        Command::Analyze | Command::Implement => 0,
    }
}

pub(super) fn note_to(cx: &TurnCx<'_>, text: &str) {
    let text = format!("{}\n", text.trim_end());
    cx.client.tell(cx.session, crow_core::Update::Text { message: cx.kit.next_note(), text });
}
