//! The HTTP clients: name resolution, redirects, and bodies with a limit.

use std::{
    fmt, io,
    io::Write,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use crow_core::SiteReach;
use flate2::write::MultiGzDecoder;
use reqwest::{
    Client, ClientBuilder, Response, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, LOCATION},
    redirect::Policy,
};
use tokio::sync::OnceCell;

use super::address::{PrivateHosts, WebAddress, is_public};
use crate::{http, tool_error::ToolError};

/// Usual redirects within a site: from http to https, to `www.`, to a page's new name.
const REDIRECTS_MAX: usize = 5;

/// Pages are told truthfully who requests them.
const USER_AGENT: &str = concat!("crow-cli/", env!("CARGO_PKG_VERSION"));

/// Markdown is preferred where a server has it.
const ACCEPT_TYPES: &str =
    "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.5";

/// The clients, built on first use.
pub(super) struct WebClient {
    pub(super) private_hosts: PrivateHosts,
    clients: OnceCell<ReqwestClients>,
}

struct ReqwestClients {
    /// Connects to public addresses only, through the proxies of the environment.
    public: Client,
    /// For addresses that the user allowed or configured, which no proxy can reach for us.
    private: Client,
}

impl WebClient {
    pub(super) fn new(private_hosts: PrivateHosts) -> Self {
        Self { private_hosts, clients: OnceCell::new() }
    }

    async fn client_for(&self, reach: SiteReach) -> Result<&Client, ToolError> {
        let make_clients = || async {
            let private_hosts = self.private_hosts.clone();
            let clients = tokio::task::spawn_blocking(move || {
                let resolver = Arc::new(PublicResolver { private_hosts });
                let public = http::build_client(|| client_builder().dns_resolver(resolver.clone()))?;
                Ok(ReqwestClients { public, private: http::build_client(|| client_builder().no_proxy())? })
            });
            let clients = clients.await.map_err(|error| ToolError(error.to_string()))?;
            clients.map_err(|error: reqwest::Error| {
                ToolError(format!("could not create an HTTP client: {error}"))
            })
        };
        let clients = self.clients.get_or_try_init(make_clients).await?;
        Ok(match reach {
            SiteReach::Public => &clients.public,
            SiteReach::Private => &clients.private,
        })
    }

    /// Requests an address, following redirects within its site.
    pub(super) async fn get(&self, address: &WebAddress) -> Result<WebResponse, ToolError> {
        let client = self.client_for(address.reach).await?;
        let mut current = address.clone();
        let mut is_downgraded = false;
        for _ in 0..=REDIRECTS_MAX {
            let request =
                client.get(current.url.clone()).header(ACCEPT, ACCEPT_TYPES).header(ACCEPT_ENCODING, "gzip");
            let response = request.send().await.map_err(|error| request_error(&error))?;
            let Some(next) = self.redirect_target(&response, &current)? else {
                return Ok(WebResponse { address: current, is_downgraded, response });
            };
            is_downgraded |= current.url.scheme() == "https" && next.url.scheme() == "http";
            current = next;
        }
        Err(ToolError(format!(
            "it redirects more than {REDIRECTS_MAX} times, at last to {}",
            current.display_text()
        )))
    }

    /// Returns a redirect's target; another site needs a call of its own.
    fn redirect_target(
        &self,
        response: &Response,
        current: &WebAddress,
    ) -> Result<Option<WebAddress>, ToolError> {
        let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        let Some(location) = response.headers().get(LOCATION).filter(|_| is_redirect) else {
            return Ok(None);
        };
        let url = location.to_str().ok().and_then(|location| current.url.join(location).ok());
        let url = url.ok_or_else(|| ToolError("it redirects to an invalid address".to_owned()))?;
        let mut target = WebAddress::from_url(url, &self.private_hosts).map_err(|ToolError(reason)| {
            ToolError(format!("it redirects to an address that is not followed: {reason}"))
        })?;
        if target.is_same_site(current) {
            target.reach = current.reach;
            return Ok(Some(target));
        }
        let display_url = target.display_text();
        Err(ToolError(match target.reach {
            SiteReach::Private => {
                format!(
                    "it redirects to {display_url}, which is not on the public internet and was not followed"
                )
            }
            SiteReach::Public => {
                format!(
                    "it redirects to another site, which was not followed; fetch {display_url} to continue there"
                )
            }
        }))
    }
}

fn client_builder() -> ClientBuilder {
    http::client_builder().user_agent(USER_AGENT).redirect(Policy::none()).referer(false)
}

/// A response before its body.
pub(super) struct WebResponse {
    pub(super) address: WebAddress,
    /// Whether a redirect led from https to http.
    pub(super) is_downgraded: bool,
    response: Response,
}

