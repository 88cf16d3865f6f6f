//! The input of a hook: the JSON on its stdin.

use serde_json::{Value, json};

use crate::{ContentPart, HookEvent, SessionId, ToolCall, ToolResult};

/// The event that a hook runs for, with its data.
#[derive(Debug, Clone, Copy)]
pub enum HookInput<'a> {
    /// Before a tool call.
    BeforeCall(&'a ToolCall),
    /// After a tool call.
    AfterCall {
        /// The call.
        call: &'a ToolCall,
        /// The result of the call.
        result: &'a ToolResult,
    },
    /// The user's prompt.
    Prompt {
        /// The parts of the prompt.
        parts: &'a [ContentPart],
    },
    /// The model has finished.
    Stop {
        /// The text of the last reply.
        reply: &'a str,
        /// The number of times that a hook continued this turn.
        n_continuations: u32,
    },
}

/// The session of a hook.
#[derive(Debug, Clone, Copy)]
pub struct HookSession<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The working directory.
    pub cwd: &'a str,
}

impl<'a> HookInput<'a> {
    /// Returns the event's kind.
    pub fn event(&self) -> HookEvent {
        match self {
            Self::BeforeCall(_) => HookEvent::PreToolUse,
            Self::AfterCall { .. } => HookEvent::PostToolUse,
            Self::Prompt { .. } => HookEvent::UserPromptSubmit,
            Self::Stop { .. } => HookEvent::Stop,
        }
    }

    /// Returns the tool's name, if the event has a tool.
    pub fn tool_name(&self) -> Option<&'a str> {
        match self {
            Self::BeforeCall(call) | Self::AfterCall { call, .. } => Some(&call.name),
            Self::Prompt { .. } | Self::Stop { .. } => None,
        }
    }

    /// Encodes the input for the hook's stdin.
    pub fn to_json(&self, context: HookSession<'_>) -> String {
        let mut json = json!({
            "session_id": context.session.as_str(),
            "cwd": context.cwd,
            "hook_event_name": self.event().as_str(),
        });
        match *self {
            Self::BeforeCall(call) => insert_call_fields(&mut json, call),
            Self::AfterCall { call, result } => {
                insert_call_fields(&mut json, call);
                json["tool_response"] =
                    json!({"status": result.status.as_str(), "text": parts_text(&result.for_model)});
            }
            Self::Prompt { parts } => json["prompt"] = parts_text(parts).into(),
            Self::Stop { reply, n_continuations } => {
                json["stop_reason"] = "end_turn".into();
                json["stop_hook_active"] = (n_continuations > 0).into();
                json["last_assistant_message"] = reply.into();
            }
        }
        format!("{json}\n")
    }
}

fn insert_call_fields(json: &mut Value, call: &ToolCall) {
    json["tool_name"] = call.name.as_str().into();
    json["tool_input"] = call.arguments.to_object().into();
}

fn parts_text(parts: &[ContentPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        ContentPart::Text(text) | ContentPart::Resource { text, .. } | ContentPart::FromCrow { text, .. } => {
            Some(text.as_str())
        }
        ContentPart::Image { .. } | ContentPart::Link { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
