//! What a hook's answer means: its exit, its stdout, its stderr. What does not fit is a failure, never a yes.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::HookEvent;

/// The exit code that refuses; stderr says why.
const REFUSED: i32 = 2;

/// Characters of a reason or a context: about 4,000 tokens, and each goes into the conversation for good.
const WORDS_CHARS_MAX: usize = 16_000;

/// Characters of a failed hook's last words; the line with the error is in them.
const COMPLAINT_CHARS_MAX: usize = 400;

/// Answers of other agents' hooks that change what runs. To pass over them would run what was to be changed.
const NOT_DONE: [&str; 2] = ["updatedInput", "updatedMCPToolOutput"];

/// What a text in Unicode may begin with.
const BOM: char = '\u{feff}';

/// How a hook ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookExit {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It ran longer than this.
    TimedOut(Duration),
    /// It never began; why.
    NotStarted(String),
}

/// What a hook said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookDecision {
    /// Nothing: all goes on as without it.
    Nothing,
    /// The model should know this.
    Context(String),
    /// This may not happen; why.
    Block(String),
    /// The model should go on; why. From [`HookEvent::Stop`] only.
    GoOn(String),
    /// The turn ends here; why.
    End(String),
    /// No answer that counts; what went wrong.
    Failed(String),
}

/// Reads the answer of a hook.
pub fn parse_hook_output(event: HookEvent, end: &HookExit, stdout: &str, stderr: &str) -> HookDecision {
    let failed = |how: String| HookDecision::Failed(with_stderr_tail(how, stderr));
    match end {
        HookExit::Exited(0) => {
            parse_answer(event, stdout).unwrap_or_else(|why| failed(format!("its answer {why}")))
        }
        HookExit::Exited(REFUSED) => decide_refusal(event, stderr),
        HookExit::Exited(code) => failed(format!("it ended with exit code {code}")),
        HookExit::Signalled(signal) => failed(format!("signal {signal} ended it")),
        HookExit::TimedOut(limit) => failed(format!("it ran longer than {} s", limit.as_secs())),
        HookExit::NotStarted(why) => failed(format!("it could not be started: {why}")),
    }
}

/// Reads what a hook wrote when all went well. Only an object counts as an answer.
fn parse_answer(event: HookEvent, stdout: &str) -> Result<HookDecision, String> {
    // Some shells begin what they write with a mark.
    let text = stdout.trim().trim_start_matches(BOM).trim_start();
    if !text.starts_with('{') {
        if event.fails_closed() && serde_json::from_str::<Value>(text).is_ok() {
            return Err("is JSON, and no object".to_owned());
        }
        return Ok(match event {
            HookEvent::UserPromptSubmit if !text.is_empty() => HookDecision::Context(truncate_text(text)),
            HookEvent::UserPromptSubmit
            | HookEvent::PreToolUse
            | HookEvent::PostToolUse
            | HookEvent::Stop => HookDecision::Nothing,
        });
    }
    let map: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    let fields = AnswerFields { map: Some(&map), place: "" };
    let specific = fields.hook_specific_output()?;
    if let Some(key) = NOT_DONE.into_iter().find(|&key| specific.get(key).is_some()) {
        return Err(format!("has `hookSpecificOutput.{key}`, which Crow cannot do"));
    }
    let (reason, context) = (fields.get_text("reason")?, fields.get_text("context")?);
    let verdict = parse_verdict(&fields, &specific, reason)?;
    let reason = reason.or(specific.get_text("permissionDecisionReason")?).unwrap_or_default();
    let context = context.or(specific.get_text("additionalContext")?).unwrap_or_default();
    let goes_on = fields.get_flag("continue")?;
    let stop_reason = fields.get_text("stopReason")?;
    Ok(if goes_on == Some(false) {
        decide_end(event, stop_reason.unwrap_or(reason))
    } else if verdict == HookVerdict::Refuses {
        match event {
            HookEvent::PostToolUse => decide_refusal(event, [reason, context].join("\n").trim()),
            HookEvent::PreToolUse | HookEvent::UserPromptSubmit | HookEvent::Stop => {
                decide_refusal(event, reason)
            }
        }
    } else if context.trim().is_empty() || event == HookEvent::Stop {
        HookDecision::Nothing
    } else {
        HookDecision::Context(truncate_text(context))
    })
}

