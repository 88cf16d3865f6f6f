//! The way out: the clients, the names they may follow, redirects, and bodies with a bound.

use std::{
    fmt, io,
    io::Write,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use crow_core::Reach;
use flate2::write::MultiGzDecoder;
use reqwest::{
    Client, ClientBuilder, Response, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, LOCATION},
    redirect::Policy,
};
use tokio::sync::OnceCell;

use super::address::{Address, OwnNames, is_public};
use crate::{http, tool::Refusal};

/// A person's way through a site: from http to https, to `www.`, to the new name of a page.
const REDIRECTS_MAX: usize = 5;

/// What pages are told of who asks: the truth.
const USER_AGENT: &str = concat!("crow-cli/", env!("CARGO_PKG_VERSION"));

/// What is wished for: markdown where a server has it.
const ACCEPTED: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.5";

/// The clients, made when the first of them is needed.
pub(super) struct Network {
    pub(super) own: OwnNames,
    clients: OnceCell<Clients>,
}

struct Clients {
    /// Connects to public addresses only; goes through the proxies that the environment names.
    public: Client,
    /// For what a person allowed or set up themselves, which no proxy can reach for us.
    private: Client,
}

impl Network {
    pub(super) fn new(own: OwnNames) -> Self {
        Self { own, clients: OnceCell::new() }
    }

    async fn client(&self, reach: Reach) -> Result<&Client, Refusal> {
        let make = || async {
            let own = self.own.clone();
            let made = tokio::task::spawn_blocking(move || {
                let resolver = Arc::new(Careful { own });
                let public = http::client(|| builder().dns_resolver(resolver.clone()))?;
                Ok(Clients { public, private: http::client(|| builder().no_proxy())? })
            });
            let made = made.await.map_err(|error| Refusal(error.to_string()))?;
            made.map_err(|error: reqwest::Error| Refusal(format!("no HTTP client could be made: {error}")))
        };
        let clients = self.clients.get_or_try_init(make).await?;
        Ok(match reach {
            Reach::Public => &clients.public,
            Reach::Private => &clients.private,
        })
    }

    /// Asks an address, following it inside its site.
    pub(super) async fn get(&self, address: &Address) -> Result<Answer, Refusal> {
        let client = self.client(address.reach).await?;
        let mut at = address.clone();
        let mut left_https = false;
        for _ in 0..=REDIRECTS_MAX {
            let request = client.get(at.url.clone()).header(ACCEPT, ACCEPTED).header(ACCEPT_ENCODING, "gzip");
            let response = request.send().await.map_err(|error| broken(&error))?;
            let Some(next) = self.redirected(&response, &at)? else {
                return Ok(Answer { from: at, left_https, response });
            };
            left_https |= at.url.scheme() == "https" && next.url.scheme() == "http";
            at = next;
        }
        Err(Refusal(format!("it redirects more than {REDIRECTS_MAX} times, at last to {}", at.shown())))
    }

    /// Reads where a response leads; another site is another question.
    fn redirected(&self, response: &Response, at: &Address) -> Result<Option<Address>, Refusal> {
        let leads = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
        let Some(location) = response.headers().get(LOCATION).filter(|_| leads) else { return Ok(None) };
        let url = location.to_str().ok().and_then(|location| at.url.join(location).ok());
        let url = url.ok_or_else(|| Refusal("it redirects to something that is no address".to_owned()))?;
        let mut next = Address::of(url, &self.own).map_err(|Refusal(why)| {
            Refusal(format!("it redirects to an address that is not followed: {why}"))
        })?;
        if next.is_same_site(at) {
            next.reach = at.reach;
            return Ok(Some(next));
        }
        let shown = next.shown();
        Err(Refusal(match next.reach {
            Reach::Private => {
                format!("it redirects to {shown}, which is not on the public internet and was not followed")
            }
            Reach::Public => {
                format!("it redirects to another site, which was not followed; fetch {shown} to go on there")
            }
        }))
    }
}

fn builder() -> ClientBuilder {
    http::builder().user_agent(USER_AGENT).redirect(Policy::none()).referer(false)
}

