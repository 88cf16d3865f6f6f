//! The command line, as typed. Makes no decisions.

mod approvals;
mod bridge;
mod config;
mod lazy_args;
mod report;
mod run;
mod speckit;
mod usage;
mod values;
mod worker;

use std::{net::SocketAddr, path::PathBuf};

use clap::{
    Args, Parser, Subcommand, ValueHint,
    builder::{OsStringValueParser, TypedValueParser as _},
};
use clap_complete::ArgValueCandidates;

pub(crate) use self::approvals::{PermissionsArgs, PermissionsSubcommand, TrustArgs, TrustSubcommand};
pub(crate) use self::bridge::{BridgeArgs, BridgeOptions};
pub(crate) use self::config::{ConfigSubcommand, InitArgs};
pub(crate) use self::lazy_args::LazyArgs;
pub(crate) use self::report::ReportArgs;
use self::run::ModeValueParser;
pub(crate) use self::run::{OutputFormat, RunOverrides};
pub(crate) use self::speckit::{NewFeatureArgs, PrereqArgs, SpeckitArgs, SpeckitSubcommand};
pub(crate) use self::usage::UsageArgs;
pub(crate) use self::values::{ExportFormat, ReplaySpan};
pub(crate) use self::worker::{FleetArgs, NatsCredentialArgs, WorkerArgs};
use crate::{completion, sessions::SessionAge, socket::ListenAddress};

/// Tasks that run at once by default: providers limit requests, and a machine its compilers.
const PARALLEL: u16 = 4;

/// Tasks that may be queued at once for workers.
const PARALLEL_MAX: i64 = 10_000;

/// A coding agent that speaks the Agent Client Protocol.
#[derive(Debug, Parser)]
#[command(name = "crow-cli", version, propagate_version = false)]
pub(crate) struct Cli {
    /// Directory for the configuration, keys and sessions [default: ~/.crow]
    #[arg(
        short = 'd',
        long,
        global = true,
        env = "CROW_CONFIG_DIR",
        hide_env_values = true,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        // An empty variable is an unset one.
        value_parser = OsStringValueParser::new().map(PathBuf::from)
    )]
    pub(crate) config_dir: Option<PathBuf>,
    /// Also log to stderr
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) terminal: TerminalArgs,
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

/// Arguments without a subcommand: the interactive terminal.
#[derive(Debug, Args)]
pub(crate) struct TerminalArgs {
    /// Start the interactive terminal with this prompt
    pub(crate) prompt: Option<String>,
    /// Continue the newest session of this directory
    #[arg(long = "continue", conflicts_with_all = ["resume", "append_system_prompt"])]
    pub(crate) continue_newest: bool,
    /// Continue this session, by its ID or the beginning of it; without an ID, choose from a list
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with = "append_system_prompt")]
    pub(crate) resume: Option<String>,
    /// Run `auth` instead; some editors replace the arguments of the agent by this one
    #[arg(long, hide = true, conflicts_with_all = ["prompt", "continue_newest", "resume"])]
    pub(crate) set_up: bool,
    #[command(flatten)]
    pub(crate) options: ConversationOptions,
}

impl TerminalArgs {
    /// Whether any of them was given.
    pub(crate) fn is_used(&self) -> bool {
        let Self { prompt, continue_newest, resume, set_up, options } = self;
        prompt.is_some() || *continue_newest || resume.is_some() || *set_up || options.is_used()
    }
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Serve an editor over stdin and stdout, or clients over WebSocket and HTTP
    Acp(AcpArgs),
    /// Serve a stdio ACP agent over WebSocket and HTTP, one process per client
    AcpBridge(LazyArgs<BridgeArgs>),
    /// Run tasks of a queue at a NATS server
    Worker(LazyArgs<WorkerArgs>),
    /// Show the queues of a NATS server: waiting and running tasks, and workers
    Fleet(LazyArgs<FleetArgs>),
    /// Run a task in the terminal
    Run(LazyArgs<RunArgs>),
    /// Run many tasks from a file, several at once
    Batch(LazyArgs<BatchArgs>),
    /// Watch the agent fix a small project with a scripted model; needs no key and no network
    Demo,
    /// Set up providers and models
    Init(LazyArgs<InitArgs>),
    /// Show and change the configuration file
    Config {
        /// The subcommand
        #[command(subcommand)]
        command: ConfigSubcommand,
    },
    /// Show which keys are set, set up a provider, or log in to an MCP server
    Auth(AuthArgs),
    /// Show sessions and their messages
    Inspect(LazyArgs<InspectArgs>),
    /// List and delete sessions
    Sessions {
        /// The subcommand
        #[command(subcommand)]
        command: SessionsSubcommand,
    },
    /// Show tokens and cost by day, model and directory
    Usage(LazyArgs<UsageArgs>),
    /// Serve Crow's built-in tools to an MCP client over stdin and stdout, or over HTTP
    Mcp(LazyArgs<McpArgs>),
    /// List the configured models, or those the providers offer
    Models(LazyArgs<ModelsArgs>),
    /// List the agents that Crow can drive
    Agents(LazyArgs<AgentsArgs>),
    /// List the built-in tools
    Tools(LazyArgs<ToolsArgs>),
    /// Undo the file changes of a session's last turn
    Undo(LazyArgs<UndoArgs>),
    /// List, show, add and remove trust in repository files
    Trust(LazyArgs<TrustArgs>),
    /// List and revoke permanent permissions, by project
    Permissions(LazyArgs<PermissionsArgs>),
    /// Create and check Spec Kit features, with the output of Spec Kit's scripts
    Speckit(LazyArgs<SpeckitArgs>),
    /// Check the configuration, keys, database, servers, agents, shell and sandbox
    Doctor(LazyArgs<DoctorArgs>),
    /// Print a report for an issue, without keys, prompts or contents of files
    Report(LazyArgs<ReportArgs>),
    /// Print a shell completion script
    Completions(LazyArgs<CompletionsArgs>),
    /// Give back the tasks of a worker that was killed; a worker starts it
    #[command(hide = true, name = crate::worker::WATCHDOG_SUBCOMMAND)]
    WorkerWatchdog,
    /// Write the man pages into a directory; for packages
    #[command(hide = true)]
    ManPages {
        /// The directory, which must exist
        directory: PathBuf,
    },
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to complete for
    pub(crate) shell: clap_complete::Shell,
    /// Also complete sessions, models and agents; the script asks crow-cli for them
    #[arg(long)]
    pub(crate) dynamic: bool,
}

