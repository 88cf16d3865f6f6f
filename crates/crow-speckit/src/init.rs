//! Initializes a project: the constitution, and a directory for local files. Does not mark the project as created by
//! another program, so that such a program can adopt it later.

use std::path::PathBuf;

use crate::{PageTemplate, SpeckitError, SpeckitProject};

/// Loads a page template by its name.
pub type PageLoader<'a> = dyn Fn(&str) -> Result<PageTemplate, SpeckitError> + 'a;

/// Initializes or completes a project and returns the new paths. Existing files are not changed.
pub fn init_project(project: &SpeckitProject, pages: &PageLoader<'_>) -> Result<Vec<PathBuf>, SpeckitError> {
    let constitution = project.constitution_path();
    project.check_inside(&constitution)?;
    let template = match constitution.exists() {
        true => None,
        false => Some(pages("constitution-template")?),
    };
    let mut created = Vec::new();
    let memory = project.specify_path("memory");
    if project.create_dir(&memory)? {
        created.push(memory);
    }
    if let Some(template) = template
        && SpeckitProject::write_new_file(&constitution, &template.text)?
    {
        created.push(constitution);
    }
    created.extend(ensure_crow_dir(project)?);
    Ok(created)
}

/// Creates the directory for local files, which git ignores; returns it if it is new.
pub(crate) fn ensure_crow_dir(project: &SpeckitProject) -> Result<Option<PathBuf>, SpeckitError> {
    let directory = project.specify_path("crow");
    let is_new = project.create_dir(&directory)?;
    SpeckitProject::write_new_file(&directory.join(".gitignore"), "*\n")?;
    Ok(is_new.then_some(directory))
}
