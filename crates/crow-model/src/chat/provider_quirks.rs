//! Requirements of providers beyond the API, recognized by host. Unknown ones get nothing extra: strict servers
//! reject unknown fields.

use reqwest::Url;

use crate::ModelSettings;

/// Hosts that reject a reply with calls without its reasoning, in this turn and in all later ones.
const HOSTS_WITH_CALL_REASONING: [&str; 6] =
    ["deepseek.com", "moonshot.ai", "moonshot.cn", "kimi.com", "xiaomimimo.com", "mimo.mi.com"];

/// Models that do the same behind other hosts, once the user sets it.
const MODELS_WITH_CALL_REASONING: [&str; 3] = ["deepseek", "kimi", "mimo"];

/// Hosts whose models continue the reasoning of a turn if they get it.
const HOSTS_WITH_TURN_REASONING: [&str; 2] = ["z.ai", "bigmodel.cn"];

/// The reasoning that is sent back to a model as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReasoningPolicy {
    /// None.
    Never,
    /// That of the replies since the last user message.
    CurrentTurn,
    /// That of every reply with calls.
    RepliesWithCalls,
}

/// Determines which reasoning is sent back.
pub(super) fn reasoning_policy(settings: &ModelSettings) -> ReasoningPolicy {
    let model = settings.model.to_ascii_lowercase();
    match settings.send_reasoning {
        Some(false) => ReasoningPolicy::Never,
        _ if has_host_in(settings, &HOSTS_WITH_CALL_REASONING) => ReasoningPolicy::RepliesWithCalls,
        Some(true) if MODELS_WITH_CALL_REASONING.iter().any(|name| model.contains(name)) => {
            ReasoningPolicy::RepliesWithCalls
        }
        Some(true) => ReasoningPolicy::CurrentTurn,
        None if has_host_in(settings, &HOSTS_WITH_TURN_REASONING) => ReasoningPolicy::CurrentTurn,
        None => ReasoningPolicy::Never,
    }
}

/// Whether the provider caches only up to marks. Others cache automatically.
pub(super) fn needs_cache_marks(settings: &ModelSettings) -> bool {
    let model = settings.model.trim_start_matches('~');
    model.starts_with("anthropic/") && has_host_in(settings, &["openrouter.ai"])
}

/// Returns the field that limits a reply: providers with a newer name for it reject the old one for some models.
pub(super) fn max_tokens_field(settings: &ModelSettings) -> &'static str {
    if has_host_in(settings, &["api.openai.com", "openai.azure.com"]) {
        "max_completion_tokens"
    } else {
        "max_tokens"
    }
}

/// Whether the provider's host is one of these or a subdomain.
fn has_host_in(settings: &ModelSettings, hosts: &[&str]) -> bool {
    let Ok(url) = Url::parse(&settings.provider.base_url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let is_host =
        |known: &str| host.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    hosts.iter().any(|known| is_host(known))
}
