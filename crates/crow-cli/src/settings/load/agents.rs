//! `agent_servers` and `agents`: agents that can be driven, in the spelling that editors share, and how far a tree of
//! them may grow.

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use crow_acp::TransportSecurity;
use crow_core::{AgentServer, AgentTransport, TreeLimits};

use super::{
    super::{
        ConfigError,
        file::{ConfigField, ConfigNode, ConfigValue},
        known,
    },
    ConfigLoader,
};

/// What carries the token of an agent behind an address.
const AUTHORIZATION: &str = "Authorization";

/// What `agent_servers` says.
#[derive(Default)]
pub(super) struct AgentsSection {
    /// The agents, in the file's order.
    pub(super) servers: Vec<AgentServer>,
    /// How each is reached, as the file says it.
    pub(super) written: BTreeMap<String, String>,
    /// Why some of them cannot be reached, by their names.
    pub(super) broken: BTreeMap<String, String>,
    /// Variables that hold their keys.
    pub(super) variables: Vec<String>,
}

/// What can be said of one agent.
#[derive(Default)]
struct AgentFields {
    /// The program and what follows it.
    command: Vec<String>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    url: Option<String>,
    headers: Vec<(String, String)>,
    token: Option<String>,
    /// Why there is no token where there should be one.
    no_token: Option<String>,
    cwd: Option<String>,
}

