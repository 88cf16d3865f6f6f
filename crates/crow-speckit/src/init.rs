//! Begins a project: the ground rules, and a folder for what only this machine needs. Marks nothing as made by another
//! program, so that such a program can adopt the project later.

use std::path::PathBuf;

use crate::{Page, Project, SpeckitError};

/// Finds a page template by its name.
pub type Pages<'a> = dyn Fn(&str) -> Result<Page, SpeckitError> + 'a;

/// Begins a project, or completes one; gives what is new. What is there already stays as it is.
pub fn init(project: &Project, pages: &Pages<'_>) -> Result<Vec<PathBuf>, SpeckitError> {
    let rules = project.constitution();
    project.guard(&rules)?;
    let page = match rules.exists() {
        true => None,
        false => Some(pages("constitution-template")?),
    };
    let mut made = Vec::new();
    let memory = project.specify("memory");
    if project.make_folder(&memory)? {
        made.push(memory);
    }
    if let Some(page) = page
        && Project::write_new(&rules, &page.text)?
    {
        made.push(rules);
    }
    made.extend(own_folder(project)?);
    Ok(made)
}

/// Makes the folder for what only this machine needs, which git never sees; gives it when it is new.
pub(crate) fn own_folder(project: &Project) -> Result<Option<PathBuf>, SpeckitError> {
    let folder = project.specify("crow");
    let is_new = project.make_folder(&folder)?;
    Project::write_new(&folder.join(".gitignore"), "*\n")?;
    Ok(is_new.then_some(folder))
}
