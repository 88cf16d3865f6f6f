//! HTTP clients and URLs. Knows nothing of the requests.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crow_core::{Failure, FailureKind};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder, Request, Response, Url};
use tokio::sync::OnceCell;

use crate::api::KeyHeader;
use crate::recording::RequestRecording;
use crate::retry::random_jitter;
use crate::simulated::send_simulated;
use crate::{ModelSettings, ProviderSettings, RequestRecorder, SimulatedProvider};

/// A server that does not accept a connection within this time is down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Longer than a user reads between two prompts, shorter than most servers keep a connection.
const POOL_IDLE: Duration = Duration::from_secs(90);

/// Detects a dead peer behind a silent network.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The connections to providers, kept between requests. Clones share them.
#[derive(Debug, Clone)]
pub struct HttpClients {
    /// Uses the proxies of the environment. Created on first use, since it reads the system's certificates.
    remote: Arc<OnceCell<Client>>,
    /// For this machine, which no proxy can reach.
    local: Client,
    /// Records requests, if requested.
    recorder: Option<RequestRecorder>,
    /// Answers model requests in a simulation.
    simulated: Option<Arc<dyn SimulatedProvider>>,
}

impl HttpClients {
    /// Creates the clients.
    pub fn new() -> Result<Self, Failure> {
        // Fails only if the program has installed a provider already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Plain HTTP only, so it needs no certificates.
        let local = client_builder().no_proxy().tls_certs_only([]).build();
        let local = local.map_err(|error| client_failure(&error))?;
        Ok(Self { remote: Arc::default(), local, recorder: None, simulated: None })
    }

    /// Sends model requests to a simulated provider.
    pub fn simulated(provider: Arc<dyn SimulatedProvider>) -> Result<Self, Failure> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let unused = client_builder().no_proxy().tls_certs_only([]).build();
        let unused = unused.map_err(|error| client_failure(&error))?;
        let remote = Arc::new(OnceCell::new_with(Some(unused.clone())));
        Ok(Self { remote, local: unused, recorder: None, simulated: Some(provider) })
    }

    /// Records every model request and response.
    #[must_use]
    pub fn with_recorder(self, recorder: RequestRecorder) -> Self {
        Self { recorder: Some(recorder), ..self }
    }

    /// Starts to record a request, if requested.
    pub(crate) fn start_recording(&self, request: &Request, settings: &ModelSettings) -> RequestRecording {
        RequestRecording::start(self.recorder.as_ref(), request, settings)
    }

    /// Prepares the client for a provider's requests, so that the first one does not wait for certificates.
    pub async fn prepare_for(&self, provider: &ProviderSettings) -> Result<(), Failure> {
        self.client_for(&endpoint_url(provider, &[])?).await.map(drop)
    }

    /// Sends a model request with the client for its URL.
    pub(crate) async fn send_request(&self, client: &Client, request: Request) -> reqwest::Result<Response> {
        match &self.simulated {
            Some(provider) => Ok(send_simulated(provider.as_ref(), &request).await),
            None => client.execute(request).await,
        }
    }

    /// Returns the jitter of the next retry, from 0 to 1.
    pub fn retry_jitter(&self) -> f64 {
        self.simulated.as_ref().map_or_else(random_jitter, |provider| provider.retry_jitter())
    }

    /// Returns the client for a URL.
    pub(crate) async fn client_for(&self, url: &Url) -> Result<&Client, Failure> {
        if url.scheme() == "http" && is_loopback(url) {
            return Ok(&self.local);
        }
        // Reading certificates takes milliseconds.
        let build = async || match tokio::task::spawn_blocking(build_remote_client).await {
            Ok(client) => client.map_err(|error| client_failure(&error)),
            Err(error) => Err(client_failure(&error)),
        };
        self.remote.get_or_try_init(build).await
    }
}

fn build_remote_client() -> reqwest::Result<Client> {
    client_builder().build().or_else(|_| {
        // Slim containers have no certificates of their own.
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        let roots = roots.filter_map(|der| Certificate::from_der(der).ok());
        client_builder().tls_certs_only(roots).build()
    })
}

fn client_failure(error: &dyn Error) -> Failure {
    Failure::new(FailureKind::Internal, format!("could not create an HTTP client: {error}"))
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
        // Retries are ours, where the user sees them.
        .retry(reqwest::retry::never())
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether a server is on this machine or its network, where it handles few requests at a time and queues the others.
pub(crate) fn is_on_local_network(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => {
            // 100.64.0.0/10 is used by private overlay networks.
            let is_shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xC0 == 64;
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || is_shared
        }
        Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
        // A name without a dot belongs to the local network.
        Err(_) => {
            !host.contains('.')
                || [".localhost", ".local", ".lan", ".internal"].iter().any(|suffix| host.ends_with(suffix))
        }
    }
}

/// Appends a path to a provider's `base_url`.
pub(crate) fn endpoint_url(provider: &ProviderSettings, path: &[&str]) -> Result<Url, Failure> {
    let config_error = |reason: &str| {
        let message = format!("the `base_url` of provider `{}` is not a URL: {reason}", provider.name);
        Failure::new(FailureKind::Config, message)
    };
    let mut url = Url::parse(&provider.base_url).map_err(|error| config_error(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(config_error("it begins with neither http:// nor https://"));
    }
    match url.path_segments_mut() {
        Ok(mut segments) => segments.pop_if_empty().extend(path),
        Err(()) => return Err(config_error("no path can be appended to it")),
    };
    Ok(url)
}

/// Builds the headers of each request to a provider.
pub(crate) fn request_headers(provider: &ProviderSettings) -> Result<HeaderMap, Failure> {
    let config_error = |what: &str| {
        let message = format!(
            "{what} of provider `{}` has characters that are not permitted in a header",
            provider.name
        );
        Failure::new(FailureKind::Config, message)
    };
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    let api = provider.api.definition();
    for (name, value) in api.headers {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(key) = &provider.api_key {
        let (name, value) = match api.key_header {
            KeyHeader::Bearer => (AUTHORIZATION, format!("Bearer {}", key.expose_secret())),
            KeyHeader::Named(name) => (HeaderName::from_static(name), key.expose_secret().to_owned()),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| config_error("the key"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &provider.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_str(value)) else {
            return Err(config_error("a header"));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn certificates_are_read_for_remote_servers_only() {
        let clients = HttpClients::new().unwrap();
        let read_for = async |url: &str| {
            clients.client_for(&Url::parse(url).unwrap()).await.unwrap();
            clients.remote.initialized()
        };
        assert!(!read_for("http://127.0.0.1:8080/v1").await);
        assert!(!read_for("http://localhost:11434/v1").await);
        assert!(read_for("https://api.acme.test/v1").await);
        // Clones share the connections.
        assert!(clients.clone().remote.initialized());
    }

    #[test]
    fn local_network_addresses() {
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
