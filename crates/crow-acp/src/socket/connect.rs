//! The client's end: goes to an agent elsewhere.

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Uri};
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::{Instant, timeout_at},
};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::{
    client_async_with_config,
    tungstenite::{Error, client::IntoClientRequest, handshake::client::Request},
};
use tokio_util::sync::CancellationToken;

use super::{
    PATH, PING,
    carry::{Counted, carry},
    config, ends,
    farewell::Farewell,
};
use crate::transport::Lines;

/// Why an agent elsewhere could not be reached. None of it holds a header or what stands behind the path.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is none.
    #[error("{0}")]
    BadAddress(&'static str),
    /// A header cannot be sent.
    #[error("the header {0:?} cannot be sent, it has a name or characters that may not stand there")]
    BadHeader(String),
    /// Nobody is there.
    #[error("{host} cannot be reached: {why}")]
    Unreachable {
        /// Where.
        host: String,
        /// What the system says.
        why: String,
    },
    /// Nobody answers.
    #[error("{host} does not answer in time")]
    TimedOut {
        /// Where.
        host: String,
    },
    /// What is there was spoken to with encryption, and does not speak it.
    #[error("{host} cannot be reached: does it speak TLS? try ws:// ({why})")]
    NoTls {
        /// Where.
        host: String,
        /// What it did instead.
        why: String,
    },
    /// The server does not want this client.
    #[error("{host} refused the connection: {}", meaning(*status))]
    Refused {
        /// Where.
        host: String,
        /// With which status.
        status: u16,
    },
    /// Something else is there.
    #[error("{host} does not speak WebSocket: {why}")]
    NoSocket {
        /// Where.
        host: String,
        /// How that is known.
        why: String,
    },
}

fn meaning(status: u16) -> String {
    let what = match status {
        300..=399 => "it leads elsewhere, and redirects are not followed; name the place itself",
        401 => "the token was refused",
        403 => "this client is not let in",
        404 => "there is no agent at this path",
        426 => "it speaks another version of WebSocket",
        503 => "it has too many clients, or is not ready",
        _ => "it did not switch to WebSocket",
    };
    format!("{what} (HTTP {status})")
}

/// Who may read along on the way to an agent elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Nobody: it is encrypted.
    Encrypted,
    /// Nobody elsewhere: it stays on this machine.
    Here,
    /// Everybody.
    Open,
}

/// Checks all that can be checked of an address without going there.
pub fn way_to(url: &str, headers: &[(String, String)]) -> Result<Way, ConnectError> {
    let target = Target::parse(url)?;
    target.request(headers)?;
    let is_here = || {
        let address = target.bare_host().parse::<IpAddr>();
        target.bare_host().eq_ignore_ascii_case("localhost") || address.is_ok_and(|host| host.is_loopback())
    };
    Ok(match target.scheme {
        Scheme::Encrypted => Way::Encrypted,
        Scheme::Plain if is_here() => Way::Here,
        Scheme::Plain => Way::Open,
    })
}

/// Connects to an agent elsewhere, until the deadline. The lines end with an error that says why when the agent closes
/// the connection otherwise than because all was said.
pub async fn connect(
    url: &str,
    headers: &[(String, String)],
    deadline: Instant,
) -> Result<Lines, ConnectError> {
    connect_with(url, headers, deadline, (PING, known_roots)).await
}

