//! HTTP clients for MCP servers: address, headers, redirects.

use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use crow_core::McpServer;
use reqwest::{
    Client, Url,
    header::{HeaderName, HeaderValue},
    redirect::{Attempt, Policy},
};
use rmcp::transport::{
    common::client_side_sse::ExponentialBackoff, streamable_http_client::StreamableHttpClientTransportConfig,
};

use super::{http_client::McpHttpClient, request_authorizer::RequestAuthorizer};
use crate::title::to_title;

/// A redirect from `/mcp` to `/mcp/` is one; more are a loop.
const REDIRECTS_MAX: usize = 3;

/// Failed attempts in a row to resume a response before its call fails. With pauses that double they take half a
/// minute, in which a server that restarts is back.
const RESUME_ATTEMPTS_MAX: usize = 5;

/// The first of these pauses.
const RESUME_PAUSE_MIN: Duration = Duration::from_secs(1);

/// No pause is longer, unless the server asks for it.
const RESUME_PAUSE_MAX: Duration = Duration::from_secs(30);

/// The reason if a server requires authentication.
pub(super) const AUTHENTICATION_REQUIRED: &str = "it requires authentication";

/// Returns the message for a server that rejected the authentication, with what to do about it.
pub(super) fn unauthorized_message(server: &McpServer) -> String {
    if server.transport.has_authorization() {
        return "it rejected the key in its `headers`".to_owned();
    }
    format!(
        "{AUTHENTICATION_REQUIRED}; log in with `crow-cli auth {}`, or set a key in its `headers`",
        to_title(&server.name)
    )
}

/// Builds the client and transport configuration for an address.
pub(super) async fn prepare_transport(
    url: &str,
    headers: &[(String, String)],
    authorizer: Option<RequestAuthorizer>,
) -> Result<(McpHttpClient, StreamableHttpClientTransportConfig), String> {
    let (client, url) = client_for_url(url).await?;
    let headers = parse_headers(headers)?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers);
    config.retry_config = Arc::new(resume_policy());
    Ok((McpHttpClient { client, authorizer }, config))
}

/// Returns how often and when a stream that ended is resumed; the default of the SDK is without end.
fn resume_policy() -> ExponentialBackoff {
    let mut policy = ExponentialBackoff::default();
    policy.max_times = Some(RESUME_ATTEMPTS_MAX);
    policy.base_duration = RESUME_PAUSE_MIN;
    policy.max_delay = Some(RESUME_PAUSE_MAX);
    policy
}

/// Builds a client for an address.
pub(super) async fn client_for_url(url: &str) -> Result<(Client, Url), String> {
    let url = parse_url(url)?;
    let is_local = url.scheme() == "http" && is_loopback(&url);
    // Loading the system's certificates takes milliseconds.
    let result = tokio::task::spawn_blocking(move || match is_local {
        true => build_local_client(redirect_policy()),
        false => build_remote_client(&redirect_policy),
    })
    .await;
    let client = result.map_err(|error| error.to_string())?;
    Ok((client.map_err(|error| format!("could not create an HTTP client: {error}"))?, url))
}

/// Builds the clients of a login, for this machine and for other hosts. They follow no redirects: their requests are
/// meant for one server.
pub(super) async fn build_sign_in_clients() -> Result<(Client, Client), String> {
    let result = tokio::task::spawn_blocking(|| {
        Ok((build_local_client(Policy::none())?, build_remote_client(&Policy::none)?))
    })
    .await;
    let result = result.map_err(|error| error.to_string())?;
    result.map_err(|error: reqwest::Error| format!("could not create an HTTP client: {error}"))
}

pub(super) fn parse_url(url: &str) -> Result<Url, String> {
    let url = Url::parse(url).map_err(|error| format!("its `url` is not a valid address: {error}"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err("its `url` begins with neither http:// nor https://".to_owned()),
    }
}

/// Parses headers; their values are never shown.
pub(super) fn parse_headers(
    headers: &[(String, String)],
) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let parsed = headers.iter().map(|(name, value)| {
        let invalid = || format!("its header {name:?} has invalid characters");
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        Ok((key, value))
    });
    parsed.collect()
}

fn build_remote_client(policy: &dyn Fn() -> Policy) -> reqwest::Result<Client> {
    crate::http::build_client(|| crate::http::client_builder().redirect(policy()))
}

/// For this machine, which no proxy can reach for us; plain HTTP needs no certificates.
fn build_local_client(policy: Policy) -> reqwest::Result<Client> {
    crate::http::client_builder().redirect(policy).no_proxy().tls_certs_only([]).build()
}

fn redirect_policy() -> Policy {
    Policy::custom(|attempt| if is_redirect_allowed(&attempt) { attempt.follow() } else { attempt.stop() })
}

/// Headers must not reach another origin, and other status codes turn a POST into a GET.
fn is_redirect_allowed(attempt: &Attempt<'_>) -> bool {
    let preserves_method = matches!(attempt.status().as_u16(), 307 | 308);
    let is_same_origin =
        attempt.previous().last().is_some_and(|previous| previous.origin() == attempt.url().origin());
    preserves_method && is_same_origin && attempt.previous().len() <= REDIRECTS_MAX
}

pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
