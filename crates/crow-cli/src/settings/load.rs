//! Turns the two files into [`Settings`], and says what is odd or wrong in them.

mod agents;
mod earlier;
mod hooks;
mod models;
mod permissions;
mod places;
mod repository;
mod servers;
mod shell;
mod speckit;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use crow_agent::WorkflowConfig;
use crow_core::{HookConfig, TreeLimits, is_secret_value};
use crow_model::ProviderSettings;
use crow_store::{DatabaseAddress, PostgresAddress};
use crow_tools::{Shell, TerminalPreference};

use super::{
    CONFIG_FILE, ConfigError, ConfigWarning, ConfigWarningKind, ENV_FILE, Environment, Settings,
    file::{self, ConfigField, ConfigNode, ConfigScalar, ConfigValue},
    known, web,
};
use agents::AgentsSection;
use earlier::LegacyModelSettings;
use permissions::PermissionsSection;
pub(crate) use repository::RepositoryReader;
use servers::McpServersSection;
pub(crate) use shell::default_shell as usual_shell;

/// Enough for a long piece of work, few enough that a model going in circles stops by itself.
const REQUESTS_MAX: u32 = 200;
/// What fits the models with a window of 200,000 and leaves them room; smaller windows bring it down by themselves.
const COMPACT_TOKENS_MAX: u64 = 180_000;
const DB_FILE: &str = "crow.db";
/// Names the database where the configuration does not.
const DATABASE_VARIABLE: &str = "DATABASE_PATH";
const PROMPTS_DIR: &str = "prompts";
/// Keys that name the database; the second is that of earlier versions.
pub(crate) const DATABASE_KEYS: [&str; 2] = ["db_uri", "memory_path"];
/// How messages say what a map of names is.
const NAMED_MAPS: &str = "a map from names to settings";

pub(super) fn load_settings(
    dir: &Path,
    env: &Environment,
) -> Result<(Settings, Vec<ConfigWarning>), ConfigError> {
    let (from_file, warnings) = read_env_file(&dir.join(ENV_FILE))?;
    let mut secrets: BTreeSet<String> = from_file.keys().cloned().collect();
    let mut whole = from_file;
    whole.extend(env.iter().map(|(name, value)| (name.clone(), value.clone())));

    let path = dir.join(CONFIG_FILE);
    let root = match read_optional_file(&path)? {
        Some(text) => file::parse_config(&path, &text)?,
        None => ConfigNode { line: 1, value: ConfigValue::Null },
    };
    let mut loader = ConfigLoader { path, env: &whole, warnings };
    let mut top = loader.read_sections(&root)?;
    secrets.extend(top.providers.values().flat_map(|provider| provider.variables.iter().cloned()));
    secrets.extend(top.servers.variables.iter().chain(&top.agents.variables).cloned());
    let database = loader.database_address(dir, &top)?;
    if let DatabaseAddress::Server { .. } = database {
        secrets.extend(top.db_variables.iter().cloned());
    }
    secrets.extend(
        env.iter().filter(|(name, value)| is_secret_value(name, value)).map(|(name, _)| name.clone()),
    );
    let workflow =
        speckit::add_environment(std::mem::take(&mut top.workflow), env, |name| secrets.contains(name));
    let settings = Settings {
        dir: dir.to_owned(),
        models: loader.read_models(&top)?,
        database,
        requests_max: top.requests_max.unwrap_or(REQUESTS_MAX),
        compact_tokens_max: top.compact_tokens_max.unwrap_or(COMPACT_TOKENS_MAX),
        mode: top.permissions.mode.unwrap_or_default(),
        sandbox: top.permissions.sandbox.unwrap_or_default(),
        network: top.permissions.network,
        writable: places::temporary_folders(env),
        caches: places::cache_folders(env),
        git_stores: places::git_store_folders(env),
        depth: places::agent_depth(env),
        home: places::env_folder(env, "HOME"),
        runtime_dir: places::env_folder(env, "XDG_RUNTIME_DIR"),
        worktrees_dir: places::worktrees_folder(env, dir),
        former_worktrees_dir: places::former_worktrees_folder(env, dir),
        recordings_dir: places::recordings_folder(env),
        rules: std::mem::take(&mut top.permissions.rules),
        secret_variables: secrets.iter().cloned().collect(),
        prompts_dir: dir.join(PROMPTS_DIR),
        workflow,
        terminals: choose_terminals(top.use_acp_terminal, top.fallback_to_mcp_terminal),
        shell: top.shell.unwrap_or_else(|| usual_shell(env)),
        session_logs: top.session_logs.unwrap_or_default(),
        mcp_servers: top.servers.servers,
        agent_servers: top.agents.servers,
        agents_written: top.agents.written,
        agents_broken: top.agents.broken,
        tree_limits: top.tree_limits,
        system_prompt_addition: None,
        system_prompt_path: top.system_prompt_path.map(|path| loader.expand_path(dir, &path)),
        skills_dir: top.skills_dir.map(|path| loader.expand_path(dir, &path)),
        web: web::web_access(dir, &whole, env),
        hooks: top.hooks,
        repositories: RepositoryReader::new(whole.clone(), secrets),
    };
    Ok((settings, loader.warnings))
}

