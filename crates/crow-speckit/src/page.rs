//! Page templates: what a new spec, plan or task list begins as. The project's layers come first, in the order of the real
//! tool, then the person's own folder, then ours. What a page says is text to copy, never template source.

mod compose;
mod stack;

use std::path::Path;

use crate::confined;
use crate::registry::{self, ProvidedKind};
use crate::{SpeckitError, SpeckitProject};

pub use compose::PromptPart;
pub(crate) use compose::{compose_layers, split_front_matter};
pub use stack::{LayerInfo, LayerOrigin};
pub(crate) use stack::{LayerSource, LayerStack, SearchDepth, TemplateLayer, describe_layers};

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
pub struct PageTemplate {
    /// Its name, such as `spec-template`.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// Finds a page template: the project's layers, then `<own>/<name>.md`, then ours.
pub fn compose_page(
    project: &SpeckitProject,
    own: Option<&Path>,
    name: &str,
) -> Result<PageTemplate, SpeckitError> {
    let found = find_page_layers(project, own, name, SearchDepth::Base)?;
    if found.is_empty() {
        return Err(SpeckitError::Invalid(format!("there is no page template named {name}")));
    }
    let read = |layer| Ok((layer, PromptPart::from_markdown(TemplateLayer::read(layer, project)?)));
    let parts = compose_layers(name, found.iter().map(read).collect::<Result<_, SpeckitError>>()?)?;
    Ok(PageTemplate { name: name.to_owned(), text: parts.into_iter().map(|part| part.text).collect() })
}

/// Names every layer of a page template, the strongest first, and whether it has a part in the page.
pub fn page_layers(
    project: &SpeckitProject,
    own: Option<&Path>,
    name: &str,
) -> Result<Vec<LayerInfo>, SpeckitError> {
    Ok(describe_layers(project, &find_page_layers(project, own, name, SearchDepth::All)?))
}

/// Names the pages that there always are.
pub fn page_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

fn find_page_layers(
    project: &SpeckitProject,
    own: Option<&Path>,
    name: &str,
    reach: SearchDepth,
) -> Result<Vec<TemplateLayer>, SpeckitError> {
    if !confined::is_name(name) {
        let why = "a page template has a name of small letters, digits and hyphens";
        return Err(SpeckitError::Invalid(format!("{why}, not {name:?}")));
    }
    let file = format!("{name}.md");
    let in_templates = format!("templates/{file}");
    let mut stack = LayerStack::new(project, reach);
    stack.add_file(LayerOrigin::Override, project.specify_path("templates/overrides").join(&file))?;
    stack.add_presets(ProvidedKind::Page, name, &[&in_templates, &file])?;
    if !stack.is_done() {
        for extension in registry::list_extensions(project)? {
            for place in [&in_templates, &file] {
                let path = extension.folder.join(place);
                if confined::is_specify_file(project, &path)? {
                    stack.add_file(LayerOrigin::Extension(extension.id), path)?;
                    break;
                }
            }
        }
    }
    stack.add_file(LayerOrigin::Core, project.specify_path("templates").join(&file))?;
    if let Some(own) = own {
        stack.add_user_file(own.join(&file));
    }
    if let Some((_, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
        stack.add_built_in(text);
    }
    Ok(stack.into_layers())
}

#[cfg(test)]
mod tests;
