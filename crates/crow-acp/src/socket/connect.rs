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
    carry::{CountingStream, carry_messages},
    farewell::CloseReason,
    queued_transport, websocket_config,
};
use crate::transport::LineTransport;

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
    #[error("{host} refused the connection: {}", describe_status(*status))]
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

fn describe_status(status: u16) -> String {
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
pub enum TransportSecurity {
    /// Nobody: it is encrypted.
    Encrypted,
    /// Nobody elsewhere: it stays on this machine.
    Here,
    /// Everybody.
    Open,
}

/// Checks all that can be checked of an address without going there.
pub fn classify_address(url: &str, headers: &[(String, String)]) -> Result<TransportSecurity, ConnectError> {
    let target = SocketTarget::parse(url)?;
    target.build_request(headers)?;
    let is_here = || {
        let address = target.bare_host().parse::<IpAddr>();
        target.bare_host().eq_ignore_ascii_case("localhost") || address.is_ok_and(|host| host.is_loopback())
    };
    Ok(match target.scheme {
        SocketScheme::Encrypted => TransportSecurity::Encrypted,
        SocketScheme::Plain if is_here() => TransportSecurity::Here,
        SocketScheme::Plain => TransportSecurity::Open,
    })
}

/// Connects to an agent elsewhere, until the deadline. The lines end with an error that says why when the agent closes
/// the connection otherwise than because all was said.
pub async fn connect_socket(
    url: &str,
    headers: &[(String, String)],
    deadline: Instant,
) -> Result<LineTransport, ConnectError> {
    connect_socket_with(url, headers, deadline, (PING, load_root_certificates)).await
}

pub(super) async fn connect_socket_with(
    url: &str,
    headers: &[(String, String)],
    deadline: Instant,
    (ping, roots): (Duration, RootsLoader),
) -> Result<LineTransport, ConnectError> {
    let target = SocketTarget::parse(url)?;
    let request = target.build_request(headers)?;
    let connecting = Box::pin(target.open_connection(request, (ping, roots)));
    match timeout_at(deadline, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(ConnectError::TimedOut { host: target.host }),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketScheme {
    Plain,
    Encrypted,
}

/// Where to go.
struct SocketTarget {
    uri: Uri,
    scheme: SocketScheme,
    /// With its port, as people are told.
    host: String,
    port: u16,
}

impl SocketTarget {
    fn parse(url: &str) -> Result<Self, ConnectError> {
        let bad = ConnectError::BadAddress;
        let uri: Uri = url.parse().map_err(|_| bad("the address is no URL"))?;
        let scheme = match uri.scheme_str() {
            Some("ws") => SocketScheme::Plain,
            Some("wss") => SocketScheme::Encrypted,
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
            (None, SocketScheme::Plain) => 80,
            (None, SocketScheme::Encrypted) => 443,
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

    fn build_request(&self, headers: &[(String, String)]) -> Result<Request, ConnectError> {
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

    fn unreachable_error(&self, why: &io::Error) -> ConnectError {
        ConnectError::Unreachable { host: self.host.clone(), why: why.to_string() }
    }

    fn tls_error(&self, error: &io::Error) -> ConnectError {
        let why = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        match why {
            Some(rustls::Error::InvalidMessage(_)) => {
                ConnectError::NoTls { host: self.host.clone(), why: error.to_string() }
            }
            Some(_) | None => self.unreachable_error(error),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is one to us")]
    fn handshake_error(&self, error: &Error) -> ConnectError {
        let host = self.host.clone();
        match error {
            Error::Http(response) => ConnectError::Refused { host, status: response.status().as_u16() },
            Error::Io(error) => self.unreachable_error(error),
            other => ConnectError::NoSocket { host, why: other.to_string() },
        }
    }

    async fn open_connection(
        &self,
        request: Request,
        (ping, roots): (Duration, RootsLoader),
    ) -> Result<LineTransport, ConnectError> {
        let stream = TcpStream::connect((self.bare_host(), self.port)).await;
        let stream = stream.map_err(|error| self.unreachable_error(&error))?;
        stream.set_nodelay(true).map_err(|error| self.unreachable_error(&error))?;
        match self.scheme {
            SocketScheme::Plain => self.upgrade_stream(stream, request, ping).await,
            SocketScheme::Encrypted => {
                let tls = tls_connector(roots).await.map_err(|error| self.unreachable_error(&error))?;
                let name = ServerName::try_from(self.bare_host().to_owned());
                let name = name.map_err(|_| ConnectError::BadAddress("the address names no host"))?;
                let stream = tls.connect(name, stream).await.map_err(|error| self.tls_error(&error))?;
                self.upgrade_stream(stream, request, ping).await
            }
        }
    }

    async fn upgrade_stream<S>(
        &self,
        stream: S,
        request: Request,
        ping: Duration,
    ) -> Result<LineTransport, ConnectError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let shaken =
            client_async_with_config(request, CountingStream::new(stream), Some(websocket_config())).await;
        let (socket, _) = shaken.map_err(|error| self.handshake_error(&error))?;
        let (lines, ends) = queued_transport();
        // It ends with the lines.
        tokio::spawn(async move {
            carry_messages(
                socket,
                ends,
                ping,
                std::future::ready(CloseReason::Over),
                &CancellationToken::new(),
            )
            .await;
        });
        Ok(lines)
    }
}

/// Who is trusted to say who a server is; reading them takes some milliseconds.
type RootsLoader = fn() -> RootCertStore;

/// Trusts the certificates that the system trusts, or well-known ones where it has none.
pub(super) fn load_root_certificates() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    }
    roots
}

async fn tls_connector(roots: RootsLoader) -> io::Result<TlsConnector> {
    let roots = tokio::task::spawn_blocking(roots).await.map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
