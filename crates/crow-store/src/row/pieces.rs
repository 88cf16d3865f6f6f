//! The smaller pieces of a stored message.

use std::borrow::Cow;

use crow_core::{
    Content, CrowPart, Facets, FailureKind, Location, Part, PlanEntry, PlanPriority, PlanStatus, Reach,
    Status, ToolKind, Touch,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::images::{Images, Kept, restored};

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum PartRow<'a> {
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

/// Where a resource comes from.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OriginRow {
    /// A client, or a tool: its URI means nothing to Crow.
    Outside,
    /// Crow itself: its URI says which kind of addition it is.
    Crow,
}

/// What the client saw of a call.
#[derive(Serialize, Deserialize)]
pub(super) struct ShownRow<'a> {
    title: Cow<'a, str>,
    #[serde(with = "ToolKindRow")]
    kind: ToolKind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    locations: Vec<LocationRow<'a>>,
    touch: TouchRow<'a>,
    content: Vec<ContentRow<'a>>,
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
struct LocationRow<'a> {
    path: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TouchRow<'a> {
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
        #[serde(with = "ReachRow")]
        reach: Reach,
    },
    Searches,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum ContentRow<'a> {
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
pub(super) struct StatusRow(#[serde(with = "StatusNames")] pub(super) Status);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Status", rename_all = "snake_case")]
enum StatusNames {
    Pending,
    Running,
    Done,
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
#[serde(remote = "Reach", rename_all = "snake_case")]
enum ReachRow {
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

impl<'a> PartRow<'a> {
    pub(super) fn of(part: &'a Part, kept: &Kept<'a>) -> Self {
        match part {
            Part::Text(text) => Self::Text { text: text.into() },
            Part::Image { mime, data } => Self::Image { mime: mime.into(), data: kept.spell(data) },
            Part::Link { uri, name, mime } => {
                Self::Link { uri: uri.into(), name: name.into(), mime: mime.as_deref().map(Into::into) }
            }
            Part::Resource { uri, text, mime } => Self::Resource {
                uri: uri.into(),
                text: text.into(),
                mime: mime.as_deref().map(Into::into),
                origin: Some(OriginRow::Outside),
            },
            Part::FromCrow { what, text } => Self::Resource {
                uri: what.uri().into(),
                text: text.into(),
                mime: None,
                origin: Some(OriginRow::Crow),
            },
        }
    }

    pub(super) fn into_part(self, images: Option<&Images>) -> Result<Part, String> {
        Ok(match self {
            Self::Text { text } => Part::Text(text.into_owned()),
            Self::Image { mime, data } => {
                Part::Image { mime: mime.into_owned(), data: restored(data, images)? }
            }
            Self::Link { uri, name, mime } => {
                Part::Link { uri: uri.into_owned(), name: name.into_owned(), mime: mime.map(Cow::into_owned) }
            }
            Self::Resource { uri, text, mime, origin } => match crow_part(&uri, mime.is_some(), origin)? {
                Some(what) => Part::FromCrow { what, text: text.into_owned() },
                None => Part::Resource {
                    uri: uri.into_owned(),
                    text: text.into_owned(),
                    mime: mime.map(Cow::into_owned),
                },
            },
        })
    }
}

/// Tells whether Crow itself added a resource, and as what.
///
/// Rows without an origin were written before it was stored, so only their URI can tell. Those that are spelled exactly as
/// Crow spelled its own count as Crow's: otherwise each step of an old session would be replayed as words of the person,
/// and an open question would be lost. A client that forged one then gains nothing that it did not have then; all rows
/// written since have an origin.
fn crow_part(uri: &str, has_mime: bool, origin: Option<OriginRow>) -> Result<Option<CrowPart>, String> {
    match origin {
        Some(OriginRow::Outside) => Ok(None),
        Some(OriginRow::Crow) => {
            let unknown = || format!("it holds {uri}, an addition of Crow that this version does not know");
            CrowPart::parse_uri(uri).map(Some).ok_or_else(unknown)
        }
        None if has_mime => Ok(None),
        None => Ok(CrowPart::parse_uri(uri)),
    }
}

impl<'a> ShownRow<'a> {
    pub(super) fn of(facets: &'a Facets, content: &'a [Content], kept: &Kept<'a>) -> Self {
        let touch = match &facets.touch {
            Touch::Nothing => TouchRow::Nothing,
            Touch::Reads(paths) => TouchRow::Reads(paths.into()),
            Touch::Writes(paths) => TouchRow::Writes(paths.into()),
            Touch::Runs(command) => TouchRow::Runs(command.into()),
            Touch::Calls { server, tool } => TouchRow::Calls { server: server.into(), tool: tool.into() },
            Touch::Fetches { site, reach } => TouchRow::Fetches { site: site.into(), reach: *reach },
            Touch::Searches => TouchRow::Searches,
        };
        Self {
            title: facets.title.as_str().into(),
            kind: facets.kind,
            locations: facets.locations.iter().map(LocationRow::of).collect(),
            touch,
            content: content.iter().map(|content| ContentRow::of(content, kept)).collect(),
        }
    }

    pub(super) fn into_shown(self, images: Option<&Images>) -> Result<(Facets, Vec<Content>), String> {
        let touch = match self.touch {
            TouchRow::Nothing => Touch::Nothing,
            TouchRow::Reads(paths) => Touch::Reads(paths.into_owned()),
            TouchRow::Writes(paths) => Touch::Writes(paths.into_owned()),
            TouchRow::Runs(command) => Touch::Runs(command.into_owned()),
            TouchRow::Calls { server, tool } => {
                Touch::Calls { server: server.into_owned(), tool: tool.into_owned() }
            }
            TouchRow::Fetches { site, reach } => Touch::Fetches { site: site.into_owned(), reach },
            TouchRow::Searches => Touch::Searches,
        };
        let locations = self.locations.into_iter().map(LocationRow::into_location).collect();
        let facets = Facets { title: self.title.into_owned(), kind: self.kind, locations, touch };
        let content = self.content.into_iter().map(|content| content.into_content(images));
        Ok((facets, content.collect::<Result<_, _>>()?))
    }
}

impl<'a> PlanEntryRow<'a> {
    pub(super) fn of(entry: &'a PlanEntry) -> Self {
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

impl<'a> LocationRow<'a> {
    fn of(location: &'a Location) -> Self {
        Self { path: location.path.as_str().into(), line: location.line }
    }

    fn into_location(self) -> Location {
        Location { path: self.path.into_owned(), line: self.line }
    }
}

impl<'a> ContentRow<'a> {
    fn of(content: &'a Content, kept: &Kept<'a>) -> Self {
        match content {
            Content::Text(text) => Self::Text { text: text.into() },
            Content::Image { mime, data } => Self::Image { mime: mime.into(), data: kept.spell(data) },
            Content::Diff { path, old, new } => {
                Self::Diff { path: path.into(), old: old.as_deref().map(Cow::Borrowed), new: new.into() }
            }
        }
    }

    fn into_content(self, images: Option<&Images>) -> Result<Content, String> {
        Ok(match self {
            Self::Text { text } => Content::Text(text.into_owned()),
            Self::Image { mime, data } => {
                Content::Image { mime: mime.into_owned(), data: restored(data, images)? }
            }
            Self::Diff { path, old, new } => Content::Diff {
                path: path.into_owned(),
                old: old.map(Cow::into_owned),
                new: new.into_owned(),
            },
        })
    }
}
