//! Creates what a step needs before the model is called: directories, pages, the pointer. What it creates can be
//! undone.

use std::path::PathBuf;

use crow_speckit::{
    CommandInvocation, CreatedFeature, Feature, FeatureNaming, FeatureNumbering, NewFeature, REQUIREMENTS,
    SpeckitError, SpeckitProject, WorkflowCommand, create_feature, default_numbering, init_project,
    is_untouched, preview_feature, resume_feature, setup_plan, write_pointer,
};

use crate::clock;
use crate::confirm::synthetic_call_id;
use crate::speckit::project_context::ProjectContext;
use crate::speckit::project_files::{self, run_blocking};
use crate::speckit::short_name;
use crate::speckit::step_driver::send_note;
use crate::turn_context::{SessionState, TurnCx};
use crate::undo_recorder::CallUndoRecorder;

/// Checks that all files can be created. Writes nothing.
pub(super) fn check_layout(
    context: &ProjectContext,
    invocation: &CommandInvocation,
    feature: Option<&Feature>,
) -> Result<(), SpeckitError> {
    let now = clock::local_now();
    match invocation.command {
        WorkflowCommand::Constitution => context.find_page("constitution-template").map(drop),
        WorkflowCommand::Specify => {
            context.find_page("spec-template")?;
            context.find_page("requirements-template")?;
            let dir = requested_directory(invocation);
            preview_feature(&context.project, &new_feature(context, invocation, None, dir.as_deref(), &now))
                .map(drop)
        }
        WorkflowCommand::Plan if feature.is_some_and(|feature| !feature.plan_path().is_file()) => {
            context.find_page("plan-template").map(drop)
        }
        WorkflowCommand::Plan => Ok(()),
        WorkflowCommand::Tasks => context.find_page("tasks-template").map(drop),
        WorkflowCommand::Checklist => context.find_page("checklist-template").map(drop),
        WorkflowCommand::Clarify
        | WorkflowCommand::Analyze
        | WorkflowCommand::Implement
        | WorkflowCommand::Converge
        | WorkflowCommand::TasksToIssues => Ok(()),
    }
}

/// Creates the files of a step; returns its feature.
pub(super) async fn lay_out(
    cx: &TurnCx<'_>,
    state: &SessionState,
    context: &ProjectContext,
    invocation: &CommandInvocation,
    feature: Option<Feature>,
) -> Result<Option<Feature>, String> {
    let resumed = find_begun_feature(context, invocation).await?;
    let naming = &invocation.naming;
    let needs_name = naming.short_name.is_none() && naming.directory.is_none() && resumed.is_none();
    let short_name = match invocation.command == WorkflowCommand::Specify && needs_name {
        true => short_name::ask_short_name(cx, &invocation.text).await,
        false => naming.short_name.clone(),
    };
    if cx.is_over() {
        return Ok(feature);
    }
    let (owned_context, invocation) = (context.clone(), invocation.clone());
    let result = run_blocking(move || {
        write_files(&owned_context, &invocation, short_name.as_deref(), feature, resumed)
    })
    .await?;
    for note in &result.notes {
        send_note(cx, note);
    }
    let undo_recorder = CallUndoRecorder::new(cx, state.turn, synthetic_call_id(cx, state));
    project_files::record_written_files(&undo_recorder, cx.workspace, result.files).await?;
    Ok(result.feature)
}

/// Finds the feature that the same text started before, if it is still untouched.
async fn find_begun_feature(
    context: &ProjectContext,
    invocation: &CommandInvocation,
) -> Result<Option<Feature>, String> {
    let is_repeated = invocation.command == WorkflowCommand::Specify
        && context.last_command == Some(WorkflowCommand::Specify);
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
}

/// The created files.
struct LayoutResult {
    feature: Option<Feature>,
    files: Vec<LayoutFile>,
    notes: Vec<String>,
}

/// A file that Crow wrote, with its content before and after.
pub(super) struct LayoutFile {
    pub(super) path: PathBuf,
    pub(super) before: Option<String>,
    pub(super) new_text: String,
}

fn write_files(
    context: &ProjectContext,
    invocation: &CommandInvocation,
    short_name: Option<&str>,
    feature: Option<Feature>,
    resumed: Option<Feature>,
) -> Result<LayoutResult, SpeckitError> {
    let (project, now) = (&context.project, clock::local_now());
    let pages = |name: &str| context.find_page(name);
    let mut result = LayoutResult { feature, files: Vec::new(), notes: Vec::new() };
    let mut created: Vec<PathBuf> = Vec::new();
    let pointer = project.specify_path("feature.json");
    let old_pointer = SpeckitProject::read_file(&pointer)?;
    match (invocation.command, &result.feature) {
        (WorkflowCommand::Constitution, _) => created = init_project(project, &pages)?,
        (WorkflowCommand::Specify, _) => {
            if !project.is_initialized() {
                created = init_project(project, &pages)?;
            }
            let feature = match resumed {
                Some(feature) => {
                    created.extend(resume_feature(project, &feature, &invocation.text, &now, &pages)?);
                    result.notes.push(format!(
                        "{} is continued: it was started before and left empty.",
                        feature.name
                    ));
                    feature
                }
                None => {
                    let dir = requested_directory(invocation);
                    let feature_request = new_feature(context, invocation, short_name, dir.as_deref(), &now);
                    let CreatedFeature { feature, notes, .. } =
                        create_feature(project, &feature_request, &pages)?;
                    result.notes = notes;
                    created.extend([feature.spec_path(), feature.checklists_dir().join(REQUIREMENTS)]);
                    feature
                }
            };
            if !context.config.variables.no_persist {
                write_pointer(project, &feature.dir)?;
            }
            result.feature = Some(feature);
        }
        (WorkflowCommand::Plan, Some(feature)) if setup_plan(project, feature, &now, &pages)? => {
            created = vec![feature.plan_path()];
        }
        (
            WorkflowCommand::Clarify
            | WorkflowCommand::Plan
            | WorkflowCommand::Checklist
            | WorkflowCommand::Tasks
            | WorkflowCommand::Analyze
            | WorkflowCommand::Implement
            | WorkflowCommand::Converge
            | WorkflowCommand::TasksToIssues,
            _,
        ) => {}
    }
    for path in created {
        // Directories among them cannot be read.
        if let Ok(Some(now)) = SpeckitProject::read_file(&path) {
            result.files.push(LayoutFile { path, before: None, new_text: now });
        }
    }
    if let Some(now) = SpeckitProject::read_file(&pointer)?.filter(|now| old_pointer.as_ref() != Some(now)) {
        result.files.push(LayoutFile { path: pointer, before: old_pointer, new_text: now });
    }
    Ok(result)
}

fn requested_directory(invocation: &CommandInvocation) -> Option<String> {
    invocation.naming.directory.as_ref().map(|dir| dir.display().to_string())
}

fn new_feature<'a>(
    context: &'a ProjectContext,
    invocation: &'a CommandInvocation,
    short_name: Option<&'a str>,
    dir: Option<&'a str>,
    now: &'a jiff::Zoned,
) -> NewFeature<'a> {
    let naming = &invocation.naming;
    NewFeature {
        description: &invocation.text,
        short_name,
        numbering: match (naming.timestamp, naming.number) {
            (true, _) => FeatureNumbering::Timestamp,
            (false, Some(number)) => FeatureNumbering::Prefer(number),
            (false, None) => default_numbering(&context.project),
        },
        dir,
        specs_root: &context.config.specs_root,
        specs_link: context.config.specs_link,
        now,
    }
}
