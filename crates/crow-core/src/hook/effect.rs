//! The effects of hooks: which decision stops the other hooks, and what the model and the user are told.

use super::{HookConfig, HookDecision};
use crate::{ContentPart, CrowPart, Failure, FailureKind, ToolResult};

const CANCELLED: &str = "not run: the turn was cancelled";

/// The results of the hooks for one event.
#[derive(Debug, Default)]
pub struct HookResults {
    /// Text for the model, one per hook.
    pub context: Vec<String>,
    /// The objection that stopped the remaining hooks.
    pub objection: Option<HookObjection>,
}

/// The reason why an event does not go on as planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookObjection {
    /// The action may not happen; with the reason.
    Rejected(String),
    /// The turn ends; with the reason.
    Ended(String),
    /// The turn was cancelled while hooks ran.
    Cancelled,
}

/// Why a prompt is not sent to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptRejection {
    /// A hook rejected it; with the message.
    Rejected(String),
    /// The turn was cancelled while hooks ran.
    Cancelled,
}

impl HookResults {
    /// Adds the decision of a hook, `None` if the turn was cancelled. Returns the notice for the user.
    pub fn add_decision(&mut self, hook: &HookConfig, decision: Option<HookDecision>) -> Option<String> {
        let (objection, notice) = match decision {
            None => (Some(HookObjection::Cancelled), None),
            Some(HookDecision::NoDecision) => (None, None),
            Some(HookDecision::Context(text)) => {
                self.context.push(text);
                (None, None)
            }
            Some(HookDecision::Block(reason)) => {
                (Some(HookObjection::Rejected(format!("a hook rejected it: {reason}"))), None)
            }
            Some(HookDecision::ContinueTurn(reason)) => (Some(HookObjection::Rejected(reason)), None),
            Some(HookDecision::EndTurn(reason)) => {
                let notice = format!("A hook ended the turn: {reason}");
                (Some(HookObjection::Ended(reason)), Some(notice))
            }
            Some(HookDecision::Failed(reason)) => {
                let name = hook.name();
                let notice = format!("The {} hook `{name}` failed: {reason}", hook.event.as_str());
                let rejection = format!("the hook `{name}`, which must approve it, failed: {reason}");
                (hook.event.fails_closed().then_some(HookObjection::Rejected(rejection)), Some(notice))
            }
        };
        self.objection = objection;
        notice
    }

    /// Returns the text to add to the result of a call, or its result if it may not run.
    pub fn into_call_context(self) -> Result<Vec<String>, ToolResult> {
        let reason = match self.objection {
            None => return Ok(self.context),
            Some(HookObjection::Rejected(reason)) => format!("not run: {reason}"),
            Some(HookObjection::Ended(reason)) => format!("not run: a hook ended the turn here: {reason}"),
            Some(HookObjection::Cancelled) => CANCELLED.to_owned(),
        };
        Err(ToolResult::failure(reason))
    }

    /// Returns a prompt with the text that the hooks add, or why it is not sent.
    pub fn into_prompt(self, mut parts: Vec<ContentPart>) -> Result<Vec<ContentPart>, PromptRejection> {
        match self.objection {
            None => {}
            Some(HookObjection::Rejected(reason) | HookObjection::Ended(reason)) => {
                return Err(PromptRejection::Rejected(format!("Not sent: {reason}")));
            }
            Some(HookObjection::Cancelled) => return Err(PromptRejection::Cancelled),
        }
        let added = self.context.into_iter();
        parts.extend(added.map(|text| ContentPart::FromCrow { kind: CrowPart::PromptHook, text }));
        Ok(parts)
    }
}

impl PromptRejection {
    /// Converts it into the failure of a steering message.
    pub fn into_failure(self) -> Failure {
        let reason = match self {
            Self::Rejected(reason) => reason,
            Self::Cancelled => {
                "the turn was cancelled before the model read this; send it as a prompt".to_owned()
            }
        };
        Failure::new(FailureKind::InvalidValue, reason)
    }
}

/// Adds the text of hooks to the result of a call.
pub fn append_hook_context(result: &mut ToolResult, context: Vec<String>) {
    let parts = context.into_iter().map(|text| ContentPart::Text(format!("(a hook says) {text}")));
    result.for_model.extend(parts);
}
