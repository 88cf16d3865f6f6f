//! Which provider and model to ask, and how.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

/// The thought level where neither a person nor the configuration chose one.
const LEVEL_UNSAID: &str = "default";

/// A provider's key. It shows itself to nobody: neither logs nor errors can print it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes a key from the configuration.
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

/// The dialect in which a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelApi {
    /// `chat/completions`, which most servers speak.
    #[default]
    Chat,
    /// Anthropic's `messages`.
    Messages,
    /// `responses`, OpenAI's own.
    Responses,
}

impl ModelApi {
    /// Every dialect.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Messages, Self::Responses];

    /// Spells the dialect as the configuration does.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Responses => "responses",
        }
    }

    /// Reads what [`ModelApi::as_str`] returned.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.as_str() == text)
    }
}

/// How a model spells the calls of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolCallMode {
    /// As its provider's API does, and text is text.
    Native,
    /// As text in a form that it is told; its provider hears nothing of tools.
    Text,
    /// As its provider's API does; a reply that is nothing but a call written as text is taken for one.
    #[default]
    Auto,
}

impl ToolCallMode {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Native, Self::Text, Self::Auto];

    /// Spells the way as the configuration does.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Text => "text",
            Self::Auto => "auto",
        }
    }

    /// Reads what [`ToolCallMode::as_str`] spelled.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.as_str() == text)
    }
}

/// What a model costs, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelPrice {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
    /// Tokens read that came out of the provider's cache; as those read where nothing is said.
    pub cached: Option<f64>,
    /// Tokens read that were written into the provider's cache; as those read where nothing is said.
    pub cache_written: Option<f64>,
}

/// Where models are asked.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    /// Its name in the configuration.
    pub name: String,
    /// Address up to and including `/v1`.
    pub base_url: String,
    /// The dialect it is spoken to in.
    pub api: ModelApi,
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
            .field("api", &self.api)
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
    /// Whether it reads images. Where not, it gets a note in the place of each.
    pub reads_images: bool,
    /// Tokens in context beyond which a conversation with it is compacted; the limit of all models without one.
    pub compact_tokens_max: Option<u64>,
    /// Tokens it may write in one reply.
    pub max_tokens: Option<u64>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// How hard it should think, in the provider's words.
    pub reasoning_effort: Option<String>,
    /// Fields to add to each request at a thought level, instead of `reasoning_effort`.
    pub thought_levels: BTreeMap<String, Map<String, Value>>,
    /// Whether its reasoning is sent back to it; the provider decides where nothing is said.
    pub send_reasoning: Option<bool>,
    /// How it spells the calls of tools.
    pub tool_calls: ToolCallMode,
    /// What it costs.
    pub price: Option<ModelPrice>,
    /// Fields to add to each request.
    pub extra_body: Map<String, Value>,
    /// Tries after the first, for each request.
    pub retries_max: u32,
    /// The configured names of models that may answer in its place when its provider is overloaded, in this order.
    pub fallbacks: Vec<String>,
}

impl ModelSettings {
    /// Names the model with its provider: what it sealed goes back to nobody else, whatever the configuration
    /// calls it.
    pub(crate) fn qualified_id(&self) -> String {
        format!("{}/{}", self.provider.name, self.model)
    }

    /// The variable that holds its provider's key, where it should and does not.
    pub fn missing_key(&self) -> Option<&str> {
        let provider = &self.provider;
        provider.key_variable.as_deref().filter(|_| provider.api_key.is_none())
    }

    /// The word for how hard to think, for a dialect to spell; `None` where the fields of the level say it.
    pub(crate) fn effort_level(&self) -> Option<&str> {
        self.reasoning_effort.as_deref().filter(|level| !self.thought_levels.contains_key(*level))
    }

    /// The fields that the settings put into each request, before all that a dialect would say by itself: those of
    /// the thought level, and over them `extra_body`. What is an object in both is joined.
    pub(crate) fn extra_fields(&self) -> Map<String, Value> {
        let level = self.reasoning_effort.as_deref().unwrap_or(LEVEL_UNSAID);
        let mut fields = self.thought_levels.get(level).cloned().unwrap_or_default();
        merge_fields(&mut fields, &self.extra_body);
        fields
    }
}

/// Puts fields over others, at every depth.
pub(crate) fn merge_fields(fields: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (name, value) in over {
        match (fields.get_mut(name), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge_fields(below, above),
            _ => {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
}
