//! Opens a listening socket for clients, announces its address, and serves until the process is told to stop. Knows
//! nothing of the agent.

use std::{
    io::{self, Write},
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use crow_acp::{AdmissionPolicy, CloseReason, LineTransport, SocketListener};
use tokio::net::{TcpListener, lookup_host};
use tokio_util::sync::CancellationToken;

use crate::{
    agent,
    failure::{CliError, CliExitCode},
    token::{self, ServerToken},
};

/// Address to listen on.
#[derive(Debug, Clone)]
pub(crate) struct ListenAddress {
    /// An IP address, or a name of this machine.
    pub(crate) host: String,
    /// 0 picks a free port.
    pub(crate) port: u16,
}

impl FromStr for ListenAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let invalid = "expected HOST:PORT, such as 127.0.0.1:8766, [::1]:8766 or localhost:0";
        let (host, port) = text.rsplit_once(':').ok_or(invalid)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if host.is_empty() || bare.is_none() && host.contains(':') {
            return Err(invalid);
        }
        Ok(Self { host: bare.unwrap_or(host).to_owned(), port: port.parse().map_err(|_| invalid)? })
    }
}

impl ListenAddress {
    async fn resolve_address(&self) -> Result<SocketAddr, CliError> {
        let invalid = |reason: &str| {
            CliError::new(CliExitCode::Usage, format!("could not listen on {}: {reason}", self.host))
        };
        let mut addresses = lookup_host((self.host.as_str(), self.port)).await;
        let addresses = addresses.as_mut().map_err(|_| invalid("unknown host"))?;
        addresses.next().ok_or_else(|| invalid("the host has no address"))
    }
}

/// Default path of the agent.
pub(crate) const PATH: &str = "/acp";

/// Conditions for a connection.
#[derive(Debug)]
pub(crate) struct ListenOptions {
    /// The token; `None` accepts every client that reaches the address.
    pub(crate) token: Option<ServerToken>,
    /// The path; `None` accepts any.
    pub(crate) path: Option<String>,
    /// Origins of web pages that may connect.
    pub(crate) origins: Vec<String>,
}

impl ListenOptions {
    /// Returns the default options with a token.
    pub(crate) fn with_token(token: ServerToken) -> Self {
        Self { token: Some(token), path: Some(PATH.to_owned()), origins: Vec::new() }
    }

    /// Rejects a public address without a token, and warns of a local one.
    fn check_exposure(&self, address: SocketAddr) -> Result<(), CliError> {
        if self.token.is_some() {
            return Ok(());
        }
        if !address.ip().is_loopback() {
            let error = CliError::new(
                CliExitCode::Usage,
                format!("{} is reachable from other machines, so a token is required", address.ip()),
            );
            return Err(error.with_hint("leave out --no-token, or listen on 127.0.0.1"));
        }
        let warning =
            "warning: no token is required: every program of every user on this machine can drive the agent";
        // A closed stderr is not an error.
        let _ = writeln!(io::stderr(), "{warning}");
        Ok(())
    }
}

/// Serves every client that has the token; `serve` returns when the client leaves or its token is cancelled.
pub(crate) async fn serve_clients<F>(
    listen_address: &ListenAddress,
    listen_options: &ListenOptions,
    serve: impl Fn(LineTransport, CancellationToken) -> F + Send + Sync + 'static,
) -> Result<(), CliError>
where
    F: Future<Output = CloseReason> + Send + 'static,
{
    let address = listen_address.resolve_address().await?;
    listen_options.check_exposure(address)?;
    let failed = |error: io::Error| {
        CliError::new(CliExitCode::Failed, format!("could not listen on {address}: {error}"))
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    if !address.ip().is_loopback() {
        let warning = format!(
            "warning: {address} is reachable from other machines without encryption: the token can be read on the network"
        );
        // A closed stderr is not an error.
        let _ = writeln!(io::stderr(), "{warning}");
    }
    for origin in &listen_options.origins {
        let _ = writeln!(io::stderr(), "warning: web pages of {origin} can drive the agent");
    }
    let name = listen_address.host.parse::<IpAddr>().is_err().then(|| listen_address.host.clone());
    let admission = AdmissionPolicy {
        token: listen_options.token.as_ref().map(|key| key.bearer.clone()),
        path: listen_options.path.clone(),
        origins: listen_options.origins.clone(),
    };
    let socket_listener = SocketListener { listener, name, admission };
    let url = socket_listener.url().map_err(failed)?;
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let serving = async {
        token::announce_server(&url, listen_options.token.as_ref())?;
        let client_cancel = cancel.clone();
        crow_acp::serve_socket(socket_listener, cancel, move |lines| serve(lines, client_cancel.clone()))
            .await;
        Ok(())
    };
    agent::serve_until_stopped(Box::pin(serving), &stop).await
}
