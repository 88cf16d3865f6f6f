//! What the configuration folder and the environment say, as one value.
//!
//! The only place that reads the environment. Writes nothing and knows no command.

mod error;
mod file;
mod known_keys;
mod load;
#[cfg(test)]
mod tests;
mod web;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crow_agent::WorkflowConfig;
use crow_core::{
    AgentServer, HookConfig, McpServer, Mode, NetworkAccess, PermissionRules, SandboxMode, TreeLimits,
};
use crow_model::ModelSettings;
use crow_store::DatabaseAddress;
use crow_tools::{Shell, TerminalPreference, WebConfig};

pub(crate) use self::{
    error::{ConfigError, ConfigWarning, ConfigWarningKind},
    known_keys::nearest_name,
    load::{DATABASE_KEYS, RepositoryReader, default_shell},
    web::{SEARCH_COMPOSE, SEARCH_VARIABLE},
};

/// The configuration file in the configuration folder.
pub(crate) const CONFIG_FILE: &str = "config.yaml";
/// The file with the keys in the configuration folder.
pub(crate) const ENV_FILE: &str = ".env";
/// The folder with the sign-ins at MCP servers in the configuration folder.
pub(crate) const MCP_AUTH_DIR: &str = "mcp-auth";

/// The environment as it was when the program started.
pub(crate) type Environment = BTreeMap<String, String>;

/// Everything configured.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The configuration folder.
    pub(crate) dir: PathBuf,
    /// The models, the default first; none when nothing is configured yet.
    pub(crate) models: Vec<ModelSettings>,
    /// The database.
    pub(crate) database: DatabaseAddress,
    /// Model calls in one prompt turn.
    pub(crate) requests_max: u32,
    /// Tokens in context beyond which a conversation is compacted.
    pub(crate) compact_tokens_max: u64,
    /// The mode a session starts in.
    pub(crate) mode: Mode,
    /// Which commands run in the sandbox.
    pub(crate) sandbox: SandboxMode,
    /// Whether those may use the network.
    pub(crate) network: NetworkAccess,
    /// Where those may write beside the folders of their session.
    pub(crate) writable: Vec<PathBuf>,
    /// Caches of tools, where they may write too.
    pub(crate) caches: Vec<PathBuf>,
    /// Where in those tools keep repositories: nobody may write there.
    pub(crate) git_stores: Vec<PathBuf>,
    /// What is allowed and forbidden for good.
    pub(crate) rules: PermissionRules,
    /// Variables that hold secrets, which no child process may inherit.
    pub(crate) secret_variables: Vec<String>,
    /// Where prompts that replace the built-in ones are.
    pub(crate) prompts_dir: PathBuf,
    /// Where skills are beside those of the configuration folder.
    pub(crate) skills_dir: Option<PathBuf>,
    /// The template of the system prompt that the file names.
    pub(crate) system_prompt_path: Option<PathBuf>,
    /// What this run adds to the system prompt of a new session.
    pub(crate) system_prompt_addition: Option<String>,
    /// How the Spec Kit workflow goes.
    pub(crate) workflow: WorkflowConfig,
    /// Whose terminals commands run in.
    pub(crate) terminals: TerminalPreference,
    /// What runs commands.
    pub(crate) shell: Shell,
    /// Whether each session has a log of its own.
    pub(crate) session_logs: bool,
    /// The MCP servers of every session.
    pub(crate) mcp_servers: Vec<McpServer>,
    /// The agents that can be driven, beside Crow itself.
    pub(crate) agent_servers: Vec<AgentServer>,
    /// How each of them is reached, by its name, as the file says it: a variable may hold a key.
    pub(crate) agent_descriptions: BTreeMap<String, String>,
    /// Why some of them cannot be reached, by their names.
    pub(crate) unreachable_agents: BTreeMap<String, String>,
    /// How far a tree of agents may grow.
    pub(crate) tree_limits: TreeLimits,
    /// How many levels below a root agent this process was started.
    pub(crate) depth: u32,
    /// The person's home folder.
    pub(crate) home: Option<PathBuf>,
    /// Where the person's programs have their sockets.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Where git worktrees of tasks are made.
    pub(crate) worktrees_dir: PathBuf,
    /// Where older versions made them.
    pub(crate) legacy_worktrees_dir: PathBuf,
    /// How the web is reached.
    pub(crate) web: WebConfig,
    /// Where everything is kept that is asked of models and answered, if anywhere.
    pub(crate) recordings_dir: Option<PathBuf>,
    /// Commands for certain moments of a turn, in the file's order.
    pub(crate) hooks: Vec<HookConfig>,
    /// How the configuration files of repositories are read.
    pub(crate) repositories: RepositoryReader,
}

impl Settings {
    /// Reads the folder. A folder with nothing in it gives settings without models.
    pub(crate) fn load(dir: &Path, env: &Environment) -> Result<(Self, Vec<ConfigWarning>), ConfigError> {
        load::load_settings(dir, env)
    }

    /// Whether a configured model reads images; so it is taken where no model says what it reads. Cheap, for an answer
    /// that comes before the configuration is loaded.
    pub(crate) fn reads_images(dir: &Path, env: &Environment) -> bool {
        if !load::mentions_modality(dir) {
            return true;
        }
        let models = load::load_settings(dir, env).map(|(settings, _)| settings.models).unwrap_or_default();
        models.is_empty() || models.iter().any(|model| model.reads_images)
    }

    /// Finds a model by its name, or the default without one.
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

/// Tells in which line the text of a folder's configuration names the database, and where that is.
pub(crate) fn find_configured_database(
    dir: &Path,
    text: &str,
    env: &Environment,
) -> Result<Option<(u64, DatabaseAddress)>, ConfigError> {
    load::find_database(dir, text, env)
}

/// Adds what the file with the keys says to the environment, which wins; gives the file's names as well.
pub(crate) fn merge_env_file(
    dir: &Path,
    env: &Environment,
) -> Result<(Environment, Vec<String>), ConfigError> {
    let (mut merged_env, _) = load::read_env_file(&dir.join(ENV_FILE))?;
    let names = merged_env.keys().cloned().collect();
    merged_env.extend(env.iter().map(|(name, value)| (name.clone(), value.clone())));
    Ok((merged_env, names))
}

/// Reads the environment, once, at the start. Variables that are not text are nobody's here.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub(crate) fn read_environment() -> Environment {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    variables.collect()
}

/// Tells the configuration folder: the one asked for, or `.crow` in the home folder.
pub(crate) fn config_dir(requested: Option<PathBuf>, env: &Environment) -> Result<PathBuf, ConfigError> {
    let home = || env.get("HOME").filter(|home| !home.is_empty());
    let dir =
        requested.or_else(|| home().map(|home| Path::new(home).join(".crow"))).ok_or(ConfigError::NoHome)?;
    if dir.to_str().is_none() || crow_tools::resolve_links(&dir).to_str().is_none() {
        return Err(ConfigError::NotUtf8 { path: dir });
    }
    Ok(dir)
}
