//! Drives a step: prerequisites are checked first, at no cost; then Crow creates what needs no model, the model does
//! the rest, and the result is checked.

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
use crate::failures::store_failure;
use crate::handle::SteeringInput;
use crate::hooks::{self, PromptRejection};
use crate::linked_content;
use crate::speckit::converge;
use crate::speckit::implement;
use crate::speckit::issues::IssueHome;
use crate::speckit::layout;
use crate::speckit::project_context::ProjectContext;
use crate::speckit::project_files::{AnswerRecord, run_blocking};
use crate::speckit::questions::{self, OpenQuestion};
use crate::speckit::report;
use crate::speckit::step::{WorkflowStep, hidden_part, project_failure};
use crate::speckit::step_hooks::{self, HookContext};
use crate::speckit::step_policy::{SharedStepState, StepPolicy};
use crate::speckit::step_prompt::StepPrompt;
use crate::speckit::tools;
use crate::turn_context::{SessionState, TurnCx};
use crate::{prompt_parts, undo};

/// Message to the model about a step that the user ended.
pub(super) const STOPPED: &str =
    "The person ended this step here. What is written stays; do not go on with it.";

/// A prompt, with a note about what the user undid since the last one.
pub(crate) struct PromptInput {
    pub(crate) content: Vec<PromptBlock>,
    pub(crate) undo_note: Option<ContentPart>,
}

/// The receiver of a turn's steering input.
pub(super) type SteeringReceiver<'a> = &'a mut mpsc::Receiver<SteeringInput>;

/// The result of the checks before anything is written.
struct StepPrerequisites {
    feature: Option<Feature>,
    /// Notes for the user.
    notes: Vec<String>,
}

/// Starts a step; the inner error is the reason why it cannot start.
pub(super) async fn begin_step(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    invocation: CommandInvocation,
    input: PromptInput,
    steering: SteeringReceiver<'_>,
) -> Result<Result<TurnEnd, String>, Failure> {
    let command = invocation.command;
    // Without a model, nothing needs to be created.
    cx.current_model()?;
    let context = match ProjectContext::find_project(cx).await? {
        Ok(context) => context,
        Err(reason) => return Ok(Err(reason)),
    };
    let (owned_context, asked) = (context.clone(), invocation.clone());
    let prerequisites = match run_blocking(move || check_prerequisites(&owned_context, &asked)).await {
        Ok(prerequisites) => prerequisites,
        Err(reason) => return Ok(Err(reason)),
    };
    if let Some(reason) = forbidden_write_reason(cx, &context, command, prerequisites.feature.as_ref()) {
        return Ok(Err(reason));
    }
    for note in &prerequisites.notes {
        send_note(cx, note);
    }
    let issues = match find_issue_home(cx, &context, &invocation, prerequisites.feature.as_ref()).await {
        Ok(issues) => issues,
        Err(reason) => return Ok(Err(reason)),
    };
    if command == WorkflowCommand::Implement
        && let Some(end) = implement::confirm_open_checklists(cx, &prerequisites.feature, state).await?
    {
        return Ok(Ok(end));
    }
    // From here on files may be created, which belong to this prompt.
    state.turn = state.transcript.next_seq();
    if let Some(end) = append_user_prompt(cx, state, input, None).await? {
        return Ok(Ok(end));
    }
    let asked = Some(&invocation);
    let hook_context = HookContext {
        timing: HookTiming::Before,
        command,
        context: &context,
        invocation: asked,
        plan_path: None,
    };
    if let Some(end) = step_hooks::run_hooks(cx, state, hook_context, steering).await? {
        return Ok(Ok(end));
    }
    let feature = match layout::lay_out(cx, state, &context, &invocation, prerequisites.feature).await {
        Ok(feature) => feature,
        Err(reason) => return Ok(Err(reason)),
    };
    if cx.is_over() {
        return Ok(Ok(TurnEnd::Cancelled));
    }
    context.bind_feature(cx, feature.as_ref(), Some(command)).await?;
    let start = StepStart { command, text: invocation.text, n_questions: 0 };
    let mut step = match prepare_step(cx, context, feature, start).await {
        Ok(step) => step,
        Err(reason) => return Ok(Err(reason)),
    };
    step.policy.issues = issues;
    run_step(&step, state, steering).await
}

