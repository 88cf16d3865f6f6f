//! Begins a project: the ground rules, and a folder for what only this machine needs. Marks nothing as made by another
//! program, so that such a program can adopt the project later.

use std::path::PathBuf;

use crate::{PageTemplate, SpeckitError, SpeckitProject};

/// Finds a page template by its name.
pub type PageLoader<'a> = dyn Fn(&str) -> Result<PageTemplate, SpeckitError> + 'a;

/// Begins a project, or completes one; gives what is new. What is there already stays as it is.
pub fn init_project(project: &SpeckitProject, pages: &PageLoader<'_>) -> Result<Vec<PathBuf>, SpeckitError> {
    let rules = project.constitution_path();
    project.check_inside(&rules)?;
    let page = match rules.exists() {
        true => None,
        false => Some(pages("constitution-template")?),
    };
    let mut made = Vec::new();
    let memory = project.specify_path("memory");
    if project.create_folder(&memory)? {
        made.push(memory);
    }
    if let Some(page) = page
        && SpeckitProject::write_new_file(&rules, &page.text)?
    {
        made.push(rules);
    }
    made.extend(ensure_crow_folder(project)?);
    Ok(made)
}

/// Makes the folder for what only this machine needs, which git never sees; gives it when it is new.
pub(crate) fn ensure_crow_folder(project: &SpeckitProject) -> Result<Option<PathBuf>, SpeckitError> {
    let folder = project.specify_path("crow");
    let is_new = project.create_folder(&folder)?;
    SpeckitProject::write_new_file(&folder.join(".gitignore"), "*\n")?;
    Ok(is_new.then_some(folder))
}
