//! Opens a WebSocket for clients, says where it is, and serves until the system asks for the end. Knows nothing of
//! what is served.

use std::{
    io::{self, Write},
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use crow_acp::{Admission, Farewell, Lines, SocketDoor};
use tokio::net::{TcpListener, lookup_host};
use tokio_util::sync::CancellationToken;

use crate::{
    agent,
    failure::{Code, Exit},
    token::{self, Key},
};

/// Where to listen.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// An address, or a name of this machine.
    pub(crate) host: String,
    /// 0 is any.
    pub(crate) port: u16,
}

impl FromStr for Place {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let wrong = "expected HOST:PORT, such as 127.0.0.1:8766, [::1]:8766 or localhost:0";
        let (host, port) = text.rsplit_once(':').ok_or(wrong)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        if host.is_empty() || bare.is_none() && host.contains(':') {
            return Err(wrong);
        }
        Ok(Self { host: bare.unwrap_or(host).to_owned(), port: port.parse().map_err(|_| wrong)? })
    }
}

impl Place {
    async fn address(&self) -> Result<SocketAddr, Exit> {
        let wrong = |why: &str| Exit::new(Code::Usage, format!("could not listen on {}: {why}", self.host));
        let mut found = lookup_host((self.host.as_str(), self.port)).await;
        let found = found.as_mut().map_err(|_| wrong("there is no such host"))?;
        found.next().ok_or_else(|| wrong("it has no address"))
    }
}

/// Where the agent is unless another path was named.
pub(crate) const PATH: &str = "/acp";

/// How clients come in.
#[derive(Debug)]
pub(crate) struct Entrance {
    /// The key; nothing where everyone who reaches the address may come in.
    pub(crate) key: Option<Key>,
    /// The path; any without one.
    pub(crate) path: Option<String>,
    /// The origins whose pages may come.
    pub(crate) origins: Vec<String>,
}

impl Entrance {
    /// The usual one, behind a key.
    pub(crate) fn behind(key: Key) -> Self {
        Self { key: Some(key), path: Some(PATH.to_owned()), origins: Vec::new() }
    }

    /// Refuses to open a door without a key to other machines, and says aloud what an open one means.
    fn check(&self, address: SocketAddr) -> Result<(), Exit> {
        if self.key.is_some() {
            return Ok(());
        }
        if !address.ip().is_loopback() {
            let exit = Exit::new(
                Code::Usage,
                format!("{} can be reached from other machines, so a token is needed", address.ip()),
            );
            return Err(exit.with_hint("leave out --no-token, or listen on 127.0.0.1"));
        }
        let warning =
            "warning: no token is asked for: every program on this machine, of any user, can drive the agent";
        // When stderr is gone there is nobody left to tell.
        let _ = writeln!(io::stderr(), "{warning}");
        Ok(())
    }
}

/// Serves every client that knows the key; `serve` ends when the client leaves or the token says so.
pub(crate) async fn serve<F>(
    place: &Place,
    entrance: &Entrance,
    serve: impl Fn(Lines, CancellationToken) -> F + Send + Sync + 'static,
) -> Result<(), Exit>
where
    F: Future<Output = Farewell> + Send + 'static,
{
    let address = place.address().await?;
    entrance.check(address)?;
    let refused =
        |error: io::Error| Exit::new(Code::Failed, format!("could not listen on {address}: {error}"));
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    if !address.ip().is_loopback() {
        let warning = format!(
            "warning: {address} can be reached from other machines, and nothing is encrypted: whoever reads along has the token"
        );
        // When stderr is gone there is nobody left to tell.
        let _ = writeln!(io::stderr(), "{warning}");
    }
    for origin in &entrance.origins {
        let _ = writeln!(io::stderr(), "warning: pages of {origin} can drive the agent");
    }
    let name = place.host.parse::<IpAddr>().is_err().then(|| place.host.clone());
    let admission = Admission {
        token: entrance.key.as_ref().map(|key| key.token.clone()),
        path: entrance.path.clone(),
        origins: entrance.origins.clone(),
    };
    let door = SocketDoor { listener, name, admission };
    let url = door.url().map_err(refused)?;
    let cut = CancellationToken::new();
    let stop = cut.clone();
    let listened = async {
        token::announce(&url, entrance.key.as_ref())?;
        let ends = cut.clone();
        crow_acp::listen(door, cut, move |lines| serve(lines, ends.clone())).await;
        Ok(())
    };
    agent::until_stopped(Box::pin(listened), &stop).await
}
