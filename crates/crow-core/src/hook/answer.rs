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
pub enum HookEnd {
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
pub enum Said {
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
pub fn read(event: HookEvent, end: &HookEnd, stdout: &str, stderr: &str) -> Said {
    let failed = |how: String| Said::Failed(with_complaint(how, stderr));
    match end {
        HookEnd::Exited(0) => answer(event, stdout).unwrap_or_else(|why| failed(format!("its answer {why}"))),
        HookEnd::Exited(REFUSED) => refusal(event, stderr),
        HookEnd::Exited(code) => failed(format!("it ended with exit code {code}")),
        HookEnd::Signalled(signal) => failed(format!("signal {signal} ended it")),
        HookEnd::TimedOut(limit) => failed(format!("it ran longer than {} s", limit.as_secs())),
        HookEnd::NotStarted(why) => failed(format!("it could not be started: {why}")),
    }
}

/// Reads what a hook wrote when all went well. Only an object counts as an answer.
fn answer(event: HookEvent, stdout: &str) -> Result<Said, String> {
    // Some shells begin what they write with a mark.
    let text = stdout.trim().trim_start_matches(BOM).trim_start();
    if !text.starts_with('{') {
        if event.guards() && serde_json::from_str::<Value>(text).is_ok() {
            return Err("is JSON, and no object".to_owned());
        }
        return Ok(match event {
            HookEvent::UserPromptSubmit if !text.is_empty() => Said::Context(bounded(text)),
            HookEvent::UserPromptSubmit
            | HookEvent::PreToolUse
            | HookEvent::PostToolUse
            | HookEvent::Stop => Said::Nothing,
        });
    }
    let map: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    let fields = Fields { map: Some(&map), place: "" };
    let specific = fields.specific()?;
    if let Some(key) = NOT_DONE.into_iter().find(|&key| specific.get(key).is_some()) {
        return Err(format!("has `hookSpecificOutput.{key}`, which Crow cannot do"));
    }
    let (reason, context) = (fields.text("reason")?, fields.text("context")?);
    let verdict = verdict(&fields, &specific, reason)?;
    let reason = reason.or(specific.text("permissionDecisionReason")?).unwrap_or_default();
    let context = context.or(specific.text("additionalContext")?).unwrap_or_default();
    let goes_on = fields.flag("continue")?;
    let stop_reason = fields.text("stopReason")?;
    Ok(if goes_on == Some(false) {
        ending(event, stop_reason.unwrap_or(reason))
    } else if verdict == Verdict::Refuses {
        match event {
            HookEvent::PostToolUse => refusal(event, [reason, context].join("\n").trim()),
            HookEvent::PreToolUse | HookEvent::UserPromptSubmit | HookEvent::Stop => refusal(event, reason),
        }
    } else if context.trim().is_empty() || event == HookEvent::Stop {
        Said::Nothing
    } else {
        Said::Context(bounded(context))
    })
}

#[derive(PartialEq, Eq)]
enum Verdict {
    Refuses,
    Passes,
}

/// Finds out whether an answer refuses. A reason without a decision does.
fn verdict(fields: &Fields<'_>, specific: &Fields<'_>, reason: Option<&str>) -> Result<Verdict, String> {
    let decisions = [(fields, "decision"), (specific, "permissionDecision")];
    let (mut is_decided, mut refuses) = (false, false);
    for (fields, key) in decisions {
        match fields.text(key)? {
            Some("block" | "deny") => refuses = true,
            // Not a permission: it only does not refuse.
            Some("approve" | "allow") => {}
            Some(_) => return Err(format!("has a `{}{key}` that Crow does not know", fields.place)),
            None => continue,
        }
        is_decided = true;
    }
    let refuses = refuses || (!is_decided && reason.is_some());
    Ok(if refuses { Verdict::Refuses } else { Verdict::Passes })
}

/// What a refusal comes to. What ran cannot be undone, so the model is told.
fn refusal(event: HookEvent, reason: &str) -> Said {
    match event {
        HookEvent::PreToolUse | HookEvent::UserPromptSubmit => Said::Block(spoken(reason)),
        HookEvent::PostToolUse if reason.trim().is_empty() => {
            Said::Context("no, without a reason".to_owned())
        }
        HookEvent::PostToolUse => Said::Context(bounded(reason)),
        HookEvent::Stop => Said::GoOn(spoken(reason)),
    }
}

/// What the wish to end everything comes to.
fn ending(event: HookEvent, reason: &str) -> Said {
    let reason = spoken(reason);
    match event {
        HookEvent::PreToolUse | HookEvent::PostToolUse => Said::End(reason),
        HookEvent::UserPromptSubmit => Said::Block(reason),
        // It ends already.
        HookEvent::Stop => Said::Nothing,
    }
}

fn spoken(reason: &str) -> String {
    let reason = reason.trim();
    if reason.is_empty() { "it gave no reason".to_owned() } else { bounded(reason) }
}

fn bounded(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(WORDS_CHARS_MAX) {
        Some((cut, _)) => format!("{}… (cut after {WORDS_CHARS_MAX} characters)", &text[..cut]),
        None => text.to_owned(),
    }
}

/// Adds the end of what a failed hook complained of.
fn with_complaint(how: String, stderr: &str) -> String {
    let complaint = stderr.trim();
    let n_over = complaint.chars().count().saturating_sub(COMPLAINT_CHARS_MAX);
    match complaint.char_indices().nth(n_over) {
        None => how,
        Some((0, _)) => format!("{how}: {complaint}"),
        Some((from, _)) => format!("{how}: …{}", &complaint[from..]),
    }
}

/// The fields of an object whose types are checked when they are read.
struct Fields<'a> {
    map: Option<&'a Map<String, Value>>,
    /// How its fields are named in a message.
    place: &'static str,
}

impl<'a> Fields<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.map?.get(key)
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, String> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("has a `{}{key}` that is not text", self.place)),
        }
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(format!("has a `{}{key}` that is not true or false", self.place)),
        }
    }

    /// What is special to one event, as other agents' hooks spell it.
    fn specific(&self) -> Result<Fields<'a>, String> {
        let map = match self.get("hookSpecificOutput") {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(map),
            Some(_) => return Err("has a `hookSpecificOutput` that is not an object".to_owned()),
        };
        Ok(Fields { map, place: "hookSpecificOutput." })
    }
}
