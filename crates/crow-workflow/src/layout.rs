//! Creates what a step needs before the model is called: directories, pages, the pointer. What it creates can be
//! undone.

use crow_speckit::{
    CommandInvocation, Feature, FeatureNaming, FeatureUse, LayoutFile, LayoutRequest, SpeckitError,
    StepLayout, is_untouched, lay_out_step, step_definition,
};

use crate::blocking::run_blocking;
use crate::exit::WorkflowExit;
use crate::notices::send_note;
use crate::port::WorkflowPort;
use crate::project_context::ProjectContext;
use crate::project_files;
use crate::short_name;

/// The features and the name that a layout starts with.
#[derive(Debug, Default)]
struct LayoutInput {
    feature: Option<Feature>,
    /// The feature that the same text began before.
    begun_feature: Option<Feature>,
    short_name: Option<String>,
}

/// Checks that all files can be created. Writes nothing.
pub(crate) fn check_layout(
    context: &ProjectContext,
    invocation: &CommandInvocation,
    feature: Option<&Feature>,
) -> Result<(), SpeckitError> {
    let input = LayoutInput { feature: feature.cloned(), ..LayoutInput::default() };
    let check = step_definition(invocation.command).check_layout;
    with_request(context, invocation, &input, check)
}

/// Creates the files of a step; returns its feature.
pub(crate) async fn lay_out(
    port: &mut impl WorkflowPort,
    context: &ProjectContext,
    invocation: &CommandInvocation,
    feature: Option<Feature>,
) -> Result<Option<Feature>, WorkflowExit> {
    let begun_feature = find_begun_feature(context, invocation).await?;
    let naming = &invocation.naming;
    let needs_name = step_definition(invocation.command).feature == FeatureUse::Creates
        && naming.short_name.is_none()
        && naming.directory.is_none()
        && begun_feature.is_none();
    let short_name = match needs_name {
        true => short_name::ask_short_name(port, &invocation.text).await,
        false => naming.short_name.clone(),
    };
    if port.is_over() {
        return Ok(feature);
    }
    let input = LayoutInput { feature, begun_feature, short_name };
    let (owned_context, invocation) = (context.clone(), invocation.clone());
    let (layout, files): (StepLayout, Vec<LayoutFile>) = run_blocking(move || {
        let lay_out = step_definition(invocation.command).lay_out;
        with_request(&owned_context, &invocation, &input, |request| lay_out_step(lay_out, request))
    })
    .await
    .map_err(WorkflowExit::Refused)?;
    for note in &layout.notes {
        send_note(port, note);
    }
    let recorder = port.undo_recorder();
    project_files::record_written_files(&*recorder, port.workspace(), files)
        .await
        .map_err(WorkflowExit::Refused)?;
    Ok(layout.feature)
}

/// Finds the feature that the same text started before, if it is still untouched.
async fn find_begun_feature(
    context: &ProjectContext,
    invocation: &CommandInvocation,
) -> Result<Option<Feature>, WorkflowExit> {
    let is_new = step_definition(invocation.command).feature == FeatureUse::Creates;
    let is_repeated = is_new && context.last_command == Some(invocation.command);
    if !is_repeated || invocation.naming != FeatureNaming::default() {
        return Ok(None);
    }
    let (owned_context, text) = (context.clone(), invocation.text.clone());
    run_blocking(move || {
        let Some(dir) = &owned_context.feature_dir else { return Ok(None) };
        let (feature, pages) = (Feature::from_dir(dir.clone()), |name: &str| owned_context.find_page(name));
        Ok(is_untouched(&feature, &text, &pages)?.then_some(feature))
    })
    .await
    .map_err(WorkflowExit::Refused)
}

/// Calls a function with the request for a layout.
fn with_request<T>(
    context: &ProjectContext,
    invocation: &CommandInvocation,
    input: &LayoutInput,
    work: impl FnOnce(&LayoutRequest<'_>) -> T,
) -> T {
    let pages = |name: &str| context.find_page(name);
    work(&LayoutRequest {
        project: &context.project,
        invocation,
        feature: input.feature.as_ref(),
        begun_feature: input.begun_feature.as_ref(),
        short_name: input.short_name.as_deref(),
        specs_root: &context.config.specs_root,
        specs_link: context.config.specs_link,
        writes_pointer: !context.config.variables.no_persist,
        now: &context.now,
        pages: &pages,
    })
}
