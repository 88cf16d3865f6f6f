//! What updates cost while they wait for a client that is behind.

use crow_core::{CompactionStage, Content, Part, PlanEntry, Update};
use serde_json::{Map, Value};

/// What an update costs while it waits, roughly.
pub(super) fn weight(update: &Update) -> usize {
    match update {
        Update::Text { text, .. } | Update::Thought { text, .. } | Update::Notice(text) => text.len(),
        Update::Output { text, .. } | Update::Report { text, .. } => text.len(),
        Update::Compaction { stage: CompactionStage::Done { summary: Some(summary) }, text, .. } => {
            text.len() + summary.len()
        }
        Update::Compaction { text, .. } => text.len(),
        Update::Passed(said) => value_bytes(said),
        Update::Plan(steps) => steps.iter().map(step_bytes).sum(),
        Update::Prompt { part, .. } => part_bytes(part),
        Update::Call { arguments, content, .. } => object_bytes(arguments) + content_bytes(content),
        Update::CallChanged { content: Some(content), .. } | Update::CallAgain { content, .. } => {
            content_bytes(content)
        }
        Update::CallChanged { content: None, .. }
        | Update::Child { .. }
        | Update::Title(_)
        | Update::Changed(_)
        | Update::Terminal { .. }
        | Update::Exited { .. }
        | Update::Usage { .. }
        | Update::Mode(_)
        | Update::Options(_)
        | Update::Commands(_) => 0,
    }
}

fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Text(text)
        | Part::Image { data: text, .. }
        | Part::Resource { text, .. }
        | Part::FromCrow { text, .. } => text.len(),
        Part::Link { uri, name, .. } => uri.len() + name.len(),
    }
}

fn step_bytes(step: &PlanEntry) -> usize {
    step.text.len() + step.meta.as_ref().map_or(0, value_bytes)
}

pub(super) fn content_bytes(content: &[Content]) -> usize {
    let bytes = content.iter().map(|content| match content {
        Content::Text(text) | Content::Image { data: text, .. } => text.len(),
        Content::Diff { old, new, .. } => old.as_deref().map_or(0, str::len) + new.len(),
    });
    bytes.sum()
}

fn object_bytes(object: &Map<String, Value>) -> usize {
    object.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(value_bytes).sum(),
        Value::Object(object) => object_bytes(object),
    }
}
