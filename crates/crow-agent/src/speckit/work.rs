//! How a step goes: what has to be there is checked first, and costs nothing where it is missing; then Crow lays out what
//! needs no model, the model does the rest, and what it wrote is checked.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crow_acp::PromptBlock;
use crow_core::{ContentPart, Failure, ReportOutcome, SessionUpdate, SpeckitPart, TurnEnd};
use crow_speckit::{
    AuxiliaryPrompt, ChangeWatch, CommandInvocation, Feature, FeatureLock, GuardSnapshot, HookTiming,
    QuestionAnswer, SpeckitError, StepBaseline, TickState, WorkflowCommand, WriteGuard,
    check_feature_prerequisites, prerequisites_for, set_task_ticked, unfilled_constitution_note,
};
use crow_tools::UndoRecorder;
use tokio::sync::mpsc;

use crate::calls;
use crate::confirm::replace_control_chars;
use crate::handle::SteeringInput;
use crate::hooks::{self, PromptRejection};
use crate::linked;
use crate::run_turn::{SessionState, TurnCx, store_failure};
use crate::speckit::asking::{self, OpenQuestion};
use crate::speckit::converge;
use crate::speckit::ground::ProjectContext;
use crate::speckit::hooking::{self, HookContext};
use crate::speckit::implement;
use crate::speckit::issues::IssueHome;
use crate::speckit::layout;
use crate::speckit::record::{AnswerRecord, run_blocking};
use crate::speckit::report;
use crate::speckit::scope::{SharedStepState, StepPolicy};
use crate::speckit::source::StepPrompt;
use crate::speckit::step::{WorkflowStep, hidden_part, project_failure};
use crate::speckit::tools;
use crate::{spoken, undo};

/// What the model is told of a step that the person ended.
pub(super) const STOPPED: &str =
    "The person ended this step here. What is written stays; do not go on with it.";

/// What a person said, with what they did since.
pub(super) struct StepInput {
    pub(super) spoken: Vec<PromptBlock>,
    pub(super) untold: Option<ContentPart>,
}

/// Where a turn's further words come from.
pub(super) type SteeringReceiver<'a> = &'a mut mpsc::Receiver<SteeringInput>;

/// What is known before anything is written.
struct StepPrerequisites {
    feature: Option<Feature>,
    /// What the person should know.
    notes: Vec<String>,
}

/// Does a step from its beginning; the other side of the inner result is why it cannot begin.
pub(super) async fn begin_step(
    cx: &TurnCx<'_>,
    talk: &mut SessionState,
    (invocation, said): (CommandInvocation, StepInput),
    words: SteeringReceiver<'_>,
) -> Result<Result<TurnEnd, String>, Failure> {
    let command = invocation.command;
    // Without a model nothing comes of what is laid out.
    cx.current_model()?;
    let ground = match ProjectContext::find_project(cx).await? {
        Ok(ground) => ground,
        Err(why) => return Ok(Err(why)),
    };
    let (on, asked) = (ground.clone(), invocation.clone());
    let ready = match run_blocking(move || check_prerequisites(&on, &asked)).await {
        Ok(ready) => ready,
        Err(why) => return Ok(Err(why)),
    };
    if let Some(why) = forbidden_write_reason(cx, (&ground, command), ready.feature.as_ref()) {
        return Ok(Err(why));
    }
    for note in &ready.notes {
        send_note(cx, note);
    }
    let issues = match (command, &ready.feature) {
        (WorkflowCommand::TasksToIssues, Some(feature)) => {
            match IssueHome::find(cx, &ground, (feature, &invocation.text)).await {
                Ok(home) => Some(home),
                Err(why) => return Ok(Err(why)),
            }
        }
        _ => None,
    };
    if command == WorkflowCommand::Implement
        && let Some(end) = implement::confirm_open_checklists(cx, &ready.feature, talk).await?
    {
        return Ok(Ok(end));
    }
    // From here on something may be left behind, and belongs to these words.
    talk.turn = talk.transcript.next_seq();
    if let Some(end) = append_user_prompt(cx, talk, (said, None)).await? {
        return Ok(Ok(end));
    }
    let asked = Some(&invocation);
    let moment = HookContext { when: HookTiming::Before, command, ground: &ground, asked, plan: None };
    if let Some(end) = hooking::run_hooks(cx, talk, moment, words).await? {
        return Ok(Ok(end));
    }
    let feature = match layout::lay_out(cx, talk, (&ground, &invocation), ready.feature).await {
        Ok(feature) => feature,
        Err(why) => return Ok(Err(why)),
    };
    if cx.is_over() {
        return Ok(Ok(TurnEnd::Cancelled));
    }
    ground.bind_feature(cx, feature.as_ref(), Some(command)).await?;
    let mut step = match prepare_step(cx, ground, feature, (command, invocation.text), 0).await {
        Ok(step) => step,
        Err(why) => return Ok(Err(why)),
    };
    step.scope.issues = issues;
    run_step(&step, talk, words).await
}

