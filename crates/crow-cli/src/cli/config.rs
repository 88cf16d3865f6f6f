//! Arguments of the commands that write the configuration. Makes no decisions.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Take everything from the environment and ask no questions
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Import the directory of the Python version, such as ~/.agents/crow, and ask no questions
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
}

/// Subcommands of `config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigSubcommand {
    /// Print a value as written in the file; keys and passwords are hidden
    Get {
        /// The key, such as permissions.mode or models.NAME.context_window
        key: String,
    },
    /// Set a value; comments and all other values stay, and the file before is kept as config.yaml.bak
    Set {
        /// The key, such as permissions.mode or models.NAME.context_window
        key: String,
        /// The value: text, a number, true or false, or a list or map such as [a, b]
        value: String,
    },
    /// Edit a copy of the file in $VISUAL or $EDITOR, which replaces it once it is valid
    Edit,
    /// Print the path of the file
    Path,
    /// Print the JSON Schema of the file, for editors
    Schema,
}
