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

pub use self::read::{ListedModel, Listing, Server};
use crate::failure::{Asked, BadAnswer};
use crate::http::{address, headers, is_near};
use crate::{Http, ProviderSettings};

/// Room for a page of the list; the longest known has a few hundred models and their prices.
const PAGE_LEN_MAX: usize = 8 * 1024 * 1024;

/// Pages of a list; most providers send one, and twenty models are the fewest that one sends by itself.
const PAGES_MAX: usize = 25;

/// Models that are asked about one by one; nobody keeps more on one machine.
const DESCRIBED_MAX: usize = 200;

/// Lists a provider's models, in its order. The list may take as long as `wait`, and so may what is asked about the
/// models beyond it; what is not told by then is not known.
pub async fn list_models(
    http: &Http,
    provider: &ProviderSettings,
    wait: Duration,
) -> Result<Listing, Failure> {
    let door = Door::new(http, provider)?;
    let listed = tokio::time::timeout(wait, door.list()).await;
    let mut listing = listed.map_err(|_| door.too_late(wait))??;
    // The list is worth having without the rest.
    let _ = tokio::time::timeout(wait, door.describe(&mut listing)).await;
    Ok(listing)
}

/// Asks a gateway whose list is open to everybody whether the key is good.
pub async fn check_key(http: &Http, provider: &ProviderSettings, wait: Duration) -> Result<(), Failure> {
    let door = Door::new(http, provider)?;
    let url = address(provider, &["key"])?;
    let answered = tokio::time::timeout(wait, door.page(url)).await.map_err(|_| door.too_late(wait))?;
    answered.map(drop)
}

/// Where a provider is asked.
struct Door<'a> {
    http: &'a Http,
    asked: Asked<'a>,
    models: Url,
    headers: HeaderMap,
}

impl<'a> Door<'a> {
    fn new(http: &'a Http, provider: &'a ProviderSettings) -> Result<Self, Failure> {
        let models = address(provider, &["models"])?;
        Ok(Self { http, asked: Asked::provider(provider), models, headers: headers(provider)? })
    }

    async fn list(&self) -> Result<Listing, Failure> {
        let (mut whole, mut ids, mut url) = (Listing::default(), BTreeSet::new(), self.models.clone());
        for _ in 0..PAGES_MAX {
            let page = self.page(url).await?;
            let listing = read::listing(&page).ok_or_else(|| self.no_list())?;
            let before = whole.models.len();
            whole.server = whole.server.or(listing.server);
            whole.models.extend(listing.models.into_iter().filter(|model| ids.insert(model.id.clone())));
            // A page that brings nothing new is followed by more of the kind.
            let Some(last) = read::next_page(&page).filter(|_| whole.models.len() > before) else { break };
            url = self.models.clone();
            url.query_pairs_mut().append_pair("after_id", last);
        }
        Ok(whole)
    }

    async fn page(&self, url: Url) -> Result<Value, Failure> {
        let (code, body) = self.send(Method::GET, url, None).await?;
        if !(200..300).contains(&code) {
            let body = String::from_utf8_lossy(&body);
            let answer = BadAnswer { code, body: &body, retry_after: None, is_same: false };
            return Err(self.asked.bad_answer(&answer).failure);
        }
        serde_json::from_slice(&body).map_err(|_| self.no_list())
    }

    async fn send(&self, method: Method, url: Url, body: Option<&Value>) -> Result<(u16, Vec<u8>), Failure> {
        let mut request = self.http.client(&url).request(method, url).headers(self.headers.clone());
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let failed = |error| self.asked.no_answer(error).failure;
        let mut response = request.send().await.map_err(failed)?;
        let (code, mut bytes) = (response.status().as_u16(), Vec::new());
        while let Some(piece) = response.chunk().await.map_err(failed)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > PAGE_LEN_MAX {
                let sentence = format!("`{}` sent a list of models that is too long", self.name());
                return Err(Failure::new(FailureKind::Protocol, sentence));
            }
        }
        Ok((code, bytes))
    }

    fn name(&self) -> &str {
        &self.asked.provider.name
    }

    fn no_list(&self) -> Failure {
        let sentence = format!("`{}` answered with something that is no list of models", self.name());
        Failure::new(FailureKind::Protocol, sentence)
    }

    fn too_late(&self, wait: Duration) -> Failure {
        let (name, seconds) = (self.name(), wait.as_secs_f64());
        let sentence = format!("`{name}` did not say within {seconds} s which models it has; try again");
        Failure::new(FailureKind::Connection, sentence)
    }

    /// Asks servers that say little in their list for the rest, in their own words.
    async fn describe(&self, listing: &mut Listing) {
        // Ollama alone may not be told by its list; nobody far away is one.
        let is_near = is_near(&self.models);
        let says_nothing = listing.models.iter().all(|model| model.window.is_none());
        if listing.server.is_none() && is_near && says_nothing {
            let version = self.told(&["api", "version"], None).await;
            listing.server = version.filter(read::is_ollama).map(|_| Server::Ollama);
        }
        match listing.server {
            Some(Server::LlamaCpp) => self.describe_llama_cpp(&mut listing.models).await,
            Some(Server::LmStudio) => self.describe_lm_studio(&mut listing.models).await,
            Some(Server::Ollama) => self.describe_ollama(&mut listing.models).await,
            Some(Server::Vllm | Server::OpenRouter) | None => {}
        }
    }

    /// Older ones say in their list only what a model was made for.
    async fn describe_llama_cpp(&self, models: &mut [ListedModel]) {
        // With several models the question would load one.
        let [model] = models else { return };
        if model.window.is_none() {
            model.window = self.told(&["props"], None).await.and_then(|props| read::slot(&props));
        }
    }

    async fn describe_lm_studio(&self, models: &mut [ListedModel]) {
        for version in ["v0", "v1"] {
            let page = self.told(&["api", version, "models"], None).await;
            // It answers 200 with an error where it has nothing.
            if let Some(known) = page.as_ref().and_then(read::lm_studio) {
                models.iter_mut().for_each(|model| model.learn(&known));
                return;
            }
        }
    }

    async fn describe_ollama(&self, models: &mut [ListedModel]) {
        let loaded = self.told(&["api", "ps"], None).await;
        let loaded = loaded.as_ref().map(read::loaded).unwrap_or_default();
        let usual = self.told(&["api", "status"], None).await.and_then(|status| read::usual_window(&status));
        for model in models.iter_mut().take(DESCRIBED_MAX) {
            model.learn(&loaded);
            let question = json!({ "model": model.id });
            if let Some(page) = self.told(&["api", "show"], Some(&question)).await {
                model.learn(&[read::shown(&model.id, &page, usual)]);
            }
        }
    }

    /// Asks beside the OpenAI-compatible paths. Whatever goes wrong there is nothing to hear of.
    async fn told(&self, path: &[&str], body: Option<&Value>) -> Option<Value> {
        let mut url = self.models.clone();
        url.path_segments_mut().ok()?.pop();
        if url.path().ends_with("/v1") {
            url.path_segments_mut().ok()?.pop();
        }
        url.path_segments_mut().ok()?.pop_if_empty().extend(path);
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let (code, bytes) = self.send(method, url, body).await.ok()?;
        if code == 200 { serde_json::from_slice(&bytes).ok() } else { None }
    }
}
