//! Models to configure, with the limits their server reports. Pure.

use crow_model::{
    ListedModel, ModelListing, ModelPrice, ModelServerKind, ModelSettings, ProviderSettings, ToolCallMode,
};

use super::known_providers::KnownProvider;
use crate::providers::{has_window_only_when_loaded, window_remedy};

/// Context window for a model whose server does not report one until it is loaded: enough to work with, and no more
/// than most machines have memory for.
const WINDOW_DEFAULT: u64 = 32_768;
/// Smaller windows hardly hold the tools and one file.
const WINDOW_MIN: u64 = 16_384;

/// Name parts of models that do something other than chat.
const NOT_FOR_CHAT: [&str; 15] = [
    "davinci",
    "babbage",
    "embed",
    "whisper",
    "tts",
    "audio",
    "realtime",
    "transcribe",
    "image",
    "dall-e",
    "moderation",
    "rerank",
    "guard",
    "sora",
    "ocr",
];

/// A model to configure.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ModelChoice {
    /// The provider's name for the model.
    pub(super) name: String,
    /// Context window in tokens, if known.
    pub(super) window: Option<u64>,
    /// Price, if known.
    pub(super) price: Option<ModelPrice>,
    /// Whether tool calls must be written as text because the server does not support tools.
    pub(super) needs_text_calls: bool,
    /// Whether the server reports that the model does not read images.
    pub(super) is_text_only: bool,
}

impl ModelChoice {
    /// Returns a model of which only the name is known.
    pub(super) fn from_name(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Fills in what the provider at an address does not report.
    pub(super) fn with_known_facts(mut self, base_url: &str) -> Self {
        let known = KnownProvider::at(base_url).and_then(|provider| provider.find_model(&self.name));
        if let Some(known) = known {
            self.window = self.window.or(Some(known.window));
            self.price = self.price.or(known.price);
            self.is_text_only |= !known.reads_images;
        }
        self
    }

    /// Returns the settings this model will be configured with.
    pub(super) fn to_settings(&self, provider: ProviderSettings) -> ModelSettings {
        let defaults = ModelSettings::new(provider, &self.name);
        ModelSettings {
            context_window: self.window.unwrap_or(defaults.context_window),
            tool_calls: if self.needs_text_calls { ToolCallMode::Text } else { defaults.tool_calls },
            ..defaults
        }
    }

    fn from_listed(server: Option<ModelServerKind>, model: &ListedModel) -> Self {
        let max_window = model.window_max.map(|max| match has_window_only_when_loaded(server, model) {
            true => max.min(WINDOW_DEFAULT),
            false => max,
        });
        Self {
            name: model.id.clone(),
            window: model.window.or(max_window),
            price: model.price,
            needs_text_calls: model.takes_tools == Some(false),
            is_text_only: model.reads_images == Some(false),
        }
    }
}

/// Selects models of the server at an address and returns notes about their context windows.
pub(super) fn select_models<'a>(
    listing: &ModelListing,
    models: impl Iterator<Item = &'a ListedModel>,
    base_url: &str,
) -> (Vec<ModelChoice>, Vec<String>) {
    let (mut choices, mut unreported, mut narrow) = (Vec::new(), Vec::new(), Vec::new());
    for model in models {
        if has_window_only_when_loaded(listing.server, model) {
            unreported.push(model.id.as_str());
        }
        if model.window.is_some_and(|window| window < WINDOW_MIN && model.window_max > Some(window)) {
            narrow.push(model.id.as_str());
        }
        choices.push(ModelChoice::from_listed(listing.server, model).with_known_facts(base_url));
    }
    let Some(server) = listing.server else { return (choices, Vec::new()) };
    let (title, mut notes) = (server.as_str(), Vec::new());
    let remedy = window_remedy(server, WINDOW_DEFAULT).unwrap_or_default();
    if !unreported.is_empty() {
        let names = unreported.join(", ");
        notes.push(format!(
            "{title} reports the context window of {names} only once it is loaded, and it may be smaller than configured: \
             {remedy}, and compare with `crow-cli doctor`"
        ));
    }
    if !narrow.is_empty() {
        let names = narrow.join(", ");
        notes.push(format!(
            "{title} gives {names} a small context window: {remedy}, and raise its context_window to that"
        ));
    }
    (choices, notes)
}

/// Returns the listed chat models, those that call tools first.
pub(super) fn chat_models(listing: &ModelListing) -> Vec<&ListedModel> {
    let is_for_chat = |model: &&ListedModel| model.chats.unwrap_or(true) && is_chat_model(&model.id);
    let mut models: Vec<&ListedModel> = listing.models.iter().filter(is_for_chat).collect();
    models.sort_by_key(|model| model.takes_tools == Some(false));
    models
}

/// Joins the names of models into one line.
pub(super) fn join_names(models: &[ModelChoice]) -> String {
    models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Guesses from the name whether a model can chat.
fn is_chat_model(model: &str) -> bool {
    let model = model.to_lowercase();
    NOT_FOR_CHAT.iter().all(|part| !model.contains(part))
}
