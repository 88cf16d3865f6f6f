//! The one way to make an HTTP client. Must never know what is asked, or of whom.

use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder};

/// A server that does not take a connection within this time is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Notices a dead peer behind a silent network.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// What every client has.
pub(crate) fn client_builder() -> ClientBuilder {
    // Fails only where the program has chosen one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("crow/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true)
        .tcp_keepalive(KEEPALIVE)
        .connect_timeout(CONNECT_TIMEOUT)
        .retry(reqwest::retry::never())
}

/// Makes a client of this shape; reads the system's certificates, which takes milliseconds.
pub(crate) fn build_client(configure: impl Fn() -> ClientBuilder) -> reqwest::Result<Client> {
    configure().build().or_else(|_| {
        // Slim containers have no certificates of their own.
        let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
        let roots = roots.filter_map(|der| Certificate::from_der(der).ok());
        configure().tls_certs_only(roots).build()
    })
}
