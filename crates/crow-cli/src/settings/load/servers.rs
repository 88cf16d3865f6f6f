//! `mcpServers`: the servers a person has configured, in the spelling that other clients share.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crow_core::{McpServer, McpTransport};

use super::{
    super::{
        ConfigError,
        file::{Field, Node, Value},
        known,
    },
    Loader,
};

/// What programs cannot do without; naming one of these in a server's settings makes no secret of it.
const PLAIN_VARIABLES: &[&str] =
    &["HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// No server is waited for so many seconds.
const MILLISECONDS_FROM: f64 = 1000.0;

/// What `mcpServers` says.
#[derive(Default)]
pub(super) struct Servers {
    /// Those to connect to.
    pub(super) servers: Vec<McpServer>,
    /// Variables that hold their keys.
    pub(super) variables: Vec<String>,
}

/// What can be said of one server.
#[derive(Default)]
struct Said {
    transport: Option<Kind>,
    command: Option<String>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    url: Option<String>,
    headers: Vec<(String, String)>,
    is_disabled: bool,
    disabled_tools: Vec<String>,
    included_tools: Option<Vec<String>>,
    cwd: Option<PathBuf>,
    timeout: Option<Duration>,
}

/// What `transport` can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
    Sse,
    /// Crow's own tools, which it has anyway.
    Builtin,
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "stdio" => Some(Self::Stdio),
            "http" | "streamable-http" | "streamable_http" => Some(Self::Http),
            "sse" => Some(Self::Sse),
            "builtin" => Some(Self::Builtin),
            _ => None,
        }
    }
}

