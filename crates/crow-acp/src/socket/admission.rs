//! Admission: the requirements of every listening socket.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, Request, StatusCode, header, uri::Authority};
use tokio::net::TcpListener;

use super::{limits::DEFAULT_PATH, refusal::RequestRefusal};

/// The token that a client must send: `Authorization: Bearer …`.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(String);

impl std::fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl BearerToken {
    /// Wraps a token.
    pub fn new(token: String) -> Self {
        Self(token)
    }

    /// Whether a request contains it.
    pub fn is_in_headers(&self, headers: &HeaderMap) -> bool {
        let credentials = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
        let Some((scheme, credentials)) = credentials.split_at_checked("Bearer ".len()) else { return false };
        scheme.eq_ignore_ascii_case(b"Bearer ") && is_equal_constant_time(credentials, self.0.as_bytes())
    }
}

/// Compares in constant time. An empty token never matches.
fn is_equal_constant_time(presented: &[u8], token: &[u8]) -> bool {
    let differences = presented.iter().zip(token).fold(0, |differences, (a, b)| differences | (a ^ b));
    presented.len() == token.len() && !token.is_empty() && differences == 0
}

/// The requirements for a connection.
#[derive(Debug, Clone)]
pub struct AdmissionPolicy {
    /// The required token; `None` if every client may connect.
    pub token: Option<BearerToken>,
    /// The required path; `None` accepts any.
    pub path: Option<String>,
    /// Permitted origins of browser pages.
    pub origins: Vec<String>,
}

impl AdmissionPolicy {
    /// Requires a token and the default path, and rejects browser pages.
    pub fn with_token(token: BearerToken) -> Self {
        Self { token: Some(token), path: Some(DEFAULT_PATH.to_owned()), origins: Vec::new() }
    }

    /// Checks a request to the server with this name, in an order that tells a stranger as little as possible.
    pub(super) fn check_request<B>(
        &self,
        request: &Request<B>,
        name: Option<&str>,
    ) -> Result<(), RequestRefusal> {
        let headers = request.headers();
        let forbidden = |reason| Err(RequestRefusal::new(StatusCode::FORBIDDEN, reason));
        if !self.is_origin_allowed(headers) {
            return forbidden("browser pages are not permitted");
        }
        if !is_host_allowed(headers, name) {
            return forbidden("this server does not have that host name");
        }
        if self.token.as_ref().is_some_and(|token| !token.is_in_headers(headers)) {
            let refusal = RequestRefusal::new(StatusCode::UNAUTHORIZED, "this server requires its token");
            return Err(refusal.with_header(header::WWW_AUTHENTICATE, "Bearer"));
        }
        if self.path.as_ref().is_some_and(|path| request.uri().path() != path) {
            return Err(RequestRefusal::new(StatusCode::NOT_FOUND, "the agent is at another path"));
        }
        Ok(())
    }

    /// Whether a request has no origin, or a permitted one.
    fn is_origin_allowed(&self, headers: &HeaderMap) -> bool {
        let is_allowed = |said: &HeaderValue| {
            self.origins.iter().any(|origin| said.as_bytes().eq_ignore_ascii_case(origin.as_bytes()))
        };
        headers.get_all(header::ORIGIN).iter().all(is_allowed)
    }
}

/// A listening socket with its policy.
#[derive(Debug)]
pub struct SocketListener {
    pub listener: TcpListener,
    /// The host name it was opened under, if that is no address: clients may use it.
    pub name: Option<String>,
    pub admission: AdmissionPolicy,
}

impl SocketListener {
    /// The URL for clients.
    pub fn url(&self) -> std::io::Result<String> {
        let address = self.listener.local_addr()?;
        let path = self.admission.path.as_deref().unwrap_or("/");
        Ok(match &self.name {
            Some(name) => format!("ws://{name}:{}{path}", address.port()),
            None => format!("ws://{address}{path}"),
        })
    }
}

/// Whether the `Host` of a request is a name that an attacker cannot point to this machine; a malicious page in a
/// browser uses another. The port is ignored, because the client may come through a tunnel.
fn is_host_allowed(headers: &HeaderMap, name: Option<&str>) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Ok(host) = Authority::try_from(host.as_bytes()) else { return false };
    let bare_host = host.host().trim_start_matches('[').trim_end_matches(']');
    let is_known = || ["localhost"].into_iter().chain(name).any(|name| bare_host.eq_ignore_ascii_case(name));
    !host.as_str().contains('@') && (bare_host.parse::<IpAddr>().is_ok() || is_known())
}