/// Arguments of `acp`.
#[derive(Debug, Args)]
pub(crate) struct AcpArgs {
    /// Run `auth` instead; editors append this to the command that starts the agent
    #[arg(long, hide = true)]
    pub(crate) set_up: bool,
    /// Listen for WebSocket and HTTP clients that have the token; port 0 picks a free port
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "set_up")]
    pub(crate) listen: Option<ListenAddress>,
    /// Read the token from this file, or create the file if it does not exist
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) token_file: Option<PathBuf>,
}

/// Arguments of `auth`.
#[derive(Debug, Args)]
pub(crate) struct AuthArgs {
    /// Log in to this MCP server in a browser
    pub(crate) server: Option<String>,
    /// Delete the login at the server
    #[arg(long, requires = "server")]
    pub(crate) forget: bool,
}

/// Arguments of `run`.
#[derive(Debug, Default, Args)]
pub(crate) struct RunArgs {
    /// The task; `-` reads it from stdin
    #[arg(conflicts_with = "file")]
    pub(crate) prompt: Option<String>,
    /// Keep asking for prompts
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Print plain lines instead of the interactive terminal
    #[arg(long, requires = "interactive")]
    pub(crate) plain: bool,
    /// Continue this session
    #[arg(short, long, value_name = "ID", conflicts_with = "append_system_prompt", add = ArgValueCandidates::new(completion::list_sessions))]
    pub(crate) session: Option<String>,
    /// Continue in a copy of the session and leave the original unchanged
    #[arg(long, requires = "session")]
    pub(crate) fork: bool,
    /// Replay this much of the session first: `all`, `none`, or a number of prompts with their replies [default: 1 on a
    /// terminal]
    #[arg(long, value_name = "all|none|N", requires = "session")]
    pub(crate) replay: Option<ReplaySpan>,
    /// Read the prompt from this file; `-` reads it from stdin
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Print one JSON event per line
    #[arg(short, long)]
    pub(crate) json: bool,
    /// Set the output format; `stream-json` is the same as --json
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    pub(crate) output_format: Option<OutputFormat>,
    #[command(flatten)]
    pub(crate) options: ConversationOptions,
}

/// Arguments of `batch`.
#[derive(Debug, Args)]
pub(crate) struct BatchArgs {
    /// The tasks, one JSON object per line with a `prompt`; `-` reads them from stdin
    pub(crate) tasks: PathBuf,
    /// Append the results to this file; tasks that it has are not run again [default: TASKS.results.jsonl]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Run this many tasks at once
    #[arg(long, value_name = "N", default_value_t = PARALLEL, value_parser = clap::value_parser!(u16).range(1..=PARALLEL_MAX))]
    pub(crate) parallel: u16,
    /// Use at most this many tokens for all tasks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// Run failed tasks again
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// Print one JSON event per line
    #[arg(short, long)]
    pub(crate) json: bool,
    /// Work in this directory instead of the current one, unless a task has a `cwd`
    #[arg(short = 'c', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Use this model, unless a task has another
    #[arg(short, long, value_name = "MODEL", add = ArgValueCandidates::new(completion::list_models))]
    pub(crate) model: Option<String>,
    /// Set the permission mode, unless a task has another
    #[arg(long, value_name = "MODE", value_parser = ModeValueParser)]
    pub(crate) mode: Option<String>,
    /// Drive this agent from `agent_servers` instead of Crow
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(completion::list_agents))]
    pub(crate) agent: Option<String>,
    /// Approve every permission request
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) overrides: RunOverrides,
}

