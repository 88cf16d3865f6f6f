//! `crow-cli trust`: which repositories the person trusts, what one supplies, and a yes to exactly what was shown.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use crow_agent::{RepositoryFileTrust, RepositoryTrust, find_repository_root, forget_trust, list_trust};
use crow_core::TrustState;
use serde_json::{Value, json};

use crate::{
    cli::{TrustArgs, TrustSubcommand},
    failure::{CliError, CliExitCode},
    sessions::ConfirmAnswer,
    settings::Settings,
    table,
};

/// Does what is wanted; `ask` asks the person.
pub(crate) fn run(
    args: &TrustArgs,
    settings: &Settings,
    here: &Path,
    ask: impl Fn(&str) -> io::Result<ConfirmAnswer>,
    out: &mut impl Write,
) -> Result<(), CliError> {
    match &args.command {
        None | Some(TrustSubcommand::List) => list_trusted(&settings.dir, args.json, out),
        Some(TrustSubcommand::Show { folder }) => {
            let look = load_trust(settings, here, folder.as_deref())?;
            if args.json { show_trust_json(&look, out) } else { show_trust(&look, out) }
        }
        Some(TrustSubcommand::Add { folder, yes }) => {
            let look = load_trust(settings, here, folder.as_deref())?;
            add_trust(&look, *yes, args.json, &ask, out)
        }
        Some(TrustSubcommand::Remove { folder }) => {
            let repository = find_repository_root(&target_folder(here, folder.as_deref()));
            let is_forgotten = forget_trust(&settings.dir, &repository).map_err(|error| {
                CliError::new(CliExitCode::Failed, format!("could not remove the trust: {error}"))
            })?;
            let shown = repository.display().to_string();
            match (is_forgotten, args.json) {
                (_, true) => {
                    writeln!(
                        out,
                        "{}",
                        table::json_line(&json!({"repository": shown, "removed": is_forgotten}))
                    )?;
                }
                (true, false) => writeln!(out, "removed the trust in {}", table::sanitize_line(&shown))?,
                (false, false) => writeln!(out, "nothing was trusted in {}", table::sanitize_line(&shown))?,
            }
            Ok(())
        }
    }
}

fn target_folder(here: &Path, folder: Option<&Path>) -> PathBuf {
    folder.map_or_else(|| here.to_owned(), |folder| here.join(folder))
}

/// Reads a repository once, and says on stderr what is odd in it.
fn load_trust(settings: &Settings, here: &Path, folder: Option<&Path>) -> Result<RepositoryTrust, CliError> {
    let folder = target_folder(here, folder);
    if !folder.is_dir() {
        return Err(CliError::new(CliExitCode::Usage, format!("there is no folder {}", folder.display())));
    }
    let folder = crate::require_utf8_folder(crow_tools::resolve_links(&folder))?;
    let repositories = Arc::new(settings.repositories.clone());
    let (look, problems) = RepositoryTrust::scan_repository(&folder, &settings.dir, repositories);
    let mut stderr = io::stderr().lock();
    for problem in problems {
        // When stderr is gone there is nobody left to tell.
        let _ = writeln!(stderr, "warning: {}", table::sanitize_line(&problem));
    }
    Ok(look)
}

fn list_trusted(dir: &Path, json: bool, out: &mut impl Write) -> Result<(), CliError> {
    let (mut n_listed, mut broken) = (0, Vec::new());
    for listed in list_trust(dir) {
        match listed {
            Ok(trusted) if json => {
                let line = json!({
                    "repository": trusted.repository,
                    "trusted": trusted.trusted,
                    "refused": trusted.refused,
                });
                writeln!(out, "{}", table::json_line(&line))?;
            }
            Ok(trusted) => {
                writeln!(out, "{}", table::sanitize_line(&trusted.repository))?;
                for (what, paths) in [("trusted", &trusted.trusted), ("refused", &trusted.refused)] {
                    for path in paths {
                        writeln!(out, "  {what}  {}", table::sanitize_line(path))?;
                    }
                }
            }
            Err(why) => broken.push(why),
        }
        n_listed += 1;
    }
    if n_listed == 0 && !json {
        writeln!(out, "no repository is trusted yet")?;
    }
    match broken.as_slice() {
        [] => Ok(()),
        broken => {
            let exit = CliError::new(
                CliExitCode::Failed,
                format!("could not read {}", table::sanitize_line(&broken.join(", "))),
            );
            Err(exit.with_hint("what it says counts as nothing; remove the file to be asked again"))
        }
    }
}

fn show_trust(look: &RepositoryTrust, out: &mut impl Write) -> Result<(), CliError> {
    let files = look.list_files();
    if files.is_empty() {
        let repository = look.repository().display().to_string();
        writeln!(out, "{} supplies nothing that needs trust", table::sanitize_line(&repository))?;
        return Ok(());
    }
    for RepositoryFileTrust { path, trust, .. } in &files {
        writeln!(out, "{:<9}{}", trust_label(*trust), table::sanitize_line(path))?;
    }
    if let Some(text) = look.untrusted_text() {
        write!(out, "\n{text}")?;
    }
    Ok(())
}

fn show_trust_json(look: &RepositoryTrust, out: &mut impl Write) -> Result<(), CliError> {
    let files = look
        .list_files()
        .into_iter()
        .map(|file| json!({"path": file.path, "sha256": file.sha256, "trust": trust_label(file.trust)}));
    let files: Vec<Value> = files.collect();
    let repository = look.repository().display().to_string();
    writeln!(
        out,
        "{}",
        table::json_line(&json!({"repository": repository, "files": files, "text": look.untrusted_text()}))
    )?;
    Ok(())
}

fn trust_label(trust: TrustState) -> &'static str {
    match trust {
        TrustState::Trusted => "trusted",
        TrustState::Refused => "refused",
        TrustState::Unknown => "open",
    }
}

/// Shows what is not trusted, asks, and trusts what was shown: the files are read once.
fn add_trust(
    look: &RepositoryTrust,
    yes: bool,
    json: bool,
    ask: &impl Fn(&str) -> io::Result<ConfirmAnswer>,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let Some(text) = look.untrusted_text() else {
        if json {
            return show_trust_json(look, out);
        }
        let repository = look.repository().display().to_string();
        writeln!(out, "{} supplies nothing that is not trusted already", table::sanitize_line(&repository))?;
        return Ok(());
    };
    if !json {
        writeln!(out, "{text}")?;
        out.flush()?;
    }
    let said = if yes { ConfirmAnswer::Yes } else { ask("Use all of this until it changes?")? };
    match said {
        ConfirmAnswer::Yes => {}
        ConfirmAnswer::No => return Err(CliError::new(CliExitCode::Failed, "nothing was trusted")),
        ConfirmAnswer::Nothing => {
            let exit = CliError::new(CliExitCode::Denied, "nobody can be asked here");
            return Err(
                exit.with_hint("look at it with `crow-cli trust show`, then use `crow-cli trust add --yes`")
            );
        }
    }
    look.trust_all()
        .map_err(|error| CliError::new(CliExitCode::Failed, format!("could not keep the trust: {error}")))?;
    let repository = look.repository().display().to_string();
    match json {
        true => {
            let files =
                look.list_files().into_iter().map(|file| json!({"path": file.path, "sha256": file.sha256}));
            let trusted = json!({"repository": repository, "trusted": files.collect::<Vec<_>>()});
            writeln!(out, "{}", table::json_line(&trusted))?;
        }
        false => writeln!(out, "trusted until it changes: {}", table::sanitize_line(&repository))?,
    }
    Ok(())
}
