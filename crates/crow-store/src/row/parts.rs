//! The parts of a stored message.

use std::borrow::Cow;

use crow_core::{
    ContentPart, CrowPart, FailureKind, FileLocation, PlanEntry, PlanPriority, PlanStatus, SiteReach,
    ToolAccess, ToolCallContent, ToolCallInfo, ToolCallStatus, ToolKind,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::images::{ExtractedImages, ImagesByHash, restore_image};

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum ContentPartRow<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        mime: Cow<'a, str>,
        data: Cow<'a, str>,
    },
    Link {
        uri: Cow<'a, str>,
        name: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime: Option<Cow<'a, str>>,
    },
    Resource {
        uri: Cow<'a, str>,
        text: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime: Option<Cow<'a, str>>,
        /// Absent in rows from before it was stored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<OriginRow>,
    },
}

/// The origin of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OriginRow {
    /// A client or a tool: its URI has no meaning for Crow.
    Outside,
    /// Crow itself: the URI gives the kind of addition.
    Crow,
}

/// The part of a tool call that the client saw.
#[derive(Serialize, Deserialize)]
pub(super) struct ToolCallInfoRow<'a> {
    title: Cow<'a, str>,
    #[serde(with = "ToolKindRow")]
    kind: ToolKind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    locations: Vec<FileLocationRow<'a>>,
    touch: ToolAccessRow<'a>,
    content: Vec<ToolContentRow<'a>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct PlanEntryRow<'a> {
    text: Cow<'a, str>,
    #[serde(with = "PlanStatusRow")]
    status: PlanStatus,
    /// Absent in rows from before there were several.
    #[serde(default, skip_serializing_if = "PlanPriorityRow::is_medium")]
    priority: PlanPriorityRow,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meta: Option<Cow<'a, Value>>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PlanPriorityRow {
    High,
    #[default]
    Medium,
    Low,
}

