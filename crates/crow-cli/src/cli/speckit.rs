//! The command line of `crow-cli speckit`, as typed. Makes no decisions.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `speckit`.
#[derive(Debug, Args)]
pub(crate) struct SpeckitArgs {
    /// Work in the project of this folder instead of the current one
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(crate) dir: Option<PathBuf>,
    /// Mean this feature: a number, a name or a folder
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
    /// Print where the files of the feature are, there or not
    Paths,
    /// Check that the feature is planned, and list what was written for it
    Prereq(PrereqArgs),
    /// Begin the plan of the feature
    SetupPlan,
    /// Check that tasks can be made of the plan, and print the page they begin as
    SetupTasks,
    /// List the tasks of the feature
    Tasks,
    /// Make the folder of a new feature, with its number and its first pages
    NewFeature(NewFeatureArgs),
    /// Print a page template, composed of all its layers
    ResolveTemplate {
        /// Which, such as `spec-template`
        name: String,
    },
}

/// Arguments of `speckit prereq`.
#[derive(Debug, Args)]
pub(crate) struct PrereqArgs {
    /// The spec must be there
    #[arg(long)]
    pub(crate) require_spec: bool,
    /// The task list must be there
    #[arg(long)]
    pub(crate) require_tasks: bool,
    /// List the task list as well
    #[arg(long)]
    pub(crate) include_tasks: bool,
    /// Print this page template as well
    #[arg(long, value_name = "NAME")]
    pub(crate) template: Option<String>,
}

/// Arguments of `speckit new-feature`.
#[derive(Debug, Args)]
pub(crate) struct NewFeatureArgs {
    /// What to build and why
    #[arg(value_name = "DESCRIPTION", required = true)]
    pub(crate) description: Vec<String>,
    /// Print its name, write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Call it this, two to four words
    #[arg(long, value_name = "NAME")]
    pub(crate) short_name: Option<String>,
    /// Take this number when it is free
    #[arg(long, value_name = "N")]
    pub(crate) number: Option<String>,
    /// Take the local time instead of a number
    #[arg(long)]
    pub(crate) timestamp: bool,
    /// Take the feature of that number and name when it is there; what it has stays
    #[arg(long)]
    pub(crate) allow_existing_branch: bool,
}
