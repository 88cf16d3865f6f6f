//! Permission requests and their answers: a session's own, and those of an agent that it drives. Knows neither
//! the protocol nor how a request is sent.

use std::borrow::Cow;

use crow_core::{CallId, GrantOffer, ToolCallContent, ToolCallInfo, ToolKind};
use serde_json::{Map, Value};

/// The user's answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionOutcome {
    AllowOnce,
    /// Approved for the rest of the session.
    AllowForSession,
    /// Approved permanently for this project.
    AllowInProject,
    /// Approved permanently for this project, with a prefix that the user has written.
    AllowPrefixInProject(String),
    /// Rejected once.
    Reject,
    /// Rejected for the rest of the session.
    RejectForSession,
    /// Rejected, and the user will say what to do instead.
    RejectWithFeedback,
    /// The turn was cancelled before an answer.
    Cancelled,
    /// No user could be asked.
    Unavailable {
        reason: String,
    },
}

impl PermissionOutcome {
    /// Whether the call is approved.
    pub fn is_allowed(&self) -> bool {
        match self {
            Self::AllowOnce | Self::AllowForSession => true,
            Self::AllowInProject | Self::AllowPrefixInProject(_) => true,
            Self::Reject | Self::RejectForSession | Self::RejectWithFeedback => false,
            Self::Cancelled | Self::Unavailable { .. } => false,
        }
    }
}

/// A call that needs the user's approval.
#[derive(Debug, Clone, Copy)]
pub struct PermissionRequest<'a> {
    pub subject: PermissionSubject,
    pub call: CallId,
    pub info: &'a ToolCallInfo,
    pub arguments: &'a Map<String, Value>,
    /// The changes it would make, as far as known.
    pub preview: &'a [ToolCallContent],
    /// The reason why it needs approval.
    pub reason: Option<&'a str>,
    pub offered_answers: OfferedAnswers<'a>,
}

/// The subject of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PermissionSubject {
    /// A call of the model.
    #[default]
    Call,
    /// Something that Crow offers beyond the request. Nothing fails without it.
    Proposal,
    /// Continuing although the model repeats itself. Automatic approval would make it run on.
    Continue,
}

/// The answers offered in addition to approving and rejecting once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferedAnswers<'a> {
    /// None.
    Once,
    /// Approving and rejecting for the rest of the session.
    Session,
    /// For a call: approvals that are remembered, and rejecting with instructions.
    Remembered {
        /// The grants that an approval may be remembered as.
        offer: &'a GrantOffer,
        /// Whether the user can say what to do instead.
        accepts_feedback: bool,
    },
}

/// An agent's request, as its parent passes it on to the user.
#[derive(Debug, Clone, Copy)]
pub struct ChildPermissionRequest<'a> {
    /// The call that started the child.
    pub parent_call: CallId,
    /// The child's name for the user.
    pub agent_name: &'a str,
    pub request: &'a AgentPermissionRequest,
}

/// A call that needs the user's approval.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentPermissionRequest {
    pub subject: PermissionSubject,
    /// The agent's ID of the call.
    pub call: String,
    /// Empty if the agent says nothing about the call.
    pub title: String,
    /// Determines the icon.
    pub kind: ToolKind,
    /// The arguments.
    pub input: Option<Value>,
    pub content: Vec<ToolCallContent>,
    pub options: Vec<PermissionOption>,
    /// The grants that an approval would be remembered as, if the agent is Crow.
    pub offer: Option<GrantOffer>,
}

impl AgentPermissionRequest {
    /// Finds the option that allows this call and nothing else.
    pub fn allow_once(&self) -> Option<PermissionAnswer> {
        let option = self.options.iter().find(|choice| choice.allows && !choice.always)?;
        Some(PermissionAnswer::Selected(option.id.clone()))
    }

    /// Finds the option that rejects the call, if possible this call only.
    pub fn reject(&self) -> Option<PermissionAnswer> {
        let rejections = || self.options.iter().filter(|choice| !choice.allows);
        let option = rejections().find(|choice| !choice.always).or_else(|| rejections().next())?;
        Some(PermissionAnswer::Selected(option.id.clone()))
    }

    /// Names the agent, for a user who may not know which one asks.
    pub(crate) fn name_agent(&mut self, name: &str) {
        if self.title.is_empty() {
            self.title = undescribed_title(name);
        } else {
            self.content.insert(0, ToolCallContent::Text(format!("Requested by {name}.")));
        }
    }
}

/// The title of a request that says nothing about its call.
pub(crate) fn undescribed_title(agent_name: &str) -> String {
    format!("{agent_name} asks for permission without saying for what")
}

/// A client's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// The ID of an option.
    Selected(String),
    /// The ID of an option, with another prefix of commands than the one it has.
    SelectedPrefix { option: String, prefix: String },
    /// No user could be asked.
    Unavailable {
        /// The reason, to be shown in parentheses.
        reason: Cow<'static, str>,
    },
}

/// An option of a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    pub id: String,
    pub name: String,
    /// Whether it approves.
    pub allows: bool,
    /// Whether it applies from now on.
    pub always: bool,
    /// The prefix of the commands that it would allow, if the agent accepts another one.
    pub prefix: Option<String>,
}
