//! The client's end: connects to a remote agent.

use std::{error::Error as _, io, net::IpAddr, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
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
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    close_reason::CloseReason,
    limits::{DEFAULT_PATH, PING_INTERVAL, websocket_config},
    message_pump::{CountingStream, SILENT_PINGS_MAX, carry_messages},
    queue::queued_transport,
    streamable_http::carry_posts,
};
use crate::transport::LineTransport;

/// Unused connections are closed before common servers close them, which is after five seconds: a request must not meet
/// the end of its connection.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(4);

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
    #[error("{host} cannot be reached: does it speak TLS? try {plain}:// ({reason})")]
    NotTls {
        host: String,
        /// The scheme without encryption.
        plain: &'static str,
        reason: String,
    },
    /// The server rejected the connection.
    #[error("{host} rejected the connection: {}", describe_status(*status, "it did not switch to WebSocket"))]
    Rejected { host: String, status: u16 },
    /// The server rejected a message or an event stream.
    #[error("{host} rejected the connection: {}", describe_status(*status, "it did not accept a message"))]
    RejectedMessage { host: String, status: u16 },
    /// Not a server of the HTTP transport.
    #[error("{host} does not speak ACP over HTTP: {reason}")]
    NotStreamableHttp { host: String, reason: &'static str },
    /// Not a WebSocket server.
    #[error("{host} does not speak WebSocket: {reason}")]
    NotWebSocket { host: String, reason: String },
}

