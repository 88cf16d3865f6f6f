//! Arguments of `acp-bridge`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `acp-bridge`.
#[derive(Debug, Args)]
pub(crate) struct BridgeArgs {
    #[command(flatten)]
    pub(crate) options: BridgeOptions,
    /// The agent's command line; options of the bridge may appear anywhere in it
    #[arg(value_name = "CMD", required_unless_present = "own", num_args = 1.., allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
    /// The agent's command line, or the rest of it; everything after `--` is passed to the agent unchanged
    #[arg(value_name = "CMD", last = true)]
    pub(crate) own: Vec<String>,
}

/// Options of the bridge itself.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct BridgeOptions {
    /// Listen on this address or host name [default: 127.0.0.1]
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Listen on this port; 0 picks a free port [default: 0]
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Run the agent in this directory instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Set an environment variable for the agent; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Set the log level: debug, info, warning or error [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = parse_log_level)]
    pub(crate) log: Option<tracing::Level>,
    /// Write the log and the agents' stderr to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// Read the token from this file, or create the file if it does not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Accept clients without a token; only on a loopback address
    #[arg(long, conflicts_with = "token_file")]
    pub(crate) no_token: bool,
    /// Serve the agent at this path; `*` accepts any path [default: /acp]
    #[arg(long, value_name = "PATH", value_parser = parse_url_path)]
    pub(crate) path: Option<String>,
    /// Accept web pages of this origin, such as http://localhost:3000; can be repeated
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
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
        _ => Err("expected debug, info, warning or error; the log file is set with --log-file".to_owned()),
    }
}

fn parse_url_path(text: &str) -> Result<String, String> {
    let is_path = text == "*" || text.starts_with('/') && !text.contains(['?', '#', ' ']);
    is_path.then(|| text.to_owned()).ok_or_else(|| "expected a path such as /acp, or *".to_owned())
}

/// Parses an origin and writes it as browsers do, without a slash at the end and without the default port.
fn parse_origin(text: &str) -> Result<String, String> {
    let origin = text.strip_suffix('/').unwrap_or(text).to_ascii_lowercase();
    let host = origin.split_once("://").and_then(|(scheme, host)| {
        let default_port = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => "",
        };
        let host = host.strip_suffix(default_port).unwrap_or(host);
        let is_plain =
            !scheme.is_empty() && !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ', '*']);
        is_plain.then(|| format!("{scheme}://{host}"))
    });
    host.ok_or_else(|| "expected an origin such as http://localhost:3000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_origin(text: &str, expected: Option<&str>) {
        assert_eq!(parse_origin(text).ok().as_deref(), expected, "{text}");
    }

    #[test]
    fn origin_is_written_as_browsers_do() {
        check_origin("http://localhost:3000", Some("http://localhost:3000"));
        check_origin("https://Example.org:443/", Some("https://example.org"));
        check_origin("http://example.org:80", Some("http://example.org"));
        check_origin("https://example.org:80", Some("https://example.org:80"));
        check_origin("chrome-extension://abc", Some("chrome-extension://abc"));
        for text in
            ["localhost:3000", "*", "https://*.example.org", "https://example.org/app", "https://", "://x"]
        {
            check_origin(text, None);
        }
    }
}