/// Finds the target of issues, in the step that creates them.
async fn find_issue_home(
    cx: &TurnCx<'_>,
    context: &ProjectContext,
    invocation: &CommandInvocation,
    feature: Option<&Feature>,
) -> Result<Option<IssueHome>, String> {
    match (invocation.command, feature) {
        (WorkflowCommand::TasksToIssues, Some(feature)) => {
            IssueHome::find(cx, context, feature, &invocation.text).await.map(Some)
        }
        _ => Ok(None),
    }
}

/// Resumes a step that asked a question.
pub(super) async fn resume_step(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    question: OpenQuestion,
    input: PromptInput,
    steering: SteeringReceiver<'_>,
) -> Result<Result<TurnEnd, String>, Failure> {
    let OpenQuestion { command, question, n_asked: n_questions } = question;
    let answer = question.parse_answer(&input.spoken_text());
    let context = match ProjectContext::find_project(cx).await? {
        Ok(context) => context,
        Err(reason) => return Ok(Err(reason)),
    };
    let owned_context = context.clone();
    let feature = match prerequisites_for(command).is_some() || command == WorkflowCommand::Specify {
        true => match run_blocking(move || owned_context.find_feature(None)).await {
            Ok((feature, _)) => Some(feature),
            Err(reason) => return Ok(Err(reason)),
        },
        false => None,
    };
    let n_questions =
        if answer == QuestionAnswer::NoMore { tools::questions_max(command) } else { n_questions };
    state.turn = state.transcript.next_seq();
    let start = StepStart { command, text: String::new(), n_questions };
    let step = match prepare_step(cx, context, feature, start).await {
        Ok(step) => step,
        Err(reason) => return Ok(Err(reason)),
    };
    let n_left = tools::questions_max(command).saturating_sub(n_questions);
    let answer_text = match &answer {
        QuestionAnswer::Stop => STOPPED.to_owned(),
        QuestionAnswer::Answer(_) | QuestionAnswer::NoMore => {
            questions::answer_message(&step, &question, &answer, n_left).await?
        }
    };
    if let Some(end) =
        append_user_prompt(cx, state, input, Some(hidden_part(SpeckitPart::Answer, answer_text))).await?
    {
        return Ok(Ok(end));
    }
    if answer == QuestionAnswer::Stop {
        step.send_note(&format!("{command} was stopped. What is written was kept."));
        return Ok(Ok(TurnEnd::Completed));
    }
    let undo_recorder = step.undo_recorder(state);
    let answer_record = step.answer_record();
    let recorder = Some(&undo_recorder as &dyn UndoRecorder);
    if let Err(reason) =
        questions::write_answer(answer_record.as_ref(), &question, &answer, recorder, cx.workspace).await
    {
        return Ok(Err(reason));
    }
    let baseline = match state.step_baseline.take() {
        Some(baseline) => *baseline,
        None => step.take_baseline().await?.mark_late(),
    };
    let end = step.continue_turn(state, steering).await?;
    finish_step(&step, state, end, baseline, steering).await.map(Ok)
}

/// Checks the prerequisites of a step. Writes nothing.
fn check_prerequisites(
    context: &ProjectContext,
    invocation: &CommandInvocation,
) -> Result<StepPrerequisites, SpeckitError> {
    let command = invocation.command;
    if command == WorkflowCommand::Specify && invocation.text.trim().is_empty() {
        let reason = format!("there is nothing to specify; describe after {command} what to build and why");
        return Err(SpeckitError::Invalid(reason));
    }
    let mut prerequisites = StepPrerequisites { feature: None, notes: context.project_notes() };
    if let Some(requirements) = prerequisites_for(command) {
        let (feature, origin) = context.find_feature(invocation.feature.as_deref())?;
        check_feature_prerequisites(&context.project, &feature, requirements)?;
        if matches!(
            command,
            WorkflowCommand::Implement | WorkflowCommand::Converge | WorkflowCommand::TasksToIssues
        ) {
            check_tasks_ready(&feature, invocation)?;
        }
        prerequisites.notes.extend(report::origin_notes(context, &feature, origin));
        prerequisites.feature = Some(feature);
    }
    // The checks at the end read the constitution: report now if it cannot be read.
    context.project.read_project_file(&context.project.constitution_path())?;
    layout::check_layout(context, invocation, prerequisites.feature.as_ref())?;
    Ok(prerequisites)
}

