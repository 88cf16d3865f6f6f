//! Builds HTTP clients. Must not know any request or server.

use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder};

/// A server that does not accept a connection within this time is unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Detects a dead peer on a silent network.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Returns the settings that all clients share.
pub(crate) fn client_builder() -> ClientBuilder {
    // Fails only if the program has already installed a provider, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("crow/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE)
        .connect_timeout(CONNECT_TIMEOUT)
        .retry(reqwest::retry::never())
}

/// Builds a client; loads the system's certificates, which takes milliseconds.
pub(crate) fn build_client(configure: impl Fn() -> ClientBuilder) -> reqwest::Result<Client> {
    configure().build().or_else(|_| {
        // Slim container images have no certificates.
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        let roots = roots.filter_map(|der| Certificate::from_der(der).ok());
        configure().tls_certs_only(roots).build()
    })
}
