//! Loads the two files into [`Settings`] and reports warnings and errors.

mod agents;
mod directories;
mod farm;
mod hooks;
mod legacy;
mod loader;
mod models;
mod permissions;
mod repository;
mod sections;
mod servers;
mod shell;
mod speckit;

use std::{collections::BTreeSet, fs, io, path::Path};

use crow_core::is_secret_value;
use crow_store::{DatabaseAddress, PostgresAddress};
use crow_tools::TerminalPreference;

use super::{
    CONFIG_FILE, ConfigError, ConfigWarning, ConfigWarningKind, ENV_FILE, Environment, Settings,
    file::{self, ConfigField, ConfigNode, ConfigValue},
    known_keys, web,
};
use loader::{ConfigLoader, NAMED_MAPS, map_fields};
pub(crate) use repository::RepositoryReader;
use sections::ConfigSections;
pub(crate) use shell::default_shell;

/// Reads the configuration; a missing file is an empty one.
fn read_config(path: &Path) -> Result<ConfigNode, ConfigError> {
    match read_optional_file(path)? {
        Some(text) => file::parse_config(path, &text),
        None => Ok(ConfigNode { line: 1, span: 0..0, value: ConfigValue::Null }),
    }
}

/// Enough for long work, few enough to stop a model that loops.
const REQUESTS_MAX: u32 = 200;
/// Fits models with a window of 200,000 tokens and leaves room for a reply; smaller windows lower it automatically.
const COMPACT_TOKENS_MAX: u64 = 180_000;
const DB_FILE: &str = "crow.db";
/// Gives the database if the configuration does not.
const DATABASE_VARIABLE: &str = "DATABASE_PATH";
const PROMPTS_DIR: &str = "prompts";
/// Keys of the database; the second is from earlier versions.
pub(crate) const DATABASE_KEYS: [&str; 2] = ["db_uri", "memory_path"];
pub(super) fn load_settings(
    dir: &Path,
    env: &Environment,
) -> Result<(Settings, Vec<ConfigWarning>), ConfigError> {
    load_from(dir, env, None)
}

/// Loads a text as if it were the configuration file.
pub(super) fn load_settings_from_text(
    dir: &Path,
    env: &Environment,
    text: &str,
) -> Result<(Settings, Vec<ConfigWarning>), ConfigError> {
    load_from(dir, env, Some(text))
}

fn load_from(
    dir: &Path,
    env: &Environment,
    text: Option<&str>,
) -> Result<(Settings, Vec<ConfigWarning>), ConfigError> {
    let (from_file, warnings) = read_env_file(&dir.join(ENV_FILE))?;
    let mut secrets: BTreeSet<String> = from_file.keys().cloned().collect();
    let merged_env: Environment = from_file.into_iter().chain(env.clone()).collect();

    let path = dir.join(CONFIG_FILE);
    let root = text.map_or_else(|| read_config(&path), |text| file::parse_config(&path, text))?;
    let mut loader = ConfigLoader { path, merged_env: &merged_env, warnings };
    let mut sections = loader.read_sections(&root)?;
    secrets.extend(sections.secret_variables().cloned());
    let database = loader.database_address(dir, &sections)?;
    if let DatabaseAddress::Server { .. } = database {
        secrets.extend(sections.database_variables.iter().cloned());
    }
    secrets.extend(
        env.iter().filter(|(name, value)| is_secret_value(name, value)).map(|(name, _)| name.clone()),
    );
    let workflow =
        speckit::add_environment(std::mem::take(&mut sections.workflow), env, |name| secrets.contains(name));
    let settings = Settings {
        dir: dir.to_owned(),
        models: loader.read_models(&sections)?,
        database,
        requests_max: sections.requests_max.unwrap_or(REQUESTS_MAX),
        tools_max: sections.tools_max.unwrap_or(crow_tools::ToolOffer::TOOLS_MAX),
        compact_tokens_max: sections.compact_tokens_max.unwrap_or(COMPACT_TOKENS_MAX),
        mode: sections.permissions.mode.unwrap_or_default(),
        sandbox: sections.permissions.sandbox.unwrap_or_default(),
        network: sections.permissions.network,
        writable: directories::temporary_dirs(env),
        caches: directories::cache_dirs(env),
        git_stores: directories::git_store_dirs(env),
        depth: directories::agent_depth(env),
        home: directories::env_dir(env, "HOME"),
        runtime_dir: directories::env_dir(env, "XDG_RUNTIME_DIR"),
        worktrees_dir: directories::worktrees_dir(env, dir),
        legacy_worktrees_dir: directories::legacy_worktrees_dir(env, dir),
        recordings_dir: directories::recordings_dir(env),
        rules: std::mem::take(&mut sections.permissions.rules),
        secret_variables: secrets.iter().cloned().collect(),
        prompts_dir: dir.join(PROMPTS_DIR),
        workflow,
        terminals: choose_terminals(sections.use_acp_terminal, sections.fallback_to_mcp_terminal),
        shell: sections.shell.unwrap_or_else(|| default_shell(env)),
        search_path: env.get("PATH").cloned().unwrap_or_default(),
        session_logs: sections.session_logs.unwrap_or_default(),
        fullscreen: sections.fullscreen.unwrap_or_default(),
        has_vi_keys: sections.vi_keys.unwrap_or_default(),
        mcp_servers: sections.servers.servers,
        agent_servers: sections.agents.servers,
        agent_descriptions: sections.agents.descriptions,
        unreachable_agents: sections.agents.unreachable,
        tree_limits: sections.tree_limits,
        system_prompt_addition: None,
        system_prompt_path: sections.system_prompt_path.map(|path| loader.expand_path(dir, &path)),
        skills_dir: sections.skills_dir.map(|path| loader.expand_path(dir, &path)),
        web: web::web_access(dir, &merged_env, env),
        hooks: sections.hooks,
        repositories: RepositoryReader::new(merged_env.clone(), secrets),
    };
    Ok((settings, loader.warnings))
}

