//! A server's tool as a [`Tool`].

use std::sync::Arc;

use crow_core::{ToolAccess, ToolCallInfo, ToolKind, ToolSpec};
use serde_json::{Map, Value};

use super::{call::call_tool, server::McpServerHandle, tool_list::ListedTool};
use crate::{Tool, ToolCx, ToolFuture, Workspace, title::to_title};

pub(super) struct McpTool {
    server: Arc<McpServerHandle>,
    listed_tool: Arc<ListedTool>,
}

impl McpTool {
    pub(super) fn new(server: Arc<McpServerHandle>, listed_tool: Arc<ListedTool>) -> Self {
        Self { server, listed_tool }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.listed_tool.spec
    }

    fn server_name(&self) -> Option<&str> {
        Some(&self.server.name)
    }

    fn server_tool_name(&self) -> Option<&str> {
        Some(&self.listed_tool.name)
    }

    // Only the tool's name and the kind `Other`: a title or hint of the server could mislead the user who is asked.
    fn call_info(&self, _arguments: &Map<String, Value>, _workspace: &Workspace) -> ToolCallInfo {
        let (server, tool) = (self.server.name.clone(), self.listed_tool.name.clone());
        ToolCallInfo {
            title: to_title(&format!("{server}: {tool}")),
            kind: ToolKind::Other,
            locations: Vec::new(),
            access: ToolAccess::Calls { server, tool },
        }
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        Box::pin(call_tool(&self.server, &self.listed_tool.name, arguments, cx))
    }
}
