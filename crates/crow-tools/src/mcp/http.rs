//! Streamable HTTP: our client, the address, the headers.

use std::{collections::HashMap, net::IpAddr};

use reqwest::{
    Client, ClientBuilder, Url,
    header::{HeaderName, HeaderValue},
    redirect::{Attempt, Policy},
};
use rmcp::transport::{
    StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
};

/// From `/mcp` to `/mcp/` is one; more is a circle.
const REDIRECTS_MAX: usize = 3;

/// How a person is told that a server knows them not.
pub(super) const WANTS_KEY: &str = "it wants to know who asks; give it a key among its `headers`";

/// Makes ready to speak to an address.
pub(super) async fn transport(
    url: &str,
    headers: &[(String, String)],
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let (client, url) = client(url).await?;
    let headers = read_headers(headers)?;
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str()).custom_headers(headers);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Makes a client for an address.
pub(super) async fn client(url: &str) -> Result<(Client, Url), String> {
    let url = address(url)?;
    let is_local = url.scheme() == "http" && is_loopback(&url);
    // Reading the system's certificates takes milliseconds.
    let made = tokio::task::spawn_blocking(move || if is_local { local() } else { remote() }).await;
    let client = made.map_err(|error| error.to_string())?;
    Ok((client.map_err(|error| format!("no HTTP client could be made: {error}"))?, url))
}

fn address(url: &str) -> Result<Url, String> {
    let url = Url::parse(url).map_err(|error| format!("its `url` is no address: {error}"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err("its `url` begins with neither http:// nor https://".to_owned()),
    }
}

/// Reads headers; what is in them is not shown anywhere.
pub(super) fn read_headers(headers: &[(String, String)]) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let read = headers.iter().map(|(name, value)| {
        let wrong = || format!("its header {name:?} has characters that no header may have");
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        Ok((key, value))
    });
    read.collect()
}

fn remote() -> reqwest::Result<Client> {
    crate::http::client(builder)
}

/// For this machine, which no proxy can reach for us; plain HTTP needs no certificates.
fn local() -> reqwest::Result<Client> {
    builder().no_proxy().tls_certs_only([]).build()
}

fn builder() -> ClientBuilder {
    crate::http::builder().redirect(Policy::custom(|attempt| {
        if is_same_request(&attempt) { attempt.follow() } else { attempt.stop() }
    }))
}

/// Anywhere else the headers would go to a stranger, and any other status makes a GET of a POST.
fn is_same_request(attempt: &Attempt<'_>) -> bool {
    let is_kept = matches!(attempt.status().as_u16(), 307 | 308);
    let from_here = attempt.previous().last().is_some_and(|before| before.origin() == attempt.url().origin());
    is_kept && from_here && attempt.previous().len() <= REDIRECTS_MAX
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
