//! The calls of tools: what the model requests, what is known about a call before it runs, and its result.

use serde_json::Value;

use crate::{CallId, ContentPart, PlanEntry, ToolArguments};

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Our identifier.
    pub id: CallId,
    /// The provider's identifier, returned with the result; providers reuse these.
    pub provider_id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub arguments: ToolArguments,
}

/// A tool as described to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON schema of the arguments, an object.
    pub parameters: Value,
}

/// The kind of a tool, for the client's icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// Reads files.
    Read,
    /// Changes files.
    Edit,
    /// Searches.
    Search,
    /// Runs a program.
    Execute,
    /// Thinks or plans.
    Think,
    /// Fetches external data.
    Fetch,
    /// Anything else.
    Other,
}

/// A file location of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLocation {
    /// Absolute path.
    pub path: String,
    /// Line, from 1.
    pub line: Option<u32>,
}

/// Information about a call before it runs: what the client shows, and the basis of the permission decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallInfo {
    /// One line for the user.
    pub title: String,
    /// The kind of the tool.
    pub kind: ToolKind,
    /// The affected files.
    pub locations: Vec<FileLocation>,
    /// The access that the call needs.
    pub access: ToolAccess,
}

/// The access of a call if it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolAccess {
    /// Nothing outside the agent.
    Nothing,
    /// Reads these absolute paths, with links resolved.
    Reads(Vec<String>),
    /// Changes these absolute paths, with links resolved.
    Writes(Vec<String>),
    /// Runs a shell command.
    Runs(String),
    /// Calls a tool of an MCP server, with unknown effects.
    Calls {
        /// The server's name.
        server: String,
        /// The tool's name on the server.
        tool: String,
    },
    /// Fetches a web page.
    Fetches {
        /// The host, with a port other than the default.
        site: String,
        /// The location of the site.
        reach: SiteReach,
    },
    /// Sends a query to the configured search service.
    Searches,
}

/// The location of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteReach {
    /// On the public internet.
    Public,
    /// On this machine, in its network, or configured by the user.
    Private,
}

/// The result of a call, for the model and for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The status.
    pub status: ToolCallStatus,
    /// The content for the model.
    pub for_model: Vec<ContentPart>,
    /// The content for the client.
    pub for_client: Vec<ToolCallContent>,
    /// The new plan, if the call made one.
    pub plan: Option<Vec<PlanEntry>>,
}

impl ToolResult {
    /// Creates a success with the same text for both.
    pub fn success(text: impl Into<String>) -> Self {
        Self::with_status(ToolCallStatus::Completed, text)
    }

    /// Creates a failure with the same text for both.
    pub fn failure(text: impl Into<String>) -> Self {
        Self::with_status(ToolCallStatus::Failed, text)
    }

    /// Appends a line to the text for both.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        let append_note = |text: &str| format!("{}\n{note}", text.trim_end_matches('\n'));
        if let Some(ContentPart::Text(text)) = self.for_model.last_mut() {
            *text = append_note(text);
        } else {
            self.for_model.push(ContentPart::Text(note.to_owned()));
        }
        if let Some(ToolCallContent::Text(text)) = self.for_client.last_mut() {
            *text = append_note(text);
        } else {
            self.for_client.push(ToolCallContent::Text(note.to_owned()));
        }
        self
    }

    fn with_status(status: ToolCallStatus, text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            status,
            for_model: vec![ContentPart::Text(text.clone())],
            for_client: vec![ToolCallContent::Text(text)],
            plan: None,
        }
    }
}

/// The status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCallStatus {
    /// Announced, possibly waiting for permission.
    Pending,
    /// Running.
    InProgress,
    /// Succeeded.
    Completed,
    /// Failed or cancelled.
    Failed,
}

impl ToolCallStatus {
    /// Returns the name for clients and scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// A part of a call's content for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolCallContent {
    /// Text.
    Text(String),
    /// An image; `data` is base64.
    Image {
        /// Media type.
        mime: String,
        /// The bytes in base64.
        data: String,
    },
    /// A change of a file, with its old and new text.
    Diff {
        /// Absolute path.
        path: String,
        /// The text before; `None` for a new file.
        old: Option<String>,
        /// The text after.
        new: String,
    },
}
