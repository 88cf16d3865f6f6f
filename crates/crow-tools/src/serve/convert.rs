//! Converts tools and results to MCP types. Pure.

use std::sync::Arc;

use crow_core::{ContentPart, ToolCallStatus, ToolKind, ToolResult, ToolSpec};
use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};

/// Converts a tool's specification.
pub(super) fn to_mcp_tool(spec: &ToolSpec, kind: ToolKind) -> Tool {
    let schema = spec.parameters.as_object().cloned().unwrap_or_default();
    Tool::new(spec.name.clone(), spec.description.clone(), Arc::new(schema))
        .with_annotations(tool_annotations(kind))
}

/// Returns a tool's annotations for the client: hints, never permissions.
fn tool_annotations(kind: ToolKind) -> ToolAnnotations {
    let (reads_only, destroys, reaches_out) = match kind {
        ToolKind::Read | ToolKind::Search | ToolKind::Think => (true, false, false),
        ToolKind::Fetch => (true, false, true),
        ToolKind::Edit => (false, true, false),
        ToolKind::Execute | ToolKind::Other => (false, true, true),
    };
    ToolAnnotations::new().read_only(reads_only).destructive(destroys).open_world(reaches_out)
}

/// Converts a result.
pub(super) fn to_call_result(result: ToolResult) -> CallToolResult {
    let blocks: Vec<ContentBlock> = result.for_model.into_iter().map(to_content_block).collect();
    match result.status {
        ToolCallStatus::Failed => CallToolResult::error(blocks),
        ToolCallStatus::Completed | ToolCallStatus::Pending | ToolCallStatus::InProgress => {
            CallToolResult::success(blocks)
        }
    }
}

/// Returns the result of a call that failed before it ran.
pub(super) fn error_result(reason: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(reason)])
}

fn to_content_block(part: ContentPart) -> ContentBlock {
    match part {
        ContentPart::Text(text) | ContentPart::Resource { text, .. } | ContentPart::FromCrow { text, .. } => {
            ContentBlock::text(text)
        }
        ContentPart::Image { mime, data } => ContentBlock::image(data, mime),
        ContentPart::Link { uri, .. } => ContentBlock::text(uri),
    }
}