/// Both are on by default, as in the Python version.
fn choose_terminals(use_client_terminal: Option<bool>, use_own_terminal: Option<bool>) -> TerminalPreference {
    match (use_client_terminal, use_own_terminal) {
        (Some(false), Some(false)) => TerminalPreference::Never,
        (Some(false), _) => TerminalPreference::Local,
        (_, Some(false)) => TerminalPreference::ClientOnly,
        (_, _) => TerminalPreference::ClientFirst,
    }
}

/// Reads a file that may not exist.
pub(super) fn read_optional_file(path: &Path) -> Result<Option<String>, ConfigError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::Unreadable { path: path.to_owned(), source }),
    }
}

/// Whether a configuration may specify the modalities of its models.
pub(super) fn mentions_modality(dir: &Path) -> bool {
    let path = dir.join(CONFIG_FILE);
    // Reading a pipe here could block.
    path.is_file() && read_optional_file(&path).ok().flatten().is_some_and(|text| text.contains("modalit"))
}

/// Returns the line in which a configuration gives its database, and the address, ignoring all other keys.
pub(super) fn find_database(
    dir: &Path,
    text: &str,
    env: &Environment,
) -> Result<Option<(u64, DatabaseAddress)>, ConfigError> {
    let path = dir.join(CONFIG_FILE);
    let root = file::parse_config(&path, text)?;
    let (mut merged_env, warnings) = read_env_file(&dir.join(ENV_FILE))?;
    merged_env.extend(env.iter().map(|(name, value)| (name.clone(), value.clone())));
    let mut loader = ConfigLoader { path, merged_env: &merged_env, warnings };
    let mut sections = ConfigSections::default();
    let is_database = |field: &&ConfigField| DATABASE_KEYS.contains(&field.key.as_str());
    for field in map_fields(&root).unwrap_or_default().iter().filter(is_database) {
        sections.db_uri = loader.read_text(&field.key, &field.node)?.map(|uri| (field.line, uri));
    }
    let Some((line, _)) = &sections.db_uri else { return Ok(None) };
    Ok(Some((*line, loader.database_address(dir, &sections)?)))
}

/// Reads the file with the keys. Invalid lines are skipped with a warning.
pub(super) fn read_env_file(path: &Path) -> Result<(Environment, Vec<ConfigWarning>), ConfigError> {
    let text = read_optional_file(path)?.unwrap_or_default();
    let (mut pairs, mut warnings) = (Environment::new(), Vec::new());
    for pair in dotenvy::from_read_iter(text.as_bytes()) {
        match pair {
            Ok((name, value)) => drop(pairs.insert(name, value)),
            Err(error) => {
                let advice = "expected NAME=value; quote a value that contains spaces or #".to_owned();
                let line = error_line(&text, &error);
                let (path, text) = (path.to_owned(), advice);
                warnings.push(ConfigWarning { path, line, text, kind: ConfigWarningKind::Suspicious });
            }
        }
    }
    Ok((pairs, warnings))
}

/// Finds the line of an error. The line is not shown: it may contain a key.
fn error_line(text: &str, error: &dotenvy::Error) -> u64 {
    let dotenvy::Error::LineParse(source, _) = error else { return 1 };
    let first = source.lines().next().filter(|first| !first.is_empty());
    let index = first.and_then(|first| text.lines().position(|line| line.contains(first)));
    index.map_or(1, |index| index as u64 + 1)
}