/// Goes on with a step that asked something.
pub(super) async fn resume_step(
    cx: &TurnCx<'_>,
    talk: &mut SessionState,
    (open, said): (OpenQuestion, StepInput),
    words: SteeringReceiver<'_>,
) -> Result<Result<TurnEnd, String>, Failure> {
    let OpenQuestion { command, question, n_asked } = open;
    let answer = question.parse_answer(&said.spoken_text());
    let ground = match ProjectContext::find_project(cx).await? {
        Ok(ground) => ground,
        Err(why) => return Ok(Err(why)),
    };
    let on = ground.clone();
    let feature = match prerequisites_for(command).is_some() || command == WorkflowCommand::Specify {
        true => match run_blocking(move || on.find_feature(None)).await {
            Ok((feature, _)) => Some(feature),
            Err(why) => return Ok(Err(why)),
        },
        false => None,
    };
    let n_asked = if answer == QuestionAnswer::NoMore { tools::questions_max(command) } else { n_asked };
    talk.turn = talk.transcript.next_seq();
    let step = match prepare_step(cx, ground, feature, (command, String::new()), n_asked).await {
        Ok(step) => step,
        Err(why) => return Ok(Err(why)),
    };
    let left = tools::questions_max(command).saturating_sub(n_asked);
    let told = match &answer {
        QuestionAnswer::Stop => STOPPED.to_owned(),
        QuestionAnswer::Given(_) | QuestionAnswer::NoMore => {
            asking::answer_message(&step, (&question, &answer), left).await?
        }
    };
    if let Some(end) =
        append_user_prompt(cx, talk, (said, Some(hidden_part(SpeckitPart::Answer, told)))).await?
    {
        return Ok(Ok(end));
    }
    if answer == QuestionAnswer::Stop {
        step.send_note(&format!("{command} ends here. What is written stays."));
        return Ok(Ok(TurnEnd::Done));
    }
    let keeper = step.undo_recorder(talk);
    let with = (Some(&keeper as &dyn UndoRecorder), cx.workspace);
    if let Err(why) = asking::write_answer(step.answer_record().as_ref(), (&question, &answer), with).await {
        return Ok(Err(why));
    }
    let before = match talk.before.take() {
        Some(before) => *before,
        None => step.take_baseline().await?.mark_late(),
    };
    let end = step.continue_turn(talk, words).await?;
    finish_step(&step, talk, (end, before), words).await.map(Ok)
}

/// Checks what a step needs. Writes nothing.
fn check_prerequisites(
    ground: &ProjectContext,
    asked: &CommandInvocation,
) -> Result<StepPrerequisites, SpeckitError> {
    let command = asked.command;
    if command == WorkflowCommand::Specify && asked.text.trim().is_empty() {
        let why = format!("there is nothing to specify; say behind {command} what to build and why");
        return Err(SpeckitError::Invalid(why));
    }
    let mut ready = StepPrerequisites { feature: None, notes: ground.project_notes() };
    if let Some(needs) = prerequisites_for(command) {
        let (feature, origin) = ground.find_feature(asked.feature.as_deref())?;
        check_feature_prerequisites(&ground.project, &feature, needs)?;
        if matches!(
            command,
            WorkflowCommand::Implement | WorkflowCommand::Converge | WorkflowCommand::TasksToIssues
        ) {
            check_tasks_ready(&feature, asked)?;
        }
        ready.notes.extend(report::origin_notes(ground, &feature, origin));
        ready.feature = Some(feature);
    }
    // Each step ends with the facts of the project, which hold the ground rules: what cannot be read is told before.
    ground.project.read_project_file(&ground.project.constitution_path())?;
    layout::check_layout(ground, asked, ready.feature.as_ref())?;
    Ok(ready)
}