#[derive(Serialize, Deserialize)]
struct FileLocationRow<'a> {
    path: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ToolAccessRow<'a> {
    Nothing,
    Reads(Cow<'a, [String]>),
    Writes(Cow<'a, [String]>),
    Runs(Cow<'a, str>),
    Calls {
        server: Cow<'a, str>,
        tool: Cow<'a, str>,
    },
    Fetches {
        site: Cow<'a, str>,
        #[serde(with = "SiteReachRow")]
        reach: SiteReach,
    },
    Searches,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum ToolContentRow<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        mime: Cow<'a, str>,
        data: Cow<'a, str>,
    },
    Diff {
        path: Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<Cow<'a, str>>,
        new: Cow<'a, str>,
    },
}

#[derive(Serialize, Deserialize)]
pub(super) struct ToolStatusRow(#[serde(with = "ToolStatusNames")] pub(super) ToolCallStatus);

#[derive(Serialize, Deserialize)]
#[serde(remote = "ToolCallStatus", rename_all = "snake_case")]
enum ToolStatusNames {
    Pending,
    #[serde(rename = "running")]
    InProgress,
    #[serde(rename = "done")]
    Completed,
    Failed,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ToolKind", rename_all = "snake_case")]
enum ToolKindRow {
    Read,
    Edit,
    Search,
    Execute,
    Think,
    Fetch,
    Other,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SiteReach", rename_all = "snake_case")]
enum SiteReachRow {
    Public,
    Private,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "PlanStatus", rename_all = "snake_case")]
enum PlanStatusRow {
    Pending,
    InProgress,
    Completed,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FailureKind", rename_all = "snake_case")]
pub(super) enum FailureKindRow {
    SessionNotFound,
    InvalidValue,
    AuthRequired,
    ProviderAuth,
    ProviderRate,
    ProviderOverloaded,
    ProviderRejected,
    ModelNotFound,
    ContextOverflow,
    Connection,
    Protocol,
    Store,
    Config,
    Internal,
}

impl<'a> ContentPartRow<'a> {
    pub(super) fn from_part(part: &'a ContentPart, images: &ExtractedImages<'a>) -> Self {
        match part {
            ContentPart::Text(text) => Self::Text { text: text.into() },
            ContentPart::Image { mime, data } => {
                Self::Image { mime: mime.into(), data: images.placeholder_for(data) }
            }
            ContentPart::Link { uri, name, mime } => {
                Self::Link { uri: uri.into(), name: name.into(), mime: mime.as_deref().map(Into::into) }
            }
            ContentPart::Resource { uri, text, mime } => Self::Resource {
                uri: uri.into(),
                text: text.into(),
                mime: mime.as_deref().map(Into::into),
                origin: Some(OriginRow::Outside),
            },
            ContentPart::FromCrow { kind, text } => Self::Resource {
                uri: kind.uri().into(),
                text: text.into(),
                mime: None,
                origin: Some(OriginRow::Crow),
            },
        }
    }

    pub(super) fn into_part(self, images: Option<&ImagesByHash>) -> Result<ContentPart, String> {
        Ok(match self {
            Self::Text { text } => ContentPart::Text(text.into_owned()),
            Self::Image { mime, data } => {
                ContentPart::Image { mime: mime.into_owned(), data: restore_image(data, images)? }
            }
            Self::Link { uri, name, mime } => ContentPart::Link {
                uri: uri.into_owned(),
                name: name.into_owned(),
                mime: mime.map(Cow::into_owned),
            },
            Self::Resource { uri, text, mime, origin } => match crow_part(&uri, mime.is_some(), origin)? {
                Some(kind) => ContentPart::FromCrow { kind, text: text.into_owned() },
                None => ContentPart::Resource {
                    uri: uri.into_owned(),
                    text: text.into_owned(),
                    mime: mime.map(Cow::into_owned),
                },
            },
        })
    }
}

/// Returns the kind of addition if Crow itself added a resource.
///
/// Rows without an origin were written before it was stored, so only their URI can tell. Those that are spelled exactly as
/// Crow spelled its own count as Crow's: otherwise each step of an old session would be replayed as words of the person,
/// and an open question would be lost. A client that forged one then gains nothing that it did not have then; all rows
/// written since have an origin.
fn crow_part(uri: &str, has_mime: bool, origin: Option<OriginRow>) -> Result<Option<CrowPart>, String> {
    match origin {
        Some(OriginRow::Outside) => Ok(None),
        Some(OriginRow::Crow) => {
            let unknown =
                || format!("it contains {uri}, an addition of Crow that this version does not support");
            CrowPart::parse_uri(uri).map(Some).ok_or_else(unknown)
        }
        None if has_mime => Ok(None),
        None => Ok(CrowPart::parse_uri(uri)),
    }
}

impl<'a> ToolCallInfoRow<'a> {
    pub(super) fn from_info(
        info: &'a ToolCallInfo,
        content: &'a [ToolCallContent],
        images: &ExtractedImages<'a>,
    ) -> Self {
        let access = match &info.access {
            ToolAccess::Nothing => ToolAccessRow::Nothing,
            ToolAccess::Reads(paths) => ToolAccessRow::Reads(paths.into()),
            ToolAccess::Writes(paths) => ToolAccessRow::Writes(paths.into()),
            ToolAccess::Runs(command) => ToolAccessRow::Runs(command.into()),
            ToolAccess::Calls { server, tool } => {
                ToolAccessRow::Calls { server: server.into(), tool: tool.into() }
            }
            ToolAccess::Fetches { site, reach } => {
                ToolAccessRow::Fetches { site: site.into(), reach: *reach }
            }
            ToolAccess::Searches => ToolAccessRow::Searches,
        };
        Self {
            title: info.title.as_str().into(),
            kind: info.kind,
            locations: info.locations.iter().map(FileLocationRow::from_location).collect(),
            touch: access,
            content: content.iter().map(|content| ToolContentRow::from_content(content, images)).collect(),
        }
    }

    pub(super) fn into_info_and_content(
        self,
        images: Option<&ImagesByHash>,
    ) -> Result<(ToolCallInfo, Vec<ToolCallContent>), String> {
        let access = match self.touch {
            ToolAccessRow::Nothing => ToolAccess::Nothing,
            ToolAccessRow::Reads(paths) => ToolAccess::Reads(paths.into_owned()),
            ToolAccessRow::Writes(paths) => ToolAccess::Writes(paths.into_owned()),
            ToolAccessRow::Runs(command) => ToolAccess::Runs(command.into_owned()),
            ToolAccessRow::Calls { server, tool } => {
                ToolAccess::Calls { server: server.into_owned(), tool: tool.into_owned() }
            }
            ToolAccessRow::Fetches { site, reach } => ToolAccess::Fetches { site: site.into_owned(), reach },
            ToolAccessRow::Searches => ToolAccess::Searches,
        };
        let locations = self.locations.into_iter().map(FileLocationRow::into_location).collect();
        let info = ToolCallInfo { title: self.title.into_owned(), kind: self.kind, locations, access };
        let content = self.content.into_iter().map(|content| content.into_content(images));
        Ok((info, content.collect::<Result<_, _>>()?))
    }
}

impl<'a> PlanEntryRow<'a> {
    pub(super) fn from_plan_entry(entry: &'a PlanEntry) -> Self {
        let priority = match entry.priority {
            PlanPriority::High => PlanPriorityRow::High,
            PlanPriority::Medium => PlanPriorityRow::Medium,
            PlanPriority::Low => PlanPriorityRow::Low,
        };
        let meta = entry.meta.as_ref().map(Cow::Borrowed);
        Self { text: entry.text.as_str().into(), status: entry.status, priority, meta }
    }

    pub(super) fn into_plan_entry(self) -> PlanEntry {
        let priority = match self.priority {
            PlanPriorityRow::High => PlanPriority::High,
            PlanPriorityRow::Medium => PlanPriority::Medium,
            PlanPriorityRow::Low => PlanPriority::Low,
        };
        let meta = self.meta.map(Cow::into_owned);
        PlanEntry { text: self.text.into_owned(), status: self.status, priority, meta }
    }
}

impl PlanPriorityRow {
    fn is_medium(&self) -> bool {
        matches!(self, Self::Medium)
    }
}

impl<'a> FileLocationRow<'a> {
    fn from_location(location: &'a FileLocation) -> Self {
        Self { path: location.path.as_str().into(), line: location.line }
    }

    fn into_location(self) -> FileLocation {
        FileLocation { path: self.path.into_owned(), line: self.line }
    }
}

impl<'a> ToolContentRow<'a> {
    fn from_content(content: &'a ToolCallContent, images: &ExtractedImages<'a>) -> Self {
        match content {
            ToolCallContent::Text(text) => Self::Text { text: text.into() },
            ToolCallContent::Image { mime, data } => {
                Self::Image { mime: mime.into(), data: images.placeholder_for(data) }
            }
            ToolCallContent::Diff { path, old, new } => {
                Self::Diff { path: path.into(), old: old.as_deref().map(Cow::Borrowed), new: new.into() }
            }
        }
    }

    fn into_content(self, images: Option<&ImagesByHash>) -> Result<ToolCallContent, String> {
        Ok(match self {
            Self::Text { text } => ToolCallContent::Text(text.into_owned()),
            Self::Image { mime, data } => {
                ToolCallContent::Image { mime: mime.into_owned(), data: restore_image(data, images)? }
            }
            Self::Diff { path, old, new } => ToolCallContent::Diff {
                path: path.into_owned(),
                old: old.map(Cow::into_owned),
                new: new.into_owned(),
            },
        })
    }
}