fn describe_status(status: u16, otherwise: &str) -> String {
    let explanation = match status {
        300..=399 => "it redirects elsewhere, and redirects are not followed; use the final address",
        401 => "the token was rejected",
        403 => "this client is not permitted",
        404 => "there is no agent at this path",
        426 => "it supports another version of WebSocket",
        503 => "it has too many clients, or is not ready",
        _ => otherwise,
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
    target.build_headers(headers)?;
    let is_loopback = || {
        let address = target.bare_host().parse::<IpAddr>();
        target.bare_host().eq_ignore_ascii_case("localhost") || address.is_ok_and(|host| host.is_loopback())
    };
    Ok(match (target.is_encrypted, is_loopback()) {
        (true, _) => TransportSecurity::Encrypted,
        (false, true) => TransportSecurity::Loopback,
        (false, false) => TransportSecurity::Unencrypted,
    })
}

/// Connects to a remote agent, until the deadline. Over HTTP the first line connects. The lines end with an error if the
/// agent closes the connection in another way than by finishing. They are carried by one of `tasks`, which ends after
/// them: it tells the agent that its client leaves.
pub async fn connect_socket(
    url: &str,
    headers: &[(String, String)],
    deadline: Instant,
    tasks: &TaskTracker,
) -> Result<LineTransport, ConnectError> {
    let settings = SocketClientSettings {
        ping_interval: PING_INTERVAL,
        load_roots: load_root_certificates,
        tasks: tasks.clone(),
    };
    connect_socket_with(url, headers, deadline, settings).await
}

/// The client's settings, which tests replace.
#[derive(Debug, Clone)]
pub(super) struct SocketClientSettings {
    pub(super) ping_interval: Duration,
    pub(super) load_roots: RootsLoader,
    pub(super) tasks: TaskTracker,
}

pub(super) async fn connect_socket_with(
    url: &str,
    headers: &[(String, String)],
    deadline: Instant,
    settings: SocketClientSettings,
) -> Result<LineTransport, ConnectError> {
    let target = SocketTarget::parse(url)?;
    let headers = target.build_headers(headers)?;
    if target.protocol == SocketProtocol::Http {
        return target.open_link(headers, deadline, settings).await;
    }
    let request = target.build_request(headers)?;
    let connection = Box::pin(target.open_connection(request, settings));
    match timeout_at(deadline, connection).await {
        Ok(connected) => connected,
        Err(_) => Err(ConnectError::TimedOut { host: target.host }),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketProtocol {
    WebSocket,
    Http,
}

/// The target of a connection.
pub(super) struct SocketTarget {
    uri: Uri,
    protocol: SocketProtocol,
    is_encrypted: bool,
    /// With its port, as shown to users.
    host: String,
    port: u16,
}

impl SocketTarget {
    fn parse(url: &str) -> Result<Self, ConnectError> {
        let invalid_address = ConnectError::InvalidAddress;
        let uri: Uri = url.parse().map_err(|_| invalid_address("the address is not a URL"))?;
        let (protocol, is_encrypted) = match uri.scheme_str() {
            Some("ws") => (SocketProtocol::WebSocket, false),
            Some("wss") => (SocketProtocol::WebSocket, true),
            Some("http") => (SocketProtocol::Http, false),
            Some("https") => (SocketProtocol::Http, true),
            _ => {
                return Err(invalid_address(
                    "the address begins with none of ws://, wss://, http://, https://",
                ));
            }
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
        let port = match (authority.port(), is_encrypted) {
            (Some(port), _) => port.as_u16(),
            (None, _) if authority.as_str() != authority.host() => {
                return Err(invalid_address("the port is invalid"));
            }
            (None, false) => 80,
            (None, true) => 443,
        };
        let host = format!("{}:{port}", authority.host());
        let path = match (uri.path(), uri.query()) {
            ("" | "/", None) => DEFAULT_PATH.to_owned(),
            ("" | "/", Some(query)) => format!("{DEFAULT_PATH}?{query}"),
            _ => return Ok(Self { uri, protocol, is_encrypted, host, port }),
        };
        let mut parts = uri.into_parts();
        parts.path_and_query = Some(path.parse().map_err(|_| invalid_address("the address is not a URL"))?);
        let uri = Uri::from_parts(parts).map_err(|_| invalid_address("the address is not a URL"))?;
        Ok(Self { uri, protocol, is_encrypted, host, port })
    }

    /// Returns the headers of the configuration.
    fn build_headers(&self, headers: &[(String, String)]) -> Result<HeaderMap, ConnectError> {
        // The transport sets these itself.
        let is_reserved = |name: &str| match self.protocol {
            SocketProtocol::WebSocket => name.starts_with("sec-websocket-"),
            SocketProtocol::Http => {
                ["acp-connection-id", "acp-session-id", "accept", "content-type"].contains(&name)
                    || ["content-length", "transfer-encoding"].contains(&name)
            }
        };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let invalid_header = || ConnectError::InvalidHeader(name.clone());
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid_header())?;
            if is_reserved(header.as_str()) || ["host", "connection", "upgrade"].contains(&header.as_str()) {
                return Err(invalid_header());
            }
            let mut value = HeaderValue::from_str(value).map_err(|_| invalid_header())?;
            value.set_sensitive(true);
            map.append(header, value);
        }
        Ok(map)
    }

    fn build_request(&self, headers: HeaderMap) -> Result<Request, ConnectError> {
        let request = self.uri.clone().into_client_request();
        let mut request = request.map_err(|_| ConnectError::InvalidAddress("the address is not a URL"))?;
        request.headers_mut().extend(headers);
        Ok(request)
    }

    fn bare_host(&self) -> &str {
        self.uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    fn unreachable_error(&self, reason: &io::Error) -> ConnectError {
        ConnectError::Unreachable { host: self.host.clone(), reason: reason.to_string() }
    }

    fn tls_error(&self, mut error: &io::Error) -> ConnectError {
        while let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<io::Error>()) {
            error = inner;
        }
        let reason = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        match reason {
            Some(rustls::Error::InvalidMessage(_)) => {
                let plain = match self.protocol {
                    SocketProtocol::WebSocket => "ws",
                    SocketProtocol::Http => "http",
                };
                ConnectError::NotTls { host: self.host.clone(), plain, reason: error.to_string() }
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

    pub(super) fn rejected_message(&self, status: StatusCode) -> ConnectError {
        ConnectError::RejectedMessage { host: self.host.clone(), status: status.as_u16() }
    }

    pub(super) fn invalid_answer(&self, reason: &'static str) -> ConnectError {
        ConnectError::NotStreamableHttp { host: self.host.clone(), reason }
    }

    /// Returns why a request failed, by the deepest error of the system if there is one.
    pub(super) fn request_error(&self, error: &reqwest::Error) -> ConnectError {
        let causes: Vec<_> = std::iter::successors(error.source(), |&cause| cause.source()).collect();
        match causes.iter().rev().find_map(|cause| cause.downcast_ref::<io::Error>()) {
            Some(error) => self.tls_error(error),
            None => {
                // The outer ones have the URL.
                let reason =
                    causes.last().map_or_else(|| "the request failed".to_owned(), ToString::to_string);
                ConnectError::Unreachable { host: self.host.clone(), reason }
            }
        }
    }

    /// Prepares a connection over HTTP: the first line is its first request.
    async fn open_link(
        self,
        headers: HeaderMap,
        deadline: Instant,
        SocketClientSettings { ping_interval, load_roots, tasks }: SocketClientSettings,
    ) -> Result<LineTransport, ConnectError> {
        let invalid = |_| ConnectError::InvalidAddress("the address is not a URL");
        let url = reqwest::Url::parse(&self.uri.to_string()).map_err(invalid)?;
        let load_roots = if self.is_encrypted { load_roots } else { RootCertStore::empty };
        let tls = tls_config(load_roots).await.map_err(|error| self.unreachable_error(&error))?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(deadline.saturating_duration_since(Instant::now()))
            .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
            .tcp_nodelay(true)
            .tcp_keepalive(ping_interval)
            .tcp_keepalive_interval(ping_interval)
            .tcp_keepalive_retries(SILENT_PINGS_MAX)
            .build();
        let client = client.map_err(|error| self.request_error(&error))?;
        let (lines, queues) = queued_transport();
        // It ends with the lines.
        tasks.spawn(carry_posts(self, client, url, headers, queues));
        Ok(lines)
    }

    async fn open_connection(
        &self,
        request: Request,
        settings: SocketClientSettings,
    ) -> Result<LineTransport, ConnectError> {
        let stream = TcpStream::connect((self.bare_host(), self.port)).await;
        let stream = stream.map_err(|error| self.unreachable_error(&error))?;
        stream.set_nodelay(true).map_err(|error| self.unreachable_error(&error))?;
        match self.is_encrypted {
            false => self.upgrade_stream(stream, request, settings).await,
            true => {
                let tls =
                    tls_config(settings.load_roots).await.map_err(|error| self.unreachable_error(&error))?;
                let tls = TlsConnector::from(Arc::new(tls));
                let name = ServerName::try_from(self.bare_host().to_owned());
                let name = name.map_err(|_| ConnectError::InvalidAddress("the address has no host"))?;
                let stream = tls.connect(name, stream).await.map_err(|error| self.tls_error(&error))?;
                self.upgrade_stream(stream, request, settings).await
            }
        }
    }

    async fn upgrade_stream<S>(
        &self,
        stream: S,
        request: Request,
        SocketClientSettings { ping_interval, tasks, .. }: SocketClientSettings,
    ) -> Result<LineTransport, ConnectError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let handshake =
            client_async_with_config(request, CountingStream::new(stream), Some(websocket_config())).await;
        let (socket, _) = handshake.map_err(|error| self.handshake_error(&error))?;
        let (lines, queues) = queued_transport();
        // It ends with the lines.
        tasks.spawn(async move {
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

async fn tls_config(load_roots: RootsLoader) -> io::Result<ClientConfig> {
    let roots = tokio::task::spawn_blocking(load_roots).await.map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(config.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth())
}
