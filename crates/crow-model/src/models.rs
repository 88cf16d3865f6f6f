//! Asks a provider which models it has.

use std::time::Duration;

use crow_core::{Failure, FailureKind};
use serde_json::Value;

use crate::failure::{Asked, BadAnswer};
use crate::http::{address, headers};
use crate::{Http, ProviderSettings};

/// A person waits for this list; one that takes longer is not worth it.
const LIST_TIMEOUT: Duration = Duration::from_secs(15);

/// Room for the list; the longest known has a few hundred models and their prices.
const LIST_LEN_MAX: usize = 8 * 1024 * 1024;

/// Lists the names of a provider's models, in its order.
pub async fn list_models(http: &Http, provider: &ProviderSettings) -> Result<Vec<String>, Failure> {
    let asked = Asked::provider(provider);
    let url = address(provider, &["models"])?;
    let request = http.client(&url).get(url).headers(headers(provider)?).timeout(LIST_TIMEOUT);
    let mut response = request.send().await.map_err(|error| asked.no_answer(error).failure)?;
    let code = response.status();
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|error| asked.no_answer(error).failure)? {
        body.extend_from_slice(&bytes);
        if body.len() > LIST_LEN_MAX {
            let sentence = format!("`{}` sent a list of models that is too long", provider.name);
            return Err(Failure::new(FailureKind::Protocol, sentence));
        }
    }
    if !code.is_success() {
        let body = String::from_utf8_lossy(&body);
        let answer = BadAnswer { code: code.as_u16(), body: &body, retry_after: None, is_same: false };
        return Err(asked.bad_answer(&answer).failure);
    }
    read_list(&body).ok_or_else(|| {
        let sentence = format!("`{}` answered with something that is no list of models", provider.name);
        Failure::new(FailureKind::Protocol, sentence)
    })
}

fn read_list(body: &[u8]) -> Option<Vec<String>> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let list = value.get("data").or_else(|| value.get("models")).unwrap_or(&value).as_array()?;
    let name = |model: &Value| {
        let named = ["id", "name", "model"].iter().find_map(|field| model.get(*field)?.as_str());
        named.or(model.as_str()).map(str::to_owned)
    };
    Some(list.iter().filter_map(name).collect())
}