/// Options of a conversation, the same for `run` and without a subcommand.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConversationOptions {
    /// Work in this directory instead of the current one
    #[arg(short = 'c', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Use this configured model, or a model of the agent given with --agent
    #[arg(short, long, value_name = "MODEL", add = ArgValueCandidates::new(completion::list_models))]
    pub(crate) model: Option<String>,
    /// Set the permission mode; an agent given with --agent may have other modes
    #[arg(long, value_name = "MODE", value_parser = ModeValueParser)]
    pub(crate) mode: Option<String>,
    /// Drive this agent from `agent_servers` instead of Crow
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(completion::list_agents))]
    pub(crate) agent: Option<String>,
    /// Approve every permission request
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Give the interactive terminal the whole screen, with scrolling of its own
    #[arg(long)]
    pub(crate) fullscreen: bool,
    /// Send this image with the first prompt; can be repeated
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) overrides: RunOverrides,
}

impl ConversationOptions {
    /// Whether any of them was given.
    fn is_used(&self) -> bool {
        let Self { cwd, model, mode, agent, yes, fullscreen, images, overrides } = self;
        let RunOverrides { allow, max_turns, append_system_prompt } = overrides;
        let has_text = [model, mode, agent, append_system_prompt].into_iter().any(Option::is_some);
        has_text
            || *yes
            || *fullscreen
            || cwd.is_some()
            || max_turns.is_some()
            || !images.is_empty()
            || !allow.is_empty()
    }
}

/// Arguments of `inspect`.
#[derive(Debug, Default, Args)]
pub(crate) struct InspectArgs {
    /// Show this session
    #[arg(short, long, value_name = "ID", add = ArgValueCandidates::new(completion::list_sessions))]
    pub(crate) session: Option<String>,
    /// Show its messages
    #[arg(short, long, requires = "session")]
    pub(crate) messages: bool,
    /// Show at most this many
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Show the messages before this one
    #[arg(long, value_name = "N", requires = "messages")]
    pub(crate) before: Option<u64>,
    /// Show sessions with the sessions they started
    #[arg(long, conflicts_with_all = ["messages", "search"])]
    pub(crate) tree: bool,
    /// Include sessions that were started by other sessions
    #[arg(long, conflicts_with_all = ["session", "tree", "search"])]
    pub(crate) all: bool,
    /// Search the messages of all sessions, or of one
    #[arg(long, value_name = "TEXT", conflicts_with = "messages")]
    pub(crate) search: Option<String>,
    /// Export the whole session in this format
    #[arg(long, value_name = "FORMAT", requires = "session", conflicts_with_all = ["messages", "tree", "search", "limit"])]
    pub(crate) export: Option<ExportFormat>,
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// Subcommands of `sessions`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsSubcommand {
    /// List sessions, newest first
    List {
        /// Show at most this many
        #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        limit: Option<u32>,
        /// Include sessions that were started by other sessions
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Delete old sessions and the sessions they started
    Prune(PruneArgs),
    /// Delete sessions and the sessions they started
    Delete(DeleteArgs),
}

/// Arguments of `sessions prune`.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Delete sessions whose last message is older than this many hours, days or weeks: 6h, 30d, 12w
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: SessionAge,
    /// Show what would be deleted and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) options: DeleteOptions,
}

/// Arguments of `sessions delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The sessions to delete
    #[arg(value_name = "ID", required = true, add = ArgValueCandidates::new(completion::list_sessions))]
    pub(crate) sessions: Vec<String>,
    #[command(flatten)]
    pub(crate) options: DeleteOptions,
}

/// Options of deleting sessions.
#[derive(Debug, Args)]
pub(crate) struct DeleteOptions {
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// Arguments of `undo`.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Undo in this session instead of the newest one of the current directory
    #[arg(short, long, value_name = "ID", add = ArgValueCandidates::new(completion::list_sessions))]
    pub(crate) session: Option<String>,
    /// Show what would be done and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Skip files with conflicts for good and change nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) skip: bool,
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// Arguments of `mcp`.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Serve streamable HTTP on this address to clients that have the token; port 0 picks a free port
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) http: Option<SocketAddr>,
    /// Work in this directory instead of the current one
    #[arg(short = 'c', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Save the readable part of a damaged database to a new one; stop all other Crow processes first
    #[arg(long, conflicts_with = "json")]
    pub(crate) salvage: bool,
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// Arguments of `tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// Print JSON with full descriptions and parameters
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// Arguments of `models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Request the model list of each configured provider
    #[arg(short, long)]
    pub(crate) available: bool,
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// Arguments of `agents`.
#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}