#[derive(PartialEq, Eq)]
enum HookVerdict {
    Refuses,
    Passes,
}

/// Finds out whether an answer refuses. A reason without a decision does.
fn parse_verdict(
    fields: &AnswerFields<'_>,
    specific: &AnswerFields<'_>,
    reason: Option<&str>,
) -> Result<HookVerdict, String> {
    let decisions = [(fields, "decision"), (specific, "permissionDecision")];
    let (mut is_decided, mut refuses) = (false, false);
    for (fields, key) in decisions {
        match fields.get_text(key)? {
            Some("block" | "deny") => refuses = true,
            // Not a permission: it only does not refuse.
            Some("approve" | "allow") => {}
            Some(_) => return Err(format!("has a `{}{key}` that Crow does not know", fields.place)),
            None => continue,
        }
        is_decided = true;
    }
    let refuses = refuses || (!is_decided && reason.is_some());
    Ok(if refuses { HookVerdict::Refuses } else { HookVerdict::Passes })
}

/// What a refusal comes to. What ran cannot be undone, so the model is told.
fn decide_refusal(event: HookEvent, reason: &str) -> HookDecision {
    match event {
        HookEvent::PreToolUse | HookEvent::UserPromptSubmit => HookDecision::Block(reason_or_default(reason)),
        HookEvent::PostToolUse if reason.trim().is_empty() => {
            HookDecision::Context("no, without a reason".to_owned())
        }
        HookEvent::PostToolUse => HookDecision::Context(truncate_text(reason)),
        HookEvent::Stop => HookDecision::GoOn(reason_or_default(reason)),
    }
}

/// What the wish to end everything comes to.
fn decide_end(event: HookEvent, reason: &str) -> HookDecision {
    let reason = reason_or_default(reason);
    match event {
        HookEvent::PreToolUse | HookEvent::PostToolUse => HookDecision::End(reason),
        HookEvent::UserPromptSubmit => HookDecision::Block(reason),
        // It ends already.
        HookEvent::Stop => HookDecision::Nothing,
    }
}

fn reason_or_default(reason: &str) -> String {
    let reason = reason.trim();
    if reason.is_empty() { "it gave no reason".to_owned() } else { truncate_text(reason) }
}

fn truncate_text(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(WORDS_CHARS_MAX) {
        Some((cut, _)) => format!("{}… (cut after {WORDS_CHARS_MAX} characters)", &text[..cut]),
        None => text.to_owned(),
    }
}

/// Adds the end of what a failed hook complained of.
fn with_stderr_tail(how: String, stderr: &str) -> String {
    let complaint = stderr.trim();
    let n_over = complaint.chars().count().saturating_sub(COMPLAINT_CHARS_MAX);
    match complaint.char_indices().nth(n_over) {
        None => how,
        Some((0, _)) => format!("{how}: {complaint}"),
        Some((from, _)) => format!("{how}: …{}", &complaint[from..]),
    }
}

/// The fields of an object whose types are checked when they are read.
struct AnswerFields<'a> {
    map: Option<&'a Map<String, Value>>,
    /// How its fields are named in a message.
    place: &'static str,
}

impl<'a> AnswerFields<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.map?.get(key)
    }

    fn get_text(&self, key: &str) -> Result<Option<&'a str>, String> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("has a `{}{key}` that is not text", self.place)),
        }
    }

    fn get_flag(&self, key: &str) -> Result<Option<bool>, String> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(format!("has a `{}{key}` that is not true or false", self.place)),
        }
    }

    /// What is special to one event, as other agents' hooks spell it.
    fn hook_specific_output(&self) -> Result<AnswerFields<'a>, String> {
        let map = match self.get("hookSpecificOutput") {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(map),
            Some(_) => return Err("has a `hookSpecificOutput` that is not an object".to_owned()),
        };
        Ok(AnswerFields { map, place: "hookSpecificOutput." })
    }
}
