//! Which provider and model to ask, and how.

use std::fmt;

use serde_json::{Map, Value};

/// A provider's key. It shows itself to nobody: neither logs nor errors can print it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes a key from the configuration.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// Where models are asked.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    /// Its name in the configuration.
    pub name: String,
    /// Address up to and including `/v1`.
    pub base_url: String,
    /// The key, where one is needed.
    pub api_key: Option<ApiKey>,
    /// The variable the key comes from, to name it when the key is missing or refused.
    pub key_variable: Option<String>,
    /// Headers to add to each request.
    pub headers: Vec<(String, String)>,
}

/// Headers may carry keys too, so their values show themselves to nobody either.
impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ProviderSettings")
            .field("name", &self.name)
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key)
            .field("key_variable", &self.key_variable)
            .field("headers", &headers)
            .finish()
    }
}

/// A model and how to ask it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSettings {
    /// Its name in the configuration.
    pub name: String,
    /// Where it is asked.
    pub provider: ProviderSettings,
    /// Its name at the provider.
    pub model: String,
    /// Its window in tokens.
    pub context_window: u64,
    /// Tokens it may write in one reply.
    pub max_tokens: Option<u64>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// How hard it should think, in the provider's words.
    pub reasoning_effort: Option<String>,
    /// Fields to add to each request.
    pub extra_body: Map<String, Value>,
    /// Tries after the first, for each request.
    pub retries_max: u32,
}
