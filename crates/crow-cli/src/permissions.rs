//! `crow-cli permissions`: what the person answered "always" to, by project, and how it is taken back.

use std::io::Write;
use std::path::Path;

use crow_agent::{ProjectPermissions, find_repository_root, list_permissions, set_permissions};
use crow_core::{Grant, GrantSet};
use serde_json::json;

use crate::cli::{PermissionsArgs, PermissionsSubcommand};
use crate::failure::{CliError, CliExitCode};
use crate::table;

/// Does what is wanted.
pub(crate) fn run(
    args: &PermissionsArgs,
    dir: &Path,
    here: &Path,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let around = |folder: Option<&Path>| {
        find_repository_root(&folder.map_or_else(|| here.to_owned(), |folder| here.join(folder)))
    };
    match &args.command {
        None | Some(PermissionsSubcommand::List) => list_grants(dir, args.json, out),
        Some(PermissionsSubcommand::Remove { number, folder }) => {
            let project = around(folder.as_deref());
            let allowed = grants_in(dir, &project)?;
            let found = number.checked_sub(1).and_then(|index| allowed.iter().nth(index)).cloned();
            let Some(grant) = found else {
                let what = format!("{} has no answer number {number}", display_path(&project));
                return Err(CliError::new(CliExitCode::Usage, what)
                    .with_hint("`crow-cli permissions` lists the answers"));
            };
            let mut left = allowed;
            left.remove(&grant);
            revoke_grants(dir, &project, (&left, &[grant]), args.json, out)
        }
        Some(PermissionsSubcommand::Clear { folder }) => {
            let project = around(folder.as_deref());
            let allowed: Vec<Grant> = grants_in(dir, &project)?.iter().cloned().collect();
            revoke_grants(dir, &project, (&GrantSet::default(), &allowed), args.json, out)
        }
    }
}

fn list_grants(dir: &Path, json: bool, out: &mut impl Write) -> Result<(), CliError> {
    let (mut n_listed, mut broken) = (0, Vec::new());
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
            Err(why) => broken.push(why),
        }
    }
    if n_listed == 0 && !json {
        writeln!(out, "nothing is always allowed yet; a question offers it")?;
    }
    match broken.as_slice() {
        [] => Ok(()),
        broken => {
            let exit = CliError::new(
                CliExitCode::Failed,
                format!("could not read {}", table::sanitize_line(&broken.join(", "))),
            );
            Err(exit.with_hint("nothing in it counts; remove the file to begin anew"))
        }
    }
}

fn grants_in(dir: &Path, project: &Path) -> Result<GrantSet, CliError> {
    let mut listed = list_permissions(dir).into_iter().filter_map(Result::ok);
    match listed.find(|listed| listed.project == project) {
        Some(listed) => Ok(listed.grants),
        None => {
            let what = format!("nothing is always allowed in {}", display_path(project));
            Err(CliError::new(CliExitCode::Failed, what)
                .with_hint("`crow-cli permissions` lists the projects"))
        }
    }
}

fn revoke_grants(
    dir: &Path,
    project: &Path,
    (left, removed): (&GrantSet, &[Grant]),
    json: bool,
    out: &mut impl Write,
) -> Result<(), CliError> {
    set_permissions(dir, project, left).map_err(|error| {
        CliError::new(CliExitCode::Failed, format!("could not take the answers back: {error}"))
    })?;
    if json {
        let removed: Vec<_> = removed.iter().map(Grant::to_json).collect();
        writeln!(out, "{}", table::json_line(&json!({"project": project, "removed": removed})))?;
        return Ok(());
    }
    for grant in removed {
        writeln!(
            out,
            "{} asks again in {}",
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
