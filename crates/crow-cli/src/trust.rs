//! `crow-cli trust`: lists, shows and changes which repositories the user trusts. Trust covers exactly what was shown.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use crow_core::TrustState;
use crow_project::{RepositoryFileTrust, RepositoryTrust, find_repository_root, forget_trust, list_trust};
use serde_json::{Value, json};

use crate::{
    cli::{TrustArgs, TrustSubcommand},
    failure::{CliError, CliExitCode},
    sessions::ConfirmAnswer,
    settings::Settings,
    table,
};

/// Runs a subcommand; `confirm` asks the user.
pub(crate) fn run(
    args: &TrustArgs,
    settings: &Settings,
    current_dir: &Path,
    confirm: impl Fn(&str) -> io::Result<ConfirmAnswer>,
    out: &mut impl Write,
) -> Result<(), CliError> {
    match &args.command {
        None | Some(TrustSubcommand::List) => list_trusted(&settings.dir, args.json, out),
        Some(TrustSubcommand::Show { directory }) => {
            let scan = load_trust(settings, current_dir, directory.as_deref())?;
            if args.json { show_trust_json(&scan, out) } else { show_trust(&scan, out) }
        }
        Some(TrustSubcommand::Add { directory, yes }) => {
            let scan = load_trust(settings, current_dir, directory.as_deref())?;
            add_trust(&scan, *yes, args.json, &confirm, out)
        }
        Some(TrustSubcommand::Remove { directory }) => {
            let repository = find_repository_root(&target_dir(current_dir, directory.as_deref()));
            let is_forgotten = forget_trust(&settings.dir, &repository).map_err(|error| {
                CliError::new(CliExitCode::Failed, format!("could not remove the decision: {error}"))
            })?;
            let repository_path = repository.display().to_string();
            match (is_forgotten, args.json) {
                (_, true) => {
                    writeln!(
                        out,
                        "{}",
                        table::json_line(&json!({"repository": repository_path, "removed": is_forgotten}))
                    )?;
                }
                (true, false) => {
                    writeln!(out, "removed the decision about {}", table::sanitize_line(&repository_path))?;
                }
                (false, false) => {
                    writeln!(out, "there is no decision about {}", table::sanitize_line(&repository_path))?;
                }
            }
            Ok(())
        }
    }
}

fn target_dir(current_dir: &Path, directory: Option<&Path>) -> PathBuf {
    directory.map_or_else(|| current_dir.to_owned(), |directory| current_dir.join(directory))
}

/// Reads a repository once, and prints warnings on stderr.
fn load_trust(
    settings: &Settings,
    current_dir: &Path,
    directory: Option<&Path>,
) -> Result<RepositoryTrust, CliError> {
    let directory = target_dir(current_dir, directory);
    let directory = crate::require_existing_dir(&directory)?;
    let repositories = Arc::new(settings.repositories.clone());
    let (scan, problems) = RepositoryTrust::scan_repository(&directory, &settings.dir, repositories);
    let mut stderr = io::stderr().lock();
    for problem in problems {
        // A closed stderr is not an error.
        let _ = writeln!(stderr, "warning: {}", table::sanitize_line(&problem));
    }
    Ok(scan)
}

fn list_trusted(dir: &Path, json: bool, out: &mut impl Write) -> Result<(), CliError> {
    let (mut n_listed, mut unreadable) = (0, Vec::new());
    for listed in list_trust(dir) {
        match listed {
            Ok(trusted) if json => {
                let line = json!({
                    "repository": trusted.repository,
                    "trusted": trusted.trusted,
                    "refused": trusted.rejected,
                });
                writeln!(out, "{}", table::json_line(&line))?;
            }
            Ok(trusted) => {
                writeln!(out, "{}", table::sanitize_line(&trusted.repository))?;
                for (label, paths) in [("trusted", &trusted.trusted), ("rejected", &trusted.rejected)] {
                    for path in paths {
                        writeln!(out, "  {label}  {}", table::sanitize_line(path))?;
                    }
                }
            }
            Err(reason) => unreadable.push(reason),
        }
        n_listed += 1;
    }
    if n_listed == 0 && !json {
        writeln!(out, "no repository is trusted yet")?;
    }
    match unreadable.as_slice() {
        [] => Ok(()),
        unreadable => {
            let error = CliError::new(
                CliExitCode::Failed,
                format!("could not read {}", table::sanitize_line(&unreadable.join(", "))),
            );
            Err(error.with_hint("the file is ignored; remove it to be asked again"))
        }
    }
}

