//! `crow-cli auth SERVER`: logs in to an MCP server in a browser. Never prints a key.

use std::io::{self, IsTerminal, Write};

use crow_core::{McpServer, nearest_name};
use crow_process::open_in_browser;
use crow_tools::{McpSignIn, SignInError, SignInStatus, forget_sign_in, sign_in_status};

use crate::{
    failure::{CliError, CliExitCode},
    settings::{CONFIG_FILE, MCP_AUTH_DIR, Settings},
    table,
};

/// Logs in to a server and stores the login.
pub(crate) async fn run(settings: &Settings, name: &str, out: &mut impl Write) -> Result<(), CliError> {
    let server = find_server(settings, name)?;
    let failed = |error: SignInError| {
        CliError::new(CliExitCode::Failed, format!("could not log in to the MCP server {name}: {error}"))
    };
    let flow = McpSignIn::start(server, &settings.dir.join(MCP_AUTH_DIR)).await.map_err(failed)?;
    let mut stderr = io::stderr().lock();
    // Without stderr the user cannot log in.
    let _ = writeln!(stderr, "Open this address in a browser to log in:\n\n  {}\n", flow.authorization_url());
    drop(stderr);
    if io::stderr().is_terminal()
        && let Err(error) = open_in_browser(flow.authorization_url())
    {
        tracing::debug!(%error, "could not open a browser");
    }
    flow.finish().await.map_err(failed)?;
    Ok(writeln!(out, "logged in to {name}")?)
}

/// Deletes the login at a server, which need not be configured any more.
pub(crate) fn sign_out(settings: &Settings, name: &str, out: &mut impl Write) -> Result<(), CliError> {
    let forgotten = forget_sign_in(name, &settings.dir.join(MCP_AUTH_DIR));
    let failed =
        |error| CliError::new(CliExitCode::Failed, format!("could not delete the login at {name}: {error}"));
    match forgotten.map_err(failed)? {
        true => Ok(writeln!(out, "deleted the login at {name}")?),
        false => Ok(writeln!(out, "there was no login at {name}")?),
    }
}

/// Lists the servers with an address and their login status; prints nothing without one.
pub(crate) fn list_sign_ins(settings: &Settings, out: &mut impl Write) -> Result<(), CliError> {
    let mut rows = Vec::new();
    for server in settings.mcp_servers.iter().filter(|server| server.transport.url().is_some()) {
        let status = match sign_in_status(server, &settings.dir.join(MCP_AUTH_DIR)) {
            Ok(SignInStatus::NotApplicable) => "key in its headers".to_owned(),
            Ok(SignInStatus::SignedIn) => "logged in".to_owned(),
            Ok(SignInStatus::SignedOut) => {
                format!("not logged in; if it requires a login: crow-cli auth {}", server.name)
            }
            Err(error) => error.to_string(),
        };
        rows.push([server.name.clone(), status]);
    }
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    Ok(table::write_table(out, std::iter::once(["MCP SERVER", "LOGIN"].map(str::to_owned)).chain(rows))?)
}

fn find_server<'a>(settings: &'a Settings, name: &str) -> Result<&'a McpServer, CliError> {
    settings.mcp_servers.iter().find(|server| server.name == name).ok_or_else(|| {
        let file = settings.dir.join(CONFIG_FILE);
        let names = settings.mcp_servers.iter().map(|server| server.name.as_str());
        let hint = match nearest_name(name, names) {
            Some(suggestion) => format!("did you mean {suggestion}?"),
            None => format!("add it to `mcpServers` in {}", file.display()),
        };
        CliError::new(CliExitCode::Config, format!("unknown MCP server {name}")).with_hint(hint)
    })
}
