//! `agent_servers` and `agents`: agents that can be driven, in the spelling that editors share, and how far a tree of
//! them may grow.

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use crow_acp::Way;
use crow_core::{AgentReach, AgentServer, TreeLimits};

use super::{
    super::{
        ConfigError,
        file::{Field, Node, Value},
        known,
    },
    Loader,
};

/// What carries the token of an agent behind an address.
const AUTHORIZATION: &str = "Authorization";

/// What `agent_servers` says.
#[derive(Default)]
pub(super) struct Agents {
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
struct Said {
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

impl Loader<'_> {
    /// Reads the agents.
    pub(super) fn agent_servers(&mut self, field: &Field) -> Result<Agents, ConfigError> {
        let mut agents = Agents::default();
        for field in self.map(&field.key, &field.node, super::NAMED_MAPS)? {
            let mut said = self.agent(field, &mut agents.variables)?;
            let cwd = self.far_folder(field, said.cwd.as_deref())?;
            let no_token = said.no_token.take();
            let reach = self.reach(field, said)?;
            if let Some(why) = no_token.or(self.no_way(field, &reach)) {
                agents.broken.insert(field.key.clone(), why);
            }
            agents.written.insert(field.key.clone(), written(&field.node));
            agents.servers.push(AgentServer { name: field.key.clone(), reach, cwd });
        }
        Ok(agents)
    }

