//! What a hook is, which calls it is about, what it is told and what its answer means.
//!
//! Knows no process: how a hook ended and what it wrote come in as values. A hook can only restrict; nothing
//! it says allows what would be asked or refused without it.

mod answer;
mod moment;

use std::time::Duration;

use regex::{Regex, RegexBuilder};

pub use answer::{HookDecision, HookExit, parse_hook_output};
pub use moment::{HookInput, HookSession};

/// Characters of a hook's command that name it for people.
const NAME_CHARS_MAX: usize = 60;

/// Bytes of a matcher: a few names of tools.
const MATCHER_BYTES_MAX: usize = 200;

/// Bytes of memory for a matcher that was read: a configuration may bring many.
const COMPILED_BYTES_MAX: usize = 64 * 1024;

/// A command of the person's that runs at certain moments.
#[derive(Debug, Clone)]
pub struct HookConfig {
    /// When it runs.
    pub event: HookEvent,
    /// Which tools it is about, where the event has a tool.
    pub matcher: HookMatcher,
    /// What the shell runs.
    pub command: String,
    /// How long it may take.
    pub timeout: Duration,
}

impl HookConfig {
    /// Tells whether it runs at a moment.
    pub fn applies_to(&self, moment: &HookInput<'_>) -> bool {
        self.event == moment.event() && moment.tool_name().is_none_or(|tool| self.matcher.matches_tool(tool))
    }

    /// Names it for people: the first line of its command, as far as it is short.
    pub fn name(&self) -> String {
        let line = self.command.trim().lines().next().unwrap_or_default();
        match line.char_indices().nth(NAME_CHARS_MAX) {
            Some((cut, _)) => format!("{}…", line[..cut].trim_end()),
            None => line.to_owned(),
        }
    }
}

/// When a hook runs, by the names that other agents use as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEvent {
    /// Before a tool runs, and before anybody is asked whether it may.
    PreToolUse,
    /// After a tool ran.
    PostToolUse,
    /// Before a prompt is stored.
    UserPromptSubmit,
    /// When the model has nothing more to do.
    Stop,
}

impl HookEvent {
    /// Every event.
    pub const ALL: [Self; 4] = [Self::PreToolUse, Self::PostToolUse, Self::UserPromptSubmit, Self::Stop];

    /// Spells the event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::Stop => "Stop",
        }
    }

    /// Reads an event.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == text)
    }

    /// Tells whether nothing may pass when its hook fails.
    pub fn fails_closed(self) -> bool {
        match self {
            Self::PreToolUse | Self::UserPromptSubmit => true,
            Self::PostToolUse | Self::Stop => false,
        }
    }
}

/// Which tools a hook is about.
#[derive(Debug, Clone, Default)]
pub struct HookMatcher(Option<Regex>);

/// A matcher that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookMatcherError {
    /// It does not parse; why.
    #[error("is not a regular expression: {0}")]
    Syntax(String),
    /// It is longer, or needs more memory, than any list of tools.
    #[error("is too large for a matcher")]
    TooLarge,
}

impl HookMatcher {
    /// Reads a regular expression on whole names; nothing and `*` stand for every tool.
    pub fn parse(text: &str) -> Result<Self, HookMatcherError> {
        if text.is_empty() || text == "*" {
            return Ok(Self(None));
        }
        if text.len() > MATCHER_BYTES_MAX {
            return Err(HookMatcherError::TooLarge);
        }
        // By itself as well: `a)|(b` would become whole between our brackets.
        let read = compile_regex(text).and_then(|_| compile_regex(&format!("^(?:{text})$")));
        read.map(|regex| Self(Some(regex))).map_err(|error| {
            if matches!(error, regex::Error::CompiledTooBig(_)) {
                return HookMatcherError::TooLarge;
            }
            let text = error.to_string();
            let why = text.lines().last().unwrap_or_default().trim();
            HookMatcherError::Syntax(why.trim_start_matches("error: ").to_owned())
        })
    }

    /// Tells whether it is about a tool.
    pub fn matches_tool(&self, tool: &str) -> bool {
        self.0.as_ref().is_none_or(|regex| regex.is_match(tool))
    }
}

fn compile_regex(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(COMPILED_BYTES_MAX).dfa_size_limit(COMPILED_BYTES_MAX).build()
}

#[cfg(test)]
mod tests;
