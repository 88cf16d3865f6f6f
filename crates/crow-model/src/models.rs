//! Asks a provider which models it has, and what it says of them. Asks for nothing that costs or loads a model.

mod read;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use crow_core::{Failure, FailureKind};
use reqwest::header::HeaderMap;
use reqwest::{Method, Url};
use serde_json::{Value, json};

pub use self::read::{ListedModel, ModelListing, ModelServerKind};
use crate::failure::{ErrorResponse, FailureContext};
use crate::http::{endpoint_url, is_on_local_network, request_headers};
use crate::{HttpClients, ProviderSettings};

/// Room for a page of the list; the longest known has a few hundred models and their prices.
const PAGE_LEN_MAX: usize = 8 * 1024 * 1024;

/// Pages of a list; most providers send one, and twenty models are the fewest that one sends by itself.
const PAGES_MAX: usize = 25;

/// Models that are asked about one by one; nobody keeps more on one machine.
const DESCRIBED_MAX: usize = 200;

/// Lists a provider's models, in its order. The list may take as long as `wait`, and so may what is asked about the
/// models beyond it; what is not told by then is not known.
pub async fn list_models(
    http: &HttpClients,
    provider: &ProviderSettings,
    wait: Duration,
) -> Result<ModelListing, Failure> {
    let door = ModelsClient::new(http, provider)?;
    let listed = tokio::time::timeout(wait, door.fetch_listing()).await;
    let mut listing = listed.map_err(|_| door.timeout_failure(wait))??;
    // The list is worth having without the rest.
    let _ = tokio::time::timeout(wait, door.fill_details(&mut listing)).await;
    Ok(listing)
}

/// Asks a gateway whose list is open to everybody whether the key is good.
pub async fn check_key(
    http: &HttpClients,
    provider: &ProviderSettings,
    wait: Duration,
) -> Result<(), Failure> {
    let door = ModelsClient::new(http, provider)?;
    let url = endpoint_url(provider, &["key"])?;
    let answered =
        tokio::time::timeout(wait, door.fetch_page(url)).await.map_err(|_| door.timeout_failure(wait))?;
    answered.map(drop)
}

/// Where a provider is asked.
struct ModelsClient<'a> {
    http: &'a HttpClients,
    asked: FailureContext<'a>,
    models: Url,
    headers: HeaderMap,
}

impl<'a> ModelsClient<'a> {
    fn new(http: &'a HttpClients, provider: &'a ProviderSettings) -> Result<Self, Failure> {
        let models = endpoint_url(provider, &["models"])?;
        Ok(Self {
            http,
            asked: FailureContext::about_provider(provider),
            models,
            headers: request_headers(provider)?,
        })
    }

    async fn fetch_listing(&self) -> Result<ModelListing, Failure> {
        let (mut whole, mut ids, mut url) = (ModelListing::default(), BTreeSet::new(), self.models.clone());
        for _ in 0..PAGES_MAX {
            let page = self.fetch_page(url).await?;
            let listing = read::parse_listing(&page).ok_or_else(|| self.not_a_list_failure())?;
            let before = whole.models.len();
            whole.server = whole.server.or(listing.server);
            whole.models.extend(listing.models.into_iter().filter(|model| ids.insert(model.id.clone())));
            // A page that brings nothing new is followed by more of the kind.
            let Some(last) = read::next_page_cursor(&page).filter(|_| whole.models.len() > before) else {
                break;
            };
            url = self.models.clone();
            url.query_pairs_mut().append_pair("after_id", last);
        }
        Ok(whole)
    }

    async fn fetch_page(&self, url: Url) -> Result<Value, Failure> {
        let (code, body) = self.send_request(Method::GET, url, None).await?;
        if !(200..300).contains(&code) {
            let body = String::from_utf8_lossy(&body);
            let answer = ErrorResponse { code, body: &body, retry_after: None, is_same: false };
            return Err(self.asked.explain_response(&answer).failure);
        }
        serde_json::from_slice(&body).map_err(|_| self.not_a_list_failure())
    }

