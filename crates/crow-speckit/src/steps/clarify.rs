//! `/speckit.clarify`: the open questions of the spec. Crow writes the answers into it.

use crate::check::{check_spec_page, checklist_lines, read_or_empty};
use crate::clarifications::count_clarifications;
use crate::lint::summarize_spec;
use crate::step_definition::{BASE_STEP, FeatureUse, StepDefinition};
use crate::write_rules::FEATURE_PAGES;
use crate::{Feature, FeaturePrerequisite, WorkflowCommand};

pub(super) static DEFINITION: StepDefinition = StepDefinition {
    command: WorkflowCommand::Clarify,
    description: "Clarify open questions of the current spec, one at a time",
    argument_hint: "area to focus on (optional)",
    feature: FeatureUse::Needs(&[FeaturePrerequisite::SPEC]),
    crow_file: |_, feature| feature.map(Feature::spec_path),
    writes: FEATURE_PAGES,
    prompt: include_str!("../../prompts/speckit_clarify.jinja2"),
    questions_max: 5,
    records_answers: true,
    check: check_spec_page,
    repairs_max: 1,
    summarize: |files, today| {
        let Some(feature) = files.feature else { return Ok(Vec::new()) };
        let spec = read_or_empty(&feature.spec_path())?;
        let mut lines = vec![
            format!("spec.md: {}", summarize_spec(&spec)),
            format!("Answers recorded today: {}", count_clarifications(&spec, today)),
        ];
        lines.extend(checklist_lines(feature)?);
        Ok(lines)
    },
    next: &[WorkflowCommand::Plan],
    ..BASE_STEP
};