pub(super) async fn connect_with(
    url: &str,
    headers: &[(String, String)],
    deadline: Instant,
    (ping, roots): (Duration, Roots),
) -> Result<Lines, ConnectError> {
    let target = Target::parse(url)?;
    let request = target.request(headers)?;
    let connecting = Box::pin(target.go(request, (ping, roots)));
    match timeout_at(deadline, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(ConnectError::TimedOut { host: target.host }),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Plain,
    Encrypted,
}

/// Where to go.
struct Target {
    uri: Uri,
    scheme: Scheme,
    /// With its port, as people are told.
    host: String,
    port: u16,
}

impl Target {
    fn parse(url: &str) -> Result<Self, ConnectError> {
        let bad = ConnectError::BadAddress;
        let uri: Uri = url.parse().map_err(|_| bad("the address is no URL"))?;
        let scheme = match uri.scheme_str() {
            Some("ws") => Scheme::Plain,
            Some("wss") => Scheme::Encrypted,
            _ => return Err(bad("the address begins with neither ws:// nor wss://")),
        };
        let Some(authority) = uri.authority().cloned().filter(|authority| !authority.host().is_empty())
        else {
            return Err(bad("the address names no host"));
        };
        if authority.as_str().contains('@') {
            return Err(bad("the address holds a name or password; put the token into a header instead"));
        }
        let port = match (authority.port(), scheme) {
            (Some(port), _) => port.as_u16(),
            (None, _) if authority.as_str() != authority.host() => return Err(bad("the port is none")),
            (None, Scheme::Plain) => 80,
            (None, Scheme::Encrypted) => 443,
        };
        let host = format!("{}:{port}", authority.host());
        let path = match (uri.path(), uri.query()) {
            ("" | "/", None) => PATH.to_owned(),
            ("" | "/", Some(query)) => format!("{PATH}?{query}"),
            _ => return Ok(Self { uri, scheme, host, port }),
        };
        let mut parts = uri.into_parts();
        parts.path_and_query = Some(path.parse().map_err(|_| bad("the address is no URL"))?);
        let uri = Uri::from_parts(parts).map_err(|_| bad("the address is no URL"))?;
        Ok(Self { uri, scheme, host, port })
    }

    fn request(&self, headers: &[(String, String)]) -> Result<Request, ConnectError> {
        let request = self.uri.clone().into_client_request();
        let mut request = request.map_err(|_| ConnectError::BadAddress("the address is no URL"))?;
        for (name, value) in headers {
            let bad = || ConnectError::BadHeader(name.clone());
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            // What the handshake says itself.
            if header.as_str().starts_with("sec-websocket-")
                || ["host", "connection", "upgrade"].contains(&header.as_str())
            {
                return Err(bad());
            }
            let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
            value.set_sensitive(true);
            request.headers_mut().append(header, value);
        }
        Ok(request)
    }

    fn bare_host(&self) -> &str {
        self.uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    fn unreachable(&self, why: &io::Error) -> ConnectError {
        ConnectError::Unreachable { host: self.host.clone(), why: why.to_string() }
    }

    fn no_encryption(&self, error: &io::Error) -> ConnectError {
        let why = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        match why {
            Some(rustls::Error::InvalidMessage(_)) => {
                ConnectError::NoTls { host: self.host.clone(), why: error.to_string() }
            }
            Some(_) | None => self.unreachable(error),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is one to us")]
    fn unwanted(&self, error: &Error) -> ConnectError {
        let host = self.host.clone();
        match error {
            Error::Http(response) => ConnectError::Refused { host, status: response.status().as_u16() },
            Error::Io(error) => self.unreachable(error),
            other => ConnectError::NoSocket { host, why: other.to_string() },
        }
    }

    async fn go(&self, request: Request, (ping, roots): (Duration, Roots)) -> Result<Lines, ConnectError> {
        let stream = TcpStream::connect((self.bare_host(), self.port)).await;
        let stream = stream.map_err(|error| self.unreachable(&error))?;
        stream.set_nodelay(true).map_err(|error| self.unreachable(&error))?;
        match self.scheme {
            Scheme::Plain => self.shake(stream, request, ping).await,
            Scheme::Encrypted => {
                let tls = tls(roots).await.map_err(|error| self.unreachable(&error))?;
                let name = ServerName::try_from(self.bare_host().to_owned());
                let name = name.map_err(|_| ConnectError::BadAddress("the address names no host"))?;
                let stream = tls.connect(name, stream).await.map_err(|error| self.no_encryption(&error))?;
                self.shake(stream, request, ping).await
            }
        }
    }

    async fn shake<S>(&self, stream: S, request: Request, ping: Duration) -> Result<Lines, ConnectError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let shaken = client_async_with_config(request, Counted::new(stream), Some(config())).await;
        let (socket, _) = shaken.map_err(|error| self.unwanted(&error))?;
        let (lines, ends) = ends();
        // It ends with the lines.
        tokio::spawn(async move {
            carry(socket, ends, ping, std::future::ready(Farewell::Over), &CancellationToken::new()).await;
        });
        Ok(lines)
    }
}

/// Who is trusted to say who a server is; reading them takes some milliseconds.
type Roots = fn() -> RootCertStore;

/// Trusts the certificates that the system trusts, or well-known ones where it has none.
pub(super) fn known_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    }
    roots
}

async fn tls(roots: Roots) -> io::Result<TlsConnector> {
    let roots = tokio::task::spawn_blocking(roots).await.map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
