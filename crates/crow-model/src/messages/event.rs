//! One event of a stream, or a whole response, borrowed from its bytes. Parses leniently: an unknown field is no
//! reason to lose a reply.

use std::borrow::Cow;

use crow_core::TokenUsage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// An event, or a whole reply that was not streamed.
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
    /// The stop reason of a whole reply.
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<CowStr<'a>>,
}

/// A piece of a block, or the data at the end.
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

/// A block at its start; of a whole reply, all of it.
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

/// The message that a stream starts.
#[derive(Debug, Default, Deserialize)]
pub(super) struct MessageStart<'a> {
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// A string that is copied only if it has escapes.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CowStr<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl<'a> AnthropicEvent<'a> {
    /// Parses an event; the error says where it is invalid.
    pub(super) fn parse(data: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(data)
    }
}

/// The text of a field that may be missing.
pub(super) fn text_or_empty<'b>(text: Option<&'b CowStr<'_>>) -> &'b str {
    text.map_or("", |text| &text.0)
}

/// Tokens as far as reported; servers report them in parts.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TokenCounter {
    uncached: u64,
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
    /// Adds what is reported; some servers send zeros until they know, or after they have reported.
    pub(super) fn add_usage(&mut self, usage: Option<&RawValue>) -> Option<TokenUsage> {
        let reported: AnthropicUsage = serde_json::from_str(usage?.get()).ok()?;
        let update = |known: &mut u64, told: Option<u64>| *known = told.filter(|n| *n > 0).unwrap_or(*known);
        update(&mut self.uncached, reported.input_tokens);
        update(&mut self.cached, reported.cache_read_input_tokens);
        update(&mut self.cache_written, reported.cache_creation_input_tokens);
        update(&mut self.output, reported.output_tokens);
        let usage = TokenUsage {
            // The provider counts here only tokens that are in no cache.
            input: self.uncached.saturating_add(self.cached).saturating_add(self.cache_written),
            output: self.output,
            cached: self.cached,
            cache_written: self.cache_written,
            cost: None,
        };
        (usage.total_tokens() > 0).then_some(usage)
    }
}