impl ConfigLoader<'_> {
    fn read_sections<'n>(&mut self, root: &'n ConfigNode) -> Result<ConfigSections<'n>, ConfigError> {
        let mut sections = ConfigSections::default();
        for field in map_fields(root).ok_or_else(|| self.expected_error("the file", root, "a map of keys"))? {
            let key = field.key.as_str();
            match key {
                "providers" => {
                    for field in self.read_map(key, &field.node, NAMED_MAPS)? {
                        sections.providers.insert(field.key.clone(), self.read_provider(field)?);
                    }
                }
                "models" => sections.models.extend(self.read_map(key, &field.node, NAMED_MAPS)?),
                "mcpServers" => sections.servers = self.read_mcp_servers(field)?,
                "agent_servers" => sections.agents = self.read_agent_servers(field)?,
                "agents" => sections.tree_limits = self.read_tree_limits(field)?,
                "db_uri" | "memory_path" => {
                    sections.db_uri = self.read_text(key, &field.node)?.map(|uri| (field.line, uri));
                    if let Some(scalar) = self.read_scalar(key, &field.node)? {
                        sections.database_variables =
                            scalar.variables().into_iter().map(str::to_owned).collect();
                    }
                }
                "MAX_TOKENS" | "max_tokens" => sections.max_tokens = self.read_count(key, &field.node)?,
                "MAX_RETRIES_PER_STEP" | "max_retries_per_step" => {
                    sections.retries_max = self.read_count(key, &field.node)?;
                }
                "MAX_TURN_REQUESTS" | "max_turn_requests" | "max_steps_per_turn" => {
                    sections.requests_max = self.read_positive(key, &field.node)?;
                }
                "max_tools" => sections.tools_max = self.read_positive(key, &field.node)?,
                "MAX_COMPACT_TOKENS" | "max_compact_tokens" => {
                    sections.compact_tokens_max = self.read_positive(key, &field.node)?;
                }
                "vi_keys" => sections.vi_keys = self.read_flag(key, &field.node)?,
                "session_logs" => sections.session_logs = self.read_flag(key, &field.node)?,
                "fullscreen" => sections.fullscreen = self.read_flag(key, &field.node)?,
                "use_acp_terminal" => sections.use_acp_terminal = self.read_flag(key, &field.node)?,
                "fallback_to_mcp_terminal" => {
                    sections.fallback_to_mcp_terminal = self.read_flag(key, &field.node)?;
                }
                "shell" => sections.shell = self.read_shell(field)?,
                "system_prompt_path" => sections.system_prompt_path = self.read_text(key, &field.node)?,
                "skills_dir" => sections.skills_dir = self.read_text(key, &field.node)?,
                "TEMPERATURE" => {
                    sections.legacy.temperature = self.read_number(key, &field.node, "a number")?;
                }
                "reasoning_effort" => sections.legacy.reasoning_effort = self.read_text(key, &field.node)?,
                "parallel_tool_calls" => {
                    sections.legacy.parallel_tool_calls = self.read_flag(key, &field.node)?;
                }
                "hooks" => sections.hooks = self.read_hooks(field)?,
                "sandbox" => {
                    let problem = "sandbox: this key belongs to permissions; use permissions.sandbox";
                    return Err(self.error_at(field.line, problem.to_owned()));
                }
                "permissions" => sections.permissions = self.read_permissions(field)?,
                "speckit" => sections.workflow = self.read_speckit(field)?,
                _ => self.check_known("", field, known_keys::TOP),
            }
        }
        Ok(sections)
    }

    fn database_address(
        &self,
        dir: &Path,
        sections: &ConfigSections<'_>,
    ) -> Result<DatabaseAddress, ConfigError> {
        let Some((line, uri)) = &sections.db_uri else {
            let path = self.merged_env.get(DATABASE_VARIABLE).filter(|path| !path.is_empty());
            return Ok(DatabaseAddress::File(self.expand_path(dir, path.map_or(DB_FILE, String::as_str))));
        };
        if is_plain_path(uri) {
            return Ok(DatabaseAddress::File(self.expand_path(dir, uri)));
        }
        let expected = || {
            self.error_at(*line, "db_uri: expected sqlite:///PATH or postgres://USER@HOST/NAME".to_owned())
        };
        let scheme = uri.split(':').next().unwrap_or_default();
        // In SQLAlchemy's format a driver name may follow the `+`.
        match scheme.split('+').next().unwrap_or_default() {
            "sqlite" => {}
            "postgres" | "postgresql" => {
                let server = PostgresAddress::parse(uri);
                return server
                    .map(|server| DatabaseAddress::Server { server, local_dir: dir.to_owned() })
                    .map_err(|reason| self.error_at(*line, format!("db_uri: {reason}")));
            }
            _ => return Err(expected()),
        }
        let path = uri.split_once(":///").map(|(_, path)| path).filter(|path| !path.is_empty());
        let path = path.ok_or_else(expected)?;
        Ok(DatabaseAddress::File(self.expand_path(dir, path)))
    }
}

/// Whether a database is given as a path rather than a URI.
fn is_plain_path(uri: &str) -> bool {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.is_empty() || scheme.contains(['/', '.', '~'])
}
