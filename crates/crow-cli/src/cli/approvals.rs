//! Arguments of the commands about what the user has approved: `permissions` and `trust`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `permissions`.
#[derive(Debug, Args)]
pub(crate) struct PermissionsArgs {
    /// The subcommand; without one, permissions are listed
    #[command(subcommand)]
    pub(crate) command: Option<PermissionsSubcommand>,
    /// Print JSON
    #[arg(short, long, global = true)]
    pub(crate) json: bool,
}

/// Subcommands of `permissions`; the default project is that of the current directory.
#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsSubcommand {
    /// List permanent permissions by project
    List,
    /// Revoke one permission, by its number in the list
    Remove {
        /// The number of the permission in the list
        number: usize,
        /// Use this directory instead of the current one
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
    /// Revoke all permissions of a project
    Clear {
        /// Use this directory instead of the current one
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

/// Arguments of `trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The subcommand; without one, repositories are listed
    #[command(subcommand)]
    pub(crate) command: Option<TrustSubcommand>,
    /// Print JSON
    #[arg(short, long, global = true)]
    pub(crate) json: bool,
}

/// Subcommands of `trust`; the default is the current directory.
#[derive(Debug, Subcommand)]
pub(crate) enum TrustSubcommand {
    /// List the repositories that are trusted or rejected
    List,
    /// Show a repository's files that need trust, and what they would run
    Show {
        /// Use this directory instead of the current one
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
    /// Show the files, ask for confirmation, and trust them until they change
    Add {
        /// Use this directory instead of the current one
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
        /// Do not ask for confirmation
        #[arg(short, long)]
        yes: bool,
    },
    /// Remove the stored decision about a repository
    Remove {
        /// Use this directory instead of the current one
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}
