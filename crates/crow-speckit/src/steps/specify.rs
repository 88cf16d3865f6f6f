//! `/speckit.specify`: a new feature and its spec.

use crate::check::{check_spec_page, checklist_lines, read_or_empty};
use crate::lint::summarize_spec;
use crate::step_definition::{BASE_STEP, FeatureUse, StepDefinition};
use crate::step_layout::{LayoutRequest, StepLayout};
use crate::write_rules::FEATURE_PAGES;
use crate::{
    CreatedFeature, FeatureNumbering, FeaturePrerequisite, NewFeature, REQUIREMENTS, SpeckitError,
    WorkflowCommand, create_feature, default_numbering, init_project, preview_feature, resume_feature,
    write_pointer,
};

impl FeaturePrerequisite {
    /// A spec.
    pub const SPEC: Self = Self { page: "spec.md", creator: WorkflowCommand::Specify, may_be_empty: true };
}

pub(super) static DEFINITION: StepDefinition = StepDefinition {
    command: WorkflowCommand::Specify,
    description: "Start a feature: turn an idea into a specification",
    argument_hint: "what to build and why",
    feature: FeatureUse::Creates,
    check_ready: |invocation, _| {
        if !invocation.text.trim().is_empty() {
            return Ok(());
        }
        let command = WorkflowCommand::Specify;
        let reason = format!("there is nothing to specify; describe after {command} what to build and why");
        Err(SpeckitError::Invalid(reason))
    },
    check_layout: |request| {
        (request.pages)("spec-template")?;
        (request.pages)("requirements-template")?;
        let dir = requested_directory(request);
        preview_feature(request.project, &new_feature(request, dir.as_deref())).map(drop)
    },
    lay_out,
    writes: FEATURE_PAGES,
    prompt: include_str!("../../prompts/speckit_specify.jinja2"),
    questions_max: 3,
    check: check_spec_page,
    repairs_max: 1,
    summarize: |files, _| {
        let Some(feature) = files.feature else { return Ok(Vec::new()) };
        let spec = read_or_empty(&feature.spec_path())?;
        let mut lines = vec![format!("spec.md: {}", summarize_spec(&spec))];
        lines.extend(checklist_lines(feature)?);
        Ok(lines)
    },
    is_due: |feature| Ok(!feature.spec_path().is_file()),
    next: &[WorkflowCommand::Clarify, WorkflowCommand::Plan],
    ..BASE_STEP
};

fn lay_out(request: &LayoutRequest<'_>) -> Result<StepLayout, SpeckitError> {
    let LayoutRequest { project, invocation, now, pages, .. } = *request;
    let mut created = match project.is_initialized() {
        true => Vec::new(),
        false => init_project(project, pages)?,
    };
    let (feature, notes) = match request.begun_feature {
        Some(feature) => {
            created.extend(resume_feature(project, feature, &invocation.text, now, pages)?);
            let note = format!("{} is continued: it was started before and left empty.", feature.name);
            (feature.clone(), vec![note])
        }
        None => {
            let dir = requested_directory(request);
            let CreatedFeature { feature, notes, .. } =
                create_feature(project, &new_feature(request, dir.as_deref()), pages)?;
            created.extend([feature.spec_path(), feature.checklists_dir().join(REQUIREMENTS)]);
            (feature, notes)
        }
    };
    if request.writes_pointer {
        write_pointer(project, &feature.dir)?;
    }
    Ok(StepLayout { feature: Some(feature), created, notes })
}

fn requested_directory(request: &LayoutRequest<'_>) -> Option<String> {
    request.invocation.naming.directory.as_ref().map(|dir| dir.display().to_string())
}

fn new_feature<'a>(request: &LayoutRequest<'a>, dir: Option<&'a str>) -> NewFeature<'a> {
    let naming = &request.invocation.naming;
    NewFeature {
        description: &request.invocation.text,
        short_name: request.short_name,
        numbering: match (naming.timestamp, naming.number) {
            (true, _) => FeatureNumbering::Timestamp,
            (false, Some(number)) => FeatureNumbering::Prefer(number),
            (false, None) => default_numbering(request.project),
        },
        dir,
        specs_root: request.specs_root,
        specs_link: request.specs_link,
        now: request.now,
    }
}
