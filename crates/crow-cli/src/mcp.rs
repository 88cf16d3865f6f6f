//! `crow-cli mcp`: Crow's own tools for any MCP client.

use std::{
    fs::DirBuilder,
    io::{self, Write},
    net::SocketAddr,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use crow_tools::{Entrance, McpServeError, Offer, Tools, serve_http, serve_pipes};
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    agent,
    cli::McpArgs,
    failure::{Code, Exit},
    settings::Settings,
};

/// As long as the key of a session in a browser: nobody guesses it.
const TOKEN_BYTES: usize = 32;

/// Serves until the client leaves or the system asks for the end.
pub(crate) fn run(args: &McpArgs, settings: &Settings, here: &Path) -> Result<(), Exit> {
    let cwd = args.cwd.as_ref().map_or_else(|| here.to_owned(), |cwd| here.join(cwd));
    if !cwd.is_dir() {
        return Err(Exit::new(Code::Usage, format!("there is no folder {}", cwd.display())));
    }
    let offer = offer(settings, cwd);
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
        let asked_to_stop = async move {
            let interrupted = tokio::select! {
                () = agent::stop_signal() => false,
                pressed = tokio::signal::ctrl_c() => pressed.is_ok(),
            };
            stop.cancel();
            interrupted
        };
        let mut asked_to_stop = Box::pin(asked_to_stop);
        let mut served = Box::pin(served);
        tokio::select! {
            served = &mut served => served,
            interrupted = &mut asked_to_stop => {
                served.await?;
                if interrupted { Err(Exit::quiet(Code::Interrupted)) } else { Ok(()) }
            }
        }
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
        protected: vec![crow_tools::resolve(&settings.dir)],
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
    let (token, file) = token(dir).map_err(|error| refused("write the token", &error))?;
    let entrance = Entrance { listener, token };
    let url = entrance.url()?;
    let line = json!({"url": url, "token_file": file.path(), "pid": std::process::id()});
    let mut out = io::stdout();
    writeln!(out, "{line}")?;
    out.flush()?;
    serve_http(offer, entrance, cut).await?;
    Ok(())
}

/// Makes a key that lasts as long as its file, which only its owner reads.
fn token(dir: &Path) -> io::Result<(String, NamedTempFile)> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut file = tempfile::Builder::new().prefix("mcp-").suffix(".token").tempfile_in(dir)?;
    file.write_all(token.as_bytes())?;
    file.flush()?;
    Ok((token, file))
}

impl From<McpServeError> for Exit {
    fn from(error: McpServeError) -> Self {
        Self::new(Code::Failed, format!("could not serve: {error}"))
    }
}
