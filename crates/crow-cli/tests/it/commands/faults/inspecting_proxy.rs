//! A proxy that decrypts TLS, as companies have them: it signs the certificate of each site with its own authority.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The head of a request to connect is not longer.
const HEAD_BYTES_MAX: usize = 4096;

/// A proxy for one site; it stops when it is dropped.
pub(super) struct InspectingProxy {
    pub(super) url: String,
    /// The certificate of the authority.
    pub(super) authority_pem: String,
    _shutdown: oneshot::Sender<()>,
}

/// A certificate for a site, and the authority that signed it.
struct SignedSite {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    authority_pem: String,
}

impl InspectingProxy {
    /// Starts a proxy that forwards all requests for a site to a server without TLS.
    pub(super) fn start(site: &str, server: SocketAddr) -> Self {
        let SignedSite { certificate, key, authority_pem } = sign_site(site);
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("it has TLS").with_no_client_auth();
        let config = config.with_single_cert(vec![certificate], key).expect("the key fits");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        listener.set_nonblocking(true).expect("it can be set");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let (shutdown_sender, shutdown) = oneshot::channel::<()>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(async {
                let listener = TcpListener::from_std(listener).expect("it listens");
                let accept = async {
                    while let Ok((client, _)) = listener.accept().await {
                        tokio::spawn(inspect(client, acceptor.clone(), server));
                    }
                };
                tokio::select! {
                    () = accept => {}
                    _ = shutdown => {}
                }
            });
        });
        Self { url, authority_pem, _shutdown: shutdown_sender }
    }
}

/// Serves a connection; a client that rejects the certificate ends it.
async fn inspect(mut client: TcpStream, acceptor: TlsAcceptor, server: SocketAddr) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        head.push(client.read_u8().await?);
    }
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    let mut client = acceptor.accept(client).await?;
    let mut server = TcpStream::connect(server).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

fn sign_site(site: &str) -> SignedSite {
    let mut authority = CertificateParams::new(Vec::new()).expect("an authority needs no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().expect("a key can be made");
    let certificate = authority.self_signed(&authority_key).expect("it can be signed");
    let encoded = STANDARD.encode(certificate.der());
    let authority_pem = format!("-----BEGIN CERTIFICATE-----\n{encoded}\n-----END CERTIFICATE-----\n");
    let site = CertificateParams::new(vec![site.to_owned()]).expect("it is a name");
    let site_key = KeyPair::generate().expect("a key can be made");
    let certificate = site.signed_by(&site_key, &Issuer::new(authority, authority_key));
    SignedSite {
        certificate: certificate.expect("it can be signed").der().clone(),
        key: PrivateKeyDer::try_from(site_key.serialize_der()).expect("it is a key"),
        authority_pem,
    }
}
