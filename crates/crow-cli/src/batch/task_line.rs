//! One line of a task file, and what it has to fulfil before anything begins.

#[cfg(test)]
mod tests;

use std::{path::PathBuf, time::Duration};

use crow_core::{BatchTaskLimits, Mode, nearest_name};
use serde::Deserialize;

/// Bytes of an ID; it is printed in lines of its own.
const ID_BYTES_MAX: usize = 256;

/// Letters of the hash that is the ID of a line without one.
const HASH_LETTERS: usize = 16;

/// A week; a longer task is a mistake in the unit.
const MINUTES_MAX: f64 = 10_080.0;

/// The form of a line.
const EXAMPLE: &str =
    r#"each line is an object such as {"id": "a", "prompt": "Fix the tests.", "cwd": "app"}"#;

/// A task of a batch.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BatchTask {
    pub(super) id: String,
    pub(super) prompt: String,
    /// The directory as written.
    pub(super) cwd: Option<PathBuf>,
    pub(super) model: Option<String>,
    pub(super) mode: Option<String>,
    /// Whether it works in a git worktree of its own.
    pub(super) worktree: bool,
    pub(super) limits: BatchTaskLimits,
}

/// Rules for all tasks, known before they are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskRules<'a> {
    /// Crow's models; `None` if another agent has its own.
    pub(super) models: Option<&'a [&'a str]>,
    /// The tokens for all tasks.
    pub(super) tokens_max: Option<u64>,
}

/// An error in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineError {
    pub(super) reason: String,
    pub(super) hint: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskFields {
    id: Option<String>,
    prompt: String,
    cwd: Option<PathBuf>,
    model: Option<String>,
    mode: Option<String>,
    #[serde(default)]
    worktree: bool,
    max_tokens: Option<u64>,
    max_minutes: Option<f64>,
}

impl LineError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), hint: None }
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Parses a line. `None` if it is empty.
pub(super) fn parse_task_line(line: &str, rules: TaskRules<'_>) -> Result<Option<BatchTask>, LineError> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(None);
    }
    if !line.starts_with('{') {
        return Err(LineError::new("not a JSON object").with_hint(EXAMPLE));
    }
    let fields: TaskFields = serde_json::from_str(line).map_err(|error| json_error(&error))?;
    let tokens_max = check_tokens(fields.max_tokens, rules.tokens_max)?;
    let time_max = fields.max_minutes.map(parse_minutes).transpose()?;
    if fields.prompt.trim().is_empty() {
        return Err(LineError::new("prompt is empty"));
    }
    check_choices(&fields, rules)?;
    let id = match fields.id {
        Some(id) => check_id(id)?,
        None => crow_files::hash_content(line.as_bytes()).to_string().chars().take(HASH_LETTERS).collect(),
    };
    Ok(Some(BatchTask {
        id,
        prompt: fields.prompt,
        cwd: fields.cwd,
        model: fields.model,
        mode: fields.mode,
        worktree: fields.worktree,
        limits: BatchTaskLimits { tokens_max, time_max },
    }))
}

/// Converts an error of the parser; its line is always the first one.
fn json_error(error: &serde_json::Error) -> LineError {
    let reason = error.to_string().replace(" at line 1 column ", " at column ");
    LineError::new(reason).with_hint(EXAMPLE)
}

fn check_id(id: String) -> Result<String, LineError> {
    if id.is_empty() || id.len() > ID_BYTES_MAX || id.chars().any(char::is_control) {
        let reason = format!("id must have 1 to {ID_BYTES_MAX} bytes and no control characters");
        return Err(LineError::new(reason));
    }
    Ok(id)
}

fn check_tokens(tokens: Option<u64>, for_all: Option<u64>) -> Result<Option<u64>, LineError> {
    match (tokens, for_all) {
        (Some(0), _) => Err(LineError::new("max_tokens must be at least 1")),
        (Some(tokens), Some(for_all)) if tokens > for_all => {
            let reason = format!("max_tokens is {tokens}, more than --max-tokens {for_all} for all tasks");
            Err(LineError::new(reason))
        }
        (tokens, _) => Ok(tokens),
    }
}

fn parse_minutes(minutes: f64) -> Result<Duration, LineError> {
    if minutes > 0.0 && minutes <= MINUTES_MAX {
        return Ok(Duration::from_secs_f64(minutes * 60.0));
    }
    Err(LineError::new(format!("max_minutes must be above 0 and at most {MINUTES_MAX}")))
}

/// Checks model and mode, which only Crow's own names are known of.
fn check_choices(fields: &TaskFields, rules: TaskRules<'_>) -> Result<(), LineError> {
    let Some(models) = rules.models else { return Ok(()) };
    if let Some(model) = fields.model.as_deref().filter(|model| !models.contains(model)) {
        return Err(unknown_name("model", model, models));
    }
    if let Some(mode) = fields.mode.as_deref().filter(|mode| Mode::parse(mode).is_none()) {
        return Err(unknown_name("mode", mode, &Mode::ALL.map(Mode::as_str)));
    }
    Ok(())
}

fn unknown_name(kind: &str, name: &str, known: &[&str]) -> LineError {
    let suggestion = nearest_name(name, known.iter().copied());
    let suggestion = suggestion.map(|nearest| format!("did you mean {nearest}? ")).unwrap_or_default();
    LineError::new(format!("unknown {kind} {name:?}"))
        .with_hint(format!("{suggestion}known {kind}s: {}", known.join(", ")))
}
