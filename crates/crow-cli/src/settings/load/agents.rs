//! `agent_servers` and `agents`: the agents that can be driven, in the format editors share, and the limits of a tree
//! of agents.

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use crow_acp::TransportSecurity;
use crow_core::{AgentServer, AgentTransport, TreeLimits};

use super::farm::FarmFields;
use super::{
    super::{
        ConfigError,
        file::{ConfigField, ConfigNode, ConfigValue},
        known_keys,
    },
    loader::{ConfigLoader, NAMED_MAPS, map_fields},
};

/// The header with the token of an agent's server.
const AUTHORIZATION: &str = "Authorization";

/// The section `agent_servers`.
#[derive(Default)]
pub(super) struct AgentsSection {
    /// In the file's order.
    pub(super) servers: Vec<AgentServer>,
    /// The command or address of each agent, as written in the file.
    pub(super) descriptions: BTreeMap<String, String>,
    /// Reasons why agents cannot be reached, by name.
    pub(super) unreachable: BTreeMap<String, String>,
    pub(super) secret_variables: Vec<String>,
}

/// The fields of one agent.
#[derive(Default)]
struct AgentFields {
    /// The program with its arguments.
    command: Vec<String>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    url: Option<String>,
    headers: Vec<(String, String)>,
    token: Option<String>,
    /// The reason if the file of the token or of the password could not be read.
    missing_secret_reason: Option<String>,
    cwd: Option<String>,
    farm: FarmFields,
}

