//! Records of what the user always allows in a project, in the user's own configuration directory. Blocks.

use std::io;
use std::path::{Path, PathBuf};

use crow_core::GrantSet;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::project_records::ProjectRecords;
use crate::scan::repository_root;

/// Far larger than the record of any realistic number of grants.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The record of one project.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ProjectGrantsRecord {
    project: String,
    allow: Value,
}

/// The permanent grants of one project.
#[derive(Debug, PartialEq, Eq)]
pub struct ProjectPermissions {
    /// The project's directory.
    pub project: PathBuf,
    /// The grants of the project.
    pub grants: GrantSet,
}

/// Returns the project of a directory: the repository around it, or the directory itself.
pub fn project_root(directory: &Path) -> PathBuf {
    repository_root(&crow_files::resolve_links(directory)).to_owned()
}

fn grant_records(config_dir: &Path) -> ProjectRecords<'_> {
    ProjectRecords { config_dir, directory: "permissions", file_bytes_max: FILE_BYTES_MAX }
}

/// Reads the grants of a project. Blocks.
pub fn read_grants(config_dir: &Path, project: &Path) -> Result<GrantSet, String> {
    let records = grant_records(config_dir);
    let describe_error = |reason: &str| format!("{}: {reason}", records.path(project).display());
    let record: Option<ProjectGrantsRecord> =
        records.read(project).map_err(|reason| describe_error(&reason))?;
    let Some(record) = record else { return Ok(GrantSet::default()) };
    if record.project != project.display().to_string() {
        return Err(describe_error("it is about another project"));
    }
    Ok(GrantSet::from_json(&record.allow))
}

/// Changes the record of a project and returns the grants in it. A record that cannot be read is not changed. Blocks.
pub fn change_grants(
    config_dir: &Path,
    project: &Path,
    change: impl FnOnce(&mut GrantSet),
) -> Result<GrantSet, String> {
    // Another process may have changed the record since it was last read.
    let mut stored_grants = read_grants(config_dir, project)?;
    change(&mut stored_grants);
    write_grants(config_dir, project, &stored_grants)
        .map(|()| stored_grants)
        .map_err(|error| error.to_string())
}

fn write_grants(config_dir: &Path, project: &Path, grants: &GrantSet) -> io::Result<()> {
    if grants.is_empty() {
        return grant_records(config_dir).remove(project).map(drop);
    }
    let record = ProjectGrantsRecord { project: project.display().to_string(), allow: grants.to_json() };
    grant_records(config_dir).write(project, &record)
}

/// Lists the permanent grants of all projects, sorted by path; an unreadable record is an error in the list. Blocks.
pub fn list_permissions(config_dir: &Path) -> Vec<Result<ProjectPermissions, String>> {
    let config_dir = crow_files::resolve_links(config_dir);
    let listed = grant_records(&config_dir)
        .list(|record: &ProjectGrantsRecord| &record.project)
        .into_iter()
        .map(|record| {
            let ProjectGrantsRecord { project, allow } = record?;
            Ok(ProjectPermissions { project: project.into(), grants: GrantSet::from_json(&allow) })
        });
    let mut listed: Vec<_> = listed.collect();
    listed.sort_by_key(|listed: &Result<ProjectPermissions, String>| {
        listed.as_ref().map(|listed| listed.project.clone()).map_err(Clone::clone)
    });
    listed
}

/// Replaces the permanent grants of a project. Blocks.
pub fn set_permissions(config_dir: &Path, project: &Path, grants: &GrantSet) -> io::Result<()> {
    write_grants(&crow_files::resolve_links(config_dir), project, grants)
}

#[cfg(test)]
mod tests;
