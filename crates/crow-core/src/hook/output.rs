//! Parses the result of a hook: exit status, stdout and stderr. Unexpected output is a failure, never an approval.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::HookEvent;

/// The exit code that blocks; stderr has the reason.
const BLOCK_EXIT_CODE: i32 = 2;

/// Characters of a reason or a context: about 4,000 tokens, which stay in the conversation.
const REASON_CHARS_MAX: usize = 16_000;

/// Characters of a failed hook's last stderr output, which includes the error line.
const STDERR_CHARS_MAX: usize = 400;

/// Output fields of other agents' hooks that change what runs. Ignoring them would run what the hook wanted to
/// change.
const UNSUPPORTED_FIELDS: [&str; 2] = ["updatedInput", "updatedMCPToolOutput"];

/// The byte order mark.
const BOM: char = '\u{feff}';

/// The exit status of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookExit {
    /// Exited with this code.
    Exited(i32),
    /// Ended by this signal.
    Signalled(i32),
    /// Exceeded this time limit.
    TimedOut(Duration),
    /// Not started, with the reason.
    NotStarted(String),
}

/// The decision of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookDecision {
    /// No effect.
    NoDecision,
    /// Add this context for the model.
    Context(String),
    /// Block, with the reason.
    Block(String),
    /// Continue the turn, with the reason. Only from [`HookEvent::Stop`].
    ContinueTurn(String),
    /// End the turn, with the reason.
    EndTurn(String),
    /// No valid result, with the reason.
    Failed(String),
}

/// Parses the result of a hook.
pub fn parse_hook_output(event: HookEvent, exit: &HookExit, stdout: &str, stderr: &str) -> HookDecision {
    let failed = |message: String| HookDecision::Failed(with_stderr_tail(message, stderr));
    match exit {
        HookExit::Exited(0) => {
            parse_answer(event, stdout).unwrap_or_else(|reason| failed(format!("its answer {reason}")))
        }
        HookExit::Exited(BLOCK_EXIT_CODE) => decide_refusal(event, stderr),
        HookExit::Exited(code) => failed(format!("it exited with code {code}")),
        HookExit::Signalled(signal) => failed(format!("it was ended by signal {signal}")),
        HookExit::TimedOut(limit) => failed(format!("it exceeded its timeout of {} s", limit.as_secs())),
        HookExit::NotStarted(reason) => failed(format!("it could not be started: {reason}")),
    }
}

/// Parses the stdout of a successful hook. Only an object counts as an answer.
fn parse_answer(event: HookEvent, stdout: &str) -> Result<HookDecision, String> {
    // Some shells write a byte order mark first.
    let text = stdout.trim().trim_start_matches(BOM).trim_start();
    if !text.starts_with('{') {
        if event.fails_closed() && serde_json::from_str::<Value>(text).is_ok() {
            return Err("is JSON but not an object".to_owned());
        }
        return Ok(match event {
            HookEvent::UserPromptSubmit if !text.is_empty() => HookDecision::Context(truncate_text(text)),
            HookEvent::UserPromptSubmit
            | HookEvent::PreToolUse
            | HookEvent::PostToolUse
            | HookEvent::Stop => HookDecision::NoDecision,
        });
    }
    let map: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    let fields = AnswerFields { map: Some(&map), prefix: "" };
    let specific = fields.hook_specific_output()?;
    if let Some(key) = UNSUPPORTED_FIELDS.into_iter().find(|&key| specific.get(key).is_some()) {
        return Err(format!("has `hookSpecificOutput.{key}`, which Crow does not support"));
    }
    let (reason, context) = (fields.get_text("reason")?, fields.get_text("context")?);
    let is_blocked = is_blocked(&fields, &specific, reason)?;
    let reason = reason.or(specific.get_text("permissionDecisionReason")?).unwrap_or_default();
    let context = context.or(specific.get_text("additionalContext")?).unwrap_or_default();
    let continues = fields.get_flag("continue")?;
    let stop_reason = fields.get_text("stopReason")?;
    Ok(if continues == Some(false) {
        decide_end(event, stop_reason.unwrap_or(reason))
    } else if is_blocked {
        match event {
            HookEvent::PostToolUse => decide_refusal(event, [reason, context].join("\n").trim()),
            HookEvent::PreToolUse | HookEvent::UserPromptSubmit | HookEvent::Stop => {
                decide_refusal(event, reason)
            }
        }
    } else if context.trim().is_empty() || event == HookEvent::Stop {
        HookDecision::NoDecision
    } else {
        HookDecision::Context(truncate_text(context))
    })
}

