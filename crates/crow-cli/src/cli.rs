//! The command line, as typed. Makes no decisions.

mod run;
mod speckit;

use std::{ffi::OsStr, net::SocketAddr, path::PathBuf};

use clap::{
    Arg, Args, Parser, Subcommand,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use crow_core::Mode;

pub(crate) use self::run::{OutputFormat, RunOverrides};
pub(crate) use self::speckit::{NewFeatureArgs, PrereqArgs, SpeckitArgs, SpeckitSubcommand};
use crate::{inspect::ExportFormat, run::ReplaySpan, sessions::SessionAge, socket::ListenAddress};

/// A coding agent that speaks the Agent Client Protocol.
#[derive(Debug, Parser)]
#[command(name = "crow-cli", version, propagate_version = false, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Folder with the configuration, the keys and the sessions [default: ~/.crow]
    #[arg(
        short = 'd',
        long,
        global = true,
        env = "CROW_CONFIG_DIR",
        hide_env_values = true,
        value_name = "DIR"
    )]
    pub(crate) config_dir: Option<PathBuf>,
    /// Say more on stderr
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Serve an editor on stdin and stdout, or clients over WebSocket
    Acp(AcpArgs),
    /// Serve any agent that speaks ACP on stdin and stdout over WebSocket, one program for each client
    AcpBridge(BridgeArgs),
    /// Give the agent a task in the terminal
    Run(RunArgs),
    /// See the agent work, without a key and without a network
    Demo,
    /// Set up providers and models
    Init(InitArgs),
    /// Say how authentication stands; set it up when nothing is configured; sign in at an MCP server
    Auth(AuthArgs),
    /// Look at sessions and their messages
    Inspect(InspectArgs),
    /// List and delete sessions
    Sessions {
        /// What to do with them
        #[command(subcommand)]
        command: SessionsSubcommand,
    },
    /// Serve Crow's own tools to any MCP client on stdin and stdout
    Mcp(McpArgs),
    /// List the configured models, or those their providers have
    Models(ModelsArgs),
    /// List the agents that can be driven
    Agents(AgentsArgs),
    /// List the tools that every session has
    Tools(ToolsArgs),
    /// Take back what the last turn of a session did to files
    Undo(UndoArgs),
    /// List, show, give and remove trust in what repositories supply
    Trust(TrustArgs),
    /// List what you always allow in your projects, and take it back
    Permissions(PermissionsArgs),
    /// Number features and check what a step of Spec Kit needs, as its own scripts do
    Speckit(SpeckitArgs),
    /// Check the configuration, keys, database, servers, agents, shell and sandbox, and say what to do
    Doctor(DoctorArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Arguments of `acp`.
#[derive(Debug, Args)]
pub(crate) struct AcpArgs {
    /// Do what `auth` does instead: editors add this to the command they start the agent with
    #[arg(long, hide = true)]
    pub(crate) set_up: bool,
    /// Serve clients over WebSocket here instead, to whoever has the token; port 0 is any
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "set_up")]
    pub(crate) listen: Option<ListenAddress>,
    /// Take the token from this file, or write it there when there is none
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) token_file: Option<PathBuf>,
}

/// Arguments of `acp-bridge`.
#[derive(Debug, Args)]
pub(crate) struct BridgeArgs {
    #[command(flatten)]
    pub(crate) options: BridgeOptions,
    /// The command that starts the agent, with its arguments; the options above may stand among them
    #[arg(value_name = "CMD", required_unless_present = "own", num_args = 1.., allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
    /// The command, or the rest of it; nothing of it is taken for an option of the bridge
    #[arg(value_name = "CMD", last = true)]
    pub(crate) own: Vec<String>,
}

/// Options of the bridge itself.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct BridgeOptions {
    /// Listen on this address or name [default: 127.0.0.1]
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Listen on this port; 0 is any [default: 0]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Start the agent in this folder instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Set a variable for the agent
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Log this much: debug, info, warning or error [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = parse_log_level)]
    pub(crate) log: Option<tracing::Level>,
    /// Write the log, with what agents say on stderr, to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// Take the token from this file, or write it there when there is none
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Ask for no token, on an address that only this machine reaches
    #[arg(long, conflicts_with = "token_file")]
    pub(crate) no_token: bool,
    /// Serve the agent at this path; `*` is any [default: /acp]
    #[arg(long, value_name = "PATH", value_parser = parse_url_path)]
    pub(crate) path: Option<String>,
    /// Let pages of this origin in, such as http://localhost:3000
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !text.contains('\0') => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

fn parse_log_level(text: &str) -> Result<tracing::Level, String> {
    match text.to_ascii_lowercase().as_str() {
        "debug" => Ok(tracing::Level::DEBUG),
        "info" => Ok(tracing::Level::INFO),
        "warning" | "warn" => Ok(tracing::Level::WARN),
        "error" => Ok(tracing::Level::ERROR),
        _ => Err("expected debug, info, warning or error; a file is named with --log-file".to_owned()),
    }
}

fn parse_url_path(text: &str) -> Result<String, String> {
    let is_path = text == "*" || text.starts_with('/') && !text.contains(['?', '#', ' ']);
    is_path.then(|| text.to_owned()).ok_or_else(|| "expected a path such as /acp, or *".to_owned())
}

