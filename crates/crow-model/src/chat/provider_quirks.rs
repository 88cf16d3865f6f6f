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

/// Models of Mistral, whose prompt templates and checks other hosts use too.
const MISTRAL_MODELS: [&str; 7] =
    ["mistral", "mixtral", "devstral", "codestral", "ministral", "magistral", "pixtral"];

/// The length of a call's ID that Mistral accepts.
const MISTRAL_ID_LEN: usize = 9;

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

/// Whether the provider rejects a user message after a result, and IDs of calls that are not in Mistral's format.
pub(super) fn has_mistral_rules(settings: &ModelSettings) -> bool {
    let model = settings.model.to_ascii_lowercase();
    has_host_in(settings, &["mistral.ai"]) || MISTRAL_MODELS.iter().any(|name| model.contains(name))
}

/// Whether Mistral accepts an ID, and [`mistral_call_id`] never returns it.
pub(super) fn is_mistral_call_id(id: &str) -> bool {
    let is_hexadecimal = id.bytes().all(|byte| byte.is_ascii_hexdigit());
    id.len() == MISTRAL_ID_LEN && !is_hexadecimal && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns Crow's own ID of a call in Mistral's format. It depends only on the position of the call, so that it is the
/// same in each request.
pub(super) fn mistral_call_id(reply_seq: u64, index: usize) -> String {
    format!("{:06x}{:03x}", reply_seq & 0xff_ffff, index & 0xfff)
}

/// Whether the provider's host is one of these or a subdomain.
fn has_host_in(settings: &ModelSettings, hosts: &[&str]) -> bool {
    let Ok(url) = Url::parse(&settings.provider.base_url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let is_host =
        |known: &str| host.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    hosts.iter().any(|known| is_host(known))
}
