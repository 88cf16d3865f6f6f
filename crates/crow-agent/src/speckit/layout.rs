//! What Crow lays out before a model is asked: folders, pages, the pointer. What was made can be undone.

use std::path::PathBuf;

use crow_speckit::{
    CommandInvocation, CreatedFeature, Feature, FeatureNaming, FeatureNumbering, NewFeature, REQUIREMENTS,
    SpeckitError, SpeckitProject, WorkflowCommand, create_feature, default_numbering, init_project,
    is_untouched, preview_feature, resume_feature, setup_plan, write_pointer,
};

use crate::clock;
use crate::confirm::synthetic_call_id;
use crate::keeping::CallUndoRecorder;
use crate::run_turn::{SessionState, TurnCx};
use crate::speckit::ground::ProjectContext;
use crate::speckit::record::{self, run_blocking};
use crate::speckit::short_name;
use crate::speckit::work::send_note;

/// Checks that everything can be laid out. Writes nothing.
pub(super) fn check_layout(
    ground: &ProjectContext,
    asked: &CommandInvocation,
    feature: Option<&Feature>,
) -> Result<(), SpeckitError> {
    let now = clock::local_now();
    match asked.command {
        WorkflowCommand::Constitution => ground.find_page("constitution-template").map(drop),
        WorkflowCommand::Specify => {
            ground.find_page("spec-template")?;
            ground.find_page("requirements-template")?;
            let dir = requested_directory(asked);
            preview_feature(&ground.project, &new_feature(ground, asked, (None, dir.as_deref()), &now))
                .map(drop)
        }
        WorkflowCommand::Plan if feature.is_some_and(|feature| !feature.plan_path().is_file()) => {
            ground.find_page("plan-template").map(drop)
        }
        WorkflowCommand::Plan => Ok(()),
        WorkflowCommand::Tasks => ground.find_page("tasks-template").map(drop),
        WorkflowCommand::Checklist => ground.find_page("checklist-template").map(drop),
        WorkflowCommand::Clarify
        | WorkflowCommand::Analyze
        | WorkflowCommand::Implement
        | WorkflowCommand::Converge
        | WorkflowCommand::TasksToIssues => Ok(()),
    }
}

/// Lays out what a step begins with; gives its feature.
pub(super) async fn lay_out(
    cx: &TurnCx<'_>,
    talk: &SessionState,
    (ground, asked): (&ProjectContext, &CommandInvocation),
    feature: Option<Feature>,
) -> Result<Option<Feature>, String> {
    let taken_up = find_begun_feature(ground, asked).await?;
    let naming = &asked.naming;
    let is_unnamed = naming.short_name.is_none() && naming.directory.is_none() && taken_up.is_none();
    let short_name = match asked.command == WorkflowCommand::Specify && is_unnamed {
        true => short_name::ask_short_name(cx, &asked.text).await,
        false => naming.short_name.clone(),
    };
    if cx.is_over() {
        return Ok(feature);
    }
    let (on, asked) = (ground.clone(), asked.clone());
    let laid =
        run_blocking(move || write_files(&on, &asked, short_name.as_deref(), (feature, taken_up))).await?;
    for note in &laid.notes {
        send_note(cx, note);
    }
    let keeper = CallUndoRecorder::new(cx, talk.turn, synthetic_call_id(cx, talk));
    record::record_written_files(&keeper, cx.workspace, laid.made).await?;
    Ok(laid.feature)
}

/// Finds the feature that the same words began before, when nothing came of it.
async fn find_begun_feature(
    ground: &ProjectContext,
    asked: &CommandInvocation,
) -> Result<Option<Feature>, String> {
    let is_again = asked.command == WorkflowCommand::Specify && ground.last == Some(WorkflowCommand::Specify);
    if !is_again || asked.naming != FeatureNaming::default() {
        return Ok(None);
    }
    let (on, text) = (ground.clone(), asked.text.clone());
    run_blocking(move || {
        let Some(dir) = &on.bound else { return Ok(None) };
        let (feature, pages) = (Feature::from_dir(dir.clone()), |name: &str| on.find_page(name));
        Ok(is_untouched(&feature, &text, &pages)?.then_some(feature))
    })
    .await
}

