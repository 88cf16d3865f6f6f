//! The configured providers, and how what they say of a model's window fits what is configured. Asks nobody.

use std::time::Duration;

use crow_model::{ListedModel, ModelServerKind, ModelSettings, ProviderSettings};

use crate::settings::Settings;

/// A person waits for a list of models; one that takes longer is not worth it.
pub(crate) const LIST_WAIT: Duration = Duration::from_secs(15);

/// Shows each provider that has a model in use once, by name.
pub(crate) fn configured_providers(settings: &Settings) -> Vec<&ProviderSettings> {
    let mut providers: Vec<_> = settings.models.iter().map(|model| &model.provider).collect();
    providers.sort_by(|a, b| a.name.cmp(&b.name));
    providers.dedup_by(|a, b| a.name == b.name);
    providers
}

/// Says what is wrong where a model is configured with more tokens than its server lets it read.
pub(crate) fn window_problem(
    server: Option<ModelServerKind>,
    model: &ModelSettings,
    listed: &ListedModel,
) -> Option<String> {
    let (name, configured) = (&model.name, model.context_window);
    let limit = listed.window.or(listed.window_max).filter(|most| *most < configured)?;
    let setting = format!("set models.{name}.context_window to {limit}");
    // Where the model itself can read no more, nothing at the server helps.
    let wanted = listed.window_max.map_or(configured, |max| max.min(configured));
    let remedy = if wanted > limit { server.and_then(|server| window_remedy(server, wanted)) } else { None };
    let advice = match remedy {
        Some(remedy) => format!("{setting}, or {remedy}"),
        None => setting,
    };
    Some(format!("{name} is configured with {configured} tokens and may read {limit}: {advice}"))
}

/// Tells whether a server gives a model a window of its own choice, and says which only when the model is loaded.
pub(crate) fn has_window_only_when_loaded(server: Option<ModelServerKind>, listed: &ListedModel) -> bool {
    listed.window.is_none()
        && match server {
            Some(ModelServerKind::LlamaCpp | ModelServerKind::LmStudio | ModelServerKind::Ollama) => true,
            Some(ModelServerKind::OpenRouter | ModelServerKind::Vllm) | None => false,
        }
}

/// Says how a server gives a model so many tokens, where a person can do that.
pub(crate) fn window_remedy(server: ModelServerKind, tokens: u64) -> Option<String> {
    match server {
        ModelServerKind::LlamaCpp => {
            Some(format!("start llama.cpp with `-c {tokens}` for each of its slots"))
        }
        ModelServerKind::LmStudio => Some(format!("load it in LM Studio with a context length of {tokens}")),
        ModelServerKind::Ollama => Some(format!("start Ollama with OLLAMA_CONTEXT_LENGTH={tokens}")),
        ModelServerKind::Vllm => Some(format!("start vLLM with `--max-model-len {tokens}`")),
        ModelServerKind::OpenRouter => None,
    }
}
