//! Lists a provider's models with their properties. Sends no request that costs money or loads a model.

mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use crow_core::{Failure, FailureKind};
use reqwest::header::HeaderMap;
use reqwest::{Method, Url};
use serde_json::{Value, json};

pub use self::parse::{ListedModel, ModelListing, ModelServerKind};
use crate::failure::{ErrorResponse, FailureContext};
use crate::http::{endpoint_url, is_on_local_network, request_headers};
use crate::{HttpClients, ProviderSettings};

/// Space for a page of the list; the longest known has a few hundred models with prices.
const PAGE_LEN_MAX: usize = 8 * 1024 * 1024;

/// Pages of a list; most providers send one, and one provider sends twenty models per page.
const PAGES_MAX: usize = 25;

/// Models that are queried one by one; no machine has more.
const DETAILED_MODELS_MAX: usize = 200;

/// Lists a provider's models, in its order. The list may take as long as `timeout`, and so may the further queries about
/// the models; what has not arrived by then is unknown.
pub async fn list_models(
    http: &HttpClients,
    provider: &ProviderSettings,
    timeout: Duration,
) -> Result<ModelListing, Failure> {
    let client = ModelsClient::new(http, provider)?;
    let result = tokio::time::timeout(timeout, client.fetch_listing()).await;
    let mut listing = result.map_err(|_| client.timeout_failure(timeout))??;
    // The list is useful without the details.
    let _ = tokio::time::timeout(timeout, client.fill_details(&mut listing)).await;
    Ok(listing)
}

/// Checks the key with a gateway whose list is public.
pub async fn check_key(
    http: &HttpClients,
    provider: &ProviderSettings,
    timeout: Duration,
) -> Result<(), Failure> {
    let client = ModelsClient::new(http, provider)?;
    let url = endpoint_url(provider, &["key"])?;
    let result = tokio::time::timeout(timeout, client.fetch_page(url))
        .await
        .map_err(|_| client.timeout_failure(timeout))?;
    result.map(drop)
}

/// The connection to a provider's model list.
struct ModelsClient<'a> {
    http: &'a HttpClients,
    context: FailureContext<'a>,
    models_url: Url,
    headers: HeaderMap,
}

impl<'a> ModelsClient<'a> {
    fn new(http: &'a HttpClients, provider: &'a ProviderSettings) -> Result<Self, Failure> {
        let models_url = endpoint_url(provider, &["models"])?;
        Ok(Self {
            http,
            context: FailureContext::about_provider(provider),
            models_url,
            headers: request_headers(provider)?,
        })
    }

    async fn fetch_listing(&self) -> Result<ModelListing, Failure> {
        let (mut listing, mut ids, mut url) =
            (ModelListing::default(), BTreeSet::new(), self.models_url.clone());
        for _ in 0..PAGES_MAX {
            let page = self.fetch_page(url).await?;
            let next_page = parse::parse_listing(&page).ok_or_else(|| self.not_a_list_failure())?;
            let n_before = listing.models.len();
            listing.server = listing.server.or(next_page.server);
            listing.models.extend(next_page.models.into_iter().filter(|model| ids.insert(model.id.clone())));
            // A page without new models is followed by more of the same.
            let Some(cursor) = parse::next_page_cursor(&page).filter(|_| listing.models.len() > n_before)
            else {
                break;
            };
            url = self.models_url.clone();
            url.query_pairs_mut().append_pair("after_id", cursor);
        }
        Ok(listing)
    }

    async fn fetch_page(&self, url: Url) -> Result<Value, Failure> {
        let (code, body) = self.send_request(Method::GET, url, None).await?;
        if !(200..300).contains(&code) {
            let body = String::from_utf8_lossy(&body);
            let answer = ErrorResponse { code, body: &body, retry_after: None, is_repeated: false };
            return Err(self.context.explain_response(&answer).failure);
        }
        serde_json::from_slice(&body).map_err(|_| self.not_a_list_failure())
    }