/// Both are on unless said otherwise, as they were in the original.
fn choose_terminals(use_clients: Option<bool>, fall_back: Option<bool>) -> TerminalPreference {
    match (use_clients, fall_back) {
        (Some(false), _) => TerminalPreference::Own,
        (_, Some(false)) => TerminalPreference::ClientOnly,
        (_, _) => TerminalPreference::ClientFirst,
    }
}

/// Reads a file that may be missing.
fn read_optional_file(path: &Path) -> Result<Option<String>, ConfigError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::Unreadable { path: path.to_owned(), source }),
    }
}

/// Whether a configuration may say what its models read.
pub(super) fn says_modality(dir: &Path) -> bool {
    let path = dir.join(CONFIG_FILE);
    // A pipe in its place must not hold anybody up here.
    path.is_file() && read_optional_file(&path).ok().flatten().is_some_and(|text| text.contains("modalit"))
}

/// Reads the file with the keys. A line that cannot be read is skipped, the others count.
/// Tells in which line a configuration names its database, and where that is, whatever else is in it.
pub(super) fn find_database(
    dir: &Path,
    text: &str,
    env: &Environment,
) -> Result<Option<(u64, DatabaseAddress)>, ConfigError> {
    let path = dir.join(CONFIG_FILE);
    let root = file::parse_config(&path, text)?;
    let (mut whole, warnings) = read_env_file(&dir.join(ENV_FILE))?;
    whole.extend(env.iter().map(|(name, value)| (name.clone(), value.clone())));
    let mut loader = ConfigLoader { path, env: &whole, warnings };
    let mut top = ConfigSections::default();
    let is_database = |field: &&ConfigField| DATABASE_KEYS.contains(&field.key.as_str());
    for field in map_fields(&root).unwrap_or_default().iter().filter(is_database) {
        top.db_uri = loader.read_text(&field.key, &field.node)?.map(|uri| (field.line, uri));
    }
    let Some((line, _)) = &top.db_uri else { return Ok(None) };
    Ok(Some((*line, loader.database_address(dir, &top)?)))
}

pub(super) fn read_env_file(path: &Path) -> Result<(Environment, Vec<ConfigWarning>), ConfigError> {
    let text = read_optional_file(path)?.unwrap_or_default();
    let (mut pairs, mut warnings) = (Environment::new(), Vec::new());
    for pair in dotenvy::from_read_iter(text.as_bytes()) {
        match pair {
            Ok((name, value)) => drop(pairs.insert(name, value)),
            Err(error) => {
                let text_of_warning =
                    "expected NAME=value; quote a value that has spaces or a # in it".to_owned();
                let line = error_line(&text, &error);
                let (path, text) = (path.to_owned(), text_of_warning);
                warnings.push(ConfigWarning { path, line, text, kind: ConfigWarningKind::Odd });
            }
        }
    }
    Ok((pairs, warnings))
}

/// Finds the line an error is about. It is not shown: it may hold a key.
fn error_line(text: &str, error: &dotenvy::Error) -> u64 {
    let dotenvy::Error::LineParse(quoted, _) = error else { return 1 };
    let first = quoted.lines().next().filter(|first| !first.is_empty());
    let place = first.and_then(|first| text.lines().position(|line| line.contains(first)));
    place.map_or(1, |place| place as u64 + 1)
}

/// The top of the file while it is read: providers come before models, whatever the file's order.
#[derive(Default)]
struct ConfigSections<'a> {
    providers: BTreeMap<String, ProviderSection>,
    models: Vec<&'a ConfigField>,
    servers: McpServersSection,
    agents: AgentsSection,
    tree_limits: TreeLimits,
    db_uri: Option<(u64, String)>,
    db_variables: Vec<String>,
    earlier: LegacyModelSettings,
    skills_dir: Option<String>,
    system_prompt_path: Option<String>,
    max_tokens: Option<u64>,
    retries_max: Option<u32>,
    requests_max: Option<u32>,
    compact_tokens_max: Option<u64>,
    permissions: PermissionsSection,
    workflow: WorkflowConfig,
    use_acp_terminal: Option<bool>,
    session_logs: Option<bool>,
    fallback_to_mcp_terminal: Option<bool>,
    shell: Option<Shell>,
    hooks: Vec<HookConfig>,
}

