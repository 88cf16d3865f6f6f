//! A message as the database holds it: JSON close to what a provider gets, with our extras beside.
//! The token counts are not in it, they have columns of their own.

mod doubt;
mod images;
mod pieces;

#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;

use crow_core::{
    Arguments, Call, CallId, ContentHash, Doubt, DoubtKind, Ended, Entry, Failure, MessageId, Outcome,
    Prompt, Reply, Sealed, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Speaker;
use doubt::DoubtRow;
use images::Kept;
pub(crate) use images::{Images, base64};
use pieces::{FailureKindRow, PartRow, PlanEntryRow, ShownRow, StatusRow};

/// A message on its way to the database.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) role: &'static str,
    pub(crate) data: String,
    pub(crate) usage: Option<Usage>,
    /// What search goes through: what people and models said, not what tools brought.
    pub(crate) text: String,
    /// Its images, which stand beside it.
    pub(crate) images: Vec<(ContentHash, Vec<u8>)>,
}

/// Writes an entry down.
pub(crate) fn write(entry: &Entry) -> Result<Row, serde_json::Error> {
    let kept = Kept::of(entry);
    let data = serde_json::to_string(&MessageRow::of(entry, &kept)?)?;
    let (role, usage) = (speaker(entry).as_str(), entry.usage());
    Ok(Row { role, data, usage, text: searched(entry), images: kept.into_images() })
}

/// Reads an entry back, with its images where they are given.
pub(crate) fn read(data: &str, usage: Option<Usage>, images: Option<&Images>) -> Result<Entry, String> {
    let row: MessageRow<'_> = serde_json::from_str(data).map_err(|error| error.to_string())?;
    row.into_entry(usage, images)
}

/// Tells who says an entry.
pub(crate) fn speaker(entry: &Entry) -> Speaker {
    match entry {
        Entry::Prompt(_) => Speaker::Person,
        Entry::Reply(_) => Speaker::Model,
        Entry::Result { .. } => Speaker::Tool,
    }
}

/// The index holds all words of a message in memory at once, a dozen times their size; nobody says more than this.
const SEARCHED_BYTES_MAX: usize = 256 * 1024;

/// The words of an entry that search goes through: what people and models said, not what tools brought.
pub(crate) fn searched(entry: &Entry) -> String {
    let mut text = match entry {
        Entry::Prompt(prompt) => prompt.text(),
        Entry::Reply(reply) => reply.text.clone(),
        Entry::Result { .. } => String::new(),
    };
    text.truncate(text.floor_char_boundary(SEARCHED_BYTES_MAX));
    text
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum MessageRow<'a> {
    User {
        id: Cow<'a, str>,
        content: Vec<PartRow<'a>>,
    },
    Assistant {
        id: Cow<'a, str>,
        content: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "str::is_empty")]
        reasoning_content: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<CallRow<'a>>,
        ended: EndedRow<'a>,
        /// What is known of its tokens beside how many there were.
        #[serde(default, skip_serializing_if = "SpentRow::is_empty")]
        spent: SpentRow,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sealed: Option<SealedRow<'a>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answered_by: Option<Cow<'a, str>>,
    },
    Tool {
        call: String,
        status: StatusRow,
        content: Vec<PartRow<'a>>,
        shown: ShownRow<'a>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Vec<PlanEntryRow<'a>>>,
    },
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct SpentRow {
    cached: u64,
    cache_written: u64,
    /// In billionths of a US dollar.
    cost: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct SealedRow<'a> {
    by: Cow<'a, str>,
    pieces: Cow<'a, [Value]>,
}

#[derive(Serialize, Deserialize)]
struct CallRow<'a> {
    /// The provider's name for it, as providers want it back.
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: CallTypeRow,
    function: FunctionRow<'a>,
    /// Our name for it.
    call: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repair: Option<RepairRow<'a>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CallTypeRow {
    Function,
}

