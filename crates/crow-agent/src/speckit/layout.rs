//! What Crow lays out before a model is asked: folders, pages, the pointer. What was made can be undone.

use std::path::PathBuf;

use crow_speckit::{
    Command, Created, Feature, Invocation, Naming, NewFeature, Numbering, Project, REQUIREMENTS,
    SpeckitError, create, init, setup_plan, take_up, untouched, usual_numbering, would_create, write_pointer,
};

use crate::clock;
use crate::confirm::call;
use crate::keeping::CallKeeper;
use crate::run_turn::{Conversation, TurnCx};
use crate::speckit::ground::Ground;
use crate::speckit::record::{self, off};
use crate::speckit::short_name;
use crate::speckit::work::note_to;

/// Checks that everything can be laid out. Writes nothing.
pub(super) fn check(
    ground: &Ground,
    asked: &Invocation,
    feature: Option<&Feature>,
) -> Result<(), SpeckitError> {
    let now = clock::local();
    match asked.command {
        Command::Constitution => ground.page("constitution-template").map(drop),
        Command::Specify => {
            ground.page("spec-template")?;
            ground.page("requirements-template")?;
            let dir = directory(asked);
            would_create(&ground.project, &new_feature(ground, asked, (None, dir.as_deref()), &now)).map(drop)
        }
        Command::Plan if feature.is_some_and(|feature| !feature.plan().is_file()) => {
            ground.page("plan-template").map(drop)
        }
        Command::Plan => Ok(()),
        Command::Tasks => ground.page("tasks-template").map(drop),
        Command::Checklist => ground.page("checklist-template").map(drop),
        Command::Clarify
        | Command::Analyze
        | Command::Implement
        | Command::Converge
        | Command::TasksToIssues => Ok(()),
    }
}

/// Lays out what a step begins with; gives its feature.
pub(super) async fn lay_out(
    cx: &TurnCx<'_>,
    talk: &Conversation,
    (ground, asked): (&Ground, &Invocation),
    feature: Option<Feature>,
) -> Result<Option<Feature>, String> {
    let taken_up = taken_up(ground, asked).await?;
    let naming = &asked.naming;
    let is_unnamed = naming.short_name.is_none() && naming.directory.is_none() && taken_up.is_none();
    let short_name = match asked.command == Command::Specify && is_unnamed {
        true => short_name::ask(cx, &asked.text).await,
        false => naming.short_name.clone(),
    };
    if cx.is_over() {
        return Ok(feature);
    }
    let (on, asked) = (ground.clone(), asked.clone());
    let laid = off(move || made(&on, &asked, short_name.as_deref(), (feature, taken_up))).await?;
    for note in &laid.notes {
        note_to(cx, note);
    }
    let keeper = CallKeeper::new(cx, talk.turn, call(cx, talk));
    record::made(&keeper, cx.workspace, laid.made).await?;
    Ok(laid.feature)
}

/// Finds the feature that the same words began before, when nothing came of it.
async fn taken_up(ground: &Ground, asked: &Invocation) -> Result<Option<Feature>, String> {
    let is_again = asked.command == Command::Specify && ground.last == Some(Command::Specify);
    if !is_again || asked.naming != Naming::default() {
        return Ok(None);
    }
    let (on, text) = (ground.clone(), asked.text.clone());
    off(move || {
        let Some(dir) = &on.bound else { return Ok(None) };
        let (feature, pages) = (Feature::at(dir.clone()), |name: &str| on.page(name));
        Ok(untouched(&feature, &text, &pages)?.then_some(feature))
    })
    .await
}

/// What was laid out.
struct Laid {
    feature: Option<Feature>,
    made: Vec<Made>,
    notes: Vec<String>,
}

/// A file that Crow wrote: what was in it before, and what is in it now.
pub(super) struct Made {
    pub(super) path: PathBuf,
    pub(super) before: Option<String>,
    pub(super) now: String,
}

fn made(
    ground: &Ground,
    asked: &Invocation,
    short_name: Option<&str>,
    (feature, taken_up): (Option<Feature>, Option<Feature>),
) -> Result<Laid, SpeckitError> {
    let (project, now) = (&ground.project, clock::local());
    let pages = |name: &str| ground.page(name);
    let mut laid = Laid { feature, made: Vec::new(), notes: Vec::new() };
    let mut new: Vec<PathBuf> = Vec::new();
    let pointer = project.specify("feature.json");
    let pointed = Project::read(&pointer)?;
    match (asked.command, &laid.feature) {
        (Command::Constitution, _) => new = init(project, &pages)?,
        (Command::Specify, _) => {
            if !project.is_begun() {
                new = init(project, &pages)?;
            }
            let feature = match taken_up {
                Some(feature) => {
                    new.extend(take_up(project, &feature, &asked.text, &now, &pages)?);
                    laid.notes
                        .push(format!("{} is taken up again: nothing came of it before.", feature.name));
                    feature
                }
                None => {
                    let dir = directory(asked);
                    let wanted = new_feature(ground, asked, (short_name, dir.as_deref()), &now);
                    let Created { feature, notes, .. } = create(project, &wanted, &pages)?;
                    laid.notes = notes;
                    new.extend([feature.spec(), feature.checklists().join(REQUIREMENTS)]);
                    feature
                }
            };
            if !ground.settings.variables.no_persist {
                write_pointer(project, &feature.dir)?;
            }
            laid.feature = Some(feature);
        }
        (Command::Plan, Some(feature)) if setup_plan(project, feature, &now, &pages)? => {
            new = vec![feature.plan()];
        }
        (
            Command::Clarify
            | Command::Plan
            | Command::Checklist
            | Command::Tasks
            | Command::Analyze
            | Command::Implement
            | Command::Converge
            | Command::TasksToIssues,
            _,
        ) => {}
    }
    for path in new {
        // Folders among them cannot be read.
        if let Ok(Some(now)) = Project::read(&path) {
            laid.made.push(Made { path, before: None, now });
        }
    }
    if let Some(now) = Project::read(&pointer)?.filter(|now| pointed.as_ref() != Some(now)) {
        laid.made.push(Made { path: pointer, before: pointed, now });
    }
    Ok(laid)
}

fn directory(asked: &Invocation) -> Option<String> {
    asked.naming.directory.as_ref().map(|dir| dir.display().to_string())
}

fn new_feature<'a>(
    ground: &'a Ground,
    asked: &'a Invocation,
    (short_name, dir): (Option<&'a str>, Option<&'a str>),
    now: &'a jiff::Zoned,
) -> NewFeature<'a> {
    let naming = &asked.naming;
    NewFeature {
        description: &asked.text,
        short_name,
        numbering: match (naming.timestamp, naming.number) {
            (true, _) => Numbering::Timestamp,
            (false, Some(number)) => Numbering::Prefer(number),
            (false, None) => usual_numbering(&ground.project),
        },
        dir,
        specs_root: &ground.settings.specs_root,
        specs_link: ground.settings.specs_link,
        now,
    }
}