    async fn send_request(
        &self,
        method: Method,
        url: Url,
        body: Option<&Value>,
    ) -> Result<(u16, Vec<u8>), Failure> {
        let mut request =
            self.http.client_for(&url).await?.request(method, url).headers(self.headers.clone());
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let transport_failure = |error| self.context.explain_transport_error(error).failure;
        let mut response = request.send().await.map_err(transport_failure)?;
        let (code, mut bytes) = (response.status().as_u16(), Vec::new());
        while let Some(chunk) = response.chunk().await.map_err(transport_failure)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > PAGE_LEN_MAX {
                let message = format!("`{}` sent a list of models that is too long", self.provider_name());
                return Err(Failure::new(FailureKind::Protocol, message));
            }
        }
        Ok((code, bytes))
    }

    fn provider_name(&self) -> &str {
        &self.context.provider.name
    }

    fn not_a_list_failure(&self) -> Failure {
        let message =
            format!("`{}` answered with something that is not a list of models", self.provider_name());
        Failure::new(FailureKind::Protocol, message)
    }

    fn timeout_failure(&self, timeout: Duration) -> Failure {
        let (name, seconds) = (self.provider_name(), timeout.as_secs_f64());
        let message = format!("`{name}` did not list its models within {seconds} s; try again");
        Failure::new(FailureKind::Connection, message)
    }

    /// Queries the native APIs of servers whose list has few details.
    async fn fill_details(&self, listing: &mut ModelListing) {
        // Ollama alone may not be recognizable by its list; no remote server is one.
        let is_local = is_on_local_network(&self.models_url);
        let has_no_windows = listing.models.iter().all(|model| model.window.is_none());
        if listing.server.is_none() && is_local && has_no_windows {
            let version = self.fetch_native(&["api", "version"], None).await;
            listing.server = version.filter(parse::is_ollama).map(|_| ModelServerKind::Ollama);
        }
        match listing.server {
            Some(ModelServerKind::LlamaCpp) => self.describe_llama_cpp(&mut listing.models).await,
            Some(ModelServerKind::LmStudio) => self.describe_lm_studio(&mut listing.models).await,
            Some(ModelServerKind::Ollama) => self.describe_ollama(&mut listing.models).await,
            Some(ModelServerKind::Vllm | ModelServerKind::OpenRouter) | None => {}
        }
    }

    /// Older versions list only the model's original window.
    async fn describe_llama_cpp(&self, models: &mut [ListedModel]) {
        // With several models the query would load one.
        let [model] = models else { return };
        if model.window.is_none() {
            model.window =
                self.fetch_native(&["props"], None).await.and_then(|props| parse::parse_slot_window(&props));
        }
    }

    async fn describe_lm_studio(&self, models: &mut [ListedModel]) {
        for version in ["v0", "v1"] {
            let page = self.fetch_native(&["api", version, "models"], None).await;
            // It answers 200 with an error if it has nothing.
            if let Some(details) = page.as_ref().and_then(parse::parse_lm_studio) {
                models.iter_mut().for_each(|model| model.fill_missing(&details));
                return;
            }
        }
    }

    async fn describe_ollama(&self, models: &mut [ListedModel]) {
        let loaded_models = self.fetch_native(&["api", "ps"], None).await;
        let loaded_models = loaded_models.as_ref().map(parse::parse_loaded_models).unwrap_or_default();
        let default_window = self
            .fetch_native(&["api", "status"], None)
            .await
            .and_then(|status| parse::parse_default_window(&status));
        for model in models.iter_mut().take(DETAILED_MODELS_MAX) {
            model.fill_missing(&loaded_models);
            let body = json!({ "model": model.id });
            if let Some(page) = self.fetch_native(&["api", "show"], Some(&body)).await {
                model.fill_missing(&[parse::parse_model_details(&model.id, &page, default_window)]);
            }
        }
    }

    /// Queries a path outside the OpenAI-compatible API. Errors are ignored.
    async fn fetch_native(&self, path: &[&str], body: Option<&Value>) -> Option<Value> {
        let mut url = self.models_url.clone();
        url.path_segments_mut().ok()?.pop();
        if url.path().ends_with("/v1") {
            url.path_segments_mut().ok()?.pop();
        }
        url.path_segments_mut().ok()?.pop_if_empty().extend(path);
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let (code, bytes) = self.send_request(method, url, body).await.ok()?;
        if code == 200 { serde_json::from_slice(&bytes).ok() } else { None }
    }
}