/// What a server said, before its body.
pub(super) struct Answer {
    pub(super) from: Address,
    /// Somewhere on the way it was sent from https to http.
    pub(super) left_https: bool,
    response: Response,
}

/// A body that was read.
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    /// There was more.
    pub(super) is_cut: bool,
}

impl Answer {
    pub(super) fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub(super) fn content_type(&self) -> String {
        let header = self.response.headers().get(reqwest::header::CONTENT_TYPE);
        header.and_then(|value| value.to_str().ok()).unwrap_or_default().to_ascii_lowercase()
    }

    /// Reads the body until it ends or is too long.
    pub(super) async fn body(mut self, bytes_max: usize) -> Result<Body, Refusal> {
        let encoding = self.response.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
        let mut sink = match encoding.unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Sink::Plain(Bounded { bytes: Vec::new(), bytes_max }),
            "gzip" | "x-gzip" => {
                Sink::Gzip(Box::new(MultiGzDecoder::new(Bounded { bytes: Vec::new(), bytes_max })))
            }
            _ => return Err(Refusal("the server packs the page in a way that was not asked for".to_owned())),
        };
        let mut n_read = 0_usize;
        while let Some(chunk) = self.response.chunk().await.map_err(|error| broken(&error))? {
            // What unpacks to nothing can go on for ever.
            n_read = n_read.saturating_add(chunk.len());
            match sink.write(&chunk) {
                Ok(()) if n_read <= bytes_max.saturating_mul(2) => {}
                Err(error) if error.kind() != io::ErrorKind::StorageFull => {
                    return Err(Refusal(format!("the page could not be unpacked: {error}")));
                }
                Ok(()) | Err(_) => return Ok(Body { bytes: sink.into_bytes(), is_cut: true }),
            }
        }
        Ok(Body { bytes: sink.into_bytes(), is_cut: false })
    }
}

/// Takes bytes until there are too many.
struct Bounded {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl Write for Bounded {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        let room = self.bytes_max - self.bytes.len();
        if room == 0 && !more.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let more = &more[..more.len().min(room)];
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Sink {
    Plain(Bounded),
    Gzip(Box<MultiGzDecoder<Bounded>>),
}

impl Sink {
    fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
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

/// Looks names up and gives out public addresses only, so that what was checked is what is connected to.
struct Careful {
    own: OwnNames,
}

impl Resolve for Careful {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str().to_owned();
        // Proxies and the search service come here as well.
        let is_own = self.own.holds(&name);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let reach = if is_own { Reach::Private } else { Reach::Public };
            Ok(Box::new(sifted(name.clone(), found, reach)?.into_iter()) as Addrs)
        })
    }
}

/// Leaves the addresses that a name of this reach may stand for.
fn sifted(
    name: String,
    found: impl Iterator<Item = SocketAddr>,
    reach: Reach,
) -> Result<Vec<SocketAddr>, NotPublic> {
    let (fit, private): (Vec<_>, Vec<_>) =
        found.partition(|address| reach == Reach::Private || is_public(address.ip()));
    match private.first() {
        Some(address) if fit.is_empty() => Err(NotPublic { name, ip: address.ip() }),
        _ => Ok(fit),
    }
}

/// A public name stands for a private address.
#[derive(Debug)]
struct NotPublic {
    name: String,
    ip: IpAddr,
}

impl std::error::Error for NotPublic {}

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, ip } = self;
        write!(
            f,
            "{name} stands for {ip}, which is not on the public internet; fetch that address itself to have a person asked"
        )
    }
}

/// Says why nothing came, without the address, which the sentence around it has.
pub(super) fn broken(error: &reqwest::Error) -> Refusal {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let why = innermost.to_string();
    Refusal(match error {
        _ if innermost.is::<NotPublic>() => why,
        error if error.is_timeout() => "no answer in time".to_owned(),
        error if error.is_connect() => format!("no connection ({why})"),
        _ => format!("the connection broke ({why})"),
    })
}

#[cfg(test)]
mod tests;
