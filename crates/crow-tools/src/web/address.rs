//! Addresses: what a model may name, and which of them are on the public internet. Pure, asks no name server.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use crow_core::SiteReach;
use reqwest::Url;

use crate::tool::ToolError;

/// Browsers and servers give up at about this length.
const URL_BYTES_MAX: usize = 8192;

/// As much of an address as a sentence needs.
const SHOWN_BYTES_MAX: usize = 300;

/// Ends of names that no public name server answers for.
const PRIVATE_SUFFIXES: [&str; 11] = [
    "corp",
    "home",
    "home.arpa",
    "internal",
    "intranet",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "private",
    "test",
];

/// Names in the person's own settings, which may stand for private addresses.
#[derive(Debug, Clone, Default)]
pub(super) struct PrivateHosts(Arc<BTreeSet<String>>);

impl PrivateHosts {
    pub(super) fn new(names: &BTreeSet<String>) -> Self {
        Self(Arc::new(names.iter().map(|name| normalize_host(name)).collect()))
    }

    /// Tells whether a name is known to be private without asking anybody.
    pub(super) fn contains(&self, name: &str) -> bool {
        let name = normalize_host(name);
        let is_under = |suffix: &str| {
            name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        // Without a dot it is looked up in the network's own domain.
        !name.contains('.')
            || PRIVATE_SUFFIXES.iter().any(|suffix| is_under(suffix))
            || self.0.contains(&name)
    }
}

fn normalize_host(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Somewhere to ask.
#[derive(Debug, Clone)]
pub(super) struct WebAddress {
    pub(super) url: Url,
    pub(super) reach: SiteReach,
}

impl WebAddress {
    /// Reads what a model wrote.
    pub(super) fn parse(text: &str, private_hosts: &PrivateHosts) -> Result<Self, ToolError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ToolError("the address is empty".to_owned()));
        }
        if text.len() > URL_BYTES_MAX {
            let n_bytes = text.len();
            return Err(ToolError(format!(
                "the address is too long ({n_bytes} bytes, the limit is {URL_BYTES_MAX})"
            )));
        }
        // Parsers drop some of them silently, and then it is another address.
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(ToolError("the address has white space or control characters in it".to_owned()));
        }
        let url = Url::parse(text).map_err(|error| match error.to_string() {
            reason if !text.contains(':') => {
                ToolError(format!("it is no whole address ({reason}); begin with https://"))
            }
            reason => ToolError(format!("it is no address: {reason}")),
        })?;
        Self::from_url(url, private_hosts)
    }

    /// Checks an address that was read.
    pub(super) fn from_url(mut url: Url, private_hosts: &PrivateHosts) -> Result<Self, ToolError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ToolError(
                "only addresses that begin with http:// or https:// can be fetched".to_owned(),
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ToolError(
                "the address has a user name or a password in it; leave them out".to_owned(),
            ));
        }
        url.set_fragment(None);
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let is_private = match literal {
            Ok(ip) => !is_public(ip),
            Err(_) => private_hosts.contains(host),
        };
        Ok(Self { reach: if is_private { SiteReach::Private } else { SiteReach::Public }, url })
    }

    /// Names the site, as permission is given for it.
    pub(super) fn site(&self) -> String {
        let host = self.url.host_str().unwrap_or_default().trim_end_matches('.');
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Tells whether it is the same site for a person, who does not type `www.`.
    pub(super) fn is_same_site(&self, other: &Self) -> bool {
        let (site, other_site) = (self.site(), other.site());
        let bare = |site: &str| site.strip_prefix("www.").unwrap_or(site).to_owned();
        site == other_site || (self.reach == other.reach && bare(&site) == bare(&other_site))
    }

    /// Shows it in a sentence. What is strange in it is escaped already.
    pub(super) fn display_text(&self) -> String {
        let url = self.url.as_str();
        // An address is ASCII only.
        url.get(..SHOWN_BYTES_MAX).map_or_else(|| url.to_owned(), |prefix| format!("{prefix}…"))
    }
}

/// Tells whether everybody reaches the same host at an address.
pub(super) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

/// By IANA's registry of addresses for special purposes.
fn is_public_v4(ip: Ipv4Addr) -> bool {
    match ip.octets() {
        // This network, private, loopback.
        [0 | 10 | 127, ..] => false,
        // Between a provider and its customers.
        [100, second, ..] => second & 0xC0 != 64,
        // Link-local, where clouds keep their keys.
        [169, 254, ..] => false,
        [172, second, ..] => second & 0xF0 != 16,
        // Protocols, examples, and the relays of 6to4.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] => false,
        [192, 168, ..] => false,
        // Benchmarks and examples.
        [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => false,
        // Multicast, reserved, broadcast.
        [first, ..] => first < 224,
    }
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match ip.segments() {
        // IPv4 in disguise: mapped, translated by NAT64, tunnelled by 6to4.
        [0, 0, 0, 0, 0, 0xFFFF, high, low] | [0x64, 0xFF9B, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        // Protocols, Teredo, examples.
        [0x2001, second, ..] if second < 0x200 || second == 0xDB8 => false,
        [0x3FFF, second, ..] if second < 0x1000 => false,
        // The only part that is given out.
        [first, ..] => first & 0xE000 == 0x2000,
    }
}

#[cfg(test)]
mod tests;
