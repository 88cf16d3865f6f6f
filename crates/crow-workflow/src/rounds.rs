//! The part of a step after its first turn: checks and repairs, in rounds, and the report.

use crow_core::{Failure, ReportOutcome, SpeckitPart, TurnEnd};
use crow_speckit::{
    AuxiliaryPrompt, Feature, FeatureUse, GapClosure, GapWork, HookTiming, StepBaseline, WorkflowCommand,
};

use crate::blocking::project_failure;
use crate::hook_calls::HookContext;
use crate::hooks;
use crate::issues::IssueTarget;
use crate::notices::send_step_note;
use crate::parts::hidden_part;
use crate::port::WorkflowPort;
use crate::report::{self, StepSummary};
use crate::step::WorkflowStep;

/// The state of a step after the checks of what the model wrote.
enum CheckedTurn {
    /// The work is done; `problems` are those that remain.
    Finished { problems: Vec<String> },
    /// The step was interrupted or stopped, or waits for an answer.
    Unfinished(TurnEnd),
}

/// Checks what the model wrote, lets it fix problems, and reports the result.
pub(crate) async fn finish_step(
    step: &WorkflowStep,
    port: &mut impl WorkflowPort,
    end: TurnEnd,
    baseline: &StepBaseline,
) -> Result<TurnEnd, Failure> {
    let mut problems = match check_and_repair(step, port, end, baseline).await? {
        CheckedTurn::Finished { problems } => problems,
        CheckedTurn::Unfinished(end) => return Ok(end),
    };
    let definition = step.scope.definition;
    let is_complete = problems.is_empty();
    let closure = match &definition.gaps {
        Some(gap_work) => Some(close_gaps(step, port, gap_work).await?),
        None => None,
    };
    let hooks_end = run_after_hooks(step, port).await?;
    if definition.shows_tasks {
        step.send_plan(port, &[]).await?;
    }
    let mut results = step.scope.list_results(baseline).await?;
    results.extend(step.policy.issues.as_ref().map(IssueTarget::summary_line));
    let mut next = definition.next;
    if let Some(closure) = closure {
        results.push(closure.line);
        next = closure.next;
        problems.clear();
    } else if !is_complete {
        // The next step would build on it.
        next = &[];
    }
    let text = report::render_results(definition.command, &results, &problems);
    let outcome = if is_complete { ReportOutcome::Done } else { ReportOutcome::Incomplete };
    step.send_report(port, StepSummary { text, next, outcome }).await?;
    Ok(hooks_end.unwrap_or(TurnEnd::Completed))
}

/// Checks what the model wrote, and lets it fix problems as often as the definition says.
async fn check_and_repair(
    step: &WorkflowStep,
    port: &mut impl WorkflowPort,
    mut end: TurnEnd,
    baseline: &StepBaseline,
) -> Result<CheckedTurn, Failure> {
    let (definition, step_state) = (step.scope.definition, &step.policy.step_state);
    let mut n_left = definition.repairs_max;
    loop {
        if end != TurnEnd::Completed {
            report_interruption(step, port).await?;
            return Ok(CheckedTurn::Unfinished(end));
        }
        if step.has_stopped() {
            send_step_note(port, &stopped_note(definition.command));
            return Ok(CheckedTurn::Unfinished(end));
        }
        if step_state.lock_state().is_waiting {
            // The next prompt is the answer, and the step continues with it.
            port.keep_baseline(baseline.clone());
            return Ok(CheckedTurn::Unfinished(end));
        }
        let problems = match &definition.gaps {
            Some(gap_work) if step_state.lock_state().gaps.is_none() => {
                vec![gap_work.missing_report.to_owned()]
            }
            Some(_) => Vec::new(),
            None => step.scope.find_problems(baseline).await?,
        };
        if problems.is_empty() || n_left == 0 {
            return Ok(CheckedTurn::Finished { problems });
        }
        n_left -= 1;
        step_state.allow_further_replies();
        let fill = |facts: &mut crow_speckit::PromptFacts| facts.problems = problems;
        let repair = step.scope.render_side_prompt(AuxiliaryPrompt::Repair, fill).await?;
        end = step.run_turn(port, Some(hidden_part(SpeckitPart::Repair, repair))).await?;
    }
}

/// Returns the note about a step that the user ended.
pub(crate) fn stopped_note(command: WorkflowCommand) -> String {
    format!("{command} was stopped. The files written so far were kept.")
}

/// Explains how to continue a step whose turn was interrupted.
async fn report_interruption(step: &WorkflowStep, port: &mut impl WorkflowPort) -> Result<(), Failure> {
    let scope = &step.scope;
    let command = scope.definition.command;
    let text = match (scope.definition.feature, &scope.feature) {
        (FeatureUse::Creates, Some(feature)) => format!(
            "\n{command} was not finished. {} exists; repeat the same command to continue it.\n",
            scope.context.project.display_path(&feature.spec_path())
        ),
        _ => format!("\n{command} was not finished. Repeat it to continue with what is there.\n"),
    };
    step.send_report(port, StepSummary { text, next: &[], outcome: ReportOutcome::Incomplete }).await
}

/// Adds tasks for the reported gaps.
async fn close_gaps(
    step: &WorkflowStep,
    port: &mut impl WorkflowPort,
    gap_work: &GapWork,
) -> Result<GapClosure, Failure> {
    let gaps = step.policy.step_state.lock_state().gaps.take();
    let text = step.scope.read_tasks_text().await?;
    let closure = (gap_work.close_gaps)(&text, gaps.as_deref());
    let closure = closure.map_err(|error| project_failure(error.to_string()))?;
    if let Some(tasks_text) = &closure.tasks_text {
        step.write_tasks(port, tasks_text, None).await.map_err(project_failure)?;
    }
    Ok(closure)
}

/// Runs the hooks after a step; returns how the turn ends if a hook ended it.
pub(crate) async fn run_after_hooks(
    step: &WorkflowStep,
    port: &mut impl WorkflowPort,
) -> Result<Option<TurnEnd>, Failure> {
    let scope = &step.scope;
    let hook_context = HookContext {
        timing: HookTiming::After,
        command: scope.definition.command,
        context: scope.context.clone(),
        invocation: None,
        plan_path: scope.feature.as_ref().map(Feature::plan_path),
    };
    hooks::run_hooks(port, hook_context).await
}
