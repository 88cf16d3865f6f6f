//! Estimates context sizes in tokens from bytes; the provider's count corrects the estimate if there is one.

use crate::{ContentPart, Prompt, Reply, ToolArguments, ToolResult, ToolSpec, TranscriptEntry, TurnLimits};

/// English prose has slightly more bytes per token, code slightly fewer.
const BYTES_PER_TOKEN: u64 = 4;

/// Providers charge for an image by its area; this is about the cost of a screenshot.
const IMAGE_TOKENS: u64 = 1_500;

/// Overhead of a message besides its text.
const MESSAGE_TOKENS: u64 = 4;

/// The part of the context window that is reserved for a reply of unknown maximum length.
const REPLY_PART: u64 = 8;

/// The context usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextTokens {
    /// Tokens in context, by the provider's last count if there is one.
    pub tokens: u64,
    /// Tokens in context by our estimate alone, which is comparable over time.
    pub measured: u64,
}

/// Returns the token limit of the context: the configured one, or less so that the reply fits into the window.
pub fn context_limit(limits: TurnLimits, window: u64, reply_max: Option<u64>) -> u64 {
    let reply_tokens = reply_max.unwrap_or(window / REPLY_PART).min(window / 2);
    match window {
        0 => limits.compact_tokens_max,
        window => limits.compact_tokens_max.min(window - reply_tokens),
    }
}

/// Estimates the tokens of the tool descriptions, which are part of each request.
pub fn estimate_tool_tokens(tools: &[ToolSpec]) -> u64 {
    let bytes = |tool: &ToolSpec| tool.name.len() + tool.description.len() + json_bytes(&tool.parameters);
    tools.iter().map(|tool| MESSAGE_TOKENS + bytes_to_tokens(bytes(tool))).sum()
}

pub(crate) fn estimate_entry_tokens(entry: &TranscriptEntry) -> u64 {
    match entry {
        TranscriptEntry::Prompt(prompt) => estimate_prompt_tokens(prompt),
        TranscriptEntry::Reply(reply) => estimate_reply_tokens(reply),
        TranscriptEntry::Result { result, .. } => estimate_result_tokens(result),
    }
}

pub(crate) fn estimate_prompt_tokens(prompt: &Prompt) -> u64 {
    MESSAGE_TOKENS + estimate_part_tokens(&prompt.parts)
}

pub(crate) fn estimate_result_tokens(result: &ToolResult) -> u64 {
    MESSAGE_TOKENS + estimate_part_tokens(&result.for_model)
}

/// The reasoning of a reply is not sent again.
fn estimate_reply_tokens(reply: &Reply) -> u64 {
    let calls = reply.calls.iter().map(|call| {
        let arguments = match &call.arguments {
            ToolArguments::Valid(value) | ToolArguments::Repaired { value, .. } => {
                value.iter().map(|(name, value)| name.len() + json_bytes(value)).sum()
            }
            ToolArguments::Unreadable { .. } => 0,
        };
        MESSAGE_TOKENS + bytes_to_tokens(call.name.len() + call.provider_id.len() + arguments)
    });
    MESSAGE_TOKENS + estimate_text_tokens(&reply.text) + calls.sum::<u64>()
}

fn json_bytes(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => 4,
        serde_json::Value::String(text) => text.len(),
        serde_json::Value::Array(items) => items.iter().map(json_bytes).sum(),
        serde_json::Value::Object(object) => {
            object.iter().map(|(name, value)| name.len() + json_bytes(value)).sum()
        }
    }
}

/// Limits a provider's count to a plausible range: each token has at least one byte, and the average is at most twice
/// our estimate. Some providers omit cached tokens, some count wrong.
pub(crate) fn clamp_provider_count(provider_tokens: u64, measured: u64) -> u64 {
    provider_tokens.clamp(measured / 2, measured.saturating_mul(BYTES_PER_TOKEN))
}

/// Estimates the tokens of parts of a prompt or a result.
pub(crate) fn estimate_part_tokens(parts: &[ContentPart]) -> u64 {
    let parts = parts.iter().map(|part| match part {
        ContentPart::Text(text) => estimate_text_tokens(text),
        ContentPart::Image { .. } => IMAGE_TOKENS,
        ContentPart::Link { uri, name, .. } => bytes_to_tokens(uri.len() + name.len()),
        ContentPart::Resource { uri, text, .. } => bytes_to_tokens(uri.len() + text.len()),
        ContentPart::FromCrow { kind: what, text } => bytes_to_tokens(what.uri().len() + text.len()),
    });
    parts.sum()
}

pub(crate) fn estimate_text_tokens(text: &str) -> u64 {
    bytes_to_tokens(text.len())
}

fn bytes_to_tokens(n_bytes: usize) -> u64 {
    (n_bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

/// Converts tokens to bytes.
pub(super) fn tokens_to_bytes(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX)
}
