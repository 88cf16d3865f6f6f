//! `crow-cli trust`: which repositories the person trusts, what one supplies, and a yes to exactly what was shown.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use crow_agent::{RepositoryTrust, SuppliedFile, forget_trust, list_trust, repository_of};
use crow_core::Trust;
use serde_json::{Value, json};

use crate::{
    cli::{TrustArgs, TrustCommand},
    failure::{Code, Exit},
    sessions::Said,
    settings::Settings,
    table,
};

/// Does what is wanted; `ask` asks the person.
pub(crate) fn run(
    args: &TrustArgs,
    settings: &Settings,
    here: &Path,
    ask: impl Fn(&str) -> io::Result<Said>,
    out: &mut impl Write,
) -> Result<(), Exit> {
    match &args.command {
        None | Some(TrustCommand::List) => list(&settings.dir, args.json, out),
        Some(TrustCommand::Show { folder }) => {
            let look = look(settings, here, folder.as_deref())?;
            if args.json { show_json(&look, out) } else { show(&look, out) }
        }
        Some(TrustCommand::Add { folder, yes }) => {
            let look = look(settings, here, folder.as_deref())?;
            add(&look, *yes, args.json, &ask, out)
        }
        Some(TrustCommand::Remove { folder }) => {
            let repository = repository_of(&wanted(here, folder.as_deref()));
            let is_forgotten = forget_trust(&settings.dir, &repository)
                .map_err(|error| Exit::new(Code::Failed, format!("could not remove the trust: {error}")))?;
            let shown = repository.display().to_string();
            match (is_forgotten, args.json) {
                (_, true) => {
                    writeln!(out, "{}", table::json(&json!({"repository": shown, "removed": is_forgotten})))?;
                }
                (true, false) => writeln!(out, "removed the trust in {}", table::plain(&shown))?,
                (false, false) => writeln!(out, "nothing was trusted in {}", table::plain(&shown))?,
            }
            Ok(())
        }
    }
}

fn wanted(here: &Path, folder: Option<&Path>) -> PathBuf {
    folder.map_or_else(|| here.to_owned(), |folder| here.join(folder))
}

/// Reads a repository once, and says on stderr what is odd in it.
fn look(settings: &Settings, here: &Path, folder: Option<&Path>) -> Result<RepositoryTrust, Exit> {
    let folder = wanted(here, folder);
    if !folder.is_dir() {
        return Err(Exit::new(Code::Usage, format!("there is no folder {}", folder.display())));
    }
    let folder = crate::text_folder(crow_tools::resolve(&folder))?;
    let repositories = Arc::new(settings.repositories.clone());
    let (look, problems) = RepositoryTrust::look(&folder, &settings.dir, repositories);
    let mut stderr = io::stderr().lock();
    for problem in problems {
        // When stderr is gone there is nobody left to tell.
        let _ = writeln!(stderr, "warning: {}", table::plain(&problem));
    }
    Ok(look)
}

fn list(dir: &Path, json: bool, out: &mut impl Write) -> Result<(), Exit> {
    let (mut n_listed, mut broken) = (0, Vec::new());
    for listed in list_trust(dir) {
        match listed {
            Ok(trusted) if json => {
                let line = json!({
                    "repository": trusted.repository,
                    "trusted": trusted.trusted,
                    "refused": trusted.refused,
                });
                writeln!(out, "{}", table::json(&line))?;
            }
            Ok(trusted) => {
                writeln!(out, "{}", table::plain(&trusted.repository))?;
                for (what, paths) in [("trusted", &trusted.trusted), ("refused", &trusted.refused)] {
                    for path in paths {
                        writeln!(out, "  {what}  {}", table::plain(path))?;
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
            let exit =
                Exit::new(Code::Failed, format!("could not read {}", table::plain(&broken.join(", "))));
            Err(exit.with_hint("what it says counts as nothing; remove the file to be asked again"))
        }
    }
}

fn show(look: &RepositoryTrust, out: &mut impl Write) -> Result<(), Exit> {
    let files = look.files();
    if files.is_empty() {
        let repository = look.repository().display().to_string();
        writeln!(out, "{} supplies nothing that needs trust", table::plain(&repository))?;
        return Ok(());
    }
    for SuppliedFile { path, trust, .. } in &files {
        writeln!(out, "{:<9}{}", spelled(*trust), table::plain(path))?;
    }
    if let Some(text) = look.text() {
        write!(out, "\n{text}")?;
    }
    Ok(())
}

fn show_json(look: &RepositoryTrust, out: &mut impl Write) -> Result<(), Exit> {
    let files = look
        .files()
        .into_iter()
        .map(|file| json!({"path": file.path, "sha256": file.sha256, "trust": spelled(file.trust)}));
    let files: Vec<Value> = files.collect();
    let repository = look.repository().display().to_string();
    writeln!(
        out,
        "{}",
        table::json(&json!({"repository": repository, "files": files, "text": look.text()}))
    )?;
    Ok(())
}

fn spelled(trust: Trust) -> &'static str {
    match trust {
        Trust::Trusted => "trusted",
        Trust::Refused => "refused",
        Trust::Unknown => "open",
    }
}

/// Shows what is not trusted, asks, and trusts what was shown: the files are read once.
fn add(
    look: &RepositoryTrust,
    yes: bool,
    json: bool,
    ask: &impl Fn(&str) -> io::Result<Said>,
    out: &mut impl Write,
) -> Result<(), Exit> {
    let Some(text) = look.text() else {
        if json {
            return show_json(look, out);
        }
        let repository = look.repository().display().to_string();
        writeln!(out, "{} supplies nothing that is not trusted already", table::plain(&repository))?;
        return Ok(());
    };
    if !json {
        writeln!(out, "{text}")?;
        out.flush()?;
    }
    let said = if yes { Said::Yes } else { ask("Use all of this until it changes?")? };
    match said {
        Said::Yes => {}
        Said::No => return Err(Exit::new(Code::Failed, "nothing was trusted")),
        Said::Nothing => {
            let exit = Exit::new(Code::Denied, "nobody can be asked here");
            return Err(
                exit.with_hint("look at it with `crow-cli trust show`, then use `crow-cli trust add --yes`")
            );
        }
    }
    look.trust().map_err(|error| Exit::new(Code::Failed, format!("could not keep the trust: {error}")))?;
    let repository = look.repository().display().to_string();
    match json {
        true => {
            let files =
                look.files().into_iter().map(|file| json!({"path": file.path, "sha256": file.sha256}));
            let trusted = json!({"repository": repository, "trusted": files.collect::<Vec<_>>()});
            writeln!(out, "{}", table::json(&trusted))?;
        }
        false => writeln!(out, "trusted until it changes: {}", table::plain(&repository))?,
    }
    Ok(())
}