fn show_trust(scan: &RepositoryTrust, out: &mut impl Write) -> Result<(), CliError> {
    let files = scan.list_files();
    if files.is_empty() {
        let repository = scan.repository().display().to_string();
        writeln!(out, "{} has no files that need trust", table::sanitize_line(&repository))?;
        return Ok(());
    }
    for RepositoryFileTrust { path, trust, .. } in &files {
        let label = match trust {
            TrustState::Rejected => "rejected",
            TrustState::Trusted | TrustState::Unknown => trust_label(*trust),
        };
        writeln!(out, "{label:<9}{}", table::sanitize_line(path))?;
    }
    if let Some(text) = scan.untrusted_text() {
        write!(out, "\n{text}")?;
    }
    Ok(())
}

fn show_trust_json(scan: &RepositoryTrust, out: &mut impl Write) -> Result<(), CliError> {
    let files = scan
        .list_files()
        .into_iter()
        .map(|file| json!({"path": file.path, "sha256": file.sha256, "trust": trust_label(file.trust)}));
    let files: Vec<Value> = files.collect();
    let repository = scan.repository().display().to_string();
    writeln!(
        out,
        "{}",
        table::json_line(&json!({"repository": repository, "files": files, "text": scan.untrusted_text()}))
    )?;
    Ok(())
}

/// The state as in JSON output.
fn trust_label(trust: TrustState) -> &'static str {
    match trust {
        TrustState::Trusted => "trusted",
        TrustState::Rejected => "refused",
        TrustState::Unknown => "open",
    }
}

/// Shows what is not trusted, asks, and trusts what was shown: the files are read once.
fn add_trust(
    scan: &RepositoryTrust,
    yes: bool,
    json: bool,
    confirm: &impl Fn(&str) -> io::Result<ConfirmAnswer>,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let Some(text) = scan.untrusted_text() else {
        if json {
            return show_trust_json(scan, out);
        }
        if scan.list_files().is_empty() {
            return show_trust(scan, out);
        }
        let repository = scan.repository().display().to_string();
        writeln!(out, "all files of {} are already trusted", table::sanitize_line(&repository))?;
        return Ok(());
    };
    if !json {
        writeln!(out, "{text}")?;
        out.flush()?;
    }
    let answer = if yes { ConfirmAnswer::Yes } else { confirm("Trust all of this until it changes?")? };
    match answer {
        ConfirmAnswer::Yes => {}
        ConfirmAnswer::No => return Err(CliError::new(CliExitCode::Failed, "nothing was trusted")),
        ConfirmAnswer::Unavailable => {
            let error = CliError::new(CliExitCode::Denied, "there is no terminal to ask for confirmation");
            return Err(
                error.with_hint("review it with `crow-cli trust show`, then run `crow-cli trust add --yes`")
            );
        }
    }
    scan.trust_all().map_err(|error| {
        CliError::new(CliExitCode::Failed, format!("could not store the decision: {error}"))
    })?;
    let repository = scan.repository().display().to_string();
    match json {
        true => {
            let files =
                scan.list_files().into_iter().map(|file| json!({"path": file.path, "sha256": file.sha256}));
            let trusted = json!({"repository": repository, "trusted": files.collect::<Vec<_>>()});
            writeln!(out, "{}", table::json_line(&trusted))?;
        }
        false => writeln!(out, "trusted until it changes: {}", table::sanitize_line(&repository))?,
    }
    Ok(())
}
