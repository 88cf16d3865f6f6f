//! The parts that the workflow adds to prompts: for the model, hidden in a replay, and read again from the transcript.

use crow_core::{ContentPart, CrowPart, SpeckitPart, TranscriptEntry};
use crow_speckit::{StepWork, WorkflowCommand, step_definition};

/// Message to the model about a step that the user ended.
pub(crate) const STOPPED: &str =
    "The person ended this step here. What is written stays; do not go on with it.";

/// Returns a part for the model that a replay does not show.
pub(crate) fn hidden_part(part: SpeckitPart, text: String) -> ContentPart {
    ContentPart::FromCrow { kind: CrowPart::Speckit(part), text }
}

/// Returns the step that a prompt started.
pub(crate) fn started_step(entry: &TranscriptEntry) -> Option<WorkflowCommand> {
    let step = |speckit_part: &SpeckitPart| {
        if let SpeckitPart::Step(step) = speckit_part { WorkflowCommand::parse(step) } else { None }
    };
    workflow_parts(entry).find_map(step)
}

/// Whether a prompt started a run of tasks.
pub(crate) fn is_run_start(entry: &TranscriptEntry) -> bool {
    started_step(entry).is_some_and(|command| step_definition(command).work == StepWork::Tasks)
}

/// Whether a prompt has a part about the workflow.
pub(crate) fn mentions_workflow(entry: &TranscriptEntry) -> bool {
    workflow_parts(entry).next().is_some()
}

/// Returns the parts that the workflow added to a prompt.
fn workflow_parts(entry: &TranscriptEntry) -> impl Iterator<Item = &SpeckitPart> {
    let parts = match entry {
        TranscriptEntry::Prompt(prompt) => prompt.parts.as_slice(),
        TranscriptEntry::Reply(_) | TranscriptEntry::Result { .. } => &[],
    };
    parts.iter().filter_map(|part| match part.crow_part() {
        Some(CrowPart::Speckit(speckit_part)) => Some(speckit_part),
        Some(_) | None => None,
    })
}
