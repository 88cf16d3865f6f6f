//! The settings from the configuration directory and the environment.
//!
//! The only place that reads the environment. Writes nothing and knows no command.

mod edit;
mod environment;
mod error;
mod file;
mod known_keys;
mod load;
mod schema;
#[cfg(test)]
mod tests;
mod web;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crow_core::{
    AgentServer, HookConfig, McpServer, Mode, NetworkAccess, PermissionRules, SandboxMode, TreeLimits,
};
use crow_model::ModelSettings;
use crow_store::DatabaseAddress;
use crow_tools::{Shell, TerminalPreference, WebConfig};
use crow_workflow::WorkflowConfig;

pub(crate) use self::{
    edit::{ConfigEditError, find_value, insert_entry, set_value},
    environment::Environment,
    error::{ConfigError, ConfigWarning, ConfigWarningKind},
    known_keys::nearest_name,
    load::{DATABASE_KEYS, RepositoryReader, default_shell},
    schema::config_schema,
    web::{SEARCH_COMPOSE, SEARCH_VARIABLE},
};

/// The configuration file, in the configuration directory.
pub(crate) const CONFIG_FILE: &str = "config.yaml";
/// The file with the keys, in the configuration directory.
pub(crate) const ENV_FILE: &str = ".env";
/// The directory of MCP logins, in the configuration directory.
pub(crate) const MCP_AUTH_DIR: &str = "mcp-auth";

/// The complete configuration.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The configuration directory.
    pub(crate) dir: PathBuf,
    /// The models, the default first; empty if nothing is configured yet.
    pub(crate) models: Vec<ModelSettings>,
    pub(crate) database: DatabaseAddress,
    /// Requests to the model per turn.
    pub(crate) requests_max: u32,
    /// The largest number of tools in a request.
    pub(crate) tools_max: usize,
    /// Tokens in context beyond which a conversation is compacted.
    pub(crate) compact_tokens_max: u64,
    /// The mode new sessions start in.
    pub(crate) mode: Mode,
    /// Which commands run in the sandbox.
    pub(crate) sandbox: SandboxMode,
    /// Network access of sandboxed commands.
    pub(crate) network: NetworkAccess,
    /// Directories sandboxed commands may write to, besides the session's.
    pub(crate) writable: Vec<PathBuf>,
    /// Caches of tools, which they may write to as well.
    pub(crate) caches: Vec<PathBuf>,
    /// Git repositories inside those caches, which are never writable.
    pub(crate) git_stores: Vec<PathBuf>,
    /// Permanent permission rules.
    pub(crate) rules: PermissionRules,
    /// Variables that hold secrets; child processes do not inherit them.
    pub(crate) secret_variables: Vec<String>,
    /// Directory of prompts that replace the built-in ones.
    pub(crate) prompts_dir: PathBuf,
    /// Directory of skills, besides that of the configuration directory.
    pub(crate) skills_dir: Option<PathBuf>,
    /// Template of the system prompt.
    pub(crate) system_prompt_path: Option<PathBuf>,
    /// Text this run adds to the system prompt of a new session.
    pub(crate) system_prompt_addition: Option<String>,
    /// Settings of the Spec Kit workflow.
    pub(crate) workflow: WorkflowConfig,
    /// The terminals commands run in.
    pub(crate) terminals: TerminalPreference,
    pub(crate) shell: Shell,
    /// The directories in which commands find programs.
    pub(crate) search_path: String,
    /// Whether each session has its own log.
    pub(crate) session_logs: bool,
    /// Whether the interactive terminal has the whole screen.
    pub(crate) fullscreen: bool,
    /// The composer of the interactive terminal has vi keys.
    pub(crate) has_vi_keys: bool,
    /// MCP servers of every session.
    pub(crate) mcp_servers: Vec<McpServer>,
    /// The agents that can be driven, besides Crow itself.
    pub(crate) agent_servers: Vec<AgentServer>,
    /// The command or address of each agent, as written in the file: a variable may hold a key.
    pub(crate) agent_descriptions: BTreeMap<String, String>,
    /// Reasons why agents cannot be reached, by name.
    pub(crate) unreachable_agents: BTreeMap<String, String>,
    /// Limits of a tree of agents.
    pub(crate) tree_limits: TreeLimits,
    /// Depth of this process below the root agent.
    pub(crate) depth: u32,
    /// The user's home directory.
    pub(crate) home: Option<PathBuf>,
    /// Directory of sockets of the user's programs.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Directory of the tasks' git worktrees.
    pub(crate) worktrees_dir: PathBuf,
    /// Directory that older versions used for them.
    pub(crate) legacy_worktrees_dir: PathBuf,
    /// Settings for web access.
    pub(crate) web: WebConfig,
    /// Directory for recordings of model requests and responses, if enabled.
    pub(crate) recordings_dir: Option<PathBuf>,
    /// Hooks, in the file's order.
    pub(crate) hooks: Vec<HookConfig>,
    /// Reads the configuration files of repositories.
    pub(crate) repositories: RepositoryReader,
}

