//! One event of a stream, or a whole answer, borrowed from its bytes. Reads leniently: what is not known is no reason
//! to lose a reply.

use std::borrow::Cow;

use crow_core::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// An event, or the whole of a reply that was not streamed.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Str<'a>,
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    /// The blocks of a whole reply.
    #[serde(borrow, default)]
    pub(super) content: Option<Vec<&'a RawValue>>,
    /// How a whole reply ended.
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<Str<'a>>,
}

/// A piece of a block, or what is known at the end.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) partial_json: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<Str<'a>>,
}

/// A block as it begins; of a whole reply, all of it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Begun<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Str<'a>,
    #[serde(borrow, default)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) text: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) data: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
}

/// What a stream says of the message that it begins.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Head<'a> {
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// A string that is only copied where it has escapes.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Str<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl<'a> Event<'a> {
    /// Reads an event; the error says where it is broken.
    pub(super) fn read(data: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(data)
    }
}

/// The text of a field that may be missing.
pub(super) fn words<'b>(text: Option<&'b Str<'_>>) -> &'b str {
    text.map_or("", |text| &text.0)
}

/// Tokens as far as they are told; servers tell them in pieces.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tokens {
    fresh: u64,
    cached: u64,
    cache_written: u64,
    output: u64,
}

#[derive(Debug, Deserialize)]
struct WireUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
}

impl Tokens {
    /// Takes what is told in; some servers send zeros until they know, or once they have told.
    pub(super) fn hear(&mut self, usage: Option<&RawValue>) -> Option<Usage> {
        let told: WireUsage = serde_json::from_str(usage?.get()).ok()?;
        let hear = |known: &mut u64, told: Option<u64>| *known = told.filter(|n| *n > 0).unwrap_or(*known);
        hear(&mut self.fresh, told.input_tokens);
        hear(&mut self.cached, told.cache_read_input_tokens);
        hear(&mut self.cache_written, told.cache_creation_input_tokens);
        hear(&mut self.output, told.output_tokens);
        let usage = Usage {
            // The provider counts here only what is in no cache.
            input: self.fresh.saturating_add(self.cached).saturating_add(self.cache_written),
            output: self.output,
            cached: self.cached,
            cache_written: self.cache_written,
            cost: None,
        };
        (usage.total() > 0).then_some(usage)
    }
}
