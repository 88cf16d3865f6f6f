//! The client's end: connects to a remote agent.

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
    close_reason::CloseReason,
    limits::{DEFAULT_PATH, PING_INTERVAL, websocket_config},
    message_pump::{CountingStream, carry_messages},
    queue::queued_transport,
};
use crate::transport::LineTransport;

/// The reason why a remote agent could not be reached. Contains no header and nothing after the path of the URL.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL is invalid.
    #[error("{0}")]
    InvalidAddress(&'static str),
    /// A header cannot be sent.
    #[error("the header {0:?} cannot be sent: its name or a character in it is not permitted")]
    InvalidHeader(String),
    /// The host cannot be reached.
    #[error("{host} cannot be reached: {reason}")]
    Unreachable {
        host: String,
        /// The system's message.
        reason: String,
    },
    /// No answer.
    #[error("{host} does not answer in time")]
    TimedOut { host: String },
    /// The TLS handshake failed.
    #[error("{host} cannot be reached: does it speak TLS? try ws:// ({reason})")]
    NotTls { host: String, reason: String },
    /// The server rejected the connection.
    #[error("{host} rejected the connection: {}", describe_status(*status))]
    Rejected { host: String, status: u16 },
    /// Not a WebSocket server.
    #[error("{host} does not speak WebSocket: {reason}")]
    NotWebSocket { host: String, reason: String },
}

fn describe_status(status: u16) -> String {
    let explanation = match status {
        300..=399 => "it redirects elsewhere, and redirects are not followed; use the final address",
        401 => "the token was rejected",
        403 => "this client is not permitted",
        404 => "there is no agent at this path",
        426 => "it supports another version of WebSocket",
        503 => "it has too many clients, or is not ready",
        _ => "it did not switch to WebSocket",
    };
    format!("{explanation} (HTTP {status})")
}

/// The parties that can read the traffic to a remote agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportSecurity {
    /// Only the peer: it is encrypted.
    Encrypted,
    /// Only this machine: it is local.
    Loopback,
    /// Everyone on the network.
    Unencrypted,
}

/// Validates a URL and headers without connecting.
pub fn classify_address(url: &str, headers: &[(String, String)]) -> Result<TransportSecurity, ConnectError> {
    let target = SocketTarget::parse(url)?;
    target.build_request(headers)?;
    let is_loopback = || {
        let address = target.bare_host().parse::<IpAddr>();
        target.bare_host().eq_ignore_ascii_case("localhost") || address.is_ok_and(|host| host.is_loopback())
    };
    Ok(match target.scheme {
        SocketScheme::Encrypted => TransportSecurity::Encrypted,
        SocketScheme::Plain if is_loopback() => TransportSecurity::Loopback,
        SocketScheme::Plain => TransportSecurity::Unencrypted,
    })
}

/// Connects to a remote agent, until the deadline. The lines end with an error if the agent closes the connection in
/// another way than by finishing.
pub async fn connect_socket(
    url: &str,
    headers: &[(String, String)],
    deadline: Instant,
) -> Result<LineTransport, ConnectError> {
    let settings = SocketClientSettings { ping_interval: PING_INTERVAL, load_roots: load_root_certificates };
    connect_socket_with(url, headers, deadline, settings).await
}

/// The client's settings, which tests replace.
#[derive(Debug, Clone, Copy)]
pub(super) struct SocketClientSettings {
    pub(super) ping_interval: Duration,
    pub(super) load_roots: RootsLoader,
}

