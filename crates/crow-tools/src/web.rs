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

use self::{address::PrivateHosts, network::WebClient};
pub(crate) use self::{fetch::WebFetchTool, search::WebSearchTool};
use crate::tool::ToolError;

/// Where `crow-cli init` puts the search service.
const SEARCH_URL: &str = "http://localhost:2946";

/// Slower pages are not worth a turn's waiting.
const TIME_MAX: Duration = Duration::from_secs(30);

/// How the web is reached.
#[derive(Debug, Clone)]
pub struct WebConfig {
    /// The address of the SearXNG that searches.
    pub search_url: String,
    /// The file that starts one on this machine.
    pub search_compose: PathBuf,
    /// The proxies that the environment names, which stand where they like.
    pub proxies: Vec<String>,
    /// The longest that one request may take, redirects and body included.
    pub time_max: Duration,
}

impl Default for WebConfig {
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
pub(crate) struct WebContext {
    access: WebConfig,
    network: WebClient,
}

impl WebContext {
    pub(crate) fn new(access: WebConfig) -> Self {
        // A proxy may be spelled without a scheme.
        let hosts = access
            .proxies
            .iter()
            .filter_map(|proxy| url_host(proxy).or_else(|| url_host(&format!("http://{proxy}"))));
        let own: BTreeSet<String> = hosts.chain(url_host(&access.search_url)).collect();
        Self { network: WebClient::new(PrivateHosts::new(&own)), access }
    }

    /// Waits for work as long as it may take.
    async fn with_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        let ended = tokio::time::timeout(self.access.time_max, work).await;
        ended.unwrap_or_else(|_| {
            Err(ToolError(format!("it took longer than {} s", self.access.time_max.as_secs_f32())))
        })
    }
}

fn url_host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}
