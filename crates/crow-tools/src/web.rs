//! The web for the model: `web_search` and `web_fetch`.
//!
//! Must never reach what was not judged: an address says in the facets whether it is public, what is connected to
//! is what was checked, and nothing of the person but the address or the words goes out.

mod address;
mod client;
mod fetch;
mod html_shape;
mod image;
mod markdown;
mod page;
mod search;
mod tag_stripper;

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use reqwest::Url;

use self::{address::PrivateHosts, client::WebClient};
pub(crate) use self::{fetch::WebFetchTool, search::WebSearchTool};
use crate::tool::ToolError;

/// Where `crow-cli init` puts the search service.
const SEARCH_URL: &str = "http://localhost:2946";

/// Slower pages are not worth a turn's waiting.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

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
    pub timeout: Duration,
}

impl Default for WebConfig {
    fn default() -> Self {
        Self {
            search_url: SEARCH_URL.to_owned(),
            search_compose: PathBuf::new(),
            proxies: Vec::new(),
            timeout: REQUEST_TIMEOUT,
        }
    }
}

/// What both tools share.
pub(crate) struct WebContext {
    config: WebConfig,
    client: WebClient,
}

impl WebContext {
    pub(crate) fn new(config: WebConfig) -> Self {
        // A proxy may be spelled without a scheme.
        let hosts = config
            .proxies
            .iter()
            .filter_map(|proxy| url_host(proxy).or_else(|| url_host(&format!("http://{proxy}"))));
        let private_names: BTreeSet<String> = hosts.chain(url_host(&config.search_url)).collect();
        Self { client: WebClient::new(PrivateHosts::new(&private_names)), config }
    }

    /// Waits for work as long as it may take.
    async fn with_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        let result = tokio::time::timeout(self.config.timeout, work).await;
        result.unwrap_or_else(|_| {
            Err(ToolError(format!("it took longer than {} s", self.config.timeout.as_secs_f32())))
        })
    }
}

fn url_host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}
