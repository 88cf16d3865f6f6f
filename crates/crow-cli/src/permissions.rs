//! `crow-cli permissions`: lists and revokes what the user always allows, by project.

use std::io::Write;
use std::path::Path;

use crow_core::{Grant, GrantSet};
use crow_project::{ProjectPermissions, find_repository_root, list_permissions, set_permissions};
use serde_json::json;

use crate::cli::{PermissionsArgs, PermissionsSubcommand};
use crate::failure::{CliError, CliExitCode};
use crate::table;

pub(crate) fn run(
    args: &PermissionsArgs,
    dir: &Path,
    current_dir: &Path,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let project_root = |directory: Option<&Path>| {
        find_repository_root(
            &directory.map_or_else(|| current_dir.to_owned(), |directory| current_dir.join(directory)),
        )
    };
    match &args.command {
        None | Some(PermissionsSubcommand::List) => list_grants(dir, args.json, out),
        Some(PermissionsSubcommand::Remove { number, directory }) => {
            let project = project_root(directory.as_deref());
            let grants = grants_in(dir, &project)?;
            let found = number.checked_sub(1).and_then(|index| grants.iter().nth(index)).cloned();
            let Some(grant) = found else {
                let message = format!("{} has no permission number {number}", display_path(&project));
                return Err(CliError::new(CliExitCode::Usage, message)
                    .with_hint("`crow-cli permissions` lists the permissions"));
            };
            let mut remaining = grants;
            remaining.remove(&grant);
            let change = GrantChange { remaining, removed: vec![grant] };
            revoke_grants(dir, &project, &change, args.json, out)
        }
        Some(PermissionsSubcommand::Clear { directory }) => {
            let project = project_root(directory.as_deref());
            let grants: Vec<Grant> = grants_in(dir, &project)?.iter().cloned().collect();
            let change = GrantChange { remaining: GrantSet::default(), removed: grants };
            revoke_grants(dir, &project, &change, args.json, out)
        }
    }
}

fn list_grants(dir: &Path, json: bool, out: &mut impl Write) -> Result<(), CliError> {
    let (mut n_listed, mut unreadable) = (0, Vec::new());
    for listed in list_permissions(dir) {
        n_listed += 1;
        match listed {
            Ok(ProjectPermissions { project, grants }) if json => {
                let line = json!({"project": project, "allow": grants.to_json()});
                writeln!(out, "{}", table::json_line(&line))?;
            }
            Ok(ProjectPermissions { project, grants }) => {
                writeln!(out, "{}", display_path(&project))?;
                for (index, grant) in grants.iter().enumerate() {
                    writeln!(out, "  {}. {}", index + 1, table::sanitize_line(&grant.description()))?;
                }
            }
            Err(reason) => unreadable.push(reason),
        }
    }
    if n_listed == 0 && !json {
        writeln!(out, "no permanent permissions yet; permission requests offer them")?;
    }
    match unreadable.as_slice() {
        [] => Ok(()),
        unreadable => {
            let error = CliError::new(
                CliExitCode::Failed,
                format!("could not read {}", table::sanitize_line(&unreadable.join(", "))),
            );
            Err(error.with_hint("the file is ignored; remove it to start over"))
        }
    }
}

fn grants_in(dir: &Path, project: &Path) -> Result<GrantSet, CliError> {
    let mut listed = list_permissions(dir).into_iter().filter_map(Result::ok);
    match listed.find(|listed| listed.project == project) {
        Some(listed) => Ok(listed.grants),
        None => {
            let message = format!("there are no permanent permissions in {}", display_path(project));
            Err(CliError::new(CliExitCode::Failed, message)
                .with_hint("`crow-cli permissions` lists the projects"))
        }
    }
}

/// The grants of a project that stay, and those that are revoked.
struct GrantChange {
    remaining: GrantSet,
    removed: Vec<Grant>,
}

fn revoke_grants(
    dir: &Path,
    project: &Path,
    change: &GrantChange,
    json: bool,
    out: &mut impl Write,
) -> Result<(), CliError> {
    set_permissions(dir, project, &change.remaining).map_err(|error| {
        CliError::new(CliExitCode::Failed, format!("could not revoke the permissions: {error}"))
    })?;
    if json {
        let removed: Vec<_> = change.removed.iter().map(Grant::to_json).collect();
        writeln!(out, "{}", table::json_line(&json!({"project": project, "removed": removed})))?;
        return Ok(());
    }
    for grant in &change.removed {
        writeln!(
            out,
            "{} needs permission again in {}",
            table::sanitize_line(&grant.description()),
            display_path(project)
        )?;
    }
    Ok(())
}

fn display_path(path: &Path) -> String {
    table::sanitize_line(&path.display().to_string())
}

#[cfg(test)]
mod tests;
