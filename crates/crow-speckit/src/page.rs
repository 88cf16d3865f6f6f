//! Page templates: what a new spec, plan or task list begins as.

use std::path::Path;

use crate::{Project, SpeckitError};

/// A page template, composed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its name, such as `spec-template`.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// Finds a page template: the project's layers, then the person's own folder, then ours.
pub fn page(_project: &Project, _own: Option<&Path>, name: &str) -> Result<Page, SpeckitError> {
    Err(SpeckitError::Invalid(format!("there is no page template named {name}")))
}
