//! The configured providers, and whether a model's configured window fits what its server allows. Makes no requests.

use std::time::Duration;

use crow_model::{ListedModel, ModelServerKind, ModelSettings, ProviderSettings};

use crate::settings::Settings;

/// Timeout for a model list; a user waits for it.
pub(crate) const LIST_WAIT: Duration = Duration::from_secs(15);

/// Returns each provider in use once, sorted by name.
pub(crate) fn configured_providers(settings: &Settings) -> Vec<&ProviderSettings> {
    let mut providers: Vec<_> = settings.models.iter().map(|model| &model.provider).collect();
    providers.sort_by(|a, b| a.name.cmp(&b.name));
    providers.dedup_by(|a, b| a.name == b.name);
    providers
}

/// Returns the problem if a model is configured with more tokens than its server allows.
pub(crate) fn window_problem(
    server: Option<ModelServerKind>,
    model: &ModelSettings,
    listed: &ListedModel,
) -> Option<String> {
    let (name, configured) = (&model.name, model.context_window);
    let limit = listed.window.or(listed.window_max).filter(|most| *most < configured)?;
    let setting = format!("set models.{name}.context_window to {limit}");
    // If the model itself is limited, a server setting does not help.
    let wanted = listed.window_max.map_or(configured, |max| max.min(configured));
    let remedy = if wanted > limit { server.and_then(|server| window_remedy(server, wanted)) } else { None };
    let advice = match remedy {
        Some(remedy) => format!("{setting}, or {remedy}"),
        None => setting,
    };
    Some(format!("{name} is configured with {configured} tokens but may read only {limit}: {advice}"))
}

/// Whether a server chooses a model's window itself and reports it only once the model is loaded.
pub(crate) fn has_window_only_when_loaded(server: Option<ModelServerKind>, listed: &ListedModel) -> bool {
    listed.window.is_none()
        && match server {
            Some(ModelServerKind::LlamaCpp | ModelServerKind::LmStudio | ModelServerKind::Ollama) => true,
            Some(ModelServerKind::OpenRouter | ModelServerKind::Vllm) | None => false,
        }
}

/// Describes how a server is configured to give a model this many tokens.
pub(crate) fn window_remedy(server: ModelServerKind, tokens: u64) -> Option<String> {
    match server {
        ModelServerKind::LlamaCpp => Some(format!("start llama.cpp with `-c {tokens}` per slot")),
        ModelServerKind::LmStudio => Some(format!("load it in LM Studio with a context length of {tokens}")),
        ModelServerKind::Ollama => Some(format!("start Ollama with OLLAMA_CONTEXT_LENGTH={tokens}")),
        ModelServerKind::Vllm => Some(format!("start vLLM with `--max-model-len {tokens}`")),
        ModelServerKind::OpenRouter => None,
    }
}
