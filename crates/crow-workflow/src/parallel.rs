//! Gives parallel tasks to child agents if the user allows it. The children work in the same directory, on files that
//! the task list separates.

use crow_core::Failure;
use crow_speckit::{AuxiliaryPrompt, TaskFacts, TaskId, TaskItem, TaskList, task_facts};

use crate::config::ParallelMode;
use crate::port::{ChildTask, ConfirmationAnswer, ConfirmationSubject, StepConfirmation, WorkflowPort};
use crate::step::WorkflowStep;

/// Children started at once; the limits of the agent tree apply as well.
const CHILDREN_MAX: usize = 8;

/// The user's consent to parallel tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParallelConsent {
    /// Whether these tasks may run in parallel.
    pub(crate) is_allowed: bool,
    /// Whether the answer applies to the whole run.
    pub(crate) is_final: bool,
}

/// Asks the user, unless the configuration decides.
pub(crate) async fn ask_consent(
    step: &WorkflowStep,
    port: &mut impl WorkflowPort,
    tasks: &[TaskItem],
) -> ParallelConsent {
    match step.scope.context.config.parallel {
        ParallelMode::Never => return ParallelConsent { is_allowed: false, is_final: true },
        ParallelMode::Always => return ParallelConsent { is_allowed: true, is_final: true },
        ParallelMode::Ask => {}
    }
    // The other tasks are asked about later.
    let tasks = &tasks[..tasks.len().min(CHILDREN_MAX)];
    let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    let lines = tasks.iter().map(|task| format!("{} {}", task.id, task.text));
    let confirmation = StepConfirmation {
        title: format!("Run {} in {} child agents at once", ids.join(", "), ids.len()),
        texts: vec![lines.collect::<Vec<_>>().join("\n")],
        subject: ConfirmationSubject::RepeatedProposal,
    };
    let answer = port.confirm(confirmation).await;
    ParallelConsent {
        is_allowed: answer.is_allowed(),
        // If the user cannot be asked now, later questions have the same outcome.
        is_final: match answer {
            ConfirmationAnswer::Allowed { is_lasting } | ConfirmationAnswer::Rejected { is_lasting } => {
                is_lasting
            }
            ConfirmationAnswer::Cancelled | ConfirmationAnswer::Unavailable { .. } => true,
        },
    }
}

/// Starts a child for each task; returns the tasks that have one. The others stay open.
pub(crate) async fn start_children(
    step: &WorkflowStep,
    port: &mut impl WorkflowPort,
    list: &TaskList,
    tasks: &[TaskItem],
) -> Result<Vec<TaskId>, Failure> {
    let tasks = &tasks[..tasks.len().min(CHILDREN_MAX)];
    let all_facts: Vec<TaskFacts> = tasks.iter().map(|task| task_facts(list, task)).collect();
    // Everything that can fail comes before the first child.
    let mut child_tasks = Vec::new();
    for (index, (task, own)) in tasks.iter().zip(&all_facts).enumerate() {
        let siblings =
            all_facts.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, facts)| facts.clone());
        let (current, siblings) = (vec![own.clone()], siblings.collect());
        let prompt = step.scope.render_side_prompt(AuxiliaryPrompt::Child, |facts| {
            facts.tasks.current = current;
            facts.tasks.beside = siblings;
        });
        let (prompt, title) = (prompt.await?, format!("{} {}", task.id, task.text));
        child_tasks.push(ChildTask { id: task.id.clone(), title, prompt });
    }
    let mut started = Vec::new();
    for child_task in child_tasks {
        let id = child_task.id.clone();
        if port.start_child(child_task).await {
            started.push(id);
        }
    }
    Ok(started)
}
