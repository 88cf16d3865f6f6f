//! `mcpServers`: the user's MCP servers, in the format other clients share.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use crow_core::{McpServer, McpTransport};

use super::{
    super::{
        ConfigError,
        file::{ConfigField, ConfigNode, ConfigValue},
        known_keys,
    },
    loader::{ConfigLoader, NAMED_MAPS},
};

/// Variables most programs need; using one in a server's settings does not make it a secret.
const PLAIN_VARIABLES: &[&str] =
    &["HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// Timeouts from this value on are in milliseconds.
const MILLISECONDS_MIN: f64 = 1000.0;

/// The section `mcpServers`.
#[derive(Default)]
pub(super) struct McpServersSection {
    /// The servers to connect to.
    pub(super) servers: Vec<McpServer>,
    pub(super) secret_variables: Vec<String>,
}

/// The fields of one server.
#[derive(Default)]
struct McpServerFields {
    transport: Option<McpTransportKind>,
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

/// Values of `transport`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum McpTransportKind {
    Stdio,
    Http,
    Sse,
    /// Crow's own tools, which are always there.
    Builtin,
}

impl McpTransportKind {
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

impl ConfigLoader<'_> {
    pub(super) fn read_mcp_servers(&mut self, field: &ConfigField) -> Result<McpServersSection, ConfigError> {
        let mut servers = McpServersSection::default();
        for field in self.read_map(&field.key, &field.node, NAMED_MAPS)? {
            let fields = self.read_mcp_server(field, &mut servers.secret_variables)?;
            let (cwd, timeout) = (fields.cwd.clone(), fields.timeout);
            let (disabled_tools, included_tools) =
                (fields.disabled_tools.clone(), fields.included_tools.clone());
            if let Some(transport) = self.server_transport(field, fields)? {
                let server = McpServer::new(field.key.clone(), transport);
                servers.servers.push(McpServer { disabled_tools, included_tools, cwd, timeout, ..server });
            }
        }
        Ok(servers)
    }

    fn read_mcp_server(
        &mut self,
        field: &ConfigField,
        variables: &mut Vec<String>,
    ) -> Result<McpServerFields, ConfigError> {
        let key_path = format!("mcpServers.{}", field.key);
        let mut fields = McpServerFields::default();
        for field in self.read_map(&key_path, &field.node, "a map with command or url")? {
            let (key, node) = (format!("{key_path}.{}", field.key), &field.node);
            match field.key.as_str() {
                "transport" | "type" => fields.transport = self.read_transport_kind(&key, field)?,
                "command" => fields.command = self.read_text(&key, node)?,
                "args" => fields.args = self.read_texts(&key, node)?,
                "env" => fields.env = self.read_pairs(&key, node, variables)?,
                "url" => fields.url = self.read_secret(&key, node, variables)?,
                "headers" => fields.headers = self.read_pairs(&key, node, variables)?,
                "disabled" => fields.is_disabled = self.read_flag(&key, node)?.unwrap_or(false),
                "disabled_tools" | "exclude_tools" => {
                    fields.disabled_tools.extend(self.read_texts(&key, node)?);
                }
                "include_tools" => fields.included_tools = Some(self.read_texts(&key, node)?),
                "cwd" => fields.cwd = self.read_text(&key, node)?.map(|cwd| self.expand_server_dir(&cwd)),
                "timeout" => fields.timeout = self.read_timeout(&key, node)?,
                _ => self.check_known(&key_path, field, known_keys::SERVER),
            }
        }
        Ok(fields)
    }

    /// Expands a server's directory; relative paths start in the session's.
    fn expand_server_dir(&self, cwd: &str) -> PathBuf {
        let home = self.merged_env.get("HOME").filter(|_| cwd == "~" || cwd.starts_with("~/"));
        home.map_or_else(
            || PathBuf::from(cwd),
            |home| Path::new(home).join(cwd.trim_start_matches(['~', '/'])),
        )
    }

    /// Reads a timeout in seconds; large numbers are milliseconds, as in FastMCP.
    fn read_timeout(&mut self, key_path: &str, node: &ConfigNode) -> Result<Option<Duration>, ConfigError> {
        let expected = "seconds";
        let Some(number) = self.read_number::<f64>(key_path, node, expected)? else { return Ok(None) };
        let seconds = if number >= MILLISECONDS_MIN { number / 1000.0 } else { number };
        let timeout = Duration::try_from_secs_f64(seconds).ok().filter(|timeout| !timeout.is_zero());
        timeout.map(Some).ok_or_else(|| self.expected_error(key_path, node, expected))
    }

    fn read_transport_kind(
        &mut self,
        key_path: &str,
        field: &ConfigField,
    ) -> Result<Option<McpTransportKind>, ConfigError> {
        let Some(text) = self.read_text(key_path, &field.node)? else { return Ok(None) };
        let kind = McpTransportKind::parse(&text);
        let expected =
            || self.error_at(field.line, format!("{key_path}: expected stdio, http, sse or builtin"));
        kind.ok_or_else(expected).map(Some)
    }

    /// Determines how a server is reached; `None` if it is disabled or our own.
    fn server_transport(
        &self,
        field: &ConfigField,
        fields: McpServerFields,
    ) -> Result<Option<McpTransport>, ConfigError> {
        let invalid = |what: &str| self.error_at(field.line, format!("mcpServers.{} {what}", field.key));
        let kind = match (fields.transport, &fields.command, &fields.url) {
            (Some(kind), ..) => kind,
            (None, Some(_), None) => McpTransportKind::Stdio,
            (None, None, Some(_)) => McpTransportKind::Http,
            (None, Some(_), Some(_)) => {
                return Err(invalid("has both a command and a url; remove one of them"));
            }
            (None, None, None) => return Err(invalid("needs a command or a url")),
        };
        let transport = match kind {
            McpTransportKind::Builtin => return Ok(None),
            McpTransportKind::Stdio => {
                let command = fields.command.ok_or_else(|| invalid("needs a command"))?;
                if is_own_server(&command, &fields.args) {
                    return Ok(None);
                }
                McpTransport::Stdio { command, args: fields.args, env: fields.env }
            }
            McpTransportKind::Http | McpTransportKind::Sse => {
                let is_address = |url: &String| url.starts_with("http://") || url.starts_with("https://");
                let url = fields.url.filter(is_address);
                let url = url.ok_or_else(|| invalid("needs a url that starts with https:// or http://"))?;
                match kind {
                    McpTransportKind::Sse => McpTransport::Sse { url, headers: fields.headers },
                    McpTransportKind::Http | McpTransportKind::Stdio | McpTransportKind::Builtin => {
                        McpTransport::Http { url, headers: fields.headers }
                    }
                }
            }
        };
        Ok(Some(transport).filter(|_| !fields.is_disabled))
    }

    pub(super) fn read_texts(
        &mut self,
        key_path: &str,
        node: &ConfigNode,
    ) -> Result<Vec<String>, ConfigError> {
        match &node.value {
            ConfigValue::Null => Ok(Vec::new()),
            ConfigValue::List(items) => {
                items.iter().map(|item| Ok(self.read_text(key_path, item)?.unwrap_or_default())).collect()
            }
            ConfigValue::Scalar(_) | ConfigValue::Map(_) => {
                Err(self.expected_error(key_path, node, "a list of strings"))
            }
        }
    }

    /// Reads a map of names to texts; variables in the texts hold secrets.
    pub(super) fn read_pairs(
        &mut self,
        key_path: &str,
        node: &ConfigNode,
        variables: &mut Vec<String>,
    ) -> Result<Vec<(String, String)>, ConfigError> {
        let mut pairs = Vec::new();
        for field in self.read_map(key_path, node, "a map from names to strings")? {
            let value = self.read_secret(&format!("{key_path}.{}", field.key), &field.node, variables)?;
            pairs.push((field.key.clone(), value.unwrap_or_default()));
        }
        Ok(pairs)
    }

    /// Reads a text that may contain a key, and collects its variables.
    pub(super) fn read_secret(
        &mut self,
        key_path: &str,
        node: &ConfigNode,
        variables: &mut Vec<String>,
    ) -> Result<Option<String>, ConfigError> {
        variables.extend(secret_variables(node));
        self.read_text(key_path, node)
    }
}

/// Returns the variables in a text that may hold a secret.
fn secret_variables(node: &ConfigNode) -> Vec<String> {
    match &node.value {
        ConfigValue::Scalar(scalar) => {
            let names = scalar.variables().into_iter().filter(|name| !PLAIN_VARIABLES.contains(name));
            names.map(str::to_owned).collect()
        }
        ConfigValue::Null | ConfigValue::List(_) | ConfigValue::Map(_) => Vec::new(),
    }
}

/// Whether this is the server of earlier versions, whose tools are built in now.
fn is_own_server(command: &str, args: &[String]) -> bool {
    let program = Path::new(command).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match program {
        "crow-mcp" => true,
        "crow-cli" => args.first().is_some_and(|arg| arg == "mcp"),
        "uv" | "uvx" => args.iter().any(|arg| arg.contains("crow-mcp")),
        _ => false,
    }
}