impl ConfigLoader<'_> {
    pub(super) fn read_agent_servers(&mut self, field: &ConfigField) -> Result<AgentsSection, ConfigError> {
        let mut agents = AgentsSection::default();
        for field in self.read_map(&field.key, &field.node, NAMED_MAPS)? {
            let mut fields = self.read_agent(field, &mut agents.secret_variables)?;
            let cwd = self.read_remote_dir(field, fields.cwd.as_deref())?;
            let missing_secret_reason = fields.missing_secret_reason.take();
            let transport = self.agent_transport(field, fields)?;
            if let Some(reason) = missing_secret_reason.or(self.unreachable_reason(field, &transport)) {
                agents.unreachable.insert(field.key.clone(), reason);
            }
            agents.descriptions.insert(field.key.clone(), describe_transport(&field.node));
            agents.servers.push(AgentServer { name: field.key.clone(), transport, cwd });
        }
        Ok(agents)
    }

    fn read_agent(
        &mut self,
        field: &ConfigField,
        variables: &mut Vec<String>,
    ) -> Result<AgentFields, ConfigError> {
        let key_path = format!("agent_servers.{}", field.key);
        let mut fields = AgentFields::default();
        for field in self.read_map(&key_path, &field.node, "a map with command or url")? {
            let (key, node) = (format!("{key_path}.{}", field.key), &field.node);
            match field.key.as_str() {
                "command" => fields.command = self.read_command_line(&key, node)?,
                "args" => fields.args = self.read_texts(&key, node)?,
                "env" => fields.env = self.read_pairs(&key, node, variables)?,
                "cwd" => fields.cwd = self.read_text(&key, node)?,
                "url" => fields.url = self.read_secret(&key, node, variables)?,
                "headers" => fields.headers = self.read_pairs(&key, node, variables)?,
                "token" | "token_file" if fields.token.is_some() => {
                    return Err(
                        self.error_at(field.line, format!("{key_path} has two tokens; remove one of them"))
                    );
                }
                "token" => fields.token = self.read_secret(&key, node, variables)?,
                "token_file" => match self.read_secret_file(&key, node)? {
                    Some(Ok(token)) => fields.token = Some(token),
                    Some(Err(reason)) => fields.missing_secret_reason = Some(reason),
                    None => {}
                },
                "password" | "password_file" if fields.farm.password.is_some() => {
                    return Err(self
                        .error_at(field.line, format!("{key_path} has two passwords; remove one of them")));
                }
                "nats" => fields.farm.nats = self.read_secret(&key, node, variables)?,
                "queue" => fields.farm.queue = self.read_text(&key, node)?,
                "parent" => fields.farm.parent = self.read_text(&key, node)?,
                "user" => fields.farm.user = self.read_secret(&key, node, variables)?,
                "password" => fields.farm.password = self.read_secret(&key, node, variables)?,
                "password_file" => match self.read_secret_file(&key, node)? {
                    Some(Ok(password)) => fields.farm.password = Some(password.trim_end().to_owned()),
                    Some(Err(reason)) => {
                        // The agent is complete, and cannot be used.
                        fields.farm.password = Some(String::new());
                        fields.missing_secret_reason = Some(reason);
                    }
                    None => {}
                },
                "creds_file" => fields.farm.creds_file = self.read_path(&key, node)?,
                "nkey_file" => fields.farm.nkey_file = self.read_path(&key, node)?,
                "ca_file" => fields.farm.ca_file = self.read_path(&key, node)?,
                // Editors write these; `command` or `url` already imply them.
                "type" | "transport" => {}
                _ => self.check_known(&key_path, field, known_keys::AGENT),
            }
        }
        Ok(fields)
    }

    /// Reads the directory an agent works in, which may be on another machine.
    fn read_remote_dir(
        &self,
        field: &ConfigField,
        cwd: Option<&str>,
    ) -> Result<Option<PathBuf>, ConfigError> {
        let Some(cwd) = cwd.map(PathBuf::from) else { return Ok(None) };
        match cwd.is_absolute() {
            true => Ok(Some(cwd)),
            false => {
                Err(self
                    .error_at(field.line, format!("agent_servers.{}.cwd needs an absolute path", field.key)))
            }
        }
    }

    /// Reads a program, or a list that begins with one.
    fn read_command_line(&mut self, key_path: &str, node: &ConfigNode) -> Result<Vec<String>, ConfigError> {
        match &node.value {
            ConfigValue::List(_) => self.read_texts(key_path, node),
            ConfigValue::Null | ConfigValue::Scalar(_) | ConfigValue::Map(_) => {
                Ok(self.read_text(key_path, node)?.into_iter().collect())
            }
        }
    }

    /// Reads a token or a password from its file. Without it only this agent is unusable.
    fn read_secret_file(
        &mut self,
        key_path: &str,
        node: &ConfigNode,
    ) -> Result<Option<Result<String, String>>, ConfigError> {
        let Some(path) = self.read_text(key_path, node)? else { return Ok(None) };
        let file = self.resolve_path(&path);
        let secret = fs::read_to_string(&file);
        let secret = secret.map_err(|error| format!("could not read {}: {error}", file.display()));
        if let Err(reason) = &secret {
            self.warn_at(node.line, format!("{key_path}: {reason}"));
        }
        Ok(Some(secret))
    }

    /// Returns why an address cannot be used, and warns of one that exposes the token.
    fn unreachable_reason(&mut self, field: &ConfigField, transport: &AgentTransport) -> Option<String> {
        let AgentTransport::Socket { url, headers } = transport else { return None };
        let key_path = format!("agent_servers.{}", field.key);
        let fields = map_fields(&field.node).unwrap_or_default();
        let line = fields.iter().find(|field| field.key == "url").map_or(field.line, |url| url.line);
        match crow_acp::classify_address(url, headers) {
            Ok(TransportSecurity::Unencrypted) if has_authorization(headers) => {
                let scheme = if url.starts_with("http") { "https" } else { "wss" };
                let advice = format!("use {scheme}://, or a tunnel such as `ssh -L`");
                self.warn_at(line, format!("{key_path}.url: the token is sent unencrypted; {advice}"));
                None
            }
            Ok(
                TransportSecurity::Unencrypted | TransportSecurity::Encrypted | TransportSecurity::Loopback,
            ) => None,
            Err(error) => {
                self.warn_at(line, format!("{key_path}.url: {error}"));
                Some(error.to_string())
            }
        }
    }

    fn read_path(&mut self, key_path: &str, node: &ConfigNode) -> Result<Option<PathBuf>, ConfigError> {
        Ok(self.read_text(key_path, node)?.map(|path| self.resolve_path(&path)))
    }

    /// Resolves a path: `~/` is the home directory, relative paths start in the configuration directory.
    fn resolve_path(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/").zip(self.merged_env.get("HOME")) {
            Some((below, home)) => PathBuf::from(home).join(below),
            None => self.path.with_file_name(path),
        }
    }

    /// Determines how an agent is reached.
    fn agent_transport(
        &mut self,
        field: &ConfigField,
        fields: AgentFields,
    ) -> Result<AgentTransport, ConfigError> {
        if fields.farm.is_used() {
            if !fields.command.is_empty() || fields.url.is_some() || fields.cwd.is_some() {
                let reason = format!("agent_servers.{} has nats beside command, url or cwd", field.key);
                return Err(self.error_at(field.line, reason));
            }
            return self.farm_transport(field, fields.farm, fields.token);
        }
        let invalid = |what: &str| self.error_at(field.line, format!("agent_servers.{} {what}", field.key));
        let mut command_line = fields.command.into_iter();
        match (command_line.next().filter(|program| !program.is_empty()), fields.url) {
            (Some(_), Some(_)) => Err(invalid("has both a command and a url; remove one of them")),
            (None, None) => Err(invalid("needs a command, a url, or nats and a queue")),
            (Some(command), None) => {
                let args = command_line.chain(fields.args).collect();
                Ok(AgentTransport::Program { command, args, env: fields.env })
            }
            (None, Some(url)) => {
                if !["wss://", "ws://", "https://", "http://"].iter().any(|scheme| url.starts_with(scheme)) {
                    return Err(invalid("needs a url that starts with wss://, ws://, https:// or http://"));
                }
                let mut headers = fields.headers;
                match fields.token {
                    Some(_) if has_authorization(&headers) => {
                        return Err(invalid(
                            "has both a token and an Authorization header; remove one of them",
                        ));
                    }
                    Some(token) => {
                        headers.push((AUTHORIZATION.to_owned(), format!("Bearer {}", token.trim())));
                    }
                    None => {}
                }
                Ok(AgentTransport::Socket { url, headers })
            }
        }
    }

    /// Reads the limits of a tree of agents.
    pub(super) fn read_tree_limits(&mut self, field: &ConfigField) -> Result<TreeLimits, ConfigError> {
        let mut limits = TreeLimits::default();
        let keys = "a map with max_depth, max_children, max_tokens and max_minutes";
        for field in self.read_map(&field.key, &field.node, keys)? {
            let (key, node) = (format!("agents.{}", field.key), &field.node);
            match field.key.as_str() {
                "max_depth" => limits.depth_max = self.read_count(&key, node)?.unwrap_or(limits.depth_max),
                "max_children" => {
                    limits.children_max = self.read_positive(&key, node)?.unwrap_or(limits.children_max);
                }
                "max_tokens" => limits.tokens_max = self.read_positive(&key, node)?,
                "max_minutes" => {
                    let minutes: Option<u32> = self.read_positive(&key, node)?;
                    limits.task_timeout =
                        minutes.map_or(limits.task_timeout, |minutes| Duration::from_mins(minutes.into()));
                }
                _ => self.check_known("agents", field, known_keys::AGENTS),
            }
        }
        Ok(limits)
    }
}

