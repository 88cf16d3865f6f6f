//! A message as the database stores it: JSON close to a provider's format, plus our own fields. The token counts are
//! in columns of their own.

mod images;
mod parts;
mod repair_doubt;

#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;

use crow_core::{
    CallId, ContentHash, ContentPart, DoubtKind, Failure, MessageId, Prompt, ProviderState, RepairDoubt,
    Reply, ReplyEnd, TokenUsage, ToolArguments, ToolCall, ToolResult, TranscriptEntry,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::MessageRole;
use images::ExtractedImages;
pub(crate) use images::{ImagesByHash, encode_base64};
use parts::{ContentPartRow, FailureKindRow, PlanEntryRow, ToolCallInfoRow, ToolStatusRow};
use repair_doubt::RepairDoubtRow;

/// A message to be stored.
#[derive(Debug)]
pub(crate) struct EncodedMessage {
    pub(crate) role: &'static str,
    pub(crate) data: String,
    pub(crate) usage: Option<TokenUsage>,
    /// The text for the search index: that of users and models, not of tools.
    pub(crate) text: String,
    /// Its images, which are stored separately.
    pub(crate) images: Vec<(ContentHash, Vec<u8>)>,
}

/// Encodes an entry.
pub(crate) fn encode_entry(entry: &TranscriptEntry) -> Result<EncodedMessage, serde_json::Error> {
    let images = ExtractedImages::from_entry(entry);
    let data = serde_json::to_string(&MessageRow::from_entry(entry, &images)?)?;
    let (role, usage) = (entry_role(entry).as_str(), entry.usage());
    Ok(EncodedMessage { role, data, usage, text: searchable_text(entry), images: images.into_images() })
}

/// Decodes an entry, with its images if they are given.
pub(crate) fn decode_entry(
    data: &str,
    usage: Option<TokenUsage>,
    images: Option<&ImagesByHash>,
) -> Result<TranscriptEntry, String> {
    let row: MessageRow<'_> = serde_json::from_str(data).map_err(|error| error.to_string())?;
    row.into_entry(usage, images)
}

/// Returns the role of an entry's author.
pub(crate) fn entry_role(entry: &TranscriptEntry) -> MessageRole {
    match entry {
        TranscriptEntry::Prompt(_) => MessageRole::User,
        TranscriptEntry::Reply(_) => MessageRole::Assistant,
        TranscriptEntry::Result { .. } => MessageRole::Tool,
    }
}

/// The index holds all words of a message in memory at once, a dozen times their size; no message has more than this.
const SEARCHED_BYTES_MAX: usize = 256 * 1024;

/// Returns the searchable text of an entry: that of users and models, not of tools.
pub(crate) fn searchable_text(entry: &TranscriptEntry) -> String {
    let mut text = match entry {
        TranscriptEntry::Prompt(prompt) => searchable_parts(&prompt.parts),
        TranscriptEntry::Reply(reply) => reply.text.clone(),
        TranscriptEntry::Result { .. } => String::new(),
    };
    text.truncate(text.floor_char_boundary(SEARCHED_BYTES_MAX));
    text
}

/// Returns the texts of a prompt without what Crow adds about the session, which would be found in every session.
fn searchable_parts(parts: &[ContentPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        ContentPart::FromCrow { kind, .. } if kind.is_session_context() => None,
        ContentPart::Text(text) | ContentPart::Resource { text, .. } | ContentPart::FromCrow { text, .. } => {
            Some(text.as_str())
        }
        ContentPart::Image { .. } | ContentPart::Link { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum MessageRow<'a> {
    User {
        id: Cow<'a, str>,
        content: Vec<ContentPartRow<'a>>,
    },
    Assistant {
        id: Cow<'a, str>,
        content: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "str::is_empty")]
        reasoning_content: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCallRow<'a>>,
        ended: ReplyEndRow<'a>,
        /// Details of its token usage beyond the counts.
        #[serde(default, skip_serializing_if = "TokenDetailsRow::is_empty")]
        spent: TokenDetailsRow,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sealed: Option<ProviderStateRow<'a>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<Cow<'a, str>>,
    },
    Tool {
        call: String,
        status: ToolStatusRow,
        content: Vec<ContentPartRow<'a>>,
        shown: ToolCallInfoRow<'a>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Vec<PlanEntryRow<'a>>>,
    },
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct TokenDetailsRow {
    cached: u64,
    cache_written: u64,
    /// In billionths of a US dollar.
    cost: Option<u64>,
}

/// The part of a stored reply that its usage needs, without its text.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReplyUsageRow {
    spent: TokenDetailsRow,
    answered_by: Option<String>,
}

/// The usage of a stored reply, and the model that replied if it is not that of the session.
pub(crate) struct ReplyUsage {
    pub(crate) usage: TokenUsage,
    pub(crate) fallback_model: Option<String>,
}

/// Reads the usage of a reply from its row. A row that cannot be read has only its token counts.
pub(crate) fn decode_reply_usage(data: &str, counted: TokenUsage) -> ReplyUsage {
    let ReplyUsageRow { spent, answered_by } = serde_json::from_str(data).unwrap_or_default();
    ReplyUsage { usage: spent.add_to_usage(counted), fallback_model: answered_by }
}

#[derive(Serialize, Deserialize)]
struct ProviderStateRow<'a> {
    by: Cow<'a, str>,
    pieces: Cow<'a, [Value]>,
}

