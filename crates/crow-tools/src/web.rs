//! The web for the model: `web_search` and `web_fetch`.
//!
//! Must never reach what was not judged: an address says in the facets whether it is public, what is connected to
//! is what was checked, and nothing of the person but the address or the words goes out.

mod address;
mod convert;
mod fetch;
mod image;
mod network;
mod page;
mod plain;
mod search;
mod shape;

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use reqwest::Url;

use self::{address::OwnNames, network::Network};
pub(crate) use self::{fetch::Fetch, search::Search};
use crate::tool::Refusal;

/// Where `crow-cli init` puts the search service.
const SEARCH_URL: &str = "http://localhost:2946";

/// Slower pages are not worth a turn's waiting.
const TIME_MAX: Duration = Duration::from_secs(30);

/// How the web is reached.
#[derive(Debug, Clone)]
pub struct WebAccess {
    /// The address of the SearXNG that searches.
    pub search_url: String,
    /// The file that starts one on this machine.
    pub search_compose: PathBuf,
    /// The proxies that the environment names, which stand where they like.
    pub proxies: Vec<String>,
    /// The longest that one request may take, redirects and body included.
    pub time_max: Duration,
}

impl Default for WebAccess {
    fn default() -> Self {
        Self {
            search_url: SEARCH_URL.to_owned(),
            search_compose: PathBuf::new(),
            proxies: Vec::new(),
            time_max: TIME_MAX,
        }
    }
}

/// What both tools share.
pub(crate) struct Web {
    access: WebAccess,
    network: Network,
}

impl Web {
    pub(crate) fn new(access: WebAccess) -> Self {
        // A proxy may be spelled without a scheme.
        let hosts = access
            .proxies
            .iter()
            .filter_map(|proxy| host(proxy).or_else(|| host(&format!("http://{proxy}"))));
        let own: BTreeSet<String> = hosts.chain(host(&access.search_url)).collect();
        Self { network: Network::new(OwnNames::new(&own)), access }
    }

    /// Waits for work as long as it may take.
    async fn in_time<T>(&self, work: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
        let ended = tokio::time::timeout(self.access.time_max, work).await;
        ended.unwrap_or_else(|_| {
            Err(Refusal(format!("it took longer than {} s", self.access.time_max.as_secs_f32())))
        })
    }
}

fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}
