//! Tools and outcomes in the protocol's words. Pure.

use std::sync::Arc;

use crow_core::{Outcome, Part, Status, ToolKind, ToolSpec};
use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};

/// Describes a tool.
pub(super) fn tool(spec: &ToolSpec, kind: ToolKind) -> Tool {
    let schema = spec.parameters.as_object().cloned().unwrap_or_default();
    Tool::new(spec.name.clone(), spec.description.clone(), Arc::new(schema)).with_annotations(hints(kind))
}

/// What a client may show of a tool beside its name. It is a hint, never a permission.
fn hints(kind: ToolKind) -> ToolAnnotations {
    let (reads_only, destroys, reaches_out) = match kind {
        ToolKind::Read | ToolKind::Search | ToolKind::Think => (true, false, false),
        ToolKind::Fetch => (true, false, true),
        ToolKind::Edit => (false, true, false),
        ToolKind::Execute | ToolKind::Other => (false, true, true),
    };
    ToolAnnotations::new().read_only(reads_only).destructive(destroys).open_world(reaches_out)
}

/// Spells an outcome.
pub(super) fn result(outcome: Outcome) -> CallToolResult {
    let blocks: Vec<ContentBlock> = outcome.for_model.into_iter().map(block).collect();
    match outcome.status {
        Status::Failed => CallToolResult::error(blocks),
        Status::Done | Status::Pending | Status::Running => CallToolResult::success(blocks),
    }
}

/// Spells what went wrong before the call began.
pub(super) fn refusal(why: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

fn block(part: Part) -> ContentBlock {
    match part {
        Part::Text(text) | Part::Resource { text, .. } | Part::FromCrow { text, .. } => {
            ContentBlock::text(text)
        }
        Part::Image { mime, data } => ContentBlock::image(data, mime),
        Part::Link { uri, .. } => ContentBlock::text(uri),
    }
}
