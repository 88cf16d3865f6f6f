//! Who is let in: what every door of ours on the network asks.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, header, uri::Authority};
use tokio::net::TcpListener;

use super::PATH;

/// What whoever comes in has to say: `Authorization: Bearer` and this.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(String);

impl std::fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl BearerToken {
    /// Takes a text as a token.
    pub fn new(token: String) -> Self {
        Self(token)
    }

    /// Tells whether a request brings it.
    pub fn is_in_headers(&self, headers: &HeaderMap) -> bool {
        let said = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
        let Some((scheme, said)) = said.split_at_checked("Bearer ".len()) else { return false };
        scheme.eq_ignore_ascii_case(b"Bearer ") && is_equal_constant_time(said, self.0.as_bytes())
    }
}

/// Compares in a time that tells nothing of where they differ. Nobody brings an empty token.
fn is_equal_constant_time(said: &[u8], token: &[u8]) -> bool {
    let differences = said.iter().zip(token).fold(0, |differences, (a, b)| differences | (a ^ b));
    said.len() == token.len() && !token.is_empty() && differences == 0
}

/// Whom a door lets in.
#[derive(Debug, Clone)]
pub struct AdmissionPolicy {
    /// What a visitor has to bring; nothing where everyone who reaches the door may come in.
    pub token: Option<BearerToken>,
    /// The path that it has to ask for; any without one.
    pub path: Option<String>,
    /// The origins whose pages a browser may come from.
    pub origins: Vec<String>,
}

impl AdmissionPolicy {
    /// Lets in whoever brings a token, asks for the usual path and is no page of a browser.
    pub fn with_token(token: BearerToken) -> Self {
        Self { token: Some(token), path: Some(PATH.to_owned()), origins: Vec::new() }
    }

    /// Whether a request comes from no page, or from one of an origin that may come.
    pub(super) fn is_origin_allowed(&self, headers: &HeaderMap) -> bool {
        let is_allowed = |said: &HeaderValue| {
            self.origins.iter().any(|origin| said.as_bytes().eq_ignore_ascii_case(origin.as_bytes()))
        };
        headers.get_all(header::ORIGIN).iter().all(is_allowed)
    }
}

/// A door with its key.
#[derive(Debug)]
pub struct SocketListener {
    /// Where it is.
    pub listener: TcpListener,
    /// The name it was opened under, when that is no address: clients may call it so.
    pub name: Option<String>,
    /// Whom it lets in.
    pub admission: AdmissionPolicy,
}

impl SocketListener {
    /// The address that clients are told.
    pub fn url(&self) -> std::io::Result<String> {
        let here = self.listener.local_addr()?;
        let path = self.admission.path.as_deref().unwrap_or("/");
        Ok(match &self.name {
            Some(name) => format!("ws://{name}:{}{path}", here.port()),
            None => format!("ws://{here}{path}"),
        })
    }
}

/// Tells whether a request calls the server by a name that nobody can make lead here: a page in a browser that was lured
/// here calls it by another. The port is the client's affair, which may come through a tunnel.
pub(super) fn is_host_allowed(headers: &HeaderMap, name: Option<&str>) -> bool {
    let mut said = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (said.next(), said.next()) else { return false };
    let Ok(host) = Authority::try_from(host.as_bytes()) else { return false };
    let bare = host.host().trim_start_matches('[').trim_end_matches(']');
    let is_known = || ["localhost"].into_iter().chain(name).any(|name| bare.eq_ignore_ascii_case(name));
    !host.as_str().contains('@') && (bare.parse::<IpAddr>().is_ok() || is_known())
}