#[derive(Serialize, Deserialize)]
struct FunctionRow<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RepairRow<'a> {
    Syntax,
    /// What [`DoubtRow`] says of rows that were written before there was one.
    StringClosed,
    Doubt(DoubtRow),
    Unreadable(Cow<'a, str>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EndedRow<'a> {
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
    fn of(entry: &'a Entry, kept: &Kept<'a>) -> Result<Self, serde_json::Error> {
        Ok(match entry {
            Entry::Prompt(prompt) => Self::User {
                id: prompt.id.as_str().into(),
                content: prompt.parts.iter().map(|part| PartRow::of(part, kept)).collect(),
            },
            Entry::Reply(reply) => Self::Assistant {
                id: reply.id.as_str().into(),
                content: reply.text.as_str().into(),
                reasoning_content: reply.thought.as_str().into(),
                tool_calls: reply.calls.iter().map(CallRow::of).collect::<Result<_, _>>()?,
                ended: EndedRow::of(&reply.ended),
                spent: reply.usage.map(SpentRow::of).unwrap_or_default(),
                sealed: reply.sealed.as_ref().map(SealedRow::of),
                answered_by: reply.answered_by.as_deref().map(Cow::from),
            },
            Entry::Result { call, facets, outcome } => Self::Tool {
                call: call.to_string(),
                status: StatusRow(outcome.status),
                content: outcome.for_model.iter().map(|part| PartRow::of(part, kept)).collect(),
                shown: ShownRow::of(facets, &outcome.for_client, kept),
                plan: outcome.plan.as_ref().map(|plan| plan.iter().map(PlanEntryRow::of).collect()),
            },
        })
    }

    fn into_entry(self, usage: Option<Usage>, images: Option<&Images>) -> Result<Entry, String> {
        let part = |part: PartRow<'_>| part.into_part(images);
        Ok(match self {
            Self::User { id, content } => Entry::Prompt(Prompt {
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
            } => Entry::Reply(Reply {
                id: MessageId::new(id),
                thought: reasoning_content.into_owned(),
                text: content.into_owned(),
                calls: tool_calls.into_iter().map(CallRow::into_call).collect::<Result<_, _>>()?,
                ended: ended.into_ended(),
                usage: usage.map(|usage| spent.of_usage(usage)),
                sealed: sealed.map(SealedRow::into_sealed),
                answered_by: answered_by.map(Cow::into_owned),
            }),
            Self::Tool { call, status, content, shown, plan } => {
                let (facets, for_client) = shown.into_shown(images)?;
                let for_model = content.into_iter().map(part).collect::<Result<_, _>>()?;
                let plan = plan.map(|plan| plan.into_iter().map(PlanEntryRow::into_plan_entry).collect());
                let outcome = Outcome { status: status.0, for_model, for_client, plan };
                Entry::Result { call: read_call_id(&call)?, facets, outcome }
            }
        })
    }
}

impl SpentRow {
    fn of(usage: Usage) -> Self {
        Self { cached: usage.cached, cache_written: usage.cache_written, cost: usage.cost }
    }

    fn of_usage(self, counted: Usage) -> Usage {
        let Self { cached, cache_written, cost } = self;
        Usage { cached, cache_written, cost, ..counted }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl<'a> SealedRow<'a> {
    fn of(sealed: &'a Sealed) -> Self {
        Self { by: sealed.by.as_str().into(), pieces: sealed.pieces.as_slice().into() }
    }

    fn into_sealed(self) -> Sealed {
        Sealed { by: self.by.into_owned(), pieces: self.pieces.into_owned() }
    }
}

impl<'a> CallRow<'a> {
    fn of(call: &'a Call) -> Result<Self, serde_json::Error> {
        let (arguments, repair) = match &call.arguments {
            Arguments::Valid(value) => (serde_json::to_string(value)?, None),
            Arguments::Repaired { value, doubt } => {
                let repair = doubt.map_or(RepairRow::Syntax, |doubt| RepairRow::Doubt(DoubtRow::of(doubt)));
                (serde_json::to_string(value)?, Some(repair))
            }
            Arguments::Unreadable { why } => ("{}".into(), Some(RepairRow::Unreadable(why.into()))),
        };
        Ok(Self {
            id: call.provider_id.as_str().into(),
            kind: CallTypeRow::Function,
            function: FunctionRow { name: call.name.as_str().into(), arguments },
            call: call.id.to_string(),
            repair,
        })
    }

    fn into_call(self) -> Result<Call, String> {
        let object = || serde_json::from_str(&self.function.arguments).map_err(|error| error.to_string());
        let arguments = match self.repair {
            None => Arguments::Valid(object()?),
            Some(RepairRow::Syntax) => Arguments::Repaired { value: object()?, doubt: None },
            Some(RepairRow::StringClosed) => {
                let doubt = Doubt { kind: DoubtKind::CutInString, place: None };
                Arguments::Repaired { value: object()?, doubt: Some(doubt) }
            }
            Some(RepairRow::Doubt(doubt)) => {
                Arguments::Repaired { value: object()?, doubt: Some(doubt.into_doubt()) }
            }
            Some(RepairRow::Unreadable(why)) => Arguments::Unreadable { why: why.into_owned() },
        };
        let id = read_call_id(&self.call)?;
        let name = self.function.name.into_owned();
        Ok(Call { id, provider_id: self.id.into_owned(), name, arguments })
    }
}

impl<'a> EndedRow<'a> {
    fn of(ended: &'a Ended) -> Self {
        match ended {
            Ended::Normally => Self::Normally,
            Ended::OutputLimit => Self::OutputLimit,
            Ended::SizeLimit => Self::SizeLimit,
            Ended::Refused => Self::Refused,
            Ended::Cancelled => Self::Cancelled,
            Ended::Failed(Failure { kind, sentence }) => {
                Self::Failed { kind: *kind, sentence: sentence.as_str().into() }
            }
        }
    }

    fn into_ended(self) -> Ended {
        match self {
            Self::Normally => Ended::Normally,
            Self::OutputLimit => Ended::OutputLimit,
            Self::SizeLimit => Ended::SizeLimit,
            Self::Refused => Ended::Refused,
            Self::Cancelled => Ended::Cancelled,
            Self::Failed { kind, sentence } => Ended::Failed(Failure::new(kind, sentence)),
        }
    }
}

fn read_call_id(text: &str) -> Result<CallId, String> {
    CallId::parse(text).ok_or_else(|| format!("`{text}` does not name a call"))
}
