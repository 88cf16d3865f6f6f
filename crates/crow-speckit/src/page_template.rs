//! Page templates: the initial text of a spec, plan or task list. The project's layers come first, in the order of the
//! real tool, then the user's directory, then the built-in ones. A page is copied as text, never rendered as a
//! template.

mod composition;
mod layer_stack;

use std::path::Path;

use crate::confined_files;
use crate::registry::{self, ProvidedKind};
use crate::{SpeckitError, SpeckitProject};

pub use composition::PromptPart;
pub(crate) use composition::{compose_layers, split_front_matter};
pub use layer_stack::{LayerInfo, LayerOrigin};
pub(crate) use layer_stack::{LayerSource, LayerStack, SearchDepth, TemplateLayer, describe_layers};

/// The built-in pages.
const BUILT_IN: [(&str, &str); 6] = [
    ("spec-template", include_str!("../prompts/pages/spec-template.md")),
    ("plan-template", include_str!("../prompts/pages/plan-template.md")),
    ("tasks-template", include_str!("../prompts/pages/tasks-template.md")),
    ("constitution-template", include_str!("../prompts/pages/constitution-template.md")),
    ("checklist-template", include_str!("../prompts/pages/checklist-template.md")),
    ("requirements-template", include_str!("../prompts/pages/requirements-template.md")),
];

/// A composed page template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageTemplate {
    /// Its name, such as `spec-template`.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Composes a page template from the project's layers, then `<user_dir>/<name>.md`, then the built-in one.
pub fn compose_page(
    project: &SpeckitProject,
    user_dir: Option<&Path>,
    name: &str,
) -> Result<PageTemplate, SpeckitError> {
    let layers = find_page_layers(project, user_dir, name, SearchDepth::FirstReplacement)?;
    if layers.is_empty() {
        return Err(SpeckitError::Invalid(format!("there is no page template named {name}")));
    }
    let read = |layer| Ok((layer, PromptPart::from_markdown(TemplateLayer::read(layer, project)?)));
    let parts = compose_layers(name, layers.iter().map(read).collect::<Result<_, SpeckitError>>()?)?;
    Ok(PageTemplate { name: name.to_owned(), text: parts.into_iter().map(|part| part.text).collect() })
}

/// Lists every layer of a page template, highest precedence first, and whether it is used.
pub fn page_layers(
    project: &SpeckitProject,
    user_dir: Option<&Path>,
    name: &str,
) -> Result<Vec<LayerInfo>, SpeckitError> {
    Ok(describe_layers(project, &find_page_layers(project, user_dir, name, SearchDepth::Full)?))
}

/// Lists the names of the built-in pages.
pub fn page_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

fn find_page_layers(
    project: &SpeckitProject,
    user_dir: Option<&Path>,
    name: &str,
    depth: SearchDepth,
) -> Result<Vec<TemplateLayer>, SpeckitError> {
    if !confined_files::is_name(name) {
        let reason = "a page template has a name of small letters, digits and hyphens";
        return Err(SpeckitError::Invalid(format!("{reason}, not {name:?}")));
    }
    let file = format!("{name}.md");
    let in_templates = format!("templates/{file}");
    let mut stack = LayerStack::new(project, depth);
    stack.add_file(LayerOrigin::Override, project.specify_path("templates/overrides").join(&file))?;
    stack.add_presets(ProvidedKind::Page, name, &[&in_templates, &file])?;
    if !stack.is_done() {
        for extension in registry::list_extensions(project)? {
            for relative_path in [&in_templates, &file] {
                let path = extension.directory.join(relative_path);
                if confined_files::is_specify_file(project, &path)? {
                    stack.add_file(LayerOrigin::Extension(extension.id), path)?;
                    break;
                }
            }
        }
    }
    stack.add_file(LayerOrigin::Core, project.specify_path("templates").join(&file))?;
    if let Some(user_dir) = user_dir {
        stack.add_user_file(user_dir.join(&file));
    }
    if let Some((_, text)) = BUILT_IN.iter().find(|(built_in_name, _)| *built_in_name == name) {
        stack.add_built_in(text);
    }
    Ok(stack.into_layers())
}

#[cfg(test)]
mod tests;