fn has_authorization(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION))
}

/// Describes how an agent is reached, without anything that may be a key.
fn describe_transport(agent: &ConfigNode) -> String {
    let fields = map_fields(agent).unwrap_or_default();
    let texts = |key: &str| {
        let nodes = fields.iter().filter(|field| field.key == key).map(|field| &field.node);
        nodes.flat_map(literal_texts).collect::<Vec<_>>()
    };
    if let (Some(servers), Some(queue)) = (texts("nats").first(), texts("queue").first()) {
        let servers: Vec<String> = servers.split(',').map(|url| strip_credentials(url.trim())).collect();
        return format!("{} queue {queue}", servers.join(","));
    }
    match texts("url").first() {
        Some(url) => strip_credentials(url),
        None => [texts("command"), texts("args")].concat().join(" "),
    }
}

fn literal_texts(node: &ConfigNode) -> Vec<String> {
    match &node.value {
        ConfigValue::Scalar(scalar) => vec![scalar.literal_text()],
        ConfigValue::List(items) => items.iter().flat_map(literal_texts).collect(),
        ConfigValue::Null | ConfigValue::Map(_) => Vec::new(),
    }
}

/// Removes credentials, query and fragment from a URL.
fn strip_credentials(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, _) = rest.split_once(['?', '#']).unwrap_or((rest, ""));
    let (host, path) = rest.find('/').map_or((rest, ""), |index| rest.split_at(index));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}
