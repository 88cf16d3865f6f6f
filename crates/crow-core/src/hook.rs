//! Hooks: their configuration, the calls that they match, their input and their output.
//!
//! Knows no processes: exit status and output are values. A hook can only restrict: its output never allows what
//! would be asked or denied without it.

mod effect;
mod input;
mod output;

use std::time::Duration;

use regex::{Regex, RegexBuilder};

pub use effect::{HookObjection, HookResults, PromptRejection, append_hook_context};
pub use input::{HookInput, HookSession};
pub use output::{HookDecision, HookExit, parse_hook_output};

/// Characters of a hook's command in its display name.
const NAME_CHARS_MAX: usize = 60;

/// Bytes of a matcher: a few tool names.
const MATCHER_BYTES_MAX: usize = 200;

/// Memory of a compiled matcher: a configuration may contain many.
const COMPILED_BYTES_MAX: usize = 64 * 1024;

/// A user's command that runs at an event.
#[derive(Debug, Clone)]
pub struct HookConfig {
    /// The event.
    pub event: HookEvent,
    /// The tools it applies to, if the event has a tool.
    pub matcher: HookMatcher,
    /// The shell command.
    pub command: String,
    /// The time limit.
    pub timeout: Duration,
}

impl HookConfig {
    /// Whether the hook runs for an input.
    pub fn applies_to(&self, input: &HookInput<'_>) -> bool {
        self.event == input.event() && input.tool_name().is_none_or(|tool| self.matcher.matches_tool(tool))
    }

    /// Returns the display name: the first line of the command, truncated.
    pub fn name(&self) -> String {
        let line = self.command.trim().lines().next().unwrap_or_default();
        match line.char_indices().nth(NAME_CHARS_MAX) {
            Some((cut, _)) => format!("{}…", line[..cut].trim_end()),
            None => line.to_owned(),
        }
    }
}

/// The events of hooks, by the names that other agents also use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEvent {
    /// Before a tool runs, and before its permission request.
    PreToolUse,
    /// After a tool ran.
    PostToolUse,
    /// Before a prompt is stored.
    UserPromptSubmit,
    /// When the model has finished.
    Stop,
}

impl HookEvent {
    /// All events.
    pub const ALL: [Self; 4] = [Self::PreToolUse, Self::PostToolUse, Self::UserPromptSubmit, Self::Stop];

    /// Returns the configuration word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::Stop => "Stop",
        }
    }

    /// Parses a configuration word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == text)
    }

    /// Whether a failing hook blocks the event.
    pub fn fails_closed(self) -> bool {
        match self {
            Self::PreToolUse | Self::UserPromptSubmit => true,
            Self::PostToolUse | Self::Stop => false,
        }
    }
}

/// The tools that a hook applies to.
#[derive(Debug, Clone, Default)]
pub struct HookMatcher(Option<Regex>);

/// An invalid matcher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookMatcherError {
    /// A syntax error, with its reason.
    #[error("is not a regular expression: {0}")]
    Syntax(String),
    /// It is longer, or needs more memory, than any list of tools.
    #[error("is too large for a matcher")]
    TooLarge,
}

impl HookMatcher {
    /// Parses a regular expression for whole names; an empty one and `*` match every tool.
    pub fn parse(text: &str) -> Result<Self, HookMatcherError> {
        if text.is_empty() || text == "*" {
            return Ok(Self(None));
        }
        if text.len() > MATCHER_BYTES_MAX {
            return Err(HookMatcherError::TooLarge);
        }
        // It must also be valid by itself: `a)|(b` would become valid inside our parentheses.
        let compiled = compile_regex(text).and_then(|_| compile_regex(&format!("^(?:{text})$")));
        compiled.map(|regex| Self(Some(regex))).map_err(|error| {
            if matches!(error, regex::Error::CompiledTooBig(_)) {
                return HookMatcherError::TooLarge;
            }
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim();
            HookMatcherError::Syntax(reason.trim_start_matches("error: ").to_owned())
        })
    }

    /// Whether the matcher includes a tool.
    pub fn matches_tool(&self, tool: &str) -> bool {
        self.0.as_ref().is_none_or(|regex| regex.is_match(tool))
    }
}

fn compile_regex(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(COMPILED_BYTES_MAX).dfa_size_limit(COMPILED_BYTES_MAX).build()
}

#[cfg(test)]
mod tests;
