//! The memory of queued updates.

use crow_core::{CompactionStage, ContentPart, PlanEntry, SessionUpdate, ToolCallContent};
use serde_json::{Map, Value};

/// The approximate memory of a queued update.
pub(super) fn update_bytes(update: &SessionUpdate) -> usize {
    match update {
        SessionUpdate::Text { text, .. }
        | SessionUpdate::Thought { text, .. }
        | SessionUpdate::Notice(text) => text.len(),
        SessionUpdate::Output { text, .. } | SessionUpdate::Report { text, .. } => text.len(),
        SessionUpdate::Compaction {
            stage: CompactionStage::Done { summary: Some(summary) }, text, ..
        } => text.len() + summary.len(),
        SessionUpdate::Compaction { text, .. } => text.len(),
        SessionUpdate::Forwarded(value) => value_bytes(value),
        SessionUpdate::Plan(steps) => steps.iter().map(step_bytes).sum(),
        SessionUpdate::Prompt { part, .. } => part_bytes(part),
        SessionUpdate::Call { arguments, content, .. } => object_bytes(arguments) + content_bytes(content),
        SessionUpdate::CallChanged { content: Some(content), .. }
        | SessionUpdate::CallRestored { content, .. } => content_bytes(content),
        SessionUpdate::CallChanged { content: None, .. }
        | SessionUpdate::Child { .. }
        | SessionUpdate::Title(_)
        | SessionUpdate::LastChanged(_)
        | SessionUpdate::Terminal { .. }
        | SessionUpdate::Exited { .. }
        | SessionUpdate::Usage { .. }
        | SessionUpdate::Mode(_)
        | SessionUpdate::Options(_)
        | SessionUpdate::Commands(_) => 0,
    }
}

fn part_bytes(part: &ContentPart) -> usize {
    match part {
        ContentPart::Text(text)
        | ContentPart::Image { data: text, .. }
        | ContentPart::Resource { text, .. }
        | ContentPart::FromCrow { text, .. } => text.len(),
        ContentPart::Link { uri, name, .. } => uri.len() + name.len(),
    }
}

fn step_bytes(step: &PlanEntry) -> usize {
    step.text.len() + step.meta.as_ref().map_or(0, value_bytes)
}

pub(super) fn content_bytes(content: &[ToolCallContent]) -> usize {
    let bytes = content.iter().map(|content| match content {
        ToolCallContent::Text(text) | ToolCallContent::Image { data: text, .. } => text.len(),
        ToolCallContent::Diff { old, new, .. } => old.as_deref().map_or(0, str::len) + new.len(),
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
