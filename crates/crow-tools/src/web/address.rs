//! Addresses that a model gives, and whether they are on the public internet. Pure, makes no DNS request.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use crow_core::SiteReach;
use reqwest::Url;

use crate::tool_error::ToolError;

/// Browsers and servers reject longer ones.
const URL_BYTES_MAX: usize = 8192;

/// Enough of an address for a message.
const SHOWN_BYTES_MAX: usize = 300;

/// Domains that no public DNS server resolves.
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

/// Host names in the user's own settings, which may have private addresses.
#[derive(Debug, Clone, Default)]
pub(super) struct PrivateHosts(Arc<BTreeSet<String>>);

impl PrivateHosts {
    pub(super) fn new(names: &BTreeSet<String>) -> Self {
        Self(Arc::new(names.iter().map(|name| normalize_host(name)).collect()))
    }

    /// Whether a name is known to be private without a DNS request.
    pub(super) fn contains(&self, name: &str) -> bool {
        let name = normalize_host(name);
        let is_under = |suffix: &str| {
            name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        // A name without a dot is resolved in the network's own domain.
        !name.contains('.')
            || PRIVATE_SUFFIXES.iter().any(|suffix| is_under(suffix))
            || self.0.contains(&name)
    }
}

fn normalize_host(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// An address to request.
#[derive(Debug, Clone)]
pub(super) struct WebAddress {
    pub(super) url: Url,
    pub(super) reach: SiteReach,
}

impl WebAddress {
    /// Parses an address from a model.
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
        // Parsers drop some of them silently, which gives another address.
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(ToolError("the address has white space or control characters in it".to_owned()));
        }
        let url = Url::parse(text).map_err(|error| match error.to_string() {
            reason if !text.contains(':') => {
                ToolError(format!("it is not a full address ({reason}); begin with https://"))
            }
            reason => ToolError(format!("it is not a valid address: {reason}")),
        })?;
        Self::from_url(url, private_hosts)
    }

    /// Checks a parsed address.
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

    /// The site, as in permissions.
    pub(super) fn site(&self) -> String {
        let host = self.url.host_str().unwrap_or_default().trim_end_matches('.');
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether it is the same site for a user, who does not type `www.`.
    pub(super) fn is_same_site(&self, other: &Self) -> bool {
        let (site, other_site) = (self.site(), other.site());
        let bare = |site: &str| site.strip_prefix("www.").unwrap_or(site).to_owned();
        site == other_site || (self.reach == other.reach && bare(&site) == bare(&other_site))
    }

    /// Renders it for a message. Unusual characters are escaped already.
    pub(super) fn display_text(&self) -> String {
        let url = self.url.as_str();
        // A URL is ASCII only.
        url.get(..SHOWN_BYTES_MAX).map_or_else(|| url.to_owned(), |prefix| format!("{prefix}…"))
    }
}

/// Whether an IP address is globally reachable.
pub(super) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

/// According to IANA's registry of special-purpose addresses.
fn is_public_v4(ip: Ipv4Addr) -> bool {
    match ip.octets() {
        // This network, private, loopback.
        [0 | 10 | 127, ..] => false,
        // Between a provider and its customers.
        [100, second, ..] => second & 0xC0 != 64,
        // Link-local, where clouds serve their keys.
        [169, 254, ..] => false,
        [172, second, ..] => second & 0xF0 != 16,
        // Protocols, examples, and 6to4 relays.
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
        // IPv4 in IPv6: mapped, translated by NAT64, tunnelled by 6to4.
        [0, 0, 0, 0, 0, 0xFFFF, high, low] | [0x64, 0xFF9B, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        // Protocols, Teredo, examples.
        [0x2001, second, ..] if second < 0x200 || second == 0xDB8 => false,
        [0x3FFF, second, ..] if second < 0x1000 => false,
        // The only allocated part.
        [first, ..] => first & 0xE000 == 0x2000,
    }
}

#[cfg(test)]
mod tests;
