//! `crow-cli mcp`: serves Crow's own tools to any MCP client.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use crow_tools::{McpHttpEndpoint, McpServeConfig, McpServeError, ToolRegistry, serve_http, serve_stdio};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    agent,
    cli::McpArgs,
    failure::{CliError, CliExitCode},
    settings::Settings,
    token::{self, ServerToken},
};

/// Serves until the client leaves or the process is told to stop.
pub(crate) fn run(args: &McpArgs, settings: &Settings, current_dir: &Path) -> Result<(), CliError> {
    let cwd = args.cwd.as_ref().map_or_else(|| current_dir.to_owned(), |cwd| current_dir.join(cwd));
    let config = mcp_serve_config(settings, crate::require_existing_dir(&cwd).map(|_| cwd)?);
    let runtime = agent::tokio_runtime()?;
    let result = runtime.block_on(async {
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let serving = async {
            match args.http {
                Some(address) => serve_over_http(config, address, &settings.dir, cancel).await,
                None => Ok(serve_stdio(config, tokio::io::stdin(), tokio::io::stdout(), cancel).await?),
            }
        };
        agent::serve_until_stopped(Box::pin(serving), &stop).await
    });
    // A pending read of stdin would block a regular shutdown.
    runtime.shutdown_background();
    result
}

fn mcp_serve_config(settings: &Settings, cwd: PathBuf) -> McpServeConfig {
    McpServeConfig {
        tools: ToolRegistry::with_builtin_tools(agent::builtin_tool_config(settings)),
        cwd,
        secret_variables: settings.secret_variables.clone(),
        mode: settings.mode,
        rules: settings.rules.clone(),
        sandbox: settings.sandbox,
        readable: vec![agent::spill_dir(settings)],
        config_dir: settings.dir.clone(),
    }
}

/// Listens on this machine, announces the address and token file, and serves.
async fn serve_over_http(
    config: McpServeConfig,
    address: SocketAddr,
    dir: &Path,
    cancel: CancellationToken,
) -> Result<(), CliError> {
    if !address.ip().is_loopback() {
        let error = CliError::new(CliExitCode::Usage, format!("{address} is reachable from other machines"));
        return Err(error.with_hint("use 127.0.0.1, with an encrypted tunnel for other machines"));
    }
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        CliError::new(CliExitCode::Failed, format!("could not {what}: {error}"))
    };
    let listener = TcpListener::bind(address).await.map_err(|error| failed("listen", &error))?;
    let token =
        ServerToken::create_temporary(dir, "mcp").map_err(|error| failed("write the token", &error))?;
    let endpoint = McpHttpEndpoint { listener, token: token.bearer.clone() };
    token::announce_server(&endpoint.url()?, Some(&token))?;
    serve_http(config, endpoint, cancel).await?;
    Ok(())
}

impl From<McpServeError> for CliError {
    fn from(error: McpServeError) -> Self {
        Self::new(CliExitCode::Failed, format!("could not serve: {error}"))
    }
}
