//! The elements of a conversation: prompts and replies.

use serde_json::Value;

use crate::{ContentPart, Failure, MessageId, ToolCall};

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The identifier in the session.
    pub id: MessageId,
    /// The parts, in order.
    pub parts: Vec<ContentPart>,
}

impl Prompt {
    /// Returns the text parts, for titles and search.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            ContentPart::Text(text)
            | ContentPart::Resource { text, .. }
            | ContentPart::FromCrow { text, .. } => Some(text.as_str()),
            ContentPart::Image { .. } | ContentPart::Link { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Whether any part is the user's; Crow also creates prompts.
    pub(crate) fn has_user_content(&self) -> bool {
        self.parts.iter().any(|part| part.crow_part().is_none())
    }
}

/// One answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The identifier in the session.
    pub id: MessageId,
    /// The reasoning, as far as the provider shows it.
    pub thought: String,
    /// The text to the user.
    pub text: String,
    /// The tool calls, in order.
    pub calls: Vec<ToolCall>,
    /// The end of the reply.
    pub end: ReplyEnd,
    /// The usage, if the provider gave it.
    pub usage: Option<TokenUsage>,
    /// The data that the provider requires back.
    pub provider_state: Option<ProviderState>,
    /// The configured name of the fallback model that answered; `None` for the session's model.
    pub fallback_model: Option<String>,
}

/// Opaque data of a reply that the provider requires back unchanged, such as signed reasoning.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderState {
    /// The model and provider that gave the data; it is sent to no other.
    pub model: String,
    /// The data, in the provider's format.
    pub items: Vec<Value>,
}

impl Reply {
    /// Returns the data for a model: empty unless that model gave it.
    pub fn provider_state_for(&self, model: &str) -> &[Value] {
        self.provider_state.as_ref().filter(|state| state.model == model).map_or(&[], |sealed| &sealed.items)
    }

    /// Whether the reply has no content.
    pub fn is_empty(&self) -> bool {
        self.thought.is_empty() && self.text.is_empty() && self.calls.is_empty()
    }
}

/// The end of a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyEnd {
    /// The model finished.
    Complete,
    /// Truncated by the output limit; its last call may be incomplete.
    OutputLimit,
    /// Truncated by Crow's size limit.
    SizeLimit,
    /// Withheld by the provider's filter.
    Refused,
    /// Cancelled by the user; the text so far stays.
    Cancelled,
    /// The request failed, or the stream was interrupted.
    Failed(Failure),
}

/// Tokens by the provider's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUsage {
    /// Tokens read, including cached ones.
    pub input: u64,
    /// Tokens written, including reasoning.
    pub output: u64,
    /// Tokens of `input` read from the provider's cache.
    pub cached: u64,
    /// Tokens of `input` written to the provider's cache.
    pub cache_written: u64,
    /// The cost in billionths of a US dollar, if known.
    pub cost: Option<u64>,
}

impl TokenUsage {
    /// Creates a usage without cache or cost.
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// Adds another usage. An unknown cost counts as none.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        let cost = match (self.cost, other.cost) {
            (Some(cost), Some(more)) => Some(cost.saturating_add(more)),
            (cost, more) => cost.or(more),
        };
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            cache_written: self.cache_written.saturating_add(other.cache_written),
            cost,
        }
    }

    /// Returns the tokens in context; `None` if the server reported no input.
    pub fn context_tokens(self) -> Option<u64> {
        (self.input > 0).then(|| self.total_tokens())
    }

    /// Returns the tokens read and written.
    pub fn total_tokens(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}
