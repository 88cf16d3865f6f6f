//! The command line of `crow-cli speckit`, as typed. Makes no decisions.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `speckit`.
#[derive(Debug, Args)]
pub(crate) struct SpeckitArgs {
    /// Work in the project of this directory instead of the current one
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) dir: Option<PathBuf>,
    /// Use this feature: a number, name or directory
    #[arg(long, value_name = "FEATURE", global = true)]
    pub(crate) feature: Option<String>,
    /// Print JSON
    #[arg(short, long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: SpeckitSubcommand,
}

/// Subcommands of `speckit`.
#[derive(Debug, Subcommand)]
pub(crate) enum SpeckitSubcommand {
    /// Print the paths of the feature's files, whether they exist or not
    Paths,
    /// Check that the feature has a plan, and list its documents
    Prereq(PrereqArgs),
    /// Create the feature's plan from its template
    SetupPlan,
    /// Check that the feature is ready for tasks, and print the tasks template
    SetupTasks,
    /// List the feature's tasks
    Tasks,
    /// Create the directory and spec of a new feature
    NewFeature(NewFeatureArgs),
    /// Print a template, composed of all its layers
    ResolveTemplate {
        /// The template's name, such as `spec-template`
        name: String,
    },
}

/// Arguments of `speckit prereq`.
#[derive(Debug, Args)]
pub(crate) struct PrereqArgs {
    /// Require the spec
    #[arg(long)]
    pub(crate) require_spec: bool,
    /// Require the task list
    #[arg(long)]
    pub(crate) require_tasks: bool,
    /// Include the task list in the documents
    #[arg(long)]
    pub(crate) include_tasks: bool,
    /// Also print this template
    #[arg(long, value_name = "NAME")]
    pub(crate) template: Option<String>,
}

/// Arguments of `speckit new-feature`.
#[derive(Debug, Args)]
pub(crate) struct NewFeatureArgs {
    /// Description of the feature and its purpose
    #[arg(value_name = "DESCRIPTION", required = true)]
    pub(crate) description: Vec<String>,
    /// Print the feature's name and paths and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Use this short name, of two to four words
    #[arg(long, value_name = "NAME")]
    pub(crate) short_name: Option<String>,
    /// Use this number if it is free
    #[arg(long, value_name = "N")]
    pub(crate) number: Option<String>,
    /// Use a timestamp instead of a number
    #[arg(long)]
    pub(crate) timestamp: bool,
    /// Use the existing feature with that number and name, and keep its files
    #[arg(long)]
    pub(crate) allow_existing_branch: bool,
}
