//! What a hook is told. Spells the JSON of a hook's stdin and nothing else.

use serde_json::{Value, json};

use crate::{Call, HookEvent, Outcome, Part, SessionId};

/// What a hook runs for.
#[derive(Debug, Clone, Copy)]
pub enum Moment<'a> {
    /// A tool is about to run.
    BeforeCall(&'a Call),
    /// A tool ran.
    AfterCall {
        /// Which call.
        call: &'a Call,
        /// What came of it.
        outcome: &'a Outcome,
    },
    /// The person said something.
    Prompt {
        /// Their words and what they point at.
        parts: &'a [Part],
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
pub struct Situation<'a> {
    /// In which session.
    pub session: &'a SessionId,
    /// In which folder.
    pub cwd: &'a str,
}

impl<'a> Moment<'a> {
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
    pub fn tool(&self) -> Option<&'a str> {
        match self {
            Self::BeforeCall(call) | Self::AfterCall { call, .. } => Some(&call.name),
            Self::Prompt { .. } | Self::Stop { .. } => None,
        }
    }

    /// Spells what the hooks of this moment read.
    pub fn spell(&self, situation: Situation<'_>) -> String {
        let mut told = json!({
            "session_id": situation.session.as_str(),
            "cwd": situation.cwd,
            "hook_event_name": self.event().as_str(),
        });
        match *self {
            Self::BeforeCall(call) => tell_call(&mut told, call),
            Self::AfterCall { call, outcome } => {
                tell_call(&mut told, call);
                told["tool_response"] =
                    json!({"status": outcome.status.as_str(), "text": text_of(&outcome.for_model)});
            }
            Self::Prompt { parts } => told["prompt"] = text_of(parts).into(),
            Self::Stop { reply, n_gone_on } => {
                told["stop_reason"] = "end_turn".into();
                told["stop_hook_active"] = (n_gone_on > 0).into();
                told["last_assistant_message"] = reply.into();
            }
        }
        format!("{told}\n")
    }
}

fn tell_call(told: &mut Value, call: &Call) {
    told["tool_name"] = call.name.as_str().into();
    told["tool_input"] = call.arguments.object().into();
}

fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) | Part::Resource { text, .. } | Part::FromCrow { text, .. } => Some(text.as_str()),
        Part::Image { .. } | Part::Link { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
