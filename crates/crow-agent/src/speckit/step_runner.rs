//! Runs a step as its definition says: prerequisites first, at no cost; then Crow creates what needs no model, the
//! model does the rest, and the result is checked, repaired and reported.

use std::sync::{Arc, Mutex};

use crow_core::{SpeckitPart, TurnEnd};
use crow_speckit::{
    ChangeWatch, CommandInvocation, Feature, FeatureUse, GuardSnapshot, HookTiming, QuestionAnswer,
    StepDefinition, StepWork, WriteGuard, step_definition,
};
use crow_tools::UndoRecorder;

use crate::speckit::implement;
use crate::speckit::issues::IssueHome;
use crate::speckit::layout;
use crate::speckit::notices::{STOPPED, send_note};
use crate::speckit::preflight;
use crate::speckit::project_context::ProjectContext;
use crate::speckit::project_files::run_blocking;
use crate::speckit::questions::{self, OpenQuestion};
use crate::speckit::session_step::SessionStep;
use crate::speckit::step::{WorkflowStep, hidden_part};
use crate::speckit::step_hooks::{self, HookContext};
use crate::speckit::step_policy::{SharedStepState, StepPolicy};
use crate::speckit::step_port::StepPort as _;
use crate::speckit::step_prompt::StepPrompt;
use crate::speckit::step_rounds::finish_step;
use crate::speckit::step_scope::StepScope;
use crate::speckit::tools;
use crate::speckit::user_prompt::{PromptInput, SteeringReceiver, append_user_prompt};
use crate::speckit::workflow_exit::WorkflowExit;
use crate::turn_context::{SessionState, TurnCx};

/// Starts a step.
pub(super) async fn begin_step(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    invocation: CommandInvocation,
    input: PromptInput,
    steering: SteeringReceiver<'_>,
) -> Result<TurnEnd, WorkflowExit> {
    let definition = step_definition(invocation.command);
    // Without a model, nothing needs to be created.
    cx.current_model()?;
    let context = ProjectContext::find_project(cx).await?;
    let prerequisites = preflight::check_step_start(cx, &context, &invocation).await?;
    for note in &prerequisites.notes {
        send_note(cx, note);
    }
    let feature = prerequisites.feature;
    let issues = match (definition.work, &feature) {
        (StepWork::Issues, Some(feature)) => {
            Some(IssueHome::find(cx, &context, feature, &invocation.text).await?)
        }
        (StepWork::Issues | StepWork::Pages | StepWork::Tasks | StepWork::Gaps, _) => None,
    };
    if definition.confirms_checklists {
        implement::confirm_open_checklists(cx, &feature, state).await?;
    }
    // From here on files may be created, which belong to this prompt.
    state.turn = state.transcript.next_seq();
    append_user_prompt(cx, state, input, None).await?;
    let hook_context = HookContext {
        timing: HookTiming::Before,
        command: definition.command,
        context: &context,
        invocation: Some(&invocation),
        plan_path: None,
    };
    WorkflowExit::unless_ended(step_hooks::run_hooks(cx, state, hook_context, steering).await?)?;
    let feature = layout::lay_out(cx, state, &context, &invocation, feature).await?;
    if cx.is_over() {
        return Ok(TurnEnd::Cancelled);
    }
    context.bind_feature(cx, feature.as_ref(), Some(definition.command)).await?;
    let start = StepStart { definition, text: invocation.text, n_questions: 0, issues };
    let step = prepare_step(cx, context, feature, start).await?;
    if definition.work == StepWork::Tasks {
        return implement::run_task_list(&step, state, steering).await;
    }
    let baseline = step.scope.take_baseline().await?;
    let current = step.policy.issues.as_ref().map(|issues| issues.tasks.clone()).unwrap_or_default();
    let prompt = step.opening_part(current).await?;
    let mut port = SessionStep { step: &step, state, steering };
    let end = port.run_turn(prompt).await?;
    Ok(finish_step(&mut port, end, &baseline).await?)
}

