//! Our one way out: the clients and the addresses. Knows nothing of what is asked.

use std::net::IpAddr;
use std::time::Duration;

use crow_core::{Failure, FailureKind};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Request, Url};

use crate::record::RequestRecording;
use crate::{ModelApi, ModelSettings, ProviderSettings, RequestRecorder};

/// A server that does not take a connection within this time is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Longer than a person reads between two prompts, shorter than most servers keep a connection.
const POOL_IDLE: Duration = Duration::from_secs(90);

/// Notices a dead peer behind a silent network.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The version of the Messages API that is spoken here; the provider wants it named.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The connections to providers, kept between requests. Cloning shares them.
#[derive(Debug, Clone)]
pub struct HttpClients {
    /// Goes through the proxies that the environment names.
    remote: Client,
    /// Goes to this machine, which no proxy can reach for us.
    local: Client,
    /// Keeps what is asked, where somebody wants that.
    recorder: Option<RequestRecorder>,
}

impl HttpClients {
    /// Reads the trusted certificates and makes ready; takes some milliseconds.
    pub fn new() -> Result<Self, Failure> {
        // Fails only where the program has chosen one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let remote = client_builder().build().or_else(|_| {
            // Slim containers have no certificates of their own.
            let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
            let roots = roots.filter_map(|der| Certificate::from_der(der).ok());
            client_builder().tls_certs_only(roots).build()
        });
        // Plain HTTP only, so it needs no certificates.
        let local = client_builder().no_proxy().tls_certs_only([]).build();
        match (remote, local) {
            (Ok(remote), Ok(local)) => Ok(Self { remote, local, recorder: None }),
            (Err(error), _) | (_, Err(error)) => {
                Err(Failure::new(FailureKind::Internal, format!("no HTTP client could be made: {error}")))
            }
        }
    }

    /// Has everything kept that is asked of models and answered.
    #[must_use]
    pub fn with_recorder(self, recorder: RequestRecorder) -> Self {
        Self { recorder: Some(recorder), ..self }
    }

    /// Begins to keep a question, where somebody wants that.
    pub(crate) fn start_recording(&self, request: &Request, settings: &ModelSettings) -> RequestRecording {
        RequestRecording::start(self.recorder.as_ref(), request, settings)
    }

    /// Picks the client for an address.
    pub(crate) fn client_for(&self, url: &Url) -> &Client {
        if url.scheme() == "http" && is_loopback(url) { &self.local } else { &self.remote }
    }
}

fn client_builder() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("crow/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE)
        // A redirected POST becomes a GET, or sends the key to a stranger.
        .redirect(Policy::none())
        // We try again ourselves, where the person sees it.
        .retry(reqwest::retry::never())
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Tells whether a server stands on this machine or in its network, where it serves few and lets the others wait.
pub(crate) fn is_on_local_network(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => {
            // 100.64.0.0/10 is what private networks over the internet use.
            let is_shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xC0 == 64;
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || is_shared
        }
        Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
        // A name without a dot is one of the network's own.
        Err(_) => {
            !host.contains('.')
                || [".localhost", ".local", ".lan", ".internal"].iter().any(|end| host.ends_with(end))
        }
    }
}

/// Makes the address of a path below a provider's `base_url`.
pub(crate) fn endpoint_url(provider: &ProviderSettings, path: &[&str]) -> Result<Url, Failure> {
    let wrong = |why: &str| {
        let sentence = format!("the `base_url` of provider `{}` is no address: {why}", provider.name);
        Failure::new(FailureKind::Config, sentence)
    };
    let mut url = Url::parse(&provider.base_url).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it begins with neither http:// nor https://"));
    }
    match url.path_segments_mut() {
        Ok(mut segments) => segments.pop_if_empty().extend(path),
        Err(()) => return Err(wrong("nothing can stand below it")),
    };
    Ok(url)
}

/// Makes the headers of each request to a provider.
pub(crate) fn request_headers(provider: &ProviderSettings) -> Result<HeaderMap, Failure> {
    let wrong = |what: &str| {
        let sentence =
            format!("{what} of provider `{}` has characters that no header may have", provider.name);
        Failure::new(FailureKind::Config, sentence)
    };
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    if provider.api == ModelApi::Messages {
        headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    if let Some(key) = &provider.api_key {
        let (name, value) = match provider.api {
            ModelApi::Chat | ModelApi::Responses => {
                (AUTHORIZATION, format!("Bearer {}", key.expose_secret()))
            }
            ModelApi::Messages => (HeaderName::from_static("x-api-key"), key.expose_secret().to_owned()),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| wrong("the key"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &provider.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_str(value)) else {
            return Err(wrong("a header"));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_servers_are_near() {
        let near = |host: &str| is_on_local_network(&Url::parse(&format!("http://{host}:8080/v1")).unwrap());
        for host in [
            "localhost",
            "127.0.0.1",
            "[::1]",
            "192.168.1.7",
            "10.0.0.2",
            "172.16.3.4",
            "100.100.1.1",
            "169.254.1.1",
            "[fd00::1]",
            "[fe80::1]",
            "gpu",
            "gpu.local",
            "box.lan",
            "host.docker.internal",
            "a.localhost",
        ] {
            assert!(near(host), "{host}");
        }
        for host in
            ["api.acme.test", "8.8.8.8", "172.32.0.1", "100.128.0.1", "[2001:db8::1]", "local.acme.test"]
        {
            assert!(!near(host), "{host}");
        }
    }
}