/// A body that was read.
pub(super) struct WebBody {
    pub(super) bytes: Vec<u8>,
    pub(super) is_truncated: bool,
}

impl WebResponse {
    pub(super) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(super) fn content_type(&self) -> String {
        let header = self.response.headers().get(reqwest::header::CONTENT_TYPE);
        header.and_then(|value| value.to_str().ok()).unwrap_or_default().to_ascii_lowercase()
    }

    /// Reads the body up to a limit.
    pub(super) async fn read_body(mut self, bytes_max: usize) -> Result<WebBody, ToolError> {
        let encoding = self.response.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
        let mut sink = match encoding.unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "" | "identity" => BodySink::Plain(BoundedBuffer { bytes: Vec::new(), bytes_max }),
            "gzip" | "x-gzip" => {
                BodySink::Gzip(Box::new(MultiGzDecoder::new(BoundedBuffer { bytes: Vec::new(), bytes_max })))
            }
            _ => {
                return Err(ToolError(
                    "the server uses a content encoding that was not requested".to_owned(),
                ));
            }
        };
        let mut n_read = 0_usize;
        while let Some(chunk) = self.response.chunk().await.map_err(|error| request_error(&error))? {
            // Data that decompresses to nothing could continue forever.
            n_read = n_read.saturating_add(chunk.len());
            match sink.write_chunk(&chunk) {
                Ok(()) if n_read <= bytes_max.saturating_mul(2) => {}
                Err(error) if error.kind() != io::ErrorKind::StorageFull => {
                    return Err(ToolError(format!("the page could not be decompressed: {error}")));
                }
                Ok(()) | Err(_) => return Ok(WebBody { bytes: sink.into_bytes(), is_truncated: true }),
            }
        }
        Ok(WebBody { bytes: sink.into_bytes(), is_truncated: false })
    }
}

/// Accepts bytes up to a limit.
struct BoundedBuffer {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl Write for BoundedBuffer {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        let n_free = self.bytes_max - self.bytes.len();
        if n_free == 0 && !chunk.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let chunk = &chunk[..chunk.len().min(n_free)];
        self.bytes.extend_from_slice(chunk);
        Ok(chunk.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum BodySink {
    Plain(BoundedBuffer),
    Gzip(Box<MultiGzDecoder<BoundedBuffer>>),
}

impl BodySink {
    fn write_chunk(&mut self, chunk: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(bounded) => bounded.write_all(chunk),
            Self::Gzip(decoder) => {
                decoder.write_all(chunk)?;
                decoder.flush()
            }
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Plain(bounded) => bounded.bytes,
            Self::Gzip(mut decoder) => std::mem::take(&mut decoder.get_mut().bytes),
        }
    }
}

/// Resolves names to public addresses only, so that the checked address is the one connected to.
struct PublicResolver {
    private_hosts: PrivateHosts,
}

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        // Proxies and the search service are resolved here as well.
        let is_private_host = self.private_hosts.contains(&name);
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let reach = if is_private_host { SiteReach::Private } else { SiteReach::Public };
            Ok(Box::new(filter_addresses(name.clone(), addresses, reach)?.into_iter()) as Addrs)
        })
    }
}

/// Returns the addresses that a name of this reach may have.
fn filter_addresses(
    name: String,
    addresses: impl Iterator<Item = SocketAddr>,
    reach: SiteReach,
) -> Result<Vec<SocketAddr>, NotPublicError> {
    let (allowed, private): (Vec<_>, Vec<_>) =
        addresses.partition(|address| reach == SiteReach::Private || is_public(address.ip()));
    match private.first() {
        Some(address) if allowed.is_empty() => Err(NotPublicError { name, ip: address.ip() }),
        _ => Ok(allowed),
    }
}

/// A public name has only private addresses.
#[derive(Debug)]
struct NotPublicError {
    name: String,
    ip: IpAddr,
}

impl std::error::Error for NotPublicError {}

impl fmt::Display for NotPublicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, ip } = self;
        write!(
            f,
            "{name} resolves to {ip}, which is not on the public internet; fetch that address itself to ask the user"
        )
    }
}

/// Describes a request error without the address, which the surrounding message has.
pub(super) fn request_error(error: &reqwest::Error) -> ToolError {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let reason = innermost.to_string();
    ToolError(match error {
        _ if innermost.is::<NotPublicError>() => reason,
        error if error.is_timeout() => "no answer in time".to_owned(),
        error if error.is_connect() => format!("no connection ({reason})"),
        _ => format!("the connection failed ({reason})"),
    })
}

#[cfg(test)]
mod tests;
