//! Arguments of the memory tools, parsed from the model's JSON.

use crow_core::SessionId;
use crow_store::{StoreError, Timestamp};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::time_text;

/// Denotes the session of the call.
pub(super) const CURRENT: &str = "current";

/// Default number of hits or messages: a screen or two.
pub(super) const LIMIT: u32 = 20;

/// The maximum number; the limit on the whole text usually applies first.
pub(super) const LIMIT_MAX: u32 = 200;

/// Messages around a hit; more is a page of its own.
const CONTEXT_MAX: u64 = 10;

/// Words in a query; a longer text would only find itself.
const WORDS_MAX: usize = 32;

/// The error of a call, as a sentence for the model.
#[derive(Debug)]
pub(super) struct MemoryRefusal(pub(super) String);

impl From<StoreError> for MemoryRefusal {
    fn from(error: StoreError) -> Self {
        Self(format!("could not read the sessions: {error}"))
    }
}

/// Parses the arguments of a tool; unknown ones are ignored.
pub(super) fn parse_arguments<T: DeserializeOwned>(
    arguments: &Map<String, Value>,
) -> Result<T, MemoryRefusal> {
    serde_json::from_value(Value::Object(arguments.clone()))
        .map_err(|error| MemoryRefusal(format!("the arguments do not fit: {error}")))
}

#[derive(Debug, Deserialize)]
pub(super) struct QueryMemoryArgs {
    pub(super) query: String,
    limit: Option<i64>,
    offset: Option<i64>,
}

impl QueryMemoryArgs {
    pub(super) fn limit(&self) -> u32 {
        clamp_limit(self.limit)
    }

    pub(super) fn offset(&self) -> u32 {
        u32::try_from(self.offset.unwrap_or_default().max(0)).unwrap_or(u32::MAX)
    }
}

fn clamp_limit(requested: Option<i64>) -> u32 {
    let requested = requested.map_or(LIMIT, |asked| u32::try_from(asked.max(1)).unwrap_or(LIMIT_MAX));
    requested.min(LIMIT_MAX)
}

/// Which parts of messages are shown and searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordDetail {
    /// Text of user and model.
    #[default]
    Conversation,
    /// Thoughts as well.
    WithThinking,
    /// Calls and results as well.
    WithTools,
    Full,
}

impl RecordDetail {
    pub(super) fn shows_thoughts(self) -> bool {
        matches!(self, Self::WithThinking | Self::Full)
    }

    pub(super) fn shows_tools(self) -> bool {
        matches!(self, Self::WithTools | Self::Full)
    }
}

/// The end from which messages are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MessageOrder {
    /// Newest first.
    #[default]
    Desc,
    /// Oldest first.
    Asc,
}

#[derive(Debug, Deserialize)]
pub(super) struct QuerySessionArgs {
    session_id: Option<String>,
    query: Option<String>,
    #[serde(default)]
    mode: RecordDetail,
    #[serde(default)]
    order: MessageOrder,
    after: Option<PageBoundArg>,
    before: Option<PageBoundArg>,
    context: Option<i64>,
    limit: Option<i64>,
    offset: Option<i64>,
    start_index: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum PageBoundArg {
    Number(i64),
    Text(String),
}

/// The exclusive bound of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageBound {
    Seq(u64),
    Time(Timestamp),
}

impl PageBoundArg {
    fn parse_bound(self) -> Result<PageBound, MemoryRefusal> {
        match self {
            Self::Number(seq) => Ok(PageBound::Seq(seq.max(0).cast_unsigned())),
            Self::Text(text) => {
                let seq = text.trim().trim_start_matches("msg-").parse().ok().map(PageBound::Seq);
                seq.or_else(|| time_text::parse_time(text.trim()).map(PageBound::Time)).ok_or_else(|| {
                    let reason = "is neither the number of a message nor a time such as 2026-01-31T12:00:00";
                    MemoryRefusal(format!("`{text}` {reason}"))
                })
            }
        }
    }
}

/// A query for messages of a session.
#[derive(Debug)]
pub(super) struct SessionQuery {
    pub(super) session: SessionId,
    /// In lower case; all must occur.
    pub(super) words: Vec<String>,
    pub(super) detail: RecordDetail,
    pub(super) order: MessageOrder,
    pub(super) after: Option<PageBound>,
    pub(super) before: Option<PageBound>,
    pub(super) context: u64,
    pub(super) limit: usize,
    pub(super) offset: usize,
    pub(super) start: usize,
}

impl SessionQuery {
    /// Builds a query from the arguments of a call.
    pub(super) fn from_args(
        args: QuerySessionArgs,
        current: Option<&SessionId>,
    ) -> Result<Self, MemoryRefusal> {
        let requested_session =
            args.session_id.filter(|id| !id.is_empty() && id != CURRENT).map(SessionId::new);
        let session = requested_session.or_else(|| current.cloned());
        let count = |requested: Option<i64>| {
            usize::try_from(requested.unwrap_or_default().max(0)).unwrap_or(usize::MAX)
        };
        let query = args.query.unwrap_or_default().to_lowercase();
        Ok(Self {
            session: session
                .ok_or_else(|| MemoryRefusal("say which session: `session_id` is missing".to_owned()))?,
            words: query.split_whitespace().take(WORDS_MAX).map(str::to_owned).collect(),
            detail: args.mode,
            order: args.order,
            after: args.after.map(PageBoundArg::parse_bound).transpose()?,
            before: args.before.map(PageBoundArg::parse_bound).transpose()?,
            context: args.context.unwrap_or_default().max(0).cast_unsigned().min(CONTEXT_MAX),
            limit: clamp_limit(args.limit) as usize,
            offset: count(args.offset),
            start: count(args.start_index),
        })
    }
}
