//! Page templates: what a new spec, plan or task list begins as. The project's layers come first, in the order of the real
//! tool, then the person's own folder, then ours. What a page says is text to copy, never template source.

mod compose;
mod stack;

use std::path::Path;

use crate::confined;
use crate::registry::{self, Kind};
use crate::{Project, SpeckitError};

pub use compose::Part;
pub(crate) use compose::{compose, split};
pub(crate) use stack::{Found, Reach, Source, Stack, shown};
pub use stack::{Layer, Place};

/// The pages that we bring along.
const BUILT_IN: [(&str, &str); 6] = [
    ("spec-template", include_str!("../prompts/pages/spec-template.md")),
    ("plan-template", include_str!("../prompts/pages/plan-template.md")),
    ("tasks-template", include_str!("../prompts/pages/tasks-template.md")),
    ("constitution-template", include_str!("../prompts/pages/constitution-template.md")),
    ("checklist-template", include_str!("../prompts/pages/checklist-template.md")),
    ("requirements-template", include_str!("../prompts/pages/requirements-template.md")),
];

/// A page template, composed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its name, such as `spec-template`.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// Finds a page template: the project's layers, then `<own>/<name>.md`, then ours.
pub fn page(project: &Project, own: Option<&Path>, name: &str) -> Result<Page, SpeckitError> {
    let found = found(project, own, name, Reach::Base)?;
    if found.is_empty() {
        return Err(SpeckitError::Invalid(format!("there is no page template named {name}")));
    }
    let read = |layer| Ok((layer, Part::markdown(Found::read(layer, project)?)));
    let parts = compose(name, found.iter().map(read).collect::<Result<_, SpeckitError>>()?)?;
    Ok(Page { name: name.to_owned(), text: parts.into_iter().map(|part| part.text).collect() })
}

/// Names every layer of a page template, the strongest first, and whether it has a part in the page.
pub fn layers(project: &Project, own: Option<&Path>, name: &str) -> Result<Vec<Layer>, SpeckitError> {
    Ok(shown(project, &found(project, own, name, Reach::All)?))
}

/// Names the pages that there always are.
pub fn page_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

fn found(
    project: &Project,
    own: Option<&Path>,
    name: &str,
    reach: Reach,
) -> Result<Vec<Found>, SpeckitError> {
    if !confined::is_name(name) {
        let why = "a page template has a name of small letters, digits and hyphens";
        return Err(SpeckitError::Invalid(format!("{why}, not {name:?}")));
    }
    let file = format!("{name}.md");
    let in_templates = format!("templates/{file}");
    let mut stack = Stack::new(project, reach);
    stack.file(Place::Override, project.specify("templates/overrides").join(&file))?;
    stack.presets(Kind::Page, name, &[&in_templates, &file])?;
    if !stack.is_done() {
        for extension in registry::extensions(project)? {
            for place in [&in_templates, &file] {
                let path = extension.folder.join(place);
                if confined::is_file(project, &path)? {
                    stack.file(Place::Extension(extension.id), path)?;
                    break;
                }
            }
        }
    }
    stack.file(Place::Core, project.specify("templates").join(&file))?;
    if let Some(own) = own {
        stack.own(own.join(&file));
    }
    if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
        stack.built_in(text);
    }
    Ok(stack.found())
}

#[cfg(test)]
mod tests;