impl ConfigLoader<'_> {
    /// Reads the agents.
    pub(super) fn read_agent_servers(&mut self, field: &ConfigField) -> Result<AgentsSection, ConfigError> {
        let mut agents = AgentsSection::default();
        for field in self.read_map(&field.key, &field.node, super::NAMED_MAPS)? {
            let mut said = self.read_agent(field, &mut agents.variables)?;
            let cwd = self.remote_folder(field, said.cwd.as_deref())?;
            let no_token = said.no_token.take();
            let reach = self.agent_transport(field, said)?;
            if let Some(why) = no_token.or(self.unreachable_reason(field, &reach)) {
                agents.broken.insert(field.key.clone(), why);
            }
            agents.written.insert(field.key.clone(), describe_transport(&field.node));
            agents.servers.push(AgentServer { name: field.key.clone(), reach, cwd });
        }
        Ok(agents)
    }

    fn read_agent(
        &mut self,
        field: &ConfigField,
        variables: &mut Vec<String>,
    ) -> Result<AgentFields, ConfigError> {
        let place = format!("agent_servers.{}", field.key);
        let mut said = AgentFields::default();
        for field in self.read_map(&place, &field.node, "a map with command or url")? {
            let (key, node) = (format!("{place}.{}", field.key), &field.node);
            match field.key.as_str() {
                "command" => said.command = self.read_command_words(&key, node)?,
                "args" => said.args = self.read_texts(&key, node)?,
                "env" => said.env = self.read_pairs(&key, node, variables)?,
                "cwd" => said.cwd = self.read_text(&key, node)?,
                "url" => said.url = self.read_secret(&key, node, variables)?,
                "headers" => said.headers = self.read_pairs(&key, node, variables)?,
                "token" | "token_file" if said.token.is_some() => {
                    return Err(
                        self.error_at(field.line, format!("{place} has two tokens; keep one of them"))
                    );
                }
                "token" => said.token = self.read_secret(&key, node, variables)?,
                "token_file" => match self.read_token_file(&key, node)? {
                    Some(Ok(token)) => said.token = Some(token),
                    Some(Err(why)) => said.no_token = Some(why),
                    None => {}
                },
                // Editors write these; a command or a url says as much.
                "type" | "transport" => {}
                _ => self.check_known(&place, field, known::AGENT),
            }
        }
        Ok(said)
    }

    /// Reads the folder that an agent works in; nobody here can look whether it is there.
    fn remote_folder(&self, field: &ConfigField, cwd: Option<&str>) -> Result<Option<PathBuf>, ConfigError> {
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
    fn read_command_words(&mut self, place: &str, node: &ConfigNode) -> Result<Vec<String>, ConfigError> {
        match &node.value {
            ConfigValue::List(_) => self.read_texts(place, node),
            ConfigValue::Null | ConfigValue::Scalar(_) | ConfigValue::Map(_) => {
                Ok(self.read_text(place, node)?.into_iter().collect())
            }
        }
    }

    /// Reads a token from its file. Without it the agent refuses us, which hinders nothing else.
    fn read_token_file(
        &mut self,
        place: &str,
        node: &ConfigNode,
    ) -> Result<Option<Result<String, String>>, ConfigError> {
        let Some(path) = self.read_text(place, node)? else { return Ok(None) };
        let file = self.resolve_path(&path);
        let token = fs::read_to_string(&file);
        let token = token.map_err(|error| format!("could not read {}: {error}", file.display()));
        if let Err(why) = &token {
            self.warn_at(node.line, format!("{place}: {why}"));
        }
        Ok(Some(token))
    }

    /// Tells why an address leads nowhere, and warns of one where others read the token along.
    fn unreachable_reason(&mut self, field: &ConfigField, reach: &AgentTransport) -> Option<String> {
        let AgentTransport::Socket { url, headers } = reach else { return None };
        let place = format!("agent_servers.{}", field.key);
        let fields = super::map_fields(&field.node).unwrap_or_default();
        let line = fields.iter().find(|field| field.key == "url").map_or(field.line, |url| url.line);
        match crow_acp::classify_address(url, headers) {
            Ok(TransportSecurity::Open) if has_authorization(headers) => {
                let advice = "use wss://, or a tunnel such as `ssh -L`";
                self.warn_at(line, format!("{place}.url: whoever reads along has the token; {advice}"));
                None
            }
            Ok(TransportSecurity::Open | TransportSecurity::Encrypted | TransportSecurity::Here) => None,
            Err(error) => {
                self.warn_at(line, format!("{place}.url: {error}"));
                Some(error.to_string())
            }
        }
    }

    /// Finds a file: `~/` is the home folder, a relative path starts in the configuration folder.
    fn resolve_path(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/").zip(self.env.get("HOME")) {
            Some((below, home)) => PathBuf::from(home).join(below),
            None => self.path.with_file_name(path),
        }
    }

    /// Decides how an agent is reached.
    fn agent_transport(&self, field: &ConfigField, said: AgentFields) -> Result<AgentTransport, ConfigError> {
        let wrong = |what: &str| self.error_at(field.line, format!("agent_servers.{} {what}", field.key));
        let mut words = said.command.into_iter();
        match (words.next().filter(|program| !program.is_empty()), said.url) {
            (Some(_), Some(_)) => Err(wrong("has both a command and a url; keep one of them")),
            (None, None) => Err(wrong("needs a command or a url")),
            (Some(command), None) => {
                let args = words.chain(said.args).collect();
                Ok(AgentTransport::Program { command, args, env: said.env })
            }
            (None, Some(url)) => {
                if !url.starts_with("wss://") && !url.starts_with("ws://") {
                    return Err(wrong("needs a url that starts with wss:// or ws://"));
                }
                let mut headers = said.headers;
                match said.token {
                    Some(_) if has_authorization(&headers) => {
                        return Err(wrong("has both a token and an Authorization header; keep one of them"));
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

    /// Reads how far a tree of agents may grow.
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
                    limits.time_max =
                        minutes.map_or(limits.time_max, |minutes| Duration::from_mins(minutes.into()));
                }
                _ => self.check_known("agents", field, known::AGENTS),
            }
        }
        Ok(limits)
    }
}

fn has_authorization(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION))
}

/// Spells how an agent is reached, without what may be a key.
fn describe_transport(agent: &ConfigNode) -> String {
    let fields = super::map_fields(agent).unwrap_or_default();
    let texts = |key: &str| {
        let nodes = fields.iter().filter(|field| field.key == key).map(|field| &field.node);
        nodes.flat_map(literal_texts).collect::<Vec<_>>()
    };
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

/// Takes out who asks and what is asked; what is left is where.
fn strip_credentials(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, _) = rest.split_once(['?', '#']).unwrap_or((rest, ""));
    let (host, path) = rest.find('/').map_or((rest, ""), |place| rest.split_at(place));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}
