//! Spans as they are collected: IDs, times and attributes.

use std::fmt;
use std::time::Instant;

use tracing::field::{Field, Visit};

/// More of a name or value is not exported: an attribute is a name or a number, never a text.
const TEXT_CHARS_MAX: usize = 256;

/// More than any span of ours has.
const ATTRIBUTES_MAX: usize = 32;

/// The kind of a span; the numbers are those of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Internal = 1,
    Client = 3,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AttributeValue {
    Text(String),
    /// A list with one text.
    TextList(String),
    Integer(i64),
    Number(f64),
    Flag(bool),
}

/// The IDs that a child has from its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanIds {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
}

/// A span that has not ended.
#[derive(Debug)]
pub(crate) struct OpenSpan {
    pub(crate) ids: SpanIds,
    parent: Option<[u8; 8]>,
    name: String,
    kind: SpanKind,
    start_ns: i128,
    started_at: Instant,
    attributes: Vec<(&'static str, AttributeValue)>,
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FinishedSpan {
    pub(crate) ids: SpanIds,
    pub(crate) parent: Option<[u8; 8]>,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    /// Nanoseconds since the Unix epoch.
    pub(crate) start_ns: i128,
    pub(crate) end_ns: i128,
    pub(crate) attributes: Vec<(&'static str, AttributeValue)>,
}

impl OpenSpan {
    /// Starts a span; `None` if the system has no random numbers.
    pub(crate) fn start(name: &str, parent: Option<SpanIds>) -> Option<Self> {
        let mut random = [0; 24];
        getrandom::fill(&mut random).ok()?;
        let (trace, span) = random.split_at(16);
        let ids = SpanIds {
            trace: match parent {
                Some(parent) => parent.trace,
                None => trace.try_into().ok()?,
            },
            span: span.try_into().ok()?,
        };
        Some(Self {
            ids,
            parent: parent.map(|parent| parent.span),
            name: name.to_owned(),
            kind: SpanKind::Internal,
            start_ns: jiff::Timestamp::now().as_nanosecond(),
            started_at: Instant::now(),
            attributes: Vec::new(),
        })
    }

    /// Ends the span. Its length is that of the monotonic clock: the other one may have been set meanwhile.
    pub(crate) fn finish(self) -> FinishedSpan {
        let Self { ids, parent, name, kind, start_ns, started_at, attributes } = self;
        let length_ns = i128::try_from(started_at.elapsed().as_nanos()).unwrap_or_default();
        FinishedSpan { ids, parent, name, kind, start_ns, end_ns: start_ns + length_ns, attributes }
    }

    fn record_value(&mut self, field: &Field, value: AttributeValue) {
        let name = field.name();
        match (name, value) {
            ("otel.name", AttributeValue::Text(text)) => self.name = text,
            ("otel.kind", AttributeValue::Text(text)) if text == "client" => self.kind = SpanKind::Client,
            ("otel.kind", _) => {}
            ("gen_ai.response.finish_reasons", AttributeValue::Text(text)) => {
                self.set_attribute(name, AttributeValue::TextList(text));
            }
            (_, value) => self.set_attribute(name, value),
        }
    }

    fn set_attribute(&mut self, name: &'static str, value: AttributeValue) {
        self.attributes.retain(|(known, _)| *known != name);
        if self.attributes.len() < ATTRIBUTES_MAX {
            self.attributes.push((name, value));
        }
    }
}

impl Visit for OpenSpan {
    fn record_str(&mut self, field: &Field, value: &str) {
        let plain = value.chars().map(|c| if c.is_control() { ' ' } else { c });
        self.record_value(field, AttributeValue::Text(plain.take(TEXT_CHARS_MAX).collect()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.record_value(field, AttributeValue::Integer(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record_value(field, AttributeValue::Integer(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.record_value(field, AttributeValue::Number(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.record_value(field, AttributeValue::Flag(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