impl Settings {
    /// Loads the configuration directory. An empty directory gives settings without models.
    pub(crate) fn load(dir: &Path, env: &Environment) -> Result<(Self, Vec<ConfigWarning>), ConfigError> {
        load::load_settings(dir, env)
    }

    /// Loads a text as if it were the configuration file.
    pub(crate) fn load_text(
        dir: &Path,
        env: &Environment,
        text: &str,
    ) -> Result<(Self, Vec<ConfigWarning>), ConfigError> {
        load::load_settings_from_text(dir, env, text)
    }

    /// Whether a configured model reads images; also true if no model specifies its modalities. Cheap, since
    /// `initialize` is answered before the configuration is loaded.
    pub(crate) fn reads_images(dir: &Path, env: &Environment) -> bool {
        if !load::mentions_modality(dir) {
            return true;
        }
        let models = load::load_settings(dir, env).map(|(settings, _)| settings.models).unwrap_or_default();
        models.is_empty() || models.iter().any(|model| model.reads_images)
    }

    /// Finds a model by name; without a name, the default.
    pub(crate) fn find_model(&self, name: Option<&str>) -> Result<&ModelSettings, ConfigError> {
        let Some(default) = self.models.first() else {
            return Err(ConfigError::NotConfigured { path: self.dir.join(CONFIG_FILE) });
        };
        let Some(name) = name else { return Ok(default) };
        self.models.iter().find(|model| model.name == name).ok_or_else(|| {
            let names: Vec<String> = self.models.iter().map(|model| model.name.clone()).collect();
            let nearest = known_keys::nearest_name(name, names.iter().map(String::as_str)).map(str::to_owned);
            ConfigError::UnknownModel { name: name.to_owned(), nearest, names }
        })
    }
}

/// Reads the configuration file; a missing one is empty.
pub(crate) fn read_config_text(dir: &Path) -> Result<String, ConfigError> {
    Ok(load::read_optional_file(&dir.join(CONFIG_FILE))?.unwrap_or_default())
}

/// Returns the line in which a configuration gives the database, and its address.
pub(crate) fn find_configured_database(
    dir: &Path,
    text: &str,
    env: &Environment,
) -> Result<Option<(u64, DatabaseAddress)>, ConfigError> {
    load::find_database(dir, text, env)
}

/// Merges the variables of `.env` into the environment, which wins; also returns their names.
pub(crate) fn merge_env_file(
    dir: &Path,
    env: &Environment,
) -> Result<(Environment, Vec<String>), ConfigError> {
    let (mut merged_env, _) = load::read_env_file(&dir.join(ENV_FILE))?;
    let names = merged_env.keys().cloned().collect();
    merged_env.extend(env.iter().map(|(name, value)| (name.clone(), value.clone())));
    Ok((merged_env, names))
}

/// Reads the environment once, at the start. Variables that are not UTF-8 are ignored.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub(crate) fn read_environment() -> Environment {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut variables = variables.collect();
    crow_process::complete_environment(&mut variables);
    variables
}

/// Returns the absolute path of the configuration directory: the requested one, or `.crow` in the home directory.
pub(crate) fn config_dir(requested: Option<PathBuf>, env: &Environment) -> Result<PathBuf, ConfigError> {
    let home = || env.get("HOME").filter(|home| !home.is_empty());
    let dir = requested
        .filter(|dir| !dir.as_os_str().is_empty())
        .or_else(|| home().map(|home| Path::new(home).join(".crow")))
        .ok_or(ConfigError::NoHome)?;
    let dir = std::path::absolute(&dir).map_err(|source| ConfigError::Unreadable { path: dir, source })?;
    if dir.to_str().is_none() || crow_files::resolve_links(&dir).to_str().is_none() {
        return Err(ConfigError::NotUtf8 { path: dir });
    }
    Ok(dir)
}