impl Loader<'_> {
    pub(super) fn servers(&mut self, field: &Field) -> Result<Servers, ConfigError> {
        let mut servers = Servers::default();
        for field in self.map(&field.key, &field.node, super::NAMED_MAPS)? {
            let said = self.server(field, &mut servers.variables)?;
            let (cwd, timeout) = (said.cwd.clone(), said.timeout);
            let (disabled_tools, included_tools) = (said.disabled_tools.clone(), said.included_tools.clone());
            if let Some(transport) = self.transport(field, said)? {
                let server = McpServer::new(field.key.clone(), transport);
                servers.servers.push(McpServer { disabled_tools, included_tools, cwd, timeout, ..server });
            }
        }
        Ok(servers)
    }

    fn server(&mut self, field: &Field, variables: &mut Vec<String>) -> Result<Said, ConfigError> {
        let place = format!("mcpServers.{}", field.key);
        let mut said = Said::default();
        for field in self.map(&place, &field.node, "a map with command or url")? {
            let (key, node) = (format!("{place}.{}", field.key), &field.node);
            match field.key.as_str() {
                "transport" | "type" => said.transport = self.kind(&key, field)?,
                "command" => said.command = self.text(&key, node)?,
                "args" => said.args = self.texts(&key, node)?,
                "env" => said.env = self.pairs(&key, node, variables)?,
                "url" => said.url = self.secret(&key, node, variables)?,
                "headers" => said.headers = self.pairs(&key, node, variables)?,
                "disabled" => said.is_disabled = self.number(&key, node, "true or false")?.unwrap_or(false),
                "disabled_tools" | "exclude_tools" => said.disabled_tools.extend(self.texts(&key, node)?),
                "include_tools" => said.included_tools = Some(self.texts(&key, node)?),
                "cwd" => said.cwd = self.text(&key, node)?.map(|cwd| self.server_folder(&cwd)),
                "timeout" => said.timeout = self.timeout(&key, node)?,
                _ => self.check_known(&place, field, known::SERVER),
            }
        }
        Ok(said)
    }

    /// Spells a server's folder out; a relative one begins in the session's.
    fn server_folder(&self, cwd: &str) -> PathBuf {
        let home = self.env.get("HOME").filter(|_| cwd == "~" || cwd.starts_with("~/"));
        home.map_or_else(
            || PathBuf::from(cwd),
            |home| Path::new(home).join(cwd.trim_start_matches(['~', '/'])),
        )
    }

    /// Reads seconds; so large a number counts milliseconds, as FastMCP does.
    fn timeout(&mut self, place: &str, node: &Node) -> Result<Option<Duration>, ConfigError> {
        let what = "seconds";
        let Some(number) = self.number::<f64>(place, node, what)? else { return Ok(None) };
        let seconds = if number >= MILLISECONDS_FROM { number / 1000.0 } else { number };
        let timeout = Duration::try_from_secs_f64(seconds).ok().filter(|timeout| !timeout.is_zero());
        timeout.map(Some).ok_or_else(|| self.expected(place, node, what))
    }

    fn kind(&mut self, place: &str, field: &Field) -> Result<Option<Kind>, ConfigError> {
        let Some(text) = self.text(place, &field.node)? else { return Ok(None) };
        let kind = Kind::parse(&text);
        let expected = || self.wrong(field.line, format!("{place}: expected stdio, http, sse or builtin"));
        kind.ok_or_else(expected).map(Some)
    }

    /// Decides how a server is reached; not at all, when it is disabled or our own.
    fn transport(&self, field: &Field, said: Said) -> Result<Option<McpTransport>, ConfigError> {
        let wrong = |what: &str| self.wrong(field.line, format!("mcpServers.{} {what}", field.key));
        let kind = match (said.transport, &said.command, &said.url) {
            (Some(kind), ..) => kind,
            (None, Some(_), None) => Kind::Stdio,
            (None, None, Some(_)) => Kind::Http,
            (None, Some(_), Some(_)) => return Err(wrong("has both a command and a url; keep one of them")),
            (None, None, None) => return Err(wrong("needs a command or a url")),
        };
        let transport = match kind {
            Kind::Builtin => return Ok(None),
            Kind::Stdio => {
                let command = said.command.ok_or_else(|| wrong("needs a command"))?;
                if is_ours(&command, &said.args) {
                    return Ok(None);
                }
                McpTransport::Stdio { command, args: said.args, env: said.env }
            }
            Kind::Http | Kind::Sse => {
                let is_address = |url: &String| url.starts_with("http://") || url.starts_with("https://");
                let url = said.url.filter(is_address);
                let url = url.ok_or_else(|| wrong("needs a url that starts with https:// or http://"))?;
                match kind {
                    Kind::Sse => McpTransport::Sse { url, headers: said.headers },
                    Kind::Http | Kind::Stdio | Kind::Builtin => {
                        McpTransport::Http { url, headers: said.headers }
                    }
                }
            }
        };
        Ok(Some(transport).filter(|_| !said.is_disabled))
    }

    pub(super) fn texts(&mut self, place: &str, node: &Node) -> Result<Vec<String>, ConfigError> {
        match &node.value {
            Value::Null => Ok(Vec::new()),
            Value::List(items) => {
                items.iter().map(|item| Ok(self.text(place, item)?.unwrap_or_default())).collect()
            }
            Value::Scalar(_) | Value::Map(_) => Err(self.expected(place, node, "a list of texts")),
        }
    }

    /// Reads what each name stands for; the variables in it hold secrets.
    pub(super) fn pairs(
        &mut self,
        place: &str,
        node: &Node,
        variables: &mut Vec<String>,
    ) -> Result<Vec<(String, String)>, ConfigError> {
        let mut pairs = Vec::new();
        for field in self.map(place, node, "a map from names to texts")? {
            let value = self.secret(&format!("{place}.{}", field.key), &field.node, variables)?;
            pairs.push((field.key.clone(), value.unwrap_or_default()));
        }
        Ok(pairs)
    }

    /// Reads a text that may hold a key, and notes the variables in it.
    pub(super) fn secret(
        &mut self,
        place: &str,
        node: &Node,
        variables: &mut Vec<String>,
    ) -> Result<Option<String>, ConfigError> {
        variables.extend(named_in(node));
        self.text(place, node)
    }
}

/// Names the variables in a text that can hold a secret.
fn named_in(node: &Node) -> Vec<String> {
    match &node.value {
        Value::Scalar(scalar) => {
            let names = scalar.variables().into_iter().filter(|name| !PLAIN_VARIABLES.contains(name));
            names.map(str::to_owned).collect()
        }
        Value::Null | Value::List(_) | Value::Map(_) => Vec::new(),
    }
}

/// Tells the server that earlier versions brought along: its tools are ours.
fn is_ours(command: &str, args: &[String]) -> bool {
    let program = Path::new(command).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match program {
        "crow-mcp" => true,
        "crow-cli" => args.first().is_some_and(|arg| arg == "mcp"),
        "uv" | "uvx" => args.iter().any(|arg| arg.contains("crow-mcp")),
        _ => false,
    }
}
