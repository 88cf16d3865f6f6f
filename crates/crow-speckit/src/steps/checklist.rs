//! `/speckit.checklist`: a checklist to review the requirements with.

use crate::check::{ProblemList, StepFiles, checklist_lines, read_checklists};
use crate::checklist::check_checklist;
use crate::step_definition::{BASE_STEP, FeatureUse, StepDefinition};
use crate::write_rules::{FEATURE_PAGES, ProtectedPath, WriteRules};
use crate::{FeaturePrerequisite, REQUIREMENTS, SpeckitError, WorkflowCommand};

pub(super) static DEFINITION: StepDefinition = StepDefinition {
    command: WorkflowCommand::Checklist,
    description: "Create a checklist to review the requirements",
    argument_hint: "topic, e.g. security",
    feature: FeatureUse::Needs(&[FeaturePrerequisite::PLAN]),
    check_layout: |request| (request.pages)("checklist-template").map(drop),
    writes: WriteRules {
        refuse: |target| {
            let is_own = target.is_checklist() && !target.is_page("checklists/requirements.md");
            (!is_own).then_some("the feature's checklists only, and not requirements.md")
        },
        protected: &[
            ProtectedPath::FeatureFile("spec.md"),
            ProtectedPath::FeatureFile("plan.md"),
            ProtectedPath::FeatureFile("tasks.md"),
            ProtectedPath::FeatureFile("checklists/requirements.md"),
            ProtectedPath::Constitution,
        ],
        removes_new_files: true,
        extends_checklists: true,
        ..FEATURE_PAGES
    },
    prompt: include_str!("../../prompts/speckit_checklist.jinja2"),
    template: Some("checklist-template"),
    questions_max: 5,
    check,
    repairs_max: 1,
    summarize: |files, _| files.feature.map_or_else(|| Ok(Vec::new()), checklist_lines),
    next: &[WorkflowCommand::Tasks],
    ..BASE_STEP
};

fn check(files: &StepFiles<'_>, problems: &mut ProblemList) -> Result<(), SpeckitError> {
    let Some(feature) = files.feature else { return Ok(()) };
    let (before, after) = (&files.baseline.checklists, read_checklists(feature)?);
    let template = (files.pages)("checklist-template")?.text;
    let changed = after.iter().filter(|(name, text)| before.get(*name) != Some(text));
    let mut n_changed = 0;
    for (name, text) in changed.filter(|(name, _)| *name != REQUIREMENTS) {
        n_changed += 1;
        problems.add_problems(name, check_checklist(before.get(name).map(String::as_str), text, &template));
    }
    let is_written = files.baseline.is_late && after.keys().any(|name| *name != REQUIREMENTS);
    if n_changed == 0 && !is_written {
        problems.add_line("no checklist was written; write one file in checklists/".to_owned());
    }
    Ok(())
}
