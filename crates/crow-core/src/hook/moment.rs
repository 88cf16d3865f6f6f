//! What a hook is told. Spells the JSON of a hook's stdin and nothing else.

use serde_json::{Value, json};

use crate::{ContentPart, HookEvent, SessionId, ToolCall, ToolResult};

/// What a hook runs for.
#[derive(Debug, Clone, Copy)]
pub enum HookInput<'a> {
    /// A tool is about to run.
    BeforeCall(&'a ToolCall),
    /// A tool ran.
    AfterCall {
        /// Which call.
        call: &'a ToolCall,
        /// What came of it.
        outcome: &'a ToolResult,
    },
    /// The person said something.
    Prompt {
        /// Their words and what they point at.
        parts: &'a [ContentPart],
    },
    /// The model has nothing more to do.
    Stop {
        /// Its last words.
        reply: &'a str,
        /// How often a hook has had it go on in this turn.
        n_gone_on: u32,
    },
}

/// Where a hook runs.
#[derive(Debug, Clone, Copy)]
pub struct HookSession<'a> {
    /// In which session.
    pub session: &'a SessionId,
    /// In which folder.
    pub cwd: &'a str,
}

impl<'a> HookInput<'a> {
    /// The event that hooks know it by.
    pub fn event(&self) -> HookEvent {
        match self {
            Self::BeforeCall(_) => HookEvent::PreToolUse,
            Self::AfterCall { .. } => HookEvent::PostToolUse,
            Self::Prompt { .. } => HookEvent::UserPromptSubmit,
            Self::Stop { .. } => HookEvent::Stop,
        }
    }

    /// The tool it is about.
    pub fn tool_name(&self) -> Option<&'a str> {
        match self {
            Self::BeforeCall(call) | Self::AfterCall { call, .. } => Some(&call.name),
            Self::Prompt { .. } | Self::Stop { .. } => None,
        }
    }

    /// Spells what the hooks of this moment read.
    pub fn to_json(&self, situation: HookSession<'_>) -> String {
        let mut told = json!({
            "session_id": situation.session.as_str(),
            "cwd": situation.cwd,
            "hook_event_name": self.event().as_str(),
        });
        match *self {
            Self::BeforeCall(call) => insert_call_fields(&mut told, call),
            Self::AfterCall { call, outcome } => {
                insert_call_fields(&mut told, call);
                told["tool_response"] =
                    json!({"status": outcome.status.as_str(), "text": parts_text(&outcome.for_model)});
            }
            Self::Prompt { parts } => told["prompt"] = parts_text(parts).into(),
            Self::Stop { reply, n_gone_on } => {
                told["stop_reason"] = "end_turn".into();
                told["stop_hook_active"] = (n_gone_on > 0).into();
                told["last_assistant_message"] = reply.into();
            }
        }
        format!("{told}\n")
    }
}

fn insert_call_fields(told: &mut Value, call: &ToolCall) {
    told["tool_name"] = call.name.as_str().into();
    told["tool_input"] = call.arguments.to_object().into();
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