    async fn send_request(
        &self,
        method: Method,
        url: Url,
        body: Option<&Value>,
    ) -> Result<(u16, Vec<u8>), Failure> {
        let mut request = self.http.client_for(&url).request(method, url).headers(self.headers.clone());
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let failed = |error| self.asked.explain_transport_error(error).failure;
        let mut response = request.send().await.map_err(failed)?;
        let (code, mut bytes) = (response.status().as_u16(), Vec::new());
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > PAGE_LEN_MAX {
                let sentence = format!("`{}` sent a list of models that is too long", self.provider_name());
                return Err(Failure::new(FailureKind::Protocol, sentence));
            }
        }
        Ok((code, bytes))
    }

    fn provider_name(&self) -> &str {
        &self.asked.provider.name
    }

    fn not_a_list_failure(&self) -> Failure {
        let sentence =
            format!("`{}` answered with something that is no list of models", self.provider_name());
        Failure::new(FailureKind::Protocol, sentence)
    }

    fn timeout_failure(&self, wait: Duration) -> Failure {
        let (name, seconds) = (self.provider_name(), wait.as_secs_f64());
        let sentence = format!("`{name}` did not say within {seconds} s which models it has; try again");
        Failure::new(FailureKind::Connection, sentence)
    }

    /// Asks servers that say little in their list for the rest, in their own words.
    async fn fill_details(&self, listing: &mut ModelListing) {
        // Ollama alone may not be told by its list; nobody far away is one.
        let is_near = is_on_local_network(&self.models);
        let says_nothing = listing.models.iter().all(|model| model.window.is_none());
        if listing.server.is_none() && is_near && says_nothing {
            let version = self.fetch_native(&["api", "version"], None).await;
            listing.server = version.filter(read::is_ollama).map(|_| ModelServerKind::Ollama);
        }
        match listing.server {
            Some(ModelServerKind::LlamaCpp) => self.describe_llama_cpp(&mut listing.models).await,
            Some(ModelServerKind::LmStudio) => self.describe_lm_studio(&mut listing.models).await,
            Some(ModelServerKind::Ollama) => self.describe_ollama(&mut listing.models).await,
            Some(ModelServerKind::Vllm | ModelServerKind::OpenRouter) | None => {}
        }
    }

    /// Older ones say in their list only what a model was made for.
    async fn describe_llama_cpp(&self, models: &mut [ListedModel]) {
        // With several models the question would load one.
        let [model] = models else { return };
        if model.window.is_none() {
            model.window =
                self.fetch_native(&["props"], None).await.and_then(|props| read::parse_slot_window(&props));
        }
    }

    async fn describe_lm_studio(&self, models: &mut [ListedModel]) {
        for version in ["v0", "v1"] {
            let page = self.fetch_native(&["api", version, "models"], None).await;
            // It answers 200 with an error where it has nothing.
            if let Some(known) = page.as_ref().and_then(read::parse_lm_studio) {
                models.iter_mut().for_each(|model| model.fill_missing(&known));
                return;
            }
        }
    }

    async fn describe_ollama(&self, models: &mut [ListedModel]) {
        let loaded = self.fetch_native(&["api", "ps"], None).await;
        let loaded = loaded.as_ref().map(read::parse_loaded_models).unwrap_or_default();
        let usual = self
            .fetch_native(&["api", "status"], None)
            .await
            .and_then(|status| read::parse_default_window(&status));
        for model in models.iter_mut().take(DESCRIBED_MAX) {
            model.fill_missing(&loaded);
            let question = json!({ "model": model.id });
            if let Some(page) = self.fetch_native(&["api", "show"], Some(&question)).await {
                model.fill_missing(&[read::parse_model_details(&model.id, &page, usual)]);
            }
        }
    }

    /// Asks beside the OpenAI-compatible paths. Whatever goes wrong there is nothing to hear of.
    async fn fetch_native(&self, path: &[&str], body: Option<&Value>) -> Option<Value> {
        let mut url = self.models.clone();
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
