//! One event of a stream, or a whole answer, borrowed from its bytes. Reads leniently: what is not known is no reason
//! to lose a reply.

use std::borrow::Cow;

use crow_core::TokenUsage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// An event, or the whole of a reply that was not streamed.
#[derive(Debug, Deserialize)]
pub(super) struct AnthropicEvent<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: CowStr<'a>,
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) delta: Option<AnthropicDelta<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    /// The blocks of a whole reply.
    #[serde(borrow, default)]
    pub(super) content: Option<Vec<&'a RawValue>>,
    /// How a whole reply ended.
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<CowStr<'a>>,
}

/// A piece of a block, or what is known at the end.
#[derive(Debug, Default, Deserialize)]
pub(super) struct AnthropicDelta<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<CowStr<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<CowStr<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<CowStr<'a>>,
    #[serde(borrow, default)]
    pub(super) partial_json: Option<CowStr<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<CowStr<'a>>,
}

/// A block as it begins; of a whole reply, all of it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ContentBlockStart<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: CowStr<'a>,
    #[serde(borrow, default)]
    pub(super) id: Option<CowStr<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<CowStr<'a>>,
    #[serde(borrow, default)]
    pub(super) text: Option<CowStr<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<CowStr<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<CowStr<'a>>,
    #[serde(borrow, default)]
    pub(super) data: Option<CowStr<'a>>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
}

/// What a stream says of the message that it begins.
#[derive(Debug, Default, Deserialize)]
pub(super) struct MessageStart<'a> {
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// A string that is only copied where it has escapes.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CowStr<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl<'a> AnthropicEvent<'a> {
    /// Reads an event; the error says where it is broken.
    pub(super) fn parse(data: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(data)
    }
}

/// The text of a field that may be missing.
pub(super) fn text_or_empty<'b>(text: Option<&'b CowStr<'_>>) -> &'b str {
    text.map_or("", |text| &text.0)
}

/// Tokens as far as they are told; servers tell them in pieces.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TokenCounter {
    fresh: u64,
    cached: u64,
    cache_written: u64,
    output: u64,
}

#[derive(Debug, Deserialize)]
struct AnthropicUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
}

impl TokenCounter {
    /// Takes what is told in; some servers send zeros until they know, or once they have told.
    pub(super) fn add_usage(&mut self, usage: Option<&RawValue>) -> Option<TokenUsage> {
        let told: AnthropicUsage = serde_json::from_str(usage?.get()).ok()?;
        let hear = |known: &mut u64, told: Option<u64>| *known = told.filter(|n| *n > 0).unwrap_or(*known);
        hear(&mut self.fresh, told.input_tokens);
        hear(&mut self.cached, told.cache_read_input_tokens);
        hear(&mut self.cache_written, told.cache_creation_input_tokens);
        hear(&mut self.output, told.output_tokens);
        let usage = TokenUsage {
            // The provider counts here only what is in no cache.
            input: self.fresh.saturating_add(self.cached).saturating_add(self.cache_written),
            output: self.output,
            cached: self.cached,
            cache_written: self.cache_written,
            cost: None,
        };
        (usage.total_tokens() > 0).then_some(usage)
    }
}
