//! What a provider wants of a request beyond the dialect, known by its host. Unknown ones get nothing extra: strict
//! servers refuse a field that they do not know.

use reqwest::Url;

use crate::ModelSettings;

/// Hosts that refuse a reply with calls when its reasoning is missing, in this turn and in all later ones.
const HOSTS_WITH_CALLS: [&str; 6] =
    ["deepseek.com", "moonshot.ai", "moonshot.cn", "kimi.com", "xiaomimimo.com", "mimo.mi.com"];

/// Names of models that do the same behind other hosts, once a person says that they want it.
const MODELS_WITH_CALLS: [&str; 3] = ["deepseek", "kimi", "mimo"];

/// Hosts whose models go on with the reasoning of a turn where they get it.
const HOSTS_OF_TURN: [&str; 2] = ["z.ai", "bigmodel.cn"];

/// Which reasoning goes back to a model in clear words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReasoningPolicy {
    /// None.
    Unsent,
    /// That of the replies since the person last spoke.
    OfTurn,
    /// That of every reply with calls, however old.
    WithCalls,
}

/// Decides which reasoning goes back.
pub(super) fn reasoning_policy(settings: &ModelSettings) -> ReasoningPolicy {
    let model = settings.model.to_ascii_lowercase();
    match settings.send_reasoning {
        Some(false) => ReasoningPolicy::Unsent,
        _ if has_host_in(settings, &HOSTS_WITH_CALLS) => ReasoningPolicy::WithCalls,
        Some(true) if MODELS_WITH_CALLS.iter().any(|name| model.contains(name)) => ReasoningPolicy::WithCalls,
        Some(true) => ReasoningPolicy::OfTurn,
        None if has_host_in(settings, &HOSTS_OF_TURN) => ReasoningPolicy::OfTurn,
        None => ReasoningPolicy::Unsent,
    }
}

/// Tells whether the provider caches only up to marks. Others cache by themselves.
pub(super) fn needs_cache_marks(settings: &ModelSettings) -> bool {
    let model = settings.model.trim_start_matches('~');
    model.starts_with("anthropic/") && has_host_in(settings, &["openrouter.ai"])
}

/// Names the field that limits a reply: whoever has a newer name for it refuses the old one for some models.
pub(super) fn max_tokens_field(settings: &ModelSettings) -> &'static str {
    if has_host_in(settings, &["api.openai.com", "openai.azure.com"]) {
        "max_completion_tokens"
    } else {
        "max_tokens"
    }
}

/// Tells whether the provider's host is one of these or below one.
fn has_host_in(settings: &ModelSettings, hosts: &[&str]) -> bool {
    let Ok(url) = Url::parse(&settings.provider.base_url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let is =
        |known: &str| host.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    hosts.iter().any(|known| is(known))
}
