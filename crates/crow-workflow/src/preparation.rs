//! Prepares a step: its policy, its tools, its prompt, and the target of its issues.

use std::sync::{Arc, Mutex};

use crow_speckit::{ChangeWatch, CommandInvocation, Feature, GuardSnapshot, StepDefinition, WriteGuard};

use crate::blocking::run_blocking;
use crate::exit::WorkflowExit;
use crate::issues::{self, IssueTarget, IssueTasks};
use crate::notices::send_note;
use crate::policy::StepPolicy;
use crate::port::WorkflowPort;
use crate::project_context::ProjectContext;
use crate::prompt::StepPrompt;
use crate::scope::StepScope;
use crate::step::WorkflowStep;
use crate::step_state::SharedStepState;
use crate::tools;

/// The parameters of a step that starts or resumes.
pub(crate) struct StepStart {
    pub(crate) definition: &'static StepDefinition,
    pub(crate) text: String,
    /// Questions asked so far.
    pub(crate) n_questions: usize,
    pub(crate) issues: Option<IssueTarget>,
}

/// Creates the step with its policy, its tools and its prompt.
pub(crate) async fn prepare_step(
    port: &mut impl WorkflowPort,
    context: ProjectContext,
    feature: Option<Feature>,
    StepStart { definition, text, n_questions, issues }: StepStart,
) -> Result<WorkflowStep, WorkflowExit> {
    let step_state = Arc::new(SharedStepState::default());
    step_state.lock_state().n_questions = n_questions;
    let (owned_context, owned_feature) = (context.clone(), feature.clone());
    let prepared = run_blocking(move || {
        let (prompt, note) = StepPrompt::find_prompt(&owned_context, definition);
        let dir = owned_feature.as_ref().map(|feature| feature.dir.as_path());
        let guard = WriteGuard::new(definition.command, owned_context.project.root(), dir);
        let watch = ChangeWatch::new(GuardSnapshot::capture(&guard)?, owned_feature);
        Ok((prompt, note, guard, watch))
    });
    let (prompt, note, guard, watch) = prepared.await.map_err(WorkflowExit::Refused)?;
    if let Some(note) = note {
        send_note(port, &note);
    }
    let scope = StepScope { context, definition, feature, text };
    let tools = tools::step_tools(definition, &step_state, port.user_questions(), scope.answer_record());
    let watch = Arc::new(Mutex::new(watch));
    let policy = StepPolicy { definition, guard, step_state, tools, watch, issues };
    Ok(WorkflowStep { scope, policy, prompt })
}

/// Finds the tasks that may get an issue, the repository, and the server that creates issues.
pub(crate) async fn find_issue_target(
    port: &mut impl WorkflowPort,
    context: &ProjectContext,
    feature: &Feature,
    invocation: &CommandInvocation,
) -> Result<IssueTarget, WorkflowExit> {
    let (project, feature, arguments) = (context.project.clone(), feature.clone(), invocation.text.clone());
    let issue_tasks = run_blocking(move || IssueTasks::read_tasks(&project, &feature, &arguments))
        .await
        .map_err(WorkflowExit::Refused)?;
    let server_tools = port.server_tools().await;
    let command = invocation.command;
    IssueTarget::choose_server(command, issue_tasks, &server_tools).ok_or_else(|| {
        let config_file = context.config_file.display().to_string();
        WorkflowExit::Refused(issues::missing_server_message(command, &config_file))
    })
}
