//! The part of a step after its first turn: checks and repairs, in rounds, and the report.

use crow_core::{Failure, ReportOutcome, SpeckitPart, TurnEnd};
use crow_speckit::{AuxiliaryPrompt, FeatureUse, StepBaseline, StepWork};

use crate::speckit::converge;
use crate::speckit::report;
use crate::speckit::step::hidden_part;
use crate::speckit::step_port::{StepPort, StepReport};

/// The state of a step after the checks of what the model wrote.
enum CheckedTurn {
    /// The work is done; `problems` are those that remain.
    Finished { end: TurnEnd, problems: Vec<String> },
    /// The step was interrupted or stopped, or waits for an answer.
    Unfinished(TurnEnd),
}

/// Checks what the model wrote, lets it fix problems, and reports the result.
pub(super) async fn finish_step(
    port: &mut impl StepPort,
    end: TurnEnd,
    baseline: &StepBaseline,
) -> Result<TurnEnd, Failure> {
    let (end, mut problems) = match check_and_repair(port, end, baseline).await? {
        CheckedTurn::Finished { end, problems } => (end, problems),
        CheckedTurn::Unfinished(end) => return Ok(end),
    };
    let definition = port.scope().definition;
    let is_complete = problems.is_empty();
    let convergence = match definition.work {
        StepWork::Gaps => Some(converge::append_gap_tasks(port).await?),
        StepWork::Pages | StepWork::Tasks | StepWork::Issues => None,
    };
    let hooks_end = port.run_after_hooks().await?;
    if definition.shows_tasks {
        port.send_plan().await?;
    }
    let (mut results, mut next) = (port.scope().list_results(baseline).await?, definition.next);
    results.extend(port.issue_summary());
    if let Some(convergence) = convergence {
        results.push(convergence.line);
        next = convergence.next;
        problems.clear();
    } else if !is_complete {
        // The next step would build on it.
        next = &[];
    }
    let text = report::render_summary(definition.command, &results, &problems);
    let outcome = if is_complete { ReportOutcome::Done } else { ReportOutcome::Incomplete };
    port.send_report(StepReport { text, next: report::step_handoffs(next), outcome }).await?;
    Ok(hooks_end.unwrap_or(end))
}

/// Checks what the model wrote, and lets it fix problems as often as the definition says.
async fn check_and_repair(
    port: &mut impl StepPort,
    mut end: TurnEnd,
    baseline: &StepBaseline,
) -> Result<CheckedTurn, Failure> {
    let definition = port.scope().definition;
    let mut n_left = definition.repairs_max;
    loop {
        if end != TurnEnd::Completed {
            report_interruption(port).await?;
            return Ok(CheckedTurn::Unfinished(end));
        }
        if port.step_state().lock_state().has_stopped {
            port.send_note(&format!("{} was stopped. What is written was kept.", definition.command));
            return Ok(CheckedTurn::Unfinished(end));
        }
        if port.step_state().lock_state().is_waiting {
            // The next prompt is the answer, and the step continues with it.
            port.keep_baseline(baseline.clone());
            return Ok(CheckedTurn::Unfinished(end));
        }
        let problems = match definition.work {
            StepWork::Gaps => converge::missing_report_prompts(port.step_state()),
            StepWork::Pages | StepWork::Tasks | StepWork::Issues => {
                port.scope().find_problems(baseline).await?
            }
        };
        if problems.is_empty() || n_left == 0 {
            return Ok(CheckedTurn::Finished { end, problems });
        }
        n_left -= 1;
        port.step_state().allow_further_replies();
        let fill = |facts: &mut crow_speckit::PromptFacts| facts.problems = problems;
        let repair = port.scope().render_side_prompt(AuxiliaryPrompt::Repair, fill).await?;
        end = port.run_turn(hidden_part(SpeckitPart::Repair, repair)).await?;
    }
}

/// Explains how to continue a step whose turn was interrupted.
async fn report_interruption(port: &mut impl StepPort) -> Result<(), Failure> {
    let scope = port.scope();
    let command = scope.definition.command;
    let text = match (scope.definition.feature, &scope.feature) {
        (FeatureUse::Creates, Some(feature)) => format!(
            "\n{command} was not finished. {} exists; repeat the same command to continue it.\n",
            scope.context.project.display_path(&feature.spec_path())
        ),
        _ => format!("\n{command} was not finished. Repeat it to continue with what is there.\n"),
    };
    port.send_report(StepReport { text, next: Vec::new(), outcome: ReportOutcome::Incomplete }).await
}

#[cfg(test)]
mod tests;
