//! Settings of providers and models.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use crow_core::{ToolSelection, model_family};
use serde_json::{Map, Value};

use crate::api::ModelApi;

/// The thought level if neither the user nor the configuration chose one.
const DEFAULT_LEVEL: &str = "default";

/// A provider's key. Neither logs nor errors can print it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps a key from the configuration.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn expose_secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// The form of a model's tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolCallMode {
    /// In its provider's API only; text is text.
    Native,
    /// As text in a documented form; the provider gets no tools.
    Text,
    /// In its provider's API; a reply that consists of a call written as text counts as one.
    #[default]
    Auto,
}

impl ToolCallMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Native, Self::Text, Self::Auto];

    /// Returns the mode's name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Text => "text",
            Self::Auto => "auto",
        }
    }

    /// Parses the result of [`ToolCallMode::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text)
    }
}

/// A model's price, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelPrice {
    /// Input tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Input tokens from the provider's cache; `None` is as `input`.
    pub cached: Option<f64>,
    /// Input tokens written to the provider's cache; `None` is as `input`.
    pub cache_written: Option<f64>,
}

/// A provider.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    /// Its name in the configuration.
    pub name: String,
    /// URL up to and including `/v1`.
    pub base_url: String,
    pub api: ModelApi,
    /// The key, if one is needed.
    pub api_key: Option<ApiKey>,
    /// The variable that the key comes from, for error messages.
    pub key_variable: Option<String>,
    /// Headers added to each request.
    pub headers: Vec<(String, String)>,
}

impl ProviderSettings {
    /// Returns the URL without user name, password and query, which may be secrets.
    pub fn display_address(&self) -> String {
        let Ok(url) = reqwest::Url::parse(&self.base_url) else { return "its address".to_owned() };
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
    }
}

/// Headers may contain keys too, so their values are not printed either.
impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ProviderSettings")
            .field("name", &self.name)
            .field("base_url", &self.display_address())
            .field("api", &self.api)
            .field("api_key", &self.api_key)
            .field("key_variable", &self.key_variable)
            .field("headers", &headers)
            .finish()
    }
}

/// A model with its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSettings {
    /// Its name in the configuration.
    pub name: String,
    pub provider: ProviderSettings,
    /// Its name at the provider.
    pub model: String,
    /// Its context window in tokens.
    pub context_window: u64,
    /// Whether it reads images. If not, it gets a note in place of each.
    pub reads_images: bool,
    /// Tokens in context beyond which a conversation is compacted; `None` is the limit of all models.
    pub compact_tokens_max: Option<u64>,
    /// Maximum tokens of one reply.
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
    /// The reasoning effort, as the provider names it.
    pub reasoning_effort: Option<String>,
    /// Fields added to each request at a thought level, in place of `reasoning_effort`.
    pub thought_levels: BTreeMap<String, Map<String, Value>>,
    /// Whether its thinking is sent back to it; `None` lets the provider decide.
    pub send_reasoning: Option<bool>,
    /// The form of its tool calls.
    pub tool_calls: ToolCallMode,
    /// The tools that it gets.
    pub tools: ToolSelection,
    pub price: Option<ModelPrice>,
    /// Fields added to each request.
    pub extra_body: Map<String, Value>,
    /// Retries of each request.
    pub retries_max: u32,
    /// Models, by their configured names, that answer when its provider is overloaded, in order.
    pub fallbacks: Vec<String>,
}

impl ModelSettings {
    /// The minimum of nearly all current models.
    pub const CONTEXT_WINDOW: u64 = 128_000;
    /// Most failures of a busy provider are over after three retries.
    pub const RETRIES_MAX: u32 = 3;

    /// A model of which only the name is known, which is also its name in the configuration.
    pub fn new(provider: ProviderSettings, model: impl Into<String>) -> Self {
        let model = model.into();
        Self {
            name: model.clone(),
            provider,
            model,
            context_window: Self::CONTEXT_WINDOW,
            reads_images: true,
            compact_tokens_max: None,
            max_tokens: None,
            temperature: None,
            reasoning_effort: None,
            thought_levels: BTreeMap::new(),
            send_reasoning: None,
            tool_calls: ToolCallMode::default(),
            tools: ToolSelection::default(),
            price: None,
            extra_body: Map::new(),
            retries_max: Self::RETRIES_MAX,
            fallbacks: Vec::new(),
        }
    }

    /// The model with its provider: its provider state goes back to no other, whatever the configuration calls it.
    pub(crate) fn qualified_id(&self) -> String {
        format!("{}/{}", self.provider.name, self.model)
    }

    /// The variable for its provider's key, if it is required and not set.
    pub fn missing_key(&self) -> Option<&str> {
        let provider = &self.provider;
        provider.key_variable.as_deref().filter(|_| provider.api_key.is_none())
    }

    /// The thought level for an API to encode; `None` if the fields of the level replace it. Without a setting it is that
    /// of the model's family.
    pub(crate) fn effort_level(&self) -> Option<&str> {
        let has_fields = |level: &str| self.thought_levels.contains_key(level);
        match self.reasoning_effort.as_deref() {
            Some(level) => Some(level).filter(|level| !has_fields(level)),
            None if has_fields(DEFAULT_LEVEL) => None,
            None => model_family(&self.model).reasoning_effort,
        }
    }

    /// Whether the model gets the core tools only, and with them the short system prompt.
    pub fn gets_core_tools(&self) -> bool {
        self.tools.is_core(self.context_window)
    }

    /// Whether several calls in one reply are asked for.
    pub(crate) fn wants_parallel_calls(&self) -> bool {
        model_family(&self.model).parallel_calls && !self.gets_core_tools()
    }

    /// The fields that the settings add to each request, with priority over those of the API: those of the thought
    /// level, and over them `extra_body`. Objects in both are merged.
    pub(crate) fn extra_fields(&self) -> Map<String, Value> {
        let level = self.reasoning_effort.as_deref().unwrap_or(DEFAULT_LEVEL);
        let mut fields = self.thought_levels.get(level).cloned().unwrap_or_default();
        merge_fields(&mut fields, &self.extra_body);
        fields
    }
}

/// Merges fields over others, at every depth.
pub(crate) fn merge_fields(fields: &mut Map<String, Value>, overrides: &Map<String, Value>) {
    for (name, value) in overrides {
        match (fields.get_mut(name), value) {
            (Some(Value::Object(base)), Value::Object(overriding)) => merge_fields(base, overriding),
            _ => {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
}