pub(super) async fn connect_socket_with(
    url: &str,
    headers: &[(String, String)],
    deadline: Instant,
    settings: SocketClientSettings,
) -> Result<LineTransport, ConnectError> {
    let target = SocketTarget::parse(url)?;
    let request = target.build_request(headers)?;
    let connection = Box::pin(target.open_connection(request, settings));
    match timeout_at(deadline, connection).await {
        Ok(connected) => connected,
        Err(_) => Err(ConnectError::TimedOut { host: target.host }),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketScheme {
    Plain,
    Encrypted,
}

/// The target of a connection.
struct SocketTarget {
    uri: Uri,
    scheme: SocketScheme,
    /// With its port, as shown to users.
    host: String,
    port: u16,
}

impl SocketTarget {
    fn parse(url: &str) -> Result<Self, ConnectError> {
        let invalid_address = ConnectError::InvalidAddress;
        let uri: Uri = url.parse().map_err(|_| invalid_address("the address is not a URL"))?;
        let scheme = match uri.scheme_str() {
            Some("ws") => SocketScheme::Plain,
            Some("wss") => SocketScheme::Encrypted,
            _ => return Err(invalid_address("the address begins with neither ws:// nor wss://")),
        };
        let Some(authority) = uri.authority().cloned().filter(|authority| !authority.host().is_empty())
        else {
            return Err(invalid_address("the address has no host"));
        };
        if authority.as_str().contains('@') {
            return Err(invalid_address(
                "the address contains a name or password; put the token into a header instead",
            ));
        }
        let port = match (authority.port(), scheme) {
            (Some(port), _) => port.as_u16(),
            (None, _) if authority.as_str() != authority.host() => {
                return Err(invalid_address("the port is invalid"));
            }
            (None, SocketScheme::Plain) => 80,
            (None, SocketScheme::Encrypted) => 443,
        };
        let host = format!("{}:{port}", authority.host());
        let path = match (uri.path(), uri.query()) {
            ("" | "/", None) => DEFAULT_PATH.to_owned(),
            ("" | "/", Some(query)) => format!("{DEFAULT_PATH}?{query}"),
            _ => return Ok(Self { uri, scheme, host, port }),
        };
        let mut parts = uri.into_parts();
        parts.path_and_query = Some(path.parse().map_err(|_| invalid_address("the address is not a URL"))?);
        let uri = Uri::from_parts(parts).map_err(|_| invalid_address("the address is not a URL"))?;
        Ok(Self { uri, scheme, host, port })
    }

    fn build_request(&self, headers: &[(String, String)]) -> Result<Request, ConnectError> {
        let request = self.uri.clone().into_client_request();
        let mut request = request.map_err(|_| ConnectError::InvalidAddress("the address is not a URL"))?;
        for (name, value) in headers {
            let invalid_header = || ConnectError::InvalidHeader(name.clone());
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid_header())?;
            // The handshake sets these itself.
            if header.as_str().starts_with("sec-websocket-")
                || ["host", "connection", "upgrade"].contains(&header.as_str())
            {
                return Err(invalid_header());
            }
            let mut value = HeaderValue::from_str(value).map_err(|_| invalid_header())?;
            value.set_sensitive(true);
            request.headers_mut().append(header, value);
        }
        Ok(request)
    }

    fn bare_host(&self) -> &str {
        self.uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    fn unreachable_error(&self, reason: &io::Error) -> ConnectError {
        ConnectError::Unreachable { host: self.host.clone(), reason: reason.to_string() }
    }

    fn tls_error(&self, error: &io::Error) -> ConnectError {
        let reason = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        match reason {
            Some(rustls::Error::InvalidMessage(_)) => {
                ConnectError::NotTls { host: self.host.clone(), reason: error.to_string() }
            }
            Some(_) | None => self.unreachable_error(error),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is one to us")]
    fn handshake_error(&self, error: &Error) -> ConnectError {
        let host = self.host.clone();
        match error {
            Error::Http(response) => ConnectError::Rejected { host, status: response.status().as_u16() },
            Error::Io(error) => self.unreachable_error(error),
            other => ConnectError::NotWebSocket { host, reason: other.to_string() },
        }
    }

    async fn open_connection(
        &self,
        request: Request,
        SocketClientSettings { ping_interval, load_roots }: SocketClientSettings,
    ) -> Result<LineTransport, ConnectError> {
        let stream = TcpStream::connect((self.bare_host(), self.port)).await;
        let stream = stream.map_err(|error| self.unreachable_error(&error))?;
        stream.set_nodelay(true).map_err(|error| self.unreachable_error(&error))?;
        match self.scheme {
            SocketScheme::Plain => self.upgrade_stream(stream, request, ping_interval).await,
            SocketScheme::Encrypted => {
                let tls = tls_connector(load_roots).await.map_err(|error| self.unreachable_error(&error))?;
                let name = ServerName::try_from(self.bare_host().to_owned());
                let name = name.map_err(|_| ConnectError::InvalidAddress("the address has no host"))?;
                let stream = tls.connect(name, stream).await.map_err(|error| self.tls_error(&error))?;
                self.upgrade_stream(stream, request, ping_interval).await
            }
        }
    }

    async fn upgrade_stream<S>(
        &self,
        stream: S,
        request: Request,
        ping_interval: Duration,
    ) -> Result<LineTransport, ConnectError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let handshake =
            client_async_with_config(request, CountingStream::new(stream), Some(websocket_config())).await;
        let (socket, _) = handshake.map_err(|error| self.handshake_error(&error))?;
        let (lines, queues) = queued_transport();
        // It ends with the lines.
        tokio::spawn(async move {
            carry_messages(
                socket,
                queues,
                ping_interval,
                std::future::ready(CloseReason::Normal),
                &CancellationToken::new(),
            )
            .await;
        });
        Ok(lines)
    }
}

/// Loads the trusted root certificates, which takes some milliseconds.
pub(super) type RootsLoader = fn() -> RootCertStore;

/// Returns the system's certificates, or the well-known ones if it has none.
pub(super) fn load_root_certificates() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    }
    roots
}

async fn tls_connector(load_roots: RootsLoader) -> io::Result<TlsConnector> {
    let roots = tokio::task::spawn_blocking(load_roots).await.map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