fn check_tasks_ready(feature: &Feature, invocation: &CommandInvocation) -> Result<(), SpeckitError> {
    let command = invocation.command;
    let text = feature.read_page("tasks.md")?.unwrap_or_default();
    let list = feature.read_task_list()?;
    let unmet_error = |reason: &str, next| {
        Err(SpeckitError::MissingPrerequisite { reason: reason.to_owned(), command: Some(next) })
    };
    if list.tasks.is_empty() {
        return unmet_error("there is no task in tasks.md", WorkflowCommand::Tasks);
    }
    if command == WorkflowCommand::Converge && list.done_count() == 0 {
        let reason = format!(
            "no task is done yet, so there is nothing to compare; run {} first",
            WorkflowCommand::Implement
        );
        return Err(SpeckitError::Invalid(reason));
    }
    if command == WorkflowCommand::Implement && list.done_count() == list.tasks.len() {
        let reason =
            format!("every task is done; {} finds what the code still lacks", WorkflowCommand::Converge);
        return Err(SpeckitError::Invalid(reason));
    }
    if command == WorkflowCommand::TasksToIssues && list.done_count() == list.tasks.len() {
        let reason = "every task is done, so there are no issues to create".to_owned();
        return Err(SpeckitError::Invalid(reason));
    }
    let selects_tasks = matches!(command, WorkflowCommand::Implement | WorkflowCommand::TasksToIssues);
    if selects_tasks && list.select_tasks(&invocation.text).is_some_and(|selected| selected.is_empty()) {
        let reason =
            format!("no open task is selected; name others, or run {command} alone for all open tasks");
        return Err(SpeckitError::Invalid(reason));
    }
    // A task that cannot be ticked is better found before it is done.
    let mut ids = HashSet::new();
    let duplicate = list.tasks.iter().find(|task| !ids.insert(&task.id));
    match duplicate
        .filter(|_| command == WorkflowCommand::Implement)
        .map(|task| set_task_ticked(&text, &task.id, TickState::Ticked))
    {
        Some(Err(error)) => Err(SpeckitError::Invalid(format!("a tick would be lost: {error}"))),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Returns the reason if a rule denies Crow to write the files of a step.
fn forbidden_write_reason(
    cx: &TurnCx<'_>,
    context: &ProjectContext,
    command: WorkflowCommand,
    feature: Option<&Feature>,
) -> Option<String> {
    let files: Vec<PathBuf> = match (command, feature) {
        (WorkflowCommand::Constitution, _) => vec![context.project.constitution_path()],
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

/// Stores the prompt with its expansion; returns how the turn ends if the prompt is not sent.
pub(super) async fn append_user_prompt(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    input: PromptInput,
    expansion: Option<ContentPart>,
) -> Result<Option<TurnEnd>, Failure> {
    let PromptInput { content, undo_note } = input;
    let mut parts = match hooks::on_prompt(cx, prompt_parts::load_prompt_parts(content).await?).await {
        Ok(parts) => linked_content::with_contents(cx, state, parts).await,
        Err(PromptRejection::Rejected(reason)) => {
            send_note(cx, &reason);
            return Ok(Some(TurnEnd::Completed));
        }
        Err(PromptRejection::Cancelled) => return Ok(Some(TurnEnd::Cancelled)),
    };
    if let Some(expansion) = expansion {
        parts.insert(parts.len().min(1), expansion);
    }
    let has_undo_note = undo_note.is_some();
    parts.extend(undo_note);
    let mail = cx.children.take_deliveries().await.map_err(store_failure)?;
    cx.append_prompt(state, parts, mail).await?;
    if has_undo_note {
        undo::clear_pending_undo(&cx.runtime.store, cx.session).await.map_err(store_failure)?;
    }
    Ok(None)
}

impl PromptInput {
    fn spoken_text(&self) -> String {
        let texts = self.content.iter().filter_map(|content| match content {
            PromptBlock::Part(ContentPart::Text(text)) => Some(text.as_str()),
            PromptBlock::Part(_) | PromptBlock::ImageUri { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// The parameters of a step that starts or resumes.
struct StepStart {
    command: WorkflowCommand,
    text: String,
    /// Questions asked so far.
    n_questions: usize,
}

/// Creates the step with its policy, its tools and its prompt.
async fn prepare_step<'a>(
    cx: &TurnCx<'a>,
    context: ProjectContext,
    feature: Option<Feature>,
    StepStart { command, text, n_questions }: StepStart,
) -> Result<WorkflowStep<'a>, String> {
    let step_state = Arc::new(SharedStepState::default());
    step_state.lock_state().n_questions = n_questions;
    let approved = cx.config_loader.current_config().approved.clone();
    let (owned_context, owned_feature) = (context.clone(), feature.clone());
    let (prompt, note, guard, watch) = run_blocking(move || {
        let (prompt, note) = StepPrompt::find_prompt(&owned_context, command, &approved);
        let dir = owned_feature.as_ref().map(|feature| feature.dir.as_path());
        let guard = WriteGuard::new(command, owned_context.project.root(), dir);
        let watch = ChangeWatch::new(GuardSnapshot::capture(&guard)?, owned_feature);
        Ok((prompt, note, guard, watch))
    })
    .await?;
    if let Some(note) = note {
        send_note(cx, &note);
    }
    let clarified_feature = feature.as_ref().filter(|_| command == WorkflowCommand::Clarify);
    let answer_record = clarified_feature.map(|feature| AnswerRecord { spec: feature.spec_path() });
    let tools = tools::step_tools(cx, command, &step_state, answer_record);
    let watch = Arc::new(Mutex::new(watch));
    let policy = StepPolicy { command, guard, step_state, tools, watch, issues: None };
    Ok(WorkflowStep { cx: *cx, context, command, feature, text, policy, prompt })
}

/// Runs the model's part of a step.
async fn run_step(
    step: &WorkflowStep<'_>,
    state: &mut SessionState,
    steering: SteeringReceiver<'_>,
) -> Result<Result<TurnEnd, String>, Failure> {
    if let (WorkflowCommand::Implement, Some(feature)) = (step.command, step.feature.clone()) {
        let project = step.context.project.clone();
        // Two sessions would do the same task.
        let _lock = match run_blocking(move || FeatureLock::acquire(&project, &feature)).await {
            Ok(lock) => lock,
            Err(reason) => return Ok(Err(reason)),
        };
        return run_implement(step, state, steering).await.map(Ok);
    }
    let baseline = step.take_baseline().await?;
    let current = step.policy.issues.as_ref().map(|issue_home| issue_home.tasks.clone()).unwrap_or_default();
    let prompt = step.opening_part(current).await?;
    let end = step.run_turn(state, vec![prompt], steering).await?;
    finish_step(step, state, end, baseline, steering).await.map(Ok)
}

/// Checks what the model wrote, lets it fix problems, and reports the result.
async fn finish_step(
    step: &WorkflowStep<'_>,
    state: &mut SessionState,
    mut end: TurnEnd,
    baseline: StepBaseline,
    steering: SteeringReceiver<'_>,
) -> Result<TurnEnd, Failure> {
    let mut problems = Vec::new();
    for n_left in (0..=repairs_max(step.command)).rev() {
        if end != TurnEnd::Completed {
            return step.report_interruption(end, state).await;
        }
        if step.has_stopped() {
            step.send_note(&format!("{} was stopped. What is written was kept.", step.command));
            return Ok(end);
        }
        if step.policy.step_state.lock_state().is_waiting {
            // The next prompt is the answer, and the step continues with it.
            state.step_baseline = Some(Box::new(baseline));
            return Ok(end);
        }
        problems = match step.command == WorkflowCommand::Converge {
            true => converge::missing_report_prompts(step),
            false => step.find_problems(&baseline).await?,
        };
        if problems.is_empty() || n_left == 0 {
            break;
        }
        step.policy.step_state.allow_further_replies();
        let reported_problems = problems.clone();
        let repair = step
            .render_side_prompt(AuxiliaryPrompt::Repair, |facts| facts.problems = reported_problems)
            .await?;
        end = step.run_turn(state, vec![hidden_part(SpeckitPart::Repair, repair)], steering).await?;
    }
    let convergence = match step.command == WorkflowCommand::Converge {
        true => Some(converge::append_gap_tasks(step, state).await?),
        false => None,
    };
    let hooks_end = run_after_hooks(step, state, steering).await?;
    if matches!(step.command, WorkflowCommand::Tasks | WorkflowCommand::Converge) {
        step.send_plan(&[]).await?;
    }
    let is_complete = problems.is_empty();
    let (mut results, mut next) = (step.list_results(&baseline).await?, step.command.next_commands());
    results.extend(step.policy.issues.as_ref().map(IssueHome::line));
    if let Some(convergence) = convergence {
        results.push(convergence.line);
        next = convergence.next;
        problems.clear();
    } else if !is_complete {
        // The next step would build on it.
        next = &[];
    }
    let text = report::render_summary(step.command, &results, &problems);
    let outcome = if is_complete { ReportOutcome::Done } else { ReportOutcome::Incomplete };
    step.send_report(text, report::step_handoffs(next), outcome, state).await?;
    Ok(hooks_end.unwrap_or(end))
}

/// Runs the task list.
async fn run_implement(
    step: &WorkflowStep<'_>,
    state: &mut SessionState,
    steering: SteeringReceiver<'_>,
) -> Result<TurnEnd, Failure> {
    let (mut end, progress) = implement::run_tasks(step, state, steering).await?;
    let list = step.read_task_list().await?;
    let is_complete = list.done_count() == list.tasks.len();
    if end == TurnEnd::Completed
        && is_complete
        && let Some(hooks_end) = run_after_hooks(step, state, steering).await?
    {
        end = hooks_end;
    }
    let outcome = if progress.is_complete { ReportOutcome::Done } else { ReportOutcome::Incomplete };
    let project = step.context.project.clone();
    let unfilled =
        run_blocking(move || unfilled_constitution_note(&project)).await.map_err(project_failure)?;
    let text = report::render_run_summary(&progress, &list, &end, unfilled.as_deref());
    // An interrupted run continues first.
    let next =
        if is_complete { WorkflowCommand::Implement.next_commands() } else { &[WorkflowCommand::Implement] };
    step.send_report(text, report::step_handoffs(next), outcome, state).await?;
    Ok(end)
}

/// Runs the hooks after a step; returns how the turn ends if a hook ended it.
async fn run_after_hooks(
    step: &WorkflowStep<'_>,
    state: &mut SessionState,
    steering: SteeringReceiver<'_>,
) -> Result<Option<TurnEnd>, Failure> {
    let plan = step.feature.as_ref().map(Feature::plan_path);
    let (timing, command) = (HookTiming::After, step.command);
    let hook_context =
        HookContext { timing, command, context: &step.context, invocation: None, plan_path: plan.as_deref() };
    step_hooks::run_hooks(&step.cx, state, hook_context, steering).await
}

/// Returns how often the model may fix what it wrote.
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
    cx.client.send_update(cx.session, SessionUpdate::Text { message: cx.runtime.next_message_id(), text });
}

/// Reports why a request was rejected.
pub(super) fn report_refusal(cx: &TurnCx<'_>, reason: &str) {
    let text = format!("{}\n", replace_control_chars(reason.trim_end()));
    let (message, outcome) = (cx.runtime.next_message_id(), ReportOutcome::NotStarted);
    cx.client.send_update(cx.session, SessionUpdate::Report { message, text, outcome, next: Vec::new() });
}