fn check_tasks_ready(feature: &Feature, asked: &CommandInvocation) -> Result<(), SpeckitError> {
    let command = asked.command;
    let text = feature.read_page("tasks.md")?.unwrap_or_default();
    let list = feature.read_task_list()?;
    let unmet = |why: &str, next| Err(SpeckitError::Unmet { why: why.to_owned(), next: Some(next) });
    if list.tasks.is_empty() {
        return unmet("there is no task in tasks.md", WorkflowCommand::Tasks);
    }
    if command == WorkflowCommand::Converge && list.done_count() == 0 {
        let why = format!(
            "no task is done yet, so there is nothing to compare; {} comes first",
            WorkflowCommand::Implement
        );
        return Err(SpeckitError::Invalid(why));
    }
    if command == WorkflowCommand::Implement && list.done_count() == list.tasks.len() {
        let why =
            format!("every task is done; {} finds out what the code still lacks", WorkflowCommand::Converge);
        return Err(SpeckitError::Invalid(why));
    }
    if command == WorkflowCommand::TasksToIssues && list.done_count() == list.tasks.len() {
        let why = "every task is done, so there is nothing to make an issue of".to_owned();
        return Err(SpeckitError::Invalid(why));
    }
    let takes_some = matches!(command, WorkflowCommand::Implement | WorkflowCommand::TasksToIssues);
    if takes_some && list.select_tasks(&asked.text).is_some_and(|meant| meant.is_empty()) {
        let why = format!(
            "no open task is meant by that; name others, or say {command} alone for all that are open"
        );
        return Err(SpeckitError::Invalid(why));
    }
    // What cannot be ticked is better known before it is done.
    let mut seen = HashSet::new();
    let twice = list.tasks.iter().find(|task| !seen.insert(&task.id));
    match twice
        .filter(|_| command == WorkflowCommand::Implement)
        .map(|task| set_task_ticked(&text, &task.id, TickState::Yes))
    {
        Some(Err(error)) => Err(SpeckitError::Invalid(format!("a tick would be lost: {error}"))),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Says which rule of the configuration keeps Crow from the files that a step is for.
fn forbidden_write_reason(
    cx: &TurnCx<'_>,
    (ground, command): (&ProjectContext, WorkflowCommand),
    feature: Option<&Feature>,
) -> Option<String> {
    let files: Vec<PathBuf> = match (command, feature) {
        (WorkflowCommand::Constitution, _) => vec![ground.project.constitution_path()],
        (WorkflowCommand::Clarify, Some(feature)) => vec![feature.spec_path()],
        (WorkflowCommand::Plan, Some(feature)) => vec![feature.plan_path()],
        (WorkflowCommand::Tasks | WorkflowCommand::Implement | WorkflowCommand::Converge, Some(feature)) => {
            vec![feature.tasks_path()]
        }
        (
            WorkflowCommand::Specify
            | WorkflowCommand::Checklist
            | WorkflowCommand::Analyze
            | WorkflowCommand::TasksToIssues,
            _,
        ) => Vec::new(),
        (
            WorkflowCommand::Clarify
            | WorkflowCommand::Plan
            | WorkflowCommand::Tasks
            | WorkflowCommand::Implement
            | WorkflowCommand::Converge,
            None,
        ) => Vec::new(),
    };
    files.iter().find_map(|path| calls::forbidden_write_reason(cx, path))
}

/// Stores what the person said, with what it stands for; gives how the turn ends where it is not to be asked.
pub(super) async fn append_user_prompt(
    cx: &TurnCx<'_>,
    talk: &mut SessionState,
    (said, meaning): (StepInput, Option<ContentPart>),
) -> Result<Option<TurnEnd>, Failure> {
    let StepInput { spoken, untold } = said;
    let mut parts = match hooks::on_prompt(cx, spoken::load_prompt_parts(spoken).await?).await {
        Ok(parts) => linked::with_contents(cx, talk, parts).await,
        Err(PromptRejection::Refused(why)) => {
            send_note(cx, &why);
            return Ok(Some(TurnEnd::Done));
        }
        Err(PromptRejection::Cut) => return Ok(Some(TurnEnd::Cancelled)),
    };
    if let Some(meaning) = meaning {
        parts.insert(parts.len().min(1), meaning);
    }
    let has_untold = untold.is_some();
    parts.extend(untold);
    let mail = cx.children.take_deliveries().await.map_err(store_failure)?;
    cx.append_prompt(talk, parts, mail).await?;
    if has_untold {
        undo::clear_pending_undo(&cx.kit.store, cx.session).await.map_err(store_failure)?;
    }
    Ok(None)
}

impl StepInput {
    fn spoken_text(&self) -> String {
        let texts = self.spoken.iter().filter_map(|spoken| match spoken {
            PromptBlock::Part(ContentPart::Text(text)) => Some(text.as_str()),
            PromptBlock::Part(_) | PromptBlock::ImageAt { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// Makes a step stand: its limits, its tools, its prompt.
async fn prepare_step<'a>(
    cx: &TurnCx<'a>,
    ground: ProjectContext,
    feature: Option<Feature>,
    (command, text): (WorkflowCommand, String),
    n_asked: usize,
) -> Result<WorkflowStep<'a>, String> {
    let desk = Arc::new(SharedStepState::default());
    desk.lock_state().n_asked = n_asked;
    let approved = cx.stock.current_config().approved.clone();
    let (on, of) = (ground.clone(), feature.clone());
    let (source, note, guard, watch) = run_blocking(move || {
        let (source, note) = StepPrompt::find_prompt(&on, command, &approved);
        let dir = of.as_ref().map(|feature| feature.dir.as_path());
        let guard = WriteGuard::new(command, on.project.root(), dir);
        let watch = ChangeWatch::new(GuardSnapshot::capture(&guard)?, of);
        Ok((source, note, guard, watch))
    })
    .await?;
    if let Some(note) = note {
        send_note(cx, &note);
    }
    let clarified = feature.as_ref().filter(|_| command == WorkflowCommand::Clarify);
    let record = clarified.map(|feature| AnswerRecord { spec: feature.spec_path() });
    let tools = tools::step_tools(command, &desk, (cx.kit, cx.client, cx.session), record);
    let watch = Arc::new(Mutex::new(watch));
    let scope = StepPolicy { command, guard, desk, tools, watch, issues: None };
    Ok(WorkflowStep { cx: *cx, ground, command, feature, text, scope, source })
}

/// Has the model do its part.
async fn run_step(
    step: &WorkflowStep<'_>,
    talk: &mut SessionState,
    words: SteeringReceiver<'_>,
) -> Result<Result<TurnEnd, String>, Failure> {
    if let (WorkflowCommand::Implement, Some(feature)) = (step.command, step.feature.clone()) {
        let project = step.ground.project.clone();
        // Two sessions would do the same task.
        let _hold = match run_blocking(move || FeatureLock::acquire(&project, &feature)).await {
            Ok(hold) => hold,
            Err(why) => return Ok(Err(why)),
        };
        return run_implement(step, talk, words).await.map(Ok);
    }
    let before = step.take_baseline().await?;
    let current = step.scope.issues.as_ref().map(|home| home.tasks.clone()).unwrap_or_default();
    let opening = step.opening_part(current).await?;
    let end = step.run_turn(talk, vec![opening], words).await?;
    finish_step(step, talk, (end, before), words).await.map(Ok)
}

/// Checks what the model wrote, has it put right what is wrong, and tells what came of the step.
async fn finish_step(
    step: &WorkflowStep<'_>,
    talk: &mut SessionState,
    (mut end, before): (TurnEnd, StepBaseline),
    words: SteeringReceiver<'_>,
) -> Result<TurnEnd, Failure> {
    let mut problems = Vec::new();
    for n_left in (0..=repairs_max(step.command)).rev() {
        if end != TurnEnd::Done {
            return step.report_interruption(end, talk).await;
        }
        if step.has_stopped() {
            step.send_note(&format!("{} ends here. What is written stays.", step.command));
            return Ok(end);
        }
        if step.scope.desk.lock_state().is_waiting {
            // The answer comes as a prompt, and the step goes on with it.
            talk.before = Some(Box::new(before));
            return Ok(end);
        }
        problems = match step.command == WorkflowCommand::Converge {
            true => converge::missing_report_prompts(step),
            false => step.find_problems(&before).await?,
        };
        if problems.is_empty() || n_left == 0 {
            break;
        }
        step.scope.desk.allow_further_replies();
        let told = problems.clone();
        let repair = step.render_side_prompt(AuxiliaryPrompt::Repair, |facts| facts.problems = told).await?;
        end = step.run_turn(talk, vec![hidden_part(SpeckitPart::Repair, repair)], words).await?;
    }
    let converged = match step.command == WorkflowCommand::Converge {
        true => Some(converge::append_gap_tasks(step, talk).await?),
        false => None,
    };
    let hooked = run_after_hooks(step, talk, words).await?;
    if matches!(step.command, WorkflowCommand::Tasks | WorkflowCommand::Converge) {
        step.send_plan(&[]).await?;
    }
    let is_whole = problems.is_empty();
    let (mut came_to, mut next) = (step.list_results(&before).await?, step.command.next_commands());
    came_to.extend(step.scope.issues.as_ref().map(IssueHome::line));
    if let Some(converged) = converged {
        came_to.push(converged.line);
        next = converged.next;
        problems.clear();
    } else if !is_whole {
        // What comes next would stand on it.
        next = &[];
    }
    let text = report::render_summary(step.command, &came_to, &problems);
    let outcome = if is_whole { ReportOutcome::Done } else { ReportOutcome::Left };
    step.send_report((text, report::step_handoffs(next)), outcome, talk).await?;
    Ok(hooked.unwrap_or(end))
}

/// Works through the task list.
async fn run_implement(
    step: &WorkflowStep<'_>,
    talk: &mut SessionState,
    words: SteeringReceiver<'_>,
) -> Result<TurnEnd, Failure> {
    let (mut end, progress) = implement::run_tasks(step, talk, words).await?;
    let list = step.read_task_list().await?;
    let is_whole = list.done_count() == list.tasks.len();
    if end == TurnEnd::Done
        && is_whole
        && let Some(other) = run_after_hooks(step, talk, words).await?
    {
        end = other;
    }
    let outcome = if progress.is_as_asked { ReportOutcome::Done } else { ReportOutcome::Left };
    let project = step.ground.project.clone();
    let unfilled =
        run_blocking(move || unfilled_constitution_note(&project)).await.map_err(project_failure)?;
    let text = report::render_run_summary(&progress, &list, (&end, unfilled.as_deref()));
    // A run of tasks that stopped goes on first.
    let next =
        if is_whole { WorkflowCommand::Implement.next_commands() } else { &[WorkflowCommand::Implement] };
    step.send_report((text, report::step_handoffs(next)), outcome, talk).await?;
    Ok(end)
}

/// Runs the hooks behind a step; gives how the turn ends if it ends with that.
async fn run_after_hooks(
    step: &WorkflowStep<'_>,
    talk: &mut SessionState,
    words: SteeringReceiver<'_>,
) -> Result<Option<TurnEnd>, Failure> {
    let plan = step.feature.as_ref().map(Feature::plan_path);
    let (when, command) = (HookTiming::After, step.command);
    let moment = HookContext { when, command, ground: &step.ground, asked: None, plan: plan.as_deref() };
    hooking::run_hooks(&step.cx, talk, moment, words).await
}

/// How often the model may put right what it wrote.
pub(super) fn repairs_max(command: WorkflowCommand) -> usize {
    match command {
        WorkflowCommand::Tasks | WorkflowCommand::Plan | WorkflowCommand::Constitution => 2,
        WorkflowCommand::Specify
        | WorkflowCommand::Clarify
        | WorkflowCommand::Checklist
        | WorkflowCommand::Converge => 1,
        WorkflowCommand::Analyze | WorkflowCommand::Implement | WorkflowCommand::TasksToIssues => 0,
    }
}

pub(super) fn send_note(cx: &TurnCx<'_>, text: &str) {
    let text = format!("{}\n", replace_control_chars(text.trim_end()));
    cx.client.send_update(cx.session, SessionUpdate::Text { message: cx.kit.next_message_id(), text });
}

/// Says why something is not done.
pub(super) fn report_refusal(cx: &TurnCx<'_>, why: &str) {
    let text = format!("{}\n", replace_control_chars(why.trim_end()));
    let (message, outcome) = (cx.kit.next_message_id(), ReportOutcome::Refused);
    cx.client.send_update(cx.session, SessionUpdate::Report { message, text, outcome, next: Vec::new() });
}