/// What was laid out.
struct LayoutResult {
    feature: Option<Feature>,
    made: Vec<LayoutFile>,
    notes: Vec<String>,
}

/// A file that Crow wrote: what was in it before, and what is in it now.
pub(super) struct LayoutFile {
    pub(super) path: PathBuf,
    pub(super) before: Option<String>,
    pub(super) now: String,
}

fn write_files(
    ground: &ProjectContext,
    asked: &CommandInvocation,
    short_name: Option<&str>,
    (feature, taken_up): (Option<Feature>, Option<Feature>),
) -> Result<LayoutResult, SpeckitError> {
    let (project, now) = (&ground.project, clock::local_now());
    let pages = |name: &str| ground.find_page(name);
    let mut laid = LayoutResult { feature, made: Vec::new(), notes: Vec::new() };
    let mut new: Vec<PathBuf> = Vec::new();
    let pointer = project.specify_path("feature.json");
    let pointed = SpeckitProject::read_file(&pointer)?;
    match (asked.command, &laid.feature) {
        (WorkflowCommand::Constitution, _) => new = init_project(project, &pages)?,
        (WorkflowCommand::Specify, _) => {
            if !project.is_initialized() {
                new = init_project(project, &pages)?;
            }
            let feature = match taken_up {
                Some(feature) => {
                    new.extend(resume_feature(project, &feature, &asked.text, &now, &pages)?);
                    laid.notes
                        .push(format!("{} is taken up again: nothing came of it before.", feature.name));
                    feature
                }
                None => {
                    let dir = requested_directory(asked);
                    let wanted = new_feature(ground, asked, (short_name, dir.as_deref()), &now);
                    let CreatedFeature { feature, notes, .. } = create_feature(project, &wanted, &pages)?;
                    laid.notes = notes;
                    new.extend([feature.spec_path(), feature.checklists_dir().join(REQUIREMENTS)]);
                    feature
                }
            };
            if !ground.settings.variables.no_persist {
                write_pointer(project, &feature.dir)?;
            }
            laid.feature = Some(feature);
        }
        (WorkflowCommand::Plan, Some(feature)) if setup_plan(project, feature, &now, &pages)? => {
            new = vec![feature.plan_path()];
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
    for path in new {
        // Folders among them cannot be read.
        if let Ok(Some(now)) = SpeckitProject::read_file(&path) {
            laid.made.push(LayoutFile { path, before: None, now });
        }
    }
    if let Some(now) = SpeckitProject::read_file(&pointer)?.filter(|now| pointed.as_ref() != Some(now)) {
        laid.made.push(LayoutFile { path: pointer, before: pointed, now });
    }
    Ok(laid)
}

fn requested_directory(asked: &CommandInvocation) -> Option<String> {
    asked.naming.directory.as_ref().map(|dir| dir.display().to_string())
}

fn new_feature<'a>(
    ground: &'a ProjectContext,
    asked: &'a CommandInvocation,
    (short_name, dir): (Option<&'a str>, Option<&'a str>),
    now: &'a jiff::Zoned,
) -> NewFeature<'a> {
    let naming = &asked.naming;
    NewFeature {
        description: &asked.text,
        short_name,
        numbering: match (naming.timestamp, naming.number) {
            (true, _) => FeatureNumbering::Timestamp,
            (false, Some(number)) => FeatureNumbering::Prefer(number),
            (false, None) => default_numbering(&ground.project),
        },
        dir,
        specs_root: &ground.settings.specs_root,
        specs_link: ground.settings.specs_link,
        now,
    }
}
