//! Models to configure, with the limits their server reports. Pure.

use crow_model::{ListedModel, ModelListing, ModelPrice, ModelServerKind};

use crate::providers::{has_window_only_when_loaded, window_remedy};

/// Context window for a model whose server does not report one until it is loaded: enough to work with, and no more
/// than most machines have memory for.
const WINDOW_DEFAULT: u64 = 32_768;
/// Smaller windows hardly hold the tools and one file.
const WINDOW_MIN: u64 = 16_384;

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

/// Selects models of a server and returns notes about their context windows.
pub(super) fn select_models<'a>(
    listing: &ModelListing,
    models: impl Iterator<Item = &'a ListedModel>,
) -> (Vec<ModelChoice>, Vec<String>) {
    let (mut choices, mut unreported, mut narrow) = (Vec::new(), Vec::new(), Vec::new());
    for model in models {
        if has_window_only_when_loaded(listing.server, model) {
            unreported.push(model.id.as_str());
        }
        if model.window.is_some_and(|window| window < WINDOW_MIN && model.window_max > Some(window)) {
            narrow.push(model.id.as_str());
        }
        choices.push(ModelChoice::from_listed(listing.server, model));
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
