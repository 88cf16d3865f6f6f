//! The checks before a step begins. They cost no request and write nothing.

use crow_speckit::{
    CommandInvocation, Feature, SpeckitError, StepDefinition, check_feature_prerequisites, step_definition,
};

use crate::blocking::run_blocking;
use crate::exit::WorkflowExit;
use crate::layout;
use crate::port::WorkflowPort;
use crate::project_context::ProjectContext;
use crate::report;

/// The result of the checks.
#[derive(Debug)]
pub(crate) struct StepPrerequisites {
    /// The feature that the step works on.
    pub(crate) feature: Option<Feature>,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
}

/// Checks whether a step can begin.
pub(crate) async fn check_step_start(
    port: &mut impl WorkflowPort,
    context: &ProjectContext,
    invocation: &CommandInvocation,
) -> Result<StepPrerequisites, WorkflowExit> {
    let definition = step_definition(invocation.command);
    let (owned_context, owned_invocation) = (context.clone(), invocation.clone());
    let check = move || check_prerequisites(&owned_context, definition, &owned_invocation);
    let prerequisites = run_blocking(check).await.map_err(WorkflowExit::Refused)?;
    let crow_file = (definition.crow_file)(&context.project, prerequisites.feature.as_ref());
    match crow_file.and_then(|path| port.forbidden_write_reason(&path)) {
        Some(reason) => Err(WorkflowExit::Refused(reason)),
        None => Ok(prerequisites),
    }
}

fn check_prerequisites(
    context: &ProjectContext,
    definition: &StepDefinition,
    invocation: &CommandInvocation,
) -> Result<StepPrerequisites, SpeckitError> {
    let mut prerequisites = StepPrerequisites { feature: None, notes: context.project_notes() };
    if let Some(requirements) = definition.feature.prerequisites() {
        let (feature, origin) = context.find_feature(invocation.feature.as_deref())?;
        check_feature_prerequisites(&context.project, &feature, requirements)?;
        prerequisites.notes.extend(report::origin_notes(context, &feature, origin));
        prerequisites.feature = Some(feature);
    }
    (definition.check_ready)(invocation, prerequisites.feature.as_ref())?;
    // The checks at the end read the constitution: report now if it cannot be read.
    context.project.read_project_file(&context.project.constitution_path())?;
    layout::check_layout(context, invocation, prerequisites.feature.as_ref())?;
    Ok(prerequisites)
}