struct ProviderSection {
    settings: ProviderSettings,
    variables: Vec<String>,
}

struct ConfigLoader<'a> {
    path: PathBuf,
    env: &'a Environment,
    warnings: Vec<ConfigWarning>,
}

impl ConfigLoader<'_> {
    fn read_sections<'n>(&mut self, root: &'n ConfigNode) -> Result<ConfigSections<'n>, ConfigError> {
        let mut top = ConfigSections::default();
        for field in map_fields(root).ok_or_else(|| self.expected_error("the file", root, "a map of keys"))? {
            let key = field.key.as_str();
            match key {
                "providers" => {
                    for field in self.read_map(key, &field.node, NAMED_MAPS)? {
                        top.providers.insert(field.key.clone(), self.read_provider(field)?);
                    }
                }
                "models" => top.models.extend(self.read_map(key, &field.node, NAMED_MAPS)?),
                "mcpServers" => top.servers = self.read_mcp_servers(field)?,
                "agent_servers" => top.agents = self.read_agent_servers(field)?,
                "agents" => top.tree_limits = self.read_tree_limits(field)?,
                "db_uri" | "memory_path" => {
                    top.db_uri = self.read_text(key, &field.node)?.map(|uri| (field.line, uri));
                    if let Some(scalar) = self.read_scalar(key, &field.node)? {
                        top.db_variables = scalar.variables().into_iter().map(str::to_owned).collect();
                    }
                }
                "MAX_TOKENS" | "max_tokens" => top.max_tokens = self.read_count(key, &field.node)?,
                "MAX_RETRIES_PER_STEP" | "max_retries_per_step" => {
                    top.retries_max = self.read_count(key, &field.node)?;
                }
                "MAX_TURN_REQUESTS" | "max_turn_requests" | "max_steps_per_turn" => {
                    top.requests_max = self.read_positive(key, &field.node)?;
                }
                "MAX_COMPACT_TOKENS" | "max_compact_tokens" => {
                    top.compact_tokens_max = self.read_positive(key, &field.node)?;
                }
                "session_logs" => top.session_logs = self.read_flag(key, &field.node)?,
                "use_acp_terminal" => top.use_acp_terminal = self.read_flag(key, &field.node)?,
                "fallback_to_mcp_terminal" => {
                    top.fallback_to_mcp_terminal = self.read_flag(key, &field.node)?;
                }
                "shell" => top.shell = self.read_shell(field)?,
                "system_prompt_path" => top.system_prompt_path = self.read_text(key, &field.node)?,
                "skills_dir" => top.skills_dir = self.read_text(key, &field.node)?,
                "TEMPERATURE" => top.earlier.temperature = self.read_number(key, &field.node, "a number")?,
                "reasoning_effort" => top.earlier.reasoning_effort = self.read_text(key, &field.node)?,
                "parallel_tool_calls" => {
                    top.earlier.parallel_tool_calls = self.read_flag(key, &field.node)?;
                }
                "hooks" => top.hooks = self.read_hooks(field)?,
                "sandbox" => {
                    let why = "sandbox: it belongs under permissions; write permissions.sandbox";
                    return Err(self.error_at(field.line, why.to_owned()));
                }
                "permissions" => top.permissions = self.read_permissions(field)?,
                "speckit" => top.workflow = self.read_speckit(field)?,
                _ => self.check_known("", field, known::TOP),
            }
        }
        Ok(top)
    }

    fn database_address(&self, dir: &Path, top: &ConfigSections<'_>) -> Result<DatabaseAddress, ConfigError> {
        let Some((line, uri)) = &top.db_uri else {
            let path = self.env.get(DATABASE_VARIABLE).filter(|path| !path.is_empty());
            return Ok(DatabaseAddress::File(self.expand_path(dir, path.map_or(DB_FILE, String::as_str))));
        };
        if is_plain_path(uri) {
            return Ok(DatabaseAddress::File(self.expand_path(dir, uri)));
        }
        let expected = || {
            self.error_at(*line, "db_uri: expected sqlite:///PATH or postgres://USER@HOST/NAME".to_owned())
        };
        let scheme = uri.split(':').next().unwrap_or_default();
        // SQLAlchemy's spelling: the name of a driver may follow the `+`.
        match scheme.split('+').next().unwrap_or_default() {
            "sqlite" => {}
            "postgres" | "postgresql" => {
                let server = PostgresAddress::parse(uri);
                return server
                    .map(|server| DatabaseAddress::Server { server, local: dir.to_owned() })
                    .map_err(|why| self.error_at(*line, format!("db_uri: {why}")));
            }
            _ => return Err(expected()),
        }
        let path = uri.split_once(":///").map(|(_, path)| path).filter(|path| !path.is_empty());
        let path = path.ok_or_else(expected)?;
        Ok(DatabaseAddress::File(self.expand_path(dir, path)))
    }

    /// Spells a path of the configuration out: `~/` is the home folder, a relative path begins in the configuration folder.
    fn expand_path(&self, dir: &Path, path: &str) -> PathBuf {
        match path.strip_prefix("~/").zip(self.env.get("HOME")) {
            Some((below, home)) => Path::new(home).join(below),
            None => dir.join(path),
        }
    }

    /// Warns of a key that no version of Crow knows, and notes one that only earlier versions had a use for.
    fn check_known(&mut self, place: &str, field: &ConfigField, known: &[&str]) {
        if known.contains(&field.key.as_str()) {
            return;
        }
        let key = if place.is_empty() { field.key.clone() } else { format!("{place}.{}", field.key) };
        if known::is_retired(place, &field.key) {
            let path = self.path.clone();
            self.warnings.push(ConfigWarning {
                path,
                line: field.line,
                text: key,
                kind: ConfigWarningKind::Retired,
            });
            return;
        }
        let text = match known::nearest_name(&field.key, known.iter().copied()) {
            Some(nearest) => format!("unknown key {key}; did you mean {nearest}?"),
            None => format!("unknown key {key}"),
        };
        self.warn_at(field.line, text);
    }

    fn read_map<'n>(
        &self,
        place: &str,
        node: &'n ConfigNode,
        what: &str,
    ) -> Result<&'n [ConfigField], ConfigError> {
        map_fields(node).ok_or_else(|| self.expected_error(place, node, what))
    }

    fn read_scalar<'n>(
        &self,
        place: &str,
        node: &'n ConfigNode,
    ) -> Result<Option<&'n ConfigScalar>, ConfigError> {
        match &node.value {
            ConfigValue::Null => Ok(None),
            ConfigValue::Scalar(scalar) => Ok(Some(scalar)),
            ConfigValue::List(_) | ConfigValue::Map(_) => Err(self.expected_error(place, node, "text")),
        }
    }

    fn read_text(&mut self, place: &str, node: &ConfigNode) -> Result<Option<String>, ConfigError> {
        let Some(scalar) = self.read_scalar(place, node)? else { return Ok(None) };
        let expanded = scalar.expand(self.env);
        for name in expanded.unset {
            self.warn_at(node.line, format!("{place}: the variable {name} is not set"));
        }
        Ok(Some(expanded.text).filter(|text| !text.is_empty()))
    }

    fn read_number<T: FromStr>(
        &mut self,
        place: &str,
        node: &ConfigNode,
        what: &str,
    ) -> Result<Option<T>, ConfigError> {
        if matches!(node.value, ConfigValue::List(_) | ConfigValue::Map(_)) {
            return Err(self.expected_error(place, node, what));
        }
        let Some(text) = self.read_text(place, node)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.expected_error(place, node, what))
    }

    fn read_count<T: FromStr>(&mut self, place: &str, node: &ConfigNode) -> Result<Option<T>, ConfigError> {
        self.read_number(place, node, "a whole number")
    }

    fn read_flag(&mut self, place: &str, node: &ConfigNode) -> Result<Option<bool>, ConfigError> {
        self.read_number(place, node, "true or false")
    }

    fn read_positive<T: FromStr + Default + PartialEq>(
        &mut self,
        place: &str,
        node: &ConfigNode,
    ) -> Result<Option<T>, ConfigError> {
        let what = "a whole number from 1";
        let count = self.read_number(place, node, what)?;
        if count == Some(T::default()) { Err(self.expected_error(place, node, what)) } else { Ok(count) }
    }

    fn expected_error(&self, place: &str, node: &ConfigNode, what: &str) -> ConfigError {
        self.error_at(node.line, format!("{place}: expected {what}, found {}", node.value.kind_name()))
    }

    fn error_at(&self, line: u64, problem: String) -> ConfigError {
        ConfigError::Wrong { path: self.path.clone(), line, problem }
    }

    fn warn_at(&mut self, line: u64, text: String) {
        self.warnings.push(ConfigWarning {
            path: self.path.clone(),
            line,
            text,
            kind: ConfigWarningKind::Odd,
        });
    }
}

/// Whether a database is named by a path rather than by a URI.
fn is_plain_path(uri: &str) -> bool {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.is_empty() || scheme.contains(['/', '.', '~'])
}

/// Shows a map's fields; nothing at all is an empty map.
fn map_fields(node: &ConfigNode) -> Option<&[ConfigField]> {
    match &node.value {
        ConfigValue::Map(fields) => Some(fields),
        ConfigValue::Null => Some(&[]),
        ConfigValue::Scalar(_) | ConfigValue::List(_) => None,
    }
}
