//! `crow-cli mcp`: Crow's own tools for any MCP client.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use crow_tools::{Entrance, McpServeError, Offer, Tools, serve_http, serve_pipes};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    agent,
    cli::McpArgs,
    failure::{Code, Exit},
    settings::Settings,
    token::{self, Key},
};

/// Serves until the client leaves or the system asks for the end.
pub(crate) fn run(args: &McpArgs, settings: &Settings, here: &Path) -> Result<(), Exit> {
    let cwd = args.cwd.as_ref().map_or_else(|| here.to_owned(), |cwd| here.join(cwd));
    if !cwd.is_dir() {
        return Err(Exit::new(Code::Usage, format!("there is no folder {}", cwd.display())));
    }
    let offer = offer(settings, crate::text_folder(crow_tools::resolve(&cwd)).map(|_| cwd)?);
    let runtime = agent::runtime()?;
    let served = runtime.block_on(async {
        let cut = CancellationToken::new();
        let stop = cut.clone();
        let served = async {
            match args.http {
                Some(address) => http(offer, address, &settings.dir, cut).await,
                None => Ok(serve_pipes(offer, (tokio::io::stdin(), tokio::io::stdout()), cut).await?),
            }
        };
        agent::until_stopped(Box::pin(served), &stop).await
    });
    // Whoever still reads stdin would hold everything up.
    runtime.shutdown_background();
    served
}

fn offer(settings: &Settings, cwd: PathBuf) -> Offer {
    Offer {
        tools: Tools::builtin(agent::equipment(settings)),
        cwd,
        secret_variables: settings.secret_variables.clone(),
        mode: settings.mode,
        rules: settings.rules.clone(),
        sandbox: settings.sandbox,
        readable: vec![agent::spill_dir(settings)],
        config_dir: settings.dir.clone(),
    }
}

/// Opens a door on this machine, says where it is and where its key is, and serves.
async fn http(offer: Offer, address: SocketAddr, dir: &Path, cut: CancellationToken) -> Result<(), Exit> {
    if !address.ip().is_loopback() {
        let exit = Exit::new(Code::Usage, format!("{address} can be reached from other machines"));
        return Err(
            exit.with_hint("use 127.0.0.1, and a tunnel with encryption where others have to reach it")
        );
    }
    let refused = |what: &str, error: &dyn std::fmt::Display| {
        Exit::new(Code::Failed, format!("could not {what}: {error}"))
    };
    let listener = TcpListener::bind(address).await.map_err(|error| refused("listen", &error))?;
    let key = Key::of_ours(dir, "mcp").map_err(|error| refused("write the token", &error))?;
    let entrance = Entrance { listener, token: key.token.clone() };
    token::announce(&entrance.url()?, Some(&key))?;
    serve_http(offer, entrance, cut).await?;
    Ok(())
}

impl From<McpServeError> for Exit {
    fn from(error: McpServeError) -> Self {
        Self::new(Code::Failed, format!("could not serve: {error}"))
    }
}
