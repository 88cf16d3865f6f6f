//! Runs a step as its definition says: prerequisites first, at no cost; then Crow creates what needs no model, the
//! model does the rest, and the result is checked, repaired and reported.

use crow_core::{SpeckitPart, TurnEnd};
use crow_speckit::{
    CommandInvocation, Feature, FeatureUse, HookTiming, QuestionAnswer, StepDefinition, StepWork,
    step_definition,
};

use crate::blocking::run_blocking;
use crate::checklist_confirmation::confirm_open_checklists;
use crate::exit::WorkflowExit;
use crate::hook_calls::HookContext;
use crate::hooks;
use crate::layout;
use crate::notices::{send_note, send_step_note};
use crate::open_question::OpenQuestion;
use crate::parts::{STOPPED, hidden_part};
use crate::port::WorkflowPort;
use crate::preflight;
use crate::preparation::{self, StepStart};
use crate::project_context::ProjectContext;
use crate::questions;
use crate::rounds;
use crate::task_run;

/// Runs a step from its command to its report.
pub(crate) async fn run_step(
    port: &mut impl WorkflowPort,
    invocation: CommandInvocation,
) -> Result<TurnEnd, WorkflowExit> {
    let definition = step_definition(invocation.command);
    // Without a model, nothing needs to be created.
    port.check_model()?;
    let context = ProjectContext::find_project(port).await?;
    let prerequisites = preflight::check_step_start(port, &context, &invocation).await?;
    for note in &prerequisites.notes {
        send_note(port, note);
    }
    let feature = prerequisites.feature;
    let issues = match (definition.work, &feature) {
        (StepWork::Issues, Some(feature)) => {
            Some(preparation::find_issue_target(port, &context, feature, &invocation).await?)
        }
        (StepWork::Issues | StepWork::Pages | StepWork::Tasks, _) => None,
    };
    if let Some(feature) = feature.as_ref().filter(|_| definition.confirms_checklists) {
        confirm_open_checklists(port, definition.command, feature).await?;
    }
    // From here on files may be created, which belong to this prompt.
    port.append_user_prompt(None).await?;
    let hook_context = HookContext {
        timing: HookTiming::Before,
        command: definition.command,
        context: context.clone(),
        invocation: Some(invocation.clone()),
        plan_path: None,
    };
    WorkflowExit::unless_ended(hooks::run_hooks(port, hook_context).await?)?;
    let feature = layout::lay_out(port, &context, &invocation, feature).await?;
    if port.is_over() {
        return Ok(TurnEnd::Cancelled);
    }
    context.bind_feature(port, feature.as_ref(), Some(definition.command)).await?;
    let start = StepStart { definition, text: invocation.text, n_questions: 0, issues };
    let step = preparation::prepare_step(port, context, feature, start).await?;
    if definition.work == StepWork::Tasks {
        return task_run::run_task_list(&step, port).await;
    }
    let baseline = step.scope.take_baseline().await?;
    let current = step.policy.issues.as_ref().map(|issues| issues.tasks.clone()).unwrap_or_default();
    let prompt = step.opening_part(current).await?;
    let end = step.run_turn(port, Some(prompt)).await?;
    Ok(rounds::finish_step(&step, port, end, &baseline).await?)
}

/// Resumes a step that asked a question, with the text of the answer.
pub(crate) async fn resume_step(
    port: &mut impl WorkflowPort,
    OpenQuestion { command, question, n_asked }: OpenQuestion,
    answer_text: &str,
) -> Result<TurnEnd, WorkflowExit> {
    let definition = step_definition(command);
    let answer = question.parse_answer(answer_text);
    let context = ProjectContext::find_project(port).await?;
    let feature = find_resumed_feature(&context, definition).await?;
    let n_questions = if answer == QuestionAnswer::NoMore { definition.questions_max } else { n_asked };
    let start = StepStart { definition, text: String::new(), n_questions, issues: None };
    let step = preparation::prepare_step(port, context, feature, start).await?;
    let n_left = definition.questions_max.saturating_sub(n_questions);
    let message = match &answer {
        QuestionAnswer::Stop => STOPPED.to_owned(),
        QuestionAnswer::Answer(_) | QuestionAnswer::NoMore => {
            questions::answer_message(&step.scope, &question, &answer, n_left).await?
        }
    };
    port.append_user_prompt(Some(hidden_part(SpeckitPart::Answer, message))).await?;
    if answer == QuestionAnswer::Stop {
        send_step_note(port, &rounds::stopped_note(command));
        return Ok(TurnEnd::Completed);
    }
    {
        let (answer_record, recorder) = (step.scope.answer_record(), port.undo_recorder());
        questions::write_answer(
            answer_record.as_ref(),
            &question,
            &answer,
            Some(&*recorder),
            port.workspace(),
        )
        .await
        .map_err(WorkflowExit::Refused)?;
    }
    let baseline = match port.take_baseline() {
        Some(baseline) => baseline,
        None => step.scope.take_baseline().await?.mark_late(),
    };
    let end = step.run_turn(port, None).await?;
    Ok(rounds::finish_step(&step, port, end, &baseline).await?)
}

/// Finds the feature of a step that asked a question: by then, a new one is that of the session.
async fn find_resumed_feature(
    context: &ProjectContext,
    definition: &StepDefinition,
) -> Result<Option<Feature>, WorkflowExit> {
    let context = context.clone();
    match definition.feature {
        FeatureUse::Unused => Ok(None),
        FeatureUse::Creates | FeatureUse::Needs(_) => {
            let found = run_blocking(move || context.find_feature(None)).await;
            Ok(Some(found.map_err(WorkflowExit::Refused)?.0))
        }
    }
}
