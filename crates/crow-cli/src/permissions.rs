//! `crow-cli permissions`: what the person answered "always" to, by project, and how it is taken back.

use std::io::Write;
use std::path::Path;

use crow_agent::{ProjectPermissions, list_permissions, repository_of, set_permissions};
use crow_core::{Grant, Grants};
use serde_json::json;

use crate::cli::{PermissionsArgs, PermissionsCommand};
use crate::failure::{Code, Exit};
use crate::table;

/// Does what is wanted.
pub(crate) fn run(args: &PermissionsArgs, dir: &Path, here: &Path, out: &mut impl Write) -> Result<(), Exit> {
    let around = |folder: Option<&Path>| {
        repository_of(&folder.map_or_else(|| here.to_owned(), |folder| here.join(folder)))
    };
    match &args.command {
        None | Some(PermissionsCommand::List) => list(dir, args.json, out),
        Some(PermissionsCommand::Remove { number, folder }) => {
            let project = around(folder.as_deref());
            let allowed = allowed_in(dir, &project)?;
            let found = number.checked_sub(1).and_then(|index| allowed.iter().nth(index)).cloned();
            let Some(grant) = found else {
                let what = format!("{} has no answer number {number}", shown(&project));
                return Err(
                    Exit::new(Code::Usage, what).with_hint("`crow-cli permissions` lists the answers")
                );
            };
            let mut left = allowed;
            left.remove(&grant);
            take_back(dir, &project, (&left, &[grant]), args.json, out)
        }
        Some(PermissionsCommand::Clear { folder }) => {
            let project = around(folder.as_deref());
            let allowed: Vec<Grant> = allowed_in(dir, &project)?.iter().cloned().collect();
            take_back(dir, &project, (&Grants::default(), &allowed), args.json, out)
        }
    }
}

fn list(dir: &Path, json: bool, out: &mut impl Write) -> Result<(), Exit> {
    let (mut n_listed, mut broken) = (0, Vec::new());
    for listed in list_permissions(dir) {
        n_listed += 1;
        match listed {
            Ok(ProjectPermissions { project, grants }) if json => {
                let line = json!({"project": project, "allow": grants.to_json()});
                writeln!(out, "{}", table::json(&line))?;
            }
            Ok(ProjectPermissions { project, grants }) => {
                writeln!(out, "{}", shown(&project))?;
                for (index, grant) in grants.iter().enumerate() {
                    writeln!(out, "  {}. {}", index + 1, table::plain(&grant.description()))?;
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
            let exit =
                Exit::new(Code::Failed, format!("could not read {}", table::plain(&broken.join(", "))));
            Err(exit.with_hint("nothing in it counts; remove the file to begin anew"))
        }
    }
}

fn allowed_in(dir: &Path, project: &Path) -> Result<Grants, Exit> {
    let mut listed = list_permissions(dir).into_iter().filter_map(Result::ok);
    match listed.find(|listed| listed.project == project) {
        Some(listed) => Ok(listed.grants),
        None => {
            let what = format!("nothing is always allowed in {}", shown(project));
            Err(Exit::new(Code::Failed, what).with_hint("`crow-cli permissions` lists the projects"))
        }
    }
}

fn take_back(
    dir: &Path,
    project: &Path,
    (left, removed): (&Grants, &[Grant]),
    json: bool,
    out: &mut impl Write,
) -> Result<(), Exit> {
    set_permissions(dir, project, left)
        .map_err(|error| Exit::new(Code::Failed, format!("could not take the answers back: {error}")))?;
    if json {
        let removed: Vec<_> = removed.iter().map(Grant::to_json).collect();
        writeln!(out, "{}", table::json(&json!({"project": project, "removed": removed})))?;
        return Ok(());
    }
    for grant in removed {
        writeln!(out, "{} asks again in {}", table::plain(&grant.description()), shown(project))?;
    }
    Ok(())
}

fn shown(path: &Path) -> String {
    table::plain(&path.display().to_string())
}

#[cfg(test)]
mod tests;
