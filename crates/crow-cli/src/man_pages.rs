//! The man pages of all commands, for packages.

use std::fs;
use std::path::Path;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::failure::{CliError, CliExitCode};

/// Writes `crow-cli.1` and a page for each command.
pub(crate) fn write_man_pages(directory: &Path) -> Result<(), CliError> {
    let mut command = Cli::command();
    command.build();
    write_pages(&command, "crow-cli", directory)
}

/// Writes the page of a command and those of its subcommands.
fn write_pages(command: &clap::Command, name: &str, directory: &Path) -> Result<(), CliError> {
    let path = directory.join(format!("{name}.1"));
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).title(name).render(&mut page)?;
    fs::write(&path, page).map_err(|error| {
        CliError::new(CliExitCode::Failed, format!("could not write {}: {error}", path.display()))
    })?;
    let subcommands = command.get_subcommands();
    for subcommand in
        subcommands.filter(|subcommand| !subcommand.is_hide_set() && subcommand.get_name() != "help")
    {
        write_pages(subcommand, &format!("{name}-{}", subcommand.get_name()), directory)?;
    }
    Ok(())
}
