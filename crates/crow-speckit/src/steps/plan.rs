//! `/speckit.plan`: the technical plan and its documents.

use crate::check::{ProblemList, StepFiles, read_or_empty};
use crate::lint::{check_plan, check_quickstart, check_research};
use crate::scaffold::{PageHeader, fill_header};
use crate::step_definition::{BASE_STEP, FeatureUse, StepDefinition};
use crate::step_layout::{LayoutRequest, StepLayout};
use crate::write_rules::FEATURE_PAGES;
use crate::{
    Feature, FeaturePrerequisite, PageLoader, SpeckitError, SpeckitProject, WorkflowCommand, list_docs,
};

impl FeaturePrerequisite {
    /// A plan that is not empty.
    pub const PLAN: Self = Self { page: "plan.md", creator: WorkflowCommand::Plan, may_be_empty: false };
}

pub(super) static DEFINITION: StepDefinition = StepDefinition {
    command: WorkflowCommand::Plan,
    description: "Design how the current spec will be built",
    argument_hint: "stack and technical limits",
    feature: FeatureUse::Needs(&[FeaturePrerequisite::SPEC]),
    check_layout: |request| match request.feature {
        Some(feature) if !feature.plan_path().is_file() => (request.pages)("plan-template").map(drop),
        Some(_) | None => Ok(()),
    },
    lay_out,
    crow_file: |_, feature| feature.map(Feature::plan_path),
    writes: FEATURE_PAGES,
    prompt: include_str!("../../prompts/speckit_plan.jinja2"),
    check,
    repairs_max: 2,
    summarize: |files, _| {
        let Some(feature) = files.feature else { return Ok(Vec::new()) };
        let docs = list_docs(feature);
        let docs = if docs.is_empty() { "no other documents".to_owned() } else { docs.join(", ") };
        Ok(vec![format!("plan.md, {docs}")])
    },
    is_due: |feature| Ok(!feature.plan_path().is_file()),
    next: &[WorkflowCommand::Tasks, WorkflowCommand::Checklist],
    ..BASE_STEP
};

fn lay_out(request: &LayoutRequest<'_>) -> Result<StepLayout, SpeckitError> {
    let mut layout = StepLayout { feature: request.feature.cloned(), ..StepLayout::default() };
    if let Some(feature) = request.feature
        && setup_plan(request.project, feature, request.now, request.pages)?
    {
        layout.created.push(feature.plan_path());
    }
    Ok(layout)
}

/// Creates the plan of a feature; returns whether it is new. An existing plan is not changed.
pub fn setup_plan(
    project: &SpeckitProject,
    feature: &Feature,
    now: &jiff::Zoned,
    pages: &PageLoader<'_>,
) -> Result<bool, SpeckitError> {
    if feature.page_path("plan.md")?.is_file() {
        return Ok(false);
    }
    let template = pages("plan-template")?;
    if template.text.is_empty() {
        let reason = format!("the page template {} is empty; restore it, or remove it", template.name);
        return Err(SpeckitError::Invalid(reason));
    }
    if !feature.dir.is_dir() {
        project.create_dir(&feature.dir)?;
    }
    let date = now.date().to_string();
    let header = PageHeader { name: &feature.name, date: &date, description: "" };
    SpeckitProject::write_new_file(&feature.plan_path(), &fill_header(&template.text, header))
}

fn check(files: &StepFiles<'_>, problems: &mut ProblemList) -> Result<(), SpeckitError> {
    let Some(feature) = files.feature else { return Ok(()) };
    let template = (files.pages)("plan-template")?.text;
    problems.add_problems("plan.md", check_plan(&read_or_empty(&feature.plan_path())?, &template));
    let research = SpeckitProject::read_file(&feature.research_path())?;
    problems.add_problems("research.md", check_research(research.as_deref()));
    let quickstart = SpeckitProject::read_file(&feature.quickstart_path())?;
    problems.add_problems("quickstart.md", check_quickstart(quickstart.as_deref()));
    Ok(())
}