#[derive(Serialize, Deserialize)]
struct ToolCallRow<'a> {
    /// The provider's ID, which the provider expects back.
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: CallTypeRow,
    function: FunctionCallRow<'a>,
    /// Our ID.
    call: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repair: Option<ArgumentRepairRow<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CallTypeRow {
    Function,
}

#[derive(Serialize, Deserialize)]
struct FunctionCallRow<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ArgumentRepairRow<'a> {
    Syntax,
    /// Its [`RepairDoubtRow`] in rows from before that existed.
    StringClosed,
    Doubt(RepairDoubtRow),
    Unreadable(Cow<'a, str>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReplyEndRow<'a> {
    Normally,
    OutputLimit,
    SizeLimit,
    Refused,
    Cancelled,
    Failed {
        #[serde(with = "FailureKindRow")]
        kind: crow_core::FailureKind,
        sentence: Cow<'a, str>,
    },
}

impl<'a> MessageRow<'a> {
    fn from_entry(
        entry: &'a TranscriptEntry,
        images: &ExtractedImages<'a>,
    ) -> Result<Self, serde_json::Error> {
        Ok(match entry {
            TranscriptEntry::Prompt(prompt) => Self::User {
                id: prompt.id.as_str().into(),
                content: prompt.parts.iter().map(|part| ContentPartRow::from_part(part, images)).collect(),
            },
            TranscriptEntry::Reply(reply) => Self::Assistant {
                id: reply.id.as_str().into(),
                content: reply.text.as_str().into(),
                reasoning_content: reply.thought.as_str().into(),
                tool_calls: reply.calls.iter().map(ToolCallRow::from_call).collect::<Result<_, _>>()?,
                ended: ReplyEndRow::from_end(&reply.end),
                spent: reply.usage.map(TokenDetailsRow::from_usage).unwrap_or_default(),
                sealed: reply.provider_state.as_ref().map(ProviderStateRow::from_state),
                answered_by: reply.fallback_model.as_deref().map(Cow::from),
            },
            TranscriptEntry::Result { call, info, result } => Self::Tool {
                call: call.to_string(),
                status: ToolStatusRow(result.status),
                content: result
                    .for_model
                    .iter()
                    .map(|part| ContentPartRow::from_part(part, images))
                    .collect(),
                shown: ToolCallInfoRow::from_info(info, &result.for_client, images),
                plan: result
                    .plan
                    .as_ref()
                    .map(|plan| plan.iter().map(PlanEntryRow::from_plan_entry).collect()),
            },
        })
    }

    fn into_entry(
        self,
        usage: Option<TokenUsage>,
        images: Option<&ImagesByHash>,
    ) -> Result<TranscriptEntry, String> {
        let part = |part: ContentPartRow<'_>| part.into_part(images);
        Ok(match self {
            Self::User { id, content } => TranscriptEntry::Prompt(Prompt {
                id: MessageId::new(id),
                parts: content.into_iter().map(part).collect::<Result<_, _>>()?,
            }),
            Self::Assistant {
                id,
                content,
                reasoning_content,
                tool_calls,
                ended,
                spent,
                sealed,
                answered_by,
            } => TranscriptEntry::Reply(Reply {
                id: MessageId::new(id),
                thought: reasoning_content.into_owned(),
                text: content.into_owned(),
                calls: tool_calls.into_iter().map(ToolCallRow::into_call).collect::<Result<_, _>>()?,
                end: ended.into_end(),
                usage: usage.map(|usage| spent.add_to_usage(usage)),
                provider_state: sealed.map(ProviderStateRow::into_state),
                fallback_model: answered_by.map(Cow::into_owned),
            }),
            Self::Tool { call, status, content, shown, plan } => {
                let (info, for_client) = shown.into_info_and_content(images)?;
                let for_model = content.into_iter().map(part).collect::<Result<_, _>>()?;
                let plan = plan.map(|plan| plan.into_iter().map(PlanEntryRow::into_plan_entry).collect());
                let result = ToolResult { status: status.0, for_model, for_client, plan };
                TranscriptEntry::Result { call: read_call_id(&call)?, info, result }
            }
        })
    }
}

impl TokenDetailsRow {
    fn from_usage(usage: TokenUsage) -> Self {
        Self { cached: usage.cached, cache_written: usage.cache_written, cost: usage.cost }
    }

    fn add_to_usage(self, counted: TokenUsage) -> TokenUsage {
        let Self { cached, cache_written, cost } = self;
        TokenUsage { cached, cache_written, cost, ..counted }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl<'a> ProviderStateRow<'a> {
    fn from_state(state: &'a ProviderState) -> Self {
        Self { by: state.model.as_str().into(), pieces: state.items.as_slice().into() }
    }

    fn into_state(self) -> ProviderState {
        ProviderState { model: self.by.into_owned(), items: self.pieces.into_owned() }
    }
}

impl<'a> ToolCallRow<'a> {
    fn from_call(call: &'a ToolCall) -> Result<Self, serde_json::Error> {
        let (arguments, repair) = match &call.arguments {
            ToolArguments::Valid(value) => (serde_json::to_string(value)?, None),
            ToolArguments::Repaired { value, doubt } => {
                let repair = doubt.map_or(ArgumentRepairRow::Syntax, |doubt| {
                    ArgumentRepairRow::Doubt(RepairDoubtRow::from_doubt(doubt))
                });
                (serde_json::to_string(value)?, Some(repair))
            }
            ToolArguments::Unreadable { reason } => {
                ("{}".into(), Some(ArgumentRepairRow::Unreadable(reason.into())))
            }
        };
        Ok(Self {
            id: call.provider_id.as_str().into(),
            kind: CallTypeRow::Function,
            function: FunctionCallRow { name: call.name.as_str().into(), arguments },
            call: call.id.to_string(),
            repair,
        })
    }

    fn into_call(self) -> Result<ToolCall, String> {
        let object = || serde_json::from_str(&self.function.arguments).map_err(|error| error.to_string());
        let arguments = match self.repair {
            None => ToolArguments::Valid(object()?),
            Some(ArgumentRepairRow::Syntax) => ToolArguments::Repaired { value: object()?, doubt: None },
            Some(ArgumentRepairRow::StringClosed) => {
                let doubt = RepairDoubt { kind: DoubtKind::TruncatedString, position: None };
                ToolArguments::Repaired { value: object()?, doubt: Some(doubt) }
            }
            Some(ArgumentRepairRow::Doubt(doubt)) => {
                ToolArguments::Repaired { value: object()?, doubt: Some(doubt.into_doubt()) }
            }
            Some(ArgumentRepairRow::Unreadable(reason)) => {
                ToolArguments::Unreadable { reason: reason.into_owned() }
            }
        };
        let id = read_call_id(&self.call)?;
        let name = self.function.name.into_owned();
        Ok(ToolCall { id, provider_id: self.id.into_owned(), name, arguments })
    }
}

impl<'a> ReplyEndRow<'a> {
    fn from_end(end: &'a ReplyEnd) -> Self {
        match end {
            ReplyEnd::Complete => Self::Normally,
            ReplyEnd::OutputLimit => Self::OutputLimit,
            ReplyEnd::SizeLimit => Self::SizeLimit,
            ReplyEnd::Refused => Self::Refused,
            ReplyEnd::Cancelled => Self::Cancelled,
            ReplyEnd::Failed(Failure { kind, message: sentence }) => {
                Self::Failed { kind: *kind, sentence: sentence.as_str().into() }
            }
        }
    }

    fn into_end(self) -> ReplyEnd {
        match self {
            Self::Normally => ReplyEnd::Complete,
            Self::OutputLimit => ReplyEnd::OutputLimit,
            Self::SizeLimit => ReplyEnd::SizeLimit,
            Self::Refused => ReplyEnd::Refused,
            Self::Cancelled => ReplyEnd::Cancelled,
            Self::Failed { kind, sentence } => ReplyEnd::Failed(Failure::new(kind, sentence)),
        }
    }
}

fn read_call_id(text: &str) -> Result<CallId, String> {
    CallId::parse(text).ok_or_else(|| format!("`{text}` is not a call ID"))
}
