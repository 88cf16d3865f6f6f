//! The configuration of web access, and the state that the tools share.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use reqwest::Url;

use super::{address::PrivateHosts, client::WebClient};
use crate::tool_error::ToolError;

/// The address of the search service that `crow-cli init` writes.
const SEARCH_URL: &str = "http://localhost:2946";

/// Slower pages are not worth waiting for in a turn.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Configuration of web access.
#[derive(Debug, Clone)]
pub struct WebConfig {
    /// The address of the SearXNG.
    pub search_url: String,
    /// The compose file that starts one on this machine.
    pub search_compose: PathBuf,
    /// The proxies from the environment, which may have private addresses.
    pub proxies: Vec<String>,
    /// Timeout of one request, including redirects and body.
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

/// State that both tools share.
pub(crate) struct WebContext {
    pub(super) config: WebConfig,
    pub(super) client: WebClient,
}

impl WebContext {
    pub(crate) fn new(config: WebConfig) -> Self {
        // A proxy may be given without a scheme.
        let hosts = config
            .proxies
            .iter()
            .filter_map(|proxy| url_host(proxy).or_else(|| url_host(&format!("http://{proxy}"))));
        let private_names: BTreeSet<String> = hosts.chain(url_host(&config.search_url)).collect();
        Self { client: WebClient::new(PrivateHosts::new(&private_names)), config }
    }

    /// Runs work with the configured timeout.
    pub(super) async fn with_timeout<T>(
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