/// Arguments of `auth`.
#[derive(Debug, Args)]
pub(crate) struct AuthArgs {
    /// Sign in at this MCP server, in a browser
    pub(crate) server: Option<String>,
    /// Forget the sign-in at the server
    #[arg(long, requires = "server")]
    pub(crate) forget: bool,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to do; `-` reads it from stdin
    #[arg(conflicts_with = "file")]
    pub(crate) prompt: Option<String>,
    /// Keep asking for prompts
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Continue this session
    #[arg(short, long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Continue in a copy of the session; the original stays as it is
    #[arg(long, requires = "session")]
    pub(crate) fork: bool,
    /// Show of the session first: all, none, or this many of its last prompts with what followed [default: 1 on a
    /// terminal]
    #[arg(long, value_name = "all|none|N", requires = "session")]
    pub(crate) replay: Option<ReplaySpan>,
    /// Work in this folder instead of the current one
    #[arg(short = 'c', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Read the prompt from this file; `-` is stdin
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Use this configured model, or one of the other agent's
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// How much the agent may do on its own; another agent may have other modes
    #[arg(long, value_name = "MODE", value_parser = ModeValueParser)]
    pub(crate) mode: Option<String>,
    /// Drive this agent of `agent_servers` instead of Crow's own
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Allow everything without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print one JSON event a line
    #[arg(short, long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) overrides: RunOverrides,
}

/// Arguments of `init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Take everything from the environment, ask nothing
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Bring over the folder of the Python version, such as ~/.agents/crow, ask nothing
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
}

/// Arguments of `inspect`.
#[derive(Debug, Default, Args)]
pub(crate) struct InspectArgs {
    /// Look at this session
    #[arg(short, long, value_name = "ID")]
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
    /// Show sessions with those they started below them
    #[arg(long, conflicts_with_all = ["messages", "search"])]
    pub(crate) tree: bool,
    /// List the sessions that others started as well
    #[arg(long, conflicts_with_all = ["session", "tree", "search"])]
    pub(crate) all: bool,
    /// Search the messages of all sessions, or of one
    #[arg(long, value_name = "TEXT", conflicts_with = "messages")]
    pub(crate) search: Option<String>,
    /// Write the whole session
    #[arg(long, value_name = "FORM", requires = "session", conflicts_with_all = ["messages", "tree", "search", "limit"])]
    pub(crate) export: Option<ExportFormat>,
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// Subcommands of `sessions`.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsSubcommand {
    /// List sessions, the newest first
    List {
        /// Show at most this many
        #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        limit: Option<u32>,
        /// Show the sessions that others started as well
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(short, long)]
        json: bool,
    },
    /// Delete sessions in which nobody spoke for some time, with those they started
    Prune(PruneArgs),
    /// Delete sessions, with those they started
    Delete(DeleteArgs),
}

/// Arguments of `sessions prune`.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Those whose last message is older: hours, days or weeks, such as 6h, 30d or 12w
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: SessionAge,
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) options: DeleteOptions,
}

/// Arguments of `sessions delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The sessions
    #[arg(value_name = "ID", required = true)]
    pub(crate) sessions: Vec<String>,
    #[command(flatten)]
    pub(crate) options: DeleteOptions,
}

/// Options of deleting sessions.
#[derive(Debug, Args)]
pub(crate) struct DeleteOptions {
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// Arguments of `mcp`.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Serve streamable HTTP here instead, to whoever has the token; port 0 is any
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) http: Option<SocketAddr>,
    /// Work in this folder instead of the current one
    #[arg(short = 'c', long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Save what can be read of a damaged database into a new one; no other Crow may run meanwhile
    #[arg(long, conflicts_with = "json")]
    pub(crate) salvage: bool,
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// Arguments of `tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// Print JSON, with descriptions and parameters in full
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// Arguments of `models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Ask each configured provider which models it has, and list those instead
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

/// Arguments of `undo`.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// In this session instead of the newest one of the current folder
    #[arg(short, long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Change nothing, show what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Change no file, leave what stands in the way as it is for good
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) skip: bool,
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// Arguments of `permissions`.
#[derive(Debug, Args)]
pub(crate) struct PermissionsArgs {
    /// What to do; without it the answers are listed
    #[command(subcommand)]
    pub(crate) command: Option<PermissionsSubcommand>,
    /// Print JSON
    #[arg(short, long, global = true)]
    pub(crate) json: bool,
}

/// Subcommands of `permissions`; the default project is that of the current directory.
#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsSubcommand {
    /// List what is always allowed, by project
    List,
    /// Take one answer back, by its number in the list
    Remove {
        number: usize,
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
    /// Take all answers of a project back
    Clear {
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

/// Arguments of `trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// What to do; without it the repositories are listed
    #[command(subcommand)]
    pub(crate) command: Option<TrustSubcommand>,
    /// Print JSON
    #[arg(short, long, global = true)]
    pub(crate) json: bool,
}

/// Subcommands of `trust`; the default is the current directory.
#[derive(Debug, Subcommand)]
pub(crate) enum TrustSubcommand {
    /// List the repositories that are trusted or refused
    List,
    /// Show what a repository supplies and what of it would run
    Show {
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
    /// Show it, ask, and trust it until it changes
    Add {
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Forget what was said about a repository
    Remove {
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

/// Lists Crow's modes and accepts any: another agent has its own.
#[derive(Debug, Clone)]
struct ModeValueParser;

impl TypedValueParser for ModeValueParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Mode::ALL.into_iter().map(|mode| PossibleValue::new(mode.as_str()))))
    }
}