    fn agent(&mut self, field: &Field, variables: &mut Vec<String>) -> Result<Said, ConfigError> {
        let place = format!("agent_servers.{}", field.key);
        let mut said = Said::default();
        for field in self.map(&place, &field.node, "a map with command or url")? {
            let (key, node) = (format!("{place}.{}", field.key), &field.node);
            match field.key.as_str() {
                "command" => said.command = self.words(&key, node)?,
                "args" => said.args = self.texts(&key, node)?,
                "env" => said.env = self.pairs(&key, node, variables)?,
                "cwd" => said.cwd = self.text(&key, node)?,
                "url" => said.url = self.secret(&key, node, variables)?,
                "headers" => said.headers = self.pairs(&key, node, variables)?,
                "token" | "token_file" if said.token.is_some() => {
                    return Err(self.wrong(field.line, format!("{place} has two tokens; keep one of them")));
                }
                "token" => said.token = self.secret(&key, node, variables)?,
                "token_file" => match self.token_file(&key, node)? {
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
    fn far_folder(&self, field: &Field, cwd: Option<&str>) -> Result<Option<PathBuf>, ConfigError> {
        let Some(cwd) = cwd.map(PathBuf::from) else { return Ok(None) };
        match cwd.is_absolute() {
            true => Ok(Some(cwd)),
            false => {
                Err(self.wrong(field.line, format!("agent_servers.{}.cwd needs an absolute path", field.key)))
            }
        }
    }

    /// Reads a program, or a list that begins with one.
    fn words(&mut self, place: &str, node: &Node) -> Result<Vec<String>, ConfigError> {
        match &node.value {
            Value::List(_) => self.texts(place, node),
            Value::Null | Value::Scalar(_) | Value::Map(_) => {
                Ok(self.text(place, node)?.into_iter().collect())
            }
        }
    }

    /// Reads a token from its file. Without it the agent refuses us, which hinders nothing else.
    fn token_file(
        &mut self,
        place: &str,
        node: &Node,
    ) -> Result<Option<Result<String, String>>, ConfigError> {
        let Some(path) = self.text(place, node)? else { return Ok(None) };
        let file = self.beside(&path);
        let token = fs::read_to_string(&file);
        let token = token.map_err(|error| format!("could not read {}: {error}", file.display()));
        if let Err(why) = &token {
            self.warn(node.line, format!("{place}: {why}"));
        }
        Ok(Some(token))
    }

    /// Tells why an address leads nowhere, and warns of one where others read the token along.
    fn no_way(&mut self, field: &Field, reach: &AgentReach) -> Option<String> {
        let AgentReach::Socket { url, headers } = reach else { return None };
        let place = format!("agent_servers.{}", field.key);
        let fields = super::fields(&field.node).unwrap_or_default();
        let line = fields.iter().find(|field| field.key == "url").map_or(field.line, |url| url.line);
        match crow_acp::way_to(url, headers) {
            Ok(Way::Open) if is_signed(headers) => {
                let advice = "use wss://, or a tunnel such as `ssh -L`";
                self.warn(line, format!("{place}.url: whoever reads along has the token; {advice}"));
                None
            }
            Ok(Way::Open | Way::Encrypted | Way::Here) => None,
            Err(error) => {
                self.warn(line, format!("{place}.url: {error}"));
                Some(error.to_string())
            }
        }
    }

    /// Finds a file: `~/` is the home folder, a relative path starts in the configuration folder.
    fn beside(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/").zip(self.env.get("HOME")) {
            Some((below, home)) => PathBuf::from(home).join(below),
            None => self.path.with_file_name(path),
        }
    }

    /// Decides how an agent is reached.
    fn reach(&self, field: &Field, said: Said) -> Result<AgentReach, ConfigError> {
        let wrong = |what: &str| self.wrong(field.line, format!("agent_servers.{} {what}", field.key));
        let mut words = said.command.into_iter();
        match (words.next().filter(|program| !program.is_empty()), said.url) {
            (Some(_), Some(_)) => Err(wrong("has both a command and a url; keep one of them")),
            (None, None) => Err(wrong("needs a command or a url")),
            (Some(command), None) => {
                let args = words.chain(said.args).collect();
                Ok(AgentReach::Program { command, args, env: said.env })
            }
            (None, Some(url)) => {
                if !url.starts_with("wss://") && !url.starts_with("ws://") {
                    return Err(wrong("needs a url that starts with wss:// or ws://"));
                }
                let mut headers = said.headers;
                match said.token {
                    Some(_) if is_signed(&headers) => {
                        return Err(wrong("has both a token and an Authorization header; keep one of them"));
                    }
                    Some(token) => {
                        headers.push((AUTHORIZATION.to_owned(), format!("Bearer {}", token.trim())));
                    }
                    None => {}
                }
                Ok(AgentReach::Socket { url, headers })
            }
        }
    }

    /// Reads how far a tree of agents may grow.
    pub(super) fn tree_limits(&mut self, field: &Field) -> Result<TreeLimits, ConfigError> {
        let mut limits = TreeLimits::default();
        let keys = "a map with max_depth, max_children, max_tokens and max_minutes";
        for field in self.map(&field.key, &field.node, keys)? {
            let (key, node) = (format!("agents.{}", field.key), &field.node);
            match field.key.as_str() {
                "max_depth" => limits.depth_max = self.count(&key, node)?.unwrap_or(limits.depth_max),
                "max_children" => {
                    limits.children_max = self.positive(&key, node)?.unwrap_or(limits.children_max);
                }
                "max_tokens" => limits.tokens_max = self.positive(&key, node)?,
                "max_minutes" => {
                    let minutes: Option<u32> = self.positive(&key, node)?;
                    limits.time_max =
                        minutes.map_or(limits.time_max, |minutes| Duration::from_mins(minutes.into()));
                }
                _ => self.check_known("agents", field, known::AGENTS),
            }
        }
        Ok(limits)
    }
}

fn is_signed(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION))
}

/// Spells how an agent is reached, without what may be a key.
fn written(agent: &Node) -> String {
    let fields = super::fields(agent).unwrap_or_default();
    let texts = |key: &str| {
        let nodes = fields.iter().filter(|field| field.key == key).map(|field| &field.node);
        nodes.flat_map(literals).collect::<Vec<_>>()
    };
    match texts("url").first() {
        Some(url) => without_keys(url),
        None => [texts("command"), texts("args")].concat().join(" "),
    }
}

fn literals(node: &Node) -> Vec<String> {
    match &node.value {
        Value::Scalar(scalar) => vec![scalar.literal()],
        Value::List(items) => items.iter().flat_map(literals).collect(),
        Value::Null | Value::Map(_) => Vec::new(),
    }
}

/// Takes out who asks and what is asked; what is left is where.
fn without_keys(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, _) = rest.split_once(['?', '#']).unwrap_or((rest, ""));
    let (host, path) = rest.find('/').map_or((rest, ""), |place| rest.split_at(place));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}