/// Resumes a step that asked a question.
pub(super) async fn resume_step(
    cx: &TurnCx<'_>,
    state: &mut SessionState,
    OpenQuestion { command, question, n_asked }: OpenQuestion,
    input: PromptInput,
    steering: SteeringReceiver<'_>,
) -> Result<TurnEnd, WorkflowExit> {
    let definition = step_definition(command);
    let answer = question.parse_answer(&input.spoken_text());
    let context = ProjectContext::find_project(cx).await?;
    let owned_context = context.clone();
    let feature = match definition.feature {
        FeatureUse::Unused => None,
        FeatureUse::Creates | FeatureUse::Needs(_) => {
            let found = run_blocking(move || owned_context.find_feature(None)).await;
            Some(found.map_err(WorkflowExit::Refused)?.0)
        }
    };
    let n_questions = if answer == QuestionAnswer::NoMore { definition.questions_max } else { n_asked };
    state.turn = state.transcript.next_seq();
    let start = StepStart { definition, text: String::new(), n_questions, issues: None };
    let step = prepare_step(cx, context, feature, start).await?;
    let n_left = definition.questions_max.saturating_sub(n_questions);
    let answer_text = match &answer {
        QuestionAnswer::Stop => STOPPED.to_owned(),
        QuestionAnswer::Answer(_) | QuestionAnswer::NoMore => {
            questions::answer_message(&step.scope, &question, &answer, n_left).await?
        }
    };
    append_user_prompt(cx, state, input, Some(hidden_part(SpeckitPart::Answer, answer_text))).await?;
    if answer == QuestionAnswer::Stop {
        step.send_note(&format!("{command} was stopped. What is written was kept."));
        return Ok(TurnEnd::Completed);
    }
    let undo_recorder = step.undo_recorder(state);
    let answer_record = step.scope.answer_record();
    let recorder = Some(&undo_recorder as &dyn UndoRecorder);
    questions::write_answer(answer_record.as_ref(), &question, &answer, recorder, cx.workspace)
        .await
        .map_err(WorkflowExit::Refused)?;
    let baseline = match state.step_baseline.take() {
        Some(baseline) => *baseline,
        None => step.scope.take_baseline().await?.mark_late(),
    };
    let end = step.continue_turn(state, steering).await?;
    Ok(finish_step(&mut SessionStep { step: &step, state, steering }, end, &baseline).await?)
}

/// The parameters of a step that starts or resumes.
struct StepStart {
    definition: &'static StepDefinition,
    text: String,
    /// Questions asked so far.
    n_questions: usize,
    issues: Option<IssueHome>,
}

/// Creates the step with its policy, its tools and its prompt.
async fn prepare_step<'a>(
    cx: &TurnCx<'a>,
    context: ProjectContext,
    feature: Option<Feature>,
    StepStart { definition, text, n_questions, issues }: StepStart,
) -> Result<WorkflowStep<'a>, WorkflowExit> {
    let step_state = Arc::new(SharedStepState::default());
    step_state.lock_state().n_questions = n_questions;
    let approved = cx.config_loader.current_config().approved.clone();
    let (owned_context, owned_feature) = (context.clone(), feature.clone());
    let prepared = run_blocking(move || {
        let (prompt, note) = StepPrompt::find_prompt(&owned_context, definition, &approved);
        let dir = owned_feature.as_ref().map(|feature| feature.dir.as_path());
        let guard = WriteGuard::new(definition.command, owned_context.project.root(), dir);
        let watch = ChangeWatch::new(GuardSnapshot::capture(&guard)?, owned_feature);
        Ok((prompt, note, guard, watch))
    });
    let (prompt, note, guard, watch) = prepared.await.map_err(WorkflowExit::Refused)?;
    if let Some(note) = note {
        send_note(cx, &note);
    }
    let scope = StepScope { context, definition, feature, text };
    let tools = tools::step_tools(cx, definition, &step_state, scope.answer_record());
    let watch = Arc::new(Mutex::new(watch));
    let policy = StepPolicy { definition, guard, step_state, tools, watch, issues };
    Ok(WorkflowStep { cx: *cx, scope, policy, prompt })
}