/// Determines whether an answer blocks. A reason without a decision does.
fn is_blocked(
    fields: &AnswerFields<'_>,
    specific: &AnswerFields<'_>,
    reason: Option<&str>,
) -> Result<bool, String> {
    let decisions = [(fields, "decision"), (specific, "permissionDecision")];
    let (mut is_decided, mut is_blocked) = (false, false);
    for (fields, key) in decisions {
        match fields.get_text(key)? {
            Some("block" | "deny") => is_blocked = true,
            // No permission: it only does not block.
            Some("approve" | "allow") => {}
            Some(_) => return Err(format!("has an unknown value of `{}{key}`", fields.prefix)),
            None => continue,
        }
        is_decided = true;
    }
    Ok(is_blocked || (!is_decided && reason.is_some()))
}

/// Returns the decision for a blocking answer. A finished call cannot be undone, so the model is informed.
fn decide_refusal(event: HookEvent, reason: &str) -> HookDecision {
    match event {
        HookEvent::PreToolUse | HookEvent::UserPromptSubmit => HookDecision::Block(reason_or_default(reason)),
        HookEvent::PostToolUse if reason.trim().is_empty() => {
            HookDecision::Context("rejected without a reason".to_owned())
        }
        HookEvent::PostToolUse => HookDecision::Context(truncate_text(reason)),
        HookEvent::Stop => HookDecision::ContinueTurn(reason_or_default(reason)),
    }
}

/// Returns the decision for a request to end the turn.
fn decide_end(event: HookEvent, reason: &str) -> HookDecision {
    let reason = reason_or_default(reason);
    match event {
        HookEvent::PreToolUse | HookEvent::PostToolUse => HookDecision::EndTurn(reason),
        HookEvent::UserPromptSubmit => HookDecision::Block(reason),
        // The turn ends already.
        HookEvent::Stop => HookDecision::NoDecision,
    }
}

fn reason_or_default(reason: &str) -> String {
    let reason = reason.trim();
    if reason.is_empty() { "it gave no reason".to_owned() } else { truncate_text(reason) }
}

fn truncate_text(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(REASON_CHARS_MAX) {
        Some((cut, _)) => format!("{}… (truncated after {REASON_CHARS_MAX} characters)", &text[..cut]),
        None => text.to_owned(),
    }
}

/// Appends the end of a failed hook's stderr.
fn with_stderr_tail(message: String, stderr: &str) -> String {
    let error_text = stderr.trim();
    let n_skipped = error_text.chars().count().saturating_sub(STDERR_CHARS_MAX);
    match error_text.char_indices().nth(n_skipped) {
        None => message,
        Some((0, _)) => format!("{message}: {error_text}"),
        Some((from, _)) => format!("{message}: …{}", &error_text[from..]),
    }
}

/// The fields of an object, type-checked on access.
struct AnswerFields<'a> {
    map: Option<&'a Map<String, Value>>,
    /// The prefix of the field names in messages.
    prefix: &'static str,
}

impl<'a> AnswerFields<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.map?.get(key)
    }

    fn get_text(&self, key: &str) -> Result<Option<&'a str>, String> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("has a `{}{key}` that is not a string", self.prefix)),
        }
    }

    fn get_flag(&self, key: &str) -> Result<Option<bool>, String> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(format!("has a `{}{key}` that is not true or false", self.prefix)),
        }
    }

    /// Returns the fields for a specific event, in the format of other agents' hooks.
    fn hook_specific_output(&self) -> Result<AnswerFields<'a>, String> {
        let map = match self.get("hookSpecificOutput") {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(map),
            Some(_) => return Err("has a `hookSpecificOutput` that is not an object".to_owned()),
        };
        Ok(AnswerFields { map, prefix: "hookSpecificOutput." })
    }
}
